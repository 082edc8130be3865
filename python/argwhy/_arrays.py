"""Whatever people have, as float arrays that Rust can read: values are checked there, axes here."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _arrow
from .errors import DataError
from .typing import FloatArray


_TIMES = dict(M="holds dates", m="holds spans of time")
"""What a column of NumPy's kinds of time does."""


def _kind(values: Any) -> str:
    cls = type(values)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__.split('.')[0]}.{cls.__name__}"


def _floats(values: Any, what: str) -> FloatArray:
    """An aligned float32 or float64 array in this machine's byte order; float32 stays as it is."""
    if values is None:
        raise DataError(f"{what} is None; expected an array of numbers")
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise TypeError(f"{what} is a sparse {_kind(values)}; sparse input is not supported, convert it with .toarray()")
    if isinstance(values, np.ma.MaskedArray) and bool(np.any(values.mask)):
        raise DataError(f"{what} is a masked array with masked values; fill them or leave those rows out")
    if _arrow.offers(values):
        values = _arrow.read(values, what)
    if isinstance(values, (str, bytes, dict, set)):
        raise TypeError(f"{what} is a {_kind(values)}; expected an array of numbers")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} ({_kind(values)}) is no array of numbers: {error}") from error
    except TypeError as error:
        # Dates beside numbers, in a table of pyarrow's.
        if not _has_columns(values):
            raise
        raise _no_numbers(values, np.empty(0), what, error) from error
    kind = array.dtype.kind
    if kind == "c":
        raise DataError(f"Complex data not supported: {what} has dtype {array.dtype}; expected real numbers")
    if kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise _no_numbers(values, array, what, error) from error
    elif kind not in "biuf" or _has_dates(values):
        raise _no_numbers(values, array, what)
    if array.dtype.kind == "f" and _has_columns(values) and not bool(np.isfinite(array).all()):
        raise _no_numbers(values, array, what)
    if array.dtype.kind == "f" and array.dtype.itemsize == 4:
        return np.require(array, dtype=np.float32, requirements=["ALIGNED"])
    return np.require(array, dtype=np.float64, requirements=["ALIGNED"])


def _has_columns(values: Any) -> bool:
    """Whether it is a frame, or a series with a name: what is wrong then has a name too."""
    return not isinstance(values, np.ndarray) and (hasattr(values, "columns") or isinstance(getattr(values, "name", None), str))


def _has_dates(values: Any) -> bool:
    """Whether it is a frame of polars with dates, which turn into numbers beside numbers."""
    dtypes = values.dtypes if hasattr(values, "columns") and hasattr(values, "dtypes") else ()
    return any(getattr(dtype, "is_temporal", bool)() for dtype in dtypes)


def _no_numbers(values: Any, array: NDArray[Any], what: str, error: Exception | None = None) -> Exception:
    """What is wrong with the first column that can't be used, and what to do about it."""
    for label, column in _columns(values, array, what):
        kind = column.dtype.kind
        if kind in _TIMES:
            return DataError(
                f"{label} {_TIMES[kind]} (dtype {column.dtype}); expected numbers: "
                "turn them into some that mean something, such as the hour of the day or the days since the first, or leave the column out"
            )
        for row, value in enumerate(column):
            problem = _problem(value)
            if problem is not None:
                return DataError(f"{label} holds {problem[0]} at row {row}; {problem[1]}")
            if not isinstance(value, (numbers.Number, np.generic)):
                kind_of_error = TypeError if isinstance(error, TypeError) else DataError
                return kind_of_error(f"{label} holds {value!r} at row {row}; expected numbers ({error})")
    return DataError(
        f"{what} has dtype {array.dtype}; expected bool, integers or floats of at most 64 bits, convert it first"
    )


def _columns(values: Any, array: NDArray[Any], what: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Each column with what to call it, one by one: dates beside numbers stay dates."""
    if hasattr(type(values), "column_names") and hasattr(values, "column"):
        # A table of pyarrow's, whose `columns` are what they hold.
        for i, name in enumerate(values.column_names):
            yield f"column {name!r} of {what}", np.asarray(values.column(i))
    elif hasattr(values, "columns") and not isinstance(values, np.ndarray):
        for name in values.columns:
            yield f"column {name!r} of {what}", np.asarray(values[name])
    elif array.ndim == 1:
        name = getattr(values, "name", None)
        yield (f"{what} ({name!r})" if isinstance(name, str) else what), array
    elif array.ndim == 2:
        for i in range(array.shape[1]):
            yield f"column {i} of {what}", array[:, i]
    else:
        yield what, array.reshape(-1)


def _problem(value: Any) -> tuple[str, str] | None:
    """What a value is that is no finite number, and the remedy; None where neither is known."""
    if isinstance(value, (str, bytes)):
        return f"the text {str(value)!r}", "expected numbers: encode it, such as by one column of 0 and 1 a category, or leave the column out"
    fill = "fill it in or leave that row out"
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "a missing value", fill
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        return f"the date {value}", "expected numbers: turn dates into some that mean something, such as the days since the first"
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if np.isnan(number):
        return "a missing value (NaN)", fill
    return None if np.isfinite(number) else (f"{number}", "expected finite numbers")


def matrix(values: Any, what: str) -> FloatArray:
    """One row a sample."""
    array = _floats(values, what)
    if array.ndim == 1:
        raise DataError(
            f"{what} has shape {array.shape} (1-D); expected 2-D, one row a sample. Reshape your data with "
            "array.reshape(1, -1) if it is a single sample, or array.reshape(-1, 1) if it has a single column"
        )
    if array.ndim != 2:
        raise DataError(f"{what} has shape {array.shape} ({array.ndim}-D); expected 2-D, one row a sample")
    if array.shape[0] > 0 and array.shape[1] == 0:
        raise DataError(f"Found {what} with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")
    return array


def targets(values: Any, what: str = "y") -> tuple[FloatArray, bool]:
    """One row a sample, and whether it was a 1-D array: those are a single column."""
    array = _floats(values, what)
    if array.ndim == 1:
        return array.reshape(-1, 1), True
    if array.ndim != 2:
        raise DataError(f"{what} has shape {array.shape} ({array.ndim}-D); expected 1-D or 2-D, one row a sample")
    return array, False


def decisions(values: Any, what: str = "y") -> FloatArray:
    """One row a sample."""
    return targets(values, what)[0]


def vector(values: Any, what: str) -> FloatArray:
    """One number a sample."""
    array = _floats(values, what)
    if array.ndim != 1:
        raise DataError(f"{what} has shape {array.shape} ({array.ndim}-D); expected 1-D, one number a sample")
    return np.require(array, dtype=np.float64, requirements=["ALIGNED"])


def tensor(values: Any, what: str) -> FloatArray:
    """Any number of axes, in double precision."""
    return np.require(_floats(values, what), dtype=np.float64, requirements=["ALIGNED"])
