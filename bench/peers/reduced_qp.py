"""OSQP and Clarabel, by their own Python interfaces, on [KIO 9] reduced by theta_uu = I.

    reduced_qp.py WORK --rows N -k K --limit L --solver osqp|osqp-1e-6|clarabel

Without its matrix constraints the program is  min 1/N sum |x_i|^2 + 1/(k N^2) sum_ij kappa_ij (u_i
- x_i)'(u_j - x_j)  over x_i in the box; limits leave the dimensions of a decision apart. In e = u -
x, times N/2, for each dimension, with lambda = kN:

    min  1/2 e'(I + K/lambda) e - u'e     s.t.  u - L <= e <= u + L

Of the ways to write it that were tried (in x; in e; divided by lambda or not) the one both solve
fastest and best. The matrix is ready before the clock starts. OSQP factorises once and is given the
other dimensions by `update`.
"""

import json
import time

import clarabel
import numpy as np
import osqp
import scipy.sparse as sparse
from sklearn.metrics.pairwise import rbf_kernel

import problem

TIME_LIMIT = 300.0  # seconds, for each dimension


def by_osqp(matrix, linear, lower, upper, settings):
    identity = sparse.eye(matrix.shape[0], format="csc")
    solver = osqp.OSQP()
    errors, statuses, iterations = [], [], 0
    for axis in range(len(linear)):
        if axis == 0:
            solver.setup(matrix, linear[0], identity, lower[0], upper[0], verbose=False, time_limit=TIME_LIMIT, **settings)
        else:
            solver.update(q=linear[axis], l=lower[axis], u=upper[axis])
        result = solver.solve(raise_error=False)
        errors.append(result.x.copy())
        statuses.append(result.info.status)
        iterations += result.info.iter
    return errors, statuses, iterations


def by_clarabel(matrix, linear, lower, upper):
    identity = sparse.eye(matrix.shape[0], format="csc")
    rows = sparse.vstack([identity, -identity], format="csc")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.time_limit = TIME_LIMIT
    errors, statuses, iterations = [], [], 0
    for axis in range(len(linear)):
        bounds = np.concatenate([upper[axis], -lower[axis]])
        solver = clarabel.DefaultSolver(matrix, linear[axis], rows, bounds, [clarabel.NonnegativeConeT(len(bounds))], settings)
        result = solver.solve()
        errors.append(np.array(result.x))
        statuses.append(str(result.status))
        iterations += result.iterations
    return errors, statuses, iterations


def main():
    p = problem.parser()
    p.add_argument("--solver", choices=["osqp", "osqp-1e-6", "clarabel"], required=True)
    arguments = p.parse_args()
    features, decisions = problem.load(arguments)
    n_samples = len(features)
    ridge = arguments.k * n_samples

    matrix = rbf_kernel(features, gamma=1.0 / features.shape[1])
    matrix /= ridge
    matrix[np.diag_indices(n_samples)] += 1.0
    matrix = sparse.csc_matrix(np.triu(matrix))
    # One contiguous row a dimension: OSQP reads a strided column as if it were one.
    observed = np.ascontiguousarray(decisions.T)
    linear, lower, upper = -observed, observed - arguments.limit, observed + arguments.limit

    started = time.perf_counter()
    if arguments.solver == "clarabel":
        errors, statuses, iterations = by_clarabel(matrix, linear, lower, upper)
    else:
        tight = {"eps_abs": 1e-6, "eps_rel": 1e-6, "max_iter": 100000}
        errors, statuses, iterations = by_osqp(matrix, linear, lower, upper, tight if arguments.solver == "osqp-1e-6" else {})
    seconds = time.perf_counter() - started

    errors = np.array(errors).T
    responses = decisions - errors
    answer = problem.assess(features, decisions, errors / ridge, arguments.k, arguments.limit)
    answer |= {
        "solve_seconds": seconds,
        "status": ", ".join(sorted(set(statuses))),
        "iterations": iterations,
        "limit_violation": float(max(0.0, np.max(np.abs(responses)) - arguments.limit)),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
