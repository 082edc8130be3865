"""Rules that choose settings on demonstrations alone, compared by the scores they lead to.

In: what `criteria.py` measured of every candidate. Out: the name of one. No rule sees a score; how
well they do is told afterwards, beside the best that any choice could have had.
"""

import numpy as np

CRITERIA = ["error", "regret", "shaken", "jump", "drift", "drift_early", "stray"]


def smallest(criterion):
    def rule(judged):
        known = {name: found.get(criterion) for name, found in judged.items()}
        return min(known, key=lambda name: np.inf if known[name] is None else known[name])

    return rule


def steadiest_within_one_error(judged):
    """Of those whose error is within one standard error of the least, the calmest.

    The standard error is that of the folds' differences from the best, not of the error itself:
    folds differ far more from each other than settings do on one fold.
    """
    best = smallest("error")(judged)
    near = {}
    for name, found in judged.items():
        more = np.array(found["folds"]) - np.array(judged[best]["folds"])
        error = more.std(ddof=1) / np.sqrt(len(more)) if len(more) > 1 else 0.0
        if more.mean() <= max(error, 0.01 * judged[best]["error"]):
            near[name] = found
    return smallest("jump")(near)


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


RULES = {
    "error": smallest("error"),
    "regret": smallest("regret"),
    "shaken": smallest("shaken"),
    "drift": smallest("drift"),
    "early drift": smallest("drift_early"),
    "calmest within one error": steadiest_within_one_error,
    "stray": smallest("stray"),
    "ranks: error, shaken": mean_rank("error", "shaken"),
    "ranks: error, drift": mean_rank("error", "drift"),
    "ranks: error, stray": mean_rank("error", "stray"),
    "ranks: error, shaken, stray": mean_rank("error", "shaken", "stray"),
}
# Of the row "argwhy". It was decided before the scores of the comparison were there.
DEFAULT = "ranks: error, shaken, stray"


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
