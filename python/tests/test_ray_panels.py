"""A preconditioner kept by workers of a real Ray: the same bits, whatever happens to them."""

import os
import signal
import sys
import time

import numpy as np
import pytest

from argwhy import KernelInverseOptimizer
from argwhy.errors import BackendError
from argwhy.ray import Cluster, simulate
from argwhy.ray.panels import Factor, Shares, settle
from argwhy.ray.pool import Slot

# Ray reads it when it is imported.
os.environ.setdefault("RAY_AUTH_MODE", "token")
# Its workers run behind everything else by default, which on a busy machine takes minutes.
os.environ.setdefault("RAY_worker_niceness", "0")
ray = pytest.importorskip("ray")

# Too little memory for a factor of all of K, so that there is a preconditioner.
ITERATED = {
    "bounds": (-1, 1),
    "features": "raw",
    "kernel": "rbf",
    "trend": "none",
    "regularization": 1e-5,
    "operator": "tiled",
    "memory": "38MiB",
}
SPREAD = {"cpus": 1, "spread_from": 1000}
FITS = {
    "plain": (ITERATED, False),
    "trend": ({**ITERATED, "kernel": "matern52", "trend": "linear", "regularization": 1e-4}, True),
}


def rows(n):
    signals = np.random.default_rng(0).normal(size=(n, 4))
    return signals, np.clip(1.5 * np.sin(2 * signals[:, :2]) * signals[:, 2:], -1, 1)


@pytest.fixture(scope="module")
def address():
    """A Ray with more logical cores than there are, so that none waits for another."""
    ray.init(address="local", num_cpus=12, include_dashboard=False, logging_level="error", namespace="argwhy")
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


def same(one, other):
    np.testing.assert_array_equal(one.coefficients_, other.coefficients_)
    assert one.certificate_ == other.certificate_


@pytest.fixture(scope="module")
def pair(address):
    with Cluster(workers=2, **SPREAD) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def spread(pair):
    """A fit that nothing happened to, and the messages that it took."""
    X, y = rows(2000)
    return KernelInverseOptimizer(**ITERATED, backend=pair).fit(X, y)


@pytest.mark.parametrize("name", FITS)
def test_the_optimum_is_that_of_one_process_and_bits_do_not_depend_on_workers(name, address, pair):
    settings, weighted = FITS[name]
    X, y = rows(2000)
    weight = np.arange(2000) % 3 if weighted else None
    here = KernelInverseOptimizer(**settings).fit(X, y, weight)
    two = KernelInverseOptimizer(**settings, backend=pair).fit(X, y, weight)
    assert two.status_ == "solved"
    assert two.certificate_.relative_gap <= 1e-6
    assert two.certificate_.objective == pytest.approx(here.certificate_.objective, rel=2e-6)
    np.testing.assert_allclose(two.predict(X[:200]), here.predict(X[:200]), atol=2e-2)
    for workers in (1, 3):
        with Cluster(workers=workers, **SPREAD) as cluster:
            same(two, KernelInverseOptimizer(**settings, backend=cluster).fit(X, y, weight))
    # Without being asked to, so few samples are the driver's, with the bits of one process.
    with Cluster(workers=2, cpus=1) as cluster:
        same(here, KernelInverseOptimizer(**settings, backend=cluster).fit(X, y, weight))


class Blow:
    """Does something to a worker that has just been asked for panels, the so-manieth time."""

    def __init__(self, what, at, how, monkeypatch):
        self.victims = []
        calls = {"seen": 0}
        call = Shares.call

        def asked(shares, slot, number):
            message = call(shares, slot, number)
            if message[2] == what and not self.victims:
                calls["seen"] += 1
                if calls["seen"] == at:
                    self.victims.append(slot.pid)
                    os.kill(slot.pid, how)
            return message

        monkeypatch.setattr(Shares, "call", asked)


