"""Import, extras and pictures."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

import argwhy
from argwhy import KernelInverseOptimizer

mpl.use("Agg")

STANDARD = sys.stdlib_module_names | {"numpy", "argwhy"}


def fresh(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_needs_numpy_alone():
    code = "import sys; before = set(sys.modules); import argwhy; print(*{m.split('.')[0] for m in set(sys.modules) - before})"
    foreign = set(fresh(code).split()) - STANDARD
    # An editable install brings a finder of its own.
    assert not {name for name in foreign if not name.startswith(("__editable__", "_argwhy", "_"))}, foreign


def test_importing_brings_little_beside_numpy():
    # What it takes is measured by bench/python.py; a clock in a test would fail on a busy machine.
    code = "import sys, numpy; before = set(sys.modules); import argwhy; print(*set(sys.modules) - before)"
    brought = set(fresh(code).split())
    assert len(brought) <= 30, brought
    assert not {name for name in brought if name.startswith("argwhy.gym")}


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("matplotlib", "est.plot_convergence()", "plot"),
        ("matplotlib", "est.plot_decisions(X, X)", "plot"),
        ("onnx", "est.export_onnx('m.onnx')", "onnx"),
        ("sklearn", "est.__sklearn_tags__()", "sklearn"),
    ],
)
def test_a_missing_extra_gives_a_one_line_hint(package, code, extra):
    said = fresh(f"""
import sys
sys.modules[{package!r}] = None
import numpy as np, argwhy
X = np.random.default_rng(0).normal(size=(20, 1))
est = argwhy.KernelInverseOptimizer().fit(X, X)
est.predict(X)
try:
    {code}
except ImportError as error:
    print(error)
""")
    assert said.endswith(f"pip install 'argwhy[{extra}]'") and "\n" not in said


def test_pictures(task):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    ax = est.plot_convergence()
    line = ax.get_lines()[0]
    assert np.array_equal(line.get_xdata(), est.history_["seconds"])
    assert len(line.get_ydata()) == len(est.history_["relative_gap"]) and ax.get_yscale() == "log"
    ax = est.plot_decisions(signals, decisions)
    assert np.array_equal(ax.get_lines()[1].get_ydata(), est.predict(signals)[:, 1])
    assert est.plot_decisions(signals, decisions, ax=ax) is ax


def test_a_model_from_a_file_has_no_history(task, tmp_path):
    KernelInverseOptimizer(bounds=(-1, 1)).fit(*task).save(tmp_path / "m.argwhy")
    with pytest.raises(argwhy.NotFittedError, match="history of a fit"):
        KernelInverseOptimizer.load(tmp_path / "m.argwhy").plot_convergence()


def test_a_panic_is_an_exception(capfd):
    with pytest.raises(argwhy.InternalError, match="argwhy has a bug, please report it: on purpose"):
        argwhy._argwhy.panic("on purpose")
    assert "on purpose" in capfd.readouterr().err
