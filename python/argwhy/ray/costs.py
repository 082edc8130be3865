"""What a preconditioner costs a fit on a cluster, kept by the driver or spread over the workers."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _argwhy

ACCEPTED = 100
"""Pivots that come of a round of 128 proposals, about."""
PROPOSED = 128
PASSED = 36
"""Bytes of memory that a number of a small matrix costs, from zero to a sum."""
CORES = 16
"""Of the driver whose rate ``driver_flops`` is: a small matrix is factorised by one of them."""


@dataclass(frozen=True)
class Machine:
    """Rates, of the driver or of one worker: operations and bytes of memory a second."""

    flops: float
    bandwidth: float


@dataclass(frozen=True)
class Network:
    """Bytes a second of the driver's link, seconds a call, seconds to add a number there."""

    bandwidth: float
    latency: float
    add_seconds: float


@dataclass(frozen=True)
class Sizes:
    """Of a fit: samples, dimensions, rows of B, products and Newton's steps."""

    n_samples: int
    decision_dim: int
    rank: int
    products: int
    steps: int
    switched: float | None = None
    """Samples that change sides, of n_samples, in all steps and dimensions; half a dimension if not
    given.
    """
    sums: int | None = None
    """Small matrices that workers sum; one a step and dimension, and one more, if not given."""
    gathered: int = 0
    """Samples whose columns come to the driver instead, where few changed sides."""

    @property
    def values(self) -> float:
        """Numbers of B."""
        return float(self.n_samples) * self.rank

    @property
    def factor_operations(self) -> float:
        """To grow B and to have its Gram matrices.

        N·r² for either, and for each dimension's matrix what its samples at limits are of that.
        """
        switched = self.decision_dim / 2 if self.switched is None else self.switched
        return (2 + switched) * self.values * self.rank

    @property
    def small_operations(self) -> float:
        """Of a core of the driver: a Cholesky factor a step, of the dimensions side by side."""
        return self.steps * self.rank**3 / 3


@dataclass(frozen=True)
class Cost:
    """Seconds in all, those of the driver alone, bytes that travel, bytes of B that one holds."""

    seconds: float
    alone: float
    travelled: float
    held: float


def by_driver(sizes: Sizes, workers: int, row_seconds: float, driver: Machine, network: Network) -> Cost:
    """B on the driver: rows of K come to it from workers, and each product reads B twice."""
    alone = sizes.factor_operations / driver.flops + sizes.products * 2 * sizes.values * 4 / driver.bandwidth
    alone += sizes.small_operations / (driver.flops / CORES)
    travelled = 4 * sizes.values
    seconds = sizes.values * row_seconds / workers + travelled / network.bandwidth + alone
    return Cost(seconds, alone, travelled, 4 * sizes.values)


def by_workers(
    sizes: Sizes, workers: int, row_seconds: float, worker: Machine, driver: Machine, network: Network
) -> Cost:
    """B on the workers, by panels: vectors travel, and sums of small matrices."""
    n_panels = len(_argwhy.panel_starts(sizes.n_samples)) - 1
    # Of all panels, what the one with the most of them has.
    share = -(-n_panels // workers) / n_panels
    computing = share * (sizes.factor_operations / worker.flops + sizes.values * row_seconds)
    # B is read once to multiply and once to multiply with its transpose.
    computing += sizes.products * share * 2 * sizes.values * 4 / worker.bandwidth
    # A small matrix a panel is cleared, added to, packed and added to another one's.
    sums = 1 + sizes.steps * sizes.decision_dim if sizes.sums is None else sizes.sums
    computing += sums * share * n_panels * PASSED * sizes.rank**2 / worker.bandwidth
    packed, vectors = sizes.rank**2 / 2, sizes.n_samples * sizes.decision_dim
    senders = min(workers, n_panels)
    rounds = -(-sizes.rank // ACCEPTED)
    # The diagonal of a round, there and back, and what B is at pivots, to everyone; a sum from
    # everyone for all samples, and then a step for each dimension; vectors, there and back.
    diagonals = rounds * 2 * 8 * sizes.n_samples + senders * 4 * packed
    grams = sums * senders * packed
    signs = (sizes.steps + 1) * vectors
    applied = sizes.products * 2 * 8 * vectors
    travelled = diagonals + 8 * grams + signs + applied + 4 * sizes.rank * sizes.gathered
    calls = (rounds + sizes.steps + 1 + 2 * sizes.products) * senders
    # What B is at proposals, twice a round, by one core; sums; small matrices.
    alone = 2 * PROPOSED * sizes.rank**3 / (3 * ACCEPTED) / (driver.flops / CORES)
    alone += sizes.small_operations / (driver.flops / CORES) + grams * network.add_seconds
    alone += sizes.gathered * sizes.rank**2 / driver.flops
    seconds = computing + travelled / network.bandwidth + calls * network.latency + alone
    # While one is away, another one has its panels too.
    held = 4 * sizes.values * (share + 1 / n_panels)
    return Cost(seconds, alone, travelled, held)