@pytest.mark.parametrize(("what", "at"), [("append", 1), ("append", 6), ("gram", 1), ("gather", 2), ("project", 5), ("expand", 8)])
def test_a_worker_killed_while_b_is_built_or_applied_changes_no_bit(what, at, address, spread, monkeypatch):
    X, y = rows(2000)
    with Cluster(workers=2, **SPREAD) as cluster:
        KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X[:1200], y[:1200])
        blow = Blow(what, at, signal.SIGKILL, monkeypatch)
        same(spread, KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X, y))
        assert len(blow.victims) == 1
        assert cluster.status()["lost"] == 1


def test_all_workers_killed_at_once_change_no_bit(address, spread):
    X, y = rows(2000)
    with Cluster(workers=2, **SPREAD) as cluster:
        while len(cluster.pids()) < 2:
            KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X[:1200], y[:1200])
        done = []

        def kill_all(iteration):
            if not done:
                done.extend(cluster.pids())
                for pid in done:
                    os.kill(pid, signal.SIGKILL)

        same(spread, KernelInverseOptimizer(**ITERATED, backend=cluster, callback=kill_all).fit(X, y))
        assert len(done) == cluster.status()["lost"] == 2


def test_a_worker_that_hangs_over_its_panels_is_replaced(address, spread, monkeypatch):
    X, y = rows(2000)
    with Cluster(workers=2, **SPREAD) as cluster:
        KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X[:1200], y[:1200])
        blow = Blow("project", 4, signal.SIGSTOP, monkeypatch)

        def patience(iteration):
            # Short enough for a test; long enough for the other one on a busy machine.
            cluster._pool._timeout = 8.0 if not cluster.status()["lost"] else 300.0

        same(spread, KernelInverseOptimizer(**ITERATED, backend=cluster, callback=patience).fit(X, y))
        assert cluster.status()["lost"] >= 1
        assert blow.victims[0] not in cluster.pids()


def test_a_worker_that_joins_gets_panels(address, spread, monkeypatch):
    X, y = rows(2000)
    asked = set()
    call = Shares.call

    def seen(shares, slot, number):
        asked.add(slot.number)
        return call(shares, slot, number)

    monkeypatch.setattr(Shares, "call", seen)
    # What others had is given back in Ray's own time; the pair keeps its two.
    while ray.available_resources().get("CPU", 0) < 10:
        time.sleep(0.05)
    free = int(ray.available_resources()["CPU"])
    with Cluster(workers=1, cpus=free - 1) as other, Cluster(workers=2, **SPREAD) as cluster:
        other.connect()
        while ray.available_resources().get("CPU", 0) > 1:
            time.sleep(0.05)
        same(spread, KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X, y))
        assert (cluster.status()["alive"], len(asked)) == (1, 1)
        other.shutdown()
        for _ in range(100):
            same(spread, KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X, y))
            if len(asked) == 2:
                break
        assert len(asked) == 2


def test_the_command_has_workers_keep_it_too(address, command, spread, tmp_path, monkeypatch):
    X, y = rows(2000)
    np.savez(tmp_path / "d.npz", signals=X, decisions=y)
    monkeypatch.setenv("ARGWHY_PYTHON", sys.executable)
    fit = ["fit", tmp_path / "d.npz", "--bounds=-1,1", "--features", "raw", "--kernel", "rbf", "--trend", "none"]
    fit += ["-k", "1e-5", "--operator", "tiled", "--memory", "38MiB", "--holdout", "0", "--json"]
    fit += ["-o", tmp_path / "m.argwhy", "--ray", address, "--ray-workers", 2, "--ray-cpus", 1]
    done = command(*fit, "--ray-spread-from", 1000)
    assert done.returncode == 0, done.stderr
    there = KernelInverseOptimizer.load(tmp_path / "m.argwhy")
    np.testing.assert_array_equal(there.coefficients_, spread.coefficients_)
    refused = command("fit", tmp_path / "d.npz", "-o", tmp_path / "n", "--ray-spread-from", 9, check=False)
    assert refused.returncode == 2


