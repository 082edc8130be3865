"""Who demonstrated what: whole episodes are put together by the law that explains them.

In: signals, decisions, the episode of each row. Out: an expert for every episode, and how many
there are. Nothing else is looked at, no reward, no label, not the order of episodes.

Where several people, shifts or policies decided, the same signal has several right decisions. One
law lies between them and may be nobody's. The model here: every episode was demonstrated by one of
a few experts, each of whom has a law. Alternating does both, as k-means does with means: laws of
the episodes that each expert has, then every episode to the law that errs least on it, without its
own rows.

1. A start that costs little: ridge regression on smooth features. The sums that it needs are added
   up once an episode, so laws of any set of episodes are one solve.
2. The same with the estimator's own laws, limits and all, until nobody moves.
3. How many: episodes are kept aside. The first half of such an episode says whose it is, the second
   half is charged the error of that law. Knowing how an episode began helps to say how it goes on
   where there are several experts, and only there. Laws are compared that learned from as many
   rows: of two experts' rows half are about somebody else, of one expert's none.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from . import _arrays
from .constraints import Constraints, as_constraints
from .errors import DataError
from .typing import ArrayLike

__all__ = ["Experts", "Trial", "find_experts"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_PROBED = 200
"""Rows of an episode that laws are compared on, evenly spread, at most."""
_STARTS = 6
_ROUNDS = 30
_OWN_ROUNDS = 4
"""With the estimator's laws, each of which is a fit."""
_PARTS = 4
"""Into as many parts episodes are divided for laws that have not seen them."""
_WAVES = 64
_WIDTH = 0.3
_RIDGE = 1e-3
_FARTHEST = 5.0
"""Standard deviations at which a signal is cut before it becomes a feature of the start."""
_LEAST = 1e-6
"""A mean square below which errors are all the same: who never errs is known well enough."""
_CLEARLY = 2.0
"""Standard errors by which one more expert has to be better."""


class Law(Protocol):
    """What an estimator of argwhy has, and any of scikit-learn's."""

    def fit(self, X: Any, y: Any, **more: Any) -> Any: ...
    def predict(self, X: Any) -> Any: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Trial:
    """How well some number of experts explains episodes that nothing was learned from.

    Attributes
    ----------
    n_experts:
        How many.
    error:
        Root mean square distance from the decisions, in their standard deviations.
    gain, gain_error:
        Logarithm of how many times smaller errors are than with one expert fewer, where each law
        learns from as many rows, and its standard error; 0 for one. It is the mean over episodes:
        an odd one that no law explains counts as any other does.
    net, net_error:
        The same where all laws together learn from as many rows: what is left of the gain.
    """

    n_experts: int
    error: float
    gain: float
    gain_error: float
    net: float
    net_error: float

    @property
    def is_clear(self) -> bool:
        """Whether the last expert is more than chance, and worth the rows that others then lack.

        The gain must be clear, what is left of it not clearly a loss. Of one expert's episodes some
        are alike, too, and laws of these a little better: by less than rows are worth.
        """
        return self.gain > _CLEARLY * self.gain_error and self.net >= -_CLEARLY * self.net_error


@dataclass(frozen=True, eq=False, repr=False)
class Experts:
    """Who demonstrated what. Experts are numbered from the one with the most episodes on.

    Attributes
    ----------
    labels:
        The expert of each row.
    episodes:
        Every episode once, by the name it has in ``groups``, in the order in which they come.
    of_episode:
        The expert of each of these.
    trials:
        One expert, two, and so on, as many as were looked for; none where episodes are too few.
    laws:
        An estimator of each expert, fitted to some of the rows.
    """

    labels: Ints
    episodes: list[Hashable]
    of_episode: Ints
    trials: list[Trial]
    laws: list[Any]
    _scale: Floats

    @property
    def n_experts(self) -> int:
        """How many there are."""
        return len(self.laws)

    @property
    def shares(self) -> Floats:
        """The part of the episodes that each expert has."""
        counts = np.bincount(self.of_episode, minlength=self.n_experts)
        shares: Floats = counts / counts.sum()
        return shares

    def __repr__(self) -> str:
        counts = np.bincount(self.of_episode, minlength=self.n_experts)
        shown = ", ".join(f"{count} of expert {n}" for n, count in enumerate(counts))
        return f"Experts({self.n_experts} found; episodes: {shown})"

    def assign(self, X: ArrayLike, y: ArrayLike, groups: ArrayLike, constraints: Any = None) -> Ints:
        """The expert of each row of other episodes: whose law errs least on the whole episode."""
        data = _Data.read(X, y, groups, constraints, self._scale)
        return _nearest(_errors(self.laws, data, data.probes()))[data.episode]


