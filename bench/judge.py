"""One fit, and what is true about it: does the certificate hold, do the decisions?

``judge(problem)`` fits by the Python package (a path by the command) and compares all it claims
with ``exact``. A claim that fails is a fault with a class of its own; where a fit stops short
although a plain factorisation in double precision would have done, it is weak, which is no fault.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from draw import box_of, n_features, sets_of
from exact import (
    ONE, ZERO, Group, Learned, Metric, Unsolved, arb, arb_mat, balls, column, ctx, dot, entries,
    groups_of, kernel_matrix, restricted,
)

ULP = 2.0**-52
"""Spacing of doubles, relative."""
FLOOR = 1e-12
"""Share of what can be explained below which nothing is asked for."""
ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Fitted:
    """What came back from one fit."""

    k: float
    status: str
    certificate: dict
    kernel: dict
    coefficients: np.ndarray
    weights: np.ndarray | None
    theta: np.ndarray
    features: np.ndarray
    new_features: np.ndarray
    predicted: np.ndarray
    new_predicted: np.ndarray
    desired: np.ndarray
    learned: bool = False


@dataclass
class Verdict:
    """What was found about one problem."""

    seed: int
    tags: list
    outcome: str = ""
    faults: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def fault(self, name, detail):
        self.faults.append((name, detail))

    def note(self, name, detail=""):
        self.notes.append((name, detail))


# Fitting


def fit(problem):
    """All fits of a problem: one, or those of its path."""
    if problem.path:
        return fit_path(problem)
    from argwhy import KernelInverseOptimizer

    estimator = KernelInverseOptimizer(**problem.parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(
            problem.signals, problem.decisions, sample_weight=problem.weights,
            constraints=problem.constraints,
        )
    return [collect(problem, estimator, problem.parameters["regularization"])]


def collect(problem, estimator, k):
    """The numbers of a fitted estimator."""
    model = estimator._model
    n, dim = problem.decisions.shape
    coefficients = np.zeros((n, dim))
    if model.coefficients is not None:
        coefficients[model.support_rows] = model.coefficients
    limits = problem.constraints

    def decide(signals, rows):
        own = None if limits is None else constraints_at(limits, rows)
        return np.asarray(estimator.predict(signals, own)).reshape(len(signals), dim)

    new_rows = [i % n for i in range(len(problem.new_signals))]
    return Fitted(
        k=k,
        status=model.status,
        certificate=model.record["certificate"],
        kernel=model.kernel,
        coefficients=coefficients,
        weights=model.weights,
        theta=model.theta_uu,
        features=model.transform(problem.signals),
        new_features=model.transform(problem.new_signals),
        predicted=decide(problem.signals, list(range(n))),
        new_predicted=decide(problem.new_signals, new_rows),
        desired=np.asarray(estimator.desired(problem.signals)).reshape(n, dim),
        learned=problem.parameters.get("theta") == "learn",
    )


SHARED_AXES = {"M": 2, "W": 1, "M_eq": 2, "W_eq": 1, "lower": 1, "upper": 1}


def constraints_at(constraints, rows):
    """Constraints of the listed samples."""
    picked = {}
    for name, part in constraints.items():
        part = np.asarray(part)
        own = part.ndim > SHARED_AXES[name] and len(part) > 1
        picked[name] = part[rows] if own else part
    return picked


UNTRUE = ["positive semidefinite", "warm-up"]
"""Words of refusals that are never right here: these kernels are, nobody asked for a warm-up."""


class Refused(ValueError):
    """The command's refusal."""


def command():
    """The `argwhy` command: ARGWHY_COMMAND, or that of the debug build."""
    return os.environ.get("ARGWHY_COMMAND", str(ROOT / "target" / "debug" / "argwhy"))


