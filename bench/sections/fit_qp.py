"""Section 2: argwhy against OSQP and Clarabel on [KIO 9] without its matrix constraints."""

from markdown import best_dual, mebibytes, number, relative_excess, spread, times

from sections.fits import argwhy_row, seconds, status

HEADER = ["N", "program", "fit s", "whole process s", "peak RSS MiB", "(9)", "primal", "relative gap", "violation", "status", "slower"]
SOLVERS = {"osqp": "OSQP, defaults", "osqp-1e-6": "OSQP, 1e-6", "clarabel": "Clarabel, defaults"}
# Each solve has a time limit of its own (peers/reduced_qp.py); this is for what comes on top.
PATIENCE = 1200.0  # seconds


def measure(page, plan):
    page.heading("Training: the reduced quadratic program by OSQP and Clarabel")
    rows = []
    for n_samples in plan.sizes.qp:
        fits, peers = [], {solver: [] for solver in SOLVERS}
        for _ in range(plan.sizes.repeats):  # interleaved, so that a slow minute of the machine hits all alike
            if plan.argwhy:
                fits.append(plan.fit(n_samples))
            for solver, runs in peers.items():
                runs.append(plan.peer("reduced_qp.py", *plan.problem(n_samples), "--solver", solver, patience=PATIENCE))
        if fits:
            rows.append(argwhy_row(n_samples, fits, len(HEADER), "0", status(fits), "1×"))
        rows += [qp_row(n_samples, SOLVERS[solver], runs, fits) for solver, runs in peers.items()]
    page.table(HEADER, rows)
    page.paragraph(
        "The program in N × dimensions variables, limits alone as constraints, by the solvers' own Python interfaces; the form "
        "that suits them best (`peers/reduced_qp.py`). *fit s*: argwhy's own `seconds`, from raw signals; for the peers setup "
        "and solution of all dimensions, kernel matrix and program ready before the clock starts. *peak RSS*: the whole "
        "process, making the matrix included. *(9)*: the value of the paper's (9) at the solution. *primal*: what training "
        "minimises, evaluated in float64 at the coefficients. *relative gap*: argwhy's certificate; for the peers primal "
        "against argwhy's lower bound, never below what that leaves open. *violation*: limits exceeded by (argwhy's responses are projections on the limits). *1e-6*: eps_abs = "
        "eps_rel = 1e-6 and at most 100,000 iterations instead of 1e-3 and 4000: at its defaults OSQP leaves the limits by "
        "about 1e-3. At most 300 s a dimension."
    )


def qp_row(n_samples, name, runs, fits):
    good = [r for r in runs if r.answer]
    if not good:
        return [n_samples, name, "–", "–", mebibytes([r.peak_bytes for r in runs]), "–", "–", "–", "–", runs[0].failure, "–"]
    last = good[-1].answer
    return [
        n_samples,
        name,
        spread([r.answer["solve_seconds"] for r in good]),
        spread([r.wall for r in good]),
        mebibytes([r.peak_bytes for r in good]),
        number(last["objective"], 8),
        number(last["primal"], 6),
        relative_excess(last["primal"], best_dual(fits)),
        number(last["limit_violation"], 2),
        f"{last['status']}, {last['iterations']} iterations",
        times([r.answer["solve_seconds"] for r in good], seconds(fits)),
    ]