def find_experts(
    estimator: Law,
    X: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike,
    constraints: Any = None,
    *,
    max_experts: int = 3,
    rows: int = 3000,
    folds: int = 5,
    seed: int = 0,
) -> Experts:
    """How many experts demonstrated, and which episodes are whose.

    Parameters
    ----------
    estimator:
        What laws are made of: copies of it are fitted. Its limits are those of the decisions.
    X, y, constraints:
        As its ``fit`` takes them.
    groups:
        The episode of each row: a number or a name. An episode is one expert's from its beginning
        to its end, its rows are in the order of time.
    max_experts:
        At most as many are looked for. Each has to show at least two episodes.
    rows:
        So many rows, evenly taken, are learned from at a time, by all laws together.
    folds:
        Parts of the episodes that are kept aside in turn to find how many experts there are.
    seed:
        Of the starts. The same seed, the same answer.

    Raises
    ------
    DataError
        For arrays that do not belong together.

    Examples
    --------
    >>> import numpy as np
    >>> from argwhy import KernelInverseOptimizer, find_experts
    >>> draw = np.random.default_rng(0)
    >>> signals = draw.uniform(-1, 1, (600, 2))
    >>> day = np.arange(600) // 50
    >>> early = day % 3 > 0  # two crews, one of which does the opposite
    >>> decisions = np.where(early, 1, -1)[:, None] * signals[:, :1]
    >>> found = find_experts(KernelInverseOptimizer(bounds=(-1, 1)), signals, decisions, day)
    >>> found.n_experts, found.of_episode.tolist()
    (2, [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0])
    """
    asked: list[tuple[str, Any, int]] = [("max_experts", max_experts, 1), ("rows", rows, 10), ("folds", folds, 2)]
    for name, value, least in asked:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{name} is {value!r}; expected a whole number of at least {least}")
    data = _Data.read(X, y, groups, constraints)
    search = _Search(estimator, data, rows, seed)
    count, trials = _how_many(search, max_experts, folds)
    everyone = np.arange(data.n_episodes)
    of_episode = _by_size(search.grouped(everyone, count))
    laws = search.laws(everyone, of_episode, int(of_episode.max()) + 1)
    return Experts(of_episode[data.episode], data.names, of_episode, trials, laws, data.scale)


