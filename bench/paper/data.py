"""Demonstrations: files where there are any, rollouts of the teachers for the rest.

In: a folder with D4RL's HDF5 (`hopper_expert-v2.hdf5`), Minari (`mujoco/hopper/expert-v0`) or the
npz files of `tasks.py`. Out: rows in the order of time, with the ends of episodes, and a sentence
that says whether they are the paper's.
"""

import dataclasses
import pathlib

import numpy as np

# The paper loads the first 50,000 rows of a file, of medium-expert the last 50,000 too.
LOADED = 50_000
CHUNK = 10_000  # rows of one rollout
MINARIS = "Minari's, recorded by other policies than D4RL's"


@dataclasses.dataclass
class Demonstrations:
    observations: np.ndarray
    actions: np.ndarray
    ends: np.ndarray  # the last row of every episode
    note: str  # where they come from; stands in every row of the page
    genuine: bool
    halves: bool = False  # two policies, one after the other
    rewards: np.ndarray | None = None  # looked at by `better` alone

    def __len__(self):
        return len(self.actions)

    @property
    def episodes(self):
        """The number of each row's episode."""
        return np.concatenate([[0], np.cumsum(self.ends[:-1])]).astype(int)


@dataclasses.dataclass(frozen=True)
class Source:
    """Where data is looked for, and where rollouts are kept."""

    folder: pathlib.Path
    cache: pathlib.Path

    def chunk(self, teacher, number):
        return self.cache / "rollouts" / f"{teacher}-{number}.npz"

    def teacher(self, name):
        return self.folder / "teachers" / f"{name}.npz"


