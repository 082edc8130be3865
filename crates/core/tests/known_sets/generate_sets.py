"""Small problems with general sets, weights or a fixed theta_uu; optima from an independent oracle.

    python generate_sets.py [name ...]          (environment: ../known_optimum/requirements.txt)

writes one folder per problem next to this file, with

    problem.json   as in ../known_optimum, and where the problem has them
                   lower, upper                 n or N x n, null: no limit
                   matrix, bound                m x n or N x m x n, m or N x m (null: no limit):
                                                matrix u <= bound
                   equal_matrix, equal_bound    the same with =
                   weights                      N, sample i counts as weights[i] samples
                   theta_uu                     n x n, fixed; the identity where absent
    answer.json    objective      minimum of the semidefinite program, by Clarabel
                   reduced        minimum of (Q), by an active-set method (nonnegative least
                                  squares), polished
                   responses      x_i of the semidefinite program, N x n
                   accuracy       of `objective`: its distance from `reduced` and the certificate
                                  of `reduced`, relative
                   reduced_accuracy        certificate of `reduced` alone, relative: a proven
                                           bound on its error
                   responses_accuracy      largest distance of `responses` from those of `reduced`
                   solver, status, cvxpy   what computed it

The oracle is CVXPY with Clarabel on the paper's semidefinite program with all its matrix variables
Lambda_i, for weights on the rows really repeated; equalities are two inequalities each. For a fixed
theta_uu = T the program follows from [KIO 4] as [KIO 6] does, except that theta_uu is no longer a
variable: of the Lagrangian in the proof of Theorem 1 the terms k |T|^2 + 1/N sum u_i'T u_i are
constants, its terms in P are gone, stationarity in theta_su, lambda_i and gamma_i is as before (2 N
Gamma_i feasible, lower right entry 1/(4N)), and what couples the matrix multiplier to theta_uu,
-<Lambda_i, T>, stays in the objective. The dual, its sign turned and without the constants, is

    min   1/k sum_ij kappa_ij (u_i/N - 2 Gamma_i)'(u_j/N - 2 Gamma_j) + sum_i Tr(T Lambda_i)
    s.t.  W_i/N - 2 M_i Gamma_i >= 0
          [ Lambda_i  Gamma_i ; Gamma_i'  1/(4N) ] positive semidefinite

which is [KIO 9] for T = I, and equals (Q) with |x_i|^2 replaced by x_i'T x_i.
"""

import math
import pathlib
import sys
import warnings

import cvxpy as cp
import numpy as np
import scipy
from scipy.optimize import nnls

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "known_optimum"))

import generate as base  # noqa: E402

CLARABEL = base.CLARABEL
MAX_DISAGREEMENT = 1e-8  # of the two objective values, relative
MAX_RESIDUAL = 1e-5  # of x_i = X_i(g(s_i)), absolute
INF = math.inf

# -------------------------------------------------------------------------------------------------
# One set


def part(problem, key, i, axes):
    """Sample i's part of an array that is for all samples (`axes` axes) or one a sample."""
    if problem.get(key) is None:
        return None
    value = np.asarray(problem[key], dtype=float)
    return value if value.ndim == axes else value[i]


def polyhedron(problem, i):
    """Sample i's set as M u <= W, as in the paper: equalities twice, infinite limits not at all."""
    n = problem["decisions"].shape[1]
    rows, bounds = [np.zeros((0, n))], [np.zeros(0)]
    for matrix, bound in (("equal_matrix", "equal_bound"), ("matrix", "bound")):
        m = part(problem, matrix, i, 2)
        if m is not None:
            w = part(problem, bound, i, 1)
            rows.append(m)
            bounds.append(w)
            if matrix == "equal_matrix":
                rows.append(-m)
                bounds.append(-w)
    for key, sign in (("lower", -1.0), ("upper", 1.0)):
        limit = part(problem, key, i, 1)
        if limit is not None:
            rows.append(sign * np.eye(n))
            bounds.append(sign * limit)
    rows, bounds = np.vstack(rows), np.concatenate(bounds)
    finite = np.isfinite(bounds)
    return rows[finite], bounds[finite]


