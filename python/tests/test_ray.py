"""Fits on a real Ray of this machine: the bits of one process, whatever happens to the workers."""

import io
import json
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import polars
import pytest

from argwhy import KernelInverseOptimizer, KernelInverseOptimizerCV
from argwhy.errors import BackendError
from argwhy.ray import Cluster, ClusterError, simulate
from argwhy.ray import cluster as cluster_module
from argwhy.ray.__main__ import Bridge, _hung_up, receive, send

# Ray reads it when it is imported.
os.environ.setdefault("RAY_AUTH_MODE", "token")
# Its workers run behind everything else by default, which on a busy machine takes minutes.
os.environ.setdefault("RAY_worker_niceness", "0")
ray = pytest.importorskip("ray")

SETTINGS = {
    "bounds": (-1, 1),
    "features": "raw",
    "kernel": "rbf",
    "trend": "none",
    "regularization": 1e-5,
    # What is stored in 16 bits on one machine has other bits than what is computed.
    "operator": "tiled",
}
# Too little memory for a factor of all of K, so that there are many products.
ITERATED = {**SETTINGS, "memory": "44MiB"}

# Four blocks at once, each by a worker, and a warm-up of parts that are solved at once.
BLOCKS = {
    **SETTINGS,
    "solver": "sso",
    "block": 100,
    "concurrent_blocks": 4,
    "init": "paper-warm-up",
    "warm_up": 3,
    "tol": 1e-3,
    "max_iterations": 12,
}


def rows(n, seed=0):
    signals = np.random.default_rng(seed).normal(size=(n, 4))
    return signals, np.clip(1.5 * np.sin(2 * signals[:, :2]) * signals[:, 2:], -1, 1)


@pytest.fixture(scope="module")
def address():
    """A Ray with more logical cores than there are, so that none waits for another."""
    ray.init(address="local", num_cpus=12, include_dashboard=False, logging_level="error", namespace="argwhy")
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(scope="module")
def pair(address):
    with Cluster(workers=2, cpus=1) as cluster:
        yield cluster


def same(one, other):
    np.testing.assert_array_equal(one.coefficients_, other.coefficients_)
    assert one.certificate_ == other.certificate_


FITS = {
    "factorised": (600, SETTINGS),
    "iterated": (2000, ITERATED),
    "trend": (1500, {**ITERATED, "kernel": "matern52", "trend": "linear", "regularization": 1e-4}),
    "sso": (700, {**SETTINGS, "solver": "sso", "tol": 1e-4}),
    "blocks": (700, {**BLOCKS, "kernel": "matern52", "trend": "linear"}),
    "theta": (300, {**SETTINGS, "theta": "learn", "regularization": 1e-3}),
}


@pytest.mark.parametrize("name", FITS)
def test_decisions_have_the_bits_of_one_process(name, pair):
    n, settings = FITS[name]
    X, y = rows(n)
    weight = np.arange(n) % 3 if name == "iterated" else None
    here = KernelInverseOptimizer(**settings).fit(X, y, weight)
    before = pair.status()["products"]
    there = KernelInverseOptimizer(**settings, backend=pair).fit(X, y, weight)
    same(here, there)
    np.testing.assert_array_equal(here.predict(X[:50]), there.predict(X[:50]))
    assert pair.status()["products"] > before
    assert there.plan_["device"] == "ray"


def test_the_number_of_workers_changes_no_bit(address, pair):
    X, y = rows(2000)
    two = KernelInverseOptimizer(**ITERATED, backend=pair).fit(X, y)
    for workers in (1, 3):
        with Cluster(workers=workers, cpus=1) as cluster:
            shares = [0]
            # A quick machine is done before the last worker is there.
            for _ in range(30):
                if min(shares) > 0:
                    break
                same(two, KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X, y))
                shares = cluster.status()["shares"]
            assert len(shares) == workers
            assert min(shares) > 0, "everyone had something to do"


class Trouble:
    """Does something to workers from time to time while a fit runs."""

    def __init__(self, cluster, what):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(cluster, what))

    def _run(self, cluster, what):
        while not self._stop.is_set():
            what(cluster.pids())
            self._stop.wait(0.05)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exception):
        self._stop.set()
        self._thread.join()


