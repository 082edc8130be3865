"""The problem as every peer gets it on its command line: WORK --rows N -k K --limit L, and its objective and certificate."""

import argparse
import pathlib

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel


def parser():
    p = argparse.ArgumentParser()
    p.add_argument("work", type=pathlib.Path)
    p.add_argument("--rows", type=int, required=True)
    p.add_argument("-k", type=float, required=True)
    p.add_argument("--limit", type=float, required=True)
    return p


def load(arguments, dtype="float64"):
    """The first rows of features (`dtype`) and decisions (float64)."""
    features = np.load(arguments.work / f"features-{dtype}.npy", mmap_mode="r")[: arguments.rows]
    decisions = np.load(arguments.work / "decisions.npy", mmap_mode="r")[: arguments.rows]
    if len(features) < arguments.rows:
        raise SystemExit(f"{arguments.rows} rows asked for, {len(features)} there")
    return np.array(features), np.array(decisions)


def assess(features, decisions, coefficients, k, limit):
    """Any coefficients as a model for the problem with limits; float64 throughout.

        g          = K alpha                                                             what the model wants at each signal
        primal     k alpha'K alpha + 1/N sum |u_i - g_i|^2 - dist(g_i, box)^2            what training minimises, [KIO 3] - kn
        objective  1/N sum |x_i|^2 + 1/(k N^2) sum_ij kappa_ij (u_i - x_i)'(u_j - x_j)   [KIO 9] at x = u - kN alpha, which need
                                                                                         not respect the limits

    primal is an upper bound on the optimal value, whatever the coefficients; `outside` counts the entries of g beyond a limit.
    """
    n_samples = len(features)
    gamma = 1.0 / features.shape[1]
    g = np.empty_like(decisions)
    for start in range(0, n_samples, 1000):
        rows = slice(start, start + 1000)
        g[rows] = rbf_kernel(features[rows], features, gamma=gamma) @ coefficients
    energy = k * float(np.sum(coefficients * g))
    beyond = g - np.clip(g, -limit, limit)
    responses = decisions - k * n_samples * coefficients
    return {
        "primal": energy + float(np.sum((decisions - g) ** 2) - np.sum(beyond**2)) / n_samples,
        "objective": float(np.sum(responses**2)) / n_samples + energy,
        "outside": int(np.count_nonzero(beyond)),
        "entries": int(g.size),
    }
