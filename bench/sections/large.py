"""Section 5: the size the paper needed up to 256 GB for, inside a memory limit."""

import re

from markdown import mebibytes, number
from plan import LARGE

LIMITS = {"2GiB": 2 * 2**30, "16GiB": 16 * 2**30}
HEADER = [
    "data", "N", "features", "k", "--memory", "kernel", "seconds", "steps", "products", "relative gap", "planned MiB", "peak RSS MiB",
    "limit kept", "status",
]  # fmt: skip
# "…; kernel stored in f32, 1.9GiB of 2GiB memory, about 3 minutes"
PLANNED = re.compile(r"; (?:kernel )?([^;]+?), ([\d.]+) ?([KMGT]i)?B of ")
UNITS = {None: 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def measure(page, plan):
    if not plan.argwhy:
        return
    page.heading(f"{plan.sizes.large:,} samples inside a memory limit")
    if plan.large_folder is None:
        page.paragraph("Left out: needs `--large DIR` with " + " and ".join(f"`{name}`" for name, _ in LARGE.values()) + ".")
        return
    rows = []
    for name in LARGE:
        data = plan.large(name)
        if data is None:
            page.paragraph(f"{name} left out: `{LARGE[name][0]}` is not in the folder of `--large`.")
            continue
        n_samples = min(plan.sizes.large, data.n_rows)
        for limit, limit_bytes in LIMITS.items():
            fit = plan.fit_halves_once(data, n_samples, "--memory", limit)
            rows.append(fit_row(name, n_samples, data.k, limit, limit_bytes, fit))
            if fit.peak_bytes > limit_bytes:
                plan.runner.failures.append(f"{name}, N = {n_samples}: {fit.peak_bytes} bytes under --memory {limit}")
    page.table(HEADER, rows)
    page.paragraph(
        "Each once. Rolled out by teachers, half medium and half expert, decisions with noise, as the paper's medium-expert "
        "tasks; degree-2 features, limits ±1, tolerance 1e-6. *kernel*: the way argwhy chose under the limit, as it says "
        "beforehand with the memory it *planned*. *peak RSS*: of the process, by the operating system. For comparison, by "
        f"arithmetic: the float64 kernel matrix alone has {8 * plan.sizes.large**2 / 2**30:.1f} GiB."
    )


def fit_row(name, n_samples, k, limit, limit_bytes, fit):
    kept = "yes" if fit.peak_bytes <= limit_bytes else "**no**"
    kernel, planned = plan_of(fit)
    start = [name, n_samples]
    if fit.answer is None:
        return [*start, "–", f"{k:g}", limit, kernel, "–", "–", "–", "–", planned, mebibytes([fit.peak_bytes]), kept, fit.failure]
    a = fit.answer
    return [
        *start,
        a["feature_dim"],
        f"{k:g}",
        limit,
        kernel,
        number(a["seconds"], 4),
        a["iterations"],
        a["kernel_products"],
        number(a["relative_gap"], 2),
        planned,
        number(fit.peak_bytes / 2**20, 4),
        kept,
        a["status"],
    ]


def plan_of(fit):
    """How the kernel is held and the memory that takes: from the answer, else from stderr."""
    a = fit.answer or {}
    found = PLANNED.search(fit.messages)
    kernel = a.get("kernel") or a.get("tier") or a.get("operator") or (found.group(1) if found else "–")
    planned = a.get("planned_memory_bytes")
    if planned is None and found:
        planned = float(found.group(2)) * UNITS[found.group(3)]
    return kernel, number(planned / 2**20, 4) if planned else "–"
