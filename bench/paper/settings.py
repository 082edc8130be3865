"""Settings that are fitted: the paper's, and those among which a rule on demonstrations chooses."""

import itertools


# Features, kernels, widths as shares of 1/(number of features), trends, k: all combinations of each
# line.
BOTH_TRENDS = ("none", "linear")
GRIDS = {
    "full": [
        (("poly2", "raw"), ("rbf", "matern52"), (1.0, 0.3), BOTH_TRENDS, (1e-6, 1e-5, 1e-4)),
        (("raw",), ("laplace",), (1.0,), BOTH_TRENDS, (1e-6, 1e-5)),
    ],
    "medium": [
        (("raw",), ("matern52",), (1.0, 0.3), BOTH_TRENDS, (1e-6, 1e-5, 1e-4)),
        (("raw",), ("laplace",), (1.0,), BOTH_TRENDS, (1e-6, 1e-5)),
        (("poly2",), ("rbf", "matern52"), (1.0, 0.3), BOTH_TRENDS, (1e-6, 1e-5)),
    ],
    "small": [(("poly2", "raw"), ("rbf", "matern52"), (1.0,), BOTH_TRENDS, (1e-6, 1e-5))],
    "tiny": [(("raw",), ("rbf",), (1.0,), ("none",), (1e-5, 1e-4))],
}


def candidates(size="full"):
    """Settings to choose from, by a short name."""
    out = {}
    for line in GRIDS[size]:
        for feature, kernel, width, trend, k in itertools.product(*line):
            name = f"{feature} {kernel}" + f" {width:g}/d" * (width != 1.0)
            name += " + linear" * (trend == "linear") + f", k {k:.0e}".replace("e-0", "e-")
            out[name] = {
                "features": feature, "kernel": kernel, "width": width, "trend": trend,
                "regularization": k,
            }
    return out


def parameters(settings, signal_dim):
    """Parameters of the estimator: γ is a number once the features are counted."""
    given = dict(settings)
    width = given.pop("width", 1.0)
    count = n_features(given.get("features", "poly2"), signal_dim)
    if isinstance(width, list):
        # Several widths at once, the same share of each.
        named = f"{1 / len(width):.6g}*{given['kernel']}"
        given["kernel"] = " + ".join(f"{named}(gamma={one / count:.12g})" for one in width)
    elif width != 1.0:
        given["gamma"] = width / count
    return given


def n_features(features, signal_dim):
    """With the constant, as argwhy counts them: monomials up to degree two, or the signals."""
    return (signal_dim + 1) * (signal_dim + 2) // 2 if features == "poly2" else signal_dim


# The paper's model, with which a million rows were timed (bench/gpu.py).
DOCUMENTED = {
    "features": "poly2", "kernel": "rbf", "width": 1.0, "trend": "none", "regularization": 1e-6,
}

# One for all tasks, no choice at all: a rougher kernel than the paper's, and a law that holds where
# there is no data. Suggested by earlier trials with their scores in view; beside the rules as
# something to compare with.
FIXED = {
    "features": "raw", "kernel": "matern52", "width": 1.0, "trend": "linear",
    "regularization": 1e-5,
}


def lively(kernel="matern52", width=1.0, k=1e-6, **more):
    """Raw signals, a linear trend, little regularization: what did best when nothing was chosen."""
    given = {"features": "raw", "kernel": kernel, "width": width, "trend": "linear"}
    return {**given, "regularization": k, **more}


# The row "argwhy": no choice a task at all. Of everything below and in the grid it had the best
# mean score over nine tasks on draw 0, and over eight, whichever is left out, but for
# walker2d-expert; reported are draws that nobody had looked at (docs/adr/0021).
ONE_FOR_ALL = "one for all"
FEW_ROWS = lively(width=0.3, turned="gradients")
# With 100,000 rows: what stood in for it while a GPU did not solve that. Now that it does, the
# scores of fresh rows are lower (RESULTS.md).
MANY_ROWS = lively()


def one_for_all(rows):
    """The same settings for every task, whatever it is."""
    return FEW_ROWS if rows <= 10_000 else MANY_ROWS


# Among which a rehearsal chooses (`rehearsal.py`), beside the paper's own: smooth and rough, timid
# and lively, in both coordinates. Named when their means over all tasks on draw 0 were known,
# before any rehearsal; the width of three with gradients had never been tried.
REHEARSED = {
    "gradients 0.3/d": FEW_ROWS,
    "gradients 1/d": lively(turned="gradients"),
    "gradients 3/d": lively(width=3.0, turned="gradients"),
    "gradients 0.3/d, k 1e-7": lively(width=0.3, k=1e-7, turned="gradients"),
    "gradients 0.3/d, k 1e-5": lively(width=0.3, k=1e-5, turned="gradients"),
    "gradients 0.3/d, matern32": lively("matern32", 0.3, turned="gradients"),
    "0.3/d": lively(width=0.3),
    "1/d": lively(),
    "3/d": lively(width=3.0),
    "1/d, k 1e-7": lively(k=1e-7),
    "1/d, k 1e-5": FIXED,
}
# With many rows, where each takes a GPU for half a minute.
REHEARSED_LARGE = (
    "gradients 0.3/d", "gradients 1/d", "gradients 3/d", "gradients 0.3/d, k 1e-7", "1/d", "3/d",
)


