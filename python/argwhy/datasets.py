"""Data files by the readers of the command, and the experts of its demos."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _argwhy
from .constraints import Constraints
from .errors import DataError

__all__ = ["Charging", "Data", "Quadrotor", "describe", "load", "make_charging", "make_quadrotor", "read"]

Doubles: TypeAlias = NDArray[np.float64]
Path: TypeAlias = "str | os.PathLike[str]"
Rows: TypeAlias = "str | slice | range | Iterable[slice | range] | None"


class Data(NamedTuple):
    """Everything a file says."""

    signals: Doubles
    """n_samples × signal_dim."""
    decisions: Doubles
    """n_samples × decision_dim."""
    constraints: Constraints | None
    """What limited the decisions, where that was asked for."""
    weights: Doubles | None
    """How often each row counts, where that was asked for."""
    bounds: tuple[Doubles, Doubles] | None = None
    """Limits of all decisions that the data knows, as Minari's action space does."""
    signal_names: Sequence[str] = ()
    """What signals are called, where the file says so."""
    decision_names: Sequence[str] = ()
    """What decisions are called, where the file says so."""
    encoding: str | None = None
    """How categories and cycles became numbers, for ``read(..., encoding=...)`` on other data."""


class Quadrotor(NamedTuple):
    """What the pilot of a planar quadrotor saw and did."""

    signals: Doubles
    """States relative to the target, n × 6."""
    decisions: Doubles
    """Thrusts above hover, n × 2."""
    lower: Doubles
    """Least decision of each rotor."""
    upper: Doubles
    """Greatest decision of each rotor."""


class Charging(NamedTuple):
    """A depot's charging plans."""

    signals: Doubles
    """Prices, weather and orders of each night."""
    decisions: Doubles
    """Power in each period of the night."""
    constraints: Constraints
    """Each night's own limits."""


def _listed(columns: str | Iterable[str] | None) -> list[str] | None:
    """``"a,b"`` or several."""
    if columns is None:
        return None
    return [one.strip() for one in columns.split(",")] if isinstance(columns, str) else list(columns)


def _ranges(rows: Any) -> str | None:
    """Rows as the command writes them, ``0:5000,10000:15000``."""
    if rows is None or isinstance(rows, str):
        return rows
    if isinstance(rows, (slice, range)):
        if rows.step not in (None, 1):
            raise DataError(f"rows has the step {rows.step}; ranges of rows have none")
        return f"{'' if rows.start is None else rows.start}:{'' if rows.stop is None else rows.stop}"
    if not isinstance(rows, Iterable):
        raise TypeError(f"rows is a {type(rows).__name__}; expected text such as '0:5000', slices or ranges")
    return ",".join(filter(None, (_ranges(part) for part in rows)))


def read(
    path: Path,
    signals: str | None = None,
    decisions: str | None = None,
    rows: Rows = None,
    *,
    constraints: bool = False,
    matrix: Path | None = None,
    matrix_eq: Path | None = None,
    weights: str | None = None,
    memory: str | int | None = None,
    episodes: Rows = None,
    every: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    missing: str = "error",
    one_hot: str | Iterable[str] | None = None,
    cyclic: str | Iterable[str] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    decimal: str = ".",
) -> Data:
    """Reads signals, decisions and, if asked for, constraints and weights.

    The formats are npz, npy, csv and tsv (also packed as .gz or .zst), parquet, Arrow (Feather),
    xlsx, ods, HDF5 (D4RL and robomimic as they come), Minari files, and folders.

    Parameters
    ----------
    path:
        A file or folder.
    signals, decisions:
        Keys of the arrays, or in tables columns: names, patterns (``s*``) and ranges
        (``first:last``) separated by commas; ``signals`` and ``decisions``, else ``observations``
        and ``actions``, if not given.
    rows:
        Half-open ranges such as ``"0:5000,10000:15000"``, or a slice, a range or several. All rows
        if not given.
    constraints:
        Whether to read the arrays M, W, M_eq, W_eq, lower and upper.
    matrix, matrix_eq:
        Files with an M or M_eq that all rows share. They imply ``constraints``.
    weights:
        Key of the samples' weights.
    memory:
        What reading may take at most, in bytes or as ``"2GiB"``; a file that holds or unpacks to
        more is refused before it is read. No limit if not given.
    episodes, every, sample, seed:
        Rows to read beside ``rows``: some episodes by number, the first of every so many, and so
        many chosen at random by ``seed``. What is left out takes no memory.
    missing:
        Where values are missing: ``"error"`` says where, ``"drop"`` leaves those rows out,
        ``"mean"`` puts the mean of a signal.
    one_hot, cyclic:
        Columns of signals that are no numbers yet: categories, each of which becomes one column of
        zeros and ones a value, and what goes round, as in ``"hour:24"``, or of dates
        ``"when:day"``, ``"when:week"`` or ``"when:year"``.
    encoding:
        In place of these two, what :attr:`Data.encoding` of other data says, so that columns mean
        the same.
    sheet:
        Sheet of a workbook; the first one if not given.
    decimal:
        What separates the fraction of numbers in csv files, ``"."`` or ``","``.
    """
    found: dict[str, Any] = _argwhy.load(
        os.fspath(path),
        signals=signals,
        decisions=decisions,
        rows=_ranges(rows),
        constraints=constraints,
        matrix=None if matrix is None else os.fspath(matrix),
        matrix_eq=None if matrix_eq is None else os.fspath(matrix_eq),
        weights=weights,
        memory=None if memory is None else str(memory),
        episodes=_ranges(episodes),
        every=every,
        sample=sample,
        seed=seed,
        missing=missing,
        one_hot=_listed(one_hot),
        cyclic=_listed(cyclic),
        encoding=encoding,
        sheet=sheet,
        decimal=decimal,
    )
    limits = found.get("constraints")
    return Data(
        found["signals"],
        found["decisions"],
        None if limits is None else Constraints(**limits),
        found.get("weights"),
        found.get("bounds"),
        found["signal_names"],
        found["decision_names"],
        found.get("encoding"),
    )


