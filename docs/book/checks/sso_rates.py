#!/usr/bin/env python3
"""Checks the rates of the book's chapter "SSO" and measures how far from practice they are.

    sso_rates.py [DATA.npz] [--rows 200] [--start-rows N] [--rule-rows N]

First part: on small random box problems every block of every size is solved, so that expectations
are exact, and each theorem's two sides are compared. Second part: the proven and the measured
factor of each rule on the first rows of DATA, an .npz file with `observations` and `actions` in
[-1, 1] (hopper's features: monomials up to degree 2, z-score); without DATA, on signals and
decisions made here. --start-rows and --rule-rows also print the error of each initialisation, and
of each rule after 10 and 20 blocks, on so many rows (3000 take a minute, 2000 ten minutes; all else
five). Needs NumPy alone. Exits with 1 if an inequality fails.
"""

import argparse
import itertools
import sys

import numpy as np

N_SMALL = 8
SLACK = 1e-9  # relative, for rounding in both sides of an inequality


class Problem:
    """(Q) for a box: N × n decisions, kernel matrix K, ridge λ = kN."""

    def __init__(self, kernel, decisions, lower, upper, ridge):
        self.kernel, self.decisions, self.ridge = kernel, decisions, ridge
        self.lower, self.upper = lower, upper
        self.n = len(kernel)
        self.hessian = (2 / self.n) * (np.eye(self.n) + kernel / ridge)
        self.best = decisions.copy()
        self.solve(self.best, np.arange(self.n))
        self.best_slope = (2 / self.n) * (self.best - self.desired(self.best))

    def project(self, x):
        return np.clip(x, self.lower, self.upper)

    def desired(self, x):
        return self.kernel @ ((self.decisions - x) / self.ridge)

    def error(self, x):
        """(Q)(x) − (Q)*, the sum of two nonnegative terms: slope at the optimum, and curvature."""
        step = x - self.best
        return np.sum(self.best_slope * step) + 0.5 * np.sum(step * (self.hessian @ step))

    def shares(self, x):
        """δ_i, as two nonnegative terms."""
        g = self.desired(x)
        y = self.project(g)
        return np.sum((x - y) ** 2 + 2 * (x - y) * (y - g), axis=1)

    def gap(self, x):
        return self.shares(x).sum() / self.n

    def solve(self, x, block):
        """Minimises over the responses of `block`, in place, by the Newton method of the book."""
        inner = self.kernel[np.ix_(block, block)]
        offset = self.desired(x)[block] - inner @ ((self.decisions - x)[block] / self.ridge)
        for j in range(x.shape[1]):
            x[block, j] = solve_dimension(
                inner, offset[:, j], self.decisions[block, j], self.lower, self.upper, self.ridge
            )

    def solved(self, x, block):
        x = x.copy()
        self.solve(x, np.asarray(block))
        return x


def solve_dimension(kernel, offset, decisions, lower, upper, ridge):
    """û − Π(Kα + c) − λα = 0 by semismooth Newton steps with an exact line search; returns x."""
    alpha = np.zeros(len(kernel))
    for _ in range(200):
        g = kernel @ alpha + offset
        residual = decisions - np.clip(g, lower, upper) - ridge * alpha
        if np.abs(residual).max() <= 1e-15 * (1 + np.abs(g).max() + np.abs(offset).max()):
            break
        free = (lower < g) & (g < upper)
        step = residual / ridge
        right = residual[free] - kernel[np.ix_(free, ~free)] @ step[~free]
        step[free] = np.linalg.solve(kernel[np.ix_(free, free)] + ridge * np.eye(free.sum()), right)
        image = kernel @ step
        length = search(alpha, step, g, image, decisions, lower, upper, ridge)
        alpha = alpha + length * step
        moved = kernel @ alpha + offset
        if length == 1 and np.array_equal(free, (lower < moved) & (moved < upper)):
            break
    else:
        raise RuntimeError("a block was not solved")
    return np.clip(decisions - ridge * alpha, lower, upper)