def least_distance(matrix, bound, theta, pull):
    """argmin u'Tu - 2 pull'u over matrix u <= bound, and its multipliers.

    By Lawson and Hanson's least distance programming.

    With T = LL', z = L'u - L^-1 pull is the shortest with -G z >= -h, G = matrix L^-T, h = bound -
    matrix T^-1 pull; nonnegative least squares finds the active rows, and the equations of those
    rows give the point to the last digits.
    """
    free = np.linalg.solve(theta, pull)
    if len(bound) == 0:
        return free, np.zeros(0)
    factor = np.linalg.cholesky(theta)
    lengths = np.maximum(np.linalg.norm(matrix, axis=1), 1e-300)
    unit, limit = matrix / lengths[:, None], bound / lengths
    g = -np.linalg.solve(factor, unit.T).T
    h = -(limit - unit @ free)
    if np.all(h <= 0):
        return free, np.zeros(len(bound))
    scale = max(1.0, np.max(np.abs(h)))
    stacked = np.vstack([g.T, h[None, :] / scale])
    target = np.zeros(len(stacked))
    target[-1] = 1.0
    weights, _ = nnls(stacked, target, maxiter=100 * len(bound))
    residual = stacked @ weights - target
    best = free + np.linalg.solve(factor.T, -residual[:-1] / residual[-1] * scale)
    active = np.flatnonzero(weights > 1e-12 * weights.max())
    if len(active) == 0:  # beyond its limits by rounding only
        return free, np.zeros(len(bound))
    # Equations of the active rows: T u + A'v = pull, A u = limit.
    a = unit[active]
    n, m = len(pull), len(active)
    system = np.block([[theta, a.T], [a, np.zeros((m, m))]])
    polished = np.linalg.lstsq(system, np.concatenate([pull, limit[active]]), rcond=None)[0]
    u, v = polished[:n], polished[n:]
    multipliers = np.zeros(len(bound))
    if np.max(unit @ u - limit) <= 1e-10 * scale and np.min(v) >= -1e-9 * max(1.0, np.max(np.abs(v))):
        multipliers[active] = 2 * v / lengths[active]
        return u, multipliers
    return best, None


def theta_of(problem):
    return np.asarray(problem.get("theta_uu", np.eye(problem["decisions"].shape[1])), dtype=float)


# -------------------------------------------------------------------------------------------------
# The two routes


def repeated(problem):
    """The sample each row came from, with every sample as often as its weight says."""
    n_samples = len(problem["decisions"])
    weights = np.asarray(problem.get("weights", np.ones(n_samples)))
    origin = np.repeat(np.arange(n_samples), weights.astype(int))
    return origin


def solve_semidefinite_program(problem):
    """The program above, on repeated rows where there are weights: value, responses, status."""
    origin = repeated(problem)
    u = problem["decisions"][origin]
    total, decision_dim = u.shape
    root = base.square_root(base.gram(problem)[np.ix_(origin, origin)])
    theta = theta_of(problem)

    gamma = [cp.Variable((decision_dim, 1)) for _ in range(total)]
    capital_lambda = [cp.Variable((decision_dim, decision_dim), symmetric=True) for _ in range(total)]
    error = u.T / total - 2 * cp.hstack(gamma)
    objective = cp.sum_squares(root @ error.T) / problem["regularization"]
    objective += sum(cp.trace(theta @ m) for m in capital_lambda)

    constraints = []
    for i, gamma_i, lambda_i in zip(origin, gamma, capital_lambda):
        matrix, bound = polyhedron(problem, i)
        if len(bound):
            constraints.append(bound[:, None] / total - 2 * matrix @ gamma_i >= 0)
        block = cp.bmat([[lambda_i, gamma_i], [gamma_i.T, np.array([[1 / (4 * total)]])]])
        constraints.append(block >> 0)
    program = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL, **CLARABEL)
    copies = 2 * total * np.hstack([g.value for g in gamma]).T
    responses = np.array([copies[origin == i].mean(axis=0) for i in range(len(problem["decisions"]))])
    return float(program.value), responses, program.status


def omega(problem):
    weights = np.asarray(problem.get("weights", np.ones(len(problem["decisions"]))), dtype=float)
    return weights / weights.sum()