def describe(
    path: Path,
    signals: str | None = None,
    decisions: str | None = None,
    *,
    sheet: str | None = None,
    decimal: str = ".",
) -> dict[str, Any]:
    """What data is like, as ``argwhy describe --json`` prints it.

    Ranges, spread and gaps of each column, columns that say nothing or the same as others,
    situations in which the expert decided differently, and limits that decisions seem to have.
    """
    text = _argwhy.describe(os.fspath(path), signals=signals, decisions=decisions, sheet=sheet, decimal=decimal)
    found: dict[str, Any] = json.loads(text)
    return found


def load(
    path: Path,
    signals: str | None = None,
    decisions: str | None = None,
    rows: Rows = None,
    *,
    memory: str | int | None = None,
    episodes: Rows = None,
    every: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    missing: str = "error",
    one_hot: str | Iterable[str] | None = None,
    cyclic: str | Iterable[str] | None = None,
    sheet: str | None = None,
    decimal: str = ".",
) -> tuple[Doubles, Doubles]:
    """Signals and decisions of a file or folder, by the same options as :func:`read`.

    That one has constraints, weights, names and the encoding of columns too.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "days.csv"
    >>> _ = path.write_text("price,load,power\\n0.1,3,5\\n0.2,4,2\\n0.3,1,0\\n")
    >>> signals, decisions = load(path, signals="price,load", decisions="power", rows="0:2")
    >>> decisions.ravel()
    array([5., 2.])
    """
    data = read(
        path,
        signals,
        decisions,
        rows,
        memory=memory,
        episodes=episodes,
        every=every,
        sample=sample,
        seed=seed,
        missing=missing,
        one_hot=one_hot,
        cyclic=cyclic,
        sheet=sheet,
        decimal=decimal,
    )
    return data.signals, data.decisions


def make_quadrotor(n: int = 1000, seed: int = 0) -> Quadrotor:
    """``n`` decisions of a pilot who flies a planar quadrotor to a target within thrust limits.

    The pilot is a model-predictive controller.

    The same seed gives the same rows, and fewer rows are the first of more.

    Examples
    --------
    >>> make_quadrotor(5).signals.shape
    (5, 6)
    """
    found = _argwhy.quadrotor(n, seed)
    return Quadrotor(found["signals"], found["decisions"], found["lower"], found["upper"])


def make_charging(n: int = 1000, seed: int = 0) -> Charging:
    """``n`` nights of a dispatcher who charges electric vans, under new limits every night.

    The dispatcher errs a little.

    The same seed gives the same nights, and fewer are the first of more.

    Examples
    --------
    >>> nights = make_charging(3)
    >>> nights.constraints.n_samples
    3
    """
    found = _argwhy.charging(n, seed)
    return Charging(found["signals"], found["decisions"], Constraints(**found["constraints"]))
