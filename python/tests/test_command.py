"""Python and the command are one program: the same bits, and each reads the other's files."""

import json
from pathlib import Path

import numpy as np
import pytest

from argwhy import KernelInverseOptimizer, datasets

FITS = {
    "newton, factorised": ({"bounds": (-1, 1)}, ["--bounds=-1,1"]),
    "newton, f32": (
        {"bounds": (-1, 1), "memory": "31MiB", "operator": "tiled"},
        ["--bounds=-1,1", "--memory", "31MiB", "--operator", "tiled"],
    ),
    "sso": (
        {"bounds": (-1, 1), "solver": "sso", "seed": 7, "block": 0.25, "tol": 1e-4},
        ["--bounds=-1,1", "--solver", "sso", "--seed", "7", "--block", "0.25", "--tol", "1e-4"],
    ),
    "theta": (
        {"bounds": (-1, 1), "theta": "learn", "regularization": 1e-3},
        ["--bounds=-1,1", "--theta", "learn", "-k", "1e-3"],
    ),
    "kernels": (
        {"unbounded": True, "kernel": "matern32 + 0.5*polynomial(degree=2)", "features": "raw"},
        ["--unbounded", "--kernel", "matern32 + 0.5*polynomial(degree=2)", "--features", "raw"],
    ),
    "plain": (
        {"bounds": (-1, 1), "kernel": "linear", "primal": True, "intercept": True},
        ["--bounds=-1,1", "--kernel", "linear", "--primal", "--intercept"],
    ),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.parametrize("rows", [None, "20:150"])
def test_the_same_bits(name, rows, task, command, tmp_path):
    signals, decisions = task
    parameters, options = FITS[name]
    np.savez(tmp_path / "d.npz", signals=signals, decisions=decisions)
    by_rows = [] if rows is None else ["--rows", rows]
    told = command("fit", tmp_path / "d.npz", "-o", tmp_path / "m.argwhy", "--json", *by_rows, *options)
    said = json.loads(told.stdout)
    own = KernelInverseOptimizer(**parameters).fit(signals, decisions, rows=rows)
    theirs = KernelInverseOptimizer.load(tmp_path / "m.argwhy")

    for name in ("objective", "primal", "dual", "gap", "relative_gap"):
        assert getattr(own.certificate_, name) == said[name]
    assert (own.status_, own.n_iter_, own.kernel_products_, own.n_support_) == (
        said["status"], said["iterations"], said["kernel_products"], said["n_support"],
    )
    assert np.array_equal(own.coefficients_, theirs.coefficients_)
    assert np.array_equal(own.theta_uu_, theirs.theta_uu_)
    assert np.array_equal(own.support_, theirs.support_)

    # Python's model in the command, the command's in Python, and Python's own: the same decisions.
    own.save(tmp_path / "own.argwhy")
    for model in ("m.argwhy", "own.argwhy"):
        command("predict", tmp_path / model, tmp_path / "d.npz", "-o", tmp_path / f"{model}.npy")
    decided = np.load(tmp_path / "m.argwhy.npy")
    assert np.array_equal(decided, np.load(tmp_path / "own.argwhy.npy"))
    assert np.array_equal(decided, own.predict(signals))
    assert np.array_equal(decided, theirs.predict(signals))
    # The command's words for settings are not those typed in Python, but they mean the same.
    assert theirs.fit(signals, decisions, rows=rows).certificate_ == own.certificate_


def test_constraints_and_weights_are_the_same_too(command, tmp_path):
    nights = datasets.make_charging(40)
    weights = np.arange(40) % 3
    np.savez(
        tmp_path / "d.npz", signals=nights.signals, decisions=nights.decisions, weights=weights,
        **nights.constraints.arrays(),
    )
    command("fit", tmp_path / "d.npz", "-o", tmp_path / "m.argwhy", "--constraints", "--weights", "-k", "1e-4")
    command("predict", tmp_path / "m.argwhy", tmp_path / "d.npz", "-o", tmp_path / "o.npy", "--prices", tmp_path / "p.npz")
    read = datasets.read(tmp_path / "d.npz", constraints=True, weights="weights")
    own = KernelInverseOptimizer(regularization=1e-4).fit(
        read.signals, read.decisions, sample_weight=read.weights, constraints=read.constraints
    )
    theirs = KernelInverseOptimizer.load(tmp_path / "m.argwhy")
    assert own.certificate_ == theirs.certificate_
    assert np.array_equal(own.predict(nights.signals, nights.constraints), np.load(tmp_path / "o.npy"))
    prices, written = own.prices(nights.signals, nights.constraints), np.load(tmp_path / "p.npz")
    assert np.array_equal(prices["price"], written["price"]) and np.array_equal(prices["row"], written["row"])
    assert len(prices["price"]) == len(prices["limit"]) > 0
    assert own.prices_["limit"] == theirs.prices_["limit"]


def test_a_file_keeps_parameters(task, tmp_path):
    signals, decisions = task
    est = KernelInverseOptimizer(lower=[-1, -np.inf], upper=[1, 1], kernel="rbf + linear", gamma=0.5, memory="1.5GiB")
    est.fit(signals, decisions).save(tmp_path / "m.argwhy")
    again = KernelInverseOptimizer.load(tmp_path / "m.argwhy").get_params()
    assert (again["lower"], again["upper"], again["gamma"], again["memory"]) == ((-1, -np.inf), (1, 1), 0.5, "1.5GiB")


def test_decisions_of_one_dimension_stay_flat(task, tmp_path):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions[:, 0])
    assert est.predict(signals).shape == est.desired(signals).shape == (200,)
    est.save(tmp_path / "m.argwhy")
    assert np.array_equal(KernelInverseOptimizer.load(tmp_path / "m.argwhy").predict(signals), est.predict(signals))


def test_a_model_says_how_it_came_about_in_both(command, tmp_path):
    rng = np.random.default_rng(5)
    signals, decisions = rng.normal(size=(30, 2)), rng.uniform(-1, 1, size=(30, 1))
    np.savez(tmp_path / "d.npz", signals=signals, decisions=decisions)
    command("fit", tmp_path / "d.npz", "-o", tmp_path / "m.argwhy", "--bounds=-1,1", "--holdout", "0")
    theirs = KernelInverseOptimizer.load(tmp_path / "m.argwhy").provenance_
    assert theirs["source"] == "d.npz" and theirs["command"].startswith("argwhy fit ")
    own = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    assert own.provenance_["rows"] == theirs["rows"]
    assert set(own.provenance_["versions"]) == {"argwhy", "python"} and "source" not in own.provenance_
    own.save(tmp_path / "own.argwhy")
    assert KernelInverseOptimizer.load(tmp_path / "own.argwhy").provenance_ == own.provenance_
    # Those of earlier versions do not know.
    old = sorted((Path(__file__).parents[2] / "crates/io/tests/data").glob("format-[234].safetensors"))
    assert old and all(KernelInverseOptimizer.load(path).provenance_ == {} for path in old)
