"""Data for those who have none: signals along smooth trajectories and a smooth controller that saturates.

    synthetic.py OUT.npz

24,155 rows (the size of the Hopper file), 11 signals, 3 decisions in [-1, 1], about a quarter of them on a limit. Seeded.
"""

import json
import pathlib
import sys

import numpy as np

N_ROWS, SIGNAL_DIM, DECISION_DIM = 24155, 11, 3


def signals(rng):
    """Sums of sines with incommensurable frequencies, and a little noise."""
    time = np.arange(N_ROWS)[:, None, None] / 20.0
    frequency = rng.uniform(0.2, 3.0, size=(SIGNAL_DIM, 6))
    phase = rng.uniform(0.0, 2.0 * np.pi, size=(SIGNAL_DIM, 6))
    amplitude = rng.normal(size=(SIGNAL_DIM, 6))
    smooth = np.sum(amplitude * np.sin(frequency * time + phase), axis=2)
    return smooth + 0.05 * rng.normal(size=smooth.shape)


def decisions(observed, rng):
    """A random two-layer network with gain, clipped: smooth in the signal, flat where it saturates."""
    first = rng.normal(size=(SIGNAL_DIM, 32)) / np.sqrt(SIGNAL_DIM)
    second = rng.normal(size=(32, DECISION_DIM)) / np.sqrt(32)
    return np.clip(1.6 * np.tanh(0.7 * observed @ first) @ second, -1.0, 1.0)


def main():
    out = pathlib.Path(sys.argv[1])
    rng = np.random.default_rng(0)
    observed = signals(rng)
    decided = decisions(observed, rng)
    np.savez(out, observations=observed.astype(np.float32), actions=decided.astype(np.float32))
    print(json.dumps({"n_rows": N_ROWS, "on_a_limit": float(np.mean(np.abs(decided) == 1.0))}))


if __name__ == "__main__":
    main()