def search(alpha, step, g, image, decisions, lower, upper, ridge):
    def slope(t):
        return image @ (ridge * (alpha + t * step) - decisions + np.clip(g + t * image, lower, upper))

    at_zero, curvature = -slope(0.0), ridge * (image @ step)
    if at_zero <= 1e-300 or curvature <= 0 or abs(slope(1.0)) <= 1e-9 * at_zero:
        return 1.0
    low, high = at_zero / (curvature + image @ image), at_zero / curvature
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 0.5 * (low + high)


# --- What the theorems say
# ------------------------------------------------------------------------------------------


def rho_random(problem, p):
    """ρ_p: a block of p samples, uniformly at random."""
    if p == 0:
        return 0.0
    beta = (p - 1) / (problem.n - 1)
    least = max(np.linalg.eigvalsh(problem.kernel)[0], 0.0)
    c = (problem.ridge + problem.kernel.diagonal().max()) / (problem.ridge + least)
    return (p / problem.n) / (beta + (1 - beta) * c)


def rho_greedy(problem, p, largest):
    """The p largest δ_i; `largest` is at least λ_max(K_SS)."""
    return (p / problem.n) * problem.ridge / (problem.ridge + largest)


def coupling(problem, blocks):
    """C of a sequence of blocks that covers all samples."""
    last = np.zeros(problem.n, dtype=int)
    for t, block in enumerate(blocks):
        last[list(block)] = t
    columns = []
    for t, block in enumerate(blocks):
        block = list(block)
        upper = problem.hessian[:, block] * (last < t)[:, None]
        root = np.linalg.inv(np.linalg.cholesky(problem.hessian[np.ix_(block, block)])).T
        columns.append(upper @ root)
    joined = np.hstack(columns)
    return np.linalg.norm(np.linalg.solve(np.linalg.cholesky(problem.hessian), joined), 2) ** 2


def cyclic_factor(problem, blocks):
    c = coupling(problem, blocks)
    return c / (1 + c)


# --- Part one: all blocks of small problems
# -------------------------------------------------------------------------


class Tally:
    """Collects left/right of inequalities left ≤ right."""

    def __init__(self):
        self.cases, self.worst, self.failed = {}, {}, {}

    def add(self, name, left, right, floor=0.0):
        self.cases[name] = self.cases.get(name, 0) + 1
        if right > 1e3 * floor:
            self.worst[name] = max(self.worst.get(name, 0.0), left / right)
        if left > right * (1 + SLACK) + floor:
            self.failed[name] = self.failed.get(name, 0) + 1

    def show(self):
        for name, cases in self.cases.items():
            print(f"  {name:58} {cases:7} cases  left/right <= {self.worst.get(name, 0.0):.4f}  failed {self.failed.get(name, 0)}")


def small_problem(rng):
    rank = rng.integers(1, N_SMALL + 3)
    factor = rng.normal(size=(N_SMALL, rank)) * rng.uniform(0.2, 1.5, size=(N_SMALL, 1))
    decisions = np.clip(rng.normal(scale=1.2, size=(N_SMALL, 1)), -1, 1)
    return Problem(factor @ factor.T / rank, decisions, -1.0, 1.0, 10 ** rng.uniform(-2.5, 0.5))


def starting_points(problem, rng):
    """Anywhere; the decisions; off the optimum along the flattest and the steepest directions."""
    yield rng.uniform(-1, 1, size=(N_SMALL, 1))
    yield problem.decisions.copy()
    values, vectors = np.linalg.eigh(problem.hessian)
    for k in (0, N_SMALL - 1):
        yield problem.project(problem.best + 0.3 * rng.choice([-1, 1]) * vectors[:, [k]])
    yield problem.solved(rng.uniform(-1, 1, size=(N_SMALL, 1)), rng.choice(N_SMALL, 4, replace=False))


