#!/usr/bin/env python3
"""The paper's medium-expert tasks at 100,000 rows.

Two trained policies are rolled out with their own noise, one after the other.

    python bench/rollout.py DIR --out OUT [--tasks hopper walker2d] [--rows 50000] [--seed 0]

Needs `pip install 'gymnasium[mujoco]' numpy`. DIR holds the policies, teachers/NAME.npz (NAMES
below): W0, b0, ... the layers of a relu network, Wls, bls the head for the logarithm of the
standard deviation, log_std_clip its range; actions are tanh of a normal draw. OUT receives
TASK-medium-expert.npz (observations, actions, rewards, terminals, timeouts) and README, which says
how good each half is. Every episode has its own seed; the last bits, and with them whole episodes,
depend on the releases of NumPy and MuJoCo.
"""

import argparse
import importlib
import importlib.metadata
import pathlib
import sys
import time
import types

import numpy as np

# What is stored in DIR/teachers, medium first. The experts are stand-ins, not D4RL's own.
NAMES = {
    "hopper": ("hopper-d4rl-medium-v2", "hopper-sb3-tqc"),
    "walker2d": ("walker2d-d4rl-medium-v2", "walker2d-sb3-tqc"),
    "halfcheetah": ("halfcheetah-d4rl-medium-v2", "halfcheetah-dope-10"),
}
AT_ONCE = 50


def load_d4rl():
    """The package's environments without the package: those files need Gymnasium alone, unbuilt."""
    folder = pathlib.Path(__file__).resolve().parents[1] / "python" / "argwhy"
    # Packages in name only: `argwhy` itself would want its compiled part.
    for name, path in (("argwhy", folder), ("argwhy.gym", folder / "gym")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    return importlib.import_module("argwhy.gym.d4rl")


class Teacher:
    """A squashed Gaussian policy over a relu network, for many observations at once."""

    def __init__(self, path):
        if not path.exists():
            raise SystemExit(f"rollout: {path} is not there; the folder wants teachers/{path.name}")
        with np.load(path) as arrays:
            if str(arrays["act"]) != "relu" or not arrays["squash"] or arrays["time_feature"]:
                raise SystemExit(f"rollout: {path.name}: only relu networks with tanh actions are known here")
            n_hidden = int(arrays["n_layers"]) - 1
            self.hidden = [(arrays[f"W{i}"].astype(float), arrays[f"b{i}"].astype(float)) for i in range(n_hidden)]
            self.mean = arrays[f"W{n_hidden}"].astype(float), arrays[f"b{n_hidden}"].astype(float)
            self.log_std = arrays["Wls"].astype(float), arrays["bls"].astype(float)
            self.log_std_range = arrays["log_std_clip"].astype(float)

    def decide(self, observations, noise):
        x = observations
        for weights, bias in self.hidden:
            x = np.maximum(x @ weights.T + bias, 0.0)
        log_std = np.clip(x @ self.log_std[0].T + self.log_std[1], *self.log_std_range)
        return np.tanh(x @ self.mean[0].T + self.mean[1] + np.exp(log_std) * noise).astype(np.float32)


class Episode:
    """What one episode has seen so far."""

    def __init__(self, env, seed):
        self.env, self.noise = env, np.random.default_rng([seed, 1])  # the environment draws from [seed]
        self.observation, _ = env.reset(seed=seed)
        self.rows, self.terminal, self.over = [], False, False

    def step(self, action):
        following, reward, self.terminal, truncated, _ = self.env.step(action)
        self.rows.append((self.observation, action, reward))
        self.observation, self.over = following, self.terminal or truncated


def run_together(envs, teacher, seeds):
    """Whole episodes, stepped side by side so that the network sees many observations a call."""
    episodes = [Episode(env, seed) for env, seed in zip(envs, seeds, strict=True)]
    n_actions = envs[0].action_space.shape[0]
    while living := [episode for episode in episodes if not episode.over]:
        noise = np.array([episode.noise.standard_normal(n_actions) for episode in living])
        for episode, action in zip(living, teacher.decide(np.array([e.observation for e in living]), noise), strict=True):
            episode.step(action)
    return episodes


def half(d4rl, task, name, teacher, n_rows, first_seed):
    """`n_rows` rows of whole episodes and a line about the policy.

    The last episode is cut and marked as timed out.
    """
    started = time.monotonic()
    envs = [d4rl.make_d4rl_env(task) for _ in range(AT_ONCE)]
    episodes = []
    while sum(len(episode.rows) for episode in episodes) < n_rows:
        seeds = range(first_seed + len(episodes), first_seed + len(episodes) + AT_ONCE)
        episodes += run_together(envs, teacher, seeds)
        print(f"rollout: {name}: {len(episodes)} episodes, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    needed = int(np.searchsorted(np.cumsum([len(episode.rows) for episode in episodes]), n_rows)) + 1
    episodes = episodes[:needed]
    rows = [row for episode in episodes for row in episode.rows]
    ends = np.cumsum([len(episode.rows) for episode in episodes]) - 1
    terminals, timeouts = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    terminals[ends] = [episode.terminal for episode in episodes]
    timeouts[ends] = ~terminals[ends]
    terminals, timeouts = terminals[:n_rows], timeouts[:n_rows]
    timeouts[-1] = not terminals[-1]
    arrays = {
        "observations": np.array([row[0] for row in rows[:n_rows]], np.float32),
        "actions": np.array([row[1] for row in rows[:n_rows]], np.float32),
        "rewards": np.array([row[2] for row in rows[:n_rows]], np.float32),
        "terminals": terminals,
        "timeouts": timeouts,
    }
    returns = np.array([sum(row[2] for row in episode.rows) for episode in episodes])  # whole, the cut one included
    lengths = np.array([len(episode.rows) for episode in episodes])
    note = (
        f"{name}: {n_rows} rows, {needed} episodes from seed {first_seed}; return {returns.mean():.1f} ± {returns.std():.1f}, "
        f"D4RL score {d4rl.d4rl_score(task, returns.mean()):.1f}, length {lengths.mean():.0f}"
    )
    return arrays, note


def main():
    parser = argparse.ArgumentParser(prog="bench/rollout.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, metavar="DIR", help="folder with teachers/NAME.npz")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the files")
    parser.add_argument("--tasks", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--rows", type=int, default=50_000, help="of each half")
    parser.add_argument("--seed", type=int, default=0, help="of the first episode")
    arguments = parser.parse_args()

    d4rl = load_d4rl()
    arguments.out.mkdir(parents=True, exist_ok=True)
    readme = arguments.out / "README"
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "gymnasium", "mujoco"))
    readme.write_text(f"{' '.join(sys.argv)}; {versions}\n")
    for task in arguments.tasks:
        path = arguments.out / f"{task}-medium-expert.npz"
        halves, notes = [], []
        for number, name in enumerate(NAMES[task]):
            teacher = Teacher(arguments.data / "teachers" / f"{name}.npz")
            arrays, note = half(d4rl, task, name, teacher, arguments.rows, arguments.seed + 100_000 * number)
            halves.append(arrays)
            notes.append(note)
        np.savez_compressed(path, **{key: np.concatenate([arrays[key] for arrays in halves]) for key in halves[0]})
        with readme.open("a") as lines:
            lines.write(f"{path.name}\n" + "".join(f"  {note}\n" for note in notes))
        print("\n".join(notes), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