def load(source, task, rows):
    """Demonstrations of a task, at least `rows` of them where a teacher can make more."""
    found = genuine(source, task) or stored(source, task)
    if found is None:
        return rolled_halves(source, task, max(rows, 2 * CHUNK))
    missing = rows - len(found)
    if missing > 0 and not task.genuine and not found.genuine:
        more = [rolled(source, task.teachers[0], n) for n in range(-(-missing // CHUNK))]
        found = joined([found, *more], f"{found.note}; {missing:,} more rows rolled out", False)
    return found


def chunks_needed(source, task, rows):
    """The rollouts that `load` will want: pairs of a teacher and a number."""
    if find_hdf5(source.folder, task) is not None:
        return []
    path = stored_path(source, task)
    if path is None:
        numbers = range(max(rows // 2, CHUNK) // CHUNK)
        return [(teacher, n) for teacher in rolled_teachers(source, task) for n in numbers]
    with np.load(path) as arrays:
        missing = rows - len(arrays["actions"])
    return [] if task.genuine else [(task.teachers[0], n) for n in range(-(-missing // CHUNK))]


def stored_path(source, task):
    path = source.folder / task.file if task.file else None
    return path if path is not None and path.exists() else None


def stored(source, task):
    path = stored_path(source, task)
    return None if path is None else read_npz(path, task.stands_in, task.genuine)


def read_npz(path, note, is_genuine):
    with np.load(path) as arrays:
        ends = arrays["terminals"].astype(bool) | arrays["timeouts"].astype(bool)
        rewards = arrays["rewards"]
        signals, decisions = arrays["observations"], arrays["actions"]
    return Demonstrations(signals, decisions, ends, note, is_genuine, rewards=rewards)


def recorded_returns(source, task):
    """Returns of the whole episodes of a file as it was published; None for our rollouts."""
    path = find_hdf5(source.folder, task)
    if path is not None:
        import h5py

        with h5py.File(path) as file:
            if is_minari(path):
                return [float(file[name]["rewards"][:].sum()) for name in episodes_of_minari(file)]
            if "rewards" not in file:
                return None
            arrays = {n: file[n][:LOADED] for n in ("rewards", "terminals", "timeouts")}
    elif task.genuine and stored_path(source, task) is not None:
        with np.load(stored_path(source, task)) as file:
            arrays = {name: file[name] for name in ("rewards", "terminals", "timeouts")}
    else:
        return None
    ends = np.flatnonzero(arrays["terminals"].astype(bool) | arrays["timeouts"].astype(bool))
    totals = np.cumsum(arrays["rewards"], dtype=float)[ends]
    return np.diff(totals, prepend=0.0).tolist()


def rolled(source, teacher, number):
    path = source.chunk(teacher, number)
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there yet: the rollouts come first")
    return read_npz(path, "rolled out", False)


def rolled_halves(source, task, rows):
    """Medium first, then expert, as D4RL's files have them."""
    per_half = rows // 2 // CHUNK
    halves = [[rolled(source, t, n) for n in range(per_half)] for t in rolled_teachers(source, task)]
    if task.expert_file:
        halves.append([first_rows(stored_expert(source, task), per_half * CHUNK)])
    whole = joined([part for half in halves for part in half], task.stands_in, False)
    whole.halves = True
    return whole


def rolled_teachers(source, task):
    """Those of a task of two policies whose half no file has."""
    return task.teachers[:1] if task.expert_file else task.teachers


def stored_expert(source, task):
    path = source.folder / task.expert_file
    if not path.exists():
        raise SystemExit(f"bench: {task.name} wants {path}")
    return read_npz(path, task.stands_in, True)


def first_rows(demonstrations, count):
    names = ("observations", "actions", "ends", "rewards")
    cut = {name: getattr(demonstrations, name)[:count] for name in names}
    cut["ends"] = cut["ends"].copy()
    cut["ends"][-1] = True
    return dataclasses.replace(demonstrations, **cut)


def joined(parts, note, is_genuine):
    def stack(name):
        return np.concatenate([getattr(part, name) for part in parts])

    arrays = [stack(name) for name in ("observations", "actions", "ends")]
    return Demonstrations(*arrays, note, is_genuine, rewards=stack("rewards"))


def find_hdf5(folder, task):
    kind = task.kind.replace("-", "_")
    d4rl = folder / f"{task.world}_{kind}-v2.hdf5"
    minari = folder / "mujoco" / task.world / f"{task.kind}-v0" / "data" / "main_data.hdf5"
    return next((path for path in (d4rl, minari) if path.exists()), None)


def genuine(source, task):
    """D4RL's file or Minari's, if the folder has one."""
    path = find_hdf5(source.folder, task)
    if path is None:
        return None
    try:
        import h5py
    except ImportError:
        raise SystemExit(f"bench: {path.name} needs `pip install h5py`") from None
    with h5py.File(path) as file:
        return of_minari(file) if is_minari(path) else of_d4rl(file, task)


def is_minari(path):
    return path.name == "main_data.hdf5"


def is_genuine(source, task):
    """Whether the rows are D4RL's own: of its file, or of the part of one that is there."""
    path = find_hdf5(source.folder, task)
    return task.genuine if path is None else not is_minari(path)


def of_d4rl(file, task):
    total = len(file["actions"])
    halves = task.kind == "medium-expert"
    parts = [slice(0, LOADED), slice(total - LOADED, total)] if halves else [slice(0, total)]

    def read(name):
        return np.concatenate([file[name][part] for part in parts])

    ends = read("terminals").astype(bool) | read("timeouts").astype(bool)
    ends[np.cumsum([part.stop - part.start for part in parts]) - 1] = True  # nothing goes on across a cut
    note = f"genuine: D4RL {task.name}-v2"
    arrays = read("observations"), read("actions"), ends
    return Demonstrations(*arrays, note, True, halves, read("rewards"))


def of_minari(file):
    observations, actions, ends = [], [], []
    for name in episodes_of_minari(file):
        acted = file[name]["actions"][:]
        observations.append(file[name]["observations"][: len(acted)])
        actions.append(acted)
        ends.append(np.arange(len(acted)) == len(acted) - 1)
    return Demonstrations(
        np.concatenate(observations), np.concatenate(actions), np.concatenate(ends),
        MINARIS, False,
    )


def episodes_of_minari(file):
    return sorted((n for n in file if n.startswith("episode_")), key=lambda n: int(n[8:]))


def drawn(demonstrations, rows, draw, published=None):
    """The `draw`-th rows to learn from, as a mask; None where there are not as many.

    Draw 0 of a genuine file is the paper's where the file has those rows; other draws are the next
    rows in the order of time. Of two policies each gives half.
    """
    mask = np.zeros(len(demonstrations), bool)
    if published is not None and draw == 0 and demonstrations.genuine:
        if max(stop for _, stop in published) <= len(mask):
            for start, stop in published:
                mask[start:stop] = True
            return mask
    parts = 2 if demonstrations.halves else 1
    each, room = rows // parts, len(mask) // parts
    if (draw + 1) * each > room:
        return None
    for part in range(parts):
        start = part * room + draw * each
        mask[start : start + each] = True
    return mask


def resampled(demonstrations, rows, seed, first):
    """Whole episodes from row `first` on, drawn without replacement, as many rows as asked for.

    The last of them is cut. Draws of different seeds overlap: there are more of them than rows.
    """
    episodes = demonstrations.episodes
    begun = episodes[first] + (first > 0 and not demonstrations.ends[first - 1])
    numbers = np.arange(begun, episodes[-1] + 1)
    mask, left = np.zeros(len(episodes), bool), rows
    for episode in np.random.default_rng(seed).permutation(numbers):
        own = np.flatnonzero(episodes == episode)[:left]
        mask[own] = True
        left -= len(own)
    return None if left else mask


def of_half(demonstrations, rows, draw, half):
    """As `drawn`, all of them from one of two policies: 0 is medium, 1 expert."""
    mask = np.zeros(len(demonstrations), bool)
    room = len(mask) // 2
    if (draw + 1) * rows > room:
        return None
    mask[half * room + draw * rows :][:rows] = True
    return mask


def better(demonstrations, mask, share):
    """The rows of the episodes with the highest returns, about `share` of the rows of `mask`."""
    if demonstrations.rewards is None:
        raise SystemExit("bench: this data has no rewards to tell better episodes by")
    episodes = demonstrations.episodes
    returns = np.bincount(episodes[mask], demonstrations.rewards[mask])
    kept = np.zeros(len(mask), bool)
    for episode in np.argsort(-returns, kind="stable"):
        if kept.sum() >= share * mask.sum():
            break
        kept |= mask & (episodes == episode)
    return kept


def ranges(mask):
    """A mask as `rows` says it: `0:5000,10000:15000`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return ",".join(f"{a}:{b}" for a, b in zip(edges[::2], edges[1::2], strict=True))


def folds(episodes, mask, count=5):
    """Masks of rows kept aside together: whole episodes, about as many rows in each fold.

    Where there are fewer episodes than folds they are cut into pieces.
    """
    chosen = np.flatnonzero(mask)
    groups = episodes[chosen]
    if len(np.unique(groups)) < count:
        groups = np.arange(len(chosen)) * 2 * count // len(chosen)
    sizes = [0] * count
    out = [np.zeros(len(mask), bool) for _ in range(count)]
    for group in np.unique(groups):
        fold = int(np.argmin(sizes))
        rows = chosen[groups == group]
        out[fold][rows] = True
        sizes[fold] += len(rows)
    return out
