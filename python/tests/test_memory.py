"""Fits and refusals keep the memory limit, measured from outside; bench/memory.py draws more."""

import importlib.util
import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from argwhy import datasets
from argwhy.errors import DataError

ROOT = Path(__file__).parents[2]
SEEDS = 24
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from Linux")


def bench():
    spec = importlib.util.spec_from_file_location("bench_memory", ROOT / "bench" / "memory.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_memory"] = module
    spec.loader.exec_module(module)
    return module


def program():
    return os.environ.get("ARGWHY_COMMAND", str(ROOT / "target" / "debug" / "argwhy"))


@on_linux
def test_the_limit_is_kept_in_random_fits():
    memory = bench()
    readers = memory.NPY + memory.TEXT + memory.HDF5
    for seed in range(SEEDS):
        drawn = memory.draw(seed, readers, largest=600, threads=64)
        # A debug build is a larger program.
        result = memory.judge(drawn, program(), floor=40 * memory.MIB, seconds=60)
        assert not result["wrong"], result


@on_linux
def test_threads_keep_nothing_that_they_freed():
    memory = bench()
    result = memory.judge(memory.CASES["sso-on-many-threads"], program(), floor=40 * memory.MIB, seconds=120)
    # It took 67 MiB of 55.5.
    assert not result["wrong"], result


@on_linux
def test_fits_without_a_row_are_as_many_at_once_as_there_is_room_for():
    memory = bench()
    result = memory.judge(memory.CASES["left-out-on-many-threads"], program(), floor=40 * memory.MIB, seconds=120)
    assert not result["wrong"] and result["status"] == 0, result


@on_linux
def test_learning_theta_keeps_the_limit_with_many_rows():
    memory = bench()
    case = replace(memory.CASES["theta-of-many-rows"], n=500)
    result = memory.judge(case, program(), floor=40 * memory.MIB, seconds=120)
    assert not result["wrong"] and result["status"] == 0, result


@on_linux
def test_compressed_zeros_are_refused_from_their_header(tmp_path):
    memory = bench()
    np.savez_compressed(tmp_path / "zeros.npz", signals=np.zeros((2_000_000, 30)), decisions=np.zeros((2_000_000, 1)))
    fit = [program(), "fit", str(tmp_path / "zeros.npz"), "-o", str(tmp_path / "m.argwhy"), "--memory", "100MiB"]
    done = memory.run(fit, 60)
    assert done.status == 2 and "memory" in done.errors and done.peak < 60 * memory.MIB, done


def test_reading_takes_no_more_than_it_may(tmp_path):
    path = tmp_path / "zeros.npz"
    np.savez_compressed(path, signals=np.zeros((100_000, 30)), decisions=np.zeros((100_000, 1)))
    with pytest.raises(DataError, match="22.9 MiB.*10.0 MiB"):
        datasets.load(path, memory="10MiB")
    signals, decisions = datasets.load(path, rows="99990:", memory=10 * 2**20)
    assert signals.shape == (10, 30) and decisions.shape == (10, 1)
    with pytest.raises(ValueError, match="memory is little"):
        datasets.read(path, memory="little")