def solve_reduced_problem(problem):
    """(Q) in all responses at once, by `least_distance`.

    x'Hx - 2 c'x with H = diag(w) (x) T + diag(w) K diag(w) (x) I / k.
    """
    u, k, share = problem["decisions"], problem["regularization"], omega(problem)
    n_samples, n = u.shape
    coupling = np.kron(share[:, None] * base.gram(problem) * share[None, :] / k, np.eye(n))
    hessian = np.kron(np.diag(share), theta_of(problem)) + coupling
    sets = [polyhedron(problem, i) for i in range(n_samples)]
    matrix = scipy.linalg.block_diag(*[m for m, _ in sets]).reshape(-1, n_samples * n)
    x, _ = least_distance(matrix, np.concatenate([w for _, w in sets]), hessian, coupling @ u.ravel())
    return x.reshape(n_samples, n)


def q_value(problem, x):
    error = problem["decisions"] - x
    share = omega(problem)
    weighted = share[:, None] * error
    energy = np.sum(weighted * (base.gram(problem) @ weighted)) / problem["regularization"]
    return float(np.sum(share[:, None] * x * (x @ theta_of(problem))) + energy)


def desired_decisions(problem, x):
    share = omega(problem)
    return base.gram(problem) @ (share[:, None] * (problem["decisions"] - x)) / problem["regularization"]


def decided(problem, g, theta=None):
    theta = theta_of(problem) if theta is None else theta
    return np.array([least_distance(*polyhedron(problem, i), theta, g[i])[0] for i in range(len(g))])


def feasible(problem, x):
    """The nearest feasible responses."""
    eye = np.eye(x.shape[1])
    return np.array([least_distance(*polyhedron(problem, i), eye, x[i])[0] for i in range(len(x))])


def gap_of(share, theta, x, g, y):
    """sum w_i (q_i(x_i) - q_i(y_i)), q_i(u) = u'Tu - 2 g_i'u, as a sum of two terms, each >= 0."""
    d = x - y
    return float(np.sum(share[:, None] * (d * (d @ theta) + 2 * d * (y @ theta - g))))


def outside(problem, x):
    worst = 0.0
    for i in range(len(x)):
        m, w = polyhedron(problem, i)
        if len(w):
            worst = max(worst, np.max((m @ x[i] - w) / np.maximum(np.linalg.norm(m, axis=1), 1e-300)))
    return worst


def cross_check(problem, value, x, status):
    share, theta = omega(problem), theta_of(problem)
    other = feasible(problem, solve_reduced_problem(problem))
    g = desired_decisions(problem, other)
    y = decided(problem, g)
    reference = q_value(problem, other)
    scale = max(abs(reference), 1e-6)  # one problem has the optimum zero
    reference_gap = abs(gap_of(share, theta, other, g, y)) / scale
    disagreement = abs(value - reference) / scale
    residual = float(np.max(np.abs(x - decided(problem, desired_decisions(problem, x)))))
    apart = float(np.max(np.abs(other - x)))
    tight = 0
    for i in range(len(x)):
        m, w = polyhedron(problem, i)
        tight += int(np.sum(m @ other[i] >= w - 1e-9))
    print(
        f"{problem['name']:28s} N={len(x):3d} n={x.shape[1]} {value: .12g} disagreement {disagreement:.1e} gap {reference_gap:.1e} "
        f"residual {residual:.1e} outside {outside(problem, x):.1e}/{outside(problem, other):.1e} x apart {apart:.1e} "
        f"tight rows {tight} {status}",
        flush=True,
    )
    if disagreement > MAX_DISAGREEMENT or residual > MAX_RESIDUAL or reference_gap > 1e-10:
        print(f"!!! {problem['name']}: the two routes disagree")
        if "--keep-going" not in sys.argv:
            raise SystemExit(1)
    return {
        "objective": value,
        "reduced": reference,
        "responses": x,
        "accuracy": max(disagreement, reference_gap, 1e-15),
        "reduced_accuracy": max(reference_gap, 1e-15),
        "responses_accuracy": apart,
        "solver": f"Clarabel {base.clarabel_version()} on the semidefinite program, tolerances {CLARABEL['tol_gap_rel']:g}; "
        f"checked with scipy {scipy.__version__} nnls on (Q)",
        "status": status,
        "cvxpy": cp.__version__,
    }


# -------------------------------------------------------------------------------------------------
# The problems