def fit_path(problem):
    """By the command: paths are its own."""
    from argwhy import KernelInverseOptimizer

    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder, "data.npz"), Path(folder, "model.argwhy")
        options = for_command(problem, data)
        done = subprocess.run(
            [command(), "fit", str(data), "-o", str(model), "--quiet", "--json", *options],
            capture_output=True, text=True, timeout=120,
        )
        if done.returncode not in (0, 1):
            if done.returncode == 2:
                raise Refused(done.stderr.strip())
            raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}")
        fits = []
        said = json.loads(done.stdout)
        for said in said.get("path", [said]):
            estimator = KernelInverseOptimizer.load(said["model"])
            fits.append(collect(problem, estimator, estimator.regularization))
        return fits


def for_command(problem, data):
    """Writes the arrays of a problem to ``data`` (npz); the options of `argwhy fit` for it."""
    arrays = {"signals": problem.signals, "decisions": problem.decisions}
    arrays.update(problem.constraints or {})
    if problem.weights is not None:
        arrays["weights"] = problem.weights
    np.savez(data, **arrays)
    settings = {name.replace("_", "-"): value for name, value in problem.parameters.items()}
    if problem.path:
        del settings["regularization"]
        settings["path"] = ",".join(repr(k) for k in problem.path)
    options = [f"--{name}={shown(value)}" for name, value in settings.items()
               if value is not False and value is not True]
    options += [f"--{name}" for name, value in settings.items() if value is True]
    if problem.constraints:
        options.append("--constraints")
    if problem.weights is not None:
        options.append("--weights=weights")
    return options


def shown(value):
    if isinstance(value, (tuple, list)):
        return ",".join(repr(float(v)) for v in value)
    return repr(value) if isinstance(value, float) else str(value)


# Judging


def judge(problem):
    """Fits and judges; never raises for what argwhy does."""
    verdict = Verdict(problem.seed, problem.tags)
    try:
        fits = fit(problem)
    except (ValueError, OverflowError) as error:
        verdict.outcome = "refused"
        verdict.note("refused", str(error))
        if any(words in str(error) for words in UNTRUE) and " is inf" not in str(error):
            verdict.fault("false refusal", str(error))
        return verdict
    except (Exception, subprocess.TimeoutExpired) as error:  # noqa: BLE001
        verdict.outcome = "broken"
        verdict.fault("exception", f"{type(error).__name__}: {error}")
        return verdict
    for fitted in fits:
        verdict.outcome = fitted.status
        if finite(fitted, verdict):
            judge_fit(problem, fitted, verdict)
    return verdict


def finite(fitted, verdict):
    """Whether all numbers are."""
    parts = {
        "coefficients": fitted.coefficients, "predictions": fitted.predicted,
        "new predictions": fitted.new_predicted, "certificate": list(fitted.certificate.values()),
        "features": fitted.features, "theta": fitted.theta,
    }
    for name, part in parts.items():
        if not np.all(np.isfinite(np.asarray(part, dtype=float))):
            verdict.fault("not finite", name)
            return False
    return True


def bits_for(fitted, weights, total):
    """Digits enough for the condition of the systems."""
    ctx.prec = 64
    largest = max(
        (abs(v.mid()) for v in entries(
            kernel_diagonal(fitted.kernel, fitted.features))), default=ONE)
    ratio = largest * max(weights) / (fitted.k * total)
    # As man·2^exp, for the ratio may be far outside the range of doubles.
    extra = 0
    if ratio > 1:
        extra = int(float(ratio.log().mid()) / math.log(2)) + 1
    return min(320 + 2 * extra, 8000)


def kernel_diagonal(kernel, features):
    from exact import kernel_value

    rows = [[arb(float(v)) for v in row] for row in features]
    return column([kernel_value(kernel, row, row) for row in rows])


