"""Small problems whose optimum is known from an independent oracle.

    python -m venv /tmp/known
    /tmp/known/bin/pip install -r requirements.txt
    /tmp/known/bin/python generate.py

writes one folder per problem, next to this file (or only those named on the command line), with

    problem.json   name, kernel as in a model file (crates/io/FORMAT.md), regularization k,
                   lower, upper (null: no limit),
                   features N x d (used as they are, no normalisation), decisions N x n
    answer.json    objective               optimal value, (Q) = [KIO 9]
                   responses               x_i = 2 N Gamma_i, N x n, as the solver left them
                                           (limits kept to about 1e-12)
                   accuracy                relative accuracy of objective, see `cross_check`
                   fixed_point_residual    max |x_i - proj(g(s_i))|, zero at the exact optimum
                   saturated               entries of x on a limit whose coefficient is zero
                                           while g points beyond it
                   solver, status, cvxpy   what computed it

The oracle is CVXPY with Clarabel on the paper's semidefinite program with all its matrix variables
Lambda_i, [KIO 9] of "Scalable Kernel Inverse Optimization" (NeurIPS 2024), for theta_uu = I. It
knows nothing of the reduction to the projection problem (Q) on which argwhy is built:

    (Q)  min   1/N sum |x_i|^2  +  1/(k N^2) sum_ij kappa_ij (u_i - x_i)'(u_j - x_j)
         s.t.  lower <= x_i <= upper

`cross_check` solves (Q) too, by another algorithm (bounded-variable least squares, an active-set
method), and stops the script when the two disagree. Everything is seeded; the last bits of the
answers may differ from one BLAS to another.
"""

import json
import math
import pathlib
import sys
import warnings

import cvxpy as cp
import numpy as np
import scipy
from scipy.optimize import lsq_linear

HERE = pathlib.Path(__file__).resolve().parent

# Tighter than Clarabel can reach in double precision: it goes on until it makes no more progress
# and says "optimal_inaccurate" (with respect to 1e-13). How good the answer is, is measured below,
# not taken from the status.
CLARABEL = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13, "max_iter": 200}

MAX_DISAGREEMENT = 1e-9  # of the two objective values, relative
MAX_RESIDUAL = 2e-6  # of x_i = proj(g(s_i)), absolute


# -------------------------------------------------------------------------------------------------
# The mathematics


def gram(problem):
    """The Gram matrix K, by the textbook formulas (differences, no |a|^2 + |b|^2 - 2ab)."""
    return kernel_matrix(problem["kernel"], problem["features"])


def kernel_matrix(kernel, z):
    kind = kernel["kind"]
    if kind == "linear":
        return z @ z.T
    if kind == "polynomial":
        return (kernel["gamma"] * (z @ z.T) + kernel["offset"]) ** kernel["degree"]
    if kind == "scaled":
        return kernel["weight"] * kernel_matrix(kernel["kernel"], z)
    if kind == "sum":
        return sum(kernel_matrix(term, z) for term in kernel["terms"])
    if kind == "product":
        return math.prod(kernel_matrix(factor, z) for factor in kernel["factors"])
    if kind == "anisotropic":
        return kernel_matrix(kernel["kernel"], z / np.array(kernel["length_scales"]))
    gamma = kernel["gamma"]
    difference = z[:, None, :] - z[None, :, :]
    if kind == "laplace":
        return np.exp(-gamma * np.sum(np.abs(difference), axis=2))
    squared = np.sum(difference**2, axis=2)
    if kind == "rbf":
        return np.exp(-gamma * squared)
    # Matern kernels of length 1/sqrt(2 gamma).
    if kind == "matern32":
        t = np.sqrt(3.0 * 2.0 * gamma * squared)
        return (1.0 + t) * np.exp(-t)
    if kind == "matern52":
        t = np.sqrt(5.0 * 2.0 * gamma * squared)
        return (1.0 + t + t**2 / 3.0) * np.exp(-t)
    raise ValueError(f"unknown kernel {kind}")


