"""Section 3: what a fit without the N×N matrix really occupies."""

from markdown import mebibytes, number, spread


def measure(page, plan):
    if not plan.argwhy:
        return
    page.heading("Memory without the kernel matrix")
    n_samples = plan.tiled_size
    if n_samples > plan.n_rows:
        page.paragraph(f"Skipped: the data has {plan.n_rows} rows, not {n_samples}.")
        return
    fit = plan.fit(n_samples, "--operator", "tiled")
    if fit.answer is None:
        page.paragraph(f"Failed: {fit.failure}")
        return
    page.table(
        ["N", "command", "seconds", "peak, as reported, MiB", "peak RSS of the process, MiB", "relative gap", "status"],
        [
            [
                n_samples,
                "argwhy fit --operator tiled",
                spread([fit.answer["seconds"]]),
                mebibytes([fit.answer["peak_memory_bytes"]]),
                mebibytes([fit.peak_bytes]),
                number(fit.answer["relative_gap"], 2),
                fit.answer["status"],
            ]
        ],
    )
    page.paragraph(f"For comparison, by arithmetic: the float64 kernel matrix alone has {8 * n_samples**2 / 2**20:.0f} MiB.")
