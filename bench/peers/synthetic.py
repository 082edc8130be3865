"""Data for those who have none: signals along smooth paths, a smooth controller that saturates.

    synthetic.py OUT.npz [--rows N]

24,155 rows (the size of the Hopper file) if not told otherwise, 11 signals, 3 decisions in [-1, 1],
about a quarter of them on a limit. Seeded.
"""

import argparse
import json
import pathlib

import numpy as np

SIGNAL_DIM, DECISION_DIM = 11, 3


def signals(n_rows, rng):
    """Sums of sines with incommensurable frequencies, and a little noise."""
    time = np.arange(n_rows)[:, None, None] / 20.0
    frequency = rng.uniform(0.2, 3.0, size=(SIGNAL_DIM, 6))
    phase = rng.uniform(0.0, 2.0 * np.pi, size=(SIGNAL_DIM, 6))
    amplitude = rng.normal(size=(SIGNAL_DIM, 6))
    smooth = np.concatenate(  # a piece at a time: the sines of 100,000 rows together take half a gigabyte
        [np.sum(amplitude * np.sin(frequency * piece + phase), axis=2) for piece in np.array_split(time, 1 + n_rows // 10000)]
    )
    return smooth + 0.05 * rng.normal(size=smooth.shape)


def decisions(observed, rng):
    """A random two-layer network with gain, clipped: smooth, and flat where it saturates."""
    first = rng.normal(size=(SIGNAL_DIM, 32)) / np.sqrt(SIGNAL_DIM)
    second = rng.normal(size=(32, DECISION_DIM)) / np.sqrt(32)
    return np.clip(1.6 * np.tanh(0.7 * observed @ first) @ second, -1.0, 1.0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--rows", type=int, default=24155)
    arguments = p.parse_args()
    rng = np.random.default_rng(0)
    observed = signals(arguments.rows, rng)
    decided = decisions(observed, rng)
    np.savez(arguments.out, observations=observed.astype(np.float32), actions=decided.astype(np.float32))
    print(json.dumps({"n_rows": arguments.rows, "on_a_limit": float(np.mean(np.abs(decided) == 1.0))}))


if __name__ == "__main__":
    main()
