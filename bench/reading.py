"""How long 1,000,000 rows take to read, and how much memory: argwhy beside pandas and polars.

    python bench/reading.py FOLDER [--rows 1000000] [--repeat 3]

It needs Linux, numpy, h5py, pyarrow, pandas, polars and argwhy.

Makes 17 columns of float32 (14 signals, 3 decisions) as gzipped HDF5, csv and parquet in FOLDER,
reads each in a process of its own into arrays of float64, row by row, and prints a table: the
quickest of the repetitions, with the processor time of all its threads, and the peak of the process
less what it took after its imports, as a multiple of the arrays kept. The sums of all values must
agree.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

SIGNALS, DECISIONS = 14, 3

CHILD = """
import json, sys, time
reader, path = sys.argv[1:3]
import numpy as np
if reader == "argwhy":
    from argwhy import datasets
elif reader == "pandas":
    import pandas
elif reader == "polars":
    import polars
elif reader == "h5py":
    import h5py


def read():
    if reader == "argwhy":
        data = datasets.read(path)
        return data.signals, data.decisions
    if reader == "h5py":
        with h5py.File(path) as file:
            return file["observations"][:].astype(np.float64), file["actions"][:].astype(np.float64)
    if reader == "pandas":
        frame = pandas.read_csv(path) if path.endswith("csv") else pandas.read_parquet(path)
        names = list(frame.columns)
        pick = lambda start: frame[[n for n in names if n.startswith(start)]].to_numpy(np.float64)
    else:
        frame = polars.read_csv(path) if path.endswith("csv") else polars.read_parquet(path)
        names = frame.columns
        of = lambda start: frame.select([n for n in names if n.startswith(start)])
        pick = lambda start: of(start).to_numpy().astype(np.float64)
    return np.ascontiguousarray(pick("signals_")), np.ascontiguousarray(pick("decisions_"))


def memory(name):
    # Not getrusage: what a process took before it became this one counts there.
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


before, start, cpu = memory("VmRSS"), time.perf_counter(), time.process_time()
signals, decisions = read()
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
kept = signals.nbytes + decisions.nbytes
peak = (memory("VmHWM") - before) / kept
total = float(signals.sum() + decisions.sum())
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, "sum": total}))
"""


def make(folder: Path, rows: int) -> dict[str, Path]:
    """The same numbers in three formats."""
    import h5py
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    paths = {"hdf5": folder / "rows.hdf5", "csv": folder / "rows.csv", "parquet": folder / "rows.parquet"}
    if all(path.exists() for path in paths.values()):
        return paths
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, SIGNALS + DECISIONS)).astype(np.float32)
    with h5py.File(paths["hdf5"], "w") as file:
        file.create_dataset("observations", data=values[:, :SIGNALS], compression="gzip")
        file.create_dataset("actions", data=values[:, SIGNALS:], compression="gzip")
    names = [f"signals_{i}" for i in range(SIGNALS)] + [f"decisions_{i}" for i in range(DECISIONS)]
    table = pa.table({name: values[:, i] for i, name in enumerate(names)})
    pa.parquet.write_table(table, paths["parquet"])
    pa.csv.write_csv(table, paths["csv"])
    return paths


def measured(reader: str, path: Path, repeat: int) -> dict[str, float]:
    """The quickest of some runs, each a process of its own."""
    runs = []
    for _ in range(repeat):
        done = subprocess.run([sys.executable, "-c", CHILD, reader, str(path)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{reader} on {path}: {done.stderr}")
        runs.append(json.loads(done.stdout))
    return min(runs, key=lambda run: run["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    paths = make(args.folder, args.rows)
    print("| format | reader | seconds | CPU seconds | peak, times the arrays |\n|---|---|---|---|---|")
    for name, path in paths.items():
        sums = []
        for reader in ["argwhy"] + (["h5py"] if name == "hdf5" else ["pandas", "polars"]):
            run = measured(reader, path, args.repeat)
            sums.append(run["sum"])
            print(f"| {name} | {reader} | {run['seconds']:.2f} | {run['cpu']:.2f} | {run['peak']:.2f} |", flush=True)
        if max(sums) - min(sums) > 1e-3:
            raise SystemExit(f"{name}: the readers disagree, {sums}")


if __name__ == "__main__":
    main()
