"""What a fit says while it runs: one line rewritten in a terminal, a few plain ones elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._argwhy import Iteration

EVERY = 0.1
"""Seconds between two states of a terminal's line."""
PATIENCE = 2.0
"""Seconds between two lines in notebooks and pipes, where none can be taken back."""


class Progress:
    """Writes to ``sys.stderr`` as it is at the time, so that notebooks and redirections get it.

    ``beside`` says what else stands in the line of progress, such as how many workers are alive.
    """

    def __init__(self, beside: Callable[[], str] | None = None) -> None:
        self._last = time.monotonic()
        self._width = 0
        self._beside = beside

    def say(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def step(self, iteration: Iteration) -> None:
        """Where the solver stands."""
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if now - self._last < (EVERY if terminal else PATIENCE):
            return
        self._last = now
        text = (
            f"step {iteration.iteration}  gap {iteration.relative_gap:.1e}  "
            f"products {iteration.kernel_products}  {iteration.seconds:.1f} s"
        )
        if self._beside is not None:
            text = f"{text}  {self._beside()}"
        if terminal:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
            self._width = len(text)
        else:
            self.say(text)

    def _clear(self) -> None:
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            self._width = 0


class Follow:
    """Serves the messages of a fit: a progress display, a callback, or both."""

    def __init__(self, progress: Progress | None, callback: Callable[[Iteration], bool | None] | None) -> None:
        self._progress = progress
        self._callback = callback

    def on_plan(self, lines: list[str]) -> None:
        """Before the solver starts."""
        if self._progress is not None:
            for line in lines:
                self._progress.say(line)

    def on_iteration(self, iteration: Iteration) -> bool:
        """After each step; true stops the fit."""
        if self._progress is not None:
            self._progress.step(iteration)
        return self._callback is not None and bool(self._callback(iteration))
