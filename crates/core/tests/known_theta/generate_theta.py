"""Small problems in which theta_uu is learned too, and their optimum from an independent oracle.

    python generate_theta.py [name ...]         (environment: ../known_optimum/requirements.txt)

writes one folder per problem next to this file: problem.json as in ../known_sets (theta_uu is never
given), and

    answer.json    objective      minimum of [KIO 6]: minus the saddle value of the book's chapter
                                  "Learning theta_uu"
                   reduced        the same from a certified pair, see below
                   theta_uu       n x n, [KIO 7]
                   multiplier     P >= 0 of theta_uu >= I, n x n
                   responses      x_i = 2 N Gamma_i, N x n
                   accuracy       of `objective`, relative: distance from `reduced` and the
                                  certificate of `reduced`
                   reduced_accuracy    certificate of `reduced`, relative
                   theta_accuracy      largest error of an entry of theta_uu: sqrt(gap / k),
                                       proven, and its distance from Clarabel's
                   solver, status, cvxpy

The oracle is CVXPY with Clarabel on [KIO 6] with all its matrix variables:

    min   1/(4k) | A - sum_i Lambda_i - P |_F^2 - Tr P
          + 1/k sum_ij kappa_ij (u_i/N - 2 Gamma_i)'(u_j/N - 2 Gamma_j),   A = 1/N sum u_i u_i'
    s.t.  P >= 0,   W_i/N - 2 M_i Gamma_i >= 0,   [ Lambda_i  Gamma_i ; Gamma_i'  1/(4N) ] >= 0

(the paper prints s_i/N for W_i/N; its proof has W_i/N), theta_uu = (P - (A - sum Lambda_i))/(2k).
Rows are really repeated where there are weights.

The check is the certificate of the saddle point problem min over T >= I of max over x_i in U_i of
k|T|^2 + Tr(T B(x)) - 1/k |u/N - x/N|_K^2, B(x) = A - mean xx': for feasible x, D(x) with its own
T_x is a lower bound, P(T, alpha) at any T >= I and alpha an upper one, and with alpha = (u -
x)/(kN), T = T_x they differ by mean(q_i(x_i) - q_i(y_i)), y_i the decision at g_i under T_x.
`polish` takes Clarabel's point to where this is 1e-16 or so: the free directions of every sample
and the eigenvalues of T above one are read off, and Newton's method solves the equations that
remain.
"""

import math
import pathlib
import sys
import warnings

import cvxpy as cp
import numpy as np
import scipy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "known_sets"))

import generate_sets as sets  # noqa: E402
from generate_sets import INF, base, make, random_rows  # noqa: E402

CLARABEL = base.CLARABEL


def solve_semidefinite_program(problem):
    origin = sets.repeated(problem)
    u = problem["decisions"][origin]
    k = problem["regularization"]
    total, n = u.shape
    root = base.square_root(base.gram(problem)[np.ix_(origin, origin)])
    multiplier = cp.Variable((n, n), symmetric=True)
    gamma = [cp.Variable((n, 1)) for _ in range(total)]
    capital_lambda = [cp.Variable((n, n), symmetric=True) for _ in range(total)]
    error = u.T / total - 2 * cp.hstack(gamma)
    second_moment = u.T @ u / total - sum(capital_lambda)
    objective = cp.sum_squares(second_moment - multiplier) / (4 * k) - cp.trace(multiplier)
    objective += cp.sum_squares(root @ error.T) / k
    constraints = [multiplier >> 0]
    for i, gamma_i, lambda_i in zip(origin, gamma, capital_lambda):
        matrix, bound = sets.polyhedron(problem, i)
        if len(bound):
            constraints.append(bound[:, None] / total - 2 * matrix @ gamma_i >= 0)
        constraints.append(cp.bmat([[lambda_i, gamma_i], [gamma_i.T, np.array([[1 / (4 * total)]])]]) >> 0)
    program = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL, **CLARABEL)
    copies = 2 * total * np.hstack([g.value for g in gamma]).T
    x = np.array([copies[origin == i].mean(axis=0) for i in range(len(problem["decisions"]))])
    theta = (multiplier.value - second_moment.value) / (2 * k)
    return float(program.value), x, theta, multiplier.value, program.status


def theta_for(problem, x):
    """T_x, B(x) and the multiplier of T >= I."""
    share, u = sets.omega(problem), problem["decisions"]
    b = (share[:, None] * u).T @ u - (share[:, None] * x).T @ x
    values, vectors = np.linalg.eigh(-b / (2 * problem["regularization"]))
    theta = (vectors * np.maximum(values, 1.0)) @ vectors.T
    return 0.5 * (theta + theta.T), b


