"""How good settings look on demonstrations alone: no score, no world, no teacher is asked.

In: demonstrations, the rows to learn from, settings. Out: numbers of which less is better.

* `error`: root mean square distance from the expert's decision, whole episodes kept aside;
* `regret`: the suboptimality loss on those rows, what inverse optimization minimises;
* `shaken`: the error where the signal is off by a tenth of its spread, which is where a policy is
  as soon as it has erred;
* `jump`: how far the decision moves when the signal is shaken so;
* `slow_5` to `slow_50`: the error of decisions averaged over that many steps. A body adds up what
  is done to it: noise (the expert's own, and what a model learned of it) is gone after a few
  steps, what is off in the same direction step after step is not;
* `gain`: how far the slope of the expert's decisions over the model's is from one: a model that
  decides too timidly has more;
* `drift`: the world is learned from the demonstrations as well (what follows a signal and a
  decision), the policy acts in that for 25 steps from states kept aside, and this is how far it is
  from the expert's path by then, in spreads of the signals, at most 3;
* `stray`: the same for 100 steps, and the distance is that to the nearest state of any
  demonstration: a policy may be out of step with one path and still walk as the expert does.
"""

import data
import numpy as np
from argwhy import KernelInverseOptimizer

import ideas
import settings as candidates

SHAKE = 0.1
HORIZON = 25
STRAY_HORIZON = 100
STARTS = 64
KNOWN_STATES = 2000
FARTHEST = 3.0
WINDOWS = (5, 10, 20, 50)
# Of the learned world: enough to say what follows, and quick.
WORLD_ROWS = 5000


def measure(demonstrations, mask, settings, world, options, n_folds=5):
    """Every criterion, and the error of each fold."""
    signals, decisions = demonstrations.observations, demonstrations.actions
    spread = signals[mask].std(axis=0)
    draw = np.random.default_rng(0)
    found = {"error": [], "regret": [], "shaken": [], "jump": []}
    found |= {f"slow_{length}": [] for length in WINDOWS}
    drift, pairs = None, []
    for fold in data.folds(demonstrations.episodes, mask, n_folds):
        policy = fit(signals, decisions, mask & ~fold, settings, {**options, "tol": 1e-4})
        s, u = signals[fold].astype(float), decisions[fold].astype(float)
        desired = policy.desired(s)
        decided = np.clip(desired, -1.0, 1.0)
        shaken = policy.predict(s + SHAKE * spread * draw.standard_normal(s.shape))
        found["error"].append(squared(decided - u))
        found["regret"].append(squared(u - desired) - squared(desired - decided))
        found["shaken"].append(squared(shaken - u))
        found["jump"].append(squared(shaken - decided))
        for length in WINDOWS:
            means = window_means(decided - u, demonstrations.episodes[fold], length)
            found[f"slow_{length}"].append(squared(means))
        pairs.append((decided, u))
        if drift is None:
            drift = drifted(policy, world, demonstrations, fold, spread)
            drift |= strayed(policy, world, demonstrations, mask, spread)
    together = {name: np.concatenate(parts) for name, parts in found.items()}
    # No episode may be as long as a window is.
    out = {name: root(parts) if len(parts) else None for name, parts in together.items()}
    out["regret"] = float(np.mean(together["regret"]))
    out["gain"] = abs(np.log(slope(pairs)))
    return {**out, **drift, "folds": [root(part) for part in found["error"]]}


def steady(demonstrations, mask, settings, options, learn=None):
    """How far settings are off steadily: squared error without what the demonstrations' noise adds.

    Two models a and b learn from different episodes, a third part judges: the mean of
    (a − u)·(b − u). What noise of the demonstrations puts into a it does not put into b, so that
    averages out, as it does in a body that is pushed many times a second; what both are off by
    stays, and the expert's own noise, which is the same for all settings. `learn` makes a policy of
    a mask of rows, where settings alone do not say how.
    """
    signals, decisions = demonstrations.observations, demonstrations.actions
    parts, options = data.folds(demonstrations.episodes, mask, 3), {**options, "tol": 1e-3}
    learn = learn or (lambda rows: fit(signals, decisions, rows, settings, options))
    products, squares = [], []
    for n, judged in enumerate(parts):
        s, u = signals[judged].astype(float), decisions[judged].astype(float)
        away = []
        for learned in (parts[(n + 1) % 3], parts[(n + 2) % 3]):
            policy = learn(learned)
            away.append(np.clip(policy.desired(s), -1.0, 1.0) - u)
        products.append((away[0] * away[1]).sum(axis=1))
        squares += [squared(one) for one in away]
    means = [float(np.mean(np.concatenate(part))) for part in (products, squares)]
    return dict(zip(("steady", "square"), means, strict=True))


