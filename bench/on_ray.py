#!/usr/bin/env python3
"""What Ray costs and what a simulation is worth, on this machine, in Markdown.

    python bench/on_ray.py [--rows 50000] [--features 78] [--products 3] [--fit 6000]
                           [--spread 20000]

Needs `pip install 'argwhy[ray]'` with a release build. Rows are random, around 50 centres.

* Bits: a whole fit on 1, 2 and 4 workers and on 2 of which one is killed, beside one process.
* Overhead: products of a fit of --rows with two workers of one core beside one process with two
  threads, in turn so that both meet the same neighbours; wall time, and processor time of all
  processes involved, which a busy machine changes less.
* A killed worker: one product during which a worker is killed, beside those before.
* Preconditioner: a fit of --spread rows whose preconditioner 1, 2 and 4 workers of one core keep;
  wall and processor time of what is asked of them beside its prediction, from what one thread here
  needs for the same panels; and the same bits, with a worker killed too.
* Simulation: products of --rows on 1, 2 and 4 workers of one core beside their prediction. With
  fewer cores than workers, the prediction shares the cores out.
"""

import argparse
import os
import signal
import statistics
import threading
import time

os.environ.setdefault("RAY_AUTH_MODE", "token")
os.environ.setdefault("RAY_worker_niceness", "0")

import numpy as np
import ray

from argwhy import KernelInverseOptimizer, _argwhy
from argwhy.ray import Cluster, simulate
from argwhy.ray.costs import CORES, Machine, Network, Sizes, by_workers


def data(n_rows, n_features, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(50, n_features))
    signals = centres[rng.integers(50, size=n_rows)] + 0.5 * rng.normal(size=(n_rows, n_features))
    wish = np.tanh(signals @ rng.normal(size=(n_features, 3)) / n_features**0.5)
    return signals, np.clip(1.5 * wish, -1, 1)


class Recorder:
    """A cluster that keeps what it was told to open and multiply, to do it again by hand."""

    wants_features = True

    def __init__(self):
        self.job = None

    def connect(self):
        return 1

    def open(self, job, rows, features):
        self.job, self.rows, self.features = job, rows, features
        raise RuntimeError("that is all that is wanted")


def recorded(signals, decisions):
    """The job of a fit, without the fit."""
    recorder = Recorder()
    try:
        settings = {"bounds": (-1, 1), "features": "raw", "kernel": "rbf", "trend": "none", "operator": "tiled", "memory": "4GiB"}
        KernelInverseOptimizer(**settings, backend=recorder).fit(signals, decisions)
    except ValueError:
        pass
    return recorder


def processor_seconds(pids):
    """Of these processes and this one, so far."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for pid in {*pids, os.getpid()}:
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except FileNotFoundError:
            continue  # it was killed
        total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def timed(work, pids=()):
    began, before = time.monotonic(), processor_seconds(pids)
    work()
    return time.monotonic() - began, processor_seconds(pids) - before


def here(shard, v):
    """The same product in this process."""
    total = np.zeros_like(v)
    for part in range(shard.n_parts):
        _argwhy.add_part(total, *shard.part(part, False, v))
    return total


def overhead(recorder, products):
    shard = _argwhy.Shard(recorder.job, recorder.features, threads=2)
    v = np.random.default_rng(1).normal(size=(3, shard.n_samples))
    rows = {"one process, two threads": [], "two workers of one core": []}
    with Cluster(workers=2, cpus=1) as cluster:
        cluster.connect()
        matrix = cluster.open(recorder.job, recorder.rows, recorder.features)
        same = np.array_equal(cluster.product(matrix, False, v), here(shard, v))
        for _ in range(products):
            rows["one process, two threads"].append(timed(lambda: here(shard, v)))
            pids = cluster.pids()
            rows["two workers of one core"].append(timed(lambda: cluster.product(matrix, False, v), pids))
        usual = statistics.median(wall for wall, _ in rows["two workers of one core"])
        victim = cluster.pids()[0]
        threading.Timer(usual / 2, os.kill, (victim, signal.SIGKILL)).start()
        killed, _ = timed(lambda: cluster.product(matrix, False, v))
        lost = cluster.status()["lost"]
    print(f"\n## Overhead, N = {shard.n_samples:,}\n\nSame bits: {same}. Median of {products}, in turn.\n")
    print("| | wall s | processor s |\n|---|---|---|")
    for name, values in rows.items():
        wall, processor = (statistics.median(column) for column in zip(*values, strict=True))
        print(f"| {name} | {wall:.2f} | {processor:.2f} |")
    print(f"\nA worker killed in the middle ({lost} lost): {killed:.2f} s instead of {usual:.2f}.")


def simulation(recorder, products):
    n_samples, n_features = recorder.features.shape
    v = np.random.default_rng(1).normal(size=(3, n_samples))
    cores = os.cpu_count() or 1
    print(f"\n## Simulation, N = {n_samples:,}, {n_features} features, {cores} cores\n")
    print("| workers of one core | predicted s | measured s, median |\n|---|---|---|")
    for workers in (1, 2, 4):
        with Cluster(workers=workers, cpus=1) as cluster:
            cluster.connect()
            matrix = cluster.open(recorder.job, recorder.rows, recorder.features)
            cluster.product(matrix, False, v)
            measured = statistics.median(timed(lambda: cluster.product(matrix, False, v))[0] for _ in range(products))
        predicted = simulate(n_samples, n_features, 3, workers=min(workers, cores), cores=1)
        print(f"| {workers} | {predicted.product_seconds:.2f} | {measured:.2f} |", flush=True)


class Watch:
    """Times what is asked of a cluster's panels, and keeps the rounds."""

    def __init__(self, cluster):
        self.seconds, self.processor = dict.fromkeys(("append", "gram", "gather", "project", "expand"), 0.0), 0.0
        self.calls, self.rounds, self.signs, self.sums = dict.fromkeys(self.seconds, 0), [], 0, 0
        self.gathered = 0
        for name in self.seconds:
            setattr(cluster.panels, name, self._timed(cluster, name, getattr(cluster.panels, name)))

    def _timed(self, cluster, name, ask):
        def asked(*arguments):
            found = []
            wall, processor = timed(lambda: found.append(ask(*arguments)), cluster.pids())
            self.seconds[name] += wall
            self.processor += processor
            self.calls[name] += 1
            if name == "append":
                self.rounds.append(arguments[1])
            if name == "gram":
                # Samples of which something is added or taken away, of all.
                self.signs += np.count_nonzero(arguments[1]) / arguments[1].shape[1]
                self.sums += len(arguments[1])
            if name == "gather":
                self.gathered += np.count_nonzero(arguments[1])
            return found[0]

        return asked


