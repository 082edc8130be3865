"""The package's own estimator as a policy: evaluation relies on what was promised about batches."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

from argwhy import KernelInverseOptimizer
from argwhy.gym import evaluate


def learned(decision_dim: int, signal_dim: int, y_is_flat: bool = False) -> KernelInverseOptimizer:
    source = np.random.default_rng(0)
    signals = source.normal(size=(200, signal_dim))
    decisions = np.clip(signals @ source.normal(size=(signal_dim, decision_dim)), -1.0, 1.0)
    return KernelInverseOptimizer(bounds=(-1, 1), regularization=1e-3).fit(signals, decisions[:, 0] if y_is_flat else decisions)


def test_the_same_bits_for_any_number_at_once() -> None:
    hopper = learned(3, 11)
    alone, together = evaluate(hopper, "hopper", episodes=6, at_once=1), evaluate(hopper, "hopper", episodes=6)
    np.testing.assert_array_equal(alone.returns, together.returns)
    np.testing.assert_array_equal(alone.lengths, together.lengths)


def test_a_model_that_was_stored_is_the_same_policy(tmp_path: pathlib.Path) -> None:
    hopper = learned(3, 11)
    hopper.save(tmp_path / "hopper.argwhy")
    again: Any = KernelInverseOptimizer.load(tmp_path / "hopper.argwhy")
    np.testing.assert_array_equal(evaluate(again, "hopper", episodes=2).returns, evaluate(hopper, "hopper", episodes=2).returns)


def test_a_single_decision() -> None:
    for y_is_flat in (True, False):
        assert evaluate(learned(1, 3, y_is_flat), "Pendulum-v1", episodes=2).lengths.tolist() == [200, 200]