def judge_fit(problem, fitted, verdict):
    """All claims of one fit, with more digits where the first do not decide."""
    kept = np.ones(len(problem.decisions), bool) if problem.weights is None else problem.weights > 0
    given = np.ones(len(kept)) if problem.weights is None else problem.weights
    ctx.prec = 3000
    weights = [arb(float(w)) for w in given[kept]]
    bits = bits_for(fitted, weights, sum(weights, ZERO))
    for attempt in range(3):
        ctx.prec = bits * 2**attempt
        try:
            exact = Exact(problem, fitted, kept, weights)
        except Unsolved as error:
            if attempt == 2:
                verdict.note("undecided", str(error))
                return
            continue
        if exact.is_sharp():
            break
    else:
        verdict.note("undecided", f"own gap {short(exact.upper - exact.lower)}")
    exact.check(verdict)


class Exact:
    """A problem with its optimum, and the fit evaluated beside it."""

    def __init__(self, problem, fitted, kept, weights):
        self.problem, self.fitted, self.kept = problem, fitted, kept
        self.k = arb(fitted.k)
        n, dim = int(kept.sum()), problem.decisions.shape[1]
        self.gram = kernel_matrix(fitted.kernel, fitted.features[kept], fitted.features[kept])
        self.decisions = [[arb(float(v)) for v in row] for row in problem.decisions[kept]]
        every = sets_of(problem.constraints, problem.parameters, len(kept), dim)
        self.every = every
        self.sets = [s for s, keep in zip(every, kept) if keep]
        alpha = fitted.coefficients[kept]
        self.alpha = [[arb(float(v)) for v in alpha[:, j]] for j in range(dim)]
        self.optimal = [[ZERO] * n for _ in range(dim)]
        if fitted.learned:
            self._learned(weights, dim)
        else:
            self._groups(weights, dim)
        self.upper = sum((part["upper"] for part in self.parts), ZERO)
        self.lower = sum((part["lower"] for part in self.parts), ZERO)
        self.primal = sum((part["primal"] for part in self.parts), ZERO)
        self.zero = sum((part["zero"] for part in self.parts), ZERO)

    def _groups(self, weights, dim):
        self.parts = []
        for dims in groups_of(self.sets, dim):
            identity = balls(np.eye(len(dims)))
            sets = [restricted(s, dims) for s in self.sets]
            rows = [[u[j] for j in dims] for u in self.decisions]
            group = Group(self.gram, rows, sets, weights, self.k, Metric(identity))
            start = [self.alpha[j] for j in dims]
            found = group.optimum(start)
            for j, part in zip(dims, found.coefficients):
                self.optimal[j] = part
            primal = self._plain(group, dims) if self.plain else group.primal(start)
            self.parts.append({
                "dims": dims, "group": group, "primal": primal, "upper": found.upper,
                "lower": found.lower, "zero": group.explainable(),
                "off": off_set(group, found.coefficients),
            })

    @property
    def plain(self):
        return self.fitted.weights is not None

    def _features(self, features):
        """phi of a plain model, a one added for the intercept."""
        phi = balls(features)
        if self.fitted.weights.shape[0] == features.shape[1]:
            return phi
        rows = [[*row, ONE] for row in phi.table()]
        return arb_mat(rows)

    def _plain(self, group, dims):
        """P of explicit weights: k|V|^2 in place of k|a|_K^2."""
        columns = [balls(self.fitted.weights[:, j : j + 1]) for j in dims]
        phi = self._features(self.fitted.features[self.kept])
        desired = [entries(phi * v) for v in columns]
        none = [[ZERO] * group.n for _ in dims]
        square = sum((dot(entries(v), entries(v)) for v in columns), ZERO)
        return self.k * square + group.primal(none, desired)

    def _learned(self, weights, dim):
        sets = [restricted(s, list(range(dim))) for s in self.sets]
        problem = Learned(self.gram, self.decisions, sets, weights, self.k)
        theta = balls(self.fitted.theta)
        primal = problem.primal(theta, self.alpha)
        # What proves the claimed gap.
        self.needed = primal - arb(self.fitted.certificate["gap"]) * (1 + arb(1e-10))
        upper, lower, self.theta, self.optimal = problem.optimum(theta, self.alpha, self.needed)
        group = problem.group(balls(np.eye(dim)))
        self.parts = [{
            "dims": list(range(dim)), "group": problem.group(theta), "primal": primal,
            "upper": upper, "lower": lower, "zero": group.explainable() + self.k * dim,
            "off": off_set(problem.group(theta), self.optimal),
        }]

    def is_sharp(self):
        """Whether the optimum is known to far more digits than the certificate claims."""
        own = (self.upper - self.lower).upper()
        scale = abs(self.upper).max(self.zero).mid()
        if self.fitted.learned and self.lower >= self.needed:
            return True
        return own <= scale * arb(10) ** -35 or own <= arb(self.fitted.certificate["gap"]) * arb(
            10) ** -12

    def check(self, verdict):
        self.check_gap(verdict)
        self.check_enclosure(verdict)
        self.check_status(verdict)
        self.check_decisions(verdict)
        if verdict.faults:
            verdict.note("cause", self.cause())

    def cause(self):
        """What a fault probably comes from."""
        if float(np.abs(self.problem.decisions).max()) < 1e-140:
            return "underflow of squares"
        error = self.kernel_error()
        if error > 1e-13:
            return f"kernel values, off by {error:.1e}"
        return f"sums; kernel values are right to {error:.1e}"

    def kernel_error(self):
        """How far g of the stored coefficients is off, relative to what it adds up."""
        if self.plain:
            return 0.0
        worst = 0.0
        for j, part in enumerate(self.alpha):
            exact = entries(self.gram * column(part))
            sizes = entries(arb_mat([[abs(v) for v in row] for row in self.gram.table()])
                            * column([abs(a) for a in part]))
            for found, g, size in zip(self.fitted.desired[self.kept, j], exact, sizes):
                if size > arb(1e-280):
                    worst = max(worst, float((abs(arb(float(found)) - g) / size).mid()))
        return worst

    # (a)
    def check_gap(self, verdict):
        claimed = self.fitted.certificate["gap"]
        true = self.primal - self.upper
        if true > arb(claimed) * (1 + arb(1e-9)):
            scale = abs(self.primal).max(abs(self.upper)).max(FLOOR * self.zero).mid()
            # Both are false; what is lost in the last digits is told apart from what is wrong.
            last = true - arb(claimed) <= arb(1e-13) * scale
            verdict.fault("gap, last digits" if last else "gap", f"claimed {claimed:.3e}, true {short(true)}, P {short(self.primal)}, "
                          f"P* {short(self.upper)}, true relative {short(true / scale)}, "
                          f"{self.fitted.status}")
        elif self.primal - self.lower > arb(claimed) * (1 + arb(1e-9)):
            if not self.is_sharp() or self.fitted.learned:
                verdict.note("undecided gap", short(self.primal - self.lower))
            elif self.primal - self.lower > self.zero * arb(10) ** -30:
                verdict.note("undecided gap", short(self.primal - self.lower))

    # (b)
    def check_enclosure(self, verdict):
        said = self.fitted.certificate
        # P in doubles is rounded; argwhy widens its bounds from where that could be seen in nine
        # digits.
        slack = arb(1e-9) * max(abs(arb(said["primal"])), abs(arb(said["dual"])), self.zero.mid())
        slack += sum((part["off"] for part in self.parts), ZERO)
        if arb(said["dual"]) > self.upper + slack:
            verdict.fault("dual", f"{said['dual']:.17g} above P* {long(self.upper)}, P "
                          f"{long(self.primal)}")
        if arb(said["primal"]) < self.lower - slack:
            verdict.fault("primal", f"{said['primal']:.17g} below P* {long(self.lower)}, P "
                          f"{long(self.primal)}")
        if said["gap"] < 0:
            verdict.fault("negative gap", f"{said['gap']}")

    def mean_square(self, dims):
        """Of the decisions of some dimensions, with their weights."""
        problem = self.problem
        weights = np.ones(len(problem.decisions)) if problem.weights is None else problem.weights
        weights = weights / weights.max()
        squares = sum((arb(float(w)) * arb(float(u)) ** 2
                       for w, row in zip(weights, problem.decisions) for u in row[dims]), ZERO)
        return squares / sum((arb(float(w)) for w in weights), ZERO)

    # (c)
    def check_status(self, verdict):
        tol = arb(self.problem.parameters["tol"])
        missed = []
        for part in self.parts:
            scale = abs(part["primal"]).max(abs(part["upper"])).max(FLOOR * part["zero"])
            # Where limits alone explain all but the last places, those of the decisions are what is
            # left.
            square = self.mean_square(part["dims"])
            if abs(part["zero"]) <= arb(1e-14) * square:
                scale = scale.max(square)
            true = part["primal"] - part["upper"]
            if true > tol * scale * (1 + arb(1e-9)):
                missed.append((part, true, scale))
        if self.fitted.status == "solved":
            for part, true, scale in missed:
                verdict.fault("not solved", f"dimensions {part['dims']}: gap {short(true)} of "
                              f"{short(scale)}, P(0) {short(part['zero'])}")
            return
        if self.primal > self.zero * (1 + arb(1e-9)):
            verdict.note("worse than nothing", f"{self.fitted.status}: P {short(self.primal)}, "
                         f"with no coefficients {short(self.zero)}")
        if not missed:
            verdict.note("modest", f"{self.fitted.status} though within the tolerance; claimed "
                         f"{self.fitted.certificate['relative_gap']:.1e}")
        elif not self.fitted.learned and self.fitted.status != "time_limit":
            self.check_weak(verdict)

    def check_weak(self, verdict):
        """Whether one factorisation in double precision on the right faces would have done."""
        for part in self.parts:
            columns = self.in_doubles(part)
            if columns is None:
                return
            true = part["group"].primal(columns) - part["upper"]
            scale = abs(part["upper"]).max(FLOOR * part["zero"])
            if not true <= arb(self.problem.parameters["tol"]) * scale:
                return
        verdict.note("weak", f"{self.fitted.status}, claimed "
                     f"{self.fitted.certificate['relative_gap']:.1e}; N {len(self.decisions)}, "
                     f"k {self.fitted.k:.1e}")

    def in_doubles(self, part):
        """Coefficients by a double-precision factorisation with a step of refinement.

        On the faces of the optimum X_i(g) = D_i g + c_i, and ridge_i a_i + D_i (Ka)_i = u_i - c_i
        is linear.
        """
        group, dims = part["group"], part["dims"]
        n, dim = group.n, len(dims)
        desired = [entries(self.gram.mid() * column([a.mid() for a in self.optimal[j]]))
                   for j in dims]
        best, faces = group.decide(desired)
        if group.single:
            slopes = [arb_mat([[arb(side == 0)]]) for side in faces]
        else:
            slopes = [s.derivative(face) for s, face in zip(group.sets, faces)]
        right = []
        for i, (u, y, slope) in enumerate(zip(group.decisions, best, slopes)):
            image = entries(slope * column([g[i] for g in desired]))
            right.append([float((a - b + c).mid()) for a, b, c in zip(u, y, image)])
        gram = np.array([float(v.mid()) for v in entries(self.gram)]).reshape(n, n)
        ridge = np.array([float(v) for v in group.ridges])
        face = np.array([[[float(v.mid()) for v in row] for row in s.table()] for s in slopes])
        with np.errstate(all="ignore"):
            system = np.einsum("iab,ij->iajb", face, gram).reshape(n * dim, n * dim)
            system = system + np.diag(np.repeat(ridge, dim))
            right = np.array(right).ravel()
            try:
                alpha = np.linalg.solve(system, right)
                alpha += np.linalg.solve(system, right - system @ alpha)
            except np.linalg.LinAlgError:
                return None
        if not np.all(np.isfinite(alpha)):
            return None
        return [[arb(float(a)) for a in alpha[at::dim]] for at in range(dim)]

    # (d)
    def check_decisions(self, verdict):
        n = len(self.problem.decisions)
        rows = [i % n for i in range(len(self.problem.new_signals))]
        self._decisions(verdict, "training", self.fitted.features, self.fitted.predicted,
                        self.every)
        self._decisions(verdict, "new", self.fitted.new_features, self.fitted.new_predicted,
                        [self.every[i] for i in rows])

    def _decisions(self, verdict, name, features, predicted, sets):
        cross = kernel_matrix(self.fitted.kernel, features, self.fitted.features[self.kept])
        own = entries(kernel_diagonal(self.fitted.kernel, features))
        gap = arb(self.fitted.certificate["gap"]).max(ZERO)
        for i, (row, limits) in enumerate(zip(cross.table(), sets)):
            outside = membership(predicted[i], limits)
            if outside:
                verdict.fault("outside", f"{name} row {i}: {outside}")
                return
        if self.fitted.learned:
            return self._learned_decisions(verdict, name, cross, features, predicted, sets)
        # |u - u*| <= sqrt(k(s,s) gap / k) holds group by group, with the gap of all.
        for part in self.parts:
            dims = part["dims"]
            exact = decide_all(cross, [self.optimal[j] for j in dims],
                               [restricted(s, dims) for s in sets], Metric(balls(np.eye(len(dims)))))
            for i, ((u, leverage), row) in enumerate(zip(exact, cross.table())):
                found = [arb(float(predicted[i, j])) for j in dims]
                off = sum(((a - b) ** 2 for a, b in zip(u, found)), ZERO).sqrt()
                reach = sum((abs(v) for v in found), ZERO)
                sums = sum((self._sum(row, features[i], j) for j in dims), ZERO)
                allowed = (own[i] * gap / self.k).max(ZERO).sqrt() + arb(1e-12) * sums
                allowed += self._least(own[i], dims)
                allowed += 16 * arb(ULP) * reach * arb(leverage)
                if off > allowed * (1 + arb(1e-9)):
                    verdict.fault("prediction", f"{name} row {i}, dimensions {dims}: "
                                  f"{[float(v) for v in found]} is off by {short(off)}, allowed "
                                  f"{short(allowed)}, sum of |k a| {short(sums)}")
                    return

    def _sum(self, row, features, j):
        """What the sum of a desired decision adds up, by absolute values."""
        if self.plain:
            phi = self._features(np.atleast_2d(features))
            return dot([abs(v) for v in entries(phi)],
                       [abs(arb(float(v))) for v in self.fitted.weights[:, j]])
        return dot([abs(v) for v in row], [abs(a) for a in self.alpha[j]])

    def _terms(self, own, n_features, dims):
        """What the rounding of sums inside kernel values may add: kernels of inner products are
        right to units of sqrt(k(s,s) k(s_i,s_i)), not of their own."""
        pulls = sum((self.gram[i, i].sqrt() * abs(a) for j in dims
                     for i, a in enumerate(self.alpha[j])), ZERO)
        return (n_features + 16) * arb(ULP) * own.sqrt() * pulls

    def _least(self, own, dims):
        """What kernel values that underflow may add."""
        largest = max((abs(v.mid()) for row in (self.gram.table()) for v in row), default=ONE)
        pulls = sum((abs(a) for j in dims for a in self.alpha[j]), ZERO)
        return arb(1e-285) * ((own * largest).sqrt() + 1) * pulls + arb(1e-305)

    def _learned_decisions(self, verdict, name, cross, features, predicted, sets):
        """By the stored theta and coefficients: the same decision, to rounding."""
        dims = list(range(predicted.shape[1]))
        metric = Metric(balls(self.fitted.theta))
        exact = decide_all(cross, self.alpha, [restricted(s, dims) for s in sets], metric)
        largest = arb(float(np.abs(self.fitted.theta).max()))
        own = entries(kernel_diagonal(self.fitted.kernel, features))
        for i, ((u, leverage), row) in enumerate(zip(exact, cross.table())):
            found = [arb(float(v)) for v in predicted[i]]
            off = sum(((a - b) ** 2 for a, b in zip(u, found)), ZERO).sqrt()
            sums = sum((self._sum(row, None, j) for j in dims), ZERO)
            reach = sum((abs(v) for v in found), ZERO)
            allowed = arb(1e-12) * (sums + largest * reach)
            allowed += self._least(own[i], dims) + self._terms(own[i], features.shape[1], dims)
            allowed += 16 * arb(ULP) * reach * arb(leverage)
            if off > allowed:
                verdict.fault("prediction", f"{name} row {i} with theta: "
                              f"{[float(v) for v in found]} is off by {short(off)}, allowed "
                              f"{short(allowed)}")
                return


