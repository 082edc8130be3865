"""Several experts' laws, and who decides in a state instead of in an episode.

In: episodes grouped by `several.py`, settings. Out: policies that ask whose the demonstrated
signals are that lie nearest. No reward, label or length is looked at.

Whatever episodes a mixture of experts demonstrates, one policy without memory comes through the
same states in the same proportions: in every state it decides as an expert of whom such states are.
So no expert has to be drawn when an episode begins, and a law is asked only where its own
demonstrations are. Three ways:

* `gate`: the law of the expert who has most of the nearest signals;
* `unless clear`: an expert is drawn when an episode begins, as in the row "argwhy", and decides
  unless all of the nearest signals are one other's;
* `told`: one law of all rows, whose signals have these shares beside them, so that it can change
  where they do.
"""

import dataclasses

import numpy as np

import criteria
import several

NEAREST = 10
KNOWN = 5000
WAYS = ("gate", "told")


class Votes:
    """Whose the nearest demonstrated signals are, in spreads; of some rows where there are many."""

    def __init__(self, signals, labels, episodes, n_experts):
        rows = np.linspace(0, len(signals) - 1, min(KNOWN, len(signals))).astype(int)
        self.spread = signals.std(axis=0) + 1e-7
        self.known = (signals[rows] / self.spread).astype(np.float32)
        self.labels, self.episodes, self.n_experts = labels[rows], episodes[rows], n_experts
        self.squares = (self.known**2).sum(axis=1)

    def of(self, signals, episodes=None):
        """Shares of each expert; none of a row's own episode has a vote, where it is said."""
        out = np.empty((len(signals), self.n_experts))
        for start in range(0, len(signals), 500):
            part = slice(start, start + 500)
            here = (np.asarray(signals[part], float) / self.spread).astype(np.float32)
            away = self.squares - 2.0 * here @ self.known.T
            if episodes is not None:
                away[episodes[part, None] == self.episodes] = np.inf
            nearest = self.labels[np.argpartition(away, NEAREST, axis=1)[:, :NEAREST]]
            for expert in range(self.n_experts):
                out[part, expert] = (nearest == expert).mean(axis=1)
        return out


@dataclasses.dataclass
class Gate:
    """One expert's law decides on a signal: `drawn`'s unless it is clearly another's."""

    laws: list
    votes: Votes
    drawn: int | None = None

    def whose(self, signals):
        shares = self.votes.of(signals)
        most = shares.argmax(axis=1)
        return most if self.drawn is None else np.where(shares.max(axis=1) == 1.0, most, self.drawn)

    def predict(self, signals):
        return self._by("predict", signals)

    def desired(self, signals):
        return self._by("desired", signals)

    def _by(self, name, signals):
        whose, out = self.whose(signals), None
        for expert in np.unique(whose):
            own = whose == expert
            decided = getattr(self.laws[expert], name)(np.asarray(signals)[own])
            out = np.empty((len(signals), decided.shape[1])) if out is None else out
            out[own] = decided
        return out


@dataclasses.dataclass
class Told:
    """One law that sees the shares of all experts but the first beside its signals."""

    law: object
    votes: Votes

    def predict(self, signals):
        return self.law.predict(beside(signals, self.votes.of(signals)))

    def desired(self, signals):
        return self.law.desired(beside(signals, self.votes.of(signals)))


def beside(signals, shares):
    return np.hstack([np.asarray(signals, float), shares[:, 1:]])


class Learner:
    """Policies of either way from a mask of rows: experts are told apart once, on all of them."""

    def __init__(self, found, demonstrations, mask, settings, options):
        self.demonstrations, self.settings, self.options = demonstrations, settings, options
        self.n_experts = found.n_experts
        self.labels = np.full(len(mask), -1)
        self.labels[mask] = found.labels

    def votes(self, mask):
        given = self.demonstrations
        return Votes(
            given.observations[mask].astype(float), self.labels[mask], given.episodes[mask], self.n_experts
        )

    def gate(self, mask):
        given = self.demonstrations
        laws = [
            criteria.fit(
                given.observations, given.actions, mask & (self.labels == expert), self.settings, self.options
            )
            for expert in range(self.n_experts)
        ]
        return Gate(laws, self.votes(mask))

    def told(self, mask):
        given, votes = self.demonstrations, self.votes(mask)
        signals = given.observations[mask].astype(float)
        shown = beside(signals, votes.of(signals, given.episodes[mask]))
        rows = np.ones(len(shown), bool)
        return Told(criteria.fit(shown, given.actions[mask], rows, self.settings, self.options), votes)


def steady(demonstrations, mask, settings, options, way):
    """`criteria.steady` of a way; of one law where one expert is found."""
    found = several.grouped(demonstrations, mask, options["threads"])
    learn = None
    if found.n_experts > 1:
        own = {**options, "tol": 1e-3}
        learn = getattr(Learner(found, demonstrations, mask, settings, own), way)
    return {"n": found.n_experts} | criteria.steady(demonstrations, mask, settings, options, learn)
