"""What the Python layer costs: `target/python-venv/bin/python bench/python.py [COMMAND] [--n N]`.

Prints one Markdown table. The package in the virtual environment and the command should come from
the same profile; for figures that matter both from a release build (`maturin develop --release`,
`cargo build --release`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from argwhy import KernelInverseOptimizer, __version__

parser = argparse.ArgumentParser()
parser.add_argument("command", nargs="?", default="target/release/argwhy")
parser.add_argument("--n", type=int, default=5000)
parser.add_argument("--runs", type=int, default=5)
args = parser.parse_args()

rng = np.random.default_rng(0)
signals = rng.normal(size=(args.n, 11)).astype(np.float32)
decisions = np.clip(np.sin(signals @ rng.normal(size=(11, 3))), -0.9, 0.9)
folder = Path(tempfile.mkdtemp())
np.savez(folder / "d.npz", signals=signals, decisions=decisions)


def fits() -> tuple[float, float, KernelInverseOptimizer]:
    """Medians of the wall time of `fit`, and of Rust's part of it from features to certificate."""
    walls, overheads = [], []
    for _ in range(args.runs):
        est = KernelInverseOptimizer(bounds=(-1, 1))
        start = time.perf_counter()
        est.fit(signals, decisions)
        walls.append(time.perf_counter() - start)
        overheads.append(walls[-1] - est.seconds_)
    return statistics.median(walls), statistics.median(overheads), est


def single(decide: object, n: int = 3000) -> float:
    """Seconds of one call, the median of many."""
    rows = [signals[i % args.n : i % args.n + 1].astype(np.float64) for i in range(n)]
    times = []
    for row in rows:
        start = time.perf_counter()
        decide(row)  # type: ignore[operator]
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def importing() -> float:
    code = "import time; a = time.perf_counter(); import argwhy; print(time.perf_counter() - a)"
    return min(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout) for _ in range(9))


wall, overhead, est = fits()
est.save(folder / "own.argwhy")
subprocess.run([args.command, "fit", folder / "d.npz", "-o", folder / "m.argwhy", "--bounds=-1,1", "-q"], check=True)
theirs = KernelInverseOptimizer.load(folder / "m.argwhy")
same = np.array_equal(est.coefficients_, theirs.coefficients_) and est.certificate_ == theirs.certificate_

python = single(est.predict)
rust = json.loads(
    subprocess.run([args.command, "bench", folder / "own.argwhy", "--json"], capture_output=True, text=True, check=True).stdout
)
# A model with a single support point decides in no time: what is left is the layer.
tiny = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals[:2], decisions[:2])
layer = single(tiny.predict)

print(f"argwhy {__version__}, N = {args.n}, {signals.shape[1]} signals, {args.runs} runs, medians\n")
print("| | |\n|---|---|")
print(f"| fit, wall | {wall:.3f} s |")
print(f"| of it outside the solver's pipeline | {1e3 * overhead:.1f} ms, {100 * overhead / wall:.2f} % |")
print(f"| one decision, `est.predict(x)` | {1e6 * python:.1f} µs |")
print(f"| one decision, Rust alone (`argwhy bench`) | {rust['single_us_p50']:.1f} µs |")
print(f"| one decision with two support points: the layer | {1e6 * layer:.2f} µs |")
print(f"| import argwhy, NumPy included | {1e3 * importing():.0f} ms |")
print(f"| coefficients and certificate of the command, bit for bit | {'the same' if same else 'DIFFERENT'} |")
