"""CVXPY + SCS, default settings, on the paper's semidefinite program [KIO 9] with theta_uu = I.

    min   1/k sum_ij kappa_ij (u_i/N - 2 Gamma_i)'(u_j/N - 2 Gamma_j) + sum_i Tr Lambda_i
    s.t.  W_i/N - 2 M_i Gamma_i >= 0
          [Lambda_i, Gamma_i; Gamma_i', 1/(4N)] positive semidefinite

Lambda_i >= 0, which the last constraint implies, is left out, and the quadratic form is handed over
as such: of the ways to write this program that were tried, the fastest. SCS is stopped after
TIME_LIMIT; its status then says so.
"""

import json
import time

import cvxpy as cp
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

import problem

TIME_LIMIT = 300.0  # seconds


def main():
    parser = problem.parser()
    parser.add_argument("--save", metavar="FILE.npy", help="write the coefficients there")
    arguments = parser.parse_args()
    features, decisions = problem.load(arguments)
    n_samples, decision_dim = decisions.shape

    started = time.perf_counter()
    gram = cp.psd_wrap(rbf_kernel(features, gamma=1.0 / features.shape[1]))
    gamma = cp.Variable((n_samples, decision_dim))
    capital_lambda = [cp.Variable((decision_dim, decision_dim), symmetric=True) for _ in range(n_samples)]
    error = decisions / n_samples - 2 * gamma
    energy = sum(cp.quad_form(error[:, axis], gram) for axis in range(decision_dim))
    constraints = [arguments.limit / n_samples - 2 * gamma >= 0, arguments.limit / n_samples + 2 * gamma >= 0]
    corner = np.array([[1 / (4 * n_samples)]])
    for i, lambda_i in enumerate(capital_lambda):
        gamma_i = gamma[i : i + 1].T
        constraints.append(cp.bmat([[lambda_i, gamma_i], [gamma_i.T, corner]]) >> 0)
    program = cp.Problem(cp.Minimize(energy / arguments.k + sum(cp.trace(m) for m in capital_lambda)), constraints)
    program.solve(solver=cp.SCS, time_limit_secs=TIME_LIMIT)
    total = time.perf_counter() - started

    responses = 2 * n_samples * gamma.value
    # The matrix constraints, scaled so that their corner is 1: how far the worst smallest
    # eigenvalue is below zero.
    smallest = min(
        np.linalg.eigvalsh(4 * n_samples * np.block([[m.value, g[:, None]], [g[None, :], corner]]))[0]
        for m, g in zip(capital_lambda, gamma.value)
    )
    coefficients = (decisions - responses) / (arguments.k * n_samples)
    if arguments.save:
        np.save(arguments.save, coefficients)
    assessed = problem.assess(features, decisions, coefficients, arguments.k, arguments.limit)
    stats = program.solver_stats
    print(
        json.dumps(
            {
                "status": program.status,
                "iterations": stats.num_iters,
                "solver_seconds": stats.solve_time + (stats.setup_time or 0.0),
                "compilation_seconds": program.compilation_time,
                "total_seconds": total,
                "limit_violation": float(max(0.0, np.max(np.abs(responses)) - arguments.limit)),
                "semidefinite_violation": float(max(0.0, -smallest)),
                "primal": assessed["primal"],
                "objective": float(program.value),
            }
        )
    )


if __name__ == "__main__":
    main()
