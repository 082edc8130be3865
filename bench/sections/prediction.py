"""Section 4: one decision, and ten thousand."""

from markdown import number, spread


def measure(page, plan):
    page.heading("Prediction")
    n_samples = plan.prediction_size
    rows = []
    if plan.argwhy:
        rows.append(argwhy_row(plan, n_samples))
    size = [*plan.problem(n_samples), "--calls", plan.prediction_calls, "--batch", plan.prediction_batch]
    for way in ("features", "signals", "quadprog"):
        rows.append(peer_row(plan, way, plan.peer("kernel_ridge_predict.py", *size, "--way", way)))
    page.table(
        ["program", "support", "one decision, p50 µs", "p99 µs", "batch, µs a decision", "batch, µs a decision × cores"], rows
    )
    page.paragraph(
        f"Models fitted on {n_samples} rows. *argwhy*: `argwhy bench MODEL`, which reports its batch per core. *features*: "
        f"`KernelRidge.predict` on ready features, clipped to the limits. *signals*: the same from the raw signal "
        f"(PolynomialFeatures, z-score, clip). *quadprog*: the paper's way, `rbf_kernel` for the row and a quadratic program for "
        f"the limits, features ready. One decision: {plan.prediction_calls} calls. Batch: {plan.prediction_batch} rows in one call "
        f"(quadprog: one kernel call, then a program for each row), median of 3, wall clock."
    )


def argwhy_row(plan, n_samples):
    model = plan.model(n_samples)
    if not model.exists():
        plan.fit(n_samples)
    result = plan.runner.run([plan.argwhy, "bench", model, "--json"])
    if result.answer is None:
        return ["argwhy", "–", "–", "–", "–", result.failure]
    a = result.answer
    return [
        "argwhy",
        a.get("n_support"),
        number(a.get("single_us_p50"), 3),
        number(a.get("single_us_p99"), 3),
        "–",
        number(a.get("batch_us_core"), 3),
    ]


def peer_row(plan, way, result):
    name = {"features": "KernelRidge, features", "signals": "KernelRidge, signals", "quadprog": "rbf_kernel + quadprog"}[way]
    if result.answer is None:
        return [name, "–", "–", "–", "–", result.failure]
    a = result.answer
    batch = a["batch_us"]
    return [
        name,
        a["n_support"],
        number(a["single_us_p50"], 3),
        number(a["single_us_p99"], 3),
        spread(batch),
        spread([b * plan.runner.cores for b in batch]),
    ]