def window_means(errors, episodes, length):
    """Means over stretches of so many rows, none across the end of an episode."""
    means = []
    for episode in np.unique(episodes):
        own = errors[episodes == episode]
        whole = len(own) // length * length
        means.append(own[:whole].reshape(-1, length, own.shape[1]).mean(axis=1))
    return np.concatenate(means)


def slope(pairs):
    """Of the expert's decisions over the model's, all folds and dimensions together."""
    decided, expert = (np.concatenate(part) for part in zip(*pairs, strict=True))
    decided, expert = decided - decided.mean(axis=0), expert - expert.mean(axis=0)
    return max(float((decided * expert).sum() / (decided**2).sum()), 1e-3)


def root(squares):
    return float(np.mean(squares)) ** 0.5


def squared(difference):
    """Row by row."""
    return (difference**2).sum(axis=1)


def fit(signals, decisions, mask, settings, options):
    """What settings learn from those rows, ideas included."""
    return ideas.fit(signals, decisions, mask, settings, options, one_kernel)


def one_kernel(signals, decisions, mask, settings, options):
    """An estimator on those rows, features scaled by all rows as the paper has it."""
    given = {**options, **candidates.parameters(settings, signals.shape[1])}
    preset = given.pop("preset", None)
    if preset is not None:
        estimator = KernelInverseOptimizer.from_preset(preset, **given)
    else:
        estimator = KernelInverseOptimizer(**{"bounds": (-1.0, 1.0), **given})
    return estimator.fit(signals, decisions, rows=data.ranges(mask))


def learn_world(demonstrations, mask, options):
    """What a signal becomes under a decision, learned from rows that follow each other."""
    followed = mask & np.append(mask[1:], False) & ~demonstrations.ends
    rows = np.flatnonzero(followed)[:: max(1, int(followed.sum() / WORLD_ROWS))][:WORLD_ROWS]
    now, then = demonstrations.observations[rows], demonstrations.observations[rows + 1]
    change = then.astype(float) - now
    scale = change.std(axis=0) + 1e-9
    model = KernelInverseOptimizer(
        features="raw", kernel="matern52", trend="linear", regularization=1e-6, unbounded=True,
        **{**options, "tol": 1e-3},
    )
    model.fit(np.hstack([now, demonstrations.actions[rows]]).astype(float), change / scale)
    return model, scale


def drifted(policy, world, demonstrations, fold, spread):
    """How far the policy is from the expert's path, in a learned world."""
    starts = start_rows(demonstrations, fold)
    if world is None or len(starts) == 0:
        return {"drift": None, "drift_early": None}
    away = []
    for step, state in enumerate(imagined(policy, world, demonstrations, starts, HORIZON), 1):
        expert = demonstrations.observations[starts + step]
        distance = np.sqrt(np.mean(((state - expert) / (spread + 1e-9)) ** 2, axis=1))
        away.append(float(np.minimum(distance, FARTHEST).mean()))
    return {"drift": away[-1], "drift_early": away[HORIZON // 5 - 1]}


def imagined(policy, world, demonstrations, starts, steps):
    """States of the policy in the learned world, step by step, one row a start."""
    model, scale = world
    state = demonstrations.observations[starts].astype(float)
    limit = np.abs(demonstrations.observations).max(axis=0) * 2.0
    for _ in range(steps):
        inputs = np.hstack([state, policy.predict(state)])
        state = np.clip(state + model.predict(inputs) * scale, -limit, limit)
        yield state


def strayed(policy, world, demonstrations, mask, spread):
    """How far from everything the expert has seen the policy comes in a learned world."""
    if world is None:
        return {"stray": None}
    rows = np.flatnonzero(mask)
    starts = rows[np.linspace(0, len(rows) - 1, STARTS).astype(int)]
    known = rows[np.linspace(0, len(rows) - 1, min(KNOWN_STATES, len(rows))).astype(int)]
    seen = demonstrations.observations[known] / (spread + 1e-9)
    away = []
    for state in imagined(policy, world, demonstrations, starts, STRAY_HORIZON):
        here = state / (spread + 1e-9)
        squares = (here**2).sum(axis=1)[:, None] + (seen**2).sum(axis=1) - 2.0 * here @ seen.T
        nearest = np.sqrt(np.maximum(squares.min(axis=1), 0.0) / here.shape[1])
        away.append(np.minimum(nearest, FARTHEST).mean())
    return {"stray": float(np.mean(away))}


def start_rows(demonstrations, fold):
    """Rows kept aside after which the episode goes on for the whole horizon, spread evenly."""
    episodes = demonstrations.episodes
    rows = np.flatnonzero(fold)
    rows = rows[rows + HORIZON < len(fold)]
    rows = rows[(episodes[rows] == episodes[rows + HORIZON]) & fold[rows + HORIZON]]
    return rows[np.linspace(0, len(rows) - 1, min(STARTS, len(rows))).astype(int)]
