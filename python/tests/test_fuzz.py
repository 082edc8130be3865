"""Random arrays, dtypes, shapes, settings: an answer or an exception, and the interpreter lives."""

import warnings

import numpy as np
import pytest

from argwhy import InternalError, KernelInverseOptimizer, _argwhy

SEEDS = 20
ROUNDS = 200

DTYPES = ["f8", "f4", "f2", "i8", "u1", "?", ">f8", ">i4", "c16", "U3", "O", "M8[s]", "V8", "longdouble"]


def random_array(rng, shape):
    dtype = rng.choice(DTYPES)
    scale = rng.choice([0.0, 1e-300, 1.0, 1.0, 1e8, 1e200])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = np.array(np.nan_to_num(rng.normal(size=shape) * scale))
        if rng.random() < 0.1 and values.size:
            values.flat[rng.integers(values.size)] = rng.choice([np.nan, np.inf, -np.inf])
        if dtype in ("M8[s]", "V8"):
            return np.zeros(shape, dtype)
        array = np.array(values.astype(dtype))
    way = rng.integers(6)
    if way == 0:
        array = np.asfortranarray(array)
    elif way == 1 and array.ndim:
        array = array[::-1]
    elif way == 2 and array.size:
        room = np.zeros(array.nbytes + 1, np.uint8)
        if array.dtype.kind != "O":
            room = room[1:].view(array.dtype)
            room[...] = array.ravel()
            array = room.reshape(array.shape)
    elif way == 3:
        array.flags.writeable = False
    elif way == 4:
        return array.tolist()
    return array


def random_shape(rng, n):
    width = int(rng.integers(0, 4))
    return [(n, width), (n, width), (n, width), (n,), (n, width, 2), (), (0, width), (n + 1, width)][rng.integers(8)]


def good_array(rng, shape):
    return (rng.normal(size=shape) * rng.choice([1.0, 1e3])).astype(rng.choice(["f8", "f4"]))


def random_parameters(rng):
    choices = {
        "kernel": ["rbf", "laplace", "linear", "matern32", "polynomial", "rbf*linear + 2*laplace", "x", "((", 3, None],
        "regularization": [1e-6, 1.0, 1e-300, 1e300, 0, -1, np.nan, "a"],
        "bounds": [(-1, 1), (0, 0), (1, -1), (-np.inf, np.inf), (np.nan, 1), [], "0,1", 3, (None, 1), np.ones((2, 2))],
        "lower": [[0.0], [-1.0, -1.0], [np.inf], np.zeros(3), "low"],
        "features": ["raw", "poly2", "poly9"],
        "normalize": ["zscore", "none"],
        "clip": [1e-3, 1000, np.inf],
        "gamma": ["auto", 1e-300, 1e300, -1],
        "solver": ["newton", "sso"],
        "theta": ["identity", "learn"],
        "concurrent_blocks": [1, 2, 5, 0],
        "block": [1, 0.1, 1.0, 10**9, "1", 0],
        "selection": ["violation", "paper", "cyclic", "random"],
        "init": ["zero", "expert", "warm-up", "paper-warm-up"],
        "warm_up": [1, 3, 10**6, 0],
        "infeasible": ["error", "clip", "keep"],
        "memory": ["2GiB", "1B", "40MiB", 1e30, -1],
        "threads": [1, 2, 0, -1, 10**6],
        "precision": ["f32", "f64"],
        "operator": ["auto", "stored", "tiled"],
        "primal": [True, False],
        "intercept": [True, False],
        "seed": [0, 2**63 - 1, -1],
        "tol": [1e-6, 1e-300, 1e300],
        "degree": [1, 32, 99],
        "length_scales": [[1.0], [1.0, 0.0]],
    }
    picked = rng.choice(list(choices), size=rng.integers(0, 6), replace=False)
    return {name: choices[name][rng.integers(len(choices[name]))] for name in picked}


def attempt(work):
    """Anything but a bug of ours may come back."""
    try:
        return work()
    except InternalError:
        raise
    except Exception as error:
        assert str(error), f"{type(error).__name__} says nothing"
        return None


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_takes_the_interpreter_along(seed):
    rng = np.random.default_rng(seed)
    fitted = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(ROUNDS):
            n = int(rng.integers(1, 40))
            tame = rng.random() < 0.6
            make = (lambda shape: good_array(rng, shape)) if tame else (lambda shape: random_array(rng, shape))
            X = make((n, 2) if tame else random_shape(rng, n))
            y = make((n, int(rng.integers(1, 3))) if tame else random_shape(rng, n))
            est = KernelInverseOptimizer(**{"max_iterations": 20, "time_limit": 1.0, **random_parameters(rng)})
            limits = None
            if rng.random() < 0.3:
                limits = {
                    "M": random_array(rng, (2, 1)) if rng.random() < 0.5 else np.ones((1, np.shape(y)[-1] if np.ndim(y) == 2 else 1)),
                    "W": random_array(rng, (n, 1)) if rng.random() < 0.3 else [1e9],
                }
            weights = random_array(rng, (n,)) if rng.random() < 0.2 else None
            if attempt(lambda: est.fit(X, y, sample_weight=weights, constraints=limits)) is None:
                continue
            fitted += 1
            assert np.isfinite(est.certificate_.gap) or est.status_ != "solved"
            for new in (X, random_array(rng, random_shape(rng, n))):
                found = attempt(lambda: est.predict(new, limits))
                assert found is None or np.isfinite(found).all()
                attempt(lambda: est.objective(new, y))
                attempt(lambda: est.prices(new, limits))
    assert fitted >= ROUNDS // 10


def test_random_bytes_are_no_model():
    rng = np.random.default_rng(0)
    good = KernelInverseOptimizer().fit(rng.normal(size=(9, 1)), rng.normal(size=9))._model.__reduce__()[1][0]
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(rng.integers(1, 4)):
            bad[rng.integers(len(bad))] ^= int(rng.integers(1, 256))
        bad = bytes(bad[: rng.integers(len(bad))]) if rng.random() < 0.3 else bytes(bad)
        with pytest.raises(ValueError):
            _argwhy.model_from_bytes(bad)
