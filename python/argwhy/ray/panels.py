"""Preconditioners on workers: B with K ≈ BᵀB, cut by columns into panels.

A panel is a pure function of the samples and of the rounds that B grew by. These are kept here, so
that whoever lost a panel, or never had it, makes it again with the same bits. Sums over panels are
branches of one binary tree, so that they do not depend on who has which either. What is decided
here is only who keeps what: as evenly as workers are fast, and moved no further than it must be.
"""

from __future__ import annotations

import collections
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _argwhy
from ..errors import ClusterError
from .pool import Slot

if TYPE_CHECKING:
    from .cluster import Cluster

Doubles = NDArray[np.float64]
MOST = 32
"""Panels of one message, so that none takes too long."""
SLOW = 1.5
"""Times what others need for a panel, from which on a worker gets fewer of them."""
Life = tuple[int, int]
"""A worker: its place, and which of the actors that stood there."""


@dataclass
class Factor:
    """What is kept here of one B."""

    matrix: int
    starts: list[int]
    """Where panels begin, and where the last one ends."""
    roots: Doubles | None
    given: NDArray[np.float32]
    n_pivots: int = 0
    rounds: list[Any] = field(default_factory=list)
    """Each in Ray's store, for whoever needs it."""
    owners: list[Slot] = field(default_factory=list)
    """Who keeps a panel, or is to."""
    held: dict[Life, dict[int, int]] = field(default_factory=dict)
    """Rounds of the panels that workers have."""
    paces: dict[Life, float] = field(default_factory=dict)
    """Seconds that they took for a panel's last round."""

    @property
    def rank(self) -> int:
        """Rows."""
        return len(self.given) + self.n_pivots

    def select(self, panels: list[int], whole: Any) -> Any:
        """The columns of some panels, one after the other."""
        pieces: list[list[int]] = []
        for panel in panels:
            if pieces and pieces[-1][1] == panel:
                pieces[-1][1] = panel + 1
            else:
                pieces.append([panel, panel + 1])
        found = [whole[:, self.starts[first] : self.starts[last]] for first, last in pieces]
        return np.ascontiguousarray(found[0] if len(found) == 1 else np.concatenate(found, axis=1))

    def scatter(self, panels: list[int], columns: Any, whole: Any) -> None:
        """Puts such columns where they belong."""
        first = 0
        for panel in panels:
            start, stop = self.starts[panel : panel + 2]
            whole[:, start:stop] = columns[:, first : first + stop - start]
            first += stop - start


def _life(slot: Slot) -> Life:
    return slot.number, slot.lives


class Shares:
    """Who computes which panels in one run of the pool: keepers, or others where these are gone."""

    def __init__(self, factor: Factor, number: int, question: tuple[str, Any, bool]) -> None:
        self._factor, self._number = factor, number
        self._what, self._payload, self._cut = question
        self.groups: list[list[int]] = []
        own: dict[int, list[int]] = collections.defaultdict(list)
        for panel, slot in enumerate(factor.owners):
            own[slot.number].append(panel)
        for panels in own.values():
            self.groups += [panels[at : at + MOST] for at in range(0, len(panels), MOST)]
        self._asked: dict[int, Slot] = {}

    def pick(self, slot: Slot, waiting: collections.deque[int]) -> int | None:
        """What a free worker does next: its own, or what nobody is there to do."""
        owners = self._factor.owners
        own = [number for number in waiting if owners[self.groups[number][0]] is slot]
        gone = [n for n in waiting if not owners[self.groups[n][0]].opened.get(self._factor.matrix)]
        number = next(iter(own + gone), None)
        if number is not None:
            waiting.remove(number)
            for panel in self.groups[number]:
                owners[panel] = slot
            self._asked[number] = slot
        return number

    def call(self, slot: Slot, number: int) -> tuple[Any, ...]:
        """The message about a group of panels, with all that this worker has not heard of them."""
        factor, panels = self._factor, self.groups[number]
        known = factor.held.get(_life(slot), {})
        fresh = any(panel not in known for panel in panels)
        since = 0 if fresh else min(known[panel] for panel in panels)
        begin = None
        if fresh:
            roots = None if factor.roots is None else factor.select(panels, factor.roots[None])[0]
            begin = (roots, factor.select(panels, factor.given))
        payload = factor.select(panels, self._payload) if self._cut else self._payload
        keep = [panel for panel, owner in enumerate(factor.owners) if owner is slot]
        # The worker drops what it is not to keep.
        factor.held[_life(slot)] = {panel: n for panel, n in known.items() if panel in keep}
        about = (self._number, panels, keep, begin, since)
        return "panels", about, self._what, payload, *factor.rounds[since:]

    def heard(self, number: int) -> tuple[list[int], Life]:
        """The panels of an answer, and whose they are now."""
        factor, slot = self._factor, self._asked[number]
        held = factor.held.setdefault(_life(slot), {})
        held.update(dict.fromkeys(self.groups[number], len(factor.rounds)))
        return self.groups[number], _life(slot)


