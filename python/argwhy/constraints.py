"""Limits that come with the samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from . import _arrays
from ._names import in_order
from .errors import DataError
from .typing import ArrayLike, FloatArray


@dataclass(frozen=True, eq=False)
class Constraints:
    """What limits decisions u: M·u ≤ W, M_eq·u = W_eq, lower ≤ u ≤ upper, each part optional.

    Every part is for all samples (M: rows × dimensions, W: rows, lower and upper: dimensions) or
    has one more axis in front with one entry a sample. Limits may be infinite, where that means
    none.

    Examples
    --------
    A budget that changes from sample to sample, and no negative amounts:

    >>> limits = Constraints(M=[[1.0, 1.0]], W=[[3.0], [4.0]], lower=[0.0, 0.0])
    >>> limits.n_samples
    2
    """

    M: ArrayLike = None
    W: ArrayLike = None
    M_eq: ArrayLike = None
    W_eq: ArrayLike = None
    lower: ArrayLike = None
    upper: ArrayLike = None
    names: Sequence[str] | None = None
    """What the rows of M are called, for prices."""
    names_eq: Sequence[str] | None = None
    """The same for M_eq."""

    # scikit-learn's cross-validation splits whatever has a shape and can be indexed.

    @property
    def shape(self) -> tuple[int]:
        """One entry a sample, as scikit-learn counts them; one if all samples share every part."""
        return (self.n_samples or 1,)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Constraints:
        return self.select(rows[0] if isinstance(rows, tuple) else rows)

    @property
    def n_samples(self) -> int | None:
        """Samples there are sets for; None where every part is for all samples."""
        for name, part in self.arrays().items():
            if part.ndim == _SHARED_AXES[name] + 1 and part.shape[0] != 1:
                return int(part.shape[0])
        return None

    def arrays(self) -> dict[str, FloatArray]:
        """The parts there are, in double precision."""
        parts = ((name, getattr(self, name)) for name in _SHARED_AXES)
        return {name: _arrays.tensor(part, name) for name, part in parts if part is not None}

    def select(self, rows: Any) -> Constraints:
        """Those of the samples that ``rows`` picks: indices, a mask or a slice."""

        def pick(name: str, part: FloatArray) -> FloatArray:
            own = part.ndim == _SHARED_AXES[name] + 1 and part.shape[0] != 1
            return part[rows] if own else part

        picked = {name: pick(name, part) for name, part in self.arrays().items()}
        return Constraints(**picked, names=self.names, names_eq=self.names_eq)


_SHARED_AXES = {"M": 2, "W": 1, "M_eq": 2, "W_eq": 1, "lower": 1, "upper": 1}


def as_constraints(given: Any) -> Constraints | None:
    """Constraints however they are written: ``Constraints``, a mapping by its names, ``(M, W)``."""
    if given is None or isinstance(given, Constraints):
        return given
    if isinstance(given, Mapping):
        known = [*_SHARED_AXES, "names", "names_eq"]
        unknown = [str(name) for name in given if name not in known]
        if unknown:
            raise DataError(f"constraints: `{unknown[0]}` is not known; allowed: {', '.join(known)}")
        return Constraints(**given)
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return Constraints(M=given[0], W=given[1])
    raise TypeError(
        f"constraints is a {type(given).__name__}; expected (M, W), a dictionary with M, W, M_eq, W_eq, lower, upper, "
        "or argwhy.Constraints"
    )


def as_arrays(given: Any, decisions: Sequence[str] = ()) -> dict[str, FloatArray] | None:
    """The same as arrays, frames with the decisions' names as columns in their order."""
    limits = as_constraints(given)
    if limits is None:
        return None
    if decisions:
        parts = {name: getattr(limits, name) for name in ("M", "M_eq", "lower", "upper")}
        limits = replace(limits, **{name: in_order(part, decisions, name) for name, part in parts.items()})
    return limits.arrays()
