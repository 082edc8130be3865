"""SCS on the paper's semidefinite program, where it fits: `bench/peers/scs_sdp.py` in a process.

In: demonstrations and rows. Out: a policy with its coefficients and what the solver says.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

BENCH = pathlib.Path(__file__).resolve().parents[1]
CLIP = 1000.0


class Missing(Exception):
    """There is no SCS to be had."""


class KernelPolicy:
    """The paper's features and kernel with somebody else's coefficients."""

    def __init__(self, signals, mask, coefficients):
        monomials = expanded(signals)
        self.mean, self.scale = monomials.mean(axis=0), monomials.std(axis=0) + 1e-7
        self.support, self.coefficients = self.features(signals[mask]), coefficients

    def features(self, signals):
        return np.clip((expanded(signals) - self.mean) / self.scale, -CLIP, CLIP)

    def predict(self, signals):
        given = self.features(np.asarray(signals, float))
        products = given @ self.support.T
        squares = (given**2).sum(axis=1)[:, None] + (self.support**2).sum(axis=1) - 2 * products
        return np.clip(np.exp(-squares / given.shape[1]) @ self.coefficients, -1.0, 1.0)


def expanded(signals):
    """All monomials up to degree two, the constant included."""
    signals = np.asarray(signals, float)
    first, second = np.triu_indices(signals.shape[1])
    squares = signals[:, first] * signals[:, second]
    return np.hstack([np.ones((len(signals), 1)), signals, squares])


def solve(demonstrations, mask, regularization):
    python = interpreter()
    decisions = demonstrations.actions[mask].astype(float)
    policy = KernelPolicy(demonstrations.observations, mask, None)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "features-float64.npy", policy.support)
        np.save(folder / "decisions.npy", decisions)
        line = [str(python), str(BENCH / "peers" / "scs_sdp.py"), str(folder), "--rows", str(len(decisions))]
        line += ["-k", str(regularization), "--limit", "1", "--save", str(folder / "found.npy")]
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"SCS failed: {done.stderr[-500:]}")
        policy.coefficients = np.load(folder / "found.npy")
    found = json.loads(done.stdout)
    return policy, {
        "objective": found["objective"], "status": found["status"],
        "iterations": found["iterations"], "seconds": time.monotonic() - started,
    }


def interpreter():
    """This Python if it has CVXPY, else that of `bench/run`, if it was made."""
    if all(map(importlib.util.find_spec, ("cvxpy", "scs", "sklearn"))):
        return sys.executable
    own = BENCH / ".venv" / "bin" / "python"
    if own.exists():
        return own
    raise Missing("no SCS: pip install cvxpy scs scikit-learn")
