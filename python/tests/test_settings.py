"""One list of settings, one of defaults, one set of words: Python, config file and command."""

import inspect
import json
import re

import numpy as np
import pytest

from argwhy import KernelInverseOptimizer, _argwhy

OWN = {"warm_start", "checkpoint", "checkpoint_every", "backend", "verbose", "callback"}
WITH_DATA = {"constraints", "matrix", "matrix_eq", "weights"}


def python_parameters():
    found = inspect.signature(KernelInverseOptimizer.__init__).parameters
    return {name: p.default for name, p in found.items() if name != "self"}


def test_the_signature_has_rusts_names_and_defaults():
    own = python_parameters()
    assert {name: own[name] for name in own if name not in OWN} == _argwhy.defaults()
    assert list(KernelInverseOptimizer().get_params()) == list(own)


def candidates(name):
    """Values that might do for a setting: what it says it takes, refusing nonsense, and numbers."""
    with pytest.raises(ValueError) as raised:
        _argwhy.resolved({name: "nonsense"})
    listed = re.findall("`([^`]+)`", str(raised.value))
    return [*listed, True, 3, 0.25, (0.5, 2.0), "512MiB", "rbf + linear"]


@pytest.mark.parametrize("name", _argwhy.defaults())
def test_every_keyword_reaches_the_settings(name):
    """Of the constructor as of `set_params`; what a new setting would take is found out here."""
    default = _argwhy.defaults()
    for value in candidates(name):
        try:
            expected = _argwhy.resolved({name: value})
        except ValueError:
            continue
        if expected == default:
            continue
        for est in (KernelInverseOptimizer(**{name: value}), KernelInverseOptimizer().set_params(**{name: value})):
            assert _argwhy.resolved({each: getattr(est, each) for each in default}) == expected
        return
    pytest.fail(f"no value found for {name}")


def test_an_unknown_setting_is_refused_with_the_nearest():
    for wrong, near in (("regularisation", "regularization"), ("maxiterations", "max_iterations"), ("krenel", "kernel")):
        with pytest.raises(ValueError, match=f"`{wrong}` is not a setting; did you mean `{near}`?"):
            _argwhy.resolved({wrong: 1})


@pytest.fixture(scope="module")
def stored(command, tmp_path_factory):
    """Settings that the command keeps in a model when nobody says anything."""
    folder = tmp_path_factory.mktemp("settings")
    data = np.random.default_rng(0).normal(size=(20, 2))
    np.savez(folder / "d.npz", signals=data, decisions=data[:, :1])
    command("fit", folder / "d.npz", "-o", folder / "m.argwhy")
    found = json.loads(command("inspect", folder / "m.argwhy", "--json").stdout)["settings"]
    return {name.replace("-", "_"): value for name, value in found.items()}


def test_the_command_has_the_same_names_and_defaults(stored):
    assert set(stored) == set(python_parameters()) - OWN | WITH_DATA
    # Written for people in Python, for programs in the model.
    same = {name: value for name, value in _argwhy.defaults().items() if name != "memory"}
    assert {name: stored[name] for name in same} == same
    assert (_argwhy.defaults()["memory"], stored["memory"]) == ("2GiB", 2 << 30)


def test_every_parameter_is_an_option_of_the_command_and_of_the_config_file(command, tmp_path):
    help_text = command("fit", "--help").stdout
    for name in set(python_parameters()) - OWN:
        assert f"--{name.replace('_', '-')}" in help_text, name
    # A config file that says every default is a file that says nothing.
    lines = []
    for name, value in _argwhy.defaults().items():
        if value is not None:
            lines.append(f"{name.replace('_', '-')} = {json.dumps(value)}")
    (tmp_path / "fit.toml").write_text("\n".join(lines))
    data = np.random.default_rng(0).normal(size=(20, 2))
    np.savez(tmp_path / "d.npz", signals=data, decisions=data[:, :1])
    command("fit", tmp_path / "d.npz", "-o", tmp_path / "m.argwhy", "--config", tmp_path / "fit.toml")
    loaded = KernelInverseOptimizer.load(tmp_path / "m.argwhy")
    assert loaded.get_params() == KernelInverseOptimizer().get_params()