def make(name, seed, n_samples, feature_dim, decision_dim, sets, *, kernel=None, k=1e-3, gain=1.0, offset=0.0, noise=0.05, **more):
    """Normal features, a noisy smooth expert moved to the nearest decision of its set.

    `sets` is given the generator.
    """
    rng = np.random.default_rng(seed)
    features = np.round(rng.normal(size=(n_samples, feature_dim)), 6)
    raw = base.expert(features, decision_dim, rng, gain, offset) + noise * rng.normal(size=(n_samples, decision_dim))
    problem = {
        "name": name,
        "kernel": kernel or {"kind": "rbf", "gamma": 1.0 / feature_dim},
        "regularization": k,
        **(sets(rng) if callable(sets) else sets),
        **more,
        "features": features,
        "decisions": np.round(raw, 6),
    }
    problem["decisions"] = feasible(problem, problem["decisions"])
    return problem


def random_rows(m, n, *shape, scale=1.0, low=0.2, high=1.0):
    """m random rows about a ball around the origin, for all or one set a sample."""

    def sets(rng):
        matrix = np.round(scale * rng.normal(size=(*shape, m, n)), 4)
        lengths = np.linalg.norm(matrix, axis=-1)
        return {"matrix": matrix, "bound": np.round(lengths * rng.uniform(low, high, size=(*shape, m)), 4)}

    return sets


def both(*many):
    def sets(rng):
        found = {}
        for one in many:
            found.update(one(rng) if callable(one) else one)
        return found

    return sets


def shared_sets():
    yield make("shared_2d", 1, 20, 3, 2, random_rows(5, 2), gain=1.2)
    yield make("shared_3d", 2, 18, 4, 3, random_rows(12, 3), gain=1.2)
    yield make("shared_rows_own_bounds", 3, 16, 3, 2, lambda rng: {
        "matrix": np.round(rng.normal(size=(6, 2)), 4), "bound": np.round(rng.uniform(0.2, 1.5, size=(16, 6)), 4)}, gain=1.2)
    yield make("shared_1d", 4, 14, 2, 1, {"matrix": [[2.0], [-0.5], [1.0]], "bound": [1.0, 0.3, 0.7]}, gain=1.5)
    yield make("shared_with_box", 5, 18, 3, 3, both(random_rows(4, 3), {"lower": [-0.5, -0.4, -INF], "upper": [0.5, INF, 0.3]}))


def own_sets():
    yield make("own_2d", 10, 18, 3, 2, random_rows(4, 2, 18), gain=1.2)
    yield make("own_3d", 11, 14, 3, 3, random_rows(10, 3, 14), gain=1.2)
    yield make("own_6d", 12, 10, 4, 6, random_rows(20, 6, 10), gain=1.5)
    yield make("own_away_from_zero", 13, 14, 3, 2, lambda rng: shifted(rng, 14, 7, 2), offset=3.0)
    yield make("own_rows_badly_scaled", 14, 14, 3, 2, badly_scaled(random_rows(6, 2, 14)), gain=1.2)
    yield make("own_small_k", 15, 16, 3, 3, random_rows(8, 3, 16), gain=1.2, k=1e-6)
    yield make("own_large_k", 16, 14, 3, 3, lambda rng: shifted(rng, 14, 9, 3), offset=2.0, k=1.0)
    yield make("own_laplace", 17, 16, 3, 3, random_rows(6, 3, 16), gain=1.5, k=1e-4, kernel={"kind": "laplace", "gamma": 0.4})


def shifted(rng, n_samples, m, n):
    """Sets around (3, 3, ...): zero is in none of them."""
    found = random_rows(m, n, n_samples, low=0.3)(rng)
    found["bound"] = np.round(found["bound"] + 3.0 * found["matrix"].sum(axis=-1), 4)
    return found


def badly_scaled(sets):
    def scaled(rng):
        found = sets(rng)
        factors = 10.0 ** rng.integers(-4, 5, size=found["bound"].shape)
        return {"matrix": found["matrix"] * factors[..., None], "bound": found["bound"] * factors}

    return scaled


