"""The same fit on several machines, by Ray: ``pip install 'argwhy[ray]'``.

>>> from argwhy import KernelInverseOptimizer
>>> from argwhy.ray import Cluster
>>> est = KernelInverseOptimizer(bounds=(-1, 1), backend=Cluster(workers=2, cpus=1))

The solver runs here; products with the kernel matrix are computed by workers, one Ray actor each.
Decisions have the bits of one process's, for any number of workers and whichever of them die.
"""

from __future__ import annotations

from ..errors import ClusterError
from .cluster import Cluster
from .simulation import Simulation, simulate

__all__ = ["Cluster", "ClusterError", "Simulation", "simulate"]
