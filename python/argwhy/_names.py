"""Columns that have names: kept at fit, compared afterwards, in scikit-learn's words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _arrow
from .errors import DataError

MAX_NAMED = 5


def feature_names(X: Any) -> NDArray[Any] | None:
    """Names of the columns of a frame, where all of them are text."""
    columns: Any = None if isinstance(X, np.ndarray) else _columns(X)
    if columns is None:
        return None
    try:
        names: list[Any] = list(columns)
    except TypeError:
        return None
    texts = [isinstance(name, str) for name in names]
    if not names or not any(texts):
        return None
    if not all(texts):
        kinds = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{kinds} as feature name / column name types. If you want feature names to be stored and validated, you must "
            "convert them all to strings, by using X.columns = X.columns.astype(str) for example. Otherwise you can remove "
            "feature / column names from your input data, or convert them all to a non-string data type."
        )
    return np.asarray(names, dtype=object)


def _columns(X: Any) -> Any:
    """What its columns are called: by its schema, pyarrow's ``column_names`` or ``columns``."""
    own = _arrow.names(X)
    if own is not None:
        return own
    # Of its class: a frame may have a column that is called so.
    return getattr(X, "column_names" if hasattr(type(X), "column_names") else "columns", None)


def target_names(y: Any) -> NDArray[Any] | None:
    """Names of decisions: the columns of a frame, or a series' own name."""
    name = getattr(y, "name", None)
    if isinstance(name, str) and name and getattr(y, "ndim", None) == 1:
        return np.asarray([name], dtype=object)
    try:
        return feature_names(y)
    except TypeError:
        return None


def storable(names: NDArray[Any] | None) -> list[str]:
    """Those names a model can keep: different ones, none of them empty."""
    listed = [] if names is None else [str(name) for name in names]
    return listed if all(listed) and len(set(listed)) == len(listed) else []


def in_order(part: Any, decisions: Sequence[str], what: str) -> Any:
    """``part`` with its columns in the order of ``decisions``, where it is a frame of these."""
    try:
        names = feature_names(part)
    except TypeError:
        return part
    if names is None or not set(names) & set(decisions):
        return part
    missing = [name for name in decisions if name not in set(names)]
    if missing or len(names) != len(decisions):
        raise DataError(
            f"{what} has the columns {', '.join(names)} where decisions are {', '.join(decisions)}: give all of them, in any order"
        )
    return part[list(decisions)]


def check_names(estimator: str, fitted: NDArray[Any] | None, X: Any) -> None:
    """Warns where one side has names and the other has not, fails where they differ."""
    names = feature_names(X)
    if fitted is None and names is None:
        return
    if fitted is None:
        warnings.warn(f"X has feature names, but {estimator} was fitted without feature names", stacklevel=4)
        return
    if names is None:
        warnings.warn(
            f"X does not have valid feature names, but {estimator} was fitted with feature names", stacklevel=4
        )
        return
    if len(fitted) == len(names) and bool(np.all(fitted == names)):
        return
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    message = "The feature names should match those that were passed during fit.\n"
    if unseen:
        message += "Feature names unseen at fit time:\n" + _listed(unseen)
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


def _listed(names: list[str]) -> str:
    shown = "".join(f"- {name}\n" for name in names[:MAX_NAMED])
    return shown + ("- ...\n" if len(names) > MAX_NAMED else "")