def slots(*paces):
    """Workers that are there, and what each needs for a panel."""
    found = [Slot(number + 1, host="h", opened={7: True}) for number in range(len(paces))]
    return found, {(slot.number, slot.lives): pace for slot, pace in zip(found, paces, strict=True)}


def counts(factor, found):
    return [sum(owner is slot for owner in factor.owners) for slot in found]


def test_panels_are_kept_evenly_and_move_no_further_than_they_must():
    four, paces = slots(1.0, 1.1, 0.9, 1.0)
    factor = Factor(7, list(range(17)), None, np.empty((0, 16), np.float32), owners=[four[i // 4] for i in range(16)])
    factor.paces = paces
    settle(factor, four)
    assert counts(factor, four) == [4, 4, 4, 4]
    # One was lost, and others took what it had; the one in its place gets panels again.
    factor.owners = [four[0]] * 8 + [four[2]] * 4 + [four[3]] * 4
    before = list(factor.owners)
    settle(factor, four)
    assert counts(factor, four) == [5, 4, 4, 3] or sorted(counts(factor, four)) == [4, 4, 4, 4]
    assert sum(a is not b for a, b in zip(before, factor.owners, strict=True)) <= 4
    # While it is away nothing moves: whoever is free does its panels.
    four[1].opened.clear()
    before = list(factor.owners)
    settle(factor, four)
    assert factor.owners == before


def test_a_slow_worker_gets_fewer_panels_while_b_grows():
    three, paces = slots(1.0, 1.0, 4.0)
    owners = [three[i // 4] for i in range(12)]
    factor = Factor(7, list(range(13)), None, np.empty((0, 12), np.float32), owners=list(owners), paces=paces)
    settle(factor, three, moves=False)
    assert factor.owners == owners
    settle(factor, three)
    assert counts(factor, three)[2] <= 2
    assert sum(counts(factor, three)) == 12


def test_a_panel_that_cannot_be_made_ends_the_fit(pair, monkeypatch):
    X, y = rows(2000)
    call = Shares.call

    def broken(shares, slot, number):
        method, about, *rest = call(shares, slot, number)
        return method, (about[0], [99], *about[2:]), *rest

    monkeypatch.setattr(Shares, "call", broken)
    with pytest.raises(BackendError, match="worker . on "):
        KernelInverseOptimizer(**ITERATED, backend=pair).fit(X, y)
    monkeypatch.undo()
    assert KernelInverseOptimizer(**ITERATED, backend=pair).fit(X, y).status_ == "solved"


def test_a_simulation_says_who_had_better_keep_the_preconditioner():
    costs = {"pair_seconds": 1.3e-9, "exact_pair_seconds": 2.7e-9}
    many = simulate(10_000_000, workers=64, **costs)
    alone = simulate(10_000_000, workers=64, spread=False, **costs)
    assert (many.preconditioner, alone.preconditioner) == ("workers", "driver")
    assert many.otherwise_seconds == alone.preconditioner_seconds > 5 * many.preconditioner_seconds
    assert many.preconditioner_bytes < alone.preconditioner_bytes / 40
    assert many.efficiency > 0.8 > alone.efficiency
    assert many.fit_seconds < alone.fit_seconds
    # One slow worker and a quick driver: better not.
    few = simulate(1_000_000, workers=1, cores=1, driver_flops=1.6e12, **costs)
    assert few.preconditioner_seconds > few.otherwise_seconds
    assert simulate(20_000, workers=2, **costs).preconditioner == "driver"
    assert "a worker" in str(many)
    assert "there" in str(alone)


def test_the_threshold_is_a_parameter_like_others():
    assert repr(Cluster(spread_from=5)) == "Cluster(spread_from=5)"
    assert Cluster().spread_from == 1_000_000
    with pytest.raises(ValueError, match="spread_from is 0"):
        Cluster(spread_from=0)
