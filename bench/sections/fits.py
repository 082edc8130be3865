"""What the tables of fits share: argwhy's own row, up to what each table adds to it."""

from markdown import mebibytes, number, spread


def seconds(fits):
    """argwhy's own seconds of the fits that came to an end."""
    return [f.answer["seconds"] for f in fits if f.answer]


def status(fits):
    """How the last of them ended."""
    return next((f.answer["status"] for f in reversed(fits) if f.answer), "–")


def argwhy_row(n_samples, fits, width, *rest):
    """A line of `width` cells.

    N, program, fit s, whole process s, peak RSS MiB, (9), primal, relative gap, then `rest`.
    """
    good = [f for f in fits if f.answer]
    if not good:
        return [n_samples, f"argwhy fit: {fits[0].failure}"] + ["–"] * (width - 2)
    last = good[-1].answer
    row = [
        n_samples,
        "argwhy fit" if last["status"] == "solved" else f"argwhy fit ({last['status']})",
        spread(seconds(fits)),
        spread([f.wall for f in good]),
        mebibytes([f.peak_bytes for f in good]),
        number(last["objective"], 8),
        number(last["primal"], 6),
        number(last["relative_gap"], 2),
        *rest,
    ]
    assert len(row) == width, row
    return row
