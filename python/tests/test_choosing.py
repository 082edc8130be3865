"""Judging on rows kept aside, and settings chosen by it."""

import json

import numpy as np
import pytest

from argwhy import KernelInverseOptimizer, KernelInverseOptimizerCV, datasets


def table(n=160, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    y = np.clip(1.5 * np.sin(2 * X[:, :2]) + 0.1 * rng.normal(size=(n, 2)), -1, 1)
    return X, y


def test_judge_is_the_commands_verdict(tmp_path, command):
    X, y = table()
    np.savez(tmp_path / "d.npz", signals=X, decisions=y)
    told = command("fit", tmp_path / "d.npz", "-o", tmp_path / "m.argwhy", "--json", "--bounds=-1,1", "-k", "1e-3")
    est = KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-3)
    assert est.judge(X, y) == json.loads(told.stdout)["judged"]
    assert est.judged_["r2"] > 0.8
    assert est.judged_["rmse"] < min(b["rmse"] for b in est.judged_["baselines"].values())


def test_fit_does_not_judge_by_itself():
    X, y = table()
    assert not hasattr(KernelInverseOptimizer(bounds=(-1, 1)).fit(X, y), "judged_")


def test_what_is_kept_aside_together():
    X, y = table(600)
    est = KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-3)
    groups = np.repeat(["north", "south", "east"], 200)
    assert est.judge(X, y, groups=groups)["n_judged"] == 200
    in_time = est.judge(X, y, order="time", holdout=0.2)
    assert (in_time["by"], in_time["n_judged"]) == ("time", 120)
    for wrong, told in [
        ({"groups": groups[:5]}, "5 entries for 600 rows"),
        ({"groups": ["one"] * 600}, "one group"),
        ({"order": "space"}, "order is 'space'"),
        ({"holdout": 0.9}, "holdout is 0.9"),
        ({"holdout": 0}, "not judged"),
    ]:
        with pytest.raises(ValueError, match=told):
            est.judge(X, y, **wrong)


def test_cv_chooses_and_learns_from_all_rows():
    X, y = table()
    grid = {"kernel": ["rbf", "linear"], "features": ["raw"], "regularization": [1e-4, 1e-2, 1.0]}
    cv = KernelInverseOptimizerCV(bounds=(-1, 1), grid=grid, folds=4).fit(X, y)
    assert cv.best_params_["kernel"] == "rbf"
    assert cv.best_params_["regularization"] in grid["regularization"]
    assert cv.best_error_ == min(t["error"] for t in cv.trials_ if t["round"] == 1)
    best = KernelInverseOptimizer(bounds=(-1, 1), **cv.best_params_).fit(X, y)
    np.testing.assert_array_equal(cv.predict(X), best.predict(X))
    assert cv.score(X, y) == best.score(X, y)
    again = KernelInverseOptimizerCV(**cv.get_params()).fit(X, y)
    assert again.best_params_ == cv.best_params_ and again.best_error_ == cv.best_error_


def test_what_is_given_is_not_searched():
    X, y = table(60)
    cv = KernelInverseOptimizerCV(
        bounds=(-1, 1), kernel="rbf", features="raw", trend="none", regularization=1e-2, judge="regret"
    ).fit(X, y)
    assert set(cv.best_params_) <= {"gamma", "regularization"}
    assert cv.best_estimator_.kernel == "rbf"
    assert cv.best_regret_ == min(t["regret"] for t in cv.trials_ if t["round"] == 1)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"grid": {"kernel": ["linear"], "gamma": [1.0]}}, "none of the 1 settings"),
        ({"grid": {"krenel": ["rbf"]}}, "kernel"),
        ({"budget": 1e-9}, "no time for a single trial; raise budget"),
        ({"budget": 0}, "budget"),
        ({"folds": 100}, "60 rows cannot be divided into 100"),
        ({"judge": "beauty"}, "judge"),
    ],
)
def test_bad_searches_are_refused(wrong, told):
    X, y = table(60)
    with pytest.raises(ValueError, match=told):
        KernelInverseOptimizerCV(bounds=(-1, 1), **wrong).fit(X, y)


def test_unfitted_says_so():
    with pytest.raises(ValueError, match="not fitted"):
        KernelInverseOptimizerCV().predict([[1.0]])


def test_a_search_beats_the_untuned_pilot():
    flights = datasets.make_quadrotor(600)
    X, y = flights.signals[:300], flights.decisions[:300]
    limits = {"lower": flights.lower, "upper": flights.upper}
    cv = KernelInverseOptimizerCV(**limits, kernel="rbf", budget=60).fit(X, y, order="time")
    untuned = KernelInverseOptimizer(**limits).fit(X, y)
    new = flights.signals[300:], flights.decisions[300:]
    assert cv.score(*new) >= untuned.score(*new)