def end(pid, how=signal.SIGKILL):
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        pass


def test_workers_killed_at_random_moments_change_no_bit(address, caplog):
    X, y = rows(2000)
    here = KernelInverseOptimizer(**ITERATED).fit(X, y)
    chance, killed = random.Random(7), set()

    def kill(pids):
        # One at a time, and each once: they must be able to finish something.
        if len(pids) == 2 and not killed.intersection(pids) and len(killed) < 3 and chance.random() < 0.3:
            victim = chance.choice(pids)
            killed.add(victim)
            end(victim)

    with Cluster(workers=2, cpus=1) as cluster:
        with Trouble(cluster, kill):
            for _ in range(4):
                same(here, KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X, y))
                if len(killed) == 3:
                    break
        # One that dies when everything is done is not missed.
        assert 0 < cluster.status()["lost"] <= len(killed)
    assert "was lost" in caplog.text
    assert "took the place" in caplog.text


def test_blocks_are_solved_by_workers_whoever_dies(address, caplog):
    X, y = rows(1200)
    here = KernelInverseOptimizer(**BLOCKS).fit(X, y)
    with Cluster(workers=3, cpus=1) as cluster:
        while len(cluster.pids()) < 3:
            KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X, y)
        asked, killed = [], set()
        solved = cluster.blocks

        def blocks(matrix, tasks, stopped):
            asked.append(len(tasks))
            if len(asked) in {1, 3, 6}:
                pid = random.Random(len(asked)).choice(cluster.pids())
                killed.add(pid)
                threading.Timer(0.02, end, [pid]).start()
            return solved(matrix, tasks, stopped)

        cluster.blocks = blocks
        there = KernelInverseOptimizer(**BLOCKS, backend=cluster).fit(X, y)
    assert asked[0] == 3, "parts of the warm-up"
    assert set(asked[1:]) == {4}
    assert len(asked) == 1 + there.n_iter_
    assert killed
    assert "took the place" in caplog.text
    same(here, there)


def test_blocks_end_when_the_fit_is_stopped(pair):
    X, y = rows(1200)
    pair.connect()

    class Slow:
        """Workers that never answer."""

        gpus = 0

        def __getattr__(self, name):
            return getattr(pair, name)

        def blocks(self, matrix, tasks, stopped):
            while not stopped():
                time.sleep(0.01)

    began = time.monotonic()
    est = KernelInverseOptimizer(**BLOCKS, time_limit=1.0, backend=Slow())
    est.fit(X, y)
    assert est.status_ == "time_limit"
    assert time.monotonic() - began < 30


def test_all_workers_of_a_node_lost_at_once_change_no_bit(address):
    X, y = rows(2000)
    here = KernelInverseOptimizer(**ITERATED).fit(X, y)
    with Cluster(workers=2, cpus=1) as cluster:
        # One of them may do it all before the other has started.
        while len(cluster.pids()) < 2:
            KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X, y)
        done = []

        def kill_all(iteration):
            if not done:
                done.extend(cluster.pids())
                for pid in done:
                    end(pid)

        est = KernelInverseOptimizer(**ITERATED, backend=cluster, callback=kill_all).fit(X, y)
        same(here, est)
        assert len(done) == cluster.status()["lost"] == 2


def test_a_worker_that_hangs_is_replaced(address):
    X, y = rows(2000)
    here = KernelInverseOptimizer(**ITERATED).fit(X, y)
    with Cluster(workers=2, cpus=1) as cluster:
        KernelInverseOptimizer(**ITERATED, backend=cluster).fit(X, y)
        stopped = []

        def stop_one(iteration):
            if not stopped:
                stopped.append(cluster.pids()[0])
                end(stopped[0], signal.SIGSTOP)
            # Short enough for a test; long enough for the other one on a busy machine.
            cluster._pool._timeout = 8.0 if not cluster.status()["lost"] else 300.0

        same(here, KernelInverseOptimizer(**ITERATED, backend=cluster, callback=stop_one).fit(X, y))
        assert cluster.status()["lost"] >= 1
        assert stopped[0] not in cluster.pids()


