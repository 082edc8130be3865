"""Section 1: argwhy against CVXPY + SCS on the semidefinite program the paper states, [KIO 9]."""

from markdown import best_dual, mebibytes, number, relative_excess, spread, times

HEADER = [
    "N", "program", "fit s", "whole process s", "peak RSS MiB", "(9)", "primal", "relative gap", "violation", "status", "slower: fit",
    "whole process",
]  # fmt: skip
# SCS has a time limit of its own (peers/scs_sdp.py); this is for what comes on top.
PATIENCE = 1200.0  # seconds


def measure(page, plan):
    page.heading("Training: the paper's semidefinite program by CVXPY + SCS")
    rows = []
    for n_samples in plan.sizes.sdp:
        fits = [plan.fit(n_samples) for _ in range(plan.sizes.repeats)] if plan.argwhy else []
        sdp = plan.peer("scs_sdp.py", *plan.problem(n_samples), patience=PATIENCE)
        if fits:
            rows.append(argwhy_row(n_samples, fits))
        rows.append(sdp_row(n_samples, sdp, fits))
    page.table(HEADER, rows)
    page.paragraph(
        "*fit s*: argwhy's own `seconds`, features included; for CVXPY kernel matrix, program, compilation and solution, and "
        "in brackets SCS's own time, features ready. *peak RSS*: of the process, by the operating system. *(9)*: the optimal "
        "value of the paper's (9) as each program reports it. *primal*: what training minimises, evaluated in float64 at the "
        "coefficients each returns. *relative gap*: argwhy's certificate; for SCS its primal against argwhy's lower bound. "
        "*violation*: limits exceeded by; smallest eigenvalue of a matrix constraint (corner 1) below zero by. *slower*: "
        "ratios of *fit s* and of whole processes, argwhy's with all rows of the file read and turned into features. SCS has "
        "CVXPY's default settings and at most 300 s; the redundant constraint Λ_i ⪰ 0, which costs it time, was left out."
    )


def argwhy_row(n_samples, fits):
    good = [f for f in fits if f.answer]
    if not good:
        return [n_samples, "argwhy fit", "–", "–", "–", "–", "–", "–", "–", fits[0].failure, "–", "–"]
    last = good[-1].answer
    return [
        n_samples,
        "argwhy fit",
        spread([f.answer["seconds"] for f in good]),
        spread([f.wall for f in good]),
        mebibytes([f.peak_bytes for f in good]),
        number(last["objective"], 8),
        number(last["primal"], 6),
        number(last["relative_gap"], 2),
        "0; none",
        last["status"],
        "1×",
        "1×",
    ]


def sdp_row(n_samples, sdp, fits):
    if sdp.answer is None:
        return [n_samples, "CVXPY + SCS", "–", "–", mebibytes([sdp.peak_bytes]), "–", "–", "–", "–", sdp.failure, "–", "–"]
    a = sdp.answer
    return [
        n_samples,
        "CVXPY + SCS",
        f"{number(a['total_seconds'], 3)} [SCS {number(a['solver_seconds'], 3)}]",
        spread([sdp.wall]),
        mebibytes([sdp.peak_bytes]),
        number(a["objective"], 8),
        number(a["primal"], 6),
        relative_excess(a["primal"], best_dual(fits)),
        f"{number(a['limit_violation'], 2)}; {number(a['semidefinite_violation'], 2)}",
        f"{a['status']}, {a['iterations']} iterations",
        times([a["total_seconds"]], [f.answer["seconds"] for f in fits if f.answer]),
        times([sdp.wall], [f.wall for f in fits if f.answer]),
    ]
