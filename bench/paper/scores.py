"""Scores of cells, and what a rule chose: what every table asks for."""

import numpy as np
from settings import ONE_FOR_ALL
from tasks import TASKS

import rules

# t-quantiles of a 95 % interval by the number of means it is made of, less one.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 11: 2.20}


def score_of(results, cells):
    """Mean score over cells (draws or seeds) with a 95 % interval; None where there is none.

    Over several draws or seeds the interval is that of their means: single episodes of one policy
    say nothing about another draw of rows. Of one, it is that of its episodes. Two have none worth
    the name (Student's is 13 times their spread), and are shown themselves.
    """
    found = [one for cell in cells if (one := results.get(cell)) and one.get("scores")]
    if not found:
        return None
    means = [float(np.mean(one["scores"])) for one in found]
    scores = np.concatenate([one["scores"] for one in found])
    if len(means) == 2:
        half = None
    elif len(means) > 2:
        half = STUDENT.get(len(means) - 1, 2.0) * np.std(means, ddof=1) / len(means) ** 0.5
    else:
        half = 1.96 * scores.std(ddof=1) / len(scores) ** 0.5 if len(scores) > 1 else None
    return {
        "mean": float(np.mean(means)),
        "half": None if half is None else float(half),
        "spread": float(scores.std(ddof=1)) if len(scores) > 1 else None,
        "means": [round(one, 2) for one in means],
        "episodes": len(scores),
    }


def shown(value):
    """A score for people: the mean, and half of its interval or both of two means."""
    if value is None:
        return "–"
    if value["half"] is not None:
        return f"{value['mean']:.1f} ± {value['half']:.1f}"
    both = f" ({', '.join(f'{mean:.0f}' for mean in value['means'])})" if len(value["means"]) == 2 else ""
    return f"{value['mean']:.1f}{both}"


def data_note(results, cells, task):
    """What the rows are; of the first cell that knows, else of the task's definition."""
    notes = (one["note"] for cell in cells if (one := results.get(cell)) and "note" in one)
    return next(notes, TASKS[task].stands_in)


def choice(results, wanted, task, rule):
    """What a rule chooses for a task; None while candidates are missing that it looks at."""
    if rule == ONE_FOR_ALL:
        return ONE_FOR_ALL
    judged = judged_of(results, wanted, task)
    return rules.RULES[rule](judged) if len(judged) == len(wanted.grid) else None


def judged_of(results, wanted, task):
    found = {n: results.get(wanted.judged(task, 0, s)) for n, s in wanted.grid.items()}
    return {name: one for name, one in found.items() if one}