def square_root(gram_matrix):
    """R with R'R = K; K may be singular."""
    values, vectors = np.linalg.eigh(gram_matrix)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def polyhedron(problem):
    """The box as M u <= W, the form the paper wants; a limit at infinity is no row at all."""
    rows, bounds = [], []
    for axis, (lower, upper) in enumerate(zip(problem["lower"], problem["upper"])):
        unit = np.eye(len(problem["lower"]))[axis]
        if math.isfinite(upper):
            rows.append(unit)
            bounds.append(upper)
        if math.isfinite(lower):
            rows.append(-unit)
            bounds.append(-lower)
    return np.array(rows).reshape(-1, len(problem["lower"])), np.array(bounds)


def solve_semidefinite_program(problem):
    """[KIO 9] as the paper writes it: its optimal value, the responses 2 N Gamma_i and the status.

        min   1/k sum_ij kappa_ij (u_i/N - 2 Gamma_i)'(u_j/N - 2 Gamma_j) + sum_i Tr Lambda_i
        s.t.  W_i/N - 2 M_i Gamma_i >= 0
              [ Lambda_i  Gamma_i ]
              [ Gamma_i'  1/(4N)  ]  positive semidefinite

    ([KIO 6], of which this is a special case, has s_i/N where its proof gives W_i/N; [KIO 9] is
    printed right.) Lambda_i >= 0 is a principal block of the matrix inequality. Stating it a second
    time, as the paper does, changes nothing but the multipliers, which are then not unique:
    Clarabel stops at 1e-8 instead of 1e-14. So it is left to the block.
    """
    u = problem["decisions"]
    n_samples, decision_dim = u.shape
    root = square_root(gram(problem))
    matrix, bound = polyhedron(problem)

    gamma = [cp.Variable((decision_dim, 1)) for _ in range(n_samples)]
    capital_lambda = [cp.Variable((decision_dim, decision_dim), symmetric=True) for _ in range(n_samples)]
    error = u.T / n_samples - 2 * cp.hstack(gamma)  # n x N, columns u_i/N - 2 Gamma_i
    objective = cp.sum_squares(root @ error.T) / problem["regularization"] + sum(cp.trace(m) for m in capital_lambda)

    constraints = []
    for gamma_i, lambda_i in zip(gamma, capital_lambda):
        if len(bound):
            constraints.append(bound[:, None] / n_samples - 2 * matrix @ gamma_i >= 0)
        block = cp.bmat([[lambda_i, gamma_i], [gamma_i.T, np.array([[1 / (4 * n_samples)]])]])
        constraints.append(block >> 0)

    program = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": see CLARABEL
        program.solve(solver=cp.CLARABEL, **CLARABEL)
    responses = 2 * n_samples * np.hstack([g.value for g in gamma]).T
    return float(program.value), responses, program.status


def solve_reduced_problem(problem):
    """(Q) for one dimension at a time (a box decouples), as bounded least squares

        | [ I / sqrt(N)          ]     [ 0                    ] |^2
        | [ R / (sqrt(k) N)      ] x - [ R u / (sqrt(k) N)    ] |
    """
    u, k = problem["decisions"], problem["regularization"]
    n_samples = len(u)
    root = square_root(gram(problem)) / (math.sqrt(k) * n_samples)
    matrix = np.vstack([np.eye(n_samples) / math.sqrt(n_samples), root])
    x = np.empty_like(u)
    for axis, (lower, upper) in enumerate(zip(problem["lower"], problem["upper"])):
        if lower == upper:  # nothing to decide; lsq_linear refuses it
            x[:, axis] = lower
            continue
        target = np.concatenate([np.zeros(n_samples), root @ u[:, axis]])
        x[:, axis] = lsq_linear(matrix, target, (lower, upper), method="bvls", tol=1e-16, max_iter=1000).x
    return x


