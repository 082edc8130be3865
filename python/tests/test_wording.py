"""Messages name settings as Python does: no flag in an exception, warning or report."""

import re
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest

from argwhy import KernelInverseOptimizer, datasets

ROOT = Path(__file__).parents[2]
FLAG = re.compile(r"(?<![\w-])(--[a-z]|-k\b)")


def without_tests(text):
    return text.split("#[cfg(test)]")[0]


def literals(text):
    """The texts in a Rust source, without comments; its messages must have no `//` in them."""
    code = re.sub(r"^\s*//.*$", "", without_tests(text), flags=re.MULTILINE)
    return re.findall(r'"((?:[^"\\]|\\.)*)"', code, flags=re.DOTALL)


@pytest.mark.parametrize("room", ["crates/core/src", "crates/io/src", "crates/argwhy/src", "python/src"])
def test_no_message_of_the_libraries_has_a_flag(room):
    sources = sorted((ROOT / room).rglob("*.rs"))
    assert sources
    # The one place that spells flags, for whoever asks for them.
    found = [
        (path.name, text) for path in sources if path.name != "wording.rs"
        for text in literals(path.read_text()) if FLAG.search(text)
    ]
    assert found == []


def test_no_message_of_the_package_has_a_flag():
    for path in sorted((ROOT / "python/argwhy").rglob("*.py")):
        code = re.sub(r'"""[\s\S]*?"""', "", path.read_text())
        assert not FLAG.search(code), path


def bad_fits(task):
    signals, decisions = task
    yield {"bounds": (-0.5, 0.5)}
    yield {"bounds": (-1, 1), "memory": "1MiB"}
    yield {"primal": True}
    yield {"intercept": True}
    for more in ({"solver": "sso"}, {"theta": "learn"}, {"operator": "tiled"}, {"length_scales": [1.0]}):
        yield {"kernel": "linear", "primal": True, **more}
    yield {"theta": "learn", "solver": "sso"}
    yield {"theta": "learn", "regularization": 1e-30}
    yield {"threads": 0}
    yield {"time_limit": 0.0}
    yield {"solver": "sso", "block": 1000}
    yield {"solver": "sso", "warm_up": 1000}
    yield {"solver": "sso", "warm_up": 2, "init": "zero"}
    yield {"operator": "compact", "regularization": 1e-8}
    yield {"length_scales": [1.0, 2.0]}
    yield {"kernel": "linear", "gamma": 1.0}
    for name in ("kernel", "tol", "memory", "block", "features", "seed", "init"):
        yield {name: "nonsense"}


def test_no_exception_of_a_fit_has_a_flag(task):
    said = []
    for parameters in bad_fits(task):
        with pytest.raises(ValueError) as raised:
            KernelInverseOptimizer(**parameters).fit(*task)
        said.append(str(raised.value))
    assert [text for text in said if FLAG.search(text)] == []
    # Settings of two words are spelled Python's way.
    assert any(text.startswith("time_limit is 0") for text in said), said
    assert any(text.startswith("warm_up is 1000") for text in said), said
    assert any('use infeasible="clip"' in text for text in said), said
    with pytest.raises(ValueError) as raised:
        KernelInverseOptimizer(features="poly2").fit([[1e200], [-1e200]], [[1.0], [2.0]])
    assert 'features="raw"' in str(raised.value) and not FLAG.search(str(raised.value))


def test_no_exception_of_a_reader_has_a_flag(tmp_path):
    np.savez(tmp_path / "both.npz", signals=np.ones((2, 1)), decisions=np.ones((2, 1)), observations=[[1]], actions=[[1]])
    np.savez(tmp_path / "neither.npz", a=np.ones(3))
    np.savez(tmp_path / "half.npz", signals=np.ones((2, 1)), decisions=np.ones((2, 1)), W=np.ones(2), W_eq=np.ones(2))
    np.save(tmp_path / "one.npy", np.ones((2, 1)))
    with h5py.File(tmp_path / "group.hdf5", "w") as file:
        file["observations/image"], file["actions"] = np.ones((2, 2)), np.ones((2, 1))
    asked = [
        ("both.npz", {}),
        ("both.npz", {"signals": "none"}),
        ("both.npz", {"signals": "signals", "weights": "none"}),
        ("both.npz", {"signals": "signals", "decisions": "decisions", "constraints": True}),
        ("both.npz", {"signals": "signals", "decisions": "decisions", "matrix": tmp_path / "both.npz"}),
        ("neither.npz", {}),
        ("half.npz", {"constraints": True}),
        ("one.npy", {}),
        ("one.npy", {"signals": "x"}),
        ("one.npy", {"decisions": str(tmp_path / "one.npy"), "constraints": True}),
        ("group.hdf5", {}),
    ]
    for name, options in asked:
        with pytest.raises(ValueError) as raised:
            datasets.read(tmp_path / name, **options)
        assert not FLAG.search(str(raised.value)), str(raised.value)


def test_no_warning_or_report_has_a_flag(task, capsys):
    signals, decisions = task
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for more in ({"max_iterations": 0}, {"tol": 1e-300}, {"time_limit": 1e-9}):
            KernelInverseOptimizer(verbose=1, **more).fit(signals, decisions)
    said = [str(warning.message) for warning in caught]
    assert len(said) == 3 and any("raise max_iterations" in text for text in said), said
    assert [text for text in [*said, capsys.readouterr().err] if FLAG.search(text)] == []
