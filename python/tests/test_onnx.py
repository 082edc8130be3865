"""Graphs that decide as the model does."""

import numpy as np
import onnxruntime
import pytest

from argwhy import KernelInverseOptimizer, datasets, export_onnx

MODELS = {
    "default": {},
    "raw": {"features": "raw"},
    "no scaling": {"normalize": "none"},
    "clip": {"clip": 0.7},
    "laplace": {"kernel": "laplace"},
    "linear": {"kernel": "linear", "regularization": 1e-3},
    "intercept": {"kernel": "linear", "intercept": True, "features": "raw"},
    "plain": {"kernel": "linear", "primal": True},
    "plain, intercept": {"kernel": "linear", "primal": True, "intercept": True},
    "polynomial": {"kernel": "polynomial", "degree": 2, "gamma": 0.1, "offset": 0.5},
    "matern32": {"kernel": "matern32"},
    "matern52": {"kernel": "matern52", "gamma": 0.3},
    "sums": {"kernel": "rbf + 0.5*(laplace + linear)*matern52(gamma=0.1)"},
    "scales": {"features": "raw", "length_scales": [0.5, 1.0, 2.0]},
    "one side": {"bounds": None, "lower": [-1, -1], "upper": [np.inf, 0.5], "infeasible": "clip"},
    "unbounded": {"bounds": None},
}


@pytest.mark.parametrize("name", MODELS)
def test_parity(name, task, tmp_path):
    signals, decisions = task
    est = KernelInverseOptimizer(**{"bounds": (-1, 1), **MODELS[name]}).fit(signals, decisions)
    est.export_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    new = np.random.default_rng(5).uniform(-3, 3, (400, 3))
    for part in (new, new[:1], new[:17]):
        found = session.run(["decisions"], {"signals": part})[0]
        assert found.dtype == np.float64 and found.shape == (len(part), 2)
        worst = np.abs(found - est.predict(part)).max()
        assert worst <= 1e-6, worst
    assert not (est.predict(new) == est.predict(new)[0]).all()
    assert session.get_modelmeta().custom_metadata_map["argwhy.status"] == "solved"


def test_what_has_no_graph_is_refused(task, tmp_path):
    signals, decisions = task
    learned = KernelInverseOptimizer(bounds=(-1, 1), theta="learn", regularization=1e-3).fit(signals, decisions)
    with pytest.raises(ValueError, match="theta_uu is learned"):
        export_onnx(learned, tmp_path / "m.onnx")
    nights = datasets.make_charging(20)
    held = KernelInverseOptimizer().fit(nights.signals, nights.decisions, constraints=nights.constraints)
    with pytest.raises(ValueError, match="constraints that come with each signal"):
        export_onnx(held, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
