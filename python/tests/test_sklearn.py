"""scikit-learn's own demands, and its tools."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import check_is_fitted

import argwhy
from argwhy import Constraints, KernelInverseOptimizer, datasets


def checks():
    with pytest.warns(UserWarning, match="does not inherit"):
        return list(estimator_checks_generator(KernelInverseOptimizer()))


@pytest.mark.parametrize("case", checks(), ids=lambda case: getattr(case[1], "func", case[1]).__name__)
def test_check_estimator(case):
    estimator, check = case
    check(clone(estimator))


def test_search_over_pipelines_on_two_processes(task):
    signals, decisions = task
    pipeline = make_pipeline(StandardScaler(), KernelInverseOptimizer(bounds=(-1, 1), threads=1))
    grid = {
        "kernelinverseoptimizer__regularization": np.logspace(-6, -1, 3),
        "kernelinverseoptimizer__kernel": ["rbf", "linear"],
    }
    search = GridSearchCV(pipeline, grid, cv=3, n_jobs=2).fit(signals, decisions)
    assert search.best_params_["kernelinverseoptimizer__kernel"] == "rbf"
    assert search.best_score_ > 0.95
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_weights_reach_the_estimator_through_a_pipeline(task):
    signals, decisions = task
    weights = np.arange(200) % 3
    pipeline = make_pipeline(StandardScaler(), KernelInverseOptimizer(bounds=(-1, 1)))
    pipeline.fit(signals, decisions, kernelinverseoptimizer__sample_weight=weights)
    inner = KernelInverseOptimizer(bounds=(-1, 1))
    inner.fit(StandardScaler().fit_transform(signals), decisions, sample_weight=weights)
    assert np.array_equal(pipeline[-1].coefficients_, inner.coefficients_)
    unweighted = KernelInverseOptimizer(bounds=(-1, 1)).fit(StandardScaler().fit_transform(signals), decisions)
    assert unweighted.n_support_ != inner.n_support_


def test_cross_validation_splits_constraints():
    nights = datasets.make_charging(60)
    est = KernelInverseOptimizer(regularization=1e-4)
    with config_context(enable_metadata_routing=True):
        est.set_fit_request(constraints=True).set_score_request(constraints=True)
        params = {"constraints": nights.constraints}
        scores = cross_val_score(clone(est), nights.signals, nights.decisions, cv=3, params=params)
        search = GridSearchCV(est, {"regularization": [1e-4, 1e-2]}, cv=3)
        search.fit(nights.signals, nights.decisions, constraints=nights.constraints)
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(scores.mean())
    test = np.arange(20)
    train = np.arange(20, 60)
    limits = nights.constraints
    by_hand = clone(est).fit(nights.signals[train], nights.decisions[train], constraints=limits.select(train))
    assert scores[0] == by_hand.score(nights.signals[test], nights.decisions[test], constraints=limits.select(test))
    with pytest.raises(TypeError, match="takes no 'sample_weights'"):
        est.set_fit_request(sample_weights=True)


def test_constraints_pick_rows_and_keep_what_is_shared():
    limits = Constraints(M=[[1.0, 1.0]], W=[[1.0], [2.0], [3.0]], lower=[0.0, 0.0])
    picked = limits[np.array([2, 0])].arrays()
    assert picked["W"].tolist() == [[3.0], [1.0]]
    assert picked["M"].shape == (1, 2) and picked["lower"].shape == (2,)
    assert len(limits) == 3 and len(Constraints(lower=[0.0])) == 1


def test_score_is_sklearns(task):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-2).fit(signals[:100], decisions[:100])
    predicted, weights = est.predict(signals), np.linspace(0, 2, 200)
    assert est.score(signals, decisions) == pytest.approx(r2_score(decisions, predicted), abs=1e-14)
    weighted = r2_score(decisions, predicted, sample_weight=weights)
    assert est.score(signals, decisions, sample_weight=weights) == pytest.approx(weighted, abs=1e-14)
    assert is_regressor(est)


@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), clone], ids=["pickle", "clone"])
def test_copies_are_the_same(task, again):
    signals, decisions = task
    bounds = np.array([-1.0, 1.0])
    est = KernelInverseOptimizer(bounds=bounds, kernel="matern52").fit(signals, decisions)
    copy = again(est)
    assert copy.get_params().keys() == est.get_params().keys()
    assert copy.kernel == "matern52"
    if again is clone:
        with pytest.raises(NotFittedError):
            check_is_fitted(copy)
        copy.fit(signals, decisions)
    assert np.array_equal(copy.predict(signals), est.predict(signals))
    assert np.array_equal(copy.coefficients_, est.coefficients_)
    assert copy.certificate_ == est.certificate_
    assert np.array_equal(copy.history_["gap"], est.history_["gap"])


def test_joblib(task, tmp_path):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    joblib.dump(est, tmp_path / "est.joblib")
    assert np.array_equal(joblib.load(tmp_path / "est.joblib").predict(signals), est.predict(signals))
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(est.predict)(part) for part in np.array_split(signals, 4))
    assert np.array_equal(np.concatenate(parts), est.predict(signals))


def test_warnings_and_errors_are_sklearns_too(task):
    signals, decisions = task
    with pytest.warns(ConvergenceWarning) as seen:
        KernelInverseOptimizer(bounds=(-1, 1), max_iterations=1).fit(signals, decisions)
    assert isinstance(seen[0].message, argwhy.ConvergenceWarning)
    with pytest.raises(NotFittedError) as raised:
        KernelInverseOptimizer().predict(signals)
    assert isinstance(raised.value, argwhy.NotFittedError)


def test_parameters_are_set_by_name_or_refused():
    est = KernelInverseOptimizer(bounds=(-1, 1))
    assert est.set_params(tol=1e-3, kernel="laplace").get_params()["tol"] == 1e-3
    assert repr(est) == "KernelInverseOptimizer(kernel='laplace', bounds=(-1, 1), tol=0.001)"
    with pytest.raises(ValueError, match="Invalid parameter 'tolerance'"):
        est.set_params(tol=1, tolerance=1)
    assert est.tol == 1e-3