def boxes():
    def own(rng):
        lower = np.round(rng.uniform(-1.0, 0.0, size=(20, 3)), 4)
        return {"lower": lower, "upper": np.round(lower + rng.uniform(0.0, 1.0, size=(20, 3)), 4)}

    yield make("box_own", 20, 20, 3, 3, own, gain=1.2)

    def own_infinite(rng):
        found = own(rng)
        found["lower"][rng.uniform(size=(20, 3)) < 0.4] = -INF
        found["upper"][rng.uniform(size=(20, 3)) < 0.4] = INF
        return found

    yield make("box_own_infinite", 21, 20, 3, 3, own_infinite, gain=1.2)
    yield make("box_own_lower_shared_upper", 22, 20, 3, 2, lambda rng: {
        "lower": np.round(rng.uniform(-1.0, 0.0, size=(20, 2)), 4), "upper": [0.4, 0.6]}, gain=1.2)

    def infinite_everywhere(rng):
        found = both(random_rows(5, 3, 20), own_infinite)(rng)
        found["bound"][rng.uniform(size=(20, 5)) < 0.4] = INF
        return found

    yield make("mixed_infinite", 23, 20, 3, 3, infinite_everywhere, gain=1.2)


def equalities():
    yield make("simplex_3d", 30, 16, 3, 3, {"lower": [0.0] * 3, "equal_matrix": [[1.0] * 3], "equal_bound": [1.0]}, offset=0.3)
    yield make("simplex_6d", 31, 12, 3, 6, {"lower": [0.0] * 6, "equal_matrix": [[1.0] * 6], "equal_bound": [1.0]}, offset=0.1)
    yield make("simplex_own_total", 32, 14, 3, 3, lambda rng: {
        "lower": [0.0] * 3, "equal_matrix": [[1.0] * 3], "equal_bound": np.round(rng.uniform(0.5, 2.0, size=(14, 1)), 4)}, offset=0.4)
    yield make("budget_spent", 33, 14, 3, 4, lambda rng: {
        "lower": [0.0] * 4, "upper": [0.8] * 4,
        "equal_matrix": np.round(rng.uniform(0.5, 2.0, size=(14, 1, 4)), 4), "equal_bound": [2.0]}, offset=0.5)
    # Two equalities in three dimensions leave a segment.
    yield make("segment", 34, 14, 3, 3, lambda rng: {
        "lower": [-1.0] * 3, "upper": [1.0] * 3,
        "equal_matrix": np.round(rng.normal(size=(14, 2, 3)), 4), "equal_bound": np.zeros(2)}, gain=1.2)
    # Equality only: an affine subspace.
    yield make("affine", 35, 14, 3, 3, {"equal_matrix": [[1.0, 2.0, -1.0]], "equal_bound": [0.5]})


def degenerate_rows():
    def redundant(rng):
        found = random_rows(5, 2)(rng)
        away = np.round(rng.normal(size=(5, 2)), 4)
        return {"matrix": np.vstack([found["matrix"], away]), "bound": np.concatenate([found["bound"], 10.0 * np.ones(5)])}

    yield make("redundant_rows", 40, 16, 3, 2, redundant, gain=1.2)

    def duplicated(rng):
        found = random_rows(5, 3, 14)(rng)
        return {k: np.concatenate([v, 3.0 * v, v[:, :2]], axis=1) for k, v in found.items()}

    yield make("duplicated_rows", 41, 14, 3, 3, duplicated, gain=1.2)

    def parallel(rng):
        rows = np.round(rng.normal(size=(14, 4, 3)), 4)
        width = np.round(rng.uniform(0.05, 0.6, size=(14, 4)), 4)
        return {"matrix": np.concatenate([rows, -rows], axis=1), "bound": np.concatenate([width, width], axis=1)}

    yield make("parallel_pairs", 42, 14, 3, 3, parallel, gain=1.2)
    # Equalities written as pairs of inequalities: no inner point, no unique multipliers.
    rows = [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]]
    yield make("equality_as_pair", 43, 12, 3, 3, {"lower": [0.0] * 3, "matrix": rows, "bound": [1.0, -1.0]}, offset=0.3)
    # The same equality twice, once scaled.
    yield make("equality_twice", 44, 12, 3, 3, {
        "lower": [0.0] * 3, "equal_matrix": [[1.0] * 3, [2.0] * 3], "equal_bound": [1.0, 2.0]}, offset=0.3)
    yield make("zero_row", 45, 12, 3, 2, {
        "matrix": [[0.0, 0.0], [1.0, 1.0], [1.0, -1.0], [0.0, 0.0]], "bound": [0.5, 0.4, 0.4, 0.0]})


