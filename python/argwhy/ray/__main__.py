"""The Python side of the command's ``--ray``: messages by pipes, answered by a :class:`Cluster`.

A message is the length of its head in four bytes, the head in JSON (what is said, and the arrays
that follow), then the arrays. What goes wrong is an answer with an ``error``; the end of the input
is the end.
"""

from __future__ import annotations

import json
import logging
import math
import os
import select
import struct
import sys
import threading
import time
from typing import Any, BinaryIO

import numpy as np

from .. import _argwhy
from ..errors import ClusterError, MissingExtraError
from .cluster import Cluster

KINDS: dict[str, np.dtype[Any]] = {
    "u1": np.dtype("u1"),
    "i1": np.dtype("i1"),
    "u8": np.dtype("<u8"),
    "f8": np.dtype("<f8"),
    "f4": np.dtype("<f4"),
}
LAST = 20.0
"""Seconds in which workers can be given back."""
LIMITS = ("M", "W", "M_eq", "W_eq", "lower", "upper")
NAMES = {dtype: name for name, dtype in KINDS.items()}


def receive(source: BinaryIO) -> tuple[dict[str, Any], list[Any]] | None:
    """The next message; none at the end."""
    length = source.read(4)
    if len(length) < 4:
        return None
    head = json.loads(source.read(struct.unpack("<I", length)[0]))
    arrays: list[Any] = []
    for described in head["arrays"]:
        dtype, shape = KINDS[described["kind"]], described["shape"]
        n_bytes = math.prod(shape) * dtype.itemsize
        data = source.read(n_bytes)
        if len(data) < n_bytes:
            return None
        arrays.append(np.frombuffer(data, dtype).reshape(shape))
    return head["message"], arrays


def send(target: BinaryIO, message: dict[str, Any], *arrays: Any) -> None:
    """An answer."""
    described = [{"kind": NAMES[array.dtype.newbyteorder("<")], "shape": array.shape} for array in arrays]
    head = json.dumps({"message": message, "arrays": described}).encode()
    target.write(struct.pack("<I", len(head)) + head)
    for array in arrays:
        target.write(np.ascontiguousarray(array).data.cast("B"))
    target.flush()