@dataclass(frozen=True, eq=False)
class _Data:
    """Rows with the number of their episode."""

    signals: Any
    decisions: Floats
    given: Any
    """The decisions as they came: one column stays one."""
    limits: Constraints | None
    episode: Ints
    names: list[Hashable]
    scale: Floats
    """Standard deviations of the decisions, whose units are no matter."""

    @classmethod
    def read(
        cls, X: ArrayLike, y: ArrayLike, groups: ArrayLike, constraints: Any, scale: Floats | None = None
    ) -> _Data:
        signals = np.asarray(_arrays.matrix(X, "X"))
        decisions, flat = _arrays.targets(y)
        wide = np.asarray(decisions, dtype=np.float64).reshape(len(decisions), -1)
        given = np.asarray(groups).ravel().tolist() if groups is not None else None
        if given is None:
            raise DataError("groups is None; expected the episode of each row, a number or a name")
        for name, found in (("y", len(wide)), ("groups", len(given))):
            if found != len(signals):
                raise DataError(f"{name} has {found} rows and X has {len(signals)}; expected as many")
        numbers: dict[Hashable, int] = {}
        episode = np.array([numbers.setdefault(one, len(numbers)) for one in given], dtype=np.int64)
        spread = wide.std(axis=0)
        own = np.where(spread > 0, spread, 1.0) if scale is None else scale
        columns = wide[:, 0] if flat else wide
        return cls(signals, wide, columns, as_constraints(constraints), episode, list(numbers), own)

    @property
    def n_episodes(self) -> int:
        return len(self.names)

    def rows_of(self, episodes: Ints) -> Ints:
        return np.flatnonzero(np.isin(self.episode, episodes))

    def limits_of(self, rows: Ints) -> dict[str, Any]:
        return {} if self.limits is None else {"constraints": self.limits.select(rows)}

    def probes(self) -> Ints:
        """Rows of every episode, evenly spread, an even number where there are as many."""
        return np.concatenate([_evenly(rows, _PROBED) for rows in self.by_episode()])

    def by_episode(self) -> list[Ints]:
        """The rows of each episode, in their order."""
        order = np.argsort(self.episode, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.episode))[:-1])

    def halves(self) -> tuple[Ints, Ints]:
        """Probes of the first halves and of the second halves."""
        cut = [np.array_split(_evenly(rows, _PROBED), 2) for rows in self.by_episode()]
        return np.concatenate([first for first, _ in cut]), np.concatenate([then for _, then in cut])