def off_set(group, columns):
    """What decisions that are off their set by rounding (kept, and no double may lie on a row) can
    make of P: they and their nearest point in the set are one decision in two roundings."""
    if group.single and all(s.lower is None or s.upper is None or s.lower < s.upper
                            for s in group.sets):
        return ZERO
    none = [[ZERO] * group.n for _ in range(group.dim)]
    total = ZERO
    desired = group.across(group.desired(columns))
    for share, u, x, g in zip(group.shares, group.decisions, group.responses(none), desired):
        off = sum((abs(a - b) for a, b in zip(u, x)), ZERO)
        reach = sum((abs(a) + abs(b) for a, b in zip(u, g)), ZERO)
        # Further off than rounding it is no excuse.
        if off <= arb(1e-13) * sum((abs(a) for a in u), ZERO):
            total += 4 * share * off * reach
    return total.mid()


def decide_all(cross, columns, sets, metric):
    """Exact decisions on kernel rows, each with the factor by which the rows that hold it magnify
    what is rounded: nearly dependent ones meet in a point that no double arithmetic finds well."""
    from exact import Interval, Polyhedron

    desired = zip(*(entries(cross.mid() * column([a.mid() for a in part])) for part in columns))
    found = []
    for (rows, bounds, equal), g in zip(sets, desired):
        g = [v.mid() for v in g]
        if len(g) == 1:
            theta = entries(metric.theta)[0]
            found.append(([Interval(rows, bounds, equal).nearest(g[0] / theta)], 1.0))
        else:
            best, working = Polyhedron(rows, bounds, equal, metric).best(g)
            found.append((best, leverage([rows[r] for r in working])))
    return found


