import numpy as np

from argwhy import KernelInverseOptimizer, datasets


def test_fit_predict_save_load(tmp_path):
    signals, decisions, lower, upper = datasets.make_quadrotor(200)
    est = KernelInverseOptimizer(lower=lower, upper=upper).fit(signals, decisions)
    est.save(tmp_path / "m.argwhy")
    again = KernelInverseOptimizer.load(tmp_path / "m.argwhy")
    assert np.array_equal(est.predict(signals), again.predict(signals))
