"""Fits that go on: warm starts, rows behind others, checkpoints."""

import pickle

import numpy as np
import pytest

from argwhy import DataError, KernelInverseOptimizer

PLAIN = {"features": "raw", "normalize": "none", "bounds": (-1, 1)}
"""Features that know nothing of the data's means, so that fits of other rows have the same ones."""


def rows(n, seed=0):
    signals = np.random.default_rng(seed).normal(size=(n, 3))
    return signals, np.clip(1.5 * np.sin(signals[:, :2]) * signals[:, 1:], -1, 1)


def primal(est):
    return est.certificate_.primal


def test_rows_behind_others_lead_to_the_optimum_of_all():
    X, y = rows(400)
    weight = np.linspace(0.5, 2, 400)
    whole = KernelInverseOptimizer(**PLAIN).fit(X, y, weight)
    est = KernelInverseOptimizer(**PLAIN)
    for part in (slice(0, 300), slice(300, 380), slice(380, 400)):
        assert est.partial_fit(X[part], y[part], weight[part]) is est
    assert est.status_ == "solved"
    assert primal(est) == pytest.approx(primal(whole), rel=2e-6)
    np.testing.assert_allclose(est.predict(X), whole.predict(X), atol=1e-2)


def test_what_a_call_leaves_is_what_the_next_one_goes_on_from():
    X, y = rows(3200)
    settings = {**PLAIN, "regularization": 1e-4}
    est = KernelInverseOptimizer(**settings).partial_fit(X[:3000], y[:3000])
    pivots = est._left.pivots
    assert 0 < len(pivots) < 3000
    whole = KernelInverseOptimizer(**settings).fit(X[:3100], y[:3100])
    assert whole._left is None
    est.partial_fit(X[3000:3100], y[3000:3100])
    assert est._left.pivots == pivots, "the factor was made anew"
    assert est.kernel_products_ < whole.kernel_products_
    assert primal(est) == pytest.approx(primal(whole), rel=2e-6)
    # With another kernel, or weights, it would be of no use.
    est.set_params(gamma=3.0).partial_fit(X[3100:3150], y[3100:3150])
    assert est._left.pivots != pivots
    est.partial_fit(X[3150:], y[3150:], np.full(50, 2.0))
    assert est._left is None
    whole.set_params(gamma=3.0).fit(X, y, np.concatenate([np.ones(3150), np.full(50, 2.0)]))
    assert (est.status_, whole.status_) == ("solved", "solved")
    assert primal(est) == pytest.approx(primal(whole), rel=2e-6)
    assert not {"_left", "_grown"} & set(est.__getstate__())


def test_constraints_come_with_their_rows():
    X, y = rows(200)
    lower, upper = y - 0.1, y + np.linspace(0, 0.3, 200)[:, None]
    limits = {"lower": lower, "upper": upper}
    whole = KernelInverseOptimizer(**PLAIN).fit(X, y, constraints=limits)
    est = KernelInverseOptimizer(**PLAIN)
    for part in (slice(0, 150), slice(150, 200)):
        est.partial_fit(X[part], y[part], constraints={name: side[part] for name, side in limits.items()})
    assert primal(est) == pytest.approx(primal(whole), rel=2e-6)
    with pytest.raises(DataError, match="limits of the same kinds"):
        est.partial_fit(X[:5], y[:5])


def test_features_keep_the_means_of_the_first_rows():
    X, y = rows(120)
    est = KernelInverseOptimizer(bounds=(-1, 1)).partial_fit(X[:100], y[:100])
    first = KernelInverseOptimizer(bounds=(-1, 1)).fit(X[:100], y[:100])
    np.testing.assert_array_equal(est.predict(X), first.predict(X))
    # A fit of these rows alone, had it kept their features, is what forgetting would look like.
    est.partial_fit(X[100:] + 30, y[100:])
    assert est.status_ == "solved"
    assert np.abs(est.predict(X[100:] + 30) - y[100:]).mean() < 0.2


def test_partial_fit_goes_on_from_fit_with_the_rows_it_was_told():
    X, y = rows(200)
    whole = KernelInverseOptimizer(**PLAIN).fit(X, y, rows="20:200")
    est = KernelInverseOptimizer(**PLAIN).fit(X[:150], y[:150], rows="20:150").partial_fit(X[150:], y[150:])
    assert primal(est) == pytest.approx(primal(whole), rel=2e-6)


def test_partial_fit_needs_the_rows_before(tmp_path):
    X, y = rows(60)
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(X, y)
    est.save(tmp_path / "m.argwhy")
    for without in (KernelInverseOptimizer.load(tmp_path / "m.argwhy"), pickle.loads(pickle.dumps(est))):
        with pytest.raises(DataError, match="argwhy update"):
            without.partial_fit(X, y)
    assert len(pickle.dumps(est)) < len(pickle.dumps(est._grown)) + len((tmp_path / "m.argwhy").read_bytes())
    with pytest.raises(ValueError, match="X has 2 features, but KernelInverseOptimizer is expecting 3"):
        est.partial_fit(X[:, :2], y)
    np.testing.assert_array_equal(est.predict(X), KernelInverseOptimizer.load(tmp_path / "m.argwhy").predict(X))


def test_a_warm_start_has_the_same_optimum_and_takes_no_longer():
    X, y = rows(300)
    cold = KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-5).fit(X, y)
    est = KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-4, warm_start=True).fit(X, y)
    est.set_params(regularization=1e-5).fit(X, y)
    assert primal(est) == pytest.approx(primal(cold), rel=2e-6)
    again = est.fit(X, y)
    assert again.n_iter_ <= 1
    with pytest.raises(DataError, match="row 0 has other signals"):
        est.fit(X[::-1], y[::-1])


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    X, y = rows(300)
    file = tmp_path / "c.checkpoint"
    whole = KernelInverseOptimizer(bounds=(-1, 1)).fit(X, y)
    est = KernelInverseOptimizer(
        bounds=(-1, 1), checkpoint=file, checkpoint_every=0, callback=lambda step: step.iteration >= 1
    )
    est.fit(X, y)
    assert est.status_ == "interrupted" and file.exists()
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(X, y, resume=file)
    assert est.status_ == "solved"
    assert primal(est) == pytest.approx(primal(whole), rel=2e-6)
    with pytest.raises(DataError, match="belongs to other rows"):
        est.fit(X[:100], y[:100], resume=file)
    with pytest.raises(DataError, match="cannot read"):
        est.fit(X, y, resume=tmp_path / "none")
    with pytest.raises(ValueError, match="checkpoint_every"):
        KernelInverseOptimizer(checkpoint=file, checkpoint_every=-1, bounds=(-1, 1)).fit(X, y)
