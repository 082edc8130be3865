"""Explanations and familiarity in Python: the command's numbers, plots and a summary."""

import json

import numpy as np
import pandas as pd
import pytest

from argwhy import DataError, KernelInverseOptimizer

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def fitted():
    draw = np.random.default_rng(1)
    X = pd.DataFrame(draw.uniform(-1, 1, (200, 3)), columns=["price", "load", "idle"])
    y = pd.DataFrame({"power": np.clip(2 * X["load"] - 3 * X["price"], -4, 4)})
    return KernelInverseOptimizer(kernel="rbf", bounds=(-4, 4), regularization=1e-6).fit(X, y), X, y


def test_effects_are_the_commands(fitted, tmp_path, command):
    est, X, y = fitted
    explained = est.explain(X)
    assert [signal["name"] for signal in explained["signals"]] == ["price", "load", "idle"]
    assert sum(signal["importance"] for signal in explained["signals"]) == pytest.approx(1)
    slope = np.diff(explained["signals"][0]["effect"]["desired"][0]) / np.diff(explained["signals"][0]["effect"]["at"])
    assert slope == pytest.approx(-3, abs=0.3)
    est.save(tmp_path / "m.argwhy")
    pd.concat([X, y], axis=1).to_csv(tmp_path / "d.csv", index=False, float_format="%.17g")
    told = json.loads(command("explain", tmp_path / "m.argwhy", tmp_path / "d.csv", "--json").stdout)
    assert told["signals"][0]["importance"] == pytest.approx(explained["signals"][0]["importance"], rel=1e-9)
    # Without data, over the samples it keeps.
    assert est.explain()["situations"]["support_only"]


def test_one_decision_adds_up_to_what_is_desired(fitted):
    est, X, _ = fitted
    one = est.explain_one(X.iloc[[7]], X, by=0.5)
    pushed = sum(push["push"][0] for push in one["pushes"])
    assert pushed == pytest.approx(one["desired"][0] - one["typical"]["desired"][0])
    assert one["decisions"] == ["power"] and len(one["rests_on"]) == 10
    assert est.explain_one(X.iloc[7], X)["desired"] == one["desired"]


def test_what_is_far_is_strange(fitted, tmp_path):
    est, X, _ = fitted
    assert (est.familiarity(X) >= 1).mean() > 0.97
    far = X.assign(price=5.0)
    assert (est.familiarity(far) < 1).all()
    est.save(tmp_path / "m.argwhy")
    assert np.array_equal(KernelInverseOptimizer.load(tmp_path / "m.argwhy").familiarity(X), est.familiarity(X))


def test_pictures_and_the_summary(fitted):
    est, X, _ = fitted
    panels = est.plot_effects(X)
    assert [panel.get_xlabel() for panel in panels.flat] == ["price", "load", "idle"]
    assert len(est.plot_effects(X, signals=["load"]).flat) == 1
    with pytest.raises(ValueError, match="wind"):
        est.plot_effects(X, signals=["wind"])
    html = est._repr_html_()
    assert "price" in html and "solved" in html and "power" in html
    assert "KernelInverseOptimizer" in KernelInverseOptimizer()._repr_html_()


def test_plain_models_need_data(fitted):
    _, X, y = fitted
    plain = KernelInverseOptimizer(kernel="linear", primal=True, bounds=(-4, 4)).fit(X, y)
    with pytest.raises((DataError, ValueError), match="keeps no samples"):
        plain.explain()
    assert plain.explain(X)["signals"][0]["name"] == "price"
    assert plain._repr_html_().count("<table>") == 1


def test_a_known_price_counts_in_money(fitted):
    est, X, _ = fitted
    money = est.explain(X, numeraire={"power": "price"})["money"]
    # Three units of power less for a unit of price: 1/(2 · 3).
    assert money["worth"] == pytest.approx(1 / 6, rel=0.1) and (money["decision"], money["signal"]) == ("power", "price")
    held = est.explain_one([[-0.98, 0.98, 0.0]], X, numeraire={"power": "price"})
    assert held["held_by"][0]["money"] == pytest.approx(held["held_by"][0]["price"] * money["worth"])
    assert "money" not in est.explain(X)
    for wrong in ({}, {"power": "price", "heat": "price"}, "power=price"):
        with pytest.raises(ValueError, match="numeraire"):
            est.explain(X, numeraire=wrong)
    with pytest.raises(DataError, match="no signal `nothing`"):
        est.explain(X, numeraire={"power": "nothing"})
