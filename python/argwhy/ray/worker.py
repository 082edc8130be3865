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

    def attempt(self, matrix: int, attempt: str) -> str:
        """What comes of some settings on rows that were not learned from."""
        return self._searches[matrix].attempt(attempt)

    def close(self, matrix: int) -> None:
        """Nobody will ask for it again."""
        self._shards.pop(matrix, None)
        self._searches.pop(matrix, None)
