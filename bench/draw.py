"""Random fits that are meant to hurt: every kernel, set and solver, at every scale a double has.

``draw(seed)`` always makes the same problem. It is small, so that it can be solved in 60 digits.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Problem:
    """What is handed to a fit, and signals to decide on afterwards."""

    seed: int
    signals: np.ndarray
    decisions: np.ndarray
    parameters: dict
    weights: np.ndarray | None = None
    constraints: dict | None = None
    path: list | None = None
    new_signals: np.ndarray | None = None
    tags: list = field(default_factory=list)

    @property
    def shape(self):
        """N, signal_dim, decision_dim."""
        return (*self.signals.shape, self.decisions.shape[1])


def power(rng, low, high):
    """10 to a power between two."""
    return float(10.0 ** rng.uniform(low, high))


def choose(rng, **shares):
    """One of the names, as often as its share says."""
    names = list(shares)
    p = np.array([shares[name] for name in names], dtype=float)
    return names[rng.choice(len(names), p=p / p.sum())]


def draw(seed, largest=40):
    """The problem of a seed, with ``largest`` samples at most."""
    rng = np.random.default_rng([21, seed])
    way = choose(rng, newton=58, sso=12, primal=12, theta=11, path=7)
    if way == "theta":
        largest = min(largest, 16)
    n = int(np.exp(rng.uniform(0, np.log(largest + 1))))
    n = min(max(n, 1), largest)
    d, dim = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    if way == "theta":
        dim = min(dim, 3)
    tags = [way]
    whole = draw_signals(rng, n + 3, d, tags)
    signals, new = whole[:n].copy(), whole[n:].copy()
    parameters = draw_features(rng, d, way, tags)
    parameters.update(draw_kernel(rng, signals, parameters, way, tags))
    parameters["regularization"] = draw_k(rng)
    parameters.update(draw_solver(rng, way))
    wish = draw_wish(rng, signals, dim, tags)
    decisions, limits, constraints = draw_set(rng, wish, tags)
    parameters.update(limits)
    if constraints is not None and ("M" in constraints or "M_eq" in constraints):
        # Kept, the decisions are what is fitted to the bit; else argwhy may move them by rounding.
        parameters["infeasible"] = "keep"
    path = None
    if way == "path":
        first = parameters["regularization"]
        path = [first, first * power(rng, -4, 0), first * power(rng, -2, 3)]
        path = list(dict.fromkeys(path))
    weights = draw_weights(rng, n, tags)
    # What comes later draws later, so that seeds keep their problems when something is added.
    decisions = draw_policy(rng, wish, decisions, parameters, tags)
    draw_machine(rng, n, way, parameters, tags)
    if way == "theta":
        # Below this k argwhy says that theta cannot be learned in doubles.
        with np.errstate(over="ignore"):
            least = float(1e-12 * np.mean(np.sum(decisions**2, axis=1)))
        if np.isfinite(least):
            parameters["regularization"] = max(parameters["regularization"], least)
    return Problem(
        seed, signals, decisions, parameters, weights, constraints, path, new, tags,
    )


def draw_policy(rng, wish, decisions, parameters, tags):
    """Now and then the usual policy for general rows, with decisions a trifle inside.

    What is strictly inside is not moved, so that still exactly these decisions are fitted.
    """
    rows = {"polyhedron", "rowbounds", "rowpolyhedron", "mixed"} & set(tags)
    if not rows or rng.random() < 0.7:
        return decisions
    del parameters["infeasible"]
    tags.append("inside")
    return decisions + 1e-9 * (np.median(wish, axis=0) - decisions)


def draw_machine(rng, n, way, parameters, tags):
    """How values are kept, and the paper's choices of blocks."""
    fraction = parameters["kernel"] in ("rbf", "laplace", "matern32", "matern52")
    if parameters["regularization"] < 1e-4:
        fraction = False
    if way in ("newton", "path", "theta") and fraction and rng.random() < 0.3:
        parameters["operator"] = "compact"
        parameters["precision"] = "f32"
    if way == "sso" and rng.random() < 0.5:
        parameters["init"] = str(rng.choice(["zero", "expert", "warm-up", "paper-warm-up"]))
        parameters["block"] = str(rng.choice(["1", "0.3", "1.0"]))
        if n == 1 and "warm-up" in parameters["init"]:
            parameters["init"] = "zero"
        tags.append(parameters["init"])