def certify(problem, x):
    """Minus D(x), the gap, T_x, P_x; x feasible."""
    share, u, k = sets.omega(problem), problem["decisions"], problem["regularization"]
    theta, b = theta_for(problem, x)
    weighted = share[:, None] * (u - x)
    energy = np.sum(weighted * (base.gram(problem) @ weighted)) / k
    dual = k * np.sum(theta**2) + np.sum(theta * b) - energy
    g = sets.desired_decisions(problem, x)
    y = sets.decided(problem, g, theta)
    return -float(dual), abs(sets.gap_of(share, theta, x, g, y)), theta, 2 * k * theta + b


def respond(problem, theta):
    """The responses for this theta_uu."""
    return sets.feasible(problem, sets.solve_reduced_problem({**problem, "theta_uu": theta}))


def polish(problem, x, theta):
    """Newton's method on T -> theta_for(respond(T)) by finite differences, from Clarabel's T."""
    n = len(theta)
    pairs = [(i, j) for i in range(n) for j in range(i + 1)]

    def pack(t):
        return np.array([t[i, j] for i, j in pairs])

    def unpack(v):
        t = np.zeros((n, n))
        for (i, j), e in zip(pairs, v):
            t[i, j] = t[j, i] = e
        return t

    def above(t):
        values, vectors = np.linalg.eigh(t)
        return (vectors * np.maximum(values, 1.0)) @ vectors.T

    best = (INF, None)
    t = above(theta)
    for _ in range(8):
        x = respond(problem, t)
        gap = certify(problem, x)[1]
        if gap < best[0]:
            best = (gap, x)
        f = pack(theta_for(problem, x)[0]) - pack(t)
        step = 1e-5
        jacobian = np.empty((len(pairs), len(pairs)))
        for c in range(len(pairs)):
            moved = pack(t)
            moved[c] += step
            back = pack(t)
            back[c] -= step
            ahead = pack(theta_for(problem, respond(problem, unpack(moved)))[0]) - moved
            behind = pack(theta_for(problem, respond(problem, unpack(back)))[0]) - back
            jacobian[:, c] = (ahead - behind) / (2 * step)
        change = np.linalg.lstsq(jacobian, -f, rcond=None)[0]
        t = above(unpack(pack(t) + change))
    return best[1]


def cross_check(problem, value, x, theta, multiplier, status):
    k = problem["regularization"]
    inside = sets.feasible(problem, x)
    candidates = [inside, respond(problem, theta)]
    candidates.append(polish(problem, inside, theta))
    certified = [(certify(problem, c), c) for c in candidates if c is not None]
    (reference, gap, best_theta, best_multiplier), best = min(certified, key=lambda c: c[0][1])
    own_gap = certified[0][0][1]
    scale = max(abs(reference), 1e-9)
    disagreement, relative_gap = abs(value - reference) / scale, gap / scale
    theta_error = float(np.max(np.abs(theta - best_theta)))
    theta_accuracy = max(math.sqrt(gap / k), 1e-15)
    values = np.linalg.eigvalsh(best_theta)
    print(
        f"{problem['name']:24s} N={len(x):3d} n={x.shape[1]} {value: .12g} disagreement {disagreement:.1e} gap {relative_gap:.1e} "
        f"(Clarabel's {own_gap / scale:.1e}) x apart {np.max(np.abs(best - x)):.1e} theta apart {theta_error:.1e} proven {theta_accuracy:.1e} eigenvalues {values.round(4)} {status}",
        flush=True,
    )
    if disagreement > 1e-8 or relative_gap > 1e-9:
        print(f"!!! {problem['name']}: the two routes disagree")
        if "--keep-going" not in sys.argv:
            raise SystemExit(1)
    return {
        "objective": value,
        "reduced": reference,
        "theta_uu": best_theta,
        "multiplier": best_multiplier,
        "responses": best,
        "accuracy": max(disagreement, relative_gap, 1e-15),
        "reduced_accuracy": max(relative_gap, 1e-15),
        "responses_accuracy": max(math.sqrt(gap), 1e-15),
        "theta_accuracy": theta_accuracy,
        "solver_theta_uu": theta,
        "solver_multiplier": multiplier,
        "solver_responses": x,
        "solver": f"Clarabel {base.clarabel_version()} on [KIO 6], tolerances {CLARABEL['tol_gap_rel']:g}; "
        f"certified by the saddle point of the reduced problem, scipy {scipy.__version__}",
        "status": status,
        "cvxpy": cp.__version__,
    }


# -------------------------------------------------------------------------------------------------
# The problems