def q_value(problem, x):
    """(Q) at x, from the definition: no square root of K, no solver's idea of its value."""
    error = problem["decisions"] - x
    n_samples = len(x)
    energy = np.sum(error * (gram(problem) @ error))
    return float(np.sum(x**2) / n_samples + energy / (problem["regularization"] * n_samples**2))


def desired_decisions(problem, x):
    """g(s_i) = sum_j kappa_ij alpha_j with alpha = (u - x)/(kN)."""
    ridge = problem["regularization"] * len(x)
    return gram(problem) @ (problem["decisions"] - x) / ridge


def certificate(problem, x):
    """Upper bound on (Q)(x) - optimum in the box: 1/N sum |x_i - g_i|^2 - dist(g_i, box)^2.

    Written so that nothing cancels: with y = proj(g), |x-g|^2 - |y-g|^2 = |x-y|^2 + 2 (x-y)'(y-g),
    two terms >= 0.
    """
    g = desired_decisions(problem, x)
    y = np.clip(g, problem["lower"], problem["upper"])
    return float(np.sum((x - y) ** 2 + 2 * (x - y) * (y - g)) / len(x))


def cross_check(problem, value, x, status):
    """The answer to write, once both routes agree.

    accuracy is the largest of: disagreement of the semidefinite program's value with (Q) solved by
    the other algorithm, with (Q) evaluated at the semidefinite program's responses, and the
    certificate of those responses; all relative.
    """
    inside = np.clip(x, problem["lower"], problem["upper"])
    other = solve_reduced_problem(problem)
    reference = q_value(problem, other)
    scale = abs(reference)
    disagreement = max(abs(value - reference), abs(q_value(problem, inside) - reference)) / scale
    gap = certificate(problem, inside) / scale
    reference_gap = certificate(problem, other) / scale
    g = desired_decisions(problem, x)
    residual = float(np.max(np.abs(x - np.clip(g, problem["lower"], problem["upper"]))))
    outside = float(np.max(np.abs(x - inside)))
    beyond = (g < np.array(problem["lower"]) - 1e-3) | (g > np.array(problem["upper"]) + 1e-3)
    saturated = int(np.sum(beyond & (np.abs(problem["decisions"] - x) < 1e-7)))

    print(
        f"{problem['name']:24s} N={len(x):3d} n={x.shape[1]} (Q)={value:.12g} disagreement {disagreement:.1e} "
        f"gap {gap:.1e}/{reference_gap:.1e} residual {residual:.1e} outside {outside:.1e} "
        f"x apart {np.max(np.abs(other - x)):.1e} saturated {saturated}/{x.size} {status}"
    )
    if disagreement > MAX_DISAGREEMENT or residual > MAX_RESIDUAL or reference_gap > 1e-11:
        raise SystemExit(f"{problem['name']}: the two routes disagree")
    return {
        "objective": value,
        "responses": x,
        "accuracy": max(disagreement, gap, 1e-15),
        "fixed_point_residual": residual,
        "saturated": saturated,
        "solver": f"Clarabel {clarabel_version()} on [KIO 9], tolerances {CLARABEL['tol_gap_rel']:g}; "
        f"checked with scipy {scipy.__version__} lsq_linear (bvls) on (Q)",
        "status": status,
        "cvxpy": cp.__version__,
    }


def clarabel_version():
    import clarabel

    return clarabel.__version__


# -------------------------------------------------------------------------------------------------
# The problems


def expert(features, decision_dim, rng, gain=1.0, offset=0.0):
    """A smooth controller: a few sines of random projections of the features."""
    directions = rng.normal(size=(features.shape[1], decision_dim)) / math.sqrt(features.shape[1])
    more = rng.normal(size=(features.shape[1], decision_dim)) / math.sqrt(features.shape[1])
    return offset + gain * (np.sin(1.5 * features @ directions) + 0.3 * np.cos(2.0 * features @ more))