def draw_signals(rng, n, d, tags):
    """Signals of all kinds: smooth, on a grid, repeated, nearly so, huge, tiny, far from zero."""
    kind = choose(rng, normal=4, uniform=3, grid=2, clusters=1)
    if kind == "normal":
        signals = rng.normal(size=(n, d))
    elif kind == "uniform":
        signals = rng.uniform(-1, 1, (n, d))
    elif kind == "grid":
        signals = rng.integers(-3, 4, (n, d)).astype(float)
    else:
        signals = rng.normal(size=(3, d))[rng.integers(0, 3, n)] + 1e-3 * rng.normal(size=(n, d))
    tags.append(kind)
    odd = choose(rng, none=40, scale=12, scales=8, timestamps=12, offset=8, duplicates=8,
                 near=8, constant=6)
    if odd == "scale":
        signals = signals * power(rng, -100, 100)
    elif odd == "scales":
        signals = signals * 10.0 ** rng.uniform(-12, 12, d)
    elif odd == "timestamps":
        signals[:, 0] = 1.7e9 + np.round(signals[:, 0] * power(rng, 0, 6))
    elif odd == "offset":
        signals = signals + rng.normal(size=d) * power(rng, 0, 12)
    elif odd == "duplicates":
        signals = signals[rng.integers(0, n, n)]
    elif odd == "near":
        signals = signals[rng.integers(0, max(n // 2, 1), n)]
        signals = signals * (1 + 1e-8 * rng.normal(size=signals.shape))
    elif odd == "constant":
        signals[:, rng.integers(d)] = float(rng.choice([0.0, 1.0, -3e5, 1e-9]))
    tags.append(odd)
    return np.ascontiguousarray(signals)


def draw_features(rng, d, way, tags):
    """Expansion, scaling, clip."""
    raw = rng.random() < 0.6
    scaled = rng.random() < 0.6
    clip = float(rng.choice([1000.0, 1e12, 1e300, 2.0], p=[0.55, 0.15, 0.2, 0.1]))
    tags.append(("raw" if raw else "poly2") + ("+zscore" if scaled else ""))
    return {
        "features": "raw" if raw else "poly2",
        "normalize": "zscore" if scaled else "none",
        "clip": clip,
    }


def n_features(parameters, d):
    """Features of a signal with d entries."""
    return d if parameters["features"] == "raw" else (d + 1) * (d + 2) // 2


def draw_gamma(rng, signals, parameters):
    """Automatic, of any size, or such that samples are neither all alike nor all strangers."""
    kind = choose(rng, auto=3, any=4, fitting=3)
    if kind == "auto":
        return "auto"
    if kind == "any":
        return power(rng, -6, 16)
    spread = 1.0
    if parameters["normalize"] == "none" and len(signals) > 1:
        with np.errstate(over="ignore"):
            spread = float(np.median(np.var(signals, axis=0))) or 1.0
    gamma = power(rng, -3, 3) / spread
    return float(np.clip(gamma, 1e-300, 1e300))


SINGLE = ["rbf", "laplace", "matern32", "matern52", "polynomial", "linear"]


def draw_kernel(rng, signals, parameters, way, tags):
    """One kernel, a sum, a product, with weights and length scales."""
    if way == "primal":
        tags.append("linear")
        return {"kernel": "linear", "primal": True, "intercept": bool(rng.random() < 0.5)}
    kind = choose(rng, rbf=30, laplace=10, matern32=12, matern52=12, linear=8, polynomial=8,
                  sum=12, product=8)
    made = {"kernel": kind}
    if kind in ("sum", "product"):
        count = int(rng.integers(2, 4))
        parts = [str(rng.choice(SINGLE)) for _ in range(count)]
        named = []
        for part in parts:
            own = ""
            if part not in ("linear", "polynomial") and rng.random() < 0.5:
                own = f"(gamma={power(rng, -4, 8):.17g})"
            elif part == "polynomial":
                own = f"(degree={rng.integers(1, 4)}, offset={rng.choice([0.0, 0.5, 1.0])})"
            weight = f"{power(rng, -4, 4):.17g}*" if rng.random() < 0.5 else ""
            named.append(weight + part + own)
        made["kernel"] = (" + " if kind == "sum" else "*").join(named)
        shared = any(
            "gamma" not in name and not name.endswith("linear") for name in named
        )
    else:
        shared = kind != "linear"
        if kind == "linear":
            made["intercept"] = bool(rng.random() < 0.5)
        if kind == "polynomial":
            made["degree"] = int(rng.integers(1, 5))
            made["offset"] = float(rng.choice([0.0, 1.0, 0.1]))
    if shared:
        made["gamma"] = draw_gamma(rng, signals, parameters)
    if rng.random() < 0.12 and not made.get("intercept"):
        count = n_features(parameters, signals.shape[1])
        made["length_scales"] = (10.0 ** rng.uniform(-2, 2, count)).tolist()
        tags.append("scales")
    tags.append(kind)
    return made


def draw_k(rng):
    """The regularization, small ones most often."""
    return power(rng, -14, 2) if rng.random() < 0.6 else power(rng, -8, -2)


def draw_solver(rng, way):
    """Solver, precision, tolerance."""
    made = {
        "precision": str(rng.choice(["f32", "f64"])),
        "tol": float(rng.choice([1e-6, 1e-3, 1e-9], p=[0.7, 0.15, 0.15])),
        "threads": 1,
        "time_limit": 20.0,
        "seed": int(rng.integers(0, 1000)),
        "operator": str(rng.choice(["auto", "stored", "tiled"], p=[0.6, 0.2, 0.2])),
    }
    if way == "sso":
        made["solver"] = "sso"
        made["max_iterations"] = int(rng.choice([20, 400]))
        made["selection"] = str(rng.choice(["violation", "paper", "cyclic", "random"]))
    if way == "theta":
        made["theta"] = "learn"
    if way == "primal":
        for name in ("precision", "operator"):
            del made[name]
    return made


def draw_wish(rng, signals, dim, tags):
    """What the expert would like: a function of the signals, noise, or both, at any scale."""
    n, d = signals.shape
    scale = np.abs(signals - signals.mean(axis=0)).max(axis=0) + 1e-300
    unit = (signals - signals.mean(axis=0)) / scale
    smooth = np.sin(unit @ rng.normal(size=(d, dim)) * 2) + unit @ rng.normal(size=(d, dim))
    noise = rng.normal(size=(n, dim))
    mix = float(rng.choice([0.0, 0.01, 0.3, 1e3]))
    wish = smooth + mix * noise
    kind = choose(rng, one=50, any=15, extreme=10, mixed=25)
    if kind == "any":
        wish = wish * power(rng, -4, 7)
    elif kind == "extreme":
        wish = wish * power(rng, -200, 200)
    elif kind == "mixed":
        wish = wish * 10.0 ** rng.integers(-4, 7, dim)
    if rng.random() < 0.15:
        wish = wish + rng.normal(size=dim) * power(rng, 0, 8)
        kind += "+offset"
    tags.append(f"decisions {kind}")
    return wish


def sizes_of(wish):
    """How large a dimension is."""
    return np.maximum(np.abs(wish).max(axis=0), 1e-290)


def draw_set(rng, wish, tags):
    """Limits, and the decisions inside them that are nearest to what was wished for."""
    n, dim = wish.shape
    kind = choose(rng, unbounded=14, bounds=14, box=14, half=8, fixed=8, rowbox=10, polyhedron=12,
                  rowbounds=6, rowpolyhedron=6, equality=5, simplex=4, mixed=5)
    tags.append(kind)
    size = sizes_of(wish)
    if kind == "unbounded":
        return wish, {"unbounded": True}, None
    if kind == "bounds":
        middle, width = np.median(wish), float(size.max()) * power(rng, -2, 0.5)
        low, high = float(middle - width), float(middle + width)
        return np.clip(wish, low, high), {"bounds": (low, high)}, None
    if kind in ("box", "half", "fixed"):
        middle, width = np.median(wish, axis=0), size * 10.0 ** rng.uniform(-2, 0.5, dim)
        low, high = middle - width, middle + width
        if kind == "half":
            low = np.where(rng.random(dim) < 0.5, -np.inf, low)
            high = np.where(rng.random(dim) < 0.3, np.inf, high)
        if kind == "fixed":
            at = int(rng.integers(dim))
            low[at] = high[at] = float(rng.choice([0.0, 1e6, 3.0, -1e-3])) * (
                1.0 if rng.random() < 0.7 else float(size[at])
            )
        return np.clip(wish, low, high), {"lower": low.tolist(), "upper": high.tolist()}, None
    if kind == "rowbox":
        middle = np.median(wish, axis=0) + size * rng.normal(size=(n, dim)) * 0.3
        width = size * np.abs(rng.normal(size=(n, dim)))
        low, high = middle - width, middle + width
        low = np.where(rng.random((n, dim)) < 0.1, -np.inf, low)
        same = rng.random((n, dim)) < 0.05
        high = np.where(same & np.isfinite(low), low, high)
        return np.clip(wish, low, high), {}, {"lower": low, "upper": high}
    return draw_polyhedron(rng, wish, kind, size, tags)


def draw_polyhedron(rng, wish, kind, size, tags):
    """General rows; the wishes are moved inside by a method good to rounding."""
    n, dim = wish.shape
    centre = np.median(wish, axis=0)
    constraints = {}
    if kind == "simplex":
        total = float(size.max())
        constraints = {
            "M_eq": np.ones((1, dim)), "W_eq": np.array([total]), "lower": np.zeros(dim),
        }
        centre = np.full(dim, total / dim)
    elif kind == "equality":
        matrix = rng.normal(size=(1, dim)) / size
        constraints = {"M_eq": matrix, "W_eq": matrix @ centre}
        if rng.random() < 0.5:
            constraints["lower"] = centre - size * rng.uniform(0.1, 1, dim)
            constraints["upper"] = centre + size * rng.uniform(0.1, 1, dim)
    else:
        m = int(rng.integers(1, 2 * dim + 3))
        each = n if kind == "rowpolyhedron" else 1
        matrix = rng.normal(size=(each, m, dim))
        if rng.random() < 0.4:
            matrix = np.round(matrix)
            matrix[(matrix == 0).all(axis=2)] = 1.0
        if rng.random() < 0.3:
            matrix = matrix * (rng.random(matrix.shape) < 0.5)
            matrix[(matrix == 0).all(axis=2)] = 1.0
        if rng.random() < 0.3:
            matrix = matrix * 10.0 ** rng.uniform(-3, 3, (1, m, 1))
        matrix = matrix / size
        slack = np.linalg.norm(matrix * size, axis=2) * np.abs(rng.normal(size=(each, m)))
        if kind == "rowbounds":
            slack = np.linalg.norm(matrix * size, axis=2) * np.abs(rng.normal(size=(n, m)))
        bound = matrix @ centre + slack + 1e-3 * np.linalg.norm(matrix * size, axis=2)
        constraints = {"M": matrix if each > 1 else matrix[0],
                       "W": bound if len(bound) > 1 else bound[0]}
        if kind == "mixed":
            constraints["lower"] = centre - size * rng.uniform(0.1, 1, dim)
            constraints["upper"] = centre + size * rng.uniform(0.1, 1, dim)
    sets = sets_of(constraints, {}, n, dim)
    inside = np.array([pull_inside(u, s, centre, size) for u, s in zip(wish, sets)])
    if "lower" in constraints:
        high = constraints.get("upper", np.full(dim, np.inf))
        inside = np.clip(inside, constraints["lower"], high)
    return inside, {}, constraints


def pull_inside(wish, limits, centre, size):
    """A decision of the set near the wish, inside up to rounding: alternating projections, then
    the rest of the way towards the centre; all in units in which nothing overflows."""
    rows, bounds = [], []
    for row, bound in zip(limits.rows, limits.bounds):
        length = np.abs(row * size).max()
        rows.append(row * size / length)
        bounds.append(bound / length)
    u, middle = wish / size, centre / size
    for _ in range(30):
        for at, (row, bound) in enumerate(zip(rows, bounds)):
            over = row @ u - bound
            if at < limits.equal or over > 0:
                u = u - row * (over / (row @ row))
    direction, share = u - middle, 1.0
    for at, (row, bound) in enumerate(zip(rows, bounds)):
        ahead = row @ direction
        room = bound - row @ middle
        if at >= limits.equal and ahead > room:
            share = min(share, max(room / ahead, 0.0))
    return (middle + share * direction) * size


def sets_of(constraints, parameters, n, dim):
    """The set of every sample as rows·u <= bounds, from what a fit is given."""
    from exact import Limits

    given = {name: np.asarray(part, dtype=float) for name, part in (constraints or {}).items()}

    def of(name, i, axes):
        part = given[name]
        return part if part.ndim == axes else part[i if len(part) > 1 else 0]

    found = []
    for i in range(n):
        rows, bounds = [], []
        if "M_eq" in given:
            rows += list(of("M_eq", i, 2))
            bounds += list(of("W_eq", i, 1))
        equal = len(rows)
        if "M" in given:
            rows += list(of("M", i, 2))
            bounds += list(of("W", i, 1))
        low, high = box_of(parameters, dim)
        if "lower" in given:
            low = np.maximum(low, of("lower", i, 1))
        if "upper" in given:
            high = np.minimum(high, of("upper", i, 1))
        for j in range(dim):
            unit = np.zeros(dim)
            unit[j] = 1.0
            if np.isfinite(low[j]):
                rows.append(-unit)
                bounds.append(-low[j])
            if np.isfinite(high[j]):
                rows.append(unit)
                bounds.append(high[j])
        found.append(Limits(rows, bounds, equal))
    return found


def box_of(parameters, dim):
    """The model's own limits."""
    low, high = np.full(dim, -np.inf), np.full(dim, np.inf)
    if parameters.get("bounds") is not None:
        low[:], high[:] = parameters["bounds"]
    if parameters.get("lower") is not None:
        low = np.asarray(parameters["lower"], dtype=float)
    if parameters.get("upper") is not None:
        high = np.asarray(parameters["upper"], dtype=float)
    return low, high


def draw_weights(rng, n, tags):
    """Mostly none; else of one size, or of every size."""
    kind = choose(rng, none=78, ordinary=10, zeros=4, spread=4, extreme=4)
    if kind == "none":
        return None
    weights = rng.uniform(0.1, 3, n)
    if kind == "zeros" and n > 1:
        weights[rng.integers(n)] = 0.0
    if kind == "spread":
        weights = 10.0 ** rng.uniform(-12, 12, n)
    if kind == "extreme":
        weights = 10.0 ** rng.uniform(-300, 300, n)
    tags.append(f"weights {kind}")
    return weights