def test_a_driver_that_was_away_does_not_blame_its_workers(address):
    with Cluster(workers=3, cpus=1) as cluster:
        X, y = rows(300)
        while len(cluster.pids()) < 3:
            KernelInverseOptimizer(**SETTINGS, backend=cluster).fit(X, y)
        pool = cluster._pool
        # Closing what nobody has is something to do that takes no time.
        pool.matrices[99] = ()
        calls, questions = [("close",)] * 12, iter([False, True])
        for slot in pool.slots:
            slot.opened[99] = True
        pool.run(99, calls, lambda *answer: None, lambda: next(questions))
        assert any(slot.running for slot in pool.slots)
        pool._timeout = 0.5
        time.sleep(1.0)
        answered = []
        pool.run(99, calls, lambda call, answer: answered.append(call))
        assert sorted(answered) == list(range(12))
        assert pool.lost == 0


def test_a_run_ends_where_nobody_waits_for_its_answers(address):
    X, y = rows(300)
    with Cluster(workers=1, cpus=99) as cluster:
        cluster.gone = lambda: time.monotonic() > began + 1
        began = time.monotonic()
        with pytest.raises(BackendError, match="nobody is there"):
            KernelInverseOptimizer(**SETTINGS, backend=cluster).fit(X, y)
        assert time.monotonic() - began < 60


def test_control_c_twice_does_not_wait_for_workers_that_never_come(address):
    X, y = rows(300)
    with Cluster(workers=1, cpus=99) as cluster:
        cluster.connect()

        def ask():
            for _ in range(2):
                time.sleep(1.5)
                signal.raise_signal(signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        asking, began = threading.Thread(target=ask), time.monotonic()
        try:
            asking.start()
            with pytest.raises(KeyboardInterrupt):
                KernelInverseOptimizer(**SETTINGS, backend=cluster).fit(X, y)
        finally:
            asking.join()
            signal.signal(signal.SIGINT, before)
        assert time.monotonic() - began < 60


def test_the_end_of_the_other_process_is_heard_while_workers_are_waited_for():
    ours, theirs = os.pipe()
    with open(ours, "rb") as source:
        assert not _hung_up(source)
        os.write(theirs, b"more")
        assert not _hung_up(source)
        os.close(theirs)
        assert _hung_up(source)
    assert not _hung_up(io.BytesIO())


def test_the_process_with_the_workers_does_not_outlive_the_command(address, command, tmp_path):
    X, y = rows(300)
    np.savez(tmp_path / "d.npz", signals=X, decisions=y)
    fit = [command.program, "fit", tmp_path / "d.npz", "--bounds=-1,1", "--quiet", "-o", tmp_path / "m.argwhy"]
    # Nobody has so many cores: it waits for a node that joins.
    fit += ["--ray", address, "--ray-workers", "1", "--ray-cpus", "99"]
    driver = subprocess.Popen(fit, env={**os.environ, "ARGWHY_PYTHON": sys.executable})
    children = Path(f"/proc/{driver.pid}/task/{driver.pid}/children")
    while not (found := children.read_text().split()):
        time.sleep(0.05)
    time.sleep(5)
    assert driver.poll() is None
    driver.kill()
    driver.wait()
    for _ in range(600):
        if not Path(f"/proc/{found[0]}").exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"process {found[0]} is there after a minute")


def test_the_note_of_a_cluster_is_where_ray_leaves_it(tmp_path, monkeypatch):
    for name in ("RAY_ADDRESS", "RAY_TMPDIR", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)
    note = Path(cluster_module._note_of_ray())
    assert note == Path("/tmp/ray/ray_current_cluster")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    assert cluster_module._note_of_ray() == ray._common.utils.get_default_ray_temp_dir() + "/ray_current_cluster"
    assert not cluster_module._is_part_of_a_cluster()
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert not cluster_module._is_part_of_a_cluster()
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("127.0.0.1:1\n")
    assert cluster_module._is_part_of_a_cluster()
    monkeypatch.setenv("RAY_ADDRESS", "")
    assert cluster_module._is_part_of_a_cluster()
    monkeypatch.delenv("RAY_TMPDIR")
    assert not cluster_module._is_part_of_a_cluster()


