"""Every error of the command is an exception in the same words, but for the names of settings."""

import pickle

import h5py
import numpy as np
import pytest

import argwhy
from argwhy import DataError, KernelInverseOptimizer, ModelFileError, datasets


def fit_words(command, tmp_path, options=(), **arrays):
    np.savez(tmp_path / "d.npz", **arrays)
    told = command("fit", tmp_path / "d.npz", "-o", tmp_path / "m.argwhy", *options, check=False)
    assert told.returncode == 2, told.stderr
    return told.stderr


def test_decisions_outside_their_limits(command, tmp_path, task, plain):
    signals, decisions = task
    words = fit_words(command, tmp_path, ["--bounds=-0.5,0.5"], signals=signals, decisions=decisions)
    with pytest.raises(DataError) as raised:
        KernelInverseOptimizer(bounds=(-0.5, 0.5)).fit(signals, decisions)
    assert plain(str(raised.value)) in plain(words) and "dimension" in words


def test_empty_sets(command, tmp_path, task):
    signals, decisions = task
    M, W = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0])
    words = fit_words(command, tmp_path, ["--constraints"], signals=signals, decisions=decisions, M=M, W=W)
    with pytest.raises(DataError) as raised:
        KernelInverseOptimizer().fit(signals, decisions, constraints=(M, W))
    assert str(raised.value) in words and "M[0]" in words


def test_zero_weights(command, tmp_path, task):
    signals, decisions = task
    weights = np.zeros(200)
    words = fit_words(command, tmp_path, ["--weights"], signals=signals, decisions=decisions, weights=weights)
    with pytest.raises(DataError) as raised:
        KernelInverseOptimizer().fit(signals, decisions, sample_weight=weights)
    assert str(raised.value) in words


def test_theta_below_precision(command, tmp_path, task):
    signals, decisions = task
    options = ["--theta", "learn", "-k", "1e-30"]
    words = fit_words(command, tmp_path, options, signals=signals, decisions=decisions)
    with pytest.raises(ValueError) as raised:
        KernelInverseOptimizer(theta="learn", regularization=1e-30).fit(signals, decisions)
    assert str(raised.value) in words


def test_constraints_are_missing(command, tmp_path):
    nights = datasets.make_charging(20)
    est = KernelInverseOptimizer().fit(nights.signals, nights.decisions, constraints=nights.constraints)
    with pytest.raises(DataError, match="fitted with constraints from its data, so decisions need theirs"):
        est.predict(nights.signals)
    with pytest.raises(DataError, match="M has 20 rows|W has 20 rows|lower has 20 rows|upper has 20 rows"):
        est.predict(nights.signals[:5], nights.constraints)


def every_file(tmp_path):
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "text.npz").write_text("no zip at all")
    (tmp_path / "numbers.csv").write_text("1,2\n3,4\n")
    (tmp_path / "ragged.csv").write_text("signals_0,decisions_0\n1,2\n3\n")
    (tmp_path / "words.csv").write_text("signals_0,decisions_0\n1,many\n")
    np.savez(tmp_path / "both.npz", signals=np.ones((2, 1)), decisions=np.ones((2, 1)), observations=[[1]], actions=[[1]])
    np.savez(tmp_path / "neither.npz", a=np.ones(3))
    np.savez(tmp_path / "nan.npz", signals=[[np.nan]], decisions=[[1.0]])
    np.savez(tmp_path / "rows.npz", signals=np.ones((2, 1)), decisions=np.ones((3, 1)))
    np.savez(tmp_path / "complex.npz", signals=np.ones((2, 1), complex), decisions=np.ones((2, 1)))
    (tmp_path / "folder").mkdir()
    with h5py.File(tmp_path / "group.hdf5", "w") as file:
        file["observations/image"], file["actions"] = np.ones((2, 2)), np.ones((2, 1))
    return [tmp_path / "missing.npz", *sorted(path for path in tmp_path.iterdir())]


