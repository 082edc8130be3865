"""The features of the paper's experiments, ready for the peers; argwhy makes its own.

    features.py DATA.npz WORK

writes WORK/features-float64.npy, features-float32.npy, decisions.npy and feature-statistics.npz.
"""

import json
import pathlib
import sys

import numpy as np
from sklearn.preprocessing import PolynomialFeatures

CLIP = 1000.0


def standardise(monomials, mean, scale):
    return np.clip((monomials - mean) / scale, -CLIP, CLIP)


def main():
    data, work = np.load(sys.argv[1]), pathlib.Path(sys.argv[2])
    monomials = PolynomialFeatures(degree=2, include_bias=True).fit_transform(data["observations"].astype(np.float64))
    mean, scale = monomials.mean(axis=0), monomials.std(axis=0) + 1e-7
    features = standardise(monomials, mean, scale)
    np.save(work / "features-float64.npy", features)
    np.save(work / "features-float32.npy", features.astype(np.float32))
    np.save(work / "decisions.npy", data["actions"].astype(np.float64))
    np.savez(work / "feature-statistics.npz", mean=mean, scale=scale, signals=data["observations"].astype(np.float64))
    print(json.dumps({"n_rows": len(features), "feature_dim": features.shape[1]}))


if __name__ == "__main__":
    main()
