"""How good a model is on the problem with limits and on rows kept apart; outside the timed process.

    judge.py WORK --rows N -k K --limit L --coefficients FILE
    judge.py WORK --rows N -k K --limit L --decided FILE.npy

--coefficients   .npy, or .npz with `coefficients` and `intercept`, in WORK
--decided        decisions on the rows kept apart: their error alone
"""

import json

import numpy as np

import problem


def main():
    p = problem.parser()
    what = p.add_mutually_exclusive_group(required=True)
    what.add_argument("--coefficients")
    what.add_argument("--decided")
    arguments = p.parse_args()
    new_features, new_decisions = problem.held_out(arguments)
    if arguments.decided:
        decided = np.load(arguments.work / arguments.decided).astype(np.float64)
        assert decided.shape == new_decisions.shape, f"{decided.shape} decisions, {new_decisions.shape} asked for"
        answer = {}
    else:
        features, decisions = problem.load(arguments)
        saved = np.load(arguments.work / arguments.coefficients)
        coefficients, intercept = saved, 0.0
        if arguments.coefficients.endswith(".npz"):
            coefficients, intercept = saved["coefficients"], saved["intercept"]
        coefficients = coefficients.astype(np.float64)
        answer = problem.assess(features, decisions, coefficients, arguments.k, arguments.limit, intercept)
        decided = problem.wanted(new_features, features, coefficients, intercept)
    print(json.dumps(answer | {"held_out_rmse": problem.rmse(decided, new_decisions, arguments.limit)}))


if __name__ == "__main__":
    main()
