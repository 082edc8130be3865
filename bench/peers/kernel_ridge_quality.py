"""How good kernel ridge coefficients are as an answer to the problem with limits; outside the timed process.

    kernel_ridge_quality.py WORK --rows N -k K --limit L --dtype float64|float32    reads WORK/ridge-N-dtype.npy
"""

import json

import numpy as np

import problem


def main():
    p = problem.parser()
    p.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    arguments = p.parse_args()
    features, decisions = problem.load(arguments)
    coefficients = np.load(arguments.work / f"ridge-{arguments.rows}-{arguments.dtype}.npy").astype(np.float64)
    answer = problem.assess(features, decisions, coefficients, arguments.k, arguments.limit)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