def panel_rates(recorder, rounds):
    """Operations a second of one thread here on some panels of that factor, and bytes of B."""
    shard = _argwhy.Shard(recorder.job, recorder.features, threads=1)
    starts = _argwhy.panel_starts(shard.n_samples)
    panels, own = _argwhy.Panels(shard), [0, 1]
    n = starts[len(own)]
    rank = sum(len(pivots) for pivots, *_ in rounds)

    def grow():
        for panel in own:
            size = starts[panel + 1] - starts[panel]
            panels.begin(panel, np.empty(0), np.zeros((0, size), np.float32))
            for round in rounds:
                panels.append(panel, round, np.ones(size))

    _, growing = timed(grow)
    _, summing = timed(lambda: panels.gram(own, np.ones((1, n), np.int8)))
    v, w = np.ones((3, n)), np.ones((3, rank))
    _, reading = timed(lambda: [(panels.project(own, v), panels.expand(own, w)) for _ in range(20)])
    return 2 * n * rank**2 / (growing + summing), 20 * 2 * 4 * n * rank / reading


def preconditioner(n_rows, n_features):
    signals, decisions = data(n_rows, n_features)
    settings = {"bounds": (-1, 1), "features": "raw", "kernel": "rbf", "trend": "none", "operator": "tiled", "memory": "4GiB"}
    recorder = recorded(signals, decisions)
    print(f"\n## A preconditioner that workers keep, N = {n_rows:,}, {n_features} features\n")
    began = time.monotonic()
    here = KernelInverseOptimizer(**settings).fit(signals, decisions)
    print(f"One process: {here.status_}, {here.certificate_.relative_gap:.1e}, {time.monotonic() - began:.1f} s.\n")
    print("| workers of one core | predicted s | measured s | of it append, gram, gather, project, expand | predicted processor s | measured | fit s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    first, rates = None, None
    for workers, kills in ((1, False), (2, False), (4, False), (2, True)):
        with Cluster(workers=workers, cpus=1, spread_from=1) as cluster:
            cluster.connect()
            while len(cluster.pids()) < workers:
                cluster.product(cluster.open(recorder.job, recorder.rows, recorder.features), False, np.zeros((1, n_rows)))
            watch, done = Watch(cluster), []

            def kill(iteration, done=done, cluster=cluster):
                if not done:
                    done.append(cluster.pids()[0])
                    os.kill(done[0], signal.SIGKILL)

            began = time.monotonic()
            est = KernelInverseOptimizer(**settings, backend=cluster, callback=kill if kills else None)
            est.fit(signals, decisions)
            fit = time.monotonic() - began
        first = first or est
        same = np.array_equal(est.coefficients_, first.coefficients_)
        if kills:
            print(f"\nA worker killed while it is applied: {fit:.1f} s, {'the same bits' if same else 'OTHER BITS'}.")
            continue
        rates = rates or panel_rates(recorder, watch.rounds)
        rank = sum(len(pivots) for pivots, *_ in watch.rounds)
        steps = watch.calls["gram"] + watch.calls["gather"] - 1
        # The first sum is over all samples.
        followed = (watch.signs - 1, watch.sums, watch.gathered)
        sizes = Sizes(n_rows, 3, rank, watch.calls["project"], steps, *followed)
        cores = min(workers, os.cpu_count() or 1)
        network = Network(3e9, 1e-3, 1e-9)
        machines = (Machine(*rates), Machine(CORES * rates[0], rates[1]))
        row = _pair_seconds(n_features)
        cost = by_workers(sizes, cores, row, *machines, network)
        alone = by_workers(sizes, 1, row, *machines, Network(1e15, 0.0, 0.0))
        parts = ", ".join(f"{seconds:.1f}" for seconds in watch.seconds.values())
        print(
            f"| {workers} | {cost.seconds:.1f} | {sum(watch.seconds.values()):.1f} | {parts} | {alone.seconds:.1f} | "
            f"{watch.processor:.1f} | {fit:.1f}, {'same bits' if same else 'OTHER BITS'} |",
            flush=True,
        )
    off = abs(first.certificate_.objective / here.certificate_.objective - 1)
    print(f"\nRank {rank}, {steps} steps, {watch.calls['project']} applications; objectives differ by {off:.1e}.")
    print(f"One thread here: {rates[0] / 1e9:.1f} Gflop/s, {rates[1] / 1e9:.1f} GB/s of B.")


def _pair_seconds(n_features):
    spent = {}
    for times in (1, 4):
        began = time.process_time()
        pairs = _argwhy.multiply_pairs(n_features, 3, False, times)
        spent[times] = time.process_time() - began
    return (spent[4] - spent[1]) / (3 * pairs)


def bits(n_rows, n_features):
    signals, decisions = data(n_rows, n_features)
    settings = {"bounds": (-1, 1), "features": "raw", "kernel": "rbf", "trend": "none", "operator": "tiled"}
    expected = KernelInverseOptimizer(**settings).fit(signals, decisions)
    print(f"\n## Bits, a fit of {n_rows:,} rows: {expected.status_}, {expected.history_['kernel_products'][-1]} products\n")
    for workers, kills in ((1, False), (2, False), (4, False), (2, True)):
        with Cluster(workers=workers, cpus=1) as cluster:
            done = []

            def kill(iteration, done=done, cluster=cluster):
                if not done:
                    done.append(cluster.pids()[0])
                    os.kill(done[0], signal.SIGKILL)

            est = KernelInverseOptimizer(**settings, backend=cluster, callback=kill if kills else None)
            est.fit(signals, decisions)
            same = np.array_equal(est.coefficients_, expected.coefficients_)
            print(f"- {workers} workers{', one killed' if kills else ''}: {'the same bits' if same else 'other bits'}", flush=True)


def sizes():
    print("\n## Sizes, N = 10,000,000, 78 features, 3 dimensions\n")
    # A pair on a core of the machine of bench/RESULTS.md, and on an H200 (docs/adr/0016-gpu.md:
    # 0.88 and 5.3 s a product of a million) with 16 cores beside it.
    cores = {"cores": 16, "pair_seconds": 1.3e-9, "exact_pair_seconds": 2.7e-9}
    gpus = {"cores": 1, "pair_seconds": 1.76e-12, "exact_pair_seconds": 1.06e-11, "worker_flops": 4e11}
    for name, workers, costs in (("", 8, cores), ("", 64, cores), ("with H200s: ", 8, gpus)):
        for spread in (False, True):
            for flops, bandwidth in ((4e11, 1e11), (1.6e12, 4e11)):
                driver = {"driver_flops": flops, "driver_bandwidth": bandwidth, "spread": spread}
                print(f"- {name}{simulate(10_000_000, 78, 3, workers=workers, **costs, **driver)}; a driver of {flops:.1g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=78)
    parser.add_argument("--products", type=int, default=3)
    parser.add_argument("--fit", type=int, default=6000)
    parser.add_argument("--spread", type=int, default=20_000)
    parser.add_argument("--only", choices=("bits", "overhead", "preconditioner", "simulation", "sizes"))
    args = parser.parse_args()
    ray.init(address="local", num_cpus=8, include_dashboard=False, logging_level="error", namespace="argwhy")
    print(f"load average at the start: {os.getloadavg()[0]:.1f}; Ray {ray.__version__}")
    wanted = [args.only] if args.only else ["sizes", "bits", "overhead", "preconditioner", "simulation"]
    recorder = recorded(*data(args.rows, args.features)) if {"overhead", "simulation"} & set(wanted) else None
    if "sizes" in wanted:
        sizes()
    if "bits" in wanted:
        bits(args.fit, args.features)
    if "overhead" in wanted:
        overhead(recorder, args.products)
    if "preconditioner" in wanted:
        preconditioner(args.spread, args.features)
    if "simulation" in wanted:
        simulation(recorder, args.products)
    ray.shutdown()


if __name__ == "__main__":
    main()
