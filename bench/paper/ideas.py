"""Ways to learn beyond one kernel's settings: signals turned first, several models together.

In: settings with a key more than an estimator has. Out: something that predicts. Nothing here looks
at a score, a world or a teacher.

* `turned`: directions in which signals vary little are where a policy is pushed back from, and a
  kernel of scaled signals hardly sees them. "whiten" gives every direction the same variance,
  "half" goes half of the way (in logarithms), "gradients" stretches each direction by how much a
  first model's decisions change along it (`first_k`: its regularization, if another; `rounds`:
  how often that is done, each time in the coordinates of the time before), "shared gradients" by
  how much those of two models, each of half of the rows, change alike: what noise put into one is
  not in the other;
* `members`: the mean decision of several settings;
* `left_out`: (j, n) learns without the j-th of n stretches of the rows, for members that differ in
  what they have seen.
"""

import dataclasses

import numpy as np

# Variances below this share of the mean are rounding, not directions.
LEAST_VARIANCE = 1e-4
# Keys that are not an estimator's.
OWN = ("turned", "first_k", "rounds", "left_out")
FIRST_ROWS = 10_000
PROBED = 1000
PROBE_STEP = 1e-3


@dataclasses.dataclass
class Turned:
    """A policy of signals in other coordinates."""

    policy: object
    centre: np.ndarray
    turn: np.ndarray

    def predict(self, signals):
        return self.policy.predict((np.asarray(signals, float) - self.centre) @ self.turn)

    def desired(self, signals):
        return self.policy.desired((np.asarray(signals, float) - self.centre) @ self.turn)

    def __getattr__(self, name):
        return getattr(self.policy, name)


@dataclasses.dataclass
class Together:
    """The mean of several policies: between decisions that are allowed, so allowed in a box."""

    members: list

    def predict(self, signals):
        return np.mean([member.predict(signals) for member in self.members], axis=0)

    def desired(self, signals):
        return np.mean([member.desired(signals) for member in self.members], axis=0)

    def __getattr__(self, name):
        if name == "members":
            raise AttributeError(name)
        return getattr(self.members[0], name)


def fit(signals, decisions, mask, settings, options, plainly):
    """As `plainly` fits settings without these keys."""
    if "members" in settings:
        own = [fit(signals, decisions, mask, one, options, plainly) for one in settings["members"]]
        return Together(own)
    if "left_out" in settings:
        mask = without_part(mask, *settings["left_out"])
        settings = {name: value for name, value in settings.items() if name != "left_out"}
    if "turned" not in settings:
        return plainly(signals, decisions, mask, settings, options)
    plain = {name: value for name, value in settings.items() if name not in OWN}
    seen = signals[mask].astype(float)
    centre = seen.mean(axis=0)
    if settings["turned"] == "shared gradients":
        turn = by_two_models(signals, decisions, mask, settings, options, plainly)
    elif settings["turned"] == "gradients":
        turn = by_first_model(signals, decisions, mask, settings, options, plainly)
    else:
        turn = by_variance(seen - centre, {"whiten": 0.5, "half": 0.25}[settings["turned"]])
    turned = (signals.astype(float) - centre) @ turn
    policy = plainly(turned, decisions, mask, plain, {**options, "normalize": "none"})
    return Turned(policy, centre, turn)


def by_first_model(signals, decisions, mask, settings, options, plainly):
    """What the gradients of a first model say, itself fitted to some rows where there are many."""
    first = {name: value for name, value in settings.items() if name not in OWN}
    first["regularization"] = settings.get("first_k", first["regularization"])
    if mask.sum() > FIRST_ROWS:
        rows = np.flatnonzero(mask)[:: -(-int(mask.sum()) // FIRST_ROWS)]
        signals, decisions, mask = signals[rows], decisions[rows], np.ones(len(rows), bool)
    seen, options = signals[mask].astype(float), {**options, "tol": 1e-4}
    policy = plainly(signals, decisions, mask, first, options)
    for _ in range(settings.get("rounds", 1) - 1):
        turn, centre = by_gradients(policy, seen), seen.mean(axis=0)
        turned = (signals.astype(float) - centre) @ turn
        own = plainly(turned, decisions, mask, first, {**options, "normalize": "none"})
        policy = Turned(own, centre, turn)
    return by_gradients(policy, seen)


def by_two_models(signals, decisions, mask, settings, options, plainly):
    """As `by_first_model`, by what gradients of two models have in common.

    Each model has half of the rows, one the earlier ones, one the later.
    """
    first = {name: value for name, value in settings.items() if name not in OWN}
    first["regularization"] = settings.get("first_k", first["regularization"])
    seen, options = signals[mask].astype(float), {**options, "tol": 1e-4}
    slopes = [
        slopes_of(plainly(signals, decisions, without_part(mask, part, 2), first, options), seen)
        for part in (0, 1)
    ]
    products = np.einsum("arn,brn->ab", *slopes)
    return by_products((products + products.T) / 2.0, seen)


def without_part(mask, part, count):
    """A mask without one of `count` stretches of its rows."""
    gone = np.array_split(np.flatnonzero(mask), count)[part]
    kept = mask.copy()
    kept[gone] = False
    return kept


def by_variance(centred, power):
    """To coordinates whose variances are those of scaled signals to the power of 1 − 2·power."""
    scale = 1.0 / (centred.std(axis=0) + 1e-7)
    values, vectors = np.linalg.eigh(np.cov((centred * scale).T))
    stretch = np.maximum(values, LEAST_VARIANCE) ** -power
    return of_mean_one(centred, scale[:, None] * vectors * stretch)


def by_gradients(policy, seen):
    """To coordinates in which the policy's decisions change about as much in all directions."""
    slopes = slopes_of(policy, seen)
    return by_products(np.einsum("arn,brn->ab", slopes, slopes), seen)


def slopes_of(policy, seen):
    """How desired decisions change a spread of each signal, at some of the rows."""
    rows = seen[np.linspace(0, len(seen) - 1, min(PROBED, len(seen))).astype(int)]
    slopes = []
    for j, spread in enumerate(spreads(seen)):
        step = np.zeros(seen.shape[1])
        step[j] = PROBE_STEP * spread
        slopes.append((policy.desired(rows + step) - policy.desired(rows - step)) / PROBE_STEP)
    return np.array(slopes)


def by_products(products, seen):
    """Stretches by the roots of the eigenvalues of the slopes' products."""
    values, vectors = np.linalg.eigh(products)
    stretch = np.sqrt(np.maximum(values / values.mean(), LEAST_VARIANCE))
    turn = (vectors * stretch) @ vectors.T / spreads(seen)[:, None]
    return of_mean_one(seen - seen.mean(axis=0), turn)


def spreads(seen):
    return seen.std(axis=0) + 1e-7


def of_mean_one(centred, turn):
    """The mean variance of a coordinate is one, as of scaled signals: widths stay widths."""
    return turn / np.sqrt(np.mean((centred @ turn).var(axis=0)))
