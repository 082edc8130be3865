"""Judging on rows kept aside, and an estimator that chooses its settings by it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _argwhy, _arrays
from ._parameters import Parametrised
from .constraints import as_arrays
from .errors import DataError, not_fitted
from .estimator import KernelInverseOptimizer
from .typing import ArrayLike

_NOT_SETTINGS = ("folds", "judge", "budget", "grid", "backend")


def _numbered(groups: ArrayLike) -> list[int] | None:
    """One number a group, in the order in which they come."""
    if groups is None:
        return None
    names: dict[Any, int] = {}
    return [names.setdefault(name, len(names)) for name in np.asarray(groups).ravel().tolist()]


def _in_time(order: str | None) -> bool:
    if order not in (None, "time"):
        raise ValueError(f"order is {order!r}; expected 'time', for rows that follow each other in time, or None")
    return order == "time"


def judge(
    estimator: KernelInverseOptimizer,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike = None,
    constraints: Any = None,
    *,
    groups: ArrayLike = None,
    order: str | None = None,
    holdout: float | None = None,
) -> dict[str, Any]:
    """What :meth:`KernelInverseOptimizer.judge` does."""
    decisions, _ = _arrays.targets(y)
    weights = None if sample_weight is None else _arrays.vector(sample_weight, "sample_weight")
    model = estimator.__dict__.get("_model")
    judged, known = _argwhy.judge(
        _arrays.matrix(X, "X"),
        decisions,
        estimator._settings(),
        weights=weights,
        limits=as_arrays(constraints),
        groups=_numbered(groups),
        in_time=_in_time(order),
        holdout=holdout,
        model=model,
    )
    if known is not None:
        estimator._model = known
    return judged


def _is_auto(name: str, value: Any) -> bool:
    """Whether a setting is left to the search, which an estimator cannot be told."""
    return name == "length_scales" and isinstance(value, str) and value == "auto"


class KernelInverseOptimizerCV(Parametrised):
    """A :class:`KernelInverseOptimizer` that chooses kernel, γ, features, trend and k by itself.

    By what they decide on rows that were not learned from, as ``argwhy tune`` does: every
    combination on a few rows with whole paths of k at once, the better ones on more, the best few
    on all. What is given is not searched; None is a setting that nobody has mentioned.

    Parameters
    ----------
    regularization, features, kernel, gamma, trend:
        Searched unless given.
    length_scales:
        Numbers, one a feature, or "auto": one a signal is looked for around the best of the rest,
        on raw features; that is also what is done if nothing is given.
    bounds, lower, upper, unbounded, infeasible, theta, memory, threads, device, seed:
        As :class:`KernelInverseOptimizer` has them.
    folds:
        Parts that the rows are divided into, each kept aside once; 5 if not given.
    judge:
        What settings are compared by: "error" (how far decisions are from the expert's), or
        "regret" (the suboptimality loss, which is what inverse optimization minimises).
    budget:
        Seconds that the search may take; 300 if not given. The best so far is used when it ends.
    grid:
        Searches these instead: lists by name, such as ``{"kernel": ["rbf"], "gamma": [0.1, 1]}``.
    backend:
        An :class:`argwhy.ray.Cluster`: its workers try settings side by side, and the best are
        fitted on it. What is found is what one machine finds in as much time as it needs.

    Attributes
    ----------
    best_params_:
        What was chosen, as parameters of :class:`KernelInverseOptimizer`.
    best_estimator_:
        That estimator, fitted on all rows.
    best_error_, best_r2_, best_regret_:
        Of the best, on rows it had not learned from.
    trials_:
        Everything that was tried: dictionaries with "settings", "error", "r2", "regret", ….

    Examples
    --------
    >>> from argwhy import KernelInverseOptimizerCV, datasets
    >>> signals, decisions, lower, upper = datasets.make_quadrotor(120)
    >>> grid = {"kernel": ["rbf", "linear"], "regularization": [1e-4, 1e-2]}
    >>> pilot = KernelInverseOptimizerCV(lower=lower, upper=upper, grid=grid)
    >>> pilot = pilot.fit(signals, decisions)
    >>> sorted(pilot.best_params_)
    ['kernel', 'regularization']
    >>> pilot.predict(signals[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        *,
        regularization: float | None = None,
        features: str | None = None,
        kernel: str | None = None,
        gamma: str | float | None = None,
        trend: str | None = None,
        length_scales: ArrayLike = None,
        bounds: ArrayLike = None,
        lower: ArrayLike = None,
        upper: ArrayLike = None,
        unbounded: bool | None = None,
        infeasible: str | None = None,
        theta: str | None = None,
        memory: str | int | None = None,
        threads: int | None = None,
        device: str | None = None,
        seed: int | None = None,
        folds: int | None = None,
        judge: str | None = None,
        budget: float | None = None,
        grid: Mapping[str, Sequence[Any]] | None = None,
        backend: Any = None,
    ) -> None:
        self.regularization = regularization
        self.features = features
        self.kernel = kernel
        self.gamma = gamma
        self.trend = trend
        self.length_scales = length_scales
        self.bounds = bounds
        self.lower = lower
        self.upper = upper
        self.unbounded = unbounded
        self.infeasible = infeasible
        self.theta = theta
        self.memory = memory
        self.threads = threads
        self.device = device
        self.seed = seed
        self.folds = folds
        self.judge = judge
        self.budget = budget
        self.grid = grid
        self.backend = backend

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike = None,
        sample_weight: ArrayLike = None,
        constraints: Any = None,
        *,
        groups: ArrayLike = None,
        order: str | None = None,
    ) -> KernelInverseOptimizerCV:
        """Chooses, then learns from all rows. Rows of one of ``groups`` are kept aside together.

        With ``order="time"`` blocks of rows that follow each other are; else rows at random.
        """
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: decisions are what it learns from"
            )
        given = {name: value for name, value in self.get_params().items() if name not in _NOT_SETTINGS}
        decisions, _ = _arrays.targets(y)
        data: dict[str, Any] = {
            "signals": _arrays.matrix(X, "X"),
            "decisions": decisions,
            "given": given,
            "weights": None if sample_weight is None else _arrays.vector(sample_weight, "sample_weight"),
            "limits": as_arrays(constraints),
            "groups": _numbered(groups),
            "in_time": _in_time(order),
            "folds": self.folds,
            "judge": self.judge,
            "grid": self.grid,
        }
        crew = None if self.backend is None else functools.partial(self.backend.attempts, data)
        found = _argwhy.Search(**data, budget=self.budget).run(crew)
        best = found["best"]
        self.trials_ = found["trials"]
        self.best_params_ = {name.replace("-", "_"): value for name, value in best["settings"].items()}
        self.best_error_, self.best_r2_, self.best_regret_ = best["error"], best["r2"], best["regret"]
        said = {name: value for name, value in given.items() if value is not None and not _is_auto(name, value)}
        estimator = KernelInverseOptimizer(**{**said, **self.best_params_}, backend=self.backend)
        self.best_estimator_ = estimator.fit(X, y, sample_weight, constraints)
        self.n_features_in_ = estimator.n_features_in_
        return self

    def _fitted(self) -> KernelInverseOptimizer:
        estimator: KernelInverseOptimizer | None = self.__dict__.get("best_estimator_")
        if estimator is None:
            raise not_fitted(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        return estimator

    def predict(self, X: ArrayLike, constraints: Any = None, *, return_range: float | None = None) -> Any:
        """Decisions of the best estimator.

        With ``return_range`` also where the expert's would lie, once ``best_estimator_.judge`` was
        asked.
        """
        return self._fitted().predict(X, constraints, return_range=return_range)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None, constraints: Any = None) -> float:
        """R² of the best estimator's decisions on ``X``."""
        return self._fitted().score(X, y, sample_weight, constraints)

    def __sklearn_is_fitted__(self) -> bool:
        return "best_estimator_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        from . import _sklearn

        return _sklearn.regressor_tags()
