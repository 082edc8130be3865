"""Names of columns: kept by a fit, by its file, and used where decisions and limits are named."""

import numpy as np
import pandas as pd
import pytest

from argwhy import Constraints, DataError, KernelInverseOptimizer


@pytest.fixture
def days():
    draw = np.random.default_rng(0)
    price, load = draw.uniform(20, 80, 60), draw.uniform(0, 1, 60)
    X = pd.DataFrame({"price": price, "load": load})
    y = pd.DataFrame({"power": np.clip(50 - 0.5 * price, 0, 30), "heat": np.clip(20 * load, 0, 15)})
    return X, y


def test_names_survive_save_and_load(days, tmp_path):
    X, y = days
    est = KernelInverseOptimizer(lower=[0, 0], upper=[30, 15]).fit(X, y)
    assert est.decision_names_ == ["power", "heat"]
    est.save(tmp_path / "m.argwhy")
    back = KernelInverseOptimizer.load(tmp_path / "m.argwhy")
    assert back.feature_names_in_.tolist() == ["price", "load"] and back.decision_names_ == ["power", "heat"]
    assert np.array_equal(back.predict(X), est.predict(X))
    with pytest.raises(ValueError, match="same order"):
        back.predict(X[["load", "price"]])
    with pytest.raises(ValueError, match="missing"):
        back.predict(X[["price"]])
    assert set(back.prices(X)["limit"]) <= {"lower[power]", "upper[power]", "lower[heat]", "upper[heat]"}
    # A single decision has its series' name.
    one = KernelInverseOptimizer(bounds=(0, 30)).fit(X, y["power"])
    assert one.decision_names_ == ["power"] and one.predict(X).ndim == 1


def test_the_command_and_python_share_names(days, tmp_path, command):
    X, y = days
    pd.concat([X, y], axis=1).to_csv(tmp_path / "days.csv", index=False)
    path = tmp_path / "m.argwhy"
    words = ["--signals=price,load", "--decisions=power,heat", "--lower=0,0", "--upper=30,15"]
    command("fit", tmp_path / "days.csv", *words, "-q", "-o", path)
    est = KernelInverseOptimizer.load(path)
    assert est.feature_names_in_.tolist() == ["price", "load"] and est.decision_names_ == ["power", "heat"]


def test_limits_have_names_and_frames_of_limits_any_order(days):
    X, y = days
    M = pd.DataFrame({"heat": [1.0], "power": [2.0]})
    limits = Constraints(M=M, W=[50.0], names=["grid connection"])
    est = KernelInverseOptimizer(lower=[0, 0], infeasible="clip").fit(X, y, constraints=limits)
    prices = est.prices(X, limits)
    assert "grid connection" in prices["limit"] and "grid connection" in est.prices_["limit"]
    swapped = Constraints(M=[[2.0, 1.0]], W=[50.0])
    assert np.array_equal(est.predict(X, limits), est.predict(X, swapped))
    with pytest.raises(DataError, match="heat"):
        est.predict(X, {"M": pd.DataFrame({"power": [1.0], "wind": [1.0]}), "W": [3.0]})


def test_names_that_no_model_can_keep_are_compared_all_the_same(days):
    X, y = days
    twice = X.set_axis(["a", "a"], axis=1)
    est = KernelInverseOptimizer(bounds=(0, 30)).fit(twice, y)
    assert est.feature_names_in_.tolist() == ["a", "a"]
    with pytest.raises(ValueError, match="feature names"):
        est.predict(X)


def test_units_are_kept_and_told(days, tmp_path, command):
    X, y = days
    X = X.rename(columns={"load": "load [MW]"})
    units = {"power": "kW", "price": "EUR/MWh"}
    est = KernelInverseOptimizer(lower=[0, 0], upper=[30, 15]).fit(X, y, units=units)
    assert est.units_ == {**units, "load [MW]": "MW"} == est.explain(X)["units"]
    est.save(tmp_path / "m.argwhy")
    back = KernelInverseOptimizer.load(tmp_path / "m.argwhy")
    assert back.units_ == est.units_ and back.feature_names_in_.tolist() == ["price", "load [MW]"]
    pd.concat([X, y], axis=1).to_csv(tmp_path / "days.csv", index=False)
    told = command("explain", tmp_path / "m.argwhy", tmp_path / "days.csv").stdout
    assert "EUR/MWh, the desired power falls by" in told and " kW." in told and " MW, the desired heat" in told
    # They stay where rows are added, and nobody has to say any.
    grown = KernelInverseOptimizer(lower=[0, 0], upper=[30, 15]).fit(X[:40], y[:40], units=units)
    assert grown.partial_fit(X[40:], y[40:]).units_ == est.units_
    assert KernelInverseOptimizer(unbounded=True).fit(days[0], y).units_ == {}
    with pytest.raises(ValueError, match="`prize`, where there are price"):
        KernelInverseOptimizer(unbounded=True).fit(X, y, units={"prize": "EUR"})


def test_errors_name_decisions(days):
    X, y = days
    with pytest.raises(DataError, match="`heat` has .* outside"):
        KernelInverseOptimizer(lower=[0, 0], upper=[30, 5]).fit(X, y)