def check_point(problem, x, tally, contraction):
    before, shares = problem.error(x), problem.shares(x)
    gap = shares.sum() / problem.n
    floor = 1e-13 * (1 + gap)
    everything = range(N_SMALL)
    tally.add("f - f* <= G <= (1 + |K|/lam)(f - f*), left", before, gap, floor)
    norm = np.linalg.eigvalsh(problem.kernel)[-1]
    tally.add("f - f* <= G <= (1 + |K|/lam)(f - f*), right", gap, (1 + norm / problem.ridge) * before, floor)
    for p in (1, 2, 3, 4, 6, 7):
        after, points, largest = {}, {}, {}
        for block in itertools.combinations(everything, p):
            points[block] = problem.solved(x, block)
            after[block] = problem.error(points[block])
            largest[block] = np.linalg.eigvalsh(problem.kernel[np.ix_(block, block)])[-1]
            share = shares[list(block)].sum() / problem.n
            gain = before - after[block]
            tally.add("block gain <= its share of G", gain, share, floor)
            low = share * problem.ridge / (problem.ridge + largest[block])
            tally.add("block gain >= lam/(lam + |K_SS|) of its share", low, gain, floor)
        kappa = max(largest.values())
        gain = before - np.mean(list(after.values()))
        tally.add("random: rho_p (f - f*) <= mean gain", rho_random(problem, p) * before, gain, floor)
        top = tuple(sorted(np.argsort(-shares, kind="stable")[:p].tolist()))
        rho = rho_greedy(problem, p, kappa)
        tally.add("greedy by delta: r (f - f*) <= gain", rho * before, before - after[top], floor)
        tally.add("greedy by delta: r G <= gain", rho * gap, before - after[top], floor)
        if gap > 1e-9:
            contraction.append((problem.gap(points[top]) / gap, 1 - rho))
        for q in range(1, p):
            for chosen in itertools.combinations(everything, q):
                rest = [i for i in everything if i not in chosen]
                blocks = [tuple(sorted(chosen + more)) for more in itertools.combinations(rest, p - q)]
                gain = before - np.mean([after[block] for block in blocks])
                tally.add("mixed, any q samples: rho_(p-q) (f - f*) <= mean gain", rho_random(problem, p - q) * before, gain, floor)


def angle(problem, a, b):
    """μ: the cosine of the angle between two blocks in the metric of H."""
    h = problem.hessian
    left = np.linalg.solve(np.linalg.cholesky(h[np.ix_(a, a)]), h[np.ix_(a, b)])
    return np.linalg.norm(np.linalg.solve(np.linalg.cholesky(h[np.ix_(b, b)]), left.T), 2)


