#!/usr/bin/env python3
"""Draws the book's pictures into docs/book/src/pictures: real fits, the same bytes every time.

Needs the package and matplotlib (target/python-venv has both). The picture of a report is a
screenshot of `argwhy demo`'s page: chromium --headless --screenshot.
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from argwhy import KernelInverseOptimizer

FOLDER = Path(__file__).parents[1] / "src" / "pictures"
INK, OURS, THEIRS, ALLOWED = "#333333", "#0b6e4f", "#c8553d", "#dfe7ea"
plt.rcParams.update({"svg.hashsalt": "argwhy", "font.size": 11, "axes.edgecolor": INK, "axes.spines.top": False, "axes.spines.right": False})


def save(figure, name):
    # Matplotlib would write the date of the drawing.
    figure.savefig(FOLDER / name, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def projection():
    """The decision is the allowed point nearest to what is desired."""
    corners = np.array([[0, 0], [4, 0], [4, 1.5], [2.2, 3.2], [0, 3.2]])
    desired, decided = np.array([4.3, 3.3]), np.array([3.3857, 2.1452])
    a, b = corners[2], corners[3]
    along = (b - a) / np.linalg.norm(b - a)
    decided = a + along * ((desired - a) @ along)
    figure, axes = plt.subplots(figsize=(5.6, 4.2))
    axes.fill(*corners.T, color=ALLOWED)
    for radius in (0.5, np.linalg.norm(desired - decided), 2.0, 2.8):
        axes.add_patch(plt.Circle(desired, radius, fill=False, color=INK, alpha=0.25, linewidth=0.8))
    axes.annotate("", decided, desired, arrowprops={"arrowstyle": "->", "color": OURS, "linewidth": 2})
    axes.plot(*desired, "o", color=THEIRS)
    axes.plot(*decided, "o", color=OURS)
    axes.text(desired[0] + 0.12, desired[1], "g(s), desired", va="center", color=THEIRS)
    axes.text(decided[0] - 0.15, decided[1] - 0.1, "u(s), decided", ha="right", va="top", color=OURS)
    axes.text(0.9, 1.2, "U(s), allowed", color=INK)
    axes.set(xlim=(-0.2, 6.2), ylim=(-0.2, 4.4), aspect="equal", xlabel="first number of the decision", ylabel="second")
    save(figure, "projection.svg")


def limits():
    """What a limit does to regression, and what it does not do to inverse optimization."""
    rng = np.random.default_rng(3)
    signals = np.sort(rng.uniform(-2, 2, 70))[:, None]
    wish = 1.1 * signals[:, 0] + 0.25 * np.sin(4 * signals[:, 0])
    decided = np.clip(wish + 0.05 * rng.normal(size=70), -1, 1)
    grid = np.linspace(-2, 2, 400)[:, None]
    common = {"regularization": 1e-4, "features": "raw", "gamma": 1.0}
    ours = KernelInverseOptimizer(bounds=(-1, 1), **common).fit(signals, decided)
    ridge = KernelInverseOptimizer(unbounded=True, **common).fit(signals, decided)
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    axes.axhspan(-1, 1, color=ALLOWED, zorder=0)
    axes.plot(grid, 1.1 * grid + 0.25 * np.sin(4 * grid), color=INK, linewidth=1, linestyle=":", label="what the expert wants")
    axes.plot(signals, decided, ".", color=INK, markersize=5, label="what it decides, within ±1")
    axes.plot(grid, ridge.predict(grid), color=THEIRS, linewidth=1.8, label="kernel ridge regression")
    axes.plot(grid, ours.desired(grid), color=OURS, linewidth=1.8, label="argwhy's desired decision g(s)")
    axes.set(xlabel="signal", ylabel="decision", ylim=(-2.6, 2.6))
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    save(figure, "limits.svg")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    projection()
    limits()
