"""Whatever holds numbers can be given, and the answer does not depend on how it was held."""

import datetime
import re
import tempfile
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from argwhy import DataError, KernelInverseOptimizer, LimitsWarning


def misaligned(a):
    room = np.zeros(a.nbytes + 1, dtype=np.uint8)
    out = room[1:].view(a.dtype).reshape(a.shape)
    out[...] = a
    assert not out.flags.aligned
    return out


def strided(a):
    wide = np.zeros((2 * a.shape[0], 3 * a.shape[1]), dtype=a.dtype)
    wide[::2, ::3] = a
    return wide[::2, ::3]


def packed(a):
    """A column of a record: 8-byte numbers 12 bytes apart."""
    records = np.zeros(a.shape, dtype=[("skip", "f4"), ("value", a.dtype)])
    records["value"] = a
    return records["value"]


def read_only(a):
    out = a.copy()
    out.flags.writeable = False
    return out


class Own(np.ndarray):
    pass


def memmap(a):
    with tempfile.NamedTemporaryFile() as file:
        a.tofile(file.name)
        return np.memmap(file.name, dtype=a.dtype, mode="r", shape=a.shape)


WAYS = {
    "fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "read-only": read_only,
    "misaligned": misaligned,
    "packed": packed,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "broadcast": lambda a: np.broadcast_to(a[None], (2, *a.shape))[1],
    "subclass": lambda a: a.view(Own),
    "masked, nothing hidden": lambda a: np.ma.masked_array(a),
    "list": lambda a: a.tolist(),
    "tuples": lambda a: tuple(map(tuple, a.tolist())),
    "objects": lambda a: a.astype(object),
    "pandas": lambda a: pd.DataFrame(a),
    "polars": lambda a: pl.DataFrame(a),
    "memmap": memmap,
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("way", WAYS)
def test_how_numbers_are_held_makes_no_difference(way, dtype, task):
    signals, decisions = (part.astype(dtype) for part in task)
    plain = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    held = KernelInverseOptimizer(bounds=(-1, 1)).fit(WAYS[way](signals), WAYS[way](decisions))
    assert np.array_equal(held.coefficients_, plain.coefficients_)
    # What is no array has no precision of its own, and is double.
    kept = dtype if way not in ("list", "tuples", "objects") else "f8"
    expected = plain.predict(signals.astype(kept))
    for rows in (slice(None), slice(3, 4)):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X .* feature names")
            found = held.predict(WAYS[way](signals[rows]))
        assert np.array_equal(found, expected[rows]), rows
        assert found.dtype == np.dtype(kept)


def test_integers_and_bools_are_numbers():
    rng = np.random.default_rng(1)
    signals = rng.integers(-3, 4, (60, 2))
    decisions = np.clip(signals[:, :1] - signals[:, 1:], -2, 2)
    floats = KernelInverseOptimizer(bounds=(-2, 2)).fit(signals.astype(float), decisions.astype(float))
    for dtype in ("i1", "i8", "f2", "longdouble"):
        est = KernelInverseOptimizer(bounds=(-2, 2)).fit(signals.astype(dtype), decisions.astype(dtype))
        assert np.array_equal(est.predict(signals.astype(dtype)), floats.predict(signals.astype(float)))
        assert est.predict(signals.astype(dtype)).dtype == np.float64
    KernelInverseOptimizer().fit(signals > 0, decisions > 0)


def test_single_precision_stays_and_keeps_its_limits(task):
    signals, decisions = task
    # Limits that no single-precision number equals; at them rounding to nearest would leave the
    # set.
    lower, upper = np.array([-0.1, -0.3]), np.array([0.1, 0.7])
    est = KernelInverseOptimizer(lower=lower, upper=upper, infeasible="clip").fit(signals, decisions)
    single = signals.astype(np.float32)
    for rows in (single, single[:1]):
        found = est.predict(rows)
        assert found.dtype == np.float32
        assert (found.astype(float) >= lower).all() and (found.astype(float) <= upper).all()
    double = est.predict(single.astype(float))
    assert (double == upper).any() and (double == lower).any()
    assert np.abs(est.predict(single) - double).max() <= 1e-7
    nearest = double.astype(np.float32).astype(float)
    assert (nearest > upper).any() or (nearest < lower).any(), "the test would pass without rounding inward"
    assert est.desired(single).dtype == np.float32


def test_where_no_single_precision_number_fits_decisions_are_double(task):
    signals, decisions = task
    est = KernelInverseOptimizer(lower=[0.1, -1], upper=[0.1, 1], infeasible="clip").fit(signals, decisions)
    assert est.predict(signals.astype(np.float32)).dtype == np.float64
    boxed = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    limits = {"M": [[1.0, 1.0]], "W": [0.5]}
    assert boxed.predict(signals.astype(np.float32), limits).dtype == np.float64


def test_columns_with_names_are_compared(task):
    signals, decisions = task
    frame = pd.DataFrame(signals, columns=["a", "b", "c"])
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(frame, decisions)
    assert est.feature_names_in_.tolist() == ["a", "b", "c"]
    plain = KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)
    assert np.array_equal(est.predict(frame), plain.predict(signals))
    assert np.array_equal(est.predict(pl.DataFrame(signals, schema=["a", "b", "c"])), plain.predict(signals))
    with pytest.raises(ValueError, match="same order"):
        est.predict(frame[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="valid feature names"):
        est.predict(signals)
    # Fitted again without names, it has none.
    assert not hasattr(est.fit(signals, decisions), "feature_names_in_")


WRONG = {
    "text": ("abc", "X is a str"),
    "none": (None, "X is None"),
    "dict": ({"a": 1}, "X is a dict"),
    "scalar": (3.0, "shape ()"),
    "1-D": (np.zeros(3), "Reshape your data"),
    "3-D": (np.zeros((2, 3, 4)), "3-D"),
    "complex": (np.zeros((2, 3), complex), "Complex data not supported"),
    "strings": (np.array([["a", "b", "c"]]), "column 0 of X holds the text 'a' at row 0"),
    "dates": (np.zeros((2, 3), "M8[s]"), "dtype datetime64"),
    "ragged": ([[1, 2, 3], [1, 2]], "X (list) is no array of numbers"),
    "words": (np.array([[1, "a", 2]], object), "column 1 of X holds the text 'a' at row 0"),
    "hidden": (np.ma.masked_array(np.zeros((2, 3)), [[1, 0, 0], [0, 0, 0]]), "masked"),
    "width": (np.zeros((2, 4)), "signals has 4 columns where the model has 3"),
    "nan": (np.full((2, 3), np.nan), "NaN at row 0, column 0"),
    "inf": (np.full((1, 3), np.inf), "inf at row 0, column 0"),
    "no columns": (np.zeros((2, 0)), "X has 0 features"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name, task):
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(*task)
    value, words = WRONG[name]
    with pytest.raises((DataError, TypeError)) as raised:
        est.predict(value)
    assert words in str(raised.value), str(raised.value)


COLUMNS = {
    "dates": (pd.to_datetime(["2026-01-01", "2026-01-02"]), "column 'b' of X holds dates (dtype datetime64"),
    "spans": (pd.to_timedelta([1, 2], unit="h"), "column 'b' of X holds spans of time"),
    "days": ([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)], "column 'b' of X holds the date 2026-01-01 at row 0"),
    "text": (["1.5", "north"], "column 'b' of X holds the text '1.5' at row 0; expected numbers"),
    "categories": (pd.Categorical(["x", "y"]), "column 'b' of X holds the text 'x' at row 0"),
    "NA": (pd.array([1.5, pd.NA], dtype="Float64"), "column 'b' of X holds a missing value"),
    "integer NA": (pd.array([1, None], dtype="Int64"), "column 'b' of X holds a missing value"),
    "None": ([1.5, None], "column 'b' of X holds a missing value (NaN) at row 1; fill it in"),
    "inf": ([1.5, np.inf], "column 'b' of X holds inf at row 1"),
    "things": ([object(), 1.5], "column 'b' of X holds <object object"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_that_holds_no_numbers_is_named(name):
    values, words = COLUMNS[name]
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": values})
    for use in (
        lambda: KernelInverseOptimizer(bounds=(-1, 1)).fit(frame, [0.0, 1.0]),
        lambda: KernelInverseOptimizer(bounds=(-1, 1)).fit(frame.astype({"b": object}), [0.0, 1.0]),
    ):
        with pytest.raises((DataError, TypeError)) as raised:
            use()
        assert "column 'b' of X" in str(raised.value)
    with pytest.raises((DataError, TypeError)) as raised:
        KernelInverseOptimizer(bounds=(-1, 1)).fit(frame, [0.0, 1.0])
    assert words in str(raised.value), str(raised.value)


def test_columns_of_polars_and_series_are_named_too():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]})
    with pytest.raises(DataError, match="column 'b' of X holds dates"):
        KernelInverseOptimizer(bounds=(-1, 1)).fit(frame, [0.0, 1.0])
    with pytest.raises(DataError, match=r"y \('power'\) holds a missing value"):
        KernelInverseOptimizer(bounds=(-1, 1)).fit(np.eye(2), pd.Series([1, None], name="power", dtype="Int64"))
    fine = pd.DataFrame({"a": pd.array([1, 2, 3], dtype="Int64"), "b": [True, False, True], "c": [0.5, 1, 2]})
    KernelInverseOptimizer(bounds=(-1, 1)).fit(fine, [0.0, 1.0, 0.5])