def check_cyclic(problem, x, rng, tally):
    floor = 1e-13 * (1 + problem.gap(x))
    for p in (1, 2, 3, 4):
        for _ in range(3):
            order = rng.permutation(N_SMALL)
            n_blocks = -(-N_SMALL // p)
            # As the solver does it: where p does not divide N, the last block of a sweep reaches
            # into the next one.
            blocks = [[int(order[(t * p + i) % N_SMALL]) for i in range(p)] for t in range(n_blocks)]
            factor, point, errors = cyclic_factor(problem, blocks), x.copy(), []
            for block in blocks:
                problem.solve(point, np.array(block))
                errors.append(problem.error(point))
            start = problem.error(x)
            tally.add("cyclic, sweep: (f - f*)/(1 + C) <= gain", (1 - factor) * start, start - errors[-1], floor)
            name = "cyclic, sweep less its first block: the same"
            tally.add(name, (1 - factor) * errors[0], errors[0] - errors[-1], floor)
            if n_blocks == 2:
                square = angle(problem, *blocks) ** 2
                tally.add("two blocks: |C/(1 + C) - mu^2| <= 1e-9", abs(factor - square), 1e-9)
                for t in range(6):
                    last = problem.error(point)
                    problem.solve(point, np.array(blocks[t % 2]))
                    gain = last - problem.error(point)
                    tally.add("two blocks, every step: (1 - mu^2)(f - f*) <= gain", (1 - square) * last, gain, floor)


def check_small(n_problems, tally):
    rng = np.random.default_rng(1)
    contraction, residual = [], 0.0
    for _ in range(n_problems):
        problem = small_problem(rng)
        residual = max(residual, np.abs(problem.best - problem.project(problem.desired(problem.best))).max())
        for x in starting_points(problem, rng):
            check_point(problem, x, tally, contraction)
            check_cyclic(problem, x, rng, tally)
    print(f"{n_problems} random problems, N = {N_SMALL}, all blocks of 1, 2, 3, 4, 6, 7 samples; optimal to {residual:.0e}")
    tally.show()
    rises = sum(1 for ratio, _ in contraction if ratio > 1)
    slower = sum(1 for ratio, factor in contraction if ratio > factor)
    print(f"  (not claimed) a greedy block left more than 1 - r of the gap in {slower} of {len(contraction)} cases"
          f" and raised it in {rises}, at most {max(ratio for ratio, _ in contraction):.0f}-fold")


# --- Part two: real or made-up rows
# ---------------------------------------------------------------------------------


def features(observations):
    """All monomials up to degree 2 with the constant, z-scored over all rows, clipped."""
    x = np.asarray(observations, dtype=np.float64)
    pairs = [x[:, i] * x[:, j] for i in range(x.shape[1]) for j in range(i, x.shape[1])]
    z = np.column_stack([np.ones(len(x)), x, *pairs])
    return np.clip((z - z.mean(axis=0)) / (z.std(axis=0) + 1e-7), -1000, 1000)


def made_up(n_rows):
    """A smooth walk of 11 signals; decisions saturate."""
    rng = np.random.default_rng(7)
    walk = np.cumsum(rng.normal(size=(n_rows, 11)), axis=0)
    signals = np.sin(0.2 * walk) + 0.05 * rng.normal(size=walk.shape)
    decisions = np.clip(1.2 * np.tanh(signals @ rng.normal(size=(11, 3)) / 1.5), -1, 1)
    return signals, decisions


def load(path, n_rows):
    if path is None:
        observations, actions = made_up(5000)
    else:
        with np.load(path) as data:
            observations, actions = data["observations"], data["actions"].astype(np.float64)
    z, u = features(observations)[:n_rows], np.clip(actions[:n_rows], -1, 1)
    squares = np.sum(z**2, axis=1)
    distances = np.maximum(squares[:, None] + squares[None, :] - 2 * z @ z.T, 0)
    np.fill_diagonal(distances, 0)
    return np.exp(-distances / z.shape[1]), u


def rule(name, problem, p, rng):
    """A function x, t -> block."""
    n = problem.n

    def greedy(x, q):
        return np.argsort(-problem.shares(x), kind="stable")[:q]

    def mixed(x, q):
        chosen = greedy(x, q)
        rest = np.setdiff1d(np.arange(n), chosen)
        return np.concatenate([chosen, rng.choice(rest, p - q, replace=False)])

    def paper(x):
        inside = np.all((problem.lower < x) & (x < problem.upper), axis=1)
        violation = np.where(inside, np.sum((x - problem.desired(x)) ** 2, axis=1), 0)
        chosen = rng.permutation(np.flatnonzero(violation > 0.1 * violation.max()))[:p]
        rest = np.setdiff1d(np.arange(n), chosen)
        return np.concatenate([chosen, rng.choice(rest, p - len(chosen), replace=False)])

    return {
        "random": lambda x, t: rng.choice(n, p, replace=False),
        "a quarter by delta, rest random": lambda x, t: mixed(x, -(-p // 4)),
        "half by delta, rest random": lambda x, t: mixed(x, -(-p // 2)),
        "three quarters by delta, rest random": lambda x, t: mixed(x, -(-3 * p // 4)),
        "greedy by delta": lambda x, t: greedy(x, p),
        "paper": lambda x, t: paper(x),
        "cyclic": lambda x, t: (t * p + np.arange(p)) % n,
    }[name]


def run(problem, name, p, iterations, seed, start=None):
    rng = np.random.default_rng(seed)
    choose, x = rule(name, problem, p, rng), (problem.decisions if start is None else start).copy()
    errors, blocks = [problem.error(x)], []
    for t in range(iterations):
        block = np.asarray(choose(x, t))
        problem.solve(x, block)
        errors.append(problem.error(x))
        blocks.append(set(block.tolist()))
    return np.array(errors), blocks


def largest_of_blocks(problem, p):
    """At least max over S of λ_max(K_SS): λ_max(K) or the largest sum of p entries of a row."""
    rows = np.sort(np.abs(problem.kernel), axis=1)[:, -p:].sum(axis=1).max()
    return min(rows, np.linalg.eigvalsh(problem.kernel)[-1])


def no_limits_factor(problem, p, n_blocks=2000):
    """1 − λ_min(E Z): what random blocks give where no limit is active, E by sampling."""
    rng, root = np.random.default_rng(3), np.linalg.cholesky(problem.hessian)
    mean = np.zeros_like(problem.hessian)
    for _ in range(n_blocks):
        block = rng.choice(problem.n, p, replace=False)
        part = root[block].T
        mean += part @ np.linalg.solve(problem.hessian[np.ix_(block, block)], part.T) / n_blocks
    return 1 - np.linalg.eigvalsh(mean)[0]


def measure(kernel, decisions, ridge, iterations=20, seeds=20):
    n, p = len(kernel), len(kernel) // 2
    problem = Problem(kernel, decisions, -1.0, 1.0, ridge)
    values = np.linalg.eigvalsh(kernel)
    at_limit = np.mean(np.abs(problem.best) == 1)
    print(f"\n{n} rows, lam = {ridge:.1e}, p = {p}; eigenvalues of K {values[0]:.2e} to {values[-1]:.1f};"
          f" {100 * at_limit:.1f} % of responses on a limit; start error {problem.error(problem.decisions):.3g}")
    proven = {
        "random": 1 - rho_random(problem, p),
        "a quarter by delta, rest random": 1 - rho_random(problem, p - -(-p // 4)),
        "half by delta, rest random": 1 - rho_random(problem, p - -(-p // 2)),
        "greedy by delta": 1 - rho_greedy(problem, p, largest_of_blocks(problem, p)),
        "cyclic": cyclic_factor(problem, [list(range(p)), list(range(p, n))]),
    }
    for name, bound in proven.items():
        n_seeds = 1 if name in ("cyclic", "greedy by delta") else seeds
        runs = [run(problem, name, p, iterations, seed) for seed in range(n_seeds)]
        overall = np.median([(e[-1] / e[0]) ** (1 / iterations) for e, _ in runs])
        late = np.median([(e[-1] / e[2]) ** (1 / (iterations - 2)) for e, _ in runs])
        text = f"  {name:32} proven {bound:.6f}, measured {overall:.3f} a block, {late:.3f} from block 2 on"
        if name == "greedy by delta":
            blocks = runs[0][1]
            back = sum(1 for t in range(2, iterations) if blocks[t] == blocks[t - 2])
            square = angle(problem, sorted(blocks[-1]), sorted(set(range(n)) - blocks[-1])) ** 2
            text += f"; block t = block t - 2 in {back} of {iterations - 2}, mu^2 {square:.6f}"
        print(text, flush=True)
    print(f"  random, no limit active, 1 - lam_min(E Z): {no_limits_factor(problem, p):.4f}")


def parts_of(n, m):
    return [np.arange(t * n // m, (t + 1) * n // m) for t in range(m)]


def rules(kernel, decisions, ridge, seeds=3, scale=200):
    """Errors in the paper's scaling after 10 and 20 blocks of half the rows.

    They start from a warm-up in two parts.
    """
    n = len(kernel)
    problem = Problem(kernel, decisions, -1.0, 1.0, ridge)
    start = decisions.copy()
    for part in parts_of(n, 2):
        problem.solve(start, part)
    print(f"\nrules on {n} rows, lam = {ridge:.1e}, start {scale * problem.error(start):.3g}: {scale} * error after 10, 20 blocks")
    for name in ("random", "paper", "a quarter by delta, rest random", "half by delta, rest random",
                 "three quarters by delta, rest random", "greedy by delta", "cyclic"):
        n_seeds = 1 if name in ("cyclic", "greedy by delta") else seeds
        errors = np.array([run(problem, name, n // 2, 20, seed, start)[0] for seed in range(n_seeds)])
        after = scale * np.median(errors, axis=0)
        print(f"  {name:38} {after[10]:.2g} {after[20]:.2g}", flush=True)


def one_at_a_time():
    """The book's example: the paper's rule in blocks of one sample.

    It never looks at the sample on its limit.
    """
    kernel = np.array([[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]])
    problem = Problem(kernel, np.array([[0.5], [0.4], [1.0]]), -1.0, 1.0, 1.0)
    x, choose, seen = problem.decisions.copy(), rule("paper", problem, 1, np.random.default_rng(0)), set()
    for t in range(20):
        block = choose(x, t)
        seen.update(block.tolist())
        problem.solve(x, block)
    ours = problem.solved(x, [2])
    print(f"\npaper's rule, p = 1: samples chosen {sorted(seen)}, x = {x[:, 0].round(4)}, g = {problem.desired(x)[:, 0].round(4)},"
          f" error {problem.error(x):.4f}; after sample 2: {problem.error(ours):.4f}; optimum {problem.best[:, 0].round(4)}")


def starts(kernel, decisions, ridge, parts=(2, 8, 16, 30), scale=200):
    """Errors in the paper's scaling of every initialisation."""
    n = len(kernel)
    problem = Problem(kernel, decisions, -1.0, 1.0, ridge)
    print(f"\nstarting points on {n} rows, lam = {ridge:.1e}: {scale} * error")
    print(f"  zero {scale * problem.error(np.zeros_like(decisions)):.4g}, expert {scale * problem.error(decisions):.4g}")
    for m in parts:
        alone, sequel = decisions.copy(), decisions.copy()
        for piece in parts_of(n, m):
            alone[piece] = problem.solved(decisions, piece)[piece]
            before = problem.error(sequel)
            problem.solve(sequel, piece)
            if problem.error(sequel) > before * (1 + SLACK):
                print(f"  part {piece[0]} raised the objective")
        print(f"  {m:2} parts: independent {scale * problem.error(alone):.4g}, one after the other {scale * problem.error(sequel):.4g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="?", help=".npz with observations and actions; without it, made up")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--start-rows", type=int, default=0)
    parser.add_argument("--rule-rows", type=int, default=0)
    parser.add_argument("--problems", type=int, default=40)
    parser.add_argument("-k", type=float, default=1e-6)
    arguments = parser.parse_args()
    tally = Tally()
    check_small(arguments.problems, tally)
    one_at_a_time()
    k = arguments.k
    # The ridge of these rows alone, and the one they meet in a fit of 5000 rows.
    for n_samples in (arguments.rows, 5000):
        measure(*load(arguments.data, arguments.rows), k * n_samples)
    if arguments.start_rows:
        starts(*load(arguments.data, arguments.start_rows), k * arguments.start_rows)
    if arguments.rule_rows:
        rules(*load(arguments.data, arguments.rule_rows), k * arguments.rule_rows)
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
