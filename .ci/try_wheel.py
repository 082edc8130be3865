#!/usr/bin/env python3
"""Installs the wheel of a folder that suits this Python, in an environment of its own, and uses it.

`.ci/try_wheel.py DIST`. No compiler is allowed: NumPy comes as a wheel too.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

USE = """
import os, tempfile
import numpy as np
import argwhy

signals, decisions, lower, upper = argwhy.datasets.make_quadrotor(300)
est = argwhy.KernelInverseOptimizer(lower=lower, upper=upper).fit(signals, decisions)
assert est.status_ == "solved" and est.certificate_.relative_gap <= 1e-6, est.certificate_
decided = est.predict(signals)
assert (decided >= lower).all() and (decided <= upper).all()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "pilot.argwhy")
    est.save(path)
    again = argwhy.KernelInverseOptimizer.load(path).predict(signals)
assert np.array_equal(decided, again)
print("argwhy", argwhy.__version__, "works")
"""


def main():
    if len(sys.argv) != 2:
        print("usage: .ci/try_wheel.py DIST", file=sys.stderr)
        return 2
    dist = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=True)
        python = Path(scratch) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
        # From the folder and nowhere else, whatever the registry has.
        subprocess.run([*install, "numpy"], check=True)
        ours = ["--no-index", "--find-links", dist, "argwhy"]
        subprocess.run([*install, *ours], check=True)
        subprocess.run([python, "-c", USE], check=True, cwd=scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
