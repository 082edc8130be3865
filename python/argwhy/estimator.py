"""The estimator: arguments become arrays, and results become attributes.

Settings, defaults and mathematics are Rust's.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from . import _argwhy, _arrays, _names, _plots, _sklearn, _why
from ._argwhy import Iteration, Model
from ._parameters import Parametrised
from ._progress import Follow, Progress
from .certificate import Certificate
from .constraints import as_arrays, as_constraints
from .datasets import Rows, _ranges
from .errors import DataError, LimitsWarning, convergence_warning, not_fitted
from .typing import ArrayLike, FloatArray

Callback: TypeAlias = "Callable[[Iteration], bool | None]"

_DEFAULT = _argwhy.defaults()
"""Every setting of a fit with its default: the command's, because both ask Rust."""


class KernelInverseOptimizer(Parametrised):
    """Learns the objective behind decisions, with a proof of optimality; decides like the expert.

    An expert saw signals and decided, each time minimising an objective nobody wrote down. The
    estimator learns uᵀθu − 2g(s)ᵀu with g a function in a kernel's space, and :meth:`predict`
    minimises it over the allowed decisions.

    Parameters have the names, meanings and defaults of the command's options and config file
    (``argwhy fit --help``), except for the last six; None is a setting that is not mentioned.
    Attributes that end in an underscore exist after :meth:`fit` or :meth:`load`.

    Parameters
    ----------
    regularization:
        k, the weight of simplicity; "auto" is 0.3/(number of samples).
    features, normalize, clip:
        Functions of the signal ("poly2": all monomials up to degree two, or "raw"), their scaling
        ("zscore" or "none"), and where they are cut.
    kernel:
        "rbf", "laplace", "linear", "constant", "polynomial", "matern32", "matern52", or sums and
        products such as "rbf + 0.5*matern52(gamma=0.1)".
    gamma:
        The kernel's inverse width, 1/(2·length²) for rbf and matern; "auto" is 1/(number of
        features).
    degree, offset:
        Of polynomial kernels.
    length_scales:
        What each feature is divided by before the kernel sees it, one number a feature.
    trend:
        A law beside the kernel that holds where there is no data: "none", "constant", "linear", or
        "auto", which is linear beside kernels of distances and none beside others.
    intercept, primal:
        For the linear kernel: with an intercept; solving for the weights of the features
        (:attr:`weights_`).
    bounds:
        One lower and one upper limit for all dimensions of a decision.
    lower, upper:
        Limits dimension by dimension, infinite ones included.
    unbounded:
        Says that there are no limits on purpose.
    infeasible:
        What to do with decisions outside their limits: "error", "clip" or "keep".
    theta:
        Whether θ_uu is the "identity", or to "learn".
    solver:
        "newton", or "sso": the paper's algorithm, to which ``block``, ``concurrent_blocks``,
        ``selection``, ``warm_up`` and ``init`` belong.
    tol, max_iterations, time_limit:
        Relative duality gap to reach; steps and seconds at most.
    memory:
        What the whole process may take, such as "2GiB"; the plan keeps it.
    threads:
        Threads of fits and predictions; one a core if not given.
    precision, operator:
        Of kernel values while iterating ("f32" or "f64"), and how they are kept ("stored",
        "compact", "tiled", "auto").
    device, device_memory:
        Where kernel values are computed: "cpu", "cuda" or "cuda:N" (an NVIDIA GPU), or "auto": on a
        GPU where there is one and from 10,000 samples on; and the memory of it that may be used
        (samples that do not fit pass through).
        With "cuda" batches are predicted there too.
    seed:
        Of everything random.
    warm_start:
        Whether :meth:`fit` starts from the coefficients of the fit before, whose rows must have the
        numbers they had; rows behind them are new. The optimum is the same, the time to it less.
    checkpoint, checkpoint_every:
        A file that :meth:`fit` keeps what it reaches in, at the first step after each so many
        seconds, for ``fit(..., resume=file)``; none if not given.
    backend:
        Where products with the kernel matrix are computed instead of on ``device``: an
        :class:`argwhy.ray.Cluster`, or an object with its methods ``connect``, ``open``,
        ``product``, ``rows``, ``columns`` and ``close``.
    verbose:
        1 reports the plan and every step on ``sys.stderr``.
    callback:
        Called with an :class:`Iteration` after every step; returning True stops the fit there.

    Examples
    --------
    >>> import numpy as np
    >>> from argwhy import KernelInverseOptimizer
    >>> signals = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> decisions = np.clip(3 * signals[:, :1] * signals[:, 1:], -1, 1)
    >>> est = KernelInverseOptimizer(regularization=1e-6, bounds=(-1, 1)).fit(signals, decisions)
    >>> est.status_, est.certificate_.relative_gap <= 1e-6
    ('solved', True)
    >>> bool(np.abs(est.predict(signals) - decisions).max() < 0.02)
    True
    """

    def __init__(
        self,
        *,
        regularization: str | float = _DEFAULT["regularization"],
        features: str = _DEFAULT["features"],
        normalize: str = _DEFAULT["normalize"],
        clip: float = _DEFAULT["clip"],
        kernel: str = _DEFAULT["kernel"],
        gamma: str | float = _DEFAULT["gamma"],
        degree: int | None = _DEFAULT["degree"],
        offset: float | None = _DEFAULT["offset"],
        length_scales: ArrayLike = _DEFAULT["length_scales"],
        trend: str = _DEFAULT["trend"],
        intercept: bool = _DEFAULT["intercept"],
        primal: bool = _DEFAULT["primal"],
        bounds: ArrayLike = _DEFAULT["bounds"],
        lower: ArrayLike = _DEFAULT["lower"],
        upper: ArrayLike = _DEFAULT["upper"],
        unbounded: bool = _DEFAULT["unbounded"],
        infeasible: str = _DEFAULT["infeasible"],
        theta: str = _DEFAULT["theta"],
        solver: str = _DEFAULT["solver"],
        tol: float = _DEFAULT["tol"],
        max_iterations: int | None = _DEFAULT["max_iterations"],
        time_limit: float | None = _DEFAULT["time_limit"],
        block: str | float = _DEFAULT["block"],
        concurrent_blocks: int = _DEFAULT["concurrent_blocks"],
        selection: str = _DEFAULT["selection"],
        warm_up: int | None = _DEFAULT["warm_up"],
        init: str = _DEFAULT["init"],
        memory: str | int = _DEFAULT["memory"],
        threads: int | None = _DEFAULT["threads"],
        precision: str = _DEFAULT["precision"],
        operator: str = _DEFAULT["operator"],
        device: str = _DEFAULT["device"],
        device_memory: str | int | None = _DEFAULT["device_memory"],
        seed: int = _DEFAULT["seed"],
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        backend: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.regularization = regularization
        self.features = features
        self.normalize = normalize
        self.clip = clip
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.offset = offset
        self.length_scales = length_scales
        self.trend = trend
        self.intercept = intercept
        self.primal = primal
        self.bounds = bounds
        self.lower = lower
        self.upper = upper
        self.unbounded = unbounded
        self.infeasible = infeasible
        self.theta = theta
        self.solver = solver
        self.tol = tol
        self.max_iterations = max_iterations
        self.time_limit = time_limit
        self.block = block
        self.concurrent_blocks = concurrent_blocks
        self.selection = selection
        self.warm_up = warm_up
        self.init = init
        self.memory = memory
        self.threads = threads
        self.precision = precision
        self.operator = operator
        self.device = device
        self.device_memory = device_memory
        self.seed = seed
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.backend = backend
        self.verbose = verbose
        self.callback = callback

    @classmethod
    def from_preset(cls, name: str, **parameters: Any) -> KernelInverseOptimizer:
        """An estimator with the settings of one of the paper's experiments, as ``fit --preset``.

        ``name`` is a dataset of D4RL; ``parameters`` go before what the preset says. The paper's
        rows stand in ``argwhy fit --help``.

        >>> KernelInverseOptimizer.from_preset("walker2d-medium-v2").regularization
        1e-05
        """
        settings = {each: value for each, value in parameters.items() if each in _DEFAULT}
        others = {each: value for each, value in parameters.items() if each not in _DEFAULT}
        return cls(**_argwhy.preset(name, settings), **others)

    # Learning

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike = None,
        sample_weight: ArrayLike = None,
        constraints: Any = None,
        rows: Rows = None,
        resume: str | os.PathLike[str] | None = None,
        units: dict[str, str] | None = None,
    ) -> KernelInverseOptimizer:
        """Learns from signals ``X`` (n × signal_dim) and decisions ``y`` (n × decision_dim, or n).

        Parameters
        ----------
        X, y:
            Arrays, frames or lists of finite numbers.
        sample_weight:
            How many times each sample counts, exactly as if it stood there so often. Zero leaves it
            out.
        constraints:
            What limited the decisions beside ``bounds``, ``lower`` and ``upper``: ``(M, W)`` for
            M·u ≤ W, a dictionary or :class:`Constraints` with M, W, M_eq, W_eq, lower, upper; each
            for all samples or one a sample.
        rows:
            Rows to train on, as in the command: statistics of the features still come from all of
            ``X``. All if not given.
        resume:
            A checkpoint of a fit of the same rows to go on from.
        units:
            Units of signals, decisions and named limits, such as ``{"power": "kW"}``, kept with the
            model and told with its explanations. A column called ``power [kW]`` says its unit
            itself.

        Raises
        ------
        DataError
            For arrays that can't be worked with.
        ValueError
            For parameters that can't be.
        KeyboardInterrupt
            On Ctrl-C, after the step in progress was abandoned: the estimator holds what was
            reached, with its certificate and the status "interrupted", and can be used. What a
            callback raises is passed on likewise.
        """
        start = self.__dict__.get("_model") if self.warm_start and resume is None else None
        self._fit(X, y, sample_weight, constraints, rows, start=start, resume=resume, units=units)
        self._grown: list[dict[str, Any]] = [
            {"X": X, "y": y, "sample_weight": sample_weight, "constraints": constraints, "rows": rows, "units": units}
        ]
        return self

    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None, constraints: Any = None
    ) -> KernelInverseOptimizer:
        """Learns from these rows too, behind all that earlier calls were given.

        The optimum and its certificate are those of a fit to all rows; it starts from the
        coefficients there are and, with many rows, from what the call before left of its
        preconditioner, which takes memory: :meth:`fit` leaves none, so begin with this where more
        rows will come. Features keep the means and widths of the first rows. The estimator refers
        to the arrays of earlier calls; files and pickles are without them (``argwhy update`` does
        the same for model files).

        Examples
        --------
        >>> from argwhy import KernelInverseOptimizer, datasets
        >>> signals, decisions, lower, upper = datasets.make_quadrotor(300)
        >>> est = KernelInverseOptimizer(lower=lower, upper=upper)
        >>> _ = est.partial_fit(signals[:200], decisions[:200])
        >>> _ = est.partial_fit(signals[200:], decisions[200:])
        >>> est.status_, len(est._grown)
        ('solved', 2)
        """
        grown: list[dict[str, Any]] = self.__dict__.get("_grown", [])
        if not grown and "_model" in self.__dict__:
            raise DataError(
                "partial_fit needs the rows that the model learned from, which files and pickles do not keep; "
                "fit it again, or use `argwhy update` on a model file"
            )
        if not grown:
            self._fit(X, y, sample_weight, constraints, leave=True)
            self._grown = [{"X": X, "y": y, "sample_weight": sample_weight, "constraints": constraints}]
            return self
        self._signals_like(X)
        decisions, _ = _arrays.targets(y)
        new = {
            "signals": _arrays.matrix(X, "X"),
            "decisions": decisions,
            "weights": None if sample_weight is None else _arrays.vector(sample_weight, "sample_weight"),
            "limits": as_arrays(as_constraints(constraints), self._model.decision_names),
        }
        left = self.__dict__.get("_left")
        self._fit(**grown[0], more=[*grown[1:], new], start=self._model, left=left, leave=True)
        self._grown = [*grown, new]
        return self

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_grown", "_left")}

    def _signals_like(self, X: ArrayLike) -> None:
        """Refuses signals of another width in the words scikit-learn awaits."""
        try:
            if _arrays.matrix(self._signals(X), "X").shape[1] != self.n_features_in_:
                raise DataError("other signals than before")
        except DataError as error:
            self._explain(error, X)

    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike = None,
        constraints: Any = None,
        rows: Rows = None,
        *,
        more: list[dict[str, Any]] | None = None,
        start: Model | None = None,
        left: _argwhy.Left | None = None,
        leave: bool = False,
        resume: str | os.PathLike[str] | None = None,
        units: dict[str, str] | None = None,
    ) -> KernelInverseOptimizer:
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: decisions are what it learns from"
            )
        names = _names.feature_names(X)
        decision_names = _names.storable(_names.target_names(y))
        constraints = as_constraints(constraints)
        signals = _arrays.matrix(X, "X")
        decisions, flat = _arrays.targets(y)
        weights = None if sample_weight is None else _arrays.vector(sample_weight, "sample_weight")
        if self.callback is not None and not callable(self.callback):
            raise TypeError(f"callback is a {type(self.callback).__name__}; expected a function of an Iteration")
        progress = Progress(getattr(self.backend, "progress", None)) if self.verbose else None
        follow = Follow(progress, self.callback) if progress or self.callback else None
        fit = _argwhy.fit(
            signals,
            decisions,
            self._settings(),
            weights=weights,
            limits=as_arrays(constraints, decision_names),
            rows=_ranges(rows),
            follow=follow,
            names={
                "signals": _names.storable(names),
                "decisions": decision_names,
                "M": list(getattr(constraints, "names", None) or ()),
                "M_eq": list(getattr(constraints, "names_eq", None) or ()),
            },
            units=units,
            more=more,
            start=start,
            left=left,
            leave=leave,
            checkpoint=None if self.checkpoint is None else (os.fspath(self.checkpoint), float(self.checkpoint_every)),
            resume=None if resume is None else os.fspath(resume),
            backend=self.backend,
        )
        self._flat = flat
        self._left = fit.left
        self._learned(fit.model)
        self.history_ = fit.history
        self.plan_ = fit.plan
        self.outside_ = fit.outside
        # Names that a model cannot keep are compared all the same.
        if names is not None:
            self.feature_names_in_ = names
        certificate = self.certificate_
        summary = (
            f"{fit.verdict}: objective {certificate.objective:.8f}, relative gap {certificate.relative_gap:.1e}, "
            f"{self.n_iter_} steps, {self.seconds_:.2f} s"
        )
        if progress is not None:
            progress.say(summary)
        else:
            for caution in fit.cautions:  # with a progress display they have been said before the fit
                warnings.warn(LimitsWarning(caution), stacklevel=3)
        if fit.interruption is not None:
            raise fit.interruption
        if self.status_ != "solved" and not (self.status_ == "interrupted" and self.callback is not None):
            warnings.warn(convergence_warning(summary), stacklevel=3)
        return self

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _DEFAULT}

    def judge(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike = None,
        constraints: Any = None,
        *,
        groups: ArrayLike = None,
        order: str | None = None,
        holdout: float | None = None,
    ) -> dict[str, Any]:
        """How good fits with these parameters are on rows that they have not learned from.

        What ``argwhy fit`` prints as its verdict and ``--json`` as "judged": "rmse", "r2" and
        "regret", overall and by "dimensions", beside three "baselines": the "mean" decision,
        "ridge" regression cut to the limits, and the decision in the "nearest" situation seen. Also
        kept as ``judged_``. A fitted estimator then knows its ranges (``predict(X,
        return_range=0.9)``) and ``misfits_``, as long as this is the data it was fitted to.
        :meth:`fit` does not judge by itself, since searches and pipelines call it many times and
        judge in their own way; this fits again, to a looser tolerance.

        Parameters
        ----------
        groups:
            One value a row: rows with the same are kept aside together.
        order:
            "time" keeps the last rows aside. Rows at random if neither is given.
        holdout:
            The share of the rows that is kept aside; the command's default if not given. Fewer than
            500 rows are all kept aside in turn.
        """
        from .choosing import judge

        self.judged_ = judge(
            self, X, y, sample_weight, constraints, groups=groups, order=order, holdout=holdout
        )
        return self.judged_

    def _learned(self, model: Model) -> None:
        self._model = model
        self.n_features_in_ = model.signal_dim
        self.__dict__.pop("feature_names_in_", None)
        if model.signal_names:
            self.feature_names_in_ = np.asarray(model.signal_names, dtype=object)

    # Deciding

    @overload
    def predict(self, X: ArrayLike, constraints: Any = None, *, return_range: None = None) -> FloatArray: ...
    @overload
    def predict(
        self, X: ArrayLike, constraints: Any = None, *, return_range: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def predict(self, X: ArrayLike, constraints: Any = None, *, return_range: float | None = None) -> Any:
        """Decisions for signals ``X``, each inside its limits, the same bits alone and in a batch.

        float32 signals give float32 decisions, rounded inward where they touch a limit; within
        ``constraints``, where no rounding is safe, they give float64.

        A model that was fitted with constraints needs those of the new signals; one fitted without
        may be given some.

        With ``return_range=0.9`` the decisions and the two that the expert's own lies between with
        that probability, each dimension for itself: three arrays. They rest on rows that the model
        has not learned from, so call :meth:`judge` once after :meth:`fit`; a model of the command
        has them already.
        """
        try:
            model = self._model
            if return_range is not None:
                return model.predict_range(self._signals(X), self._limits(constraints), return_range, self._flat)
            # Nothing may stand between a plain array and Rust: one decision takes some ten
            # microseconds.
            if constraints is None and type(X) is np.ndarray and "feature_names_in_" not in self.__dict__:
                decided = model.decide(X, self._flat)
                if decided is not None:
                    return decided
            return model.predict(self._signals(X), self._limits(constraints), self._flat)
        except (AttributeError, DataError) as error:
            self._explain(error, X)

    def desired(self, X: ArrayLike) -> FloatArray:
        """g(s): what would be decided on ``X`` if nothing limited it and θ were the identity."""
        try:
            return self._model.desired(self._signals(X), self._flat)
        except (AttributeError, DataError) as error:
            self._explain(error, X)

    def objective(self, X: ArrayLike, U: ArrayLike) -> NDArray[np.float64]:
        """The learned objective uᵀθu − 2g(s)ᵀu of ``U``, each on its row of ``X`` or all on one.

        Examples
        --------
        >>> from argwhy import datasets
        >>> signals, decisions, lower, upper = datasets.make_quadrotor(200)
        >>> est = KernelInverseOptimizer(lower=lower, upper=upper).fit(signals, decisions)
        >>> chosen, hover = est.predict(signals[:1]), [[0.0, 0.0]]
        >>> bool(est.objective(signals[:1], chosen)[0] <= est.objective(signals[:1], hover)[0])
        True
        """
        try:
            return self._model.objective(self._signals(X), _arrays.decisions(U, "U"))
        except (AttributeError, DataError) as error:
            self._explain(error, X)

    def prices(self, X: ArrayLike, constraints: Any = None) -> dict[str, Any]:
        """What the limits cost that hold the decisions on ``X``.

        Arrays ``row``, ``limit`` (by its name, else ``M[3]``, ``upper[0]``) and ``price``.
        """
        try:
            return self._model.prices(self._signals(X), self._limits(constraints))
        except (AttributeError, DataError) as error:
            self._explain(error, X)

    # Why

    def explain(
        self, X: ArrayLike = None, constraints: Any = None, *, numeraire: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """What the expert weighs, over the situations ``X``: best those it was fitted to.

        A dictionary as ``argwhy explain --json`` prints it: ``signals``, the most important first,
        each with ``name``, ``importance`` (they add up to one) and ``effect`` (``at``, ``desired``,
        ``spread``, ``free``, ``decision``: accumulated local effects); ``pair``, ``trade_offs``,
        ``costs``, ``typical``, ``units``. Without ``X`` it is told over the samples that the model
        keeps: those that carry weight. ``numeraire={"power": "price"}``, a decision and the signal
        that says what a unit of it costs, gives costs in money too.
        """
        try:
            signals = None if X is None else self._signals(X)
            return _argwhy.explain(self._model, signals, self._limits(constraints), _why.pair(numeraire))
        except (AttributeError, DataError) as error:
            self._explain(error, X)

    def explain_one(
        self,
        x: ArrayLike,
        X: ArrayLike = None,
        *,
        by: float | None = None,
        constraints: Any = None,
        x_constraints: Any = None,
        numeraire: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """Why the decision on the one situation ``x`` is what it is.

        What pushed it away from a typical situation of ``X`` (Shapley values), the past decisions
        it rests on, what holds it at what price, and the smallest change of one signal that changes
        it by ``by`` or frees it. ``constraints`` belong to ``X``, ``x_constraints`` to ``x``;
        ``numeraire`` is that of :meth:`explain`.
        """
        try:
            signal = self._signals(x.to_frame().T if getattr(x, "ndim", 2) == 1 and hasattr(x, "to_frame") else x)
            signals = None if X is None else self._signals(X)
            limits, own = self._limits(constraints), self._limits(x_constraints)
            return _argwhy.explain_one(self._model, signal, signals, limits, by, own, _why.pair(numeraire))
        except (AttributeError, DataError) as error:
            self._explain(error, x)

    def familiarity(self, X: ArrayLike) -> NDArray[np.float64]:
        """How well each row of ``X`` is covered by what was seen, 0 to 100.

        The share of training situations that were stranger to the others than this one is to them.
        Below 1 the model has hardly seen anything alike.
        """
        try:
            found = _argwhy.familiarity(self._model, self._signals(X))
        except (AttributeError, DataError) as error:
            self._explain(error, X)
        if found is None:
            raise DataError("the model does not remember what it saw: it was written by an earlier version; fit it again")
        return found

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike = None, constraints: Any = None) -> float:
        """R² of the decisions on ``X``, the mean over dimensions, as scikit-learn has it."""
        predicted = _arrays.decisions(self.predict(X, constraints))
        weights = None if sample_weight is None else _arrays.vector(sample_weight, "sample_weight")
        return _argwhy.r2(predicted, _arrays.decisions(y), weights)

    def _signals(self, X: ArrayLike) -> FloatArray:
        _names.check_names(type(self).__name__, getattr(self, "feature_names_in_", None), X)
        return _arrays.matrix(X, "X")

    def _limits(self, constraints: Any) -> dict[str, FloatArray] | None:
        return as_arrays(constraints, self._model.decision_names)

    def _explain(self, error: Exception, X: ArrayLike) -> NoReturn:
        """Raises ``error``, in scikit-learn's words too where those are awaited."""
        name = type(self).__name__
        if "_model" not in self.__dict__:
            raise not_fitted(
                f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
            ) from None
        shape: tuple[int, ...] = getattr(X, "shape", ())
        if isinstance(error, DataError) and len(shape) == 2 and shape[1] != self.n_features_in_:
            raise DataError(
                f"X has {shape[1]} features, but {name} is expecting {self.n_features_in_} features as input: {error}"
            ) from None
        raise error

    # Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to the file that ``argwhy predict`` and all other commands read."""
        try:
            self._model.save(os.fspath(path))
        except AttributeError as error:
            self._explain(error, None)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> KernelInverseOptimizer:
        """An estimator with the model of a file and the parameters it was fitted with.

        Whether Python or ``argwhy fit`` wrote it.

        Decisions of one dimension come back as a 1-D array. A file has no history.
        """
        model = _argwhy.load_model(os.fspath(path))
        estimator = cls(**model.parameters)
        estimator._flat = model.decision_dim == 1
        estimator._learned(model)
        return estimator

    def export_onnx(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as an ONNX graph; see :func:`argwhy.export_onnx`."""
        from .export import export_onnx

        export_onnx(self, path)

    # What was learned

    @property
    def _fitted(self) -> Model:
        model: Model | None = self.__dict__.get("_model")
        if model is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return model

    @property
    def status_(self) -> str:
        """Why the solver stopped: solved, max_iterations, time_limit, interrupted or stalled."""
        return self._fitted.status

    @property
    def certificate_(self) -> Certificate:
        """Two values that enclose the optimum."""
        return Certificate(**self._fitted.record["certificate"])

    @property
    def regularization_(self) -> float:
        """k: what ``regularization="auto"`` came to, or what was given."""
        return float(self._fitted.record["regularization"])

    @property
    def provenance_(self) -> dict[str, Any]:
        """How the model came about, as far as it knows.

        ``source`` (a file's name), ``rows`` (a hash of the rows it learned from), ``command`` and
        ``versions``.
        """
        return self._fitted.provenance

    @property
    def units_(self) -> dict[str, str]:
        """Units by the names of signals, decisions and limits, those that are known."""
        return self._fitted.units

    @property
    def decision_names_(self) -> list[str] | None:
        """What decisions are called, where ``y`` or the file said so."""
        return self._fitted.decision_names or None

    @property
    def coefficients_(self) -> NDArray[np.float64] | None:
        """α of the samples that carry weight, one row each; None with ``primal=True``."""
        return self._fitted.coefficients

    @property
    def support_(self) -> NDArray[np.int64] | None:
        """The rows of the data they belong to; None with ``primal=True``."""
        return self._fitted.support_rows

    @property
    def support_signals_(self) -> NDArray[np.float64] | None:
        """Their signals; None with ``primal=True``."""
        return self._fitted.support_signals

    @property
    def n_support_(self) -> int:
        """How many they are."""
        return self._fitted.n_support

    @property
    def theta_uu_(self) -> NDArray[np.float64]:
        """θ_uu, decision_dim × decision_dim: the identity unless it was learned."""
        return self._fitted.theta_uu

    @property
    def weights_(self) -> NDArray[np.float64] | None:
        """Weights of the features (``primal=True``), by :attr:`weight_names_`; else None."""
        return self._fitted.weights

    @property
    def weight_names_(self) -> list[str]:
        """What rows of :attr:`weights_` belong to: ``1``, ``price``, ``price*load``, ``intercept``.

        Signals without names are ``s0``, ``s1``.
        """
        return self._fitted.weight_names

    @property
    def prices_(self) -> dict[str, Any] | None:
        """What the limits of the training samples cost, as :meth:`prices` gives them.

        None with ``primal=True``, which keeps no samples.
        """
        return self._fitted.training_prices

    @property
    def misfits_(self) -> list[dict[str, Any]]:
        """The rows that the model explains worst without having learned from them, worst first.

        Each with "row", "dimension" (the one it fits worst in), "decision" (the expert's),
        "expected" (the model's) and "times_usual", how far these are apart in units of the usual
        error. By leaving out every row where there are not too many, else of the rows kept aside:
        after :meth:`judge`, or of a model that the command fitted.
        """
        found = self._fitted.misfits
        if found is None:
            raise DataError(
                "rows that do not fit were not looked for: `fit` does not by itself; call judge(X, y) with the data it was fitted to"
            )
        rows: list[dict[str, Any]] = found["rows"]
        return rows

    @property
    def n_iter_(self) -> int:
        """Steps of the solver."""
        return int(self._fitted.record["iterations"])

    @property
    def kernel_products_(self) -> int:
        """Products with the kernel matrix."""
        return int(self._fitted.record["kernel_products"])

    @property
    def seconds_(self) -> float:
        """Seconds from features to certificate."""
        return float(self._fitted.record["seconds"])

    @property
    def peak_memory_bytes_(self) -> int | None:
        """The process's highest memory use up to the end of the fit, where the system tells."""
        peak: int | None = self._fitted.record["peak_memory_bytes"]
        return peak

    # Pictures

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draws the relative gap over time; returns matplotlib's axes."""
        if "history_" not in self.__dict__:
            raise not_fitted("plot_convergence shows the history of a fit; a model from a file has none")
        return _plots.convergence(self.history_, self.tol, ax)

    def plot_decisions(self, X: ArrayLike, y: ArrayLike, constraints: Any = None, ax: Any = None) -> Any:
        """Draws the decisions on ``X`` against the expert's ``y``, a dimension each.

        Returns matplotlib's axes.
        """
        return _plots.decisions(_arrays.decisions(y), _arrays.decisions(self.predict(X, constraints)), ax)

    def plot_effects(self, X: ArrayLike = None, constraints: Any = None, *, signals: Any = None, axes: Any = None) -> Any:
        """Draws what signals do to what is desired (lines) and decided (dashed), with the spread.

        ``signals`` are names, or how many of the most important; six if not given. Returns
        matplotlib's axes.
        """
        return _why.effects(self.explain(X, constraints), signals, axes)

    def _repr_html_(self) -> str:
        return _why.summary(self)

    # scikit-learn

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        return _sklearn.regressor_tags()

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's meta-estimators pass on to ``fit``, ``predict`` and ``score``."""
        return _sklearn.metadata_routing(self)

    def set_fit_request(self, **asked: bool | str | None) -> KernelInverseOptimizer:
        """Asks meta-estimators for ``sample_weight``, ``constraints`` or ``rows``, as others do."""
        _sklearn.set_request(self, "fit", asked)
        return self

    def set_predict_request(self, **asked: bool | str | None) -> KernelInverseOptimizer:
        """Asks meta-estimators for ``constraints``."""
        _sklearn.set_request(self, "predict", asked)
        return self

    def set_score_request(self, **asked: bool | str | None) -> KernelInverseOptimizer:
        """Asks meta-estimators for ``sample_weight`` or ``constraints``."""
        _sklearn.set_request(self, "score", asked)
        return self
