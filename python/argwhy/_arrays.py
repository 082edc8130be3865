"""Whatever people have, as float arrays that Rust can read: values are checked there, axes here."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import DataError
from .typing import FloatArray


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
    if isinstance(values, (str, bytes, dict, set)):
        raise TypeError(f"{what} is a {_kind(values)}; expected an array of numbers")
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} ({_kind(values)}) is no array of numbers: {error}") from error
    kind = array.dtype.kind
    if kind == "c":
        raise DataError(f"Complex data not supported: {what} has dtype {array.dtype}; expected real numbers")
    if kind == "O":
        try:
            array = array.astype(np.float64)
        except ValueError as error:
            raise DataError(f"{what} has dtype object and a value that is no number: {error}") from error
    elif kind not in "biuf":
        raise DataError(
            f"{what} has dtype {array.dtype}; expected bool, integers or floats of at most 64 bits, convert it first"
        )
    if array.dtype.kind == "f" and array.dtype.itemsize == 4:
        return np.require(array, dtype=np.float32, requirements=["ALIGNED"])
    return np.require(array, dtype=np.float64, requirements=["ALIGNED"])


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