class _Search:
    """Laws of sets of episodes, quick ones and the estimator's."""

    def __init__(self, estimator: Law, data: _Data, rows: int, seed: int) -> None:
        self.estimator, self.data, self.rows, self.seed = estimator, data, rows, seed
        self.sums = _Sums.of(data, seed)
        self.probes = data.probes()

    def grouped(self, episodes: Ints, count: int) -> Ints:
        """An expert for each of these episodes."""
        if count == 1:
            return np.zeros(len(episodes), np.int64)
        found = self.sums.only(episodes).grouped(count, np.random.default_rng(self.seed))
        for _ in range(_OWN_ROUNDS):
            before, found = found, self._moved(episodes, found, count, _dealt(found, 2))
            if np.array_equal(before, found):
                break
        return found

    def _moved(self, episodes: Ints, found: Ints, count: int, part: Ints) -> Ints:
        """Every episode to the law that errs least on it, among laws of the other part."""
        away = np.full((count, len(episodes)), np.inf)
        for kept_aside in (0, 1):
            own = part == kept_aside
            known = [n for n in range(count) if np.any((found == n) & ~own)]
            if not known or not own.any():
                continue
            laws = [self._law(episodes[(found == n) & ~own], 2 * count) for n in known]
            probes = self.probes[np.isin(self.data.episode[self.probes], episodes[own])]
            errors = _errors(laws, self.data, probes)[:, episodes[own]]
            away[np.ix_(np.array(known), np.flatnonzero(own))] = errors
        # One whom nobody else resembles stays where it is.
        nobody = ~np.isfinite(away).any(axis=0)
        return np.where(nobody, found, _nearest(away))

    def laws(self, episodes: Ints, found: Ints, share: int) -> list[Any]:
        """One of each expert, with one of so many parts of the rows that are learned from."""
        return [self._law(episodes[found == n], share) for n in np.unique(found)]

    def _law(self, episodes: Ints, share: int) -> Any:
        rows = _evenly(self.data.rows_of(episodes), max(10, self.rows // share))
        copied: Any = type(self.estimator)
        law = copied(**self.estimator.get_params())
        return law.fit(self.data.signals[rows], self.data.given[rows], **self.data.limits_of(rows))


@dataclass(frozen=True, eq=False)
class _Sums:
    """What ridge regression needs to know of each episode: FᵀF, Fᵀu, ‖u‖² and how many rows."""

    features: Floats
    products: Floats
    squares: Floats
    counts: Floats

    @classmethod
    def of(cls, data: _Data, seed: int) -> _Sums:
        features = _smooth(data.signals, np.random.default_rng(seed))
        decisions = (data.decisions - data.decisions.mean(axis=0)) / data.scale
        parts = [(features[rows], decisions[rows]) for rows in data.by_episode()]
        return cls(
            np.stack([f.T @ f for f, _ in parts]),
            np.stack([f.T @ u for f, u in parts]),
            np.array([float((u**2).sum()) for _, u in parts]),
            np.array([float(len(u)) for _, u in parts]),
        )

    def only(self, episodes: Ints) -> _Sums:
        return _Sums(self.features[episodes], self.products[episodes], self.squares[episodes], self.counts[episodes])

    def law(self, chosen: NDArray[Any]) -> Floats:
        """(ΣFᵀF + nkI)⁻¹ ΣFᵀu over these episodes."""
        ridge = _RIDGE * self.counts[chosen].sum() * np.eye(self.features.shape[1])
        return np.linalg.solve(self.features[chosen].sum(axis=0) + ridge, self.products[chosen].sum(axis=0))

    def errors(self, law: Floats) -> Floats:
        """‖Fw − u‖² of each episode."""
        across = np.einsum("kij,ij->k", self.products, law)
        away: Floats = self.squares - 2.0 * across + np.einsum("kij,ij->k", self.features @ law, law)
        return away

    def grouped(self, count: int, draw: np.random.Generator) -> Ints:
        """The best of some starts."""
        tries = [self._settled(self._started(count, draw), count) for _ in range(_STARTS)]
        return min(tries, key=lambda one: one[0])[1]

    def _started(self, count: int, draw: np.random.Generator) -> Ints:
        """Laws of single episodes, each drawn among those that the laws so far explain least."""
        first = int(draw.integers(len(self.counts)))
        away = [self.errors(self.law(np.array([first])))]
        while len(away) < count:
            least = np.min(away, axis=0) / self.counts
            chance = least - least.min() + 1e-12
            chosen = int(draw.choice(len(chance), p=chance / chance.sum()))
            away.append(self.errors(self.law(np.array([chosen]))))
        return _nearest(np.array(away))

    def _settled(self, found: Ints, count: int) -> tuple[float, Ints]:
        """Laws without an episode's part, then the episodes anew, until nobody moves."""
        total = np.inf
        for _ in range(_ROUNDS):
            part = _dealt(found, _PARTS)
            away = np.full((count, len(found)), np.inf)
            for kept_aside in np.unique(part):
                own = part == kept_aside
                for n in range(count):
                    if np.any(others := (found == n) & ~own):
                        away[n, own] = self.only(np.flatnonzero(own)).errors(self.law(others))
            before, found, total = found, _nearest(away), float(away.min(axis=0).sum())
            if np.array_equal(before, found):
                break
        return total, found


def _how_many(search: _Search, max_experts: int, folds: int) -> tuple[int, list[Trial]]:
    """The fewest than whom no other number is clearly better, for episodes kept aside."""
    count = search.data.n_episodes
    most = min(max_experts, count // 2)
    if most < 2:
        return 1, []
    aside = _Aside(search, np.random.default_rng(search.seed).permutation(count) % min(folds, count))
    chosen, trials = 1, [Trial(1, _root(aside.errors(1, 1)), 0.0, 0.0, 0.0, 0.0)]
    for n in range(2, most + 1):
        trials.append(aside.compared(n - 1, n))
        if aside.compared(chosen, n).is_clear:
            chosen = n
    return chosen, trials


class _Aside:
    """Numbers of experts, judged by episodes that nothing was learned from."""

    def __init__(self, search: _Search, part: Ints) -> None:
        self.search, self.part = search, part
        self.halves = search.data.halves()
        self.known: dict[tuple[int, int], Ints] = {}
        self.charged: dict[tuple[int, int], Floats] = {}

    def compared(self, fewer: int, count: int) -> Trial:
        """`count` experts beside fewer: each law with as many rows, and all laws together."""
        errors = self.errors(count, count)
        gain, gain_error = _gain(self.errors(fewer, count), errors)
        net, net_error = _gain(self.errors(fewer, fewer), errors)
        return Trial(count, _root(errors), gain, gain_error, net, net_error)

    def errors(self, count: int, share: int) -> Floats:
        """Mean squares of the second half of every episode, its expert told by the first half."""
        if (count, share) not in self.charged:
            self.charged[count, share] = self._charge(count, share)
        return self.charged[count, share]

    def _charge(self, count: int, share: int) -> Floats:
        data = self.search.data
        out = np.full(data.n_episodes, np.nan)
        for fold in np.unique(self.part):
            own = np.flatnonzero(self.part == fold)
            laws = self.search.laws(np.flatnonzero(self.part != fold), self.grouped(fold, count), share)
            began, went_on = (
                _errors(laws, data, half[np.isin(data.episode[half], own)])[:, own] for half in self.halves
            )
            out[own] = went_on[_nearest(began), np.arange(len(own))]
        # An episode of one row has no second half.
        known: Floats = out[np.isfinite(out)]
        return known

    def grouped(self, fold: int, count: int) -> Ints:
        """Experts of the episodes that are not of this part."""
        if (fold, count) not in self.known:
            self.known[fold, count] = self.search.grouped(np.flatnonzero(self.part != fold), count)
        return self.known[fold, count]


def _gain(before: Floats, errors: Floats) -> tuple[float, float]:
    """How many times smaller errors are, in logarithms, and the standard error of that."""
    gains = 0.5 * np.log((before + _LEAST) / (errors + _LEAST))
    return float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))


def _errors(laws: Sequence[Any], data: _Data, rows: Ints) -> Floats:
    """Mean square distance from the decisions, laws × episodes; infinite where there is no row."""
    episode = data.episode[rows]
    counts = np.bincount(episode, minlength=data.n_episodes)
    out = np.full((len(laws), data.n_episodes), np.inf)
    for n, law in enumerate(laws):
        decided = np.asarray(law.predict(data.signals[rows], **data.limits_of(rows)), dtype=np.float64)
        away = (decided.reshape(len(rows), -1) - data.decisions[rows]) / data.scale
        total = np.bincount(episode, (away**2).mean(axis=1), data.n_episodes)
        out[n, counts > 0] = total[counts > 0] / counts[counts > 0]
    return out


def _smooth(signals: Any, draw: np.random.Generator) -> Floats:
    """A constant, the scaled signals, and waves in random directions (a smooth kernel's)."""
    raw = np.asarray(signals, dtype=np.float64)
    spread = raw.std(axis=0)
    scaled = (raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    scaled = np.clip(scaled, -_FARTHEST, _FARTHEST)
    dim = scaled.shape[1]
    directions = draw.standard_normal((dim, _WAVES)) * np.sqrt(2.0 * _WIDTH / dim)
    waves = np.cos(scaled @ directions + draw.uniform(0.0, 2.0 * np.pi, _WAVES))
    return np.hstack([np.ones((len(raw), 1)), scaled, waves])


def _dealt(found: Ints, parts: int) -> Ints:
    """A part for every episode, those of each expert dealt out evenly: no part has all of one's."""
    out = np.zeros(len(found), np.int64)
    for n in np.unique(found):
        out[found == n] = np.arange(int((found == n).sum())) % parts
    return out


def _nearest(errors: Floats) -> Ints:
    nearest: Ints = np.argmin(errors, axis=0).astype(np.int64)
    return nearest


def _by_size(found: Ints) -> Ints:
    """Numbered anew: whoever has most episodes first, then whoever came first."""
    known, first, counts = np.unique(found, return_index=True, return_counts=True)
    order = sorted(range(len(known)), key=lambda n: (-counts[n], first[n]))
    rank = {int(known[n]): place for place, n in enumerate(order)}
    return np.array([rank[int(one)] for one in found], dtype=np.int64)


def _evenly(rows: Ints, most: int) -> Ints:
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(np.int64)]


def _root(squares: Floats) -> float:
    return float(np.sqrt(np.mean(squares)))
