"""Section 3: argwhy against scikit-learn's kernel ridge and support vector regression."""

from markdown import best_dual, mebibytes, number, relative_excess, spread, times
from plan import HELD_OUT

from sections.fits import argwhy_row, seconds

HEADER = [
    "N", "program", "fit s", "whole process s", "peak RSS MiB", "(9)", "primal", "relative gap", "beyond limits", "RMSE, new rows",
    "slower",
]  # fmt: skip
# Up to so many samples everything but SVR is measured several times.
REPEATED = 10000
RIDGE_PATIENCE = 1800.0  # seconds


def measure(page, plan):
    page.heading("Training: scikit-learn KernelRidge and SVR")
    rows = []
    for n_samples in plan.sizes.regression:
        if not plan.enough_rows(n_samples):
            page.paragraph(f"N = {n_samples} left out: the data has {plan.n_rows} rows, of which {HELD_OUT} are kept apart.")
            continue
        fits, ridges = [], {"float64": [], "float32": []}
        # Interleaved, so that a slow minute of the machine hits all alike.
        for _ in range(plan.sizes.repeats if n_samples <= REPEATED else 1):
            if plan.argwhy:
                fits.append(plan.fit(n_samples))
            for dtype, runs in ridges.items():
                arguments = [*plan.problem(n_samples), "--dtype", dtype]
                runs.append(plan.peer("kernel_ridge.py", *arguments, patience=RIDGE_PATIENCE))
        if fits:
            rows.append(argwhy_row(n_samples, fits, len(HEADER), "–", argwhy_error(plan, n_samples), "1×"))
        for dtype, runs in ridges.items():
            rows.append(peer_row(plan, n_samples, f"KernelRidge, {dtype}", runs, fits, f"ridge-{n_samples}-{dtype}.npy"))
        for setting, name in (("matched", "SVR, C = 1/(2kN)"), ("default", "SVR, C = 1")):
            arguments = [*plan.problem(n_samples), "--setting", setting]
            run = plan.peer("svr.py", *arguments, patience=plan.sizes.svr_patience)
            rows.append(peer_row(plan, n_samples, name, [run], fits, f"svr-{n_samples}-{setting}.npz"))
    page.table(HEADER, rows)
    page.paragraph(
        "KernelRidge solves the problem without limits (`alpha = kN`, same kernel, same features, computed beforehand). SVR "
        "has another loss (ε = 0.1, scikit-learn's default) and an intercept; with C = 1/(2kN) it weighs simplicity as argwhy "
        "does, C = 1 is scikit-learn's default. One SVR a dimension, side by side on all cores, 1000 MB of cache each, stopped "
        f"after {plan.sizes.svr_patience:.0f} s. *fit s*: argwhy's own `seconds`, from raw signals; the call of `fit`. *(9)*: "
        "the optimal value of the paper's (9); for KernelRidge, which ignores the limits, a lower bound on it. *primal*: what "
        "training minimises, in float64, at the coefficients each returns (SVR's intercept costs it nothing). *relative gap*: "
        "argwhy's certificate; for the peers their primal against argwhy's lower bound, which SVR does not try to meet. "
        "*beyond limits*: decisions on the training rows the model wants beyond a limit (argwhy's stay inside when it "
        f"decides). *RMSE, new rows*: error of the decisions, brought inside the limits, on the last {HELD_OUT} rows of the "
        "data, which none was trained on; k is the paper's, for control, and not tuned for this error. *slower*: ratio of *fit "
        "s*."
    )


def argwhy_error(plan, n_samples):
    """The error of argwhy's decisions on the rows kept apart, judged as the others' are."""
    out = f"decided-{n_samples}.npy"
    rows = f"{plan.n_rows - HELD_OUT}:{plan.n_rows}"
    command = [plan.argwhy, "predict", plan.model(n_samples), plan.data, "--rows", rows, "-o", plan.work / out, "--quiet"]
    decided = plan.runner.run(command, silent=True)
    if decided.answer is None:
        return decided.failure
    judged = plan.peer("judge.py", *plan.problem(n_samples), "--decided", out)
    return number(judged.answer["held_out_rmse"], 4) if judged.answer else judged.failure


def peer_row(plan, n_samples, name, runs, fits, coefficients):
    good = [r for r in runs if r.answer]
    if not good:
        return [n_samples, name, "–", "–", mebibytes([r.peak_bytes for r in runs]), "–", "–", "–", runs[0].failure, "–", "–"]
    judged = plan.peer("judge.py", *plan.problem(n_samples), "--coefficients", coefficients)
    q, last = judged.answer or {}, good[-1].answer
    warned = " (fell back to least squares)" if last.get("fell_back") else ""
    support = f" ({last['n_support']} rows carry weight)" if "n_support" in last else ""
    is_ridge = "fell_back" in last
    return [
        n_samples,
        name + warned + support,
        spread([r.answer["fit_seconds"] for r in good]),
        spread([r.wall for r in good]),
        mebibytes([r.peak_bytes for r in good]),
        number(q.get("objective"), 8) if is_ridge else "–",
        number(q.get("primal"), 6),
        relative_excess(q.get("primal"), best_dual(fits)),
        f"{q['outside']} of {q['entries']}" if q else judged.failure,
        number(q.get("held_out_rmse"), 4),
        times([r.answer["fit_seconds"] for r in good], seconds(fits)),
    ]