WRONG = [
    ("kernel", "gauss"),
    ("kernel", "rbf - linear"),
    ("gamma", "wide"),
    ("tol", -1.0),
    ("tol", "small"),
    ("regularization", 0.0),
    ("bounds", [1.0]),
    ("bounds", [2.0, 1.0]),
    ("memory", "two"),
    ("block", 2.5),
    ("threads", 0),
    ("threads", True),
    ("max_iterations", 1.5),
    ("features", "poly3"),
    ("solver", "adam"),
    ("degree", 2),
    ("theta", "free"),
    ("memory", "1MiB"),
    ("length_scales", [1.0]),
    ("infeasible", "ignore"),
    ("clip", 0.0),
    ("seed", -1),
    ("device", "gpu"),
    ("device", "cuda:99"),
]


@pytest.mark.parametrize(("name", "value"), WRONG, ids=lambda v: str(v))
def test_a_wrong_setting_has_the_config_files_words(name, value, command, tmp_path, plain):
    data = np.random.default_rng(0).normal(size=(20, 2))
    np.savez(tmp_path / "d.npz", signals=data, decisions=data[:, :1])
    (tmp_path / "fit.toml").write_text(f"{name.replace('_', '-')} = {json.dumps(value)}\n")
    told = command("fit", tmp_path / "d.npz", "-o", tmp_path / "m", "--config", tmp_path / "fit.toml", check=False)
    assert told.returncode == 2
    with pytest.raises(ValueError) as raised:
        KernelInverseOptimizer(**{name: value}).fit(data, data[:, :1])
    message = re.sub(rf"^{name}: ", "", str(raised.value))
    assert plain(message) in plain(told.stderr), told.stderr


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("kernel", object(), "kernel is a object"),
        ("bounds", {1, 2}, "bounds is a set"),
        ("seed", 2**70, f"seed is {2**70}"),
        ("callback", "stop", "callback is a str"),
    ],
)
def test_a_wrong_type_says_what_was_given(name, value, words, task):
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        KernelInverseOptimizer(**{name: value}).fit(*task)


def test_a_list_in_itself_is_no_setting(task):
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="without end"):
        KernelInverseOptimizer(bounds=endless).fit(*task)


def test_values_of_numpy_are_values(task):
    signals, decisions = task
    plain = KernelInverseOptimizer(bounds=(-1, 1), max_iterations=50, seed=3, intercept=False).fit(signals, decisions)
    numpy = KernelInverseOptimizer(
        bounds=np.array([-1, 1], dtype=np.float32), max_iterations=np.int32(50), seed=np.uint8(3), intercept=np.bool_(False)
    ).fit(signals, decisions)
    assert np.array_equal(plain.coefficients_, numpy.coefficients_)


def test_none_is_a_setting_that_is_not_mentioned(task):
    signals, decisions = task
    est = KernelInverseOptimizer(bounds=(-1, 1), tol=None, kernel=None).fit(signals, decisions)
    assert np.array_equal(est.predict(signals), KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions).predict(signals))


def test_a_preset_is_the_papers_settings_under_what_is_given() -> None:
    preset = KernelInverseOptimizer.from_preset("walker2d-medium")
    assert (preset.regularization, preset.bounds, preset.kernel) == (1e-5, (-1.0, 1.0), "rbf")
    assert KernelInverseOptimizer.from_preset("walker2d-medium-v2").get_params() == preset.get_params()
    mine = KernelInverseOptimizer.from_preset("hopper-expert", regularization=2.0, verbose=1)
    assert (mine.regularization, mine.verbose, mine.bounds) == (2.0, 1, (-1.0, 1.0))


def test_limits_that_are_given_replace_those_of_a_preset() -> None:
    est = KernelInverseOptimizer.from_preset("hopper-expert", upper=[2, 3])
    assert (est.bounds, est.lower, est.upper) == (None, (-1.0, -1.0), (2.0, 3.0))


def test_an_unknown_preset_or_parameter_is_named() -> None:
    with pytest.raises(ValueError, match="no preset `ant-expert`; there are `hopper-expert`"):
        KernelInverseOptimizer.from_preset("ant-expert")
    with pytest.raises(TypeError, match="speed"):
        KernelInverseOptimizer.from_preset("hopper-expert", speed=3)
