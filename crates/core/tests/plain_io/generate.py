"""Plain inverse optimization with the optimum of the paper's own program.

    python generate.py

writes `problems.json`, next to this file: a list of problems, each with

    name, regularization k, features N x d (used as they are), decisions N x n,
    matrix, bound      M_i (N lists of m x n) and W_i (N x m): the set of sample i is M_i u <= W_i
    primal             optimal value of [KIO 4] less the constant k n
    weights            V = -theta_su at the optimum, d x n
    accuracy           of `primal`, relative: how far CVXPY's value is from the same loss
                       evaluated at its theta_su

The oracle is CVXPY with Clarabel on the linear matrix inequality [KIO 4] of "Scalable Kernel
Inverse Optimization" (NeurIPS 2024) with theta_uu = I:

    min   k (|theta_uu|^2 + |theta_su|^2)
          + 1/N sum_i ( u_i' theta_uu u_i + 2 phi_i' theta_su u_i + 1/4 gamma_i + W_i' lambda_i )
    s.t.  lambda_i >= 0
          [ theta_uu                              M_i' lambda_i + 2 theta_su' phi_i ]  positive
          [ (M_i' lambda_i + 2 theta_su' phi_i)'  gamma_i                           ]  semidefinite

It has neither projections nor the reduction argwhy is built on. Everything is seeded.
"""

import json
import pathlib
import warnings

import cvxpy as cp
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
CLARABEL = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12, "max_iter": 200}


def box(n_samples, lower, upper):
    n = len(lower)
    matrix = np.vstack([np.eye(n), -np.eye(n)])
    bound = np.concatenate([upper, -np.asarray(lower)])
    return np.repeat(matrix[None], n_samples, 0), np.repeat(bound[None], n_samples, 0)


def project(point, matrix, bound):
    u = cp.Variable(len(point))
    cp.Problem(cp.Minimize(cp.sum_squares(u - point)), [matrix @ u <= bound]).solve(solver=cp.CLARABEL, **CLARABEL)
    return u.value


def solve(k, phi, decisions, matrix, bound):
    n_samples, n = decisions.shape
    theta_su = cp.Variable((phi.shape[1], n))
    identity = np.eye(n)
    loss, constraints = 0, []
    for i in range(n_samples):
        u, f = decisions[i], phi[i]
        lam, gamma = cp.Variable(len(bound[i])), cp.Variable()
        linear = cp.reshape(matrix[i].T @ lam + 2 * theta_su.T @ f, (n, 1), order="C")
        block = cp.bmat([[identity, linear], [linear.T, cp.reshape(gamma, (1, 1), order="C")]])
        constraints += [lam >= 0, block >> 0]
        loss += u @ u + 2 * (f @ theta_su) @ u + gamma / 4 + bound[i] @ lam
    objective = k * (n + cp.sum_squares(theta_su)) + loss / n_samples
    program = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        program.solve(solver=cp.CLARABEL, **CLARABEL)
    return float(program.value) - k * n, theta_su.value


def loss_at(k, theta_su, phi, decisions, matrix, bound):
    """[KIO 3] less k n at theta_su, its inner minima by a quadratic program each."""
    total = k * np.sum(theta_su**2)
    for f, u, m, w in zip(phi, decisions, matrix, bound):
        g = -theta_su.T @ f
        y = project(g, m, w)
        total += (u @ u - 2 * g @ u - y @ y + 2 * g @ y) / len(phi)
    return total


def problems():
    rng = np.random.default_rng(4)
    for name, n_samples, d, n, k, gain in [
        ("box", 14, 4, 2, 1e-2, 1.0),
        ("box_saturated", 16, 3, 1, 1e-3, 3.0),
        ("own_boxes", 12, 3, 2, 1e-1, 1.5),
        ("polyhedra", 12, 3, 2, 1e-2, 1.5),
        ("polyhedra_wide", 8, 12, 3, 1e-2, 1.0),
    ]:
        phi = rng.standard_normal((n_samples, d))
        wanted = gain * phi @ rng.standard_normal((d, n)) / np.sqrt(d)
        wanted += 0.2 * rng.standard_normal((n_samples, n))
        matrix, bound = box(n_samples, -np.ones(n), np.ones(n))
        if name == "own_boxes":
            bound = bound * rng.uniform(0.2, 1.0, bound.shape)
        if name.startswith("polyhedra"):
            matrix = np.concatenate([matrix, rng.standard_normal((n_samples, 3, n))], axis=1)
            bound = np.concatenate([bound, rng.uniform(0.2, 0.8, (n_samples, 3))], axis=1)
        decisions = np.array([project(u, m, w) for u, m, w in zip(wanted, matrix, bound)])
        # Strictly inside or on the limit, not beyond it by the projection's rounding.
        decisions *= 1 - 1e-9
        primal, theta_su = solve(k, phi, decisions, matrix, bound)
        accuracy = abs(loss_at(k, theta_su, phi, decisions, matrix, bound) / primal - 1)
        assert accuracy < 1e-7, (name, accuracy)
        yield {
            "name": name,
            "regularization": k,
            "features": phi.tolist(),
            "decisions": decisions.tolist(),
            "matrix": matrix.tolist(),
            "bound": bound.tolist(),
            "primal": primal,
            "weights": (-theta_su).tolist(),
            "accuracy": accuracy,
        }


if __name__ == "__main__":
    found = list(problems())
    for problem in found:
        print(problem["name"], problem["primal"], problem["accuracy"])
    (HERE / "problems.json").write_text(json.dumps(found, indent=None, separators=(",", ":")) + "\n")