def test_a_cluster_that_wants_another_token_says_so(address, command, tmp_path, monkeypatch):
    X, y = rows(300)
    np.savez(tmp_path / "d.npz", signals=X, decisions=y)
    monkeypatch.setenv("ARGWHY_PYTHON", sys.executable)
    fit = ["fit", tmp_path / "d.npz", "--bounds=-1,1", "--quiet", "-o", tmp_path / "m.argwhy", "--ray", address]
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 64)
    refused = command(*fit, check=False)
    assert refused.returncode == 2
    assert f"error: no Ray cluster at {address}: " in refused.stderr
    assert "look at the token" in refused.stderr


def test_an_address_where_nobody_answers_is_said_at_once(command, tmp_path, monkeypatch):
    X, y = rows(300)
    np.savez(tmp_path / "d.npz", signals=X, decisions=y)
    monkeypatch.setenv("ARGWHY_PYTHON", sys.executable)
    fit = ["fit", tmp_path / "d.npz", "--bounds=-1,1", "--quiet", "-o", tmp_path / "m.argwhy"]
    refused = command(*fit, "--ray", "127.0.0.1:1", check=False)
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: no Ray cluster at 127.0.0.1:1: nobody answers there"), refused.stderr
    (tmp_path / "ray").mkdir()
    note = tmp_path / "ray" / "ray_current_cluster"
    note.write_text("127.0.0.1:1")
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    refused = command(*fit, "--ray", "auto", check=False)
    assert refused.returncode == 2
    assert f"no Ray cluster at 127.0.0.1:1, as {note} says: nobody answers there" in refused.stderr


def test_a_worker_that_joins_is_used(address, pair):
    X, y = rows(900)
    whole = KernelInverseOptimizer(**SETTINGS, backend=pair).fit(X, y)
    free = int(ray.available_resources()["CPU"])
    with Cluster(workers=1, cpus=free - 1) as other, Cluster(workers=2, cpus=1) as cluster:
        other.connect()
        while ray.available_resources().get("CPU", 0) > 1:
            time.sleep(0.05)
        same(whole, KernelInverseOptimizer(**SETTINGS, backend=cluster).fit(X, y))
        assert cluster.status()["alive"] == 1
        other.shutdown()
        for _ in range(100):
            same(whole, KernelInverseOptimizer(**SETTINGS, backend=cluster).fit(X, y))
            if min(cluster.status()["shares"]) > 0:
                break
            time.sleep(0.1)
        assert cluster.status()["alive"] == 2
        assert min(cluster.status()["shares"]) > 0