def test_every_bad_file(command, tmp_path, plain):
    files = every_file(tmp_path)
    assert len(files) == 13
    for path in files:
        told = command("fit", path, "-o", tmp_path / "m.argwhy", check=False)
        assert told.returncode == 2, path
        with pytest.raises(DataError) as raised:
            datasets.load(path)
        assert plain(str(raised.value)) in plain(told.stderr), path
    with pytest.raises(FileNotFoundError):
        datasets.load(files[0])
    for rows in ("0:9", "5:2", "a:b", "0:1,0:1"):
        np.savez(tmp_path / "good.npz", signals=np.ones((2, 1)), decisions=np.ones((2, 1)))
        told = command("fit", tmp_path / "good.npz", "-o", tmp_path / "m.argwhy", "--rows", rows, check=False)
        with pytest.raises(DataError) as raised:
            datasets.load(tmp_path / "good.npz", rows=rows)
        assert str(raised.value) in told.stderr, rows


def test_every_bad_model(command, tmp_path, task):
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(*task)
    est.save(tmp_path / "good.argwhy")
    good = (tmp_path / "good.argwhy").read_bytes()
    (tmp_path / "cut.argwhy").write_bytes(good[:-10])
    (tmp_path / "flipped.argwhy").write_bytes(good[:-10] + bytes([good[-10] ^ 1]) + good[-9:])
    (tmp_path / "foreign.argwhy").write_text("hello")
    (tmp_path / "empty.argwhy").write_bytes(b"")
    newer = good.replace(b'\\"format\\":2', b'\\"format\\":9')
    assert newer != good
    (tmp_path / "newer.argwhy").write_bytes(newer)
    for name in ("cut", "flipped", "foreign", "empty", "newer", "missing"):
        path = tmp_path / f"{name}.argwhy"
        told = command("inspect", path, check=False)
        assert told.returncode == 2
        with pytest.raises(ModelFileError) as raised:
            KernelInverseOptimizer.load(path)
        assert str(raised.value) in told.stderr
        assert isinstance(raised.value, (ValueError, OSError))
    with pytest.raises(FileNotFoundError):
        KernelInverseOptimizer.load(tmp_path / "missing.argwhy")
    with pytest.raises(ModelFileError, match="cannot write the model"):
        est.save(tmp_path / "no" / "folder" / "m.argwhy")


def test_exceptions_can_be_sent_between_processes():
    for name in argwhy.errors.__all__:
        error = getattr(argwhy.errors, name)("words")
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == "words"


def test_not_fitted():
    est = KernelInverseOptimizer()
    for use in (est.predict, est.desired, est.prices, lambda x: est.objective(x, x), lambda x: est.save("m")):
        with pytest.raises(argwhy.NotFittedError, match="not fitted yet"):
            use([[1.0]])
    for use in (est.plot_convergence, lambda: est.export_onnx("m.onnx")):
        with pytest.raises(argwhy.NotFittedError):
            use()
    for name in ("status_", "certificate_", "coefficients_", "n_features_in_", "history_"):
        assert not hasattr(est, name)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"M": [[1.0, 1.0]]}, "`M` is given but no `W`; M·u ≤ W needs both"),
        ({"W_eq": [1.0]}, "`W_eq` is given but no `M_eq`"),
        ({"N": [1.0]}, "`N` is not known; allowed: M, W, M_eq, W_eq, lower, upper"),
        (([[1.0, 1.0]], [1.0, 2.0]), "M has 1 rows but W has 2"),
        (([[1.0, 1.0, 1.0]], [1.0]), "M has 3 columns where a decision has 2"),
        (([[np.nan, 1.0]], [1.0]), "M has the value NaN"),
        (([1.0, 1.0], [1.0]), "M has the shape 2"),
        ({"lower": np.zeros((7, 2))}, "lower has 7 rows but signals has 200"),
        ({"lower": ["low", "high"]}, "lower holds the text 'low'"),
    ],
)
def test_wrong_constraints(limits, words, task):
    with pytest.raises(DataError) as raised:
        KernelInverseOptimizer(infeasible="clip").fit(*task, constraints=limits)
    assert words in str(raised.value)


def test_constraints_of_a_wrong_type(task):
    with pytest.raises(TypeError, match="constraints is a int"):
        KernelInverseOptimizer().fit(*task, constraints=3)