def make(
    name,
    seed,
    n_samples,
    feature_dim,
    lower,
    upper,
    *,
    kind="rbf",
    gamma=None,
    kernel=None,
    k=1e-3,
    gain=1.0,
    offset=0.0,
    noise=0.05,
):
    """One problem: normal features, a noisy smooth expert clipped to its limits.

    Rounded to 6 decimals, to be readable.
    """
    rng = np.random.default_rng(seed)
    features = np.round(rng.normal(size=(n_samples, feature_dim)), 6)
    raw = expert(features, len(lower), rng, gain, offset) + noise * rng.normal(size=(n_samples, len(lower)))
    return {
        "name": name,
        "kernel": kernel or {"kind": kind, "gamma": 1.0 / feature_dim if gamma is None else gamma},
        "regularization": k,
        "lower": [float(b) for b in lower],
        "upper": [float(b) for b in upper],
        "features": features,
        "decisions": np.clip(np.round(raw, 6), lower, upper),
    }


INF = math.inf


def box_problems():
    yield make("box_1d", 1, 12, 2, [-1], [1], gain=1.5)
    yield make("box_3d", 2, 25, 4, [-1] * 3, [1] * 3, gain=1.5)
    yield make("box_6d", 3, 20, 5, [-1] * 6, [1] * 6, gain=1.5)
    yield make("box_uneven", 4, 24, 3, [-0.4, -2.0, 0.1], [0.9, 0.5, 0.6], gain=0.8)
    # Away from zero: |x|^2 pulls towards the lower limit, g has to reach into the box.
    yield make("box_away_from_zero", 5, 24, 3, [2, 2], [5, 5], gain=2.0, offset=3.5)
    # One dimension has no freedom at all.
    yield make("box_pinned_dimension", 6, 18, 3, [-1, 0.25, -1], [1, 0.25, 1])


def infinite_problems():
    yield make("infinite_above", 10, 20, 3, [0, 0], [INF, INF], gain=1.2, offset=0.4)
    yield make("infinite_below", 11, 20, 3, [-INF, -INF], [0.3, 0.3])
    # Nothing can be active: kernel ridge regression, (K + kN I) alpha = u.
    yield make("infinite_kernel_ridge", 12, 24, 3, [-INF] * 2, [INF] * 2)
    yield make("infinite_mixed", 13, 22, 3, [-1, -INF, 0, -INF], [1, INF, INF, 0.2])


def kernel_problems():
    yield make("laplace_box", 20, 26, 4, [-1] * 2, [1] * 2, kind="laplace", k=1e-4, gain=2.0)
    # d < N: K has rank 3 and most of its eigenvalues are zero.
    yield make("linear_box", 21, 30, 3, [-1] * 2, [1] * 2, kind="linear", gamma=1.0, gain=1.5)
    yield make("linear_wide", 22, 10, 15, [-1] * 2, [1] * 2, kind="linear", gamma=1.0, k=1e-2)


def compound_problems():
    box = ([-1] * 2, [1] * 2)
    polynomial = {"kind": "polynomial", "degree": 3, "gamma": 0.25, "offset": 1.0}
    rbf = {"kind": "rbf", "gamma": 0.3}
    # 10 monomials and 26 samples: K is singular, its diagonal is anything but constant.
    yield make("polynomial_box", 60, 26, 2, *box, kernel=polynomial, gain=2.0)
    homogeneous = {"kind": "polynomial", "degree": 2, "gamma": 1.0, "offset": 0.0}
    yield make("polynomial_homogeneous", 61, 20, 3, *box, kernel=homogeneous, k=1e-2)
    yield make("matern32_box", 62, 26, 4, *box, kind="matern32", k=1e-4, gain=2.0)
    yield make("matern52_box", 63, 26, 4, *box, kind="matern52", k=1e-4, gain=2.0)
    terms = [rbf, {"kind": "scaled", "weight": 0.5, "kernel": {"kind": "linear"}}]
    yield make("sum_box", 64, 26, 3, *box, kernel={"kind": "sum", "terms": terms}, gain=1.5)
    yield make("product_box", 65, 24, 3, *box, kernel={"kind": "product", "factors": [rbf, polynomial]}, gain=1.5)
    scales = {"kind": "anisotropic", "length_scales": [0.5, 1.0, 2.5], "kernel": {"kind": "matern52", "gamma": 0.5}}
    yield make("length_scales_box", 66, 26, 3, *box, kernel=scales, k=1e-4, gain=1.5)


