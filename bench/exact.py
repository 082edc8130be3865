"""The optimum of a fit in ball arithmetic, from the definitions and from nothing of argwhy.

Enters: feature rows, decisions, sets, weights, k and the kernel, all as the doubles they are.
Leaves: P(alpha), the optimum P*, its coefficients and the exact decisions, to 60 digits or more.
Every number is a ball (Arb, through python-flint), so a difference that is called positive is.

    P(a) = k |a|_K^2 + sum w_i l_i(g_i),   l_i(g) = u'Tu - 2g'u - min over U_i of (v'Tv - 2g'v)
    D(x) = sum w_i (u_i'Tu_i - x_i'Tx_i) - k |b|_K^2,    b_i = w_i (u_i - x_i) / k,    g = Ka

with weights that sum to one. Dimensions that no constraint links are problems of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import arb, arb_mat, ctx

ZERO, ONE = arb(0), arb(1)


def balls(values):
    """A matrix of doubles as exact balls."""
    rows = np.atleast_2d(np.asarray(values, dtype=np.float64))
    return arb_mat(*rows.shape, [arb(float(v)) for v in rows.ravel()])


def column(values):
    """A list of balls as a matrix of one column."""
    return arb_mat(len(values), 1, list(values))


def entries(matrix):
    """All entries, row by row."""
    return matrix.entries()


def dot(a, b):
    """The inner product of two lists."""
    return sum((x * y for x, y in zip(a, b)), ZERO)


# Kernels


def kernel_value(kernel, a, b):
    """k(a, b) of two lists of balls; ``kernel`` as the model file describes it."""
    kind = kernel["kind"]
    if kind == "scaled":
        return arb(kernel["weight"]) * kernel_value(kernel["kernel"], a, b)
    if kind == "sum":
        return sum((kernel_value(part, a, b) for part in kernel["terms"]), ZERO)
    if kind == "product":
        product = ONE
        for part in kernel["factors"]:
            product = product * kernel_value(part, a, b)
        return product
    if kind == "anisotropic":
        scales = [arb(scale) for scale in kernel["length_scales"]]
        # Without radii, so that equal rows stay equal.
        a, b = ([(v / s).mid() for v, s in zip(row, scales)] for row in (a, b))
        return kernel_value(kernel["kernel"], a, b)
    if kind == "linear":
        return dot(a, b)
    if kind == "constant":
        return ONE
    gamma = arb(kernel["gamma"])
    if kind == "polynomial":
        return (gamma * dot(a, b) + arb(kernel["offset"])) ** int(kernel["degree"])
    if kind == "laplace":
        return (-gamma * sum((abs(x - y) for x, y in zip(a, b)), ZERO)).exp()
    square = sum(((x - y) * (x - y) for x, y in zip(a, b)), ZERO)
    if kind == "rbf":
        return (-gamma * square).exp()
    if kind == "matern32":
        t = (6 * gamma * square).sqrt()
        return (1 + t) * (-t).exp()
    if kind == "matern52":
        t = (10 * gamma * square).sqrt()
        return (1 + t + t * t / 3) * (-t).exp()
    raise ValueError(f"no such kernel: {kind}")


def kernel_matrix(kernel, left, right):
    """k of every row of ``left`` with every row of ``right``, both arrays of doubles."""
    rows = [[arb(float(v)) for v in row] for row in left]
    others = [[arb(float(v)) for v in row] for row in right]
    values = [kernel_value(kernel, a, b) for a in rows for b in others]
    return arb_mat(len(rows), len(others), values)


# Sets


@dataclass
class Limits:
    """rows·u <= bounds, the first ``equal`` of them with =; doubles as given."""

    rows: list
    bounds: list
    equal: int = 0


def groups_of(sets, dim):
    """Dimensions that a constraint of any sample links, as sorted lists."""
    parent = list(range(dim))

    def root(j):
        while parent[j] != j:
            j = parent[j]
        return j

    for limits in sets:
        for row in limits.rows:
            linked = [j for j in range(dim) if row[j] != 0]
            for j in linked[1:]:
                parent[root(j)] = root(linked[0])
    found = {}
    for j in range(dim):
        found.setdefault(root(j), []).append(j)
    return sorted(found.values())


def restricted(limits, dims):
    """The rows that touch ``dims``, as exact balls."""
    rows, bounds, equal = [], [], 0
    for at, (row, bound) in enumerate(zip(limits.rows, limits.bounds)):
        if not np.isfinite(bound) or not any(row[j] != 0 for j in dims):
            continue
        rows.append([arb(float(row[j])) for j in dims])
        bounds.append(arb(float(bound)))
        equal += at < limits.equal
    return rows, bounds, equal


class Interval:
    """The set of one dimension: lower <= u <= upper, None where there is no limit."""

    def __init__(self, rows, bounds, equal):
        self.lower = self.upper = None
        for at, ((a,), bound) in enumerate(zip(rows, bounds)):
            limit = bound / a
            if a > 0 or at < equal:
                self.upper = limit if self.upper is None else self.upper.min(limit)
            if a < 0 or at < equal:
                self.lower = limit if self.lower is None else self.lower.max(limit)

    def nearest(self, g):
        if self.lower is not None:
            g = g.max(self.lower)
        return g if self.upper is None else g.min(self.upper)

    def side(self, g):
        """-1 at or below the lower limit, 1 at or above the upper, 0 between, 2 where they meet."""
        low = self.lower is not None and g <= self.lower
        high = self.upper is not None and g >= self.upper
        if self.lower is not None and self.upper is not None and self.lower >= self.upper:
            return 2
        return high - low

    def is_free(self, g):
        return self.side(g) == 0

    def breaks(self, g, slope):
        """Where g + t·slope meets a limit, t > 0."""
        if slope == 0:
            return []
        found = [(limit - g) / slope for limit in (self.lower, self.upper) if limit is not None]
        return [t.mid() for t in found if t > 0]


class Unsolved(Exception):
    """The exact side could not be computed: nothing is said about the fit then."""


class Polyhedron:
    """A general set with a metric; finds min v'Tv - 2g'v by a dual active-set method."""

    def __init__(self, rows, bounds, equal, metric):
        self.rows, self.bounds, self.equal, self.metric = rows, bounds, equal, metric
        inverse = metric.inverse
        self.images = [entries(inverse * column(row)) for row in rows]
        self.gram = [[dot(a, image) for image in self.images] for a in rows]

    def _multipliers(self, working, right):
        """Solves (A T^-1 A') m = right on the rows of the working set."""
        if not working:
            return []
        size = len(working)
        matrix = arb_mat(size, size, [self.gram[a][b] for a in working for b in working]).mid()
        try:
            return entries(matrix.solve(column(right).mid(), algorithm="approx"))
        except ZeroDivisionError as error:
            raise Unsolved("dependent rows in a working set") from error

    def _on(self, working, free):
        """The best point with the working rows as equations, and its multipliers."""
        off = [dot(self.rows[r], free) - self.bounds[r] for r in working]
        m = self._multipliers(working, off)
        u = list(free)
        for r, value in zip(working, m):
            u = [(v - value * image).mid() for v, image in zip(u, self.images[r])]
        return u, m

    def best(self, g, warm=()):
        """(y, working set) for the desired decision ``g``, a list of exact balls."""
        small = arb(2) ** -(ctx.prec // 2)
        free = [v.mid() for v in entries(self.metric.inverse * column(g))]
        if warm:
            u, m = self._on(list(warm), free)
            signs = all(v >= 0 for r, v in zip(warm, m) if r >= self.equal)
            if signs and self._worst(u, small, warm) is None:
                return u, list(warm)
        working = []
        u, m = list(free), []
        for r in range(self.equal):
            u, m, working = self._add(r, u, m, working, small, True)
        for _ in range(200):
            worst = self._worst(u, small, working)
            if worst is None:
                # Once more from the working set alone, without what the path rounded.
                return self._on(working, free)[0], working
            u, m, working = self._add(worst, u, m, working, small, False)
        raise Unsolved("a decision takes too many steps")

    def _worst(self, u, small, working):
        """The row that is violated most, by distance; None where all hold."""
        worst, found = ZERO, None
        for r, (row, bound) in enumerate(zip(self.rows, self.bounds)):
            if r in working:
                continue
            terms = [a * v for a, v in zip(row, u)]
            over = (sum(terms, ZERO) - bound).mid()
            if r < self.equal:
                over = abs(over)
            size = sum((abs(t) for t in terms), abs(bound))
            if over <= small * size:
                continue
            over = over / dot(row, row).sqrt()
            if over > worst:
                worst, found = over.mid(), r
        return found

    def _add(self, p, u, m, working, small, equality):
        """Moves along row ``p`` until it holds, dropping rows whose multiplier would turn."""
        m, working, own = list(m), list(working), ZERO
        over = dot(self.rows[p], u) - self.bounds[p]
        sign = -1 if equality and over < 0 else 1
        for _ in range(50):
            r = self._multipliers(working, [sign * self.gram[a][p] for a in working])
            z = [sign * v for v in self.images[p]]
            for a, value in zip(working, r):
                z = [(v - value * image).mid() for v, image in zip(z, self.images[a])]
            along = (sign * dot(self.rows[p], z)).mid()
            over = (sign * (dot(self.rows[p], u) - self.bounds[p])).mid()
            independent = along > small * self.gram[p][p]
            if equality and not independent:
                return u, m, working
            full = (over / along).mid() if independent else None
            step, drop = full, None
            for at, (a, value) in enumerate(zip(working, r)):
                if a >= self.equal and value > 0:
                    until = (m[at] / value).mid()
                    if step is None or until < step:
                        step, drop = until, at
            if step is None:
                raise Unsolved("an empty set")
            if independent:
                u = [(v - step * d).mid() for v, d in zip(u, z)]
            m = [(a - step * b).mid() for a, b in zip(m, r)]
            own = (own + step).mid()
            if drop is None:
                return u, [*m, (sign * own).mid()], [*working, p]
            m.pop(drop)
            working.pop(drop)
        raise Unsolved("a decision takes too many steps")

    def derivative(self, working):
        """dX/dg on the face of a working set: a matrix."""
        inverse = self.metric.inverse.mid()
        if not working:
            return inverse
        size, n = len(working), inverse.nrows()
        matrix = arb_mat(size, size, [self.gram[a][b] for a in working for b in working]).mid()
        images = arb_mat(size, n, [v for a in working for v in self.images[a]]).mid()
        return (inverse - images.transpose() * matrix.solve(images, algorithm="approx")).mid()


class Metric:
    """T = theta_uu of some dimensions, with its inverse."""

    def __init__(self, theta):
        self.theta = theta
        n = theta.nrows()
        identity = arb_mat(n, n, [arb(i == j) for i in range(n) for j in range(n)])
        self.is_identity = all(a == b for a, b in zip(entries(theta), entries(identity)))
        self.inverse = identity if self.is_identity else theta.solve(identity, algorithm="lu")

    def times(self, v):
        return list(v) if self.is_identity else entries(self.theta * column(v))

    def square(self, v):
        return dot(v, self.times(v))


# One group of dimensions


@dataclass
class Optimum:
    """The optimum of a group: coefficients (dimension by dimension), and what encloses P*."""

    coefficients: list
    responses: list
    upper: arb
    lower: arb


class Group:
    """Dimensions that belong together: their decisions, sets and values."""

    def __init__(self, gram, decisions, sets, weights, k, metric):
        self.gram, self.k, self.metric = gram, k, metric
        self.decisions = decisions
        self.n, self.dim = gram.nrows(), len(decisions[0])
        total = sum(weights, ZERO)
        self.shares = [w / total for w in weights]
        self.ridges = [(k * total / w).mid() for w in weights]
        self.single = self.dim == 1
        self.sets = [self._set(*part) for part in sets]

    def _set(self, rows, bounds, equal):
        if self.single:
            return Interval(rows, bounds, equal)
        return Polyhedron(rows, bounds, equal, self.metric)

    # Columns are lists of n_samples balls, one a dimension; `across` turns them into samples.

    @staticmethod
    def across(columns):
        return [list(row) for row in zip(*columns)]

    def desired(self, columns):
        return [entries(self.gram * column(part)) for part in columns]

    def decide(self, desired, warm=None):
        """X(g) for every sample, and the faces."""
        rows = self.across(desired)
        if self.single:
            scale = entries(self.metric.theta)[0]
            best = [[s.nearest(g / scale)] for s, (g,) in zip(self.sets, rows)]
            return best, [s.side(g / scale) for s, (g,) in zip(self.sets, rows)]
        warm = warm or [()] * self.n
        found = [s.best([v.mid() for v in g], w) for s, g, w in zip(self.sets, rows, warm)]
        return [u for u, _ in found], [w for _, w in found]

    def primal(self, columns, desired=None, decided=None):
        """P(a), coefficients by columns."""
        desired = desired or self.desired(columns)
        decided = decided or self.decide(desired)[0]
        norm = sum((dot(a, g) for a, g in zip(columns, desired)), ZERO)
        losses = [
            share * self._loss(u, g, y)
            for share, u, g, y in zip(self.shares, self.decisions, self.across(desired), decided)
        ]
        return self.k * norm + sum(losses, ZERO)

    def _loss(self, u, g, y):
        """q(u) - q(y), q(v) = v'Tv - 2g'v."""
        difference = [a - b for a, b in zip(u, y)]
        middle = self.metric.times([a + b for a, b in zip(u, y)])
        return dot(difference, [m - 2 * v for m, v in zip(middle, g)])

    def dual(self, responses):
        """D(x), responses by samples."""
        pulls = [self.coefficient(i, x) for i, x in enumerate(responses)]
        columns = [list(part) for part in zip(*pulls)]
        norm = sum((dot(a, g) for a, g in zip(columns, self.desired(columns))), ZERO)
        none = [ZERO] * self.dim
        losses = [
            share * self._loss(u, none, x)
            for share, u, x in zip(self.shares, self.decisions, responses)
        ]
        return sum(losses, ZERO) - self.k * norm

    def coefficient(self, i, x):
        return [(u - v) / self.ridges[i] for u, v in zip(self.decisions[i], x)]

    def explainable(self):
        """P(0): what a model can explain at most."""
        zero = [[ZERO] * self.n for _ in range(self.dim)]
        return self.primal(zero, zero)

    def responses(self, columns):
        """Feasible responses nearest to what the coefficients stand for."""
        points = [
            [u - ridge * a for u, a in zip(us, row)]
            for us, ridge, row in zip(self.decisions, self.ridges, self.across(columns))
        ]
        if self.single:
            return [[s.nearest(p.mid())] for s, (p,) in zip(self.sets, points)]
        plain = Metric(arb_mat(self.dim, self.dim, [arb(i == j) for i in range(self.dim)
                                                    for j in range(self.dim)]))
        found = []
        for s, p in zip(self.sets, points):
            own = Polyhedron(s.rows, s.bounds, s.equal, plain)
            found.append(own.best([v.mid() for v in p])[0])
        return found

    def optimum(self, start):
        """Semismooth Newton from coefficients ``start``, with an exact line search."""
        columns = [[a.mid() for a in part] for part in start]
        columns = self._newton_line(columns) if self.single else self._newton(columns)
        responses = self.responses(columns)
        own = [list(part) for part in zip(*(self.coefficient(i, x)
                                            for i, x in enumerate(responses)))]
        upper = min((self.primal(part) for part in (columns, own)), key=lambda p: p.mid())
        return Optimum(columns, responses, upper, self.dual(responses))

    def _newton_line(self, columns):
        """One dimension: the free samples by one system, the rest have a coefficient at once."""
        alpha, decisions = columns[0], [u for (u,) in self.decisions]
        theta = entries(self.metric.theta)[0]
        gram = self.gram.mid()
        g = [v.mid() for v in entries(gram * column(alpha))]
        for _ in range(400):
            best, sides = self.decide([g])
            residual = [
                (u - y - ridge * a).mid()
                for u, (y,), ridge, a in zip(decisions, best, self.ridges, alpha)
            ]
            step = self._free_step(gram, residual, [s == 0 for s in sides], theta)
            slope = [v.mid() for v in entries(gram * column(step))]
            t, done = self._line(alpha, g, step, slope, sides, decisions, theta)
            alpha = [(a + t * d).mid() for a, d in zip(alpha, step)]
            g = [v.mid() for v in entries(gram * column(alpha))]
            if done:
                return [alpha]
        raise Unsolved("Newton did not end")

    def _free_step(self, gram, residual, free, theta):
        held = [i for i in range(self.n) if not free[i]]
        moving = [i for i in range(self.n) if free[i]]
        step = [ZERO] * self.n
        for i in held:
            step[i] = (residual[i] / self.ridges[i]).mid()
        if moving:
            right = [
                theta * residual[i] - dot([gram[i, j] for j in held], [step[j] for j in held])
                for i in moving
            ]
            matrix = arb_mat(len(moving), len(moving), [
                gram[i, j] + (theta * self.ridges[i] if i == j else ZERO)
                for i in moving for j in moving
            ]).mid()
            solution = matrix.solve(column(right).mid(), algorithm="approx")
            for i, value in zip(moving, entries(solution)):
                step[i] = value
        return step

    def _line(self, alpha, g, step, slope, sides, decisions, theta):
        """The least P along a direction, and whether it is the optimum: no sample changed sides."""
        ahead = [[(v + s).mid()] for v, s in zip(g, slope)]
        if [s.side(v / theta) for s, (v,) in zip(self.sets, ahead)] == sides:
            return ONE, True

        def rise(t):
            terms = ZERO
            for i in range(self.n):
                y = self.sets[i].nearest((g[i] + t * slope[i]) / theta)
                pull = self.ridges[i] * (alpha[i] + t * step[i])
                terms += self.shares[i] * slope[i] * (pull + y - decisions[i])
            return terms.mid()

        breaks = sorted({t: None for i in range(self.n)
                         for t in self.sets[i].breaks(g[i] / theta, slope[i] / theta)})
        low, high = 0, len(breaks)
        while low < high:
            middle = (low + high) // 2
            if rise(breaks[middle]) >= 0:
                high = middle
            else:
                low = middle + 1
        left = breaks[low - 1] if low else ZERO
        right = breaks[low] if low < len(breaks) else (left + 1).mid()
        at_left, at_right = rise(left), rise(right)
        if at_right == at_left:
            return ONE, True
        t = (left - at_left * (right - left) / (at_right - at_left)).mid()
        return (t, False) if t > 0 else (ONE, True)

    def _newton(self, columns):
        """Several dimensions at once."""
        desired = [[v.mid() for v in part] for part in self.desired(columns)]
        best, faces = self.decide(desired)
        value = self.primal(columns, desired, best).mid()
        scale = self.explainable().mid()
        small = scale * arb(2) ** -(ctx.prec // 2)
        for _ in range(200):
            step = self._joint_step(columns, best, faces)
            slope = [[v.mid() for v in part] for part in self.desired(step)]
            t, trial = self._joint_line(columns, desired, step, slope, faces)
            new_columns, new_best, new_faces = trial
            same = t == 1 and all(sorted(a) == sorted(b) for a, b in zip(faces, new_faces))
            columns, best, faces = new_columns, new_best, new_faces
            desired = [[v.mid() for v in part] for part in self.desired(columns)]
            before, value = value, self.primal(columns, desired, best).mid()
            if same or abs(before - value) <= small:
                return columns
        raise Unsolved("Newton did not end")

    def _joint_line(self, columns, desired, step, slope, faces):
        """A step near the least P along a direction: P' is zero, or small beside its start."""

        def along(t):
            trial = [[(a + t * d).mid() for a, d in zip(p, q)] for p, q in zip(columns, step)]
            ahead = [[(a + t * d).mid() for a, d in zip(p, q)] for p, q in zip(desired, slope)]
            best, new = self.decide(ahead, faces)
            rise = ZERO
            parts = zip(self.shares, self.ridges, self.decisions, self.across(trial),
                        self.across(slope), best)
            for share, ridge, us, row, way, ys in parts:
                rise += share * sum((h * (ridge * a + y - u)
                                     for h, a, y, u in zip(way, row, ys, us)), ZERO)
            return rise.mid(), (trial, best, new)

        start = along(ZERO)[0]
        low, at_low, t = ZERO, start, ONE
        rise, found = along(t)
        enough = abs(start) / 1000
        if rise <= enough:
            return t, found
        high, at_high, far = t, rise, 4
        for turn in range(400):
            if turn % 2 == 0:
                t = low - at_low * (high - low) / (at_high - at_low)
            elif low == 0:
                # The root may be orders of magnitude away.
                t, far = high * arb(2) ** -far, 2 * far
            else:
                t = (low * high).sqrt() if high > 4 * low else (low + high) / 2
            t = t.mid()
            rise, found = along(t)
            if abs(rise) <= enough:
                break
            if rise > 0:
                high, at_high = t, rise
            else:
                low, at_low, far = t, rise, 4
        return t, found

    def _joint_step(self, columns, best, faces):
        """(ridge + D K) d = residual, all samples and dimensions in one system."""
        n, dim = self.n, self.dim
        derivatives = [s.derivative(face) for s, face in zip(self.sets, faces)]
        right = []
        for i, row in enumerate(self.across(columns)):
            right += [u - y - self.ridges[i] * a
                      for u, y, a in zip(self.decisions[i], best[i], row)]
        values = []
        for i in range(n):
            for a in range(dim):
                for j in range(n):
                    for b in range(dim):
                        entry = derivatives[i][a, b] * self.gram[i, j]
                        values.append(entry + self.ridges[i] if (i, a) == (j, b) else entry)
        matrix = arb_mat(n * dim, n * dim, values).mid()
        flat = entries(matrix.solve(column(right).mid(), algorithm="approx"))
        return [[flat[i * dim + a] for i in range(n)] for a in range(dim)]


# A learned theta_uu


def eigen(matrix):
    """Eigenvalues and vectors (columns) of a small symmetric matrix, by Jacobi's rotations."""
    n = matrix.nrows()
    a = [[((matrix[i, j] + matrix[j, i]) / 2).mid() for j in range(n)] for i in range(n)]
    v = [[arb(i == j) for j in range(n)] for i in range(n)]
    size = sum((x * x for row in a for x in row), ZERO).sqrt().mid()
    for _ in range(60 * n * n):
        off = [(abs(a[i][j]), i, j) for i in range(n) for j in range(i)]
        if not off:
            break
        most, p, q = max(off, key=lambda entry: entry[0])
        if most <= size * arb(2) ** -(ctx.prec - 20):
            break
        tau = (a[q][q] - a[p][p]) / (2 * a[p][q])
        t = (1 if tau >= 0 else -1) / (abs(tau) + (1 + tau * tau).sqrt())
        c = (1 / (1 + t * t).sqrt()).mid()
        s = (t * c).mid()
        for rows in (a, v):
            for row in rows:
                row[p], row[q] = (c * row[p] - s * row[q]).mid(), (s * row[p] + c * row[q]).mid()
        a[p], a[q] = (
            [(c * x - s * y).mid() for x, y in zip(a[p], a[q])],
            [(s * x + c * y).mid() for x, y in zip(a[p], a[q])],
        )
    return [a[i][i] for i in range(n)], v


def at_least_identity(matrix):
    """The nearest symmetric matrix without an eigenvalue below one."""
    values, vectors = eigen(matrix)
    n = len(values)
    raised = [v.max(ONE) for v in values]
    return arb_mat(n, n, [
        sum((raised[e] * vectors[i][e] * vectors[j][e] for e in range(n)), ZERO)
        for i in range(n) for j in range(n)
    ]).mid()


FEW = 3
"""Steps on a theta whose certificate is proven already."""


class Learned:
    """min over T >= I of k|T|^2 + the optimum for T: theta_uu and the coefficients together."""

    def __init__(self, gram, decisions, sets, weights, k):
        self.parts = gram, decisions, sets, weights, k
        self.k, self.decisions = k, decisions
        total = sum(weights, ZERO)
        self.shares = [w / total for w in weights]

    def group(self, theta):
        gram, decisions, sets, weights, k = self.parts
        return Group(gram, decisions, sets, weights, k, Metric(theta))

    def square(self, theta):
        return sum((v * v for v in entries(theta)), ZERO)

    def spread(self, responses):
        """B(x): the decisions' second moment less that of the responses."""
        n = len(responses[0])
        pairs = list(zip(self.shares, self.decisions, responses))
        return arb_mat(n, n, [
            sum((w * (u[a] * u[b] - x[a] * x[b]) for w, u, x in pairs), ZERO)
            for a in range(n) for b in range(n)
        ])

    def nearest(self, responses):
        """The T that is best against fixed responses."""
        return at_least_identity(self.spread(responses) * (-1 / (2 * self.k)))

    def dual(self, group, responses):
        theta = self.nearest(responses)
        spread = self.spread(responses)
        plain = group.dual(responses)
        # group.dual has Tr(T B) - energy for its own T.
        own = sum((a * b for a, b in zip(entries(group.metric.theta), entries(spread))), ZERO)
        mine = sum((a * b for a, b in zip(entries(theta), entries(spread))), ZERO)
        return self.k * self.square(theta) + mine - own + plain

    def primal(self, theta, columns):
        return self.k * self.square(theta) + self.group(theta).primal(columns)

    def inner(self, theta, start):
        """The optimum for T: value, coefficients, responses X(g), lower bound."""
        group = self.group(theta)
        found = group.optimum(start)
        best = group.decide(group.desired(found.coefficients))[0]
        best = [[v.mid() for v in row] for row in best]
        value = self.k * self.square(theta) + found.upper
        return value, found.coefficients, best, self.dual(group, best)

    def optimum(self, theta, start, needed=None):
        """(upper, lower, T, coefficients): semismooth Newton on T = nearest(x(T)).

        To 40 digits, or to what a few steps reach where the lower bound is ``needed`` or more."""
        n = theta.nrows()
        theta = at_least_identity(theta)
        pairs = [(a, b) for a in range(n) for b in range(a, n)]
        value, columns, best, lower = self.inner(theta, start)
        for turn in range(40):
            if needed is not None and lower >= needed and turn >= FEW:
                break
            if (value - lower).mid() <= abs(value).mid() * arb(10) ** -40:
                break
            target = self.nearest(best)
            residual = [(theta[a, b] - target[a, b]).mid() for a, b in pairs]
            direction = self._direction(theta, columns, residual, pairs)
            moved = False
            for guess in (direction, [-r for r in residual]):
                t = ONE
                for _ in range(6 if guess is direction else 30):
                    trial = at_least_identity(theta + t * symmetric(guess, pairs, n))
                    new = self.inner(trial, columns)
                    lower = lower.max(new[3])
                    if new[0] < value:
                        theta, (value, columns, best, _), moved = trial, new, True
                        break
                    t = t / (4 if guess is direction else 16)
                if moved:
                    break
            if not moved:
                break
        return value, lower, theta, columns

    def _direction(self, theta, columns, residual, pairs):
        """Solves F' d = -F; derivatives by differences, which have digits enough here."""
        n, h = theta.nrows(), arb(2) ** -(ctx.prec // 3)
        slopes = []
        for at in range(len(pairs)):
            bump = [h if i == at else ZERO for i in range(len(pairs))]
            moved = (theta + symmetric(bump, pairs, n)).mid()
            best = self.inner(moved, columns)[2]
            target = self.nearest(best)
            slopes.append([
                ((moved[a, b] - target[a, b] - r) / h).mid() for (a, b), r in zip(pairs, residual)
            ])
        size = len(pairs)
        matrix = arb_mat(size, size, [slopes[j][i] for i in range(size) for j in range(size)])
        try:
            return entries(matrix.solve(column([-r for r in residual]), algorithm="approx"))
        except ZeroDivisionError:
            return [-r for r in residual]


def symmetric(values, pairs, n):
    """A matrix from its upper triangle."""
    made = [[ZERO] * n for _ in range(n)]
    for value, (a, b) in zip(values, pairs):
        made[a][b] = made[b][a] = value
    return arb_mat(made)
