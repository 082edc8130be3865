#!/usr/bin/env python3
"""How good are the default settings, and what is tuning worth? Errors on rows nothing has seen.

    choosing.py --argwhy target/release/argwhy --data DIR [--tables DIR] [--rows 2500]
                [--only NAME,…] [--budget 300] [--out FILE.json] [--search 40]
                [--regularizations 1e-3,0.3/N]

`DIR` holds npz files with observations and actions, in folders (`d4rl/*.npz`, `rollouts/*.npz`);
`--tables` the tables that `choosing_tables.py` writes from packages of PyPI. Of every file the last
fifth of the rows used (whole episodes; of a table rows at random) is kept away from everything.
From the rest learn: the default settings, `argwhy tune` and a fit with what it chose, ridge
regression cut to the limits, and the settings in CANDIDATES. Errors are root mean squares in units
of the spread of the decisions; ± is the standard error over rows. Prints a Markdown table. Needs
NumPy.

With `--regularizations` instead: the default's model with other k beside the paper's settings.
With `--search` instead: the default `argwhy tune` beside scikit-learn's GridSearchCV over the
settings it tried (needs the package argwhy), in seconds of processors, which other work on the
machine changes less than seconds on the clock.
"""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

POLY2 = ["--features", "poly2", "--kernel", "rbf", "--trend", "none"]
CANDIDATES = {
    "matern52 + linear, raw, 1e-3": ["--kernel", "matern52", "--trend", "linear", "--features", "raw", "-k", "1e-3"],
    "matern52 + linear, raw, 1e-4": ["--kernel", "matern52", "--trend", "linear", "--features", "raw", "-k", "1e-4"],
    "matern52 + linear, raw, 1e-5": ["--kernel", "matern52", "--trend", "linear", "--features", "raw", "-k", "1e-5"],
    "matern52 + linear, raw, no z-score, 1e-4": [
        "--kernel", "matern52", "--trend", "linear", "--features", "raw", "--normalize", "none", "-k", "1e-4"
    ],
    "rbf, poly2, 1e-6 (the paper's)": [*POLY2, "-k", "1e-6"],
    "rbf, poly2, 1e-3": [*POLY2, "-k", "1e-3"],
    "rbf, poly2, 1e-4": [*POLY2, "-k", "1e-4"],
    "rbf + linear, raw, 1e-3": ["--kernel", "rbf", "--trend", "linear", "--features", "raw", "-k", "1e-3"],
    "laplace + linear, raw, 1e-4": ["--kernel", "laplace", "--trend", "linear", "--features", "raw", "-k", "1e-4"],
}


# That GridSearchCV divides rows into, as `tune` does.
PARTS = 5


def load(path, rows, seed=0):
    """Signals, decisions, limits, and the groups of rows where there are any."""
    data = np.load(path)
    if "signals" in data:
        signals, decisions = data["signals"], data["decisions"]
        order = np.random.default_rng(seed).permutation(len(signals))[:rows]
        return signals[order], decisions[order], float(data["lower"]), float(data["upper"]), None
    signals, decisions = data["observations"][:rows], data["actions"][:rows]
    ends = (data["terminals"][:rows] > 0) | (data["timeouts"][:rows] > 0)
    episodes = np.concatenate([[0], np.cumsum(ends)[:-1]])
    return signals.astype(float), decisions.astype(float), -1.0, 1.0, episodes


def split(n, episodes):
    """Rows to learn from, and the last fifth: whole episodes where there are at least five."""
    first = int(0.8 * n)
    if episodes is not None and episodes[-1] >= 4:
        first = int(np.searchsorted(episodes, episodes[first]))
    return slice(0, first), slice(first, n)


def ridge(signals, decisions, learn, test):
    mean, scale = signals[learn].mean(0), signals[learn].std(0) + 1e-7
    z = (signals - mean) / scale
    centre = decisions[learn].mean(0)
    a = z[learn]
    weights = np.linalg.solve(a.T @ a + np.eye(a.shape[1]), a.T @ (decisions[learn] - centre))
    return z[test] @ weights + centre


