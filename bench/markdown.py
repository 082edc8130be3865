"""The page, and how numbers are printed on it.

Medians with their range, four significant digits, never more than measured.
"""

import statistics


class Page:
    def __init__(self):
        self.parts = []

    def title(self, text):
        self.parts.append(f"# {text}")

    def heading(self, text):
        self.parts.append(f"## {text}")

    def paragraph(self, text):
        self.parts.append(text)

    def items(self, lines):
        self.parts.append("\n".join(f"* {line}" for line in lines))

    def code(self, lines):
        self.parts.append("```\n" + "\n".join(lines) + "\n```")

    def table(self, header, rows):
        lines = [header, ["---"] * len(header), *rows]
        self.parts.append("\n".join("| " + " | ".join(cell(c) for c in line) + " |" for line in lines))

    def text(self):
        return "\n\n".join(self.parts) + "\n"


def cell(value):
    return "" if value is None else str(value).replace("|", "\\|").replace("\n", " ")


def number(value, digits=4):
    """`digits` significant digits without an exponent between 1e-3 and 1e6."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - exponent(value))
        return f"{value:.{decimals}f}"
    return f"{value:.{digits - 1}e}"


def exponent(value):
    return int(f"{abs(value):e}".split("e")[1])


def spread(values, digits=3):
    """Median [smallest, largest]; a single measurement stands alone."""
    if not values:
        return "–"
    if len(values) == 1:
        return f"{number(values[0], digits)} (once)"
    return f"{number(statistics.median(values), digits)} [{number(min(values), digits)}, {number(max(values), digits)}]"


def mebibytes(values):
    return spread([v / 2**20 for v in values], 4) if values else "–"


def times(numerator, denominator):
    """How many times larger the median of one list is than that of the other."""
    if not numerator or not denominator:
        return "–"
    return f"{number(statistics.median(numerator) / statistics.median(denominator), 3)}×"


def relative_excess(primal, dual):
    """How far a primal value is above a certified lower bound, as argwhy defines a relative gap."""
    if primal is None or dual is None:
        return "–"
    excess = (primal - dual) / max(abs(primal), abs(dual))
    return number(excess, 2) + (" (below argwhy's bound: one of them is wrong)" if excess < -1e-8 else "")


def best_dual(fits):
    """The largest lower bound any of argwhy's fits proved."""
    return max((f.answer["dual"] for f in fits if f.answer), default=None)
