"""Judging on rows kept aside, and settings chosen by it."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

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


def test_ranges_hold_the_experts_decisions(tmp_path, command):
    X, y = table(1500)
    fresh, truth = table(2000, seed=1)
    est = KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-3).fit(X, y)
    with pytest.raises(ValueError, match="no ranges.*judge"):
        est.predict(fresh, return_range=0.9)
    est.judge(X, y, holdout=0.4)
    decided, low, high = est.predict(fresh, return_range=0.9)
    assert np.array_equal(decided, est.predict(fresh))
    assert (-1 <= low).all() and (low <= decided).all() and (decided <= high).all() and (high <= 1).all()
    assert 0.87 < ((low <= truth) & (truth <= high)).mean() < 0.93
    far = est.predict(np.full((1, 3), 30.0), return_range=0.9)
    assert (far[2] - far[1]).mean() > (high - low).mean()
    # Ranges are part of the file, and the command's are the same numbers.
    est.save(tmp_path / "m.argwhy")
    again = KernelInverseOptimizer.load(tmp_path / "m.argwhy").predict(fresh, return_range=0.9)
    assert all(np.array_equal(a, b) for a, b in zip(again, (decided, low, high), strict=True))
    np.savez(tmp_path / "f.npz", signals=fresh)
    command("predict", tmp_path / "m.argwhy", tmp_path / "f.npz", "-o", tmp_path / "o.npz", "--range", "0.9")
    out = np.load(tmp_path / "o.npz")
    assert np.array_equal(out["decisions_low"], low) and np.array_equal(out["decisions_high"], high)
    for wrong, told in [(1.5, "between 0 and 1"), (0.9999, "rows kept aside")]:
        with pytest.raises(ValueError, match=told):
            est.predict(fresh, return_range=wrong)
    flat = KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-3).fit(X, y[:, 0])
    flat.judge(X, y[:, 0])
    assert [part.shape for part in flat.predict(fresh, return_range=0.5)] == [(2000,)] * 3


def test_ranges_hold_real_decisions():
    """Patients of scikit-learn's table: 300 to learn from, the rest judged, ten times."""
    X, y = load_diabetes(return_X_y=True)
    shares = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(len(X))
        learn, rest = order[:300], order[300:]
        est = KernelInverseOptimizer(bounds=(25, 346)).fit(X[learn], y[learn])
        est.judge(X[learn], y[learn])
        _, low, high = est.predict(X[rest], return_range=0.9)
        shares.append(((low <= y[rest]) & (y[rest] <= high)).mean())
    assert 0.88 < np.mean(shares) < 0.92, shares


def test_rows_that_do_not_fit_are_found(tmp_path, command):
    X, y = table(120)
    y[17, 1] = -y[17, 1]
    y[40, 0] = -np.sign(y[40, 0])
    est = KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-3).fit(X, y)
    with pytest.raises(ValueError, match="judge"):
        _ = est.misfits_
    est.judge(X, y)
    worst = est.misfits_
    assert 40 in [misfit["row"] for misfit in worst[:2]] and len(worst) == 10
    assert worst[0]["times_usual"] >= worst[1]["times_usual"] > 1
    np.savez(tmp_path / "d.npz", signals=X, decisions=y)
    told = command("fit", tmp_path / "d.npz", "-o", tmp_path / "m.argwhy", "--json", "--bounds=-1,1", "-k", "1e-3")
    theirs = json.loads(told.stdout)["misfits"]
    assert theirs["by"] == "leave-one-out"
    assert [misfit["row"] for misfit in theirs["rows"]] == [misfit["row"] for misfit in worst]


def test_length_scales_of_signals_that_do_not_matter():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (240, 3))
    y = np.clip(1.2 * np.sin(6 * X[:, 1]) + 0.05 * rng.normal(size=240), -1, 1)
    settings = {"bounds": (-1, 1), "kernel": "rbf", "gamma": 1.0, "features": "raw", "trend": "none", "regularization": 1e-3}
    est = KernelInverseOptimizerCV(**settings, length_scales="auto").fit(X, y)
    scales = est.best_params_["length_scales"]
    assert min(scales[0], scales[2]) > 2 * scales[1]
    assert est.best_estimator_.get_params()["length_scales"] == scales
    # Given numbers are not searched.
    fixed = KernelInverseOptimizerCV(**settings, length_scales=scales).fit(X, y)
    assert "length_scales" not in fixed.best_params_


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
