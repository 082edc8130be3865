"""How long a fit would take on a cluster, and what would travel, before anybody pays for one.

The same cut into parts, the same queue and the same order of adding as the real thing, with a clock
of its own. What a pair of samples costs is measured here or given; the network is stated.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass

from .. import _argwhy
from .costs import Machine, Network, Sizes, by_driver, by_workers


CORE_FLOPS = 2.5e10
"""Operations a second of a core, in double precision."""


@dataclass(frozen=True)
class Simulation:
    """What :func:`simulate` found; seconds and bytes."""

    workers: int
    cores: int
    product_seconds: float
    """One product in working precision, from the vectors' departure to the last sum."""
    exact_seconds: float
    """One product in double precision."""
    product_bytes: int
    """What travels for one product: the vectors to every worker, parts back."""
    product_efficiency: float
    """Time that all cores would need without waiting, of what a product takes."""
    preconditioner: str
    """Who keeps the preconditioner: "driver" or "workers"."""
    preconditioner_seconds: float
    """What it takes to make and to apply."""
    otherwise_seconds: float
    """What it would take if the others kept it."""
    preconditioner_bytes: int
    """Memory that it takes, of the driver or of each worker."""
    driver_seconds: float
    """What the driver computes alone."""
    fit_seconds: float
    """Products and preconditioner together."""
    fit_bytes: int
    """What travels in all."""
    efficiency: float
    """Time that all workers' cores would need for the products, of what the fit takes."""

    def __str__(self) -> str:
        return (
            f"{self.workers} workers × {self.cores} cores: a product {self.product_seconds:.3g} s "
            f"({self.product_efficiency:.0%} of it computing), exact {self.exact_seconds:.3g} s, "
            f"{self.product_bytes / 1e9:.3g} GB each; the preconditioner {self.preconditioner_seconds:.3g} s, kept by the "
            f"{self.preconditioner} ({self.otherwise_seconds:.3g} s otherwise), {self.preconditioner_bytes / 1e9:.3g} GB "
            f"{'there' if self.preconditioner == 'driver' else 'a worker'}; the fit {self.fit_seconds:.3g} s, "
            f"{self.driver_seconds:.3g} s of it the driver's, {self.fit_bytes / 1e9:.3g} GB, efficiency {self.efficiency:.0%}"
        )