class Bench:
    def __init__(self, argwhy, seconds):
        self.argwhy, self.seconds = argwhy, seconds

    def run(self, *args):
        ran = subprocess.run([self.argwhy, *map(str, args)], capture_output=True, text=True)
        if ran.returncode not in (0, 1):
            raise RuntimeError(f"{args}: {ran.stderr}")
        return ran.stdout

    def decide(self, folder, options):
        """Decisions on the rows kept away, by a fit with these options."""
        model, out = folder / "m.argwhy", folder / "out.npy"
        self.run("fit", folder / "learn.npz", "-o", model, "-q", "--holdout", "0", *options)
        self.run("predict", model, folder / "test.npz", "-o", out, "-q")
        return np.load(out)

    def table(self, path, rows):
        signals, decisions, lower, upper, episodes = load(path, rows)
        learn, test = split(len(signals), episodes)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            arrays = {"signals": signals[learn], "decisions": decisions[learn]}
            groups = []
            if episodes is not None and episodes[learn][-1] >= 4:
                ends = np.append(np.diff(episodes[learn]) > 0, True)
                arrays["timeouts"] = ends
            np.savez(folder / "learn.npz", **arrays)
            np.savez(folder / "test.npz", signals=signals[test])
            limits = [f"--bounds={lower!r},{upper!r}", *groups]
            decided = {"default": self.decide(folder, limits)}
            begun = time.monotonic()
            told = self.run("tune", folder / "learn.npz", "-o", folder / "t", "-q", "--json", "--budget", f"{self.seconds}s", *limits)
            seconds = time.monotonic() - begun
            best = json.loads(told)["best"]
            decided["tuned"] = self.decide(folder, ["--config", folder / "t" / "best.toml"])
            decided["ridge"] = np.clip(ridge(signals, decisions, learn, test), lower, upper)
            for words, options in CANDIDATES.items():
                decided[words] = self.decide(folder, limits + options)
        spread = decisions[test].std(0).mean()
        squares = {words: ((out - decisions[test]) ** 2).mean(1) / spread**2 for words, out in decided.items()}
        errors = {}
        for words, own in squares.items():
            mean = own.mean()
            errors[words] = (float(np.sqrt(mean)), float(own.std() / np.sqrt(len(own)) / (2 * np.sqrt(mean))))
        ahead = squares["ridge"] - squares["tuned"]
        return {
            "name": path.stem,
            "rows": int(len(signals)),
            "signals": int(signals.shape[1]),
            "errors": errors,
            "seconds": seconds,
            "best": {k: v for k, v in best.items() if k not in ("error", "r2", "regret")},
            # Of the difference of squared errors, row by row.
            "tuned_worse_than_ridge": bool(ahead.mean() < -ahead.std() / np.sqrt(len(ahead))),
        }


