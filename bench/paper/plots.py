"""Plots as SVG, drawn by hand: a page that needs nothing but itself."""

import html
import itertools
import math

WIDTH, HEIGHT = 680, 380
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 46
# A method has one color on the whole page; other names take those that are left in a plot.
OF_METHODS = {"KIO": 0, "argwhy": 1, "fixed": 6, "cloning": 2, "teacher": 5, "IO": 3, "tune": 4,
              "KIO, better half": 6, "argwhy, better half": 7}
COLORS = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)",
          "var(--c6)", "var(--c7)", "var(--c8)"]


class Axis:
    """Numbers to places along one side, linear or logarithmic."""

    def __init__(self, values, start, stop, log=False, pad=0.04):
        values = [v for v in values if v is not None and math.isfinite(v) and (v > 0 or not log)]
        values = values or [1.0, 10.0]
        self.log, self.start, self.stop = log, start, stop
        low, high = min(map(self._of, values)), max(map(self._of, values))
        room = (high - low or 1.0) * pad
        self.low, self.high = low - room, high + room

    def _of(self, value):
        return math.log10(value) if self.log else value

    def place(self, value):
        share = (self._of(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self):
        if self.log:
            decades = range(math.ceil(self.low), math.floor(self.high) + 1)
            step = max(1, len(decades) // 7 + 1)
            return [10.0**d for d in decades if d % step == 0]
        step = 10 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (step * m) <= 7)
        first = math.ceil(self.low / step)
        return [n * step for n in range(first, math.floor(self.high / step) + 1)]


def label(value):
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e6):
        return f"1e{round(math.log10(abs(value)))}"
    return f"{value:,.10g}"


