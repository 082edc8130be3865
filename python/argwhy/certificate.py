"""The proof that comes with every fit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """Two values that enclose the optimum, evaluated in double precision at exactly the coefficients stored."""

    objective: float
    """The paper's objective (9) at the responses."""
    primal: float
    """An upper bound on the optimal value."""
    dual: float
    """A lower bound on it."""
    gap: float
    """Their distance."""
    relative_gap: float
    """The distance relative to the bounds' size; at most ``tol`` where the status is "solved"."""