def quadratic_expert(name, seed, n_samples, theta, m, *, k, noise=0.0, signals=1, weights=None, kernel=None, pull=2.0, extra=None):
    """An expert with its own theta_uu: few signals, a set for each sample, decisions X_i(g).

    Where the signal says the same under many sets, g can't explain why decisions differ: theta_uu
    has to.
    """
    rng = np.random.default_rng(seed)
    theta = np.asarray(theta, dtype=float)
    n = len(theta)
    distinct = np.round(rng.normal(size=(signals, 2)), 6)
    pulls = pull * rng.normal(size=(signals, n))
    pick = np.arange(n_samples) % signals
    found = random_rows(m, n, n_samples, low=0.2, high=0.8)(rng)
    problem = {
        "name": name,
        "kernel": kernel or {"kind": "rbf", "gamma": 0.5},
        "regularization": k,
        **found,
        **(extra or {}),
        "features": distinct[pick],
        "decisions": np.zeros((n_samples, n)),
    }
    if weights is not None:
        problem["weights"] = weights
    g = pulls[pick] + noise * rng.normal(size=(n_samples, n))
    problem["decisions"] = sets.decided(problem, g, theta)
    return problem


T2 = [[6.0, 1.5], [1.5, 1.2]]
T3 = [[5.0, 1.0, 0.0], [1.0, 2.0, -0.4], [0.0, -0.4, 1.1]]
T4 = np.diag([8.0, 4.0, 2.0, 1.0]) + 0.3


def one_signal():
    yield quadratic_expert("one_signal_1d", 1, 16, [[3.0]], 2, k=1e-3)
    yield quadratic_expert("one_signal_2d", 2, 20, T2, 4, k=1e-3)
    yield quadratic_expert("one_signal_2d_noise", 3, 20, T2, 4, k=1e-3, noise=0.5)
    yield quadratic_expert("one_signal_3d", 4, 20, T3, 5, k=1e-3)
    yield quadratic_expert("one_signal_4d", 5, 18, T4, 6, k=1e-3)
    yield quadratic_expert("one_signal_small_k", 6, 18, T2, 4, k=1e-5)
    yield quadratic_expert("one_signal_large_k", 7, 18, T2, 4, k=0.1)


def few_signals():
    yield quadratic_expert("few_signals_2d", 10, 24, T2, 4, k=1e-3, signals=3)
    yield quadratic_expert("few_signals_3d", 11, 21, T3, 5, k=1e-4, signals=3, noise=0.3)
    yield quadratic_expert("few_signals_rank_one", 12, 20, T2, 4, k=1e-3, signals=4, kernel={"kind": "linear"})
    yield quadratic_expert("few_signals_small_kernel", 13, 20, T2, 4, k=1e-3, signals=4, kernel={"kind": "scaled", "weight": 0.05, "kernel": {"kind": "rbf", "gamma": 0.5}})
    yield quadratic_expert("few_signals_4d", 14, 16, T4, 7, k=1e-3, signals=2)


def further():
    weights = np.random.default_rng(20).integers(1, 4, size=12).astype(float)
    yield quadratic_expert("weights_2d", 20, 12, T2, 4, k=1e-3, signals=2, weights=weights)
    # Spent budgets: an equality and a box for every sample.
    problem = quadratic_expert("budget_3d", 21, 16, T3, 4, k=1e-3, extra={"lower": [-1.0] * 3, "upper": [1.0] * 3, "equal_matrix": [[1.0, 1.0, 1.0]], "equal_bound": [0.0]})
    yield problem
    # Decisions inflate: mean uu' > mean xx' pushes theta_uu to I.
    yield make("rich_kernel_2d", 22, 16, 3, 2, random_rows(5, 2, 16), gain=1.2)
    yield make("rich_kernel_3d", 23, 14, 3, 3, random_rows(8, 3, 14), gain=1.2, k=1e-4)
    yield make("box_2d", 24, 16, 3, 2, {"lower": [-0.5] * 2, "upper": [0.5] * 2}, gain=1.5)
    yield make("box_1d", 25, 12, 2, 1, {"lower": [-0.5], "upper": [0.5]}, gain=1.5)
    yield make("simplex_4d", 26, 12, 3, 4, {"lower": [0.0] * 4, "equal_matrix": [[1.0] * 4], "equal_bound": [1.0]}, offset=0.2)
    # Scaling T and g down scales the loss of decisions inside their sets down, so the least
    # eigenvalue of T is one, and T = 1 for n = 1. Only decisions outside their sets, whose loss can
    # be negative, lift it.
    for name, seed, n in (("outside_1d", 28, 1), ("outside_2d", 29, 2)):
        box = lambda rng: {"lower": np.round(rng.uniform(0.5, 1.0, size=(14, n)), 4), "upper": [2.0] * n}  # noqa: E731
        problem = make(name, seed, 14, 2, n, box, k=1e-2, offset=0.8)
        problem["decisions"] = np.round(0.6 * problem["decisions"], 6)
        yield problem
    yield make("no_limits_2d", 27, 12, 3, 2, {}, k=1e-2)


def problems():
    for family in (one_signal, few_signals, further):
        yield from family()


if __name__ == "__main__":
    sets.write_folders(HERE, problems(), lambda p: cross_check(p, *solve_semidefinite_program(p)))
