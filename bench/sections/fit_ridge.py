"""Section 2: argwhy against scikit-learn's kernel ridge regression, the same problem without its constraints."""

from markdown import best_dual, mebibytes, number, relative_excess, spread, times

HEADER = ["N", "program", "fit s", "whole process s", "peak RSS MiB", "(9)", "primal", "relative gap", "beyond limits", "slower"]


def measure(page, plan):
    page.heading("Training: scikit-learn KernelRidge")
    rows = []
    for n_samples in plan.ridge_sizes:
        fits, ridges = [], {"float64": [], "float32": []}
        for _ in range(plan.repeats):  # interleaved, so that a slow minute of the machine hits all alike
            if plan.argwhy:
                fits.append(plan.fit(n_samples))
            for dtype, runs in ridges.items():
                runs.append(plan.peer("kernel_ridge.py", *plan.problem(n_samples), "--dtype", dtype))
        if fits:
            rows.append(argwhy_row(n_samples, fits))
        for dtype, runs in ridges.items():
            quality = plan.peer("kernel_ridge_quality.py", *plan.problem(n_samples), "--dtype", dtype)
            rows.append(ridge_row(n_samples, dtype, runs, quality, fits))
    page.table(HEADER, rows)
    page.paragraph(
        "KernelRidge solves the problem without limits (`alpha = kN`, same kernel, same features, computed beforehand). *fit s*: "
        "argwhy's own `seconds`; the call of `fit`. *(9)*: the optimal value of the paper's (9); for KernelRidge, which ignores the "
        "limits, a lower bound on it. *primal*: what training minimises, in float64, at the coefficients each returns. *relative "
        "gap*: argwhy's certificate; for KernelRidge its primal against argwhy's lower bound. *beyond limits*: decisions on the "
        "training rows the model wants beyond a limit (argwhy's stay inside when it decides). *slower*: ratio of *fit s*."
    )


def argwhy_row(n_samples, fits):
    good = [f for f in fits if f.answer]
    if not good:
        return [n_samples, "argwhy fit", "–", "–", "–", "–", "–", "–", fits[0].failure, "–"]
    last = good[-1].answer
    status = "" if last["status"] == "solved" else f" ({last['status']})"
    return [
        n_samples,
        "argwhy fit" + status,
        spread(seconds(fits)),
        spread([f.wall for f in good]),
        mebibytes([f.peak_bytes for f in good]),
        number(last["objective"], 8),
        number(last["primal"], 6),
        number(last["relative_gap"], 2),
        "–",
        "1×",
    ]


def ridge_row(n_samples, dtype, runs, quality, fits):
    name = f"KernelRidge, {dtype}"
    good = [r for r in runs if r.answer]
    if not good:
        return [n_samples, name, "–", "–", "–", "–", "–", "–", runs[0].failure, "–"]
    q = quality.answer or {}
    warned = " (fell back to least squares)" if good[-1].answer["fell_back"] else ""
    return [
        n_samples,
        name + warned,
        spread([r.answer["fit_seconds"] for r in good]),
        spread([r.wall for r in good]),
        mebibytes([r.peak_bytes for r in good]),
        number(q.get("objective"), 8),
        number(q.get("primal"), 6),
        relative_excess(q.get("primal"), best_dual(fits)),
        f"{q['outside']} of {q['entries']}" if q else quality.failure,
        times([r.answer["fit_seconds"] for r in good], seconds(fits)),
    ]


def seconds(fits):
    return [f.answer["seconds"] for f in fits if f.answer]