def simulate(
    n_samples: int,
    n_features: int = 78,
    decision_dim: int = 3,
    *,
    workers: int = 8,
    cores: int = 16,
    pair_seconds: float | None = None,
    exact_pair_seconds: float | None = None,
    bandwidth: float = 3e9,
    latency: float = 1e-3,
    add_seconds: float = 1e-9,
    products: int = 40,
    exact_products: int = 4,
    steps: int = 12,
    rank: int = 2500,
    spread: bool | None = None,
    driver_flops: float = 4e11,
    driver_bandwidth: float = 1e11,
    worker_flops: float | None = None,
    worker_bandwidth: float = 1e11,
) -> Simulation:
    """Predicts a fit of ``n_samples`` on ``workers`` of ``cores`` each.

    Parameters
    ----------
    pair_seconds, exact_pair_seconds:
        What one core needs for a pair of samples in single and in double precision; measured on
        this machine, one core of it, if not given.
    bandwidth, latency:
        Of the driver's link, bytes a second each way and seconds a call; 3e9 is 25 Gbit/s. The
        driver is assumed to send the vectors to every worker itself, though Ray's nodes pass them
        on to each other.
    add_seconds:
        What the driver needs to add a number of a part.
    products, exact_products:
        Of the whole fit: hopper's kind takes 35 to 40, and 4 exact ones, from 100,000 samples to a
        million, for a relative gap of 1e-6.
    steps:
        Of Newton's method, each of which follows the free samples with the preconditioner.
    rank:
        Of the preconditioner.
    spread:
        Whether workers keep it; if not given, as a fit does, from a million samples on. Compare
        ``preconditioner_seconds`` and ``otherwise_seconds``, and see ``Cluster(spread_from=...)``.
    driver_flops, driver_bandwidth:
        Operations and bytes of memory a second of the driver (16 cores of a server, about).
    worker_flops, worker_bandwidth:
        The same of a worker, whose panels lie on its cores even where it has a GPU; 2.5e10
        operations a core if not given.

    Examples
    --------
    >>> few = simulate(1_000_000, workers=8, pair_seconds=2e-9, exact_pair_seconds=6e-9)
    >>> many = simulate(1_000_000, workers=16, pair_seconds=2e-9, exact_pair_seconds=6e-9)
    >>> 1.8 < few.product_seconds / many.product_seconds < 2
    True
    """
    above = {
        "n_samples": n_samples,
        "n_features": n_features,
        "decision_dim": decision_dim,
        "workers": workers,
        "cores": cores,
        "pair_seconds": pair_seconds,
        "exact_pair_seconds": exact_pair_seconds,
        "bandwidth": bandwidth,
        "products": products,
        "rank": rank,
        "driver_flops": driver_flops,
        "driver_bandwidth": driver_bandwidth,
        "worker_flops": worker_flops,
        "worker_bandwidth": worker_bandwidth,
    }
    for name, value in above.items():
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}; expected a number above zero")
    least = {"latency": latency, "add_seconds": add_seconds, "exact_products": exact_products, "steps": steps}
    for name, value in least.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} is {value}; expected zero or more")
    single = _measured(n_features, decision_dim, False) if pair_seconds is None else pair_seconds
    double = _measured(n_features, decision_dim, True) if exact_pair_seconds is None else exact_pair_seconds
    network = (bandwidth, latency, add_seconds)
    product, travelled = _product((n_samples, decision_dim, workers), single / cores, network)
    exact, _ = _product((n_samples, decision_dim, workers), double / cores, network)
    pairs = n_samples * (n_samples + 1) / 2
    ideal = pairs / (workers * cores)
    sizes = Sizes(n_samples, decision_dim, rank, products, steps)
    driver = Machine(driver_flops, driver_bandwidth)
    worker = Machine(CORE_FLOPS * cores if worker_flops is None else worker_flops, worker_bandwidth)
    ways = {
        "driver": by_driver(sizes, workers, single / cores, driver, Network(*network)),
        "workers": by_workers(sizes, workers, single / cores, worker, driver, Network(*network)),
    }
    by = "workers" if (n_samples >= _argwhy.spread_from() if spread is None else spread) else "driver"
    cost, other = ways[by], ways["driver" if by == "workers" else "workers"]
    computing = (products * single + exact_products * double) * ideal
    total = products * product + exact_products * exact + cost.seconds
    return Simulation(
        workers=workers,
        cores=cores,
        product_seconds=product,
        exact_seconds=exact,
        product_bytes=travelled,
        product_efficiency=single * ideal / product,
        preconditioner=by,
        preconditioner_seconds=cost.seconds,
        otherwise_seconds=other.seconds,
        preconditioner_bytes=int(cost.held),
        driver_seconds=cost.alone,
        fit_seconds=total,
        fit_bytes=(products + exact_products) * travelled + int(cost.travelled),
        efficiency=computing / total,
    )


def _measured(n_features: int, n_vectors: int, exact: bool) -> float:
    """What a pair costs: processor time, which others on this machine change little."""
    spent: dict[int, float] = {}
    pairs = 1
    for times in (1, 4):
        began = time.process_time()
        pairs = _argwhy.multiply_pairs(n_features, n_vectors, exact, times)
        spent[times] = time.process_time() - began
    return max(spent[4] - spent[1], 1e-6) / (3 * pairs)


def _product(
    size: tuple[int, int, int], pair_seconds: float, network: tuple[float, float, float]
) -> tuple[float, int]:
    """Seconds and bytes of one product: parts from a queue, one link back, sums in order."""
    n_samples, n_vectors, workers = size
    bandwidth, latency, add_seconds = network
    n_parts, together = _argwhy.cluster_layout(n_samples)
    vectors = 8 * n_vectors * n_samples
    tiles = (blocks := -(-n_samples // together)) * (blocks + 1) / 2
    part_seconds = tiles / n_parts * together**2 * pair_seconds + latency
    # Vectors leave one after the other; whoever has them begins.
    free = [(vectors * (worker + 1) / bandwidth, worker) for worker in range(workers)]
    heapq.heapify(free)
    done: list[tuple[float, int]] = []
    for part in range(n_parts):
        since, worker = heapq.heappop(free)
        done.append((since + part_seconds, part))
        heapq.heappush(free, (since + part_seconds, worker))
    link, arrived, travelled = 0.0, [0.0] * n_parts, workers * vectors
    for when, part in sorted(done):
        # Part p starts in the row above which p of all parts lie: that much is not sent.
        share = (1 - part / n_parts) ** 0.5
        link = max(link, when) + vectors * share / bandwidth
        arrived[part] = link
        travelled += int(vectors * share)
    clock = 0.0
    for part, when in enumerate(arrived):
        share = (1 - part / n_parts) ** 0.5
        clock = max(clock, when) + vectors / 8 * share * add_seconds
    return clock, travelled