def text(x, y, words, anchor="middle", kind=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{html.escape(words)}</text>'


def frame(parts, x_axis, y_axis, x_name, y_name, x_ticks=None, below=0):
    """Grid, ticks and names around what was drawn; `below`: more room under it, for words."""
    grid = []
    for value in y_axis.ticks():
        y = y_axis.place(value)
        grid.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        short = y_axis.log and value >= 1e4  # commas would reach the axis' name
        grid.append(text(LEFT - 8, y + 4, f"{value:.0e}".replace("e+0", "e") if short else label(value), "end"))
    for value in x_axis.ticks() if x_ticks is None else x_ticks:
        x = x_axis.place(value)
        grid.append(f'<line y1="{TOP}" y2="{HEIGHT - BOTTOM}" x1="{x:.1f}" x2="{x:.1f}" class="grid"/>')
        grid.append(text(x, HEIGHT - BOTTOM + 18, label(value)))
    grid.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_name, kind="name"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    grid.append(
        f'<text transform="translate(14 {middle:.0f}) rotate(-90)" text-anchor="middle" '
        f'class="name">{html.escape(y_name)}</text>'
    )
    body = "".join([*grid, *parts])
    named = html.escape(f"{y_name} by {x_name}" if x_name else y_name)
    return (
        f'<div class="scroll"><svg viewBox="0 0 {WIDTH} {HEIGHT + below}" role="img" aria-label="{named}">'
        f"{body}</svg></div>"
    )


def colors_of(names):
    """A color for each name: no two alike while there are enough."""
    taken = {OF_METHODS[name] for name in names if name in OF_METHODS}
    left = itertools.cycle([n for n in range(len(COLORS)) if n not in taken] or range(len(COLORS)))
    return {name: COLORS[OF_METHODS[name] if name in OF_METHODS else next(left)] for name in names}


def legend(names):
    colors = colors_of(names)
    marks = "".join(
        f'<span><i style="background:{colors[name]}"></i>{html.escape(name)}</span>' for name in names
    )
    return f'<p class="legend">{marks}</p>'


def lines(series, x_name, y_name, log_x=False, log_y=False, x_ticks=None):
    """Named lines of (x, y) or (x, y, half of an interval)."""
    points = [point for of_one in series.values() for point in of_one]
    x_axis = Axis([p[0] for p in points], LEFT, WIDTH - RIGHT, log_x)
    heights = [p[1] for p in points]
    if not log_y:
        heights += [p[1] + s * p[2] for p in points if len(p) > 2 and p[2] for s in (-1, 1)]
    y_axis = Axis(heights, HEIGHT - BOTTOM, TOP, log_y)
    parts, colors = [], colors_of(series)
    for name, of_one in series.items():
        color = colors[name]
        kept = [p for p in of_one if p[1] > 0 or not log_y]
        places = [(x_axis.place(p[0]), y_axis.place(p[1])) for p in kept]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        for point, (x, y) in zip(kept, places, strict=True):
            if len(point) > 2 and point[2] and not log_y:
                low, high = y_axis.place(point[1] - point[2]), y_axis.place(point[1] + point[2])
                parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{color}"/>')
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')
    return frame(parts, x_axis, y_axis, x_name, y_name, x_ticks) + legend(series)


def bars(rows, names, y_name):
    """Groups of bars with intervals: rows of (name, {column: score or number})."""
    values = [0.0]
    for _, found in rows:
        for name in names:
            mean, half = mean_and_half(found.get(name))
            values += [] if mean is None else [mean - (half or 0), mean + (half or 0)]
    if len(values) == 1:
        return ""
    y_axis = Axis(values, HEIGHT - BOTTOM, TOP)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(rows))
    width = room * 0.8 / max(1, len(names))
    parts, zero, colors, most = [], y_axis.place(0.0), colors_of(names), 1
    # A line a word; small where there are many.
    size = min(12.0, room / 5.6)
    for place, (title, found) in enumerate(rows):
        left = LEFT + place * room + room * 0.1
        for number, name in enumerate(names):
            mean, half = mean_and_half(found.get(name))
            if mean is not None:
                parts += bar(left + number * width, width, mean, half, y_axis, zero, colors[name])
        words = title.replace(", ", "-").split("-")
        most = max(most, len(words))
        for line, word in enumerate(words):
            below = HEIGHT - BOTTOM + 16 + 14 * line
            parts.append(text(left + room * 0.4, below, word).replace("<text", f'<text style="font-size:{size:.1f}px"', 1))
    x_axis = Axis([0, 1], LEFT, WIDTH - RIGHT)
    return frame(parts, x_axis, y_axis, "", y_name, [], below=max(0, 14 * (most - 2))) + legend(names)


def bar(x, width, mean, half, y_axis, zero, color):
    y = y_axis.place(mean)
    top, height = min(y, zero), max(1.0, abs(y - zero))
    yield (
        f'<rect x="{x + 1:.1f}" y="{top:.1f}" width="{width - 2:.1f}" height="{height:.1f}" '
        f'fill="{color}"><title>{mean:.1f}</title></rect>'
    )
    if half:
        low, high = y_axis.place(mean - half), y_axis.place(mean + half)
        middle = x + width / 2
        yield f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{low:.1f}" y2="{high:.1f}" class="error"/>'


def mean_and_half(value):
    if isinstance(value, dict):
        return value["mean"], value["half"]
    return value, None


def scatter(series, x_name, y_name):
    """Named clouds of (x, y, words); no lines."""
    points = [point for of_one in series.values() for point in of_one]
    x_axis = Axis([p[0] for p in points], LEFT, WIDTH - RIGHT)
    y_axis = Axis([p[1] for p in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<circle cx="{x_axis.place(x):.1f}" cy="{y_axis.place(y):.1f}" r="4" fill-opacity="0.75" '
        f'fill="{colors_of(series)[name]}"><title>{html.escape(words)}</title></circle>'
        for name, of_one in series.items() for x, y, words in of_one
    ]
    return frame(parts, x_axis, y_axis, x_name, y_name) + legend(series)
