"""Prediction by scikit-learn, one row at a time and in a batch, in three ways.

    kernel_ridge_predict.py WORK --rows N -k K --limit L --way WAY --calls C --batch B

    features   KernelRidge.predict on ready features, clipped to the limits
    signals    the same from the raw signal: monomials, z-score, clip, KernelRidge.predict, clip
    quadprog   the paper's way: sklearn's rbf_kernel for the row, then a quadratic program
               min u'u - 2 g'u, M u <= W

Needs WORK/ridge-N-float64.npy (kernel_ridge.py), or fits it before the clock starts.
"""

import json
import time

import numpy as np
import quadprog
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

import features as feature_map
import problem


def fitted_model(arguments):
    """KernelRidge with the coefficients of an earlier fit."""
    features, decisions = problem.load(arguments)
    model = KernelRidge(kernel="rbf", gamma=1.0 / features.shape[1], alpha=arguments.k * len(features))
    saved = arguments.work / f"ridge-{arguments.rows}-float64.npy"
    if not saved.exists():
        return model.fit(features, decisions)
    model.fit(features[:2], decisions[:2])  # sets what predict checks; then the real thing
    model.X_fit_, model.dual_coef_ = features, np.load(saved)
    return model


def by_features(model, arguments):
    return lambda rows: np.clip(model.predict(rows), -arguments.limit, arguments.limit)


def by_signals(model, arguments):
    statistics = np.load(arguments.work / "feature-statistics.npz")
    mean, scale = statistics["mean"], statistics["scale"]
    monomials = PolynomialFeatures(degree=2, include_bias=True).fit(statistics["signals"][:1])

    def decide(rows):
        features = feature_map.standardise(monomials.transform(rows), mean, scale)
        return np.clip(model.predict(features), -arguments.limit, arguments.limit)

    return decide


def by_quadprog(model, arguments):
    decision_dim = model.dual_coef_.shape[1]
    identity = np.eye(decision_dim)
    normals = np.hstack([identity, -identity])  # quadprog: normals' u >= offsets
    offsets = np.full(2 * decision_dim, -arguments.limit)
    hessian = 2.0 * identity

    def decide(rows):
        g = rbf_kernel(rows, model.X_fit_, gamma=model.gamma) @ model.dual_coef_
        return np.array([quadprog.solve_qp(hessian, 2.0 * row, normals, offsets)[0] for row in g])

    return decide


def main():
    p = problem.parser()
    p.add_argument("--way", choices=["features", "signals", "quadprog"], required=True)
    p.add_argument("--calls", type=int, required=True)
    p.add_argument("--batch", type=int, required=True)
    arguments = p.parse_args()
    model = fitted_model(arguments)
    decide = {"features": by_features, "signals": by_signals, "quadprog": by_quadprog}[arguments.way](model, arguments)
    if arguments.way == "signals":
        inputs = np.load(arguments.work / "feature-statistics.npz")["signals"]
    else:
        inputs = np.load(arguments.work / "features-float64.npy")
    inputs = inputs[-arguments.batch :]  # rows the model has not seen, as far as there are any

    singles = []
    for call in range(arguments.calls + 20):
        row = inputs[call % len(inputs)][None, :]
        started = time.perf_counter()
        decide(row)
        singles.append(time.perf_counter() - started)
    singles = 1e6 * np.array(singles[20:])  # the first 20 warm up

    batch = []
    for _ in range(3):
        started = time.perf_counter()
        decided = decide(inputs)
        batch.append(1e6 * (time.perf_counter() - started) / len(inputs))
    assert np.max(np.abs(decided)) <= arguments.limit * (1 + 1e-9)
    print(
        json.dumps(
            {
                "n_support": len(model.X_fit_),
                "single_us_p50": float(np.percentile(singles, 50)),
                "single_us_p99": float(np.percentile(singles, 99)),
                "batch_us": batch,
            }
        )
    )


if __name__ == "__main__":
    main()
