"""What the f64 kernels of crates/cuda compute: run on the CPU by kernels/emulate.h."""

import importlib.util
import pathlib
import platform
import shutil

import numpy as np
import pytest

KERNELS = pathlib.Path(__file__).resolve().parents[2] / "crates" / "cuda" / "kernels"
TILE = 64
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.system() != "Linux" or shutil.which("c++") is None,
    reason="needs a C++ compiler for x86-64",
)
random = np.random.default_rng(0)


def load():
    spec = importlib.util.spec_from_file_location("emulate", KERNELS / "emulate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


emulate = load()
u64 = emulate.u64
RBF, LAPLACE, MATERN52 = 0, 1, 3


def blocks(count, each=256):
    return (-(-count // each),)


def up(count, to):
    return -(-count // to) * to


def off(found, expected):
    return abs(found - expected).max() / abs(expected).max()


def gram(a, b, kind, rate):
    difference = a[:, None] - b[None]
    if kind == LAPLACE:
        return np.exp(-rate * abs(difference).sum(-1))
    square = rate * (difference**2).sum(-1)
    if kind == RBF:
        return np.exp(-square)
    root = np.sqrt(square)
    return (1 + root + root**2 / 3) * np.exp(-root)


def centred(kernels, x):
    """Padded features, their norms and the length of a row."""
    n, d = x.shape
    padded, pitch = up(n, 128), up(d, 16)
    features, norms = np.zeros((padded, pitch)), np.zeros(padded)
    kernels("centre", blocks(padded), 256, x, np.zeros(d), features, norms, u64(n), u64(padded), d, pitch)
    return features, norms, pitch


def strips(kernels, rows, n_rows, columns, n, v, terms, same):
    width, strip = v.shape[1], up(-(-n // 16), TILE)
    count = -(-n // strip)
    partials = np.full((count, n_rows, width), 7.0)
    kernels("exact_tensor", (-(-n_rows // 128), count), 256, rows[0], rows[1], u64(n_rows), columns[0], columns[1], u64(n),
            v, partials, columns[2], width, 0, width, u64(strip), same, terms)  # fmt: skip
    return partials.sum(0)


def pairs(kernels, samples, n, v, terms, batch, panel=None):
    """K v by pairs of groups, `batch` a launch, from panels of so many groups or from one."""
    width, groups = v.shape[1], -(-n // 512)
    features, norms, pitch = samples
    panel = panel or groups
    # Copies, so that a kernel which read beyond its panel would read something else.
    panels = [features[i * 512 : (i + panel) * 512].copy() for i in range(0, groups, panel)]
    of_rows, of_columns = (np.full((batch * groups * 512, width), 7.0) for _ in range(2))
    out = np.zeros((n, width))
    for first in range(0, groups, batch):
        last = min(first + batch, groups)
        for p in range(first // panel, -(-last // panel)):
            a, a_end = max(p * panel, first), min((p + 1) * panel, last)
            for q in range(p, len(panels)):
                b, b_end = max(q * panel, a), min((q + 1) * panel, groups)
                kernels("exact_pairs", (a_end - a, b_end - b), 256, panels[p], u64(p * panel * 512), panels[q],
                        u64(q * panel * 512), norms, u64(n), v, of_rows, of_columns, pitch, width, 0, width, groups,
                        first, a, b, terms)  # fmt: skip
        kernels("add_pairs", blocks((n - first * 512) * width), 256, of_rows, of_columns, out, u64(n), width, 0, width,
                groups, first, last - first)  # fmt: skip
    return out


@pytest.mark.parametrize(("width", "single", "kind"), [(4, 0, MATERN52), (4, 1, RBF), (8, 0, RBF), (8, 1, RBF)])
def test_exact_products_on_the_tensor_cores_agree_with_the_definition(tmp_path, width, single, kind):
    kernels = emulate.Emulated("exact_tensor.cu", tmp_path, WIDTH=width, SINGLE=single)
    for n, d, batch in [(600, 5, 1), (1060, 20, 2)]:
        x, v, terms = random.normal(size=(n, d)), random.normal(size=(n, width - 1)), emulate.Terms(kind, 1 / d)
        others = random.normal(size=(133, d))
        samples, rows = centred(kernels, x), centred(kernels, others)
        expected = gram(x, x, kind, 1 / d) @ v
        found = pairs(kernels, samples, n, v, terms, batch)
        assert off(found, expected) < 1e-14
        for panel in (1, 2):
            assert (pairs(kernels, samples, n, v, terms, batch, panel) == found).all(), "streamed: other bits"
        assert off(strips(kernels, samples, n, samples, n, v, terms, 1), expected) < 1e-14
        between = strips(kernels, rows, 133, samples, n, v, terms, 0)
        assert off(between, gram(others, x, kind, 1 / d) @ v) < 1e-14


@pytest.mark.parametrize(("distances", "kind"), [(1, RBF), (3, LAPLACE)])
def test_values_by_differences_agree_with_the_definition(tmp_path, distances, kind):
    kernels = emulate.Emulated("exact.cu", tmp_path, DISTANCES=distances)
    n, d, width, strip = 210, 19, 5, 64
    x, others, v = random.normal(size=(n, d)), random.normal(size=(77, d)), random.normal(size=(n, width))
    terms = emulate.Terms(kind, 0.1, linear=0.3, constant=0.2)

    def values(a, b):
        return gram(a, b, kind, 0.1) + 0.3 * a @ b.T + 0.2

    count = -(-n // strip)
    partials, out = np.zeros((count, 77, width)), np.zeros((77, width))
    kernels("exact_product", (2, count), 256, others, u64(77), x, u64(n), v, partials, d, width, 0, width, u64(strip), terms)
    kernels("sum_strips", blocks(77 * width), 256, partials, out, u64(77), width, 0, width, count)
    assert off(out, values(others, x) @ v) < 1e-14
    picked, columns = np.array([3, 100, 209, 0]), np.array([5, 6, 200])
    wide, block = np.zeros((4, 256)), np.zeros((4, 3), np.float32)
    rows = picked.astype(np.uint64)
    kernels("rows_f64", (4, 1), 256, x, rows, None, wide, u64(256), u64(n), d, 4, terms)
    kernels("rows_f32", (1, 1), 256, x, rows, columns.astype(np.uint64), block, u64(3), u64(3), d, 4, terms)
    assert off(wide[:, :n], values(x[picked], x)) < 1e-14 and (wide[:, n:] == 0).all()
    assert off(block, values(x[picked], x[columns])) < 1e-6


@pytest.fixture(scope="module")
def factor(tmp_path_factory):
    return emulate.Emulated("factor.cu", tmp_path_factory.mktemp("factor"))


@pytest.mark.parametrize("weighted", [False, True])
def test_conjugate_gradients_step_by_step(tmp_path, weighted):
    """Three systems, of which the second leaves early, against their solutions."""
    kernels = emulate.Emulated("descent.cu", tmp_path)
    n, count, ridge = 1500, 3, 0.05
    n_blocks = -(-n // 1024)
    x, roots = random.normal(size=(n, 2)), 0.5 + random.random(n) if weighted else np.ones(n)
    k = gram(x, x, RBF, 0.5)
    mask = (random.random((count, n)) < 0.8).astype(np.uint8)
    b = random.normal(size=(count, n)) * mask
    low = k[:, :40] @ np.linalg.inv(np.linalg.cholesky(k[:40, :40] + 1e-9 * np.eye(40)).T)

    def matrix(j, k):
        free = mask[j].astype(float)
        return (roots * free)[:, None] * k * (roots * free) + ridge * np.eye(n)

    inverses = [np.linalg.inv(matrix(j, low @ low.T)) for j in range(count)]
    residual, found, image = b.copy(), np.zeros((count, n)), np.zeros((count, n))
    p, rho, taking_part = np.zeros((count, n)), np.zeros(count), [0, 1, 2]
    for step in range(60):
        if step == 2:
            taking_part = [0, 2]
            residual, p, rho = (np.ascontiguousarray(a[[0, 2]]) for a in (residual, p, rho))
        m = len(taking_part)
        numbers, grid = np.array(taking_part, np.int32), (n_blocks, m)
        z = np.ascontiguousarray([inverses[j] @ r for j, r in zip(taking_part, residual)])
        partials, beta, columns = np.full((2 * m, n_blocks), 7.0), np.zeros(m), np.full((n, m), 7.0)
        kernels("inner_products", grid, 256, residual, z, partials, u64(n), n_blocks)
        kernels("turn_factors", (m,), 256, partials, n_blocks, rho, beta, int(step == 0))
        assert off(rho, (residual * z).sum(1)) < 1e-13
        kernels("turn", grid, 256, z, beta, roots, int(weighted), p, columns, u64(n), m)
        assert (columns == (roots * p).T).all()
        product, full, lengths, report = k @ columns, np.zeros((m, n)), np.zeros(m), np.zeros((m, 3))
        kernels("curve", grid, 256, product, roots, int(weighted), p, mask, numbers, ridge, full, partials, u64(n), m, n_blocks)
        kernels("step_lengths", (m,), 256, partials, n_blocks, rho, lengths, report)
        expected = [r @ matrix(j, k) @ r for j, r in zip(taking_part, p)]
        assert off(report[:, 0], np.array(expected)) < 1e-12 and off(report[:, 1], (p * p).sum(1)) < 1e-13
        kernels("take_step", grid, 256, full, p, mask, numbers, lengths, ridge, residual, found, image, partials, u64(n), n_blocks)
        kernels("squared_residuals", (m,), 256, partials, n_blocks, report)
        assert off(report[:, 2], (residual * residual).sum(1)) < 1e-13
    for j in (0, 2):
        assert off(found[j], np.linalg.solve(matrix(j, k), b[j])) < 1e-9
    assert off(image, (roots * found) @ k * roots) < 1e-10

    # A direction along which nothing curves upwards is not followed, and neither is one without
    # numbers.
    before = [a.copy() for a in (residual, found, image)]
    for bad in (-1e3, np.nan):
        kernels("curve", grid, 256, np.full((n, m), bad) * columns, roots, int(weighted), p, mask, numbers, ridge, full, partials,
                u64(n), m, n_blocks)  # fmt: skip
        kernels("step_lengths", (m,), 256, partials, n_blocks, rho, lengths, report)
        assert (lengths == 0).all() and not (report[:, 0] > 0).any()
        kernels("take_step", grid, 256, full, p, mask, numbers, lengths, ridge, residual, found, image, partials, u64(n), n_blocks)
    features = np.zeros((n, 2))
    kernels("beside", blocks(n), 256, np.ones(n), roots, int(weighted), features, u64(n), 1, 2)
    assert (features[:, 1] == 1 / roots).all() and (features[:, 0] == 0).all()
    assert all((a == b).all() for a, b in zip(before, (residual, found, image)))


class Rows:
    """B of `rank` rows over n samples, as the GPU holds it and in f64."""

    def __init__(self, n, rank):
        self.n, self.rank, self.pitch, self.side = n, rank, up(n, TILE), up(rank, TILE)
        self.held = np.zeros((self.side, self.pitch), np.float32)
        self.held[:rank, :n] = random.normal(size=(rank, n))
        self.exact = self.held[:rank, :n].astype(float)


def add_gram(factor, rows, pitch, count, matrix, sign):
    side = len(matrix)
    strip = up(-(-count // 3), 16)
    n_strips, tiles = -(-count // strip), side // TILE
    partials = np.zeros((n_strips, side, side))
    factor("gram_partials", (tiles, tiles, n_strips), 128, rows, u64(pitch), u64(count), u64(strip), partials, side)
    factor("add_gram", blocks(side * side), 256, partials, matrix, side, n_strips, float(sign))


def swept(factor, matrix, rank, shift):
    """-(matrix + shift)^-1, and whether that failed: beside another, which is not to matter."""
    side, tiles = len(matrix), len(matrix) // TILE
    out, pivots, failed = np.full((3, side, side), 7.0), np.zeros((2, TILE, TILE)), np.zeros(2, np.int32)
    old, new = np.zeros((2, side, TILE)), np.zeros((2, side, TILE))
    owners = np.array([2, 0], np.int32)
    factor("shifted", blocks(side * side), 256, matrix, out[2], side, rank, shift)
    out[0] = np.eye(side) * 4
    for k in range(tiles):
        factor("sweep_pivot", (2,), 256, out, owners, side, k, pivots, failed)
        factor("sweep_panel", (tiles, 2), 128, out, owners, side, k, pivots, old, new)
        factor("sweep_rest", (tiles, tiles, 2), 128, out, owners, side, k, pivots, old, new)
    assert (out[0] == np.eye(side) / -4).all() and not failed[1] and (out[1] == 7).all()
    return np.ascontiguousarray(out[2]), bool(failed[0])


@pytest.mark.parametrize(("n", "rank"), [(600, 150), (333, 64)])
def test_the_preconditioner_follows_the_free_samples(factor, n, rank):
    b, ridge = Rows(n, rank), 0.7
    matrix = np.zeros((b.side, b.side))
    add_gram(factor, b.held, b.pitch, up(n, 16), matrix, 1)
    assert off(matrix[:rank, :rank], b.exact @ b.exact.T) < 1e-14
    bound = np.arange(3, n, 5)
    width = up(len(bound), 16)
    gathered = np.zeros((b.side, width), np.float32)
    numbers = bound.astype(np.uint64)
    factor("gather_f32", (-(-width // 128), rank), 128, b.held, u64(b.pitch), numbers, u64(len(bound)), u64(width), gathered, u64(width))
    add_gram(factor, gathered, width, width, matrix, -1)
    free = b.exact.copy()
    free[:, bound] = 0
    assert off(matrix[:rank, :rank], free @ free.T) < 1e-14 and (matrix == matrix.T).all()
    inverse, failed = swept(factor, matrix, rank, ridge)
    expected = np.linalg.inv(free @ free.T + ridge * np.eye(rank))
    assert not failed and off(-inverse[:rank, :rank], expected) < 1e-12

    mask = np.ones((2, n), np.uint8)
    mask[:, bound] = 0
    v = np.ascontiguousarray(random.normal(size=(3, n)) * mask[0])
    n_strips = -(-n // 256)
    owners, systems = np.array([0, 1, 0], np.int32), np.array([0, 1, 1], np.int32)
    for width in (4, 8):
        out, partials = np.full((3, n), 7.0), np.zeros((n_strips, width, b.side))
        projected, weights, rows = np.zeros((width, b.side)), np.zeros((width, b.side)), 32 // width
        grid = (b.side // rows, n_strips)
        factor(f"project_{width}", grid, 256, b.held, u64(b.pitch), v, u64(n), 3, u64(256), b.side, partials)
        factor("sum_projections", blocks(projected.size), 256, partials, projected, projected.size, n_strips)
        factor("multiply_small", (b.side // 8, 3), 256, np.stack([inverse, inverse]), owners, projected, weights, b.side, 0)
        factor(f"expand_{width}", blocks(n), 256, b.held, u64(b.pitch), v, weights, mask, systems, ridge, out, u64(n), 3, b.side)
        assert off(out, (v - v @ free.T @ expected @ free) / ridge * mask[0]) < 1e-12


def smooth_rows(n, rank, kind):
    """The rows of pivoted Cholesky of a wide kernel, behind those of a linear trend."""
    x = random.normal(size=(n, 2))
    left, rows = gram(x, x, kind, 0.1), [*np.sqrt(0.05) * x.T, np.ones(n)]
    for _ in range(rank - len(rows)):
        pivot = left.diagonal().argmax()
        rows.append(left[pivot] / np.sqrt(left[pivot, pivot]))
        left = left - np.outer(rows[-1], rows[-1])
    return np.array(rows, np.float32).astype(float)


@pytest.mark.parametrize("ridge", [6e-4, 6e-6])
def test_a_trend_beside_a_wide_kernel_is_inverted_to_many_digits(factor, ridge):
    """Inverted as it is, with the trend's rows last, this preconditioner was off by 300 %."""
    n, rank, side = 600, 150, 192
    b = smooth_rows(n, rank, MATERN52)
    matrix = np.zeros((side, side))
    matrix[:rank, :rank] = b @ b.T
    inverse, failed = swept(factor, matrix, rank, ridge)
    assert not failed
    t, y, rest = np.zeros((1, side)), np.zeros((1, side)), np.zeros(side)
    v, owners, grid = np.ones(n), np.zeros(1, np.int32), (side // 8, 1)
    t[0, :rank] = b @ v
    factor("multiply_small", grid, 256, inverse, owners, t, y, side, 0)
    factor("rest_small", grid, 256, matrix, ridge, t, y, rest, side)
    expected = t[0] - matrix @ y[0] - ridge * y[0]
    assert abs(rest - expected).max() < 1e-15 * abs(matrix).max() * abs(y).max() * rank
    factor("multiply_small", grid, 256, inverse, owners, rest, y, side, 1)
    found = (v - y[0, :rank] @ b) / ridge
    assert off(ridge * found + b.T @ (b @ found), v) < 1e-5


def test_a_matrix_that_is_not_positive_definite_is_told(factor):
    assert swept(factor, -np.eye(TILE), TILE, 0.5)[1]


@pytest.mark.parametrize(("n", "rank"), [(600, 150), (333, 64)])
def test_rows_are_appended_as_pivoted_cholesky_has_them(factor, n, rank):
    b, m = Rows(n, rank), 100
    depth, pivots = up(rank, 16), random.permutation(n)[:m]
    numbers = pivots.astype(np.uint64)
    weights, columns = np.zeros((128, depth)), np.zeros((rank, m))
    factor("gather_turned", (-(-rank // 128), m), 128, b.held, u64(b.pitch), numbers, rank, weights, u64(depth))
    factor("gather_f64", (1, rank), 128, b.held, u64(b.pitch), numbers, u64(m), u64(m), columns, u64(m))
    assert (columns == b.exact[:, pivots]).all() and (weights[:m, :rank] == columns.T).all()

    panel, roots = random.normal(size=(128, b.pitch)), abs(random.normal(size=n))
    weighed = panel.copy()
    factor("weigh_panel", blocks(n), 256, weighed, u64(b.pitch), roots, numbers, u64(n), m)
    assert off(weighed[:m, :n], panel[:m, :n] * roots[pivots][:, None] * roots) < 1e-15

    left, grid = panel.copy(), (b.pitch // TILE, 2)
    factor("subtract_known", grid, 128, weights, u64(depth), b.held, left, u64(b.pitch), m, depth)
    assert off(left[:m, :n], panel[:m, :n] - weights[:m, :rank] @ b.exact) < 1e-14 and (left[m:] == panel[m:]).all()

    triangle, found = np.zeros((128, 112)), np.zeros((128, b.pitch))
    triangle[:m, :m] = np.tril(random.normal(size=(m, m)))
    factor("combine_rows", grid, 128, triangle, u64(112), panel, found, u64(b.pitch), m, 112)
    assert off(found[:m], triangle[:m, :m] @ panel[:m]) < 1e-14

    diagonal, floor = 50 * abs(random.normal(size=n)), np.full(n, 1e-3)
    expected, grown = diagonal.copy(), np.zeros((b.side + 128, b.pitch), np.float32)
    factor("append_rows", blocks(n), 256, panel, grown, u64(b.pitch), diagonal, floor, u64(n), rank, m)
    for row in panel[:m, :n]:
        expected = np.maximum(expected - row * row, 0)
    assert off(diagonal, np.where(expected < floor, 0, expected)) < 1e-14
    assert (grown[rank : rank + m, :n] == panel[:m, :n].astype(np.float32)).all()
    factor("clear_pivots", (1,), 128, diagonal, numbers, m)
    assert (diagonal[pivots] == 0).all()
