"""Rules that choose settings on demonstrations alone, compared by the scores they lead to.

In: what `criteria.py` measured of every candidate. Out: the name of one. No rule sees a score; how
well they do is told afterwards, beside the best that any choice could have had.
"""

import numpy as np
from settings import ONE_FOR_ALL

CRITERIA = ["error", "regret", "shaken", "jump", "drift", "drift_early", "stray"]


def smallest(criterion):
    def rule(judged):
        known = {name: found.get(criterion) for name, found in judged.items()}
        return min(known, key=lambda name: np.inf if known[name] is None else known[name])

    return rule


def calmest_within(errors):
    """Of those whose error is within so many standard errors of the least, the calmest.

    The standard error is that of the folds' differences from the best, not of the error itself:
    folds differ far more from each other than settings do on one fold. One of a hundred of the
    error counts as one, too: folds are few.
    """

    def rule(judged):
        best = smallest("error")(judged)
        near = {}
        for name, found in judged.items():
            more = np.array(found["folds"]) - np.array(judged[best]["folds"])
            one = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else 0.0
            if more.mean() <= errors * max(one, 0.01 * judged[best]["error"]):
                near[name] = found
        return smallest("jump")(near)

    return rule


def liveliest_within(share):
    """Of those whose error is within so much of the least, the one whose decisions move most.

    What keeps a body upright are answers to small deviations. Regularization shrinks those first,
    and hardly any error shows it.
    """

    def rule(judged):
        least = min(found["error"] for found in judged.values())
        near = [name for name in judged if judged[name]["error"] <= least * (1.0 + share)]
        return max(near, key=lambda name: judged[name]["jump"])

    return rule


def mean_rank(*names):
    """The least sum of ranks by several criteria."""

    def rule(judged):
        total = dict.fromkeys(judged, 0.0)
        for criterion in names:
            for name, rank in ranks(judged, criterion).items():
                total[name] += rank
        return min(total, key=total.get)

    return rule


def ranks(judged, criterion):
    values = {n: f.get(criterion) for n, f in judged.items()}
    values = {n: np.inf if value is None else value for n, value in values.items()}
    order = sorted(values, key=values.get)
    return {name: place for place, name in enumerate(order)}


def best_elsewhere(chosen, task):
    """The rule that did best on the other tasks, relative to the best choice there; None alone.

    Rules are compared by scores, so the best of them on a task was chosen by that task's score;
    this one was not.
    """
    others = [picks for name, picks in chosen.items() if name != task]
    shares = {rule: np.mean([share(picks, rule) for picks in others] or [0]) for rule in RULES}
    return max(shares, key=shares.get) if others else None


def share(picks, rule):
    """Of the best score that any candidate had, at most one and at least zero."""
    best = picks["best of all"]["score"]
    return max(0.0, picks[rule]["score"] / best) if best > 0 else 1.0


def always(name):
    """No choice at all."""
    return lambda judged: name


RULES = {
    ONE_FOR_ALL: always(ONE_FOR_ALL),
    "error": smallest("error"),
    "regret": smallest("regret"),
    "shaken": smallest("shaken"),
    "drift": smallest("drift"),
    "early drift": smallest("drift_early"),
    "calmest within one error": calmest_within(1.0),
    "calmest within two errors": calmest_within(2.0),
    "liveliest within two percent": liveliest_within(0.02),
    "stray": smallest("stray"),
    "ranks: error, jump": mean_rank("error", "jump"),
    "ranks: error, shaken": mean_rank("error", "shaken"),
    "ranks: error, drift": mean_rank("error", "drift"),
    "ranks: error, stray": mean_rank("error", "stray"),
    "ranks: error, shaken, stray": mean_rank("error", "shaken", "stray"),
}
# Of the row "argwhy". On draws that nobody had looked at, one setting for all tasks beats every
# rule that chooses a setting a task (docs/adr/0021).
DEFAULT = ONE_FOR_ALL


def correlation(judged, scores, criterion):
    """Spearman's: how well less of the criterion goes with more score; 1 is perfectly."""
    names = [name for name in judged if name in scores and judged[name].get(criterion) is not None]
    if len(names) < 3:
        return None
    by_criterion = place([-judged[name][criterion] for name in names])
    by_score = place([scores[name] for name in names])
    if by_criterion.std() == 0 or by_score.std() == 0:
        return None
    return float(np.corrcoef(by_criterion, by_score)[0, 1])


def place(values):
    order = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return order.astype(float)
