"""Section 6: a product with the kernel matrix against gemm and exp for as many entries."""

import environment
from markdown import number

HEADER = [
    "precision", "d", "threads", "product", "gemm", "exp", "gemm, then exp", "product / (gemm + exp)", "of medians",
    "product / gemm, then exp",
]  # fmt: skip


def measure(page, plan):
    if not plan.argwhy:
        return
    page.heading("Kernel products: gemm and exp")
    program = environment.bench_binary(plan.runner.repository, "kernel_product")
    result = plan.runner.run([program, "--json", *(["--quick"] if plan.quick else [])])
    if result.answer is None:
        page.paragraph(f"Failed: {result.failure}")
        return
    a = result.answer
    page.table(HEADER, [row(r) for r in a["rows"]])
    page.paragraph(
        f"`cargo bench -p argwhy-core --bench kernel_product`, {a['isa']}, N = {a['n_samples']}, {a['vectors']} vectors; "
        f"core-ns an entry of the triangle, the least of {a['turns']} turns in which all are measured one after the other in "
        "one process. *product*: K·v with recomputed tiles, inner products, exponentials and the sums of both blocks a tile "
        "serves. *gemm*: faer, inner products of the same triangle in tiles that stay in cache, the best of six block sizes "
        "and layouts. *exp*: vectorised, in the first cache. *gemm, then exp*: exp on the tile gemm has just written. The "
        "peers' columns do not include the sums."
    )


def row(r):
    return [
        r["precision"],
        r["d"],
        r["threads"],
        *(number(r[name], 3) for name in ("product_ns", "gemm_ns", "exp_ns", "both_ns")),
        *(f"{r[name]:.2f}×" for name in ("ratio", "median_ratio", "ratio_both")),
    ]
