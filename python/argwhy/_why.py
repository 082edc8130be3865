"""Explanations of a model: dictionaries from Rust, a summary for notebooks."""

from __future__ import annotations

from typing import Any

from ._extras import extra


def effects(explanation: dict[str, Any], signals: Any, axes: Any) -> Any:
    """A panel a signal: its effect on what is desired and decided, with its spread."""
    chosen = _chosen(explanation, signals)
    if axes is None:
        columns = min(3, len(chosen))
        rows = -(-len(chosen) // columns)
        pyplot = extra("matplotlib.pyplot", "plot_effects", "plot")
        axes = pyplot.subplots(rows, columns, figsize=(4 * columns, 3 * rows), squeeze=False, layout="constrained")[1]
    panels = list(getattr(axes, "flat", axes))
    for panel, signal in zip(panels, chosen):
        effect = signal["effect"]
        for m, name in enumerate(explanation["decisions"]):
            known, guessed = _known(effect, m)
            (line,) = panel.plot(effect["at"], known, label=_titled(name, explanation["units"]))
            panel.plot(effect["at"], guessed, ":", color=line.get_color())
            low = [g - apart for g, apart in zip(effect["desired"][m], effect["spread"][m])]
            high = [g + apart for g, apart in zip(effect["desired"][m], effect["spread"][m])]
            panel.fill_between(effect["at"], low, high, color=line.get_color(), alpha=0.15, linewidth=0)
            if effect["decision"] is not None:
                panel.plot(effect["at"], effect["decision"][m], "--", color=line.get_color(), linewidth=1)
        # Where the data lies.
        panel.plot(effect["at"], [0.0] * len(effect["at"]), "|", color="0.6", transform=panel.get_xaxis_transform())
        panel.set_xlabel(_titled(signal["name"], explanation["units"]))
        panel.set_title(f"{100 * signal['importance']:.1f} %", fontsize="medium")
    for panel in panels[len(chosen) :]:
        panel.set_visible(False)
    if panels:
        panels[0].set_ylabel("desired, above its mean")
        panels[0].legend()
    return axes


def pair(numeraire: Any) -> tuple[str, str] | None:
    """A decision and the signal that is its price."""
    if numeraire is None:
        return None
    if not isinstance(numeraire, dict) or len(numeraire) != 1:
        raise ValueError(f"numeraire is {numeraire!r}; expected one decision with its price, such as {{'power': 'price'}}")
    return next((str(decision), str(signal)) for decision, signal in numeraire.items())


def _titled(name: str, units: dict[str, str]) -> str:
    unit = units.get(name)
    return name if unit is None or name.endswith(f"[{unit}]") else f"{name} [{unit}]"


def _known(effect: dict[str, Any], m: int) -> tuple[list[float], list[float]]:
    """The curve where it rests on decisions that no limit holds, and where it is a guess."""
    curve = effect["desired"][m]
    if effect["free"] is None:
        return curve, [float("nan")] * len(curve)
    known = [rows >= 2 for rows in effect["free"][m]]
    beside = [known[max(k - 1, 0) : k + 1] for k in range(len(curve))]
    return (
        [value if any(bins) else float("nan") for value, bins in zip(curve, beside)],
        [value if not all(bins) else float("nan") for value, bins in zip(curve, beside)],
    )


def _chosen(explanation: dict[str, Any], signals: Any) -> list[dict[str, Any]]:
    moving = [signal for signal in explanation["signals"] if signal["effect"] is not None]
    if signals is None:
        signals = 6
    if isinstance(signals, int):
        return moving[:signals]
    known = {signal["name"]: signal for signal in moving}
    missing = [str(name) for name in signals if name not in known]
    if missing:
        raise ValueError(f"no signal `{missing[0]}` that changes; there are {', '.join(known)}")
    return [known[name] for name in signals]


def _escape(text: str) -> str:
    from html import escape  # of use in notebooks alone

    return escape(text)


def summary(estimator: Any) -> str:
    """A fitted estimator as a table for notebooks, another by what it was told."""
    if "_model" not in estimator.__dict__:
        return f"<code>{_escape(repr(estimator))}</code>"
    certificate = estimator.certificate_
    model = estimator._model
    rows = [
        ("status", estimator.status_),
        ("relative gap", f"{certificate.relative_gap:.1e}"),
        ("signals", ", ".join(model.signal_names) or str(model.signal_dim)),
        ("decisions", ", ".join(model.decision_names) or str(model.decision_dim)),
        ("samples", f"{estimator.n_support_} of {model.record['n_samples']} carry weight"),
    ]
    body = "".join(f"<tr><th style='text-align:left'>{_escape(a)}</th><td>{_escape(str(b))}</td></tr>" for a, b in rows)
    return f"<div><strong>{_escape(type(estimator).__name__)}</strong><table>{body}</table>{_bars(model)}</div>"


def _bars(model: Any) -> str:
    """What matters, as bars; nothing for a model that keeps no situations."""
    from . import _argwhy

    if model.n_support == 0:
        return ""
    signals = _argwhy.explain(model)["signals"][:8]
    bar = "<div style='background:#0072B2;height:0.7em;width:{:.1f}em'></div>"
    rows = "".join(
        f"<tr><td>{_escape(signal['name'])}</td><td>{bar.format(15 * signal['importance'])}</td>"
        f"<td>{100 * signal['importance']:.1f} %</td></tr>"
        for signal in signals
    )
    return f"<table><caption style='text-align:left'>What moves the decisions</caption>{rows}</table>"
