"""Does a fit keep its memory limit, and a refused one? Random fits, peaks measured from outside.

    python bench/memory.py --argwhy target/release/argwhy --runs 1000 --seed 0
    python bench/memory.py --argwhy target/release/argwhy --case theta-of-many-rows

Draws a reader (npz stored or deflated, a folder of npy, csv, HDF5 in one piece, in chunks, with
gzip and shuffle, in one chunk), sizes, rows, a solver, decision sets, threads and a limit near the
least that is possible; runs `argwhy fit` with it; reads the peak of the process's resident memory
from the kernel (wait4); and lists every run whose peak was above its limit, or whose exit status
was neither 0, 1 nor a refusal that names memory. Refused runs have to keep the limit too, down to
what the program takes when it does nothing (--floor). A case of CASES is run by its name, and
says what it took.

Needs Python 3.10, NumPy and, for HDF5, h5py (without it those readers are left out and the script
says so). Linux. Exit status: 0 where nothing was violated, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

MIB = 1 << 20
NPY = ["npz", "npz-deflated", "folder", "npz-fortran"]
TEXT = ["csv"]
HDF5 = ["hdf5", "hdf5-chunks", "hdf5-gzip", "hdf5-shuffle", "hdf5-one-chunk", "hdf5-narrow-chunks"]
SOLVERS = ["newton", "sso", "theta", "primal", "path"]
SETS = ["box", "polyhedra", "polyhedra-each"]


@dataclass
class Configuration:
    """One fit."""

    reader: str
    n: int
    signal_dim: int
    decision_dim: int
    rows: str | None
    solver: str
    sets: str
    threads: int
    precision: str
    factor: float
    """The limit, as a multiple of the least that the command names."""
    seed: int
    set_rows: int | None = None
    """Rows of M, for decisions of a Θ that is not I; both drawn where this is none."""


CASES = {
    # Took 67 MiB of 55.5: every thread kept what it had freed, and copies of factors of products.
    "sso-on-many-threads": Configuration("folder", 2063, 5, 4, None, "sso", "box", 14, "f32", 1.5, 337),
    # Took 44 MiB of 33: rows that do not fit were looked for by a fit on every thread at once.
    "left-out-on-many-threads": Configuration("npz", 190, 15, 4, None, "newton", "box", 24, "f32", 1.0, 0),
    # Every step of learning theta works with sets of its own.
    "theta-of-many-rows": Configuration("npz", 3000, 6, 8, None, "theta", "polyhedra-each", 2, "f32", 1.0, 0, 40),
}


def draw(seed: int, readers: list[str], largest: int, threads: int) -> Configuration:
    """A configuration that depends on the seed alone."""
    rng = np.random.default_rng(seed)
    pick = lambda options: options[int(rng.integers(len(options)))]  # noqa: E731
    solver, sets, reader = pick(SOLVERS), pick(SETS), pick(readers)
    n = int(np.exp(rng.uniform(np.log(50), np.log(largest))))
    if solver == "theta" or sets == "polyhedra-each":
        n = min(n, 1500)
    if solver == "primal":
        n *= 8
    if reader == "csv":
        n = min(n, 20000)
    rows = None
    if rng.random() < 0.5:
        start = int(rng.integers(0, n // 2 + 1))
        end = int(rng.integers(start + 1, n + 1))
        rows = f"{start}:{end}"
        if start > 20 and rng.random() < 0.4:
            rows += f",{start // 4}:{start // 2}"
    return Configuration(
        reader=reader,
        n=n,
        signal_dim=int(rng.integers(1, 18)),
        decision_dim=int(rng.integers(1, 5)),
        rows=rows,
        solver=solver,
        sets=sets,
        threads=int(2 ** rng.uniform(0, np.log2(threads))),
        precision=pick(["f32", "f32", "f64"]),
        factor=float(pick([0.5, 0.9, 0.99, 1.0, 1.0, 1.02, 1.1, 1.5])),
        seed=seed,
    )


def with_theta(c: Configuration) -> dict[str, np.ndarray]:
    """Decisions that minimise uᵀΘu − 2gᵀu for a Θ that is not I, with a few g for all: the first
    row of every M is what holds its decision back."""
    rng = np.random.default_rng(c.seed + 1)
    kinds = rng.standard_normal((20, c.signal_dim))
    of = rng.integers(20, size=c.n)
    wanted = (kinds @ rng.standard_normal((c.signal_dim, c.decision_dim)))[of]
    root = rng.standard_normal((c.decision_dim, c.decision_dim))
    theta = np.eye(c.decision_dim) + root @ root.T
    decisions = np.clip(0.3 * rng.standard_normal((c.n, c.decision_dim)), -0.9, 0.9)
    matrix = rng.standard_normal((c.n, c.set_rows, c.decision_dim))
    matrix[:, 0] = wanted - decisions @ theta
    slack = rng.random((c.n, c.set_rows))
    slack[:, 0] = 0
    bound = np.einsum("nmj,nj->nm", matrix, decisions) + slack
    return {"signals": kinds[of], "decisions": decisions, "M": matrix, "W": bound}


def arrays(c: Configuration) -> dict[str, np.ndarray]:
    """Signals, decisions inside their sets, and the sets where they come with the data."""
    if c.set_rows:
        return with_theta(c)
    rng = np.random.default_rng(c.seed + 1)
    signals = rng.standard_normal((c.n, c.signal_dim)).astype(np.float32)
    mixing = rng.standard_normal((c.signal_dim, c.decision_dim))
    decisions = np.clip(signals @ mixing / np.sqrt(c.signal_dim), -1, 1).astype(np.float32)
    found = {"signals": signals, "decisions": decisions}
    if c.sets != "box":
        m = int(rng.integers(2, 9))
        shape = (c.n, m, c.decision_dim) if c.sets == "polyhedra-each" else (m, c.decision_dim)
        matrix = rng.standard_normal(shape).astype(np.float32)
        used = np.einsum("nmj,nj->nm", np.broadcast_to(matrix, (c.n, m, c.decision_dim)), decisions)
        found["M"] = matrix
        # Some limits hold, but for what a csv file rounds away.
        found["W"] = (used + np.maximum(0, rng.standard_normal((c.n, m)) + 0.5) + 1e-5).astype(np.float32)
    return found


def write(c: Configuration, folder: Path) -> Path:
    """The data in the configuration's format."""
    found = arrays(c)
    if c.reader == "npz":
        path = folder / "data.npz"
        np.savez(path, **found)
    elif c.reader == "npz-deflated":
        path = folder / "data.npz"
        np.savez_compressed(path, **found)
    elif c.reader == "npz-fortran":
        path = folder / "data.npz"
        np.savez(path, **{key: np.asfortranarray(values) for key, values in found.items()})
    elif c.reader == "folder":
        path = folder / "data"
        path.mkdir()
        for key, values in found.items():
            np.save(path / f"{key}.npy", values)
    elif c.reader == "csv":
        path = folder / "data.csv"
        if "M" in found and found["M"].ndim == 2:
            found["M"] = np.broadcast_to(found["M"], (c.n, *found["M"].shape))
        names, columns = [], []
        for key, values in found.items():
            flat = values.reshape(c.n, -1)
            columns.append(flat)
            if key == "M":
                names += [f"M_{i}_{j}" for i in range(values.shape[1]) for j in range(values.shape[2])]
            else:
                names += [f"{key}_{j}" for j in range(flat.shape[1])]
        np.savetxt(path, np.hstack(columns), fmt="%.7g", delimiter=",", header=",".join(names), comments="")
    else:
        path = folder / "data.hdf5"
        with h5py.File(path, "w") as file:
            for key, values in found.items():
                file.create_dataset(key, data=values, **layout(c.reader, values.shape))
    return path


