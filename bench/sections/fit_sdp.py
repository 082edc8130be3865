"""Section 1: argwhy against CVXPY + SCS on the semidefinite program the paper states, [KIO 9]."""

from markdown import best_dual, mebibytes, number, relative_excess, spread, times

from sections.fits import argwhy_row, seconds, status

HEADER = [
    "N", "program", "fit s", "whole process s", "peak RSS MiB", "(9)", "primal", "relative gap", "violation", "status", "slower: fit",
    "whole process",
]  # fmt: skip
# SCS has a time limit of its own (peers/scs_sdp.py); this is for what comes on top.
PATIENCE = 1200.0  # seconds
# Fits as short as these are measured so many times more often.
SHORT = 3


def measure(page, plan):
    page.heading("Training: the paper's semidefinite program by CVXPY + SCS")
    rows = []
    for n_samples in plan.sizes.sdp:
        # A fit is over in the blink of an eye and the program takes seconds: half of the fits
        # before it and half after, so that a slow moment of the machine decides nothing.
        half = SHORT * plan.sizes.repeats if plan.argwhy else 0
        fits = [plan.fit(n_samples) for _ in range(half)]
        sdp = plan.peer("scs_sdp.py", *plan.problem(n_samples), patience=PATIENCE)
        fits += [plan.fit(n_samples) for _ in range(half)]
        if fits:
            rows.append(argwhy_row(n_samples, fits, len(HEADER), "0; none", status(fits), "1×", "1×"))
        rows.append(sdp_row(n_samples, sdp, fits))
    page.table(HEADER, rows)
    page.paragraph(
        "*fit s*: argwhy's own `seconds`, features included; for CVXPY kernel matrix, program, compilation and solution, and "
        "in brackets SCS's own time, features ready. *peak RSS*: of the process, by the operating system. *(9)*: the optimal "
        "value of the paper's (9) as each program reports it. *primal*: what training minimises, evaluated in float64 at the "
        "coefficients each returns. *relative gap*: argwhy's certificate; for SCS its primal against argwhy's lower bound. "
        "*violation*: limits exceeded by (argwhy's responses are projections on the limits); smallest eigenvalue of a matrix constraint (corner 1) below zero by. *slower*: "
        "ratios of *fit s* and of whole processes, argwhy's with all rows of the file read and turned into features. SCS has "
        "CVXPY's default settings and at most 300 s; the redundant constraint Λ_i ⪰ 0, which costs it time, was left out."
    )


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
        times([a["total_seconds"]], seconds(fits)),
        times([sdp.wall], [f.wall for f in fits if f.answer]),
    ]