def vertices():
    # A square pyramid over the origin, apex (0, 0, 1): four rows meet in three dimensions. Half of
    # the decisions are the apex.
    pyramid = {
        "matrix": [[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, -1.0, 1.0], [0.0, 0.0, -1.0]],
        "bound": [1.0, 1.0, 1.0, 1.0, 0.0],
    }
    problem = make("vertex_pyramid", 50, 16, 3, 3, pyramid, offset=0.3)
    problem["decisions"][::2] = [0.0, 0.0, 1.0]
    yield problem
    # Eight rows through the corner (1, 1), every decision there: responses stay or leave along
    # either side.
    corner = {"matrix": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 2.0], [3.0, 1.0], [1.0, 3.0], [5.0, 4.0]],
              "bound": [1.0, 1.0, 2.0, 3.0, 3.0, 4.0, 4.0, 9.0]}
    problem = make("vertex_all", 51, 14, 3, 2, corner)
    problem["decisions"][:] = [1.0, 1.0]
    yield problem
    problem = make("vertex_all_large_k", 52, 14, 3, 2, corner, k=1.0)
    problem["decisions"][:] = [1.0, 1.0]
    yield problem
    # A linear expert: every decision on a vertex of its own polytope, as an LP would leave it.
    problem = make("vertex_linear_expert", 53, 16, 3, 2, random_rows(7, 2, 16, low=0.5), gain=50.0)
    yield problem


def points():
    point = {"lower": [0.3, -0.2], "upper": [0.3, -0.2]}
    yield make("point_box", 60, 8, 2, 2, point)
    yield make("point_rows", 61, 8, 2, 2, {
        "matrix": [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], "bound": [0.3, -0.3, -0.2, 0.2]})
    yield make("point_simplex", 62, 8, 2, 3, {"lower": [0.0] * 3, "equal_matrix": [[1.0] * 3], "equal_bound": [0.0]})
    yield make("point_equalities", 63, 8, 2, 2, {"equal_matrix": [[1.0, 1.0], [1.0, -1.0]], "equal_bound": [0.5, 0.25]})

    def some(rng):
        found = random_rows(6, 2, 14)(rng)
        found["lower"] = np.full((14, 2), -INF)
        found["upper"] = np.full((14, 2), INF)
        found["lower"][::3] = found["upper"][::3] = np.array([0.05, -0.1])
        return found

    yield make("point_some", 64, 14, 3, 2, some, gain=1.2)


def unbounded():
    yield make("halfspace", 70, 16, 3, 2, {"matrix": [[1.0, 0.5]], "bound": [0.1]})
    yield make("cone_own", 71, 16, 3, 3, lambda rng: {
        "matrix": np.round(rng.normal(size=(16, 3, 3)), 4), "bound": np.zeros((16, 3))})
    yield make("wedge_away", 72, 16, 3, 2, {"matrix": [[-1.0, -1.0], [-1.0, 1.0]], "bound": [-2.0, -1.0]}, offset=2.0)
    yield make("rows_without_limits", 73, 12, 3, 2, lambda rng: {
        "matrix": np.round(rng.normal(size=(12, 3, 2)), 4), "bound": np.full((12, 3), INF)})


def singular():
    problem = make("duplicate_signals", 80, 16, 3, 2, random_rows(6, 2, 16), gain=1.5, noise=0.3)
    problem["features"][8:] = problem["features"][:8]
    problem["features"][15] = problem["features"][0]
    yield problem
    problem = make("one_signal", 81, 14, 2, 2, random_rows(6, 2, 14), noise=0.5)
    problem["features"][:] = problem["features"][0]
    yield problem
    yield make("linear_rank_one", 82, 16, 1, 3, random_rows(8, 3, 16), kernel={"kind": "linear"}, gain=1.2)
    problem = make("linear_rank_one_vertices", 83, 14, 1, 2, random_rows(5, 2, 14), kernel={"kind": "linear"}, gain=40.0)
    yield problem
    yield make("one_sample", 84, 1, 2, 3, random_rows(6, 3), gain=1.5, k=0.1)
    # The decision of each sample is where g = 0 is sent: all coefficients are zero.
    problem = make("no_support", 85, 10, 3, 2, lambda rng: shifted(rng, 10, 6, 2))
    problem["decisions"] = feasible(problem, np.zeros((10, 2)))
    yield problem


