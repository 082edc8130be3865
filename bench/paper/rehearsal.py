"""Choosing by rehearsal: candidates act in the world, and no reward is looked at.

In: a fitted policy, the demonstrations it was fitted to, a world. Out: how far the states that it
comes through are from the demonstrated ones, of which less is better. This uses the world's
dynamics, which no criterion of `criteria.py` does, and neither its rewards nor the teacher.

`apart` is the energy distance between the two distributions of states, 2 E|v − s| − E|v − v'| −
E|s − s'| for visited v and demonstrated s: zero where they are the same, and told from samples
without any density. Distances are root mean squares over signals, in spreads of the demonstrations.
Nearest demonstrated states would not do: who stands still where the demonstrations begin is close
to them for ever.

An episode that ends early has fewer states, not other ones. So, where episodes are shorter than
those demonstrated, the share that is missing counts as visits of one place apart from all states,
as far away as states three spreads off. Longer ones are not held against a policy: no demonstration
shows how to fall on purpose.
"""

import numpy as np

# Scores start from seeds 0 to 99 and rollouts have theirs from 1,000,000 on.
FIRST_SEED = 100_000
# States of each side that are compared: their distances in pairs are what takes time.
COMPARED = 2000
FALLEN = 3.0
# The limit of an episode in all of these worlds.
LONGEST = 1000


class Watched:
    """A policy that notes which signals it is shown."""

    def __init__(self, policy):
        self.policy, self.seen = policy, []

    def predict(self, signals):
        self.seen.append(np.array(signals))
        return self.policy.predict(signals)


def measure(policy, demonstrations, mask, world, episodes):
    """How far apart visited and demonstrated states are, and what that is made of."""
    from argwhy.gym import evaluate

    watched = Watched(policy)
    lengths = evaluate(watched, world, episodes, seed=FIRST_SEED, at_once=episodes).lengths
    missing = max(0.0, 1.0 - float(lengths.mean()) / usual_length(demonstrations, mask))
    shown = demonstrations.observations[mask].astype(float)
    visited, demonstrated = scaled(np.concatenate(watched.seen), shown), scaled(shown, shown)
    away = distances(visited, demonstrated)
    return {
        "apart": apart(visited, demonstrated, missing, away),
        "missing": missing,
        "nearest": float(np.median(away.min(axis=1))),
        "length": float(lengths.mean()),
    }


def usual_length(demonstrations, mask):
    """Rows an end, which counts episodes that the drawn rows cut as well."""
    ends = int(demonstrations.ends[mask].sum())
    return min(LONGEST, mask.sum() / max(ends, 1))


def scaled(states, shown):
    """Some of the states, evenly: the norm is the root mean square over signals in spreads."""
    rows = np.linspace(0, len(states) - 1, min(COMPARED, len(states))).astype(int)
    spread = shown.std(axis=0) + 1e-9
    return (states[rows] - shown.mean(axis=0)) / spread / np.sqrt(shown.shape[1])


def apart(visited, demonstrated, missing, away=None):
    """The energy distance; `missing` is the share of visits that an early end took away."""
    away = distances(visited, demonstrated) if away is None else away
    kept = 1.0 - missing
    across = kept * away.mean() + missing * fallen(demonstrated).mean()
    among = kept**2 * distances(visited, visited).mean()
    among += 2.0 * kept * missing * fallen(visited).mean()
    return float(2.0 * across - among - distances(demonstrated, demonstrated).mean())


def fallen(states):
    """How far each state is from the place that stands for having fallen."""
    return np.sqrt((states**2).sum(axis=1) + FALLEN**2)


def distances(left, right):
    squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
    return np.sqrt(np.maximum(squares, 0.0))