class Bridge:
    """Answers messages, one after the other."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source, self._target = source, target
        self._cluster = Cluster()
        self._data: dict[str, Any] = {}

    def answer(self, message: dict[str, Any], arrays: list[Any]) -> tuple[Any, ...]:
        """What is answered: words, then arrays."""
        cluster, matrix = self._cluster, message.get("matrix", 0)
        call = message["call"]
        if call == "start":
            return (self._start(message),)
        if call == "open":
            return ({"matrix": cluster.open(message["job"], arrays[0], arrays[1] if len(arrays) > 1 else None)},)
        if call == "product":
            found = cluster.product(matrix, message["exact"], arrays[0])
            return {"progress": cluster.progress()}, found
        if call == "rows":
            return {}, cluster.rows(matrix, arrays[0], message["start"], message["stop"])
        if call == "columns":
            return {}, cluster.columns(matrix, message["exact"], arrays[0], arrays[1])
        if call == "blocks":
            return self._blocks(matrix, arrays)
        if call == "panels":
            return self._panels(message, arrays)
        if call == "search":
            self._data = _searched(message, arrays)
            return ({},)
        if call == "attempts":
            return (self._attempts(message["texts"]),)
        cluster.close(matrix)
        return ({},)

    def _blocks(self, matrix: int, tasks: list[Any]) -> tuple[Any, ...]:
        """What came of them, or that it was stopped."""

        def stopped() -> bool:
            return self._stopped({"waiting": True, "progress": self._cluster.progress()})

        found = self._cluster.blocks(matrix, [task.tobytes() for task in tasks], stopped)
        answers = [np.frombuffer(answer, np.uint8) for answer in found or []]
        return {"waiting": False, "stopped": found is None, "progress": self._cluster.progress()}, *answers

    def _stopped(self, words: dict[str, Any]) -> bool:
        """Whether the other side, which is told how it goes, wants no more of it."""
        send(self._target, words)
        received = receive(self._source)
        return received is None or bool(received[0]["stop"])

    def _panels(self, message: dict[str, Any], arrays: list[Any]) -> tuple[Any, ...]:
        panels, what = self._cluster.panels, message["what"]
        if what == "begin":
            given, *roots = arrays
            return ({"factor": panels.begin(message["matrix"], roots[0] if roots else None, given)},)
        if what == "end":
            panels.end(message["factor"])
            return ({},)
        if what == "append":
            *round, diagonal = arrays
            found = panels.append(message["factor"], tuple(round), diagonal[None])
        else:
            found = getattr(panels, what)(message["factor"], *arrays)
        return {"progress": self._cluster.progress()}, found

    def _attempts(self, texts: list[str]) -> dict[str, Any]:
        """The last of what came of them; what came before is said while others are waited for."""
        done: list[tuple[int, str]] = []

        def words(waiting: bool) -> dict[str, Any]:
            said = {"waiting": waiting, "done": list(done), "progress": self._cluster.progress()}
            done.clear()
            return said

        def stopped() -> bool:
            return self._stopped(words(waiting=True))

        def take(attempt: int, answer: str) -> None:
            done.append((attempt, answer))

        self._cluster.attempts(self._data, texts, stopped, take)
        return words(waiting=False)

    def _start(self, message: dict[str, Any]) -> dict[str, Any]:
        if message["version"] != _argwhy.__version__:
            return {
                "refused": f"this command is argwhy {message['version']}, and the Python package of {sys.executable} is "
                f"{_argwhy.__version__}; install the same version of both"
            }
        try:
            self._cluster = Cluster(**message["options"])
            self._cluster.gone = self._gone
            cores = self._cluster.connect()
        except (MissingExtraError, ClusterError, ValueError) as error:
            return {"refused": str(error)}
        wants_features, have_gpus = self._cluster.wants_features, self._cluster.gpus > 0
        spread_from = self._cluster.spread_from
        return {"cores": cores, "wants_features": wants_features, "have_gpus": have_gpus, "spread_from": spread_from}

    def _gone(self) -> bool:
        """Whether the other side is: it was killed, or quit without waiting for an answer."""
        return _hung_up(self._source)

    def end(self) -> None:
        """Gives the workers back."""
        self._cluster.shutdown()


def _hung_up(source: BinaryIO) -> bool:
    """Whether nobody holds the other end of a pipe; elsewhere that is heard at the next message."""
    if not hasattr(select, "poll"):
        return False
    try:
        asked = select.poll()
        asked.register(source, 0)
    except (OSError, ValueError):  # no pipe
        return False
    return any(event & select.POLLHUP for _, event in asked.poll(0))


def _follow(source: BinaryIO) -> None:
    """Ends this process where it does not end by itself soon after the other one has.

    Ray can try for minutes to reach a cluster, and hears nothing meanwhile.
    """
    while not _hung_up(source):
        time.sleep(1.0)
    time.sleep(LAST)
    os._exit(1)


def _searched(message: dict[str, Any], arrays: list[Any]) -> dict[str, Any]:
    """What a search is made of, by the names of ``_argwhy.Search``."""
    named = dict(zip(message["names"], arrays, strict=True))
    limits = {name: named.pop(name) for name in LIMITS if name in named}
    if "groups" in named:
        named["groups"] = named["groups"].tolist()
    return {**named, **message["words"], "limits": limits or None}


def main() -> None:
    """Serves until the input ends."""
    logging.basicConfig(format="note: %(message)s", level=logging.WARNING, stream=sys.stderr)
    # What Ray prints is not for the other end of the pipe.
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    source = sys.stdin.buffer
    threading.Thread(target=_follow, args=(source,), daemon=True).start()
    bridge = Bridge(source, target)
    try:
        while (received := receive(source)) is not None:
            try:
                answered = bridge.answer(*received)
            except Exception as error:
                name = type(error).__name__
                text = str(error) if name == "ClusterError" else f"{name}: {error}"
                answered = ({"error": text},)
            send(target, *answered)
    except BrokenPipeError:
        pass  # nobody listens any longer
    finally:
        bridge.end()


if __name__ == "__main__":
    main()
