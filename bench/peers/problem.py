"""The problem as peers are given it: WORK --rows N -k K --limit L; objective and certificate."""

import argparse
import pathlib

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel


# Rows at the end of the data that nothing is trained on.
HELD_OUT = 4000


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


def held_out(arguments):
    """Features and decisions of the rows kept apart, float64."""
    features = np.load(arguments.work / "features-float64.npy", mmap_mode="r")
    decisions = np.load(arguments.work / "decisions.npy", mmap_mode="r")
    if arguments.rows > len(features) - HELD_OUT:
        raise SystemExit(f"training on {arguments.rows} of {len(features)} rows leaves no {HELD_OUT} to test on")
    return np.array(features[-HELD_OUT:]), np.array(decisions[-HELD_OUT:])


def rmse(decided, decisions, limit):
    """Root of the mean squared error of decisions brought inside the limits."""
    return float(np.sqrt(np.mean((np.clip(decided, -limit, limit) - decisions) ** 2)))


def wanted(at, features, coefficients, intercept=0.0):
    """g = K alpha + intercept at the rows of `at`, before limits; a thousand rows at a time."""
    gamma = 1.0 / features.shape[1]
    g = np.empty((len(at), coefficients.shape[1]))
    for start in range(0, len(at), 1000):
        rows = slice(start, start + 1000)
        g[rows] = rbf_kernel(at[rows], features, gamma=gamma) @ coefficients + intercept
    return g


def assess(features, decisions, coefficients, k, limit, intercept=0.0):
    """Any coefficients as a model for the problem with limits; float64 throughout.

        g          = K alpha + intercept (none in this problem)
                   what the model wants at each signal
        primal     k alpha'K alpha + 1/N sum |u_i - g_i|^2 - dist(g_i, box)^2
                   what training minimises, [KIO 3] - kn
        objective  1/N sum |x_i|^2 + 1/(k N^2) sum_ij kappa_ij (u_i - x_i)'(u_j - x_j)
                   [KIO 9] at x = u - kN alpha, which need not respect the limits

    primal is an upper bound on the optimal value, whatever the coefficients; `outside` counts the
    entries of g beyond a limit.
    """
    n_samples = len(features)
    g = wanted(features, features, coefficients, intercept)
    energy = k * float(np.sum(coefficients * (g - intercept)))
    beyond = g - np.clip(g, -limit, limit)
    responses = decisions - k * n_samples * coefficients
    return {
        "primal": energy + float(np.sum((decisions - g) ** 2) - np.sum(beyond**2)) / n_samples,
        "objective": float(np.sum(responses**2)) / n_samples + energy,
        "outside": int(np.count_nonzero(beyond)),
        "entries": int(g.size),
    }
