"""Progress, callbacks and Ctrl-C."""

import io
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import argwhy
from argwhy import KernelInverseOptimizer


@pytest.fixture(scope="module")
def slow():
    """A fit of some seconds, most of them inside steps."""
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(6000, 12))
    wish = np.sin(signals @ rng.normal(size=(12, 3)) * 3)
    return signals, np.clip(2 * wish, -1, 1)


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises, in children too: whoever runs this in the background may have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def slow_estimator(**parameters):
    return KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-7, tol=1e-12, operator="tiled", **parameters)


class Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.isatty = lambda: terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_fits_where_it_is_shown(terminal, task, monkeypatch):
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("argwhy._progress.EVERY", 0.0)
    est = KernelInverseOptimizer(verbose=1).fit(*task)
    text = screen.getvalue()
    assert text.startswith("fitting 200 samples, 3 features, 2 decision dimensions")
    assert "no limits given, so decisions are unbounded" in text
    assert text.rstrip().split("\n")[-1].split("\r")[-1].startswith("solved: objective ")
    assert ("\r" in text) == terminal
    if terminal:
        assert text.count("\rstep") == len(est.history_["iteration"])
    else:
        # A fit shorter than anyone's patience has nothing to say in between.
        assert text.count("\n") == 3


def test_silence_is_the_default(task, capfd):
    KernelInverseOptimizer(bounds=(-1, 1)).fit(*task)
    assert capfd.readouterr() == ("", "")


def test_a_callback_sees_every_step(task):
    seen = []
    est = KernelInverseOptimizer(bounds=(-1, 1), callback=seen.append).fit(*task)
    assert est.status_ == "solved"
    for name, values in est.history_.items():
        assert [getattr(step, name) for step in seen] == values.tolist()
    assert est.history_["relative_gap"][-1] <= est.tol
    assert threading.current_thread() is threading.main_thread()
    assert "relative_gap" in repr(seen[0])


def test_a_callback_stops_with_a_certified_model(task, recwarn):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1), callback=lambda step: step.iteration >= 2).fit(signals, decisions)
    assert (est.status_, est.n_iter_) == ("interrupted", 2)
    best = KernelInverseOptimizer(bounds=(-1, 1), tol=1e-12).fit(signals, decisions)
    # Its bounds enclose the optimum, although it was not reached.
    assert est.certificate_.dual <= best.certificate_.primal * (1 + 1e-9)
    assert est.certificate_.primal >= best.certificate_.dual * (1 - 1e-9)
    assert est.certificate_.relative_gap > 1e-6
    assert (np.abs(est.predict(signals)) <= 1).all()
    assert not [w for w in recwarn if issubclass(w.category, argwhy.ConvergenceWarning)]


def test_what_a_callback_raises_arrives(task):
    def fail(step):
        if step.iteration == 1:
            raise KeyError("mine")

    est = KernelInverseOptimizer(bounds=(-1, 1), callback=fail)
    with pytest.raises(KeyError, match="mine"):
        est.fit(*task)
    assert est.status_ == "interrupted" and est.predict(task[0]).shape == (200, 2)


def test_a_callback_may_use_the_package(task):
    inner = []

    def fit_inside(step):
        inner.append(KernelInverseOptimizer(bounds=(-1, 1)).fit(*task).status_)
        return True

    KernelInverseOptimizer(bounds=(-1, 1), callback=fit_inside).fit(*task)
    assert inner == ["solved"]


def test_ctrl_c_stops_within_a_step_and_leaves_a_model(slow, ctrl_c):
    signals, decisions = slow
    est = slow_estimator()
    asked = []

    def interrupt():
        asked.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.7, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        est.fit(signals, decisions)
    waited = time.monotonic() - asked[0]
    # The step, and the certificate of what was reached: a fraction of a second, but a machine may
    # be busy.
    assert waited < 30.0, waited
    assert est.status_ == "interrupted"
    assert est.certificate_.gap >= 0 and est.certificate_.relative_gap > 1e-12
    predicted = est.predict(signals[:50])
    assert (np.abs(predicted) <= 1).all()
    assert len(est.history_["gap"]) >= 1


def test_the_interpreter_is_free_while_a_fit_runs(slow):
    signals, decisions = slow
    est = slow_estimator(time_limit=1.5)
    counted = [0]
    done = threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    with pytest.warns(argwhy.ConvergenceWarning, match="stopped at the time limit"):
        est.fit(signals, decisions)
    done.set()
    thread.join()
    assert est.status_ == "time_limit"
    assert counted[0] > 100


def test_ctrl_c_in_a_script_ends_it_like_any_other(ctrl_c):
    """Without a handler of its own a script ends with the traceback and status Python gives."""
    script = """
import numpy as np, sys
from argwhy import KernelInverseOptimizer
rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 12)); y = np.clip(3 * np.sin(3 * X[:, :3]), -1, 1)
print("ready", flush=True)
KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-7, tol=1e-13, operator="tiled").fit(X, y)
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in err
    assert child.returncode in (130, -signal.SIGINT)


def test_a_forked_child_can_predict_and_fit(task):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    expected = est.predict(signals)
    child = os.fork()
    if child == 0:
        same = np.array_equal(est.predict(signals), expected)
        same &= np.array_equal(est.fit(signals, decisions).predict(signals), expected)
        os._exit(0 if same else 1)
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")
