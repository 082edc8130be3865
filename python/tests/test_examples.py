"""The examples run as they are, with fewer rows, and say what they claim."""

import runpy
from pathlib import Path

import matplotlib as mpl

EXAMPLES = Path(__file__).parents[2] / "examples"
mpl.use("Agg")


def run(name, rows, monkeypatch, tmp_path):
    monkeypatch.setenv("ARGWHY_EXAMPLE_ROWS", str(rows))
    monkeypatch.chdir(tmp_path)
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_from_a_csv_to_a_cost_function(monkeypatch, tmp_path):
    told = run("csv_to_cost", 240, monkeypatch, tmp_path)
    assert told["decision_error"] < 2.0
    assert told["value_error"] < 0.5
    assert told["costs"].argmin() == 0


def test_choosing_by_cross_validation(monkeypatch, tmp_path):
    told = run("choosing_by_cross_validation", 200, monkeypatch, tmp_path)
    assert told["best"].status_ == "solved"
    assert told["chosen_error"] < 1.1 * told["default_error"]
