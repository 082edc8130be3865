"""Actors that share work, and what happens when one of them does not answer.

A call is a pure function of its arguments, so that it does not matter who computes it or how often.
Each free actor takes the next call: whoever is faster does more, and an actor that joins late is
used from then on. One that dies, or says nothing for too long, is replaced; its calls go to the
front of the queue.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .. import _argwhy
from ..errors import ClusterError
from .worker import Worker

LOG = logging.getLogger("argwhy.ray")
BEAT = 0.2
"""Seconds between looks at the clock while no answer comes."""
AHEAD = 2
"""Calls that an actor has at once, so that it need not wait for the next."""
TRIES = 6
"""Times that a worker may be lost before it has finished anything."""


@dataclass
class Call:
    """Something that an actor was asked for."""

    number: int | None
    """Which of the calls of a run; none for what makes an actor ready."""
    matrix: int | None
    since: float
    run: int = 0
    """Which run it belongs to: answers to one that failed are nobody's."""


@dataclass
class Slot:
    """A place for an actor, whichever stands in it."""

    number: int
    actor: Any = None
    lives: int = 0
    host: str | None = None
    pid: int | None = None
    opened: dict[int, bool] = field(default_factory=dict)
    """Matrices that it was told of, and whether they are ready."""
    running: dict[Any, Call] = field(default_factory=dict)
    last: float = 0.0
    """When it last answered."""
    failures: int = 0
    """Times in a row that it was lost before it finished anything."""
    done: int = 0
    """Calls that it finished, for whoever wants to know how the work was shared."""

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"worker {self.number}" + (f" on {self.host}" if self.host else "")


class Shares(Protocol):
    """Calls that some actors are better placed for than others."""

    groups: list[list[int]]

    def pick(self, slot: Slot, waiting: collections.deque[int]) -> int | None:
        """Takes from those that wait what this actor does next, if anything."""

    def call(self, slot: Slot, number: int) -> tuple[Any, ...]:
        """The call as this actor has to hear it."""
        ...