def regularizations(argwhy, paths, rows, chosen):
    """The default's model with each k, and the paper's settings, as a Markdown table."""
    bench, lines, all_errors = Bench(argwhy, 0), [], []
    for path in paths:
        signals, decisions, lower, upper, episodes = load(path, rows)
        learn, test = split(len(signals), episodes)
        count = len(signals[learn])
        spread = decisions[test].std(0).mean()
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            np.savez(folder / "learn.npz", signals=signals[learn], decisions=decisions[learn])
            np.savez(folder / "test.npz", signals=signals[test])

            def error(*options):
                out = bench.decide(folder, [f"--bounds={lower!r},{upper!r}", *options])
                return float(np.sqrt(((out - decisions[test]) ** 2).mean()) / spread)

            value = [k if "/" not in k else repr(float(k.split("/")[0]) / count) for k in chosen]
            errors = [error(*POLY2, "-k", "1e-6"), error(), *(error("-k", k) for k in value)]
        all_errors.append(errors)
        lines.append(f"| {path.stem} | {count} | " + " | ".join(f"{e:.3f}" for e in errors) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    names = ["data", "learned from", "the paper's", "default", *chosen]
    table = np.array(all_errors)
    ratios = np.exp(np.log(table / table[:, :1]).mean(0))
    lines.append("| mean | | " + " | ".join(f"{e:.3f}" for e in table.mean(0)) + " |")
    lines.append("| geometric mean over the paper's | | " + " | ".join(f"{e:.3f}" for e in ratios) + " |")
    return "\n".join(["| " + " | ".join(names) + " |", "|---" * len(names) + "|", *lines])


def default_search(argwhy, path, rows, sample):
    """The default `tune`, and GridSearchCV over the settings it tried, in seconds of processors.

    GridSearchCV would fit each setting on each of five parts: hours. Of these fits `sample` drawn
    at random are made, and their mean stands for all.
    """
    from argwhy import KernelInverseOptimizer

    signals, decisions, lower, upper, episodes = load(path, rows)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        arrays = {"signals": signals, "decisions": decisions}
        if episodes is not None:
            arrays["timeouts"] = np.append(np.diff(episodes) > 0, True)
        np.savez(folder / "d.npz", **arrays)
        args = [argwhy, "tune", folder / "d.npz", f"--bounds={lower},{upper}", "-o", folder / "t", "--json", "-q", "--budget", "1h"]
        begun = time.monotonic()
        told = json.loads(subprocess.run(list(map(str, args)), capture_output=True, text=True, check=True).stdout)
        wall = time.monotonic() - begun
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    settings = {json.dumps(trial["settings"], sort_keys=True) for trial in told["trials"] if trial["round"] == 0}
    rng = np.random.default_rng(0)
    drawn = rng.choice(sorted(settings), size=min(sample, len(settings)), replace=False)
    learn = np.arange(len(signals)) % PARTS != 0
    seconds = []
    for text in drawn:
        parameters = {name.replace("-", "_"): value for name, value in json.loads(text).items()}
        estimator = KernelInverseOptimizer(bounds=(lower, upper), **parameters)
        begun = time.process_time()
        estimator.fit(signals[learn], decisions[learn])
        estimator.predict(signals[~learn])
        seconds.append(time.process_time() - begun)
        print(f"{seconds[-1]:.2f} s: {text}", file=sys.stderr, flush=True)
    theirs = float(np.mean(seconds)) * len(settings) * PARTS
    ours = used.ru_utime + used.ru_stime
    error = float(np.std(seconds) / np.sqrt(len(seconds)) / np.mean(seconds))
    return {
        "name": path.stem,
        "rows": len(signals),
        "signals": signals.shape[1],
        "settings": len(settings),
        "trials": len(told["trials"]),
        "tune": ours,
        "tune_wall": wall,
        "best": told["best"],
        "GridSearchCV": theirs,
        "relative_error_of_that": error,
        "times_faster": theirs / ours,
    }


def page(results):
    names = list(results[0]["errors"])
    lines = ["| data | rows × signals | " + " | ".join(names) + " | tune, s |", "|---" * (len(names) + 3) + "|"]
    for result in results:
        cells = [f"{e:.3f} ± {s:.3f}" for e, s in result["errors"].values()]
        size = f"{result['rows']} × {result['signals']}"
        lines.append(f"| {result['name']} | {size} | " + " | ".join(cells) + f" | {result['seconds']:.0f} |")
    means = [np.mean([result["errors"][name][0] for result in results]) for name in names]
    logs = [np.exp(np.mean([np.log(r["errors"][name][0] / r["errors"]["default"][0]) for r in results])) for name in names]
    lines.append("| mean | | " + " | ".join(f"{mean:.3f}" for mean in means) + " | |")
    lines.append("| geometric mean over the default | | " + " | ".join(f"{ratio:.3f}" for ratio in logs) + " | |")
    better = sum(r["errors"]["tuned"][0] < r["errors"]["default"][0] for r in results)
    worse = [r["name"] for r in results if r["tuned_worse_than_ridge"]]
    lines.append(f"\nTuned better than the default: {better} of {len(results)}. Worse than ridge by more than a standard error: {worse or 'none'}.")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--argwhy", required=True)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--tables", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--budget", type=int, default=300, help="seconds for one search")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--regularizations", type=lambda text: text.split(","), metavar="K,K/N", help="the default's model with each, such as 1e-3,0.3/N")
    parser.add_argument("--search", type=int, metavar="FITS", help="tune beside GridSearchCV, by so many of its fits")
    args = parser.parse_args()
    paths = sorted(args.data.glob("*/*.npz")) if args.data else []
    paths = [path for path in paths if path.parent.name in ("d4rl", "rollouts")]
    paths += sorted(args.tables.glob("*.npz")) if args.tables else []
    paths = [path for path in paths if args.only is None or path.stem in args.only]
    if args.regularizations:
        print(regularizations(args.argwhy, paths, args.rows, args.regularizations))
        return
    if args.search:
        print(json.dumps([default_search(args.argwhy, path, args.rows, args.search) for path in paths], indent=1))
        return
    results = []
    for path in paths:
        results.append(Bench(args.argwhy, args.budget).table(path, args.rows))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
        if args.out:
            args.out.write_text(json.dumps(results, indent=1))
    print(page(results))


if __name__ == "__main__":
    main()
