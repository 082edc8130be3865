"""Two pictures of a fit."""

from __future__ import annotations

from typing import Any

from ._extras import extra
from .typing import FloatArray


def _axes(what: str, ax: Any) -> Any:
    if ax is not None:
        return ax
    return extra("matplotlib.pyplot", what, "plot").subplots()[1]


def convergence(history: dict[str, Any], tol: float, ax: Any) -> Any:
    """Relative gap over time, with the tolerance."""
    ax = _axes("plot_convergence", ax)
    gap = history["relative_gap"]
    # A gap of exactly zero has no place on a logarithmic axis.
    ax.semilogy(history["seconds"], gap.clip(min=1e-18), marker="o", markersize=3, label="relative gap")
    ax.axhline(tol, color="0.5", linestyle="--", linewidth=1, label="tol")
    ax.set_xlabel("seconds")
    ax.set_ylabel("relative duality gap")
    ax.legend()
    return ax


def decisions(observed: FloatArray, predicted: FloatArray, ax: Any) -> Any:
    """What was decided against what the model decides; on the diagonal they agree."""
    ax = _axes("plot_decisions", ax)
    for j in range(observed.shape[1]):
        ax.plot(observed[:, j], predicted[:, j], ".", markersize=3, alpha=0.6, label=f"dimension {j}")
    low = min(observed.min(), predicted.min())
    high = max(observed.max(), predicted.max())
    ax.plot([low, high], [low, high], color="0.5", linewidth=1, zorder=0)
    ax.set_xlabel("the expert's decision")
    ax.set_ylabel("the model's decision")
    ax.legend()
    return ax
