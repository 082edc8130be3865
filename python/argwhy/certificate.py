"""The proof that comes with every fit."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """Two values that enclose the optimum, in double precision, at exactly what is stored."""

    objective: float
    """The paper's objective (9) at the responses."""
    primal: float
    """An upper bound on the optimal value."""
    dual: float
    """A lower bound on it."""
    gap: float
    """Their distance, and what rounding may have taken off it."""
    relative_gap: float
    """The distance relative to the bounds' size; at most ``tol`` where the status is "solved".

    Dimensions that no limit ties together are judged each, and the worst counts.
    """
    rounding: float = 0.0
    """The part of the gap that is a proven bound on rounding."""

    def prediction_bound(self, kernel_value: float, regularization: float) -> float:
        """How far any decision can be from the optimum's, where κ(s, s) = ``kernel_value``."""
        return math.sqrt(kernel_value * self.gap / regularization)

    def theta_bound(self, regularization: float) -> float:
        """How far a learned θ_uu can be from the exact optimum's, in the Frobenius norm."""
        return math.sqrt(self.gap / regularization)
