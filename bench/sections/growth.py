"""Section 4: how time and memory of a fit grow with the number of samples."""

import math
import statistics

from markdown import mebibytes, number, spread

# What the process occupies whatever N is: the file, its features, code and threads.
TINY = 100
# Up to so many samples everything is measured several times.
REPEATED = 10000
WAYS = {"tiled": ["--operator", "tiled", "--memory", "2GiB"], "auto": ["--memory", "2GiB"]}
HEADER = [
    "N", "kernel", "seconds", "steps", "products", "core-ns an entry", "peak RSS MiB", "as reported, MiB", "relative gap", "status",
]  # fmt: skip


def measure(page, plan):
    if not plan.argwhy:
        return
    page.heading("Growth with the number of samples")
    data = plan.growing()
    tiny = plan.fit_halves(data, TINY, *WAYS["tiled"])
    rows, measured = [], {way: {} for way in WAYS}
    for n_samples in plan.sizes.growth:
        if n_samples > data.n_rows:
            page.paragraph(f"N = {n_samples} left out: the data has {data.n_rows} rows.")
            continue
        runs = {way: [] for way in WAYS}
        for _ in range(plan.sizes.repeats if n_samples <= REPEATED else 1):
            for way, options in WAYS.items():
                once = n_samples > REPEATED
                fit = plan.fit_halves_once if once else plan.fit_halves
                runs[way].append(fit(data, n_samples, *options))
        for way, fits in runs.items():
            rows.append(fit_row(plan, n_samples, way, fits))
            good = [f for f in fits if f.answer]
            if good:
                measured[way][n_samples] = (
                    statistics.median(f.answer["seconds"] for f in good),
                    statistics.median(f.peak_bytes for f in good),
                )
    page.table(HEADER, rows)
    page.paragraph(
        f"Data: {data.note}; as many rows from the beginning of either half, k = {data.k:g}. *tiled*: `--operator tiled`, "
        "kernel values computed anew for every product; *auto*: argwhy's own choice; both under `--memory 2GiB`. *core-ns an "
        "entry*: seconds × cores over products × N(N+1)/2, everything else in a fit included; a *product* is one of the kernel "
        "matrix with all vectors there are. *peak RSS*: of the process, by the operating system; *as reported*: by argwhy."
    )
    fixed = tiny.peak_bytes if tiny.answer else None
    page.table(
        ["kernel", "N", "seconds grow as", "peak memory grows as", "peak memory less a tiny fit's"],
        [exponents(way, points, fixed) for way, points in measured.items()],
    )
    base = f"{fixed / 2**20:.1f} MiB" if fixed else tiny.failure
    page.paragraph(
        "Exponents by least squares in log-log, every N once (medians). Nothing is subtracted from the peak in the first "
        f"figure; a process has a fixed part, though: the file with all its rows, code, threads. A fit of {TINY} rows of the "
        f"same file takes {base}, and the last column is the exponent of what comes on top of that. For comparison, by "
        f"arithmetic: the float64 kernel matrix alone has {8 * plan.sizes.growth[-1] ** 2 / 2**30:.2f} GiB at N = "
        f"{plan.sizes.growth[-1]}."
    )


def fit_row(plan, n_samples, way, fits):
    good = [f for f in fits if f.answer]
    if not good:
        return [n_samples, way, "–", "–", "–", "–", "–", "–", "–", fits[0].failure]
    last = good[-1].answer
    entries = n_samples * (n_samples + 1) / 2
    per_entry = [1e9 * plan.runner.cores * f.answer["seconds"] / (f.answer["kernel_products"] * entries) for f in good]
    return [
        n_samples,
        way,
        spread([f.answer["seconds"] for f in good]),
        last["iterations"],
        last["kernel_products"],
        number(statistics.median(per_entry), 3),
        mebibytes([f.peak_bytes for f in good]),
        mebibytes([f.answer["peak_memory_bytes"] for f in good]),
        number(last["relative_gap"], 2),
        last["status"],
    ]


def exponents(way, points, fixed):
    sizes = sorted(points)
    if len(sizes) < 2:
        return [way, "–", "–", "–", "–"]
    over = [points[n][1] - fixed for n in sizes] if fixed else []
    return [
        way,
        f"{sizes[0]} to {sizes[-1]}",
        power(slope(sizes, [points[n][0] for n in sizes])),
        power(slope(sizes, [points[n][1] for n in sizes])),
        power(slope(sizes, over)) if over and min(over) > 0 else "–",
    ]


def power(exponent):
    return f"N^{exponent:.2f}"


def slope(sizes, values):
    """Least squares in log-log."""
    x, y = [math.log(n) for n in sizes], [math.log(v) for v in values]
    return statistics.linear_regression(x, y).slope
