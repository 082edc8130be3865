"""scikit-learn SVR, one a dimension of the decision, and nothing else in the process.

    svr.py WORK --rows N -k K --limit L --setting matched|default

writes WORK/svr-N-setting.npz with `coefficients` and `intercept`.

    SVR     1/2 |w|^2 + C sum_i max(0, |u_i - g_i| - epsilon)
    argwhy  1/2 |w|^2 + 1/(2kN) sum_i |u_i - g_i|^2 - dist(g_i, box)^2

The second is what argwhy minimises, divided by 2k.

so C = 1/(2kN) weighs the norm as argwhy does: `matched`. `default` is scikit-learn's C = 1. epsilon
is scikit-learn's 0.1 in both. The dimensions are solved side by side, in threads (libsvm itself has
one), with a gigabyte of cache each.
"""

import json
import os
import time

import joblib
import numpy as np
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVR

import problem


def main():
    p = problem.parser()
    p.add_argument("--setting", choices=["matched", "default"], required=True)
    arguments = p.parse_args()
    features, decisions = problem.load(arguments)
    penalty = 1.0 / (2.0 * arguments.k * len(features)) if arguments.setting == "matched" else 1.0
    model = MultiOutputRegressor(SVR(kernel="rbf", gamma=1.0 / features.shape[1], C=penalty, epsilon=0.1, cache_size=1000))
    with joblib.parallel_config(backend="threading", n_jobs=len(os.sched_getaffinity(0))):
        started = time.perf_counter()
        model.fit(features, decisions)
        seconds = time.perf_counter() - started
    coefficients = np.zeros_like(decisions)
    for axis, machine in enumerate(model.estimators_):
        coefficients[machine.support_, axis] = machine.dual_coef_[0]
    intercept = np.array([machine.intercept_[0] for machine in model.estimators_])
    np.savez(arguments.work / f"svr-{arguments.rows}-{arguments.setting}.npz", coefficients=coefficients, intercept=intercept)
    n_support = int(np.count_nonzero(np.any(coefficients != 0.0, axis=1)))
    print(json.dumps({"fit_seconds": seconds, "C": penalty, "n_support": n_support}))


if __name__ == "__main__":
    main()
