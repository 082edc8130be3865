"""Section 7: one decision, and ten thousand."""

from markdown import spread, times

HEADER = ["program", "support", "one decision, p50 µs", "p99 µs", "slower: one", "batch, decisions a second", "slower: batch"]
NAMES = {"features": "KernelRidge, features", "signals": "KernelRidge, signals", "quadprog": "rbf_kernel + quadprog"}


def measure(page, plan):
    page.heading("Prediction")
    n_samples = plan.sizes.prediction
    size = [*plan.problem(n_samples), "--calls", plan.sizes.prediction_calls, "--batch", plan.sizes.prediction_batch]
    ours, peers = [], {way: [] for way in NAMES}
    if plan.argwhy and not plan.model(n_samples).exists():
        plan.fit(n_samples)
    for _ in range(plan.sizes.repeats):  # interleaved, so that a slow minute of the machine hits all alike
        if plan.argwhy:
            ours.append(plan.runner.run([plan.argwhy, "bench", plan.model(n_samples), "--json"]))
        for way, runs in peers.items():
            runs.append(plan.peer("kernel_ridge_predict.py", *size, "--way", way))
    speed = speeds(ours)
    rows = [argwhy_row(ours, speed)] if ours else []
    rows += [peer_row(NAMES[way], runs, speed) for way, runs in peers.items()]
    page.table(HEADER, rows)
    if speed["one"]:
        page.paragraph(ratios(speed, peers))
    page.paragraph(
        f"Models fitted on {n_samples} rows; {plan.sizes.repeats} processes of each in turn. *argwhy*: `argwhy bench MODEL`, "
        "from the raw signal, in f64. *features*: `KernelRidge.predict` on "
        "ready features, clipped to the limits. *signals*: the same from the raw signal (PolynomialFeatures, z-score, clip). "
        "*quadprog*: the paper's way, `rbf_kernel` for the row and a quadratic program for the limits, features ready. One "
        f"decision: {plan.sizes.prediction_calls} calls (argwhy: 5000). Batch: {plan.sizes.prediction_batch} rows in one call "
        "on all cores (argwhy: 10000; quadprog: one kernel call, then a program for each row), the best of each process, of 5 "
        "by argwhy and of 3 by the peers. *slower*: than argwhy."
    )


def speeds(results):
    """Lists of p50, p99 and decisions a second in batches."""
    names = {"one": "single_us_p50", "p99": "single_us_p99", "batch": "batch_per_second"}
    return {short: [r.answer[name] for r in results if r.answer] for short, name in names.items()}


def argwhy_row(results, speed):
    answered = [r.answer for r in results if r.answer]
    if not answered:
        return ["argwhy", "–", "–", "–", "–", results[0].failure, "–"]
    return ["argwhy", answered[-1]["n_support"], spread(speed["one"]), spread(speed["p99"]), "1×", spread(speed["batch"], 4), "1×"]


def peer_row(name, runs, reference):
    good = [r.answer for r in runs if r.answer]
    if not good:
        return [name, "–", "–", "–", "–", runs[0].failure, "–"]
    one, rate = [a["single_us_p50"] for a in good], rates(good)
    return [
        name,
        good[-1]["n_support"],
        spread(one),
        spread([a["single_us_p99"] for a in good]),
        times(one, reference["one"]),
        spread(rate, 4),
        times(reference["batch"], rate),
    ]


def rates(answers):
    """The best batch of each process, as argwhy reports its own."""
    return [1e6 / min(a["batch_us"]) for a in answers]


def ratios(speed, peers):
    """The two comparisons people ask for, in words."""
    paper = [r.answer["single_us_p50"] for r in peers["quadprog"] if r.answer]
    batch = rates([r.answer for r in peers["features"] if r.answer])
    return (
        f"In f64 one decision takes the paper's way {times(paper, speed['one'])} as long as argwhy, and a batch has "
        f"{times(speed['batch'], batch)} the decisions a second of `KernelRidge.predict`."
    )
