#!/usr/bin/env python3
"""What a GPU is worth: whole fits at N = 100,000 and more, and decisions a second, in Markdown.

    python bench/gpu.py --argwhy target/release/argwhy --large DIR [--million FILE.npz]

DIR holds TASK-medium-expert.npz of hopper, walker2d and halfcheetah (`bench/rollout.py`), FILE.npz
a million rows rolled out likewise (`bench/rollout.py --rows 500000`). Needs an NVIDIA GPU, its
driver and NumPy. Fits have the paper's settings, and those that `fit` has by itself. Each runs
twice: the driver compiles the kernels in the first and keeps what it compiled. `bench/gpu_peers.py`
solves kernel ridge by GPyTorch beside it.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

# The paper's model and its k for hopper.
PAPER = ["--features", "poly2", "--kernel", "rbf", "--trend", "none", "-k", "1e-6"]
# What was hard: a kernel so wide that it knows what the trend beside it knows, and a small k.
WIDE = ["--kernel", "matern52", "--trend", "linear", "-k", "1e-6", "--gamma"]
COMMON = ["--bounds=-1,1", "--memory", "16GiB", "--json", "--quiet"]
TASKS = ("hopper", "walker2d", "halfcheetah")
N_SIGNALS = 1_000_000


def run(command):
    """stdout of a command that must succeed, and its seconds."""
    print("$ " + " ".join(map(str, command)), file=sys.stderr, flush=True)
    start = time.monotonic()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"gpu: {done.stderr.strip()}")
    return done.stdout, time.monotonic() - start


def fit(argwhy, data, folder, settings=()):
    """The second of two fits: its answer, and its seconds from start to end."""
    command = [argwhy, "fit", data, "-o", folder / "fit.argwhy", "--device", "cuda", *COMMON, *settings]
    run(command)
    answer, seconds = run(command)
    return json.loads(answer), seconds


def fits(large, million):
    """(data, what is said of the settings, settings) of every fit."""
    path = {task: large / f"{task}-medium-expert.npz" for task in TASKS}
    missing = [str(file) for file in path.values() if not file.exists()]
    if missing:
        raise SystemExit(f"gpu: {', '.join(missing)} not found: make them by bench/rollout.py")
    for task in ("hopper", "walker2d"):
        yield path[task], "paper's", PAPER
    if million:
        yield million, "paper's", [*PAPER, "--device-memory", "40GiB"]
    for task in TASKS:
        yield path[task], "default", []
    n_signals = 11
    for width in (1, 0.3):
        yield path["hopper"], f"k = 1e-6, γ = {width}/d", [*WIDE, str(width / n_signals)]


def fit_row(name, settings, answer, seconds):
    return [
        name,
        settings,
        f"{answer['n_samples']:,}",
        answer["feature_dim"],
        answer["status"],
        f"{answer['relative_gap']:.1e}",
        answer["kernel_products"],
        f"{answer['seconds']:.2f}",
        f"{seconds:.2f}",
        f"{answer['peak_memory_bytes'] / 2**20:.0f}",
    ]


def decisions(argwhy, data, folder):
    """Decisions a second of a model of 5000 samples, features and projections included."""
    model, signals = folder / "small.argwhy", folder / "signals.npy"
    run([argwhy, "fit", data, "-o", model, "--rows", "0:5000", "--device", "cpu", *COMMON, *PAPER])
    with np.load(data) as arrays:
        few = arrays["observations"]
    rows = {}
    for device in ("cuda", "cpu"):
        seconds = {}
        for n in (1000, N_SIGNALS):
            np.save(signals, np.resize(few, (n, few.shape[1])))
            command = [argwhy, "predict", model, signals, "-o", folder / f"{device}.npy", "--device", device, "--quiet"]
            seconds[n] = min(run(command)[1] for _ in range(2))
        rows[device] = (N_SIGNALS - 1000) / (seconds[N_SIGNALS] - seconds[1000])
    by_gpu, by_host = (np.load(folder / f"{device}.npy") for device in ("cuda", "cpu"))
    return rows, abs(by_gpu - by_host).max(), int((abs(by_gpu) > 1).sum())


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    print("\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n")


def main():
    parser = argparse.ArgumentParser(prog="bench/gpu.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--argwhy", type=pathlib.Path, required=True, help="the binary")
    parser.add_argument("--large", type=pathlib.Path, required=True, metavar="DIR", help="folder with TASK-medium-expert.npz")
    parser.add_argument("--million", type=pathlib.Path, metavar="FILE", help="a million rows")
    arguments = parser.parse_args()

    argwhy, hopper = arguments.argwhy.resolve(), arguments.large / "hopper-medium-expert.npz"
    checks = json.loads(run([argwhy, "doctor", "--json"])[0])
    gpu = next(check["found"] for check in checks["checks"] if check["name"] == "gpu")
    print(f"argwhy {checks['version']}; {gpu}\n")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for path, name, settings in fits(arguments.large, arguments.million):
            answer, seconds = fit(argwhy, path, folder, settings)
            rows.append(fit_row(path.stem, name, answer, seconds))
        table(["data", "settings", "N", "features", "status", "relative gap", "products", "fit, s", "file to model, s", "host MiB"], rows)
        rates, off, outside = decisions(argwhy, hopper, folder)
        print(f"decisions a second, N = 5000, a million signals: {rates['cuda']:.0f} on the GPU, {rates['cpu']:.0f} on the CPU; ")
        print(f"they differ by {off:.1e} at most, and {outside} lie outside their limits\n")


if __name__ == "__main__":
    sys.exit(main())
