#!/usr/bin/env python3
"""The pilot of the demo, learned on two Ray workers of this machine.

    pip install 'argwhy[ray]'
    python examples/ray/laptop.py

No faster than one process on the same cores: it shows that nothing else changes.
"""

import os

import numpy as np

from argwhy import KernelInverseOptimizer, datasets
from argwhy.ray import Cluster

rows = int(os.environ.get("ARGWHY_EXAMPLE_ROWS", "4000"))
signals, decisions, lower, upper = datasets.make_quadrotor(rows)
settings = {"lower": lower, "upper": upper, "operator": "tiled"}

with Cluster(workers=2, cpus=1) as cluster:
    there = KernelInverseOptimizer(**settings, backend=cluster, verbose=1).fit(signals, decisions)
    status = cluster.status()
here = KernelInverseOptimizer(**settings).fit(signals, decisions)

same = np.array_equal(here.predict(signals), there.predict(signals))
print(f"{status['products']} products on {status['alive']} workers; decisions {'have the same bits' if same else 'differ'}")
