"""scikit-learn KernelRidge.fit alone in its process: its time and, seen from outside, its memory.

    kernel_ridge.py WORK --rows N -k K --limit L --dtype float64|float32

writes WORK/ridge-N-dtype.npy, the dual coefficients.
"""

import json
import time
import warnings

import numpy as np
from sklearn.kernel_ridge import KernelRidge

import problem


def main():
    p = problem.parser()
    p.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    arguments = p.parse_args()
    features, decisions = problem.load(arguments, arguments.dtype)
    decisions = decisions.astype(arguments.dtype)
    model = KernelRidge(kernel="rbf", gamma=1.0 / features.shape[1], alpha=arguments.k * len(features))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        model.fit(features, decisions)
        seconds = time.perf_counter() - started
    np.save(arguments.work / f"ridge-{arguments.rows}-{arguments.dtype}.npy", model.dual_coef_)
    # Its Cholesky factorisation can fail in float32; it then says so and solves a least-squares
    # problem, which is slow.
    fell_back = any("least-squares" in str(w.message) for w in caught)
    print(json.dumps({"fit_seconds": seconds, "fell_back": fell_back}))


if __name__ == "__main__":
    main()