class Pool:
    """So many actors of so many cores each."""

    def __init__(
        self, ray: Any, workers: int, cpus: int, gpus: int, timeout: float, gone: Callable[[], bool] | None = None
    ) -> None:
        self._ray = ray
        self._cpus, self._gpus, self._timeout = cpus, gpus, timeout
        # Whether whoever asked is still there.
        self._gone = gone
        self._session = uuid.uuid4().hex[:6]
        self._lock = threading.Lock()
        self._run = 0
        self._waiting: collections.deque[int] = collections.deque()
        self.matrices: dict[int, tuple[Any, ...]] = {}
        self.lost = 0
        """Workers that had to be replaced."""
        self.slots = [Slot(number + 1) for number in range(workers)]
        for slot in self.slots:
            self._hire(slot)

    def _hire(self, slot: Slot) -> None:
        """Puts a new actor into the place."""
        slot.lives += 1
        slot.host = slot.pid = None
        slot.opened.clear()
        slot.running.clear()
        again = f" ({slot.lives})" if slot.lives > 1 else ""
        actor = self._ray.remote(Worker).options(
            name=f"argwhy-{self._session} worker {slot.number}{again}",
            num_cpus=self._cpus,
            num_gpus=self._gpus,
            # One a node as long as there are nodes.
            scheduling_strategy="SPREAD",
            # Replaced here, where it is known what was lost.
            max_restarts=0,
        )
        slot.actor = actor.remote(slot.number, self._cpus)
        slot.last = time.monotonic()
        slot.running[slot.actor.hello.remote()] = Call(None, None, slot.last)

    @property
    def alive(self) -> int:
        """Workers that have a node and answered."""
        return sum(slot.host is not None for slot in self.slots)

    def run(
        self,
        matrix: int,
        calls: Sequence[tuple[Any, ...]] | Shares,
        take: Callable[[int, Any], None],
        stopped: Callable[[], bool] | None = None,
    ) -> None:
        """Has calls, methods with their arguments, answered; ``take`` gets answers in any order.

        Ends early where ``stopped`` says so; what is still computed then is nobody's.
        """
        with self._lock:
            self._run += 1
            left = len(calls if isinstance(calls, Sequence) else calls.groups)
            self._waiting, since = collections.deque(range(left)), time.monotonic()
            while left and not (stopped and stopped()):
                if self._gone and self._gone():
                    raise ClusterError("nobody is there any longer to be answered")
                self._employ(matrix, calls)
                refs = [ref for slot in self.slots for ref in slot.running]
                ready, _ = self._ray.wait(refs, num_returns=1, timeout=BEAT)
                for ref in ready:
                    slot = next(slot for slot in self.slots if ref in slot.running)
                    call, answer = self._answer(slot, ref)
                    if call is not None and call.run == self._run and call.number is not None:
                        take(call.number, answer)
                        left -= 1
                if any(slot.opened.get(matrix) for slot in self.slots):
                    since = time.monotonic()
                self._look_at_the_clock(since)

    def _employ(self, matrix: int, calls: Sequence[tuple[Any, ...]] | Shares) -> None:
        """Gives everyone who is free something to do."""
        for slot in self.slots:
            if slot.host is None:
                continue
            ready = slot.opened.get(matrix)
            if ready is None:
                slot.opened[matrix] = False
                ref = slot.actor.open.remote(matrix, *self.matrices[matrix])
                slot.running[ref] = Call(None, matrix, time.monotonic(), self._run)
            # Towards the end nobody keeps work that another is free for.
            ahead = AHEAD if len(self._waiting) > len(self.slots) else 1
            while ready and self._waiting and len(slot.running) < ahead:
                if isinstance(calls, Sequence):
                    number = self._waiting.popleft()
                    method, *arguments = calls[number]
                else:
                    picked = calls.pick(slot, self._waiting)
                    if picked is None:
                        break
                    number = picked
                    method, *arguments = calls.call(slot, number)
                ref = getattr(slot.actor, method).remote(matrix, *arguments)
                slot.running[ref] = Call(number, matrix, time.monotonic(), self._run)

    def _answer(self, slot: Slot, ref: Any) -> tuple[Call | None, Any]:
        """What came of a call; none where the actor is gone."""
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(ref)
        except errors.RayTaskError as error:
            call = slot.running.pop(ref)
            if call.number is None and call.matrix is not None:
                slot.opened.pop(call.matrix, None)
            if call.matrix is not None and call.matrix not in self.matrices:
                return None, None  # of a fit that has ended
            raise ClusterError(f"{slot.name}: {_cause(error)}") from error
        except errors.RayError as error:
            self._lose(slot, _short(error))
            return None, None
        call = slot.running.pop(ref)
        slot.last = time.monotonic()
        if call.number is not None:
            slot.failures = 0
            slot.done += 1
        elif call.matrix in self.matrices:
            slot.opened[call.matrix] = True
        elif call.matrix is not None:
            slot.actor.close.remote(call.matrix)
        else:
            self._greet(slot, answer)
        return call, answer

    def _greet(self, slot: Slot, answer: dict[str, Any]) -> None:
        slot.host, slot.pid = answer["host"], answer["pid"]
        if answer["version"] != _argwhy.__version__:
            raise ClusterError(
                f"{slot.name} has argwhy {answer['version']}, the driver {_argwhy.__version__}; "
                "install the same version on every node"
            )
        if slot.lives > 1:
            LOG.warning("%s took the place of the one that was lost", slot.name)

    def _lose(self, slot: Slot, why: str) -> None:
        """Replaces an actor; what it was asked for is asked again, first."""
        self.lost += 1
        slot.failures += 1
        own = [call for call in slot.running.values() if call.run == self._run]
        self._waiting.extendleft(reversed([call.number for call in own if call.number is not None]))
        if slot.failures >= TRIES:
            raise ClusterError(
                f"{slot.name} was lost {slot.failures} times before it finished anything, last: {why}; "
                "the usual reasons are memory (ask for more CPUs a worker, so that fewer share a node) and a timeout that "
                "is too short for the data"
            )
        LOG.warning("%s was lost (%s); another one takes over its work", slot.name, why)
        self._dismiss(slot)
        self._hire(slot)

    def _dismiss(self, slot: Slot) -> None:
        try:
            self._ray.kill(slot.actor, no_restart=True)
        except Exception:  # it is gone already, and so may be Ray
            LOG.debug("%s could not be ended", slot.name, exc_info=True)

    def _look_at_the_clock(self, since: float) -> None:
        """Replaces whoever says nothing for too long; gives up where nobody is there at all."""
        now = time.monotonic()
        for slot in self.slots:
            asked = [max(call.since, slot.last) for call in slot.running.values()]
            late = slot.host is not None and asked and now - min(asked) > self._timeout
            if late and not self._has_answered(slot):
                self._lose(slot, f"it said nothing for {self._timeout:g} s")
        if now - since > self._timeout:
            have = self._ray.cluster_resources()
            raise ClusterError(
                f"no worker was ready within {self._timeout:g} s: each asks for {self._cpus} CPUs and {self._gpus} "
                f"GPUs, and all nodes together have {have.get('CPU', 0):g} and {have.get('GPU', 0):g}; ask for less, or "
                "add nodes"
            )

    def _has_answered(self, slot: Slot) -> bool:
        """Whether an answer waits to be taken: it was the driver that was away, not the worker."""
        ready, _ = self._ray.wait(list(slot.running), num_returns=1, timeout=0)
        return bool(ready)

    def forget(self, matrix: int) -> None:
        """Workers need not hold it any longer."""
        if self.matrices.pop(matrix, None) is None:
            return
        for slot in self.slots:
            if slot.opened.pop(matrix, None):
                slot.actor.close.remote(matrix)

    def end(self) -> None:
        """Ends every actor."""
        for slot in self.slots:
            self._dismiss(slot)


def _cause(error: Any) -> str:
    """What a worker's own exception says."""
    cause = getattr(error, "cause", None) or error
    name = type(cause).__name__
    # Ray makes a class that is both its own and the worker's.
    name = name[len("RayTaskError(") : -1] if name.startswith("RayTaskError(") else name
    text = str(getattr(cause, "cause", None) or cause).strip().splitlines()
    return f"{name}: {text[-1] if text else ''}"


def _short(error: Any) -> str:
    """The first sentence of what Ray says, and the last where that names an error."""
    text = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    if not text:
        return type(error).__name__
    last = f": {text[-1]}" if len(text) > 1 and "Error" in text[-1] else ""
    return text[0].rstrip(".") + last