def test_limits_that_may_not_be_meant_are_said_as_the_command_says_them(task, command, plain, tmp_path):
    signals, decisions = task
    np.savez(tmp_path / "task.npz", signals=signals, decisions=decisions)
    for settings, flags, words in (
        ({}, [], "no limits given, so decisions are unbounded"),
        ({"bounds": (-0.5, 0.5), "infeasible": "clip"}, ["--bounds=-0.5,0.5", "--infeasible", "clip"], "are moved to the nearest limit"),
        ({"bounds": (-0.5, 0.5), "infeasible": "keep"}, ["--bounds=-0.5,0.5", "--infeasible", "keep"], "are fitted as they are"),
    ):
        with pytest.warns(LimitsWarning, match=words) as caught:
            KernelInverseOptimizer(max_iterations=50, **settings).fit(signals, decisions)
        said = [str(w.message) for w in caught if issubclass(w.category, LimitsWarning)]
        told = command("fit", tmp_path / "task.npz", *flags, "-o", tmp_path / "m.argwhy").stderr
        note = next(line for line in told.splitlines() if words in line)
        words_of = [re.findall(r"\w+", plain(text)) for text in (note, "note: " + said[0])]
        assert len(said) == 1 and words_of[0] == words_of[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelInverseOptimizer(unbounded=True).fit(signals, decisions)
        KernelInverseOptimizer(bounds=(-1, 1)).fit(signals, decisions)


def test_more_than_any_memory_is_an_exception(task):
    est = KernelInverseOptimizer(bounds=(-1, 1)).fit(*task)
    endless = np.broadcast_to(np.zeros((1, 3)), (1 << 50, 3))
    with pytest.raises(MemoryError):
        est.predict(endless)
    with pytest.raises(ValueError, match="this machine has"):
        big = np.random.default_rng(0).normal(size=(500_000, 2))
        KernelInverseOptimizer(memory="100TiB", operator="stored").fit(big, big)