def leverage(rows):
    """One over the least singular value of these rows, each of length one; one without any."""
    if not rows:
        return 1.0
    lengths = [dot(row, row).sqrt() for row in rows]
    units = [[float((a / length).mid()) for a in row] for row, length in zip(rows, lengths)]
    least = np.linalg.svd(np.array(units), compute_uv=False)[-1]
    return len(rows) / max(float(least), 1e-16)


def membership(decision, limits):
    """What a decision violates: a limit of one dimension by anything, a row by 8 ulps of terms."""
    u = [arb(float(v)) for v in decision]
    for at, (row, bound) in enumerate(zip(limits.rows, limits.bounds)):
        if not np.isfinite(bound):
            continue
        terms = [arb(float(a)) * v for a, v in zip(row, u)]
        over = sum(terms, ZERO) - arb(float(bound))
        if at < limits.equal:
            over = abs(over)
        # A bare limit (one entry, of size one) is exact; general rows are not.
        bare = at >= limits.equal and sorted(abs(float(a)) for a in row)[-1] == 1.0 and sum(
            a != 0 for a in row) == 1
        size = sum((abs(t) for t in terms), abs(arb(float(bound))))
        # Below the smallest normal number there are no ulps.
        if over > (ZERO if bare else 8 * arb(ULP) * size + arb(1e-300)):
            ulps = float((over / size / arb(ULP)).mid()) if size > 0 else 0.0
            return f"row {at} of {len(limits.rows)} by {short(over)}, {ulps:.1f} ulps of its terms"
    return None


def long(value):
    """A ball in the digits of a double."""
    return value.mid().str(17, radius=False)


def short(value):
    """A ball in a few digits."""
    return value.mid().str(6, radius=False)
