"""What an actor does: it reads the data itself, keeps the samples packed, and computes parts."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _argwhy

SEARCH = "search"
"""What the job of a search is called; those of fits are JSON."""


class Worker:
    """One machine's share of the work. Every answer is a pure function of the arguments."""

    def __init__(self, number: int, threads: int) -> None:
        self._number = number
        self._threads = threads
        self._shards: dict[int, _argwhy.Shard] = {}
        self._searches: dict[int, _argwhy.Search] = {}
        self._panels: dict[tuple[int, int], _argwhy.Panels] = {}
        # Signals of the file read last: a fit and its verdict open several matrices of one file.
        self._read: tuple[Any, NDArray[np.float64]] | None = None

    def hello(self) -> dict[str, Any]:
        """Who answers."""
        return {"host": socket.gethostname(), "pid": os.getpid(), "version": _argwhy.__version__}

    def open(self, matrix: int, job: str, source: dict[str, Any], rows: Any, features: Any) -> None:
        """Makes the samples of a fit ready, from ``features`` or, without, from a file.

        Of a search, whose job is SEARCH, ``features`` are what it is made of.
        """
        if job == SEARCH:
            data = dict(features)
            given = {**data.pop("given"), "threads": self._threads}
            self._searches[matrix] = _argwhy.Search(data.pop("signals"), data.pop("decisions"), given, **data)
            return
        if features is not None:
            self._shards[matrix] = _argwhy.Shard(job, features, threads=self._threads)
            return
        start, stop = rows if isinstance(rows, tuple) else (0, 0)
        chosen = np.arange(start, stop, dtype=np.uint64) if isinstance(rows, tuple) else rows
        signals = self._signals(source)
        try:
            self._shards[matrix] = _argwhy.Shard(job, signals, chosen, threads=self._threads)
        except ValueError as error:
            raise ValueError(f"{source['path']}: {error}") from error

    def _signals(self, source: dict[str, Any]) -> NDArray[np.float64]:
        if self._read is None or self._read[0] != source:
            self._read = None
            # Decisions are read where leaving out rows may depend on them.
            found = _argwhy.load(source["path"], **source["reading"])
            self._read = (source, found["signals"])
        return self._read[1]

    def parts(self, matrix: int, start: int, stop: int, exact: bool, v: Any) -> tuple[float, list[Any]]:
        """Some parts of a product, each by itself, and the seconds that all cores had with them."""
        began, shard = time.process_time(), self._shards[matrix]
        found = [shard.part(part, exact, v) for part in range(start, stop)]
        return (time.process_time() - began) / self._threads, found

    def rows(self, matrix: int, samples: Any, start: int, stop: int) -> Any:
        """Rows of the kernel matrix, from one column to another."""
        return self._shards[matrix].rows(samples, start, stop)

    def columns(self, matrix: int, exact: bool, samples: Any, v: Any, start: int, stop: int) -> Any:
        """What some samples give to the sums of the columns from one to another."""
        return self._shards[matrix].columns(samples, exact, v, start, stop)

    def block(self, matrix: int, task: Any) -> bytes:
        """A block of samples, solved."""
        return self._shards[matrix].block(bytes(task))

    def panels(self, matrix: int, about: tuple[Any, ...], what: str, payload: Any, *rounds: Any) -> Any:
        """What some panels of a preconditioner give, made first as far as they are not here.

        ``about``: the factor, its panels asked about, all that this worker is to keep, what begins
        a panel where one is new, and how many rounds went before the first of ``rounds``.
        """
        factor, asked, keep, begin, since = about
        if (matrix, factor) not in self._panels:
            self._panels[matrix, factor] = _argwhy.Panels(self._shards[matrix])
        panels = self._panels[matrix, factor]
        panels.retain(keep)
        starts = _argwhy.panel_starts(self._shards[matrix].n_samples)
        began, first, lowered = time.monotonic(), 0, []
        for panel in asked:
            own = slice(first, first := first + starts[panel + 1] - starts[panel])
            if panels.n_rounds(panel) is None:
                roots, given = begin
                panels.begin(panel, np.empty(0) if roots is None else roots[own], given[:, own])
            done = panels.n_rounds(panel) or 0
            if what == "append" and done - since >= len(rounds):
                raise RuntimeError(f"panel {panel} has {done} rounds already; report this")
            diagonal = np.zeros(own.stop - own.start)
            for at, round in enumerate(rounds[done - since :], done - since + 1):
                is_new = what == "append" and at == len(rounds)
                diagonal = panels.append(panel, round, payload[0, own] if is_new else diagonal)
            lowered.append(diagonal)
        if what == "append":
            return time.monotonic() - began, np.concatenate(lowered)[None]
        return getattr(panels, what)(asked, payload)

    def forget(self, matrix: int, factor: int) -> None:
        """Nobody will ask for a preconditioner again."""
        self._panels.pop((matrix, factor), None)

    def attempt(self, matrix: int, attempt: str) -> str:
        """What comes of some settings on rows that were not learned from."""
        return self._searches[matrix].attempt(attempt)

    def close(self, matrix: int) -> None:
        """Nobody will ask for it again."""
        self._shards.pop(matrix, None)
        self._searches.pop(matrix, None)
        self._panels = {about: own for about, own in self._panels.items() if about[0] != matrix}