def test_workers_read_files_themselves(address, tmp_path):
    X, y = rows(900)
    np.savez(tmp_path / "d.npz", signals=X, decisions=y)
    lines = [",".join(["a", "b", "c", "d", "u", "v"])]
    lines += [",".join(map(repr, map(float, [*s, *u]))) for s, u in zip(X, y, strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    columns = {name: X[:, at] for at, name in enumerate("abcd")} | {"u": y[:, 0], "v": y[:, 1]}
    polars.DataFrame(columns).write_parquet(tmp_path / "d.parquet", row_group_size=200)
    with h5py.File(tmp_path / "d.hdf5", "w") as file:
        file.create_dataset("observations", data=X, compression="gzip", chunks=(64, 4))
        file["actions"] = y
    here = KernelInverseOptimizer(**SETTINGS).fit(X[100:], y[100:], rows="0:500")
    files = {
        "d.npz": {"rows": "100:900"},
        "d.csv": {"signals": "a:d", "decisions": "u,v", "rows": slice(100, 900)},
        "d.parquet": {"signals": "*", "decisions": "u,v", "rows": slice(100, 900)},
        "d.hdf5": {"rows": "100:900"},
    }
    for name, reading in files.items():
        with Cluster(workers=2, cpus=1, data=tmp_path / name, reading=reading) as cluster:
            est = KernelInverseOptimizer(**SETTINGS, backend=cluster).fit(X[100:], y[100:], rows="0:500")
            same(here, est)


def test_a_file_that_cannot_be_read_ends_the_fit_with_worker_and_file(address, tmp_path):
    X, y = rows(400)
    path = tmp_path / "d.npz"
    np.savez(path, signals=X, decisions=y)
    whole = path.read_bytes()

    def told(data):
        path.write_bytes(data) if data else path.unlink()
        with Cluster(workers=2, cpus=1, data=path) as cluster, pytest.raises(BackendError) as caught:
            KernelInverseOptimizer(**SETTINGS, backend=cluster).fit(X, y)
        return str(caught.value)

    for damaged in (whole[: len(whole) // 2], None):
        said = told(damaged)
        assert said.startswith("the ray backend failed: worker "), said
        assert str(path) in said, said
    np.savez(path, signals=X + 1, decisions=y)
    other = told(path.read_bytes())
    assert "are not the 400 of the driver" in other
    assert str(path) in other


def test_a_cluster_outlives_a_fit_that_failed(pair, tmp_path):
    X, y = rows(600)
    with pytest.raises(ClusterError, match="up to 256 are sent"):
        pair.open("{}", np.arange(3, dtype=np.uint64), np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 20, 64), (0, 0)))
    matrix = pair.open("{}", np.arange(3, dtype=np.uint64), np.zeros((3, 1)))
    with pytest.raises(ClusterError, match="worker . on .*: ValueError: job"):
        pair.product(matrix, False, np.zeros((1, 3)))
    pair.close(matrix)
    same(KernelInverseOptimizer(**SETTINGS).fit(X, y), KernelInverseOptimizer(**SETTINGS, backend=pair).fit(X, y))


DRIVER = """
    import sys, time
    import numpy as np
    from argwhy import KernelInverseOptimizer
    from argwhy.ray import Cluster

    data, (checkpoint, address, settings) = np.load(sys.argv[1]), sys.argv[2:]
    est = KernelInverseOptimizer(
        **eval(settings), checkpoint=checkpoint, checkpoint_every=0.0,
        backend=Cluster(address, 2, 1),
        callback=lambda iteration: print(iteration.iteration, flush=True) or time.sleep(0.3),
    )
    est.fit(data["signals"], data["decisions"])
"""


def test_a_driver_that_is_killed_goes_on_from_its_checkpoint(address, pair, tmp_path):
    X, y = rows(2000)
    np.savez(tmp_path / "d.npz", signals=X, decisions=y)
    checkpoint = tmp_path / "c.checkpoint"
    arguments = [tmp_path / "d.npz", checkpoint, address, repr(ITERATED)]
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(DRIVER), *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    for line in driver.stdout:
        if int(line) >= 3 and checkpoint.exists():
            break
    driver.kill()
    driver.wait()
    assert checkpoint.exists()
    whole = KernelInverseOptimizer(**ITERATED, backend=pair).fit(X, y)
    resumed = KernelInverseOptimizer(**ITERATED, backend=pair).fit(X, y, resume=checkpoint)
    assert resumed.status_ == "solved"
    assert resumed.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-6)
    assert resumed.n_iter_ < whole.n_iter_


def test_the_command_fits_on_ray(address, command, tmp_path, monkeypatch):
    X, y = rows(700)
    np.savez(tmp_path / "d.npz", observations=X, actions=y, w=np.arange(700) % 4)
    monkeypatch.setenv("ARGWHY_PYTHON", sys.executable)
    common = [tmp_path / "d.npz", "--rows", "50:650", "--bounds=-1,1", "--weights=w", "--operator", "tiled", "--json"]
    # How many rows a verdict looks at depends on the time that the fit took.
    common += ["--holdout", "0"]
    answers = {}
    for name, more in {"here": [], "there": ["--ray", address, "--ray-workers", 2, "--ray-cpus", 1]}.items():
        model = tmp_path / f"{name}.argwhy"
        done = command("fit", *common, "-o", model, *more, terminal=name == "there")
        assert done.returncode == 0, done.stderr
        answers[name] = json.loads(done.stdout)
        answers[name]["estimator"] = KernelInverseOptimizer.load(model)
    assert "on ray" in done.stderr
    assert re.search(r"workers [12]/2  [0-9.e+]+ products/s", done.stderr)
    assert answers["here"]["objective"] == answers["there"]["objective"]
    same(answers["here"]["estimator"], answers["there"]["estimator"])
    (tmp_path / "d.npz").write_bytes(b"no data")
    refused = command("fit", *common, "-o", tmp_path / "m.argwhy", "--ray", address, check=False)
    assert refused.returncode == 2


def test_the_job_for_kubernetes_fits_and_goes_on(address, command, tmp_path, monkeypatch):
    manifests = Path(__file__).parents[2] / "examples" / "ray" / "kuberay.yaml"
    script, job, policy = pytest.importorskip("yaml").safe_load_all(manifests.read_text())
    assert script["metadata"]["name"] == policy["metadata"]["name"] == job["metadata"]["name"]
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        assert group["template"]["metadata"]["labels"] == policy["spec"]["podSelector"]["matchLabels"]

    X, y = rows(700)
    np.savez(tmp_path / "d.npz", observations=X, actions=y)
    command("convert", tmp_path / "d.npz", tmp_path / "demonstrations.parquet")
    (tmp_path / "argwhy").symlink_to(command.program)
    monkeypatch.setenv("ARGWHY_PYTHON", sys.executable)
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    words = script["data"]["fit.sh"].replace("/data/", f"{tmp_path}/")
    for theirs, ours in {"48GiB": "1GiB", "--ray-workers 8": "--ray-workers 2", "--ray-cpus 16": "--ray-cpus 1"}.items():
        assert theirs in words
        words = words.replace(theirs, ours)
    (tmp_path / "fit.sh").write_text(words)

    def run():
        return subprocess.run(["bash", tmp_path / "fit.sh"], capture_output=True, text=True, timeout=120, check=True)

    assert "on ray" in run().stderr
    # As a job leaves one that is stopped before its end.
    options = ["--bounds=-1,1", "--memory", "1GiB", "--max-iterations", 1, "--quiet", "--ray", address]
    options += ["--ray-workers", 2, "--ray-cpus", 1, "--checkpoint", tmp_path / "fit.checkpoint", "--checkpoint-every", "0.001s"]
    command("fit", tmp_path / "demonstrations.parquet", *options, "-o", tmp_path / "stopped.argwhy", check=False)
    assert (tmp_path / "fit.checkpoint").exists()
    assert "going on from a checkpoint" in run().stderr
    assert KernelInverseOptimizer.load(tmp_path / "expert.argwhy").status_ == "solved"
    assert not (tmp_path / "fit.checkpoint").exists()


GRID = {"kernel": ["rbf", "matern52", "laplace"], "gamma": [0.1, 0.3, 1.0], "regularization": [1e-3, 1e-5]}


def test_a_search_finds_what_one_process_finds_whoever_dies(address):
    X, y = rows(240)
    search = KernelInverseOptimizerCV(bounds=(-1, 1), grid=GRID, folds=3)
    here = search.fit(X, y)
    with Cluster(workers=2, cpus=1) as cluster:
        cluster.connect()
        there = KernelInverseOptimizerCV(bounds=(-1, 1), grid=GRID, folds=3, backend=cluster)

        def kill():
            while not cluster.pids():
                time.sleep(0.05)
            time.sleep(0.3)
            os.kill(cluster.pids()[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        there.fit(X, y)
        killer.join()
        assert sum(cluster.status()["shares"]) > 0

    def timeless(trials):
        return [{name: value for name, value in trial.items() if name != "seconds"} for trial in trials]

    assert timeless(there.trials_) == timeless(here.trials_)
    assert there.best_params_ == here.best_params_
    np.testing.assert_array_equal(there.predict(X), here.predict(X))


def test_a_search_on_a_cluster_ends_with_its_budget(pair):
    X, y = rows(400)
    pair.connect()
    search = KernelInverseOptimizerCV(bounds=(-1, 1), budget=3.0, backend=pair)
    began = time.monotonic()
    search.fit(X, y)
    assert time.monotonic() - began < 60
    assert len(search.trials_) > 0


def test_progress_tells_of_workers_and_actors_have_names(pair, capsys, monkeypatch):
    monkeypatch.setattr("argwhy._progress.PATIENCE", 0.0)
    X, y = rows(2000)
    KernelInverseOptimizer(**ITERATED, backend=pair, verbose=1).fit(X, y)
    assert "workers 2/2" in capsys.readouterr().err
    assert pair.status()["products_per_second"] > 0
    named = [name for name in ray.util.list_named_actors() if " worker " in name]
    assert len(named) >= 2
    assert all(name.startswith("argwhy-") for name in named)


def test_nobody_to_work_is_an_error_that_says_what_was_asked_for(address):
    X, y = rows(600)
    with Cluster(workers=1, cpus=99, timeout=1) as cluster, pytest.raises(BackendError, match="each asks for 99 CPUs"):
        KernelInverseOptimizer(**SETTINGS, backend=cluster).fit(X, y)


def test_a_cluster_is_a_parameter_like_others():
    with_data = Cluster("host:1", 3, 4, data="d.npz", reading={"rows": "0:5"}, timeout=9.0)
    assert repr(pickle.loads(pickle.dumps(with_data))) == repr(with_data)
    est = KernelInverseOptimizer(backend=with_data)
    assert est.get_params()["backend"] is with_data
    for wrong in ({"workers": 0}, {"cpus": 0}, {"gpus": 2}, {"timeout": 0.0}, {"reading": {}}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Cluster(**wrong)


def test_a_simulation_says_what_more_workers_are_worth():
    costs = {"pair_seconds": 2e-9, "exact_pair_seconds": 6e-9}
    one, few, many = (simulate(10_000_000, workers=workers, **costs) for workers in (1, 8, 64))
    assert one.product_efficiency > few.product_efficiency > many.product_efficiency > 0.5
    assert one.product_seconds > 7 * few.product_seconds > 20 * many.product_seconds
    assert many.product_bytes > few.product_bytes
    slow = simulate(10_000_000, workers=64, bandwidth=1e8, **costs)
    assert slow.product_seconds > 2 * many.product_seconds
    for name, wrong in {"workers": 0, "cores": 0, "n_samples": 0, "bandwidth": float("nan"), "latency": -1.0, "steps": -1}.items():
        with pytest.raises(ValueError, match=f"{name} is {wrong}; expected"):
            simulate(**{"n_samples": 1000, **costs, name: wrong})
    measured = simulate(100_000, 10, 1, workers=2, cores=1)
    assert 0 < measured.product_seconds < measured.exact_seconds
    assert str(measured).startswith("2 workers × 1 cores")


def test_the_command_searches_on_ray(address, command, tmp_path, monkeypatch):
    X, y = rows(260)
    X, y = X[:, :3], y[:, :2]
    episodes = np.repeat(np.arange(13), 20)
    limits = {"M": np.array([[[1.0, 1.0]]]), "W": np.full((260, 1), 1.5)}
    y = y * np.minimum(1, 1.4 / np.maximum(y.sum(axis=1, keepdims=True), 1e-9)).clip(0)
    np.savez(tmp_path / "d.npz", observations=X, actions=y, w=np.arange(260) % 4, group=episodes, **limits)
    (tmp_path / "grid.toml").write_text('kernel = ["rbf", "matern52"]\ngamma = [0.1, 1.0]\nregularization = [1e-3, 1e-5]\n')
    monkeypatch.setenv("ARGWHY_PYTHON", sys.executable)
    data = [tmp_path / "d.npz", "--rows", "10:250", "--bounds=-1,1", "--weights=w", "--groups=group", "--constraints"]
    common = ["tune", *data, "--grid", tmp_path / "grid.toml", "--folds", 3, "--json"]
    answers = {}
    for name, more in {"here": [], "there": ["--ray", address, "--ray-workers", 2, "--ray-cpus", 1]}.items():
        done = command(*common, "-o", tmp_path / name, *more, terminal=name == "there")
        assert done.returncode == 0, done.stderr
        answers[name] = json.loads(done.stdout)
    assert re.search(r"[0-9] of 4 settings tried; workers [12]/2", done.stderr)
    for found in answers.values():
        for trial in found["trials"]:
            del trial["seconds"]
    assert answers["there"] == answers["here"]
    refused = command(*common, "-o", tmp_path / "no", "--ray", "10.255.255.1:1", "--device", "cuda", check=False)
    assert refused.returncode == 2
    assert "leave one of them out" in refused.stderr
    refused = command(*common, "-o", tmp_path / "no", "--ray", address, "--ray-gpus", 2, check=False)
    assert refused.returncode == 2
    assert refused.stderr.strip() == "error: gpus is 2; a worker uses one, so ask for more workers instead"
    refused = command(*common, "-o", tmp_path / "no", "--ray-timeout", "9s", check=False)
    assert refused.returncode == 2
    # Shorter than anything takes: the time that was given is the time that counts.
    impatient = command(*common, "-o", tmp_path / "no", "--ray", address, "--ray-cpus", 99, "--ray-timeout", "0.5s", check=False)
    assert impatient.returncode == 2
    assert "no worker was ready within 0.5 s" in impatient.stderr


def test_the_command_has_blocks_solved_on_ray(address, command, tmp_path, monkeypatch):
    X, y = rows(500)
    np.savez(tmp_path / "d.npz", observations=X, actions=y)
    monkeypatch.setenv("ARGWHY_PYTHON", sys.executable)
    common = [tmp_path / "d.npz", "--bounds=-1,1", "--operator", "tiled", "--json", "--holdout", "0", "-k", "1e-3"]
    common += ["--solver", "sso", "--block", 60, "--concurrent-blocks", 3, "--tol", "1e-3"]
    fits = []
    for more in ([], ["--ray", address, "--ray-workers", 2, "--ray-cpus", 1]):
        done = command("fit", *common, "-o", tmp_path / "m.argwhy", *more)
        assert done.returncode == 0, done.stderr
        fits.append(KernelInverseOptimizer.load(tmp_path / "m.argwhy"))
    same(*fits)


def test_blocks_by_pipes_end_when_asked_to():
    class Endless:
        """Solves a block between any two questions whether to stop."""

        def blocks(self, matrix, tasks, stopped):
            assert matrix == 7
            found = []
            for task in tasks:
                if stopped():
                    return None
                found.append(task[::-1])
            return found

        def progress(self):
            return "workers 1/1"

    source, target = io.BytesIO(), io.BytesIO()
    for stop in (False, False, False, True):
        send(source, {"call": "wait", "stop": stop})
    source.seek(0)
    bridge = Bridge(source, target)
    bridge._cluster = Endless()
    tasks = [np.frombuffer(task, np.uint8) for task in (b"ab", b"cde")]
    words, *answers = bridge.answer({"call": "blocks", "matrix": 7}, tasks)
    assert words == {"waiting": False, "stopped": False, "progress": "workers 1/1"}
    assert [answer.tobytes() for answer in answers] == [b"ba", b"edc"]
    target.seek(0)
    assert [receive(target)[0]["waiting"] for _ in range(2)] == [True, True]
    words, *answers = bridge.answer({"call": "blocks", "matrix": 7}, tasks)
    assert words["stopped"]
    assert not answers


def test_a_search_by_pipes_ends_when_asked_to():
    class Endless:
        """Has an attempt made between any two questions whether to stop."""

        def attempts(self, data, texts, stopped, done):
            assert data == {"folds": 3, "limits": None}
            for attempt, text in enumerate(texts):
                if stopped():
                    return
                done(attempt, text.upper())

        def progress(self):
            return "workers 1/1"

    source, target = io.BytesIO(), io.BytesIO()
    for stop in (False, False, True):
        send(source, {"call": "wait", "stop": stop})
    source.seek(0)
    bridge = Bridge(source, target)
    bridge._cluster = Endless()
    bridge.answer({"call": "search", "words": {"folds": 3}, "names": []}, [])
    (last,) = bridge.answer({"call": "attempts", "texts": ["a", "b", "c", "d"]}, [])
    target.seek(0)
    said = [receive(target)[0] for _ in range(3)]
    assert [words["done"] for words in said] == [[], [[0, "A"]], [[1, "B"]]]
    assert all(words["waiting"] and words["progress"] == "workers 1/1" for words in said)
    assert last == {"waiting": False, "done": [], "progress": "workers 1/1"}
    # The end of the input is the end of the search, too.
    (last,) = bridge.answer({"call": "attempts", "texts": ["a"]}, [])
    assert last["done"] == []