def bagged(settings, parts=3):
    """Members that each learn without one stretch of the rows."""
    return [{**settings, "left_out": [part, parts]} for part in range(parts)]


# Beyond the grid: each tried on every task with draw 0's rows, the failures reported. Named before
# any of their scores was seen.
IDEAS = {
    "k 1e-7": lively(k=1e-7),
    "0.3/d, k 1e-7": lively(width=0.3, k=1e-7),
    "0.1/d, k 1e-7": lively(width=0.1, k=1e-7),
    "0.3/d, k 1e-8": lively(width=0.3, k=1e-8),
    "0.1/d": lively(width=0.1),
    "3/d": lively(width=3.0),
    "rbf 0.3/d": lively("rbf", 0.3),
    "rbf 0.3/d, k 1e-7": lively("rbf", 0.3, 1e-7),
    "matern32 0.3/d": lively("matern32", 0.3),
    "matern32 0.1/d": lively("matern32", 0.1),
    "widths 1 and 0.1": lively(width=[1.0, 0.1]),
    "widths 3, 0.3, 0.03": lively(width=[3.0, 0.3, 0.03]),
    "whiten": lively(turned="whiten"),
    "whiten 0.3/d": lively(width=0.3, turned="whiten"),
    "half whitened": lively(turned="half"),
    "half whitened 0.3/d": lively(width=0.3, turned="half"),
    "gradients": lively(turned="gradients"),
    "gradients 0.3/d": lively(width=0.3, turned="gradients"),
    "two together": {"members": [lively(), lively(width=0.3)]},
    "four together": {
        "members": [
            lively(), lively(width=0.3), lively("rbf"), lively(features="poly2"),
        ],
    },
    # A second round, named when the scores above were known.
    "gradients 0.1/d": lively(width=0.1, turned="gradients"),
    "gradients 0.3/d, k 1e-5": lively(width=0.3, k=1e-5, turned="gradients"),
    "gradients 0.3/d, k 1e-7": lively(width=0.3, k=1e-7, turned="gradients"),
    "gradients 0.3/d, matern32": lively("matern32", 0.3, turned="gradients"),
    "gradients 0.3/d, rbf": lively("rbf", 0.3, turned="gradients"),
    "gradients 0.3/d, twice": lively(width=0.3, turned="gradients", rounds=2),
    "gradients 0.3/d, first k 1e-4": lively(width=0.3, turned="gradients", first_k=1e-4),
    "gradients together": {
        "members": [lively(turned="gradients"), lively(width=0.3, turned="gradients")],
    },
    # A third round, named before `steady` or a score of any of them was seen; among all of these
    # `--only steady` chooses, by demonstrations.
    "shared gradients 0.3/d": lively(width=0.3, turned="shared gradients"),
    "shared gradients 0.3/d, matern32": lively("matern32", 0.3, turned="shared gradients"),
    "shared gradients 1/d, matern32": lively("matern32", turned="shared gradients"),
    "gradients 1/d, matern32": lively("matern32", turned="gradients"),
    "gradients 0.3/d, laplace": lively("laplace", 0.3, turned="gradients"),
    "gradients 0.3/d, matern32, k 1e-5": lively("matern32", 0.3, 1e-5, turned="gradients"),
    "gradients 0.3/d, matern32, k 1e-7": lively("matern32", 0.3, 1e-7, turned="gradients"),
    "gradients 0.3/d, matern32, twice": lively("matern32", 0.3, turned="gradients", rounds=2),
    "gradients 0.3/d, matern32, bagged": {"members": bagged(lively("matern32", 0.3, turned="gradients"))},
    "shared gradients 0.3/d, matern32 and 52": {
        "members": [lively(kind, 0.3, turned="shared gradients") for kind in ("matern32", "matern52")],
    },
    "the five steadiest before, together": {
        "members": [
            lively("matern32", 0.3, turned="gradients"), lively(turned="gradients"),
            lively(width=0.3, turned="gradients"),
            lively(width=0.3, turned="gradients", rounds=2),
            lively(width=0.3, turned="gradients", first_k=1e-4),
        ],
    },
}

# Compared with the row "argwhy" on many draws: what `--only steady` put first of the settings known
# before the third round, and of all.
ON_DRAWS = ("gradients 0.3/d, matern32", "gradients 0.3/d, matern32, twice")