class Panels:
    """Factors whose panels workers keep; one call is one message to each of them, or a few."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._factors: dict[int, Factor] = {}
        self._numbers = 0

    def begin(self, matrix: int, roots: Doubles | None, given: NDArray[np.float32]) -> int:
        """A factor without pivots; workers hear of it with its first round."""
        starts = _argwhy.panel_starts(given.shape[1])
        slots, count = self._cluster.slots(), len(starts) - 1
        owners = [slots[panel * len(slots) // count] for panel in range(count)]
        self._numbers += 1
        self._factors[self._numbers] = Factor(matrix, starts, roots, given, owners=owners)
        return self._numbers

    def append(self, factor: int, round: tuple[Any, ...], diagonal: Doubles) -> Doubles:
        """A round more; the residual diagonal after it."""
        own = self._factors[factor]
        own.rounds.append(self._cluster.put(round))
        lowered = np.empty_like(diagonal)

        def take(panels: list[int], life: Life, answer: tuple[float, Doubles]) -> None:
            own.paces[life] = answer[0] / len(panels)
            own.scatter(panels, answer[1], lowered)

        self._ask(factor, ("append", diagonal, True), diagonal.nbytes, take)
        own.n_pivots += len(round[0])
        return lowered

    def gram(self, factor: int, signs: NDArray[np.int8]) -> Doubles:
        """Σ s_i b_i b_iᵀ for every row of signs: packed lower triangles."""
        rank = self._factors[factor].rank
        return self._sum(factor, ("gram", signs, True), len(signs) * rank * (rank + 1) * 4)

    def gather(self, factor: int, marks: NDArray[np.int8]) -> NDArray[np.float32]:
        """B at the samples marked by other than zero, in their order."""
        own = self._factors[factor]
        until = np.concatenate(([0], np.cumsum(marks[0] != 0)))[own.starts]
        whole = np.empty((own.rank, until[-1]), np.float32)

        def take(panels: list[int], life: Life, answer: NDArray[np.float32]) -> None:
            first = 0
            for panel in panels:
                start, stop = until[panel : panel + 2]
                whole[:, start:stop] = answer[:, first : first + stop - start]
                first += stop - start

        self._ask(factor, ("gather", marks, True), whole.nbytes, take)
        return whole

    def project(self, factor: int, v: Doubles) -> Doubles:
        """B v."""
        return self._sum(factor, ("project", v, True), v.nbytes)

    def expand(self, factor: int, w: Doubles) -> Doubles:
        """Bᵀw."""
        own = self._factors[factor]
        whole = np.empty((len(w), own.starts[-1]))

        def take(panels: list[int], life: Life, answer: Doubles) -> None:
            own.scatter(panels, answer, whole)

        self._ask(factor, ("expand", w, False), whole.nbytes, take)
        return whole

    def end(self, factor: int) -> None:
        """Nobody will ask for it again."""
        own = self._factors.pop(factor, None)
        if own is not None:
            for slot in self._cluster.slots():
                if own.held.get(_life(slot)):
                    slot.actor.forget.remote(own.matrix, factor)

    def forget(self, matrix: int) -> None:
        """Those of a matrix that is closed go with it."""
        self._factors = {number: own for number, own in self._factors.items() if own.matrix != matrix}

    def _sum(self, factor: int, question: tuple[str, Any, bool], n_bytes: int) -> Doubles:
        """What all panels give together, added along the tree."""
        open_: dict[tuple[int, int], Doubles] = {}

        def take(panels: list[int], life: Life, answer: list[tuple[int, int, Doubles]]) -> None:
            for level, index, values in answer:
                while (level, index ^ 1) in open_:
                    values = values + open_.pop((level, index ^ 1))
                    level, index = level + 1, index // 2
                open_[level, index] = values

        self._ask(factor, question, n_bytes, take)
        (whole,) = open_.values()
        return whole

    def _ask(self, factor: int, question: tuple[str, Any, bool], n_bytes: int, take: Any) -> None:
        own, cluster = self._factors[factor], self._cluster
        cluster.check_store(-(-n_bytes // len(cluster.slots())))
        settle(own, cluster.slots(), moves=question[0] == "append")
        shares = Shares(own, factor, question)

        def heard(number: int, answer: Any) -> None:
            take(*shares.heard(number), answer)

        try:
            cluster.run_shares(own.matrix, shares, heard)
        except ClusterError:
            # Nobody knows who has how much of it.
            own.held.clear()
            raise


def settle(factor: Factor, slots: list[Slot], moves: bool = True) -> None:
    """Has panels kept by those who are there, as evenly as they are fast, moving as few as will do.

    Speeds count while B grows, when a panel costs little to make again (``moves``).
    """
    there = [slot for slot in slots if slot.opened.get(factor.matrix)]
    counts = collections.Counter(owner.number for owner in factor.owners)
    if not there or sum(counts[slot.number] for slot in there) < len(factor.owners):
        # Some are still to come, or being replaced: whoever is free does theirs meanwhile.
        return
    paces = {slot.number: factor.paces.get(_life(slot), 0.0) for slot in there}
    usual = statistics.median(paces.values())
    slow = {number: pace > SLOW * usual > 0 and moves for number, pace in paces.items()}
    speeds = {number: usual / paces[number] if slow[number] else 1.0 for number in paces}
    all_speeds = sum(speeds.values())
    wanted = {number: len(factor.owners) * speed / all_speeds for number, speed in speeds.items()}
    by_number = {slot.number: slot for slot in there}
    while True:
        most = max(wanted, key=lambda number: counts[number] - wanted[number])
        least = min(wanted, key=lambda number: counts[number] - wanted[number])
        if counts[most] - wanted[most] - (counts[least] - wanted[least]) <= 1 + 1e-9:
            return
        panel = max(at for at, owner in enumerate(factor.owners) if owner.number == most)
        factor.owners[panel] = by_number[least]
        counts[most] -= 1
        counts[least] += 1