def saturated_problems():
    # About half of the decisions on a limit with g beyond it, so that their coefficients are
    # exactly zero.
    yield make("saturated_half", 30, 36, 2, [-1] * 2, [1] * 2, gain=4.0, noise=0.02)
    # Bang-bang: every decision on a limit, and not all of them can have a zero coefficient.
    problem = make("saturated_all", 31, 30, 2, [-1] * 2, [1] * 2, gain=1.6)
    problem["decisions"] = np.where(problem["decisions"] >= 0, 1.0, -1.0)
    yield problem
    # Every decision where g = 0 is projected to: all coefficients are zero, (Q) = mean |u|^2.
    problem = make("saturated_no_support", 32, 16, 3, [2, -3], [5, -1])
    problem["decisions"] = np.tile([2.0, -1.0], (16, 1))
    yield problem


def degenerate_problems():
    # The same signals twice (one of them three times), with other decisions: K is singular and the
    # copies disagree.
    problem = make("duplicated_rows", 40, 24, 3, [-1] * 2, [1] * 2, gain=2.0, noise=0.3)
    problem["features"][12:] = problem["features"][:12]
    problem["features"][23] = problem["features"][0]
    yield problem
    # Two columns that say nothing, one of them zero as the z-score of a constant is.
    problem = make("constant_feature", 41, 20, 4, [-1] * 2, [1] * 2, gain=1.5)
    problem["features"][:, 1] = 0.0
    problem["features"][:, 3] = 1.0
    yield problem
    yield make("one_sample", 42, 1, 2, [-1] * 2, [1] * 2, gain=0.4, k=0.1)
    # k large and a limit above zero: the one response stays on its limit, g does not reach it.
    yield make("one_sample_on_limit", 43, 1, 2, [0.2, -1], [1, 1], k=1.0, offset=0.4)


def regularization_problems():
    yield make("regularization_small", 50, 30, 4, [-1] * 3, [1] * 3, k=1e-6, gain=1.2)
    yield make("regularization_large", 51, 40, 3, [-1] * 2, [1] * 2, k=1.0)
    yield make("regularization_large_away", 52, 20, 3, [0.5, -4], [3, -1], k=1.0, gain=1.5, offset=0.5)


def problems():
    yield from box_problems()
    yield from infinite_problems()
    yield from kernel_problems()
    yield from compound_problems()
    yield from saturated_problems()
    yield from degenerate_problems()
    yield from regularization_problems()


# -------------------------------------------------------------------------------------------------
# Files


def to_json(record):
    """JSON with a sample per line, floats by repr (the same bits read back), infinities as null."""

    def plain(value):
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, list):
            return [plain(v) for v in value]
        if isinstance(value, float) and math.isinf(value):
            return None
        return value

    lines = []
    for key, value in record.items():
        if isinstance(value, np.ndarray):
            rows = ",\n".join("    " + json.dumps(row, allow_nan=False) for row in value.tolist())
            text = f"[\n{rows}\n  ]"
        else:
            text = json.dumps(plain(value), allow_nan=False)
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    wanted = sys.argv[1:]
    for problem in problems():
        if wanted and problem["name"] not in wanted:
            continue
        inside = (problem["decisions"] >= problem["lower"]) & (problem["decisions"] <= problem["upper"])
        assert inside.all(), problem["name"]
        answer = cross_check(problem, *solve_semidefinite_program(problem))
        folder = HERE / problem["name"]
        folder.mkdir(exist_ok=True)
        (folder / "problem.json").write_text(to_json(problem))
        (folder / "answer.json").write_text(to_json(answer))


if __name__ == "__main__":
    main()