def layout(reader: str, shape: tuple[int, ...]) -> dict[str, object]:
    """How HDF5 stores an array."""
    some = (max(1, min(shape[0], 1000)), *shape[1:])
    narrow = (max(1, min(shape[0], 333)), *(max(1, (size + 1) // 2) for size in shape[1:]))
    return {
        "hdf5": {},
        "hdf5-chunks": {"chunks": some},
        "hdf5-gzip": {"chunks": some, "compression": "gzip"},
        "hdf5-shuffle": {"chunks": some, "compression": "gzip", "shuffle": True},
        "hdf5-one-chunk": {"chunks": shape, "compression": "gzip", "shuffle": True},
        "hdf5-narrow-chunks": {"chunks": narrow, "compression": "gzip", "shuffle": True},
    }[reader]


def command(c: Configuration, argwhy: str, data: Path, model: Path, memory: str) -> list[str]:
    """The fit as it is typed."""
    parts = [argwhy, "fit", str(data), "-o", str(model), "--bounds=-1,1", "--quiet", "--infeasible", "clip"]
    parts += ["--memory", memory, "--threads", str(c.threads), "--max-iterations", "6"]
    parts += ["--rows", c.rows] if c.rows else []
    parts += [] if c.sets == "box" else ["--constraints"]
    parts += {
        "newton": ["--precision", c.precision],
        "sso": ["--solver", "sso", "--precision", c.precision],
        "theta": ["--theta", "learn", "-k", "1e-3"],
        "primal": ["--kernel", "linear", "--primal"],
        "path": ["--path", "1e-3,1e-5"],
    }[c.solver]
    return parts


@dataclass
class Run:
    """How a command went."""

    status: int
    peak: int
    errors: str


def run(parts: list[str], seconds: float) -> Run:
    """Runs a command, with its peak of resident memory as the kernel counted it."""
    with tempfile.TemporaryFile() as errors:
        # A child begins as a copy of this process, whose memory would count: a small one starts it.
        starter = [sys.executable, "-c", STARTER, str(seconds), *parts]
        done = subprocess.run(starter, stdout=subprocess.PIPE, stderr=errors, check=False)
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    status, peak = (int(word) for word in done.stdout.split()[-2:])
    return Run(status, peak, text)


# posix_spawn lets the child begin without a copy of its parent; without NumPy the parent is small
# anyway.
STARTER = """
import os, signal, sys
seconds, parts = float(sys.argv[1]), sys.argv[2:]
silence = (os.POSIX_SPAWN_DUP2, os.open(os.devnull, os.O_WRONLY), 1)
pid = os.posix_spawn(parts[0], parts, os.environ, file_actions=[silence])
signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
signal.setitimer(signal.ITIMER_REAL, seconds)
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""

SIZES = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}


def least(errors: str) -> int | None:
    """The limit that a refusal says would do, in bytes."""
    found = re.search(r"([\d.]+)\s*(KiB|MiB|GiB|B)\b[^\d]*(?:is the least|would do|or more)", errors) or re.search(
        r"(?:at least|least|needs)\D*([\d.]+)\s*(KiB|MiB|GiB|B)\b", errors
    )
    return None if found is None else int(float(found[1]) * SIZES[found[2]])


def judge(c: Configuration, argwhy: str, floor: int, seconds: float) -> dict[str, object]:
    """What is wrong with a configuration, if anything, and what was measured."""
    with tempfile.TemporaryDirectory(prefix="argwhy-memory-") as name:
        folder = Path(name)
        data, model = write(c, folder), folder / "m.argwhy"
        wrong = []

        def check(limit: int) -> Run:
            done = run(command(c, argwhy, data, model, str(limit)), seconds)
            if done.peak > max(limit, floor):
                wrong.append(f"peak {done.peak / MIB:.1f} MiB of {limit / MIB:.1f} MiB, exit {done.status}")
            if done.status == 2 and "memory" not in done.errors:
                wrong.append(f"refused for another reason: {done.errors.strip()[-300:]}")
            if done.status not in (0, 1, 2, -9):
                wrong.append(f"exit status {done.status}: {done.errors.strip()[-300:]}")
            left = [f.name for f in folder.iterdir() if f.name.startswith(".")]
            if left:
                wrong.append(f"files left: {left}")
            return done

        # A limit that nothing fits into names one that works.
        refused = check(1)
        named = least(refused.errors)
        if refused.status != 2 or named is None:
            wrong.append(f"1 byte: exit {refused.status}, {refused.errors.strip()[-300:]}")
            named = 64 * MIB
        limit = int(named * c.factor)
        done = check(limit)
        if c.factor >= 1 and done.status == 2:
            # Constraints are known exactly only once they are read: then it has to name the limit
            # anew, and keep it.
            again = least(done.errors)
            if again:
                limit, done = again, check(again)
            if done.status == 2:
                wrong.append(f"the least limit it names is refused: {done.errors.strip()[-300:]}")
        return {
            "wrong": wrong,
            "status": done.status,
            "peak": done.peak,
            "limit": limit,
            "least": named,
            "refused_peak": refused.peak,
            **asdict(c),
        }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--argwhy", default="target/release/argwhy", help="the command (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=100, help="configurations (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the first configuration (default: %(default)s)")
    parser.add_argument("--largest", type=int, default=6000, help="rows at most, times 8 for --primal (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=64, help="threads at most (default: %(default)s)")
    parser.add_argument("--floor", type=int, default=20, help="MiB that a refused run may always take (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="for one fit, which is then ended (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time (default: %(default)s)")
    parser.add_argument("--case", choices=CASES, help="one configuration, by its name")
    parser.add_argument("--log", type=Path, help="a file for one JSON object a configuration")
    args = parser.parse_args()
    readers = NPY + TEXT + (HDF5 if h5py else [])
    if not h5py:
        print("h5py is not installed: no HDF5 files", file=sys.stderr)
    if args.case:
        drawn = [CASES[args.case]]
    else:
        seeds = range(args.seed, args.seed + args.runs)
        drawn = [draw(seed, readers, args.largest, args.threads) for seed in seeds]
    violated, counts, begun = 0, {}, time.time()
    log = args.log.open("a") if args.log else None
    argwhy = os.path.abspath(args.argwhy)
    with ThreadPoolExecutor(args.jobs) as pool:
        judged = pool.map(lambda c: judge(c, argwhy, args.floor * MIB, args.seconds), drawn)
        for c, result in zip(drawn, judged):
            counts[result["status"]] = counts.get(result["status"], 0) + 1
            if log:
                print(json.dumps(result), file=log, flush=True)
            if args.case:
                print(f"peak {result['peak'] / MIB:.1f} of {result['limit'] / MIB:.1f} MiB", flush=True)
            if result["wrong"]:
                violated += 1
                print(f"seed {c.seed}: {result['wrong']}\n  {c}", flush=True)
    print(f"{len(drawn)} configurations, {violated} violations, by exit status {counts}, {time.time() - begun:.0f} s")
    return 1 if violated else 0


if __name__ == "__main__":
    sys.exit(main())