def weighted():
    def weights(seed, n_samples, most=4):
        return np.random.default_rng(seed).integers(1, most + 1, size=n_samples).astype(float)

    yield make("weights_box", 90, 14, 3, 2, {"lower": [-0.5] * 2, "upper": [0.6] * 2}, gain=1.5, weights=weights(1, 14))
    yield make("weights_shared", 91, 12, 3, 2, random_rows(6, 2), gain=1.2, weights=weights(2, 12))
    yield make("weights_own", 92, 12, 3, 3, random_rows(8, 3, 12), gain=1.2, weights=weights(3, 12, 5))
    yield make("weights_simplex", 93, 10, 3, 3, {
        "lower": [0.0] * 3, "equal_matrix": [[1.0] * 3], "equal_bound": [1.0]}, offset=0.3, weights=weights(4, 10))
    yield make("weights_all_equal", 94, 10, 3, 2, random_rows(5, 2, 10), gain=1.2, weights=np.full(10, 3.0))
    yield make("weights_box_own_theta", 95, 12, 3, 2, lambda rng: {
        "lower": np.round(rng.uniform(-1.0, 0.0, size=(12, 2)), 4), "upper": [0.4, 0.6]},
        gain=1.2, weights=weights(6, 12), theta_uu=THETA_2)


THETA_2 = [[3.0, 0.8], [0.8, 1.5]]
THETA_3 = [[2.0, 0.5, -0.3], [0.5, 4.0, 0.2], [-0.3, 0.2, 1.5]]


def fixed_theta():
    yield make("theta_box", 100, 18, 3, 2, {"lower": [-0.5] * 2, "upper": [0.6] * 2}, gain=1.5, theta_uu=THETA_2)
    yield make("theta_diagonal_box", 101, 16, 3, 2, {"lower": [-0.5] * 2, "upper": [0.6] * 2}, gain=1.5,
               theta_uu=[[5.0, 0.0], [0.0, 1.0]])
    yield make("theta_own", 102, 14, 3, 3, random_rows(9, 3, 14), gain=1.2, theta_uu=THETA_3)
    yield make("theta_simplex", 103, 12, 3, 3, {
        "lower": [0.0] * 3, "equal_matrix": [[1.0] * 3], "equal_bound": [1.0]}, offset=0.3, theta_uu=THETA_3)
    yield make("theta_no_limits", 104, 12, 3, 2, {}, theta_uu=THETA_2)
    yield make("theta_ill_conditioned", 105, 12, 3, 2, random_rows(6, 2, 12), gain=1.2, theta_uu=[[1000.0, 30.0], [30.0, 2.0]])
    yield make("theta_1d", 106, 12, 2, 1, {"lower": [-0.3], "upper": [0.5]}, gain=1.5, theta_uu=[[2.5]])
    yield make("theta_twice_identity", 107, 12, 3, 2, random_rows(5, 2, 12), gain=1.2, theta_uu=[[2.0, 0.0], [0.0, 2.0]])


def outside_sets():
    # Decisions a little outside their sets, kept as they are.
    problem = make("decisions_outside", 110, 14, 3, 2, random_rows(6, 2, 14), gain=1.2)
    rng = np.random.default_rng(110)
    problem["decisions"] = np.round(problem["decisions"] + 0.02 * rng.normal(size=(14, 2)), 6)
    yield problem


def problems():
    for family in (shared_sets, own_sets, boxes, equalities, degenerate_rows, vertices, points, unbounded, singular,
                   weighted, fixed_theta, outside_sets):
        yield from family()


# -------------------------------------------------------------------------------------------------
# Files


def with_nulls(value):
    """Infinities as null, all the way down."""
    if isinstance(value, (list, tuple)):
        return [with_nulls(v) for v in value]
    return None if isinstance(value, float) and math.isinf(value) else value


def plain(record):
    return {k: with_nulls(v.tolist()) if isinstance(v, np.ndarray) and not np.isfinite(v).all() else v for k, v in record.items()}


def write_folders(here, problems, answer_to):
    """A folder beside the script for each problem, or for those named on the command line."""
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")]
    for problem in problems:
        if wanted and problem["name"] not in wanted:
            continue
        answer = answer_to(problem)
        folder = here / problem["name"]
        folder.mkdir(exist_ok=True)
        (folder / "problem.json").write_text(base.to_json(plain(problem)))
        (folder / "answer.json").write_text(base.to_json(plain(answer)))


if __name__ == "__main__":
    write_folders(HERE, problems(), lambda p: cross_check(p, *solve_semidefinite_program(p)))
