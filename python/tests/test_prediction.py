"""A decision is inside its set, the same alone and in company, and minimises the objective."""

import numpy as np
import pytest

from argwhy import Constraints, KernelInverseOptimizer, datasets


@pytest.mark.parametrize("kernel", ["rbf", "laplace", "matern32 + 0.1*linear"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_decisions_do_not_depend_on_their_company(kernel, dtype, task):
    signals, decisions = task
    signals = signals.astype(dtype)
    est = KernelInverseOptimizer(bounds=(-1, 1), kernel=kernel).fit(signals, decisions)
    new = np.random.default_rng(1).uniform(-2, 2, (700, 3)).astype(dtype)
    together = est.predict(new)
    for size in (1, 2, 7, 256, 257):
        parts = [est.predict(new[i : i + size]) for i in range(0, len(new), size)]
        assert np.array_equal(np.concatenate(parts), together), size


def test_threads_of_a_fit_are_those_of_its_predictions(task):
    signals, decisions = task
    fits = [KernelInverseOptimizer(bounds=(-1, 1), threads=threads).fit(signals, decisions) for threads in (None, 1, 3)]
    for est in fits[1:]:
        assert np.array_equal(est.coefficients_, fits[0].coefficients_)
        assert np.array_equal(est.predict(signals), fits[0].predict(signals))


def test_decisions_lie_in_their_sets_and_beat_others(task):
    signals, decisions = task
    new = np.random.default_rng(2).uniform(-3, 3, (300, 3))
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    u, g = est.predict(new), est.desired(new)
    assert np.array_equal(u, np.clip(g, -1, 1))
    assert np.allclose(est.objective(new, u), (u * u - 2 * g * u).sum(axis=1), rtol=1e-12, atol=1e-12)
    for other in np.random.default_rng(3).uniform(-1, 1, (20, 2)):
        others = np.broadcast_to(other, u.shape)
        assert (est.objective(new, u) <= est.objective(new, others) + 1e-12).all()
    # One signal, many decisions.
    assert np.array_equal(est.objective(new[:1], u[:5]), [est.objective(new[:1], u[i : i + 1])[0] for i in range(5)])


def test_a_learned_theta_is_in_the_objective():
    """θ shows where similar signals meet different limits."""
    rng = np.random.default_rng(0)
    true = np.array([[3.0, 0.8], [0.8, 1.3]])
    signals = rng.choice([-1.0, 1.0], (80, 1))
    upper = rng.uniform(0.1, 2.0, (80, 2))
    desired = signals @ np.array([[1.0, 2.0]]) + np.array([[4.0, 3.0]])
    decisions = np.zeros_like(desired)
    for _ in range(2000):
        decisions = np.clip(decisions - 0.2 * (decisions @ true - desired), -2, upper)
    limits = {"lower": [-2.0, -2.0], "upper": upper}
    est = KernelInverseOptimizer(regularization=1e-4, features="raw", normalize="none", theta="learn", infeasible="clip")
    est.fit(signals, decisions, constraints=limits)
    theta, u = est.theta_uu_, est.predict(signals, limits)
    assert np.linalg.eigvalsh(theta).min() >= 1 - 1e-9
    assert theta[0, 0] > 1.1 * theta[1, 1] and theta[0, 1] > 0.1, theta
    by_hand = np.einsum("ij,jk,ik->i", u, theta, u) - 2 * (est.desired(signals) * u).sum(axis=1)
    assert np.allclose(est.objective(signals, u), by_hand, rtol=1e-10)
    for shares in rng.uniform(0, 1, (20, 1, 2)):
        other = shares * (upper + 2) - 2
        assert (est.objective(signals, u) <= est.objective(signals, other) + 1e-9).all()


def test_constraints_in_every_way_they_are_written():
    rng = np.random.default_rng(0)
    signals = rng.normal(size=(80, 2))
    M, W = np.array([[1.0, 1.0], [-1.0, 2.0]]), np.abs(rng.normal(size=(80, 2))) + 0.1
    decisions = rng.normal(size=(80, 2)) * 0.01
    est = KernelInverseOptimizer(regularization=1e-3, infeasible="clip")
    ways = [
        (M, W),
        [M, W],
        {"M": M, "W": W},
        Constraints(M=M, W=W),
        {"M": np.broadcast_to(M, (80, 2, 2)), "W": W, "upper": [np.inf, np.inf]},
    ]
    fits = [est.fit(signals, decisions, constraints=way).predict(signals, way) for way in ways]
    for found in fits[1:]:
        assert np.array_equal(found, fits[0])
    assert (np.einsum("rj,ij->ir", M, fits[0]) <= W + 1e-9).all()


def test_a_model_without_constraints_may_be_given_some(task):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    free = est.predict(signals)
    held = est.predict(signals, {"M_eq": [[1.0, 1.0]], "W_eq": [0.25], "lower": [-0.5, -0.5]})
    assert np.allclose(held.sum(axis=1), 0.25) and (held >= -0.5 - 1e-12).all()
    assert not np.allclose(held, free)
    prices = est.prices(signals[:5], {"M_eq": [[1.0, 1.0]], "W_eq": [0.25]})
    assert "M_eq[0]" in prices["limit"]


def test_prices_say_what_holds_a_decision(task):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    prices, g = est.prices(signals), est.desired(signals)
    over = np.maximum(np.abs(g) - 1, 0)
    assert np.allclose(prices["price"], 2 * over[over > 0])
    rows, dimensions = np.nonzero(over)
    sides = ["upper" if g[i, j] > 0 else "lower" for i, j in zip(rows, dimensions, strict=True)]
    assert prices["limit"] == [f"{side}[{j}]" for side, j in zip(sides, dimensions, strict=True)]
    assert prices["row"].tolist() == rows.tolist()


def test_weights_count_as_repetitions(task):
    signals, decisions = task
    weights = np.random.default_rng(0).integers(0, 4, 200)
    weighted = KernelInverseOptimizer(bounds=(-1, 1), tol=1e-10).fit(signals, decisions, sample_weight=weights)
    repeated = KernelInverseOptimizer(bounds=(-1, 1), tol=1e-10).fit(
        np.repeat(signals, weights, axis=0), np.repeat(decisions, weights, axis=0)
    )
    assert np.allclose(weighted.predict(signals), repeated.predict(signals), atol=1e-6)
    assert weighted.certificate_.objective == pytest.approx(repeated.certificate_.objective, rel=1e-8)


def test_weights_of_features_have_names(task):
    signals, decisions = task
    est = KernelInverseOptimizer(kernel="linear", primal=True, intercept=True, features="raw", normalize="none")
    est.fit(signals, decisions)
    assert est.weight_names_ == ["s0", "s1", "s2", "intercept"]
    assert np.allclose(est.desired(signals), signals @ est.weights_[:3] + est.weights_[3])
    assert est.n_support_ == 0 and est.coefficients_ is None and est.prices_ is None
    # A plain plan has no kernel values and no preconditioner, rather than none of them.
    assert set(est.plan_) == {"method", "memory_bytes", "limit_bytes", "seconds"} and est.plan_["method"] == "primal"


def test_no_signals_no_decisions(task):
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(*task)
    assert est.predict(np.zeros((0, 3))).shape == (0, 2)


def test_attributes(task):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    assert est.n_features_in_ == 3 and est.theta_uu_.tolist() == np.eye(2).tolist()
    assert est.coefficients_.shape == (est.n_support_, 2) and est.support_.shape == (est.n_support_,)
    assert np.array_equal(est.support_signals_, signals[est.support_])
    assert est.n_iter_ >= 1 and est.kernel_products_ >= 1 and est.seconds_ > 0 and est.peak_memory_bytes_ > 1 << 20
    assert est.plan_["memory_bytes"] <= est.plan_["limit_bytes"] == 2 << 30
    assert est.plan_["method"] == "kernel" and est.plan_["max_rank"] == len(signals)
    assert est.outside_ == {"beyond": 0, "rounding": 0} and est.weights_ is None
    assert set(est.history_) >= {"iteration", "objective", "relative_gap", "seconds"}
    certificate = est.certificate_
    assert certificate.dual <= certificate.primal and certificate.relative_gap <= 1e-6
