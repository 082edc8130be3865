"""Results as tables: the paper's numbers beside ours, every row with where its data comes from.

In: the folder of cells. Out: one dictionary, which is the JSON file and what the page draws.
"""

import datetime
import json
import pathlib
import sys

import numpy as np
from published import APPENDIX_C, SIX, TABLE_1, TABLE_2, TABLE_3, THREE
from tasks import TASKS

import beyond
import rules
from scores import choice, data_note, judged_of, score_of, shown
from settings import ON_DRAWS, ONE_FOR_ALL
from wanted import ABLATION, PLAIN, WHY

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import machine  # noqa: E402

# A row beside the rules: the one that did best on the other tasks.
ELSEWHERE = "best rule of the other tasks"


def collect(results, wanted, arguments):
    """Everything that is there, part by part."""
    parts = {name: PARTS[name](results, wanted, arguments) for name in arguments.only}
    return {
        "about": about(results, arguments),
        "parts": {name: part for name, part in parts.items() if part["rows"]},
    }


def about(results, arguments):
    found = next(iter(versions(results)), {})
    return {
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        "machine": f"{machine.processor()}, {arguments.jobs} process{'es' * (arguments.jobs != 1)} of one thread",
        "commit": machine.commit(pathlib.Path(__file__).resolve().parents[2]),
        "versions": found,
        "episodes": arguments.episodes,
        "quick": arguments.quick,
        "rule": arguments.rule,
        "seeds": "episode i starts from seed i; cloning has seeds 0, 1, ...",
        "command": "bench/paper/run " + " ".join(sys.argv[1:]),
    }


def versions(results):
    for path in results.folder.glob("score-*.json"):
        found = json.loads(path.read_text()).get("found") or {}
        if "versions" in found:
            yield found["versions"]


def chosen_score(results, wanted, task, arguments):
    """The score of the rule's choice, and its name."""
    name = choice(results, wanted, task, arguments.rule)
    if name is None:
        return None, None
    cells = [wanted.chosen(task, d, name) for d in wanted.draws_of(task)]
    return score_of(results, cells), name


def clonings(wanted, task):
    return [
        wanted.cloning(task, d, seed)
        for d in wanted.draws_of(task) for seed in range(wanted.seeds)
    ]


def table1(results, wanted, arguments):
    rows = []
    for task in wanted.of(SIX):
        draws = wanted.draws_of(task)
        kio = [wanted.kio(task, draw) for draw in draws]
        plain = {"preset": TASKS[task].preset, **PLAIN}
        ours, name = chosen_score(results, wanted, task, arguments)
        rows.append({
            "task": task,
            "data": data_note(results, kio, task),
            "genuine": wanted.is_genuine(task),
            "n": wanted.rows(task),
            "draws": len(draws),
            "KIO": score_of(results, kio),
            "IO": score_of(results, [wanted.score(task, "io", d, settings=plain) for d in draws]),
            "cloning": score_of(results, clonings(wanted, task)),
            "argwhy": ours,
            "chosen": name,
            "tune": score_of(results, [wanted.tune(task, draw) for draw in draws]),
            "teacher": score_of(results, [wanted.teacher(task)]),
            "published": dict(zip(
                ("KIO", "IO", "BC (TD3+BC)", "BC (CQL)", "teacher"), TABLE_1[task], strict=True
            )),
        })
    return {"rows": rows}


def table2(results, wanted, arguments):
    rows = []
    for task in wanted.of(SIX):
        exact, sso = results.get(wanted.kio(task)), results.get(wanted.sso(task))
        rows.append({
            "task": task,
            "data": data_note(results, [wanted.kio(task)], task),
            "genuine": wanted.is_genuine(task),
            "newton": exact and {k: exact[k] for k in ("objective", "relative_gap", "fit_seconds")},
            "newton score": score_of(results, [wanted.kio(task)]),
            "sso": sso and {k: sso[k] for k in ("objective", "relative_gap", "fit_seconds")},
            "sso score": score_of(results, [wanted.sso(task)]),
            "scs": few_rows(results, wanted.scs(task)),
            "published": dict(zip(
                ("SCS", "SCS score", "SSO", "SSO score"), TABLE_2[task], strict=True
            )),
        })
    return {"rows": rows}


def few_rows(results, cell):
    """SCS beside Newton on the rows that SCS can take; why not, where it could not."""
    found = results.get(cell)
    if found is None:
        return {"left": results.why_not(cell) or "not done"}
    names = ("objective", "scores")
    out = {"rows": cell["rows"], "seconds": found["scs"]["seconds"], "status": found["scs"]["status"]}
    for solver in ("scs", "newton"):
        objective, scores = (found[solver][name] for name in names)
        out[solver] = {"objective": objective, "score": float(np.mean(scores))}
    out["newton seconds"] = found["newton"]["fit_seconds"]
    return out


def table3(results, wanted, arguments):
    rows = []
    for task in wanted.of(THREE):
        ours, name = chosen_score(results, wanted, task, arguments)
        rows.append({
            "task": task,
            "data": data_note(results, [wanted.kio(task)], task),
            "genuine": wanted.is_genuine(task),
            "n": wanted.rows(task),
            "KIO": score_of(results, [wanted.kio(task)]),
            "cloning": score_of(results, clonings(wanted, task)),
            "argwhy": ours,
            "chosen": name,
            "one law": score_of(results, [wanted.one_law(task)]),
            "KIO, better half": score_of(results, [wanted.better(wanted.kio(task))]),
            "argwhy, better half": better_half(results, wanted, task, name),
            "teacher": score_of(results, [wanted.teacher(task)]),
            "published": dict(zip(
                ("KIO", "BC (TD3+BC)", "BC (CQL)", "teacher"), TABLE_3[task], strict=True
            )),
        })
    return {"rows": rows}


def better_half(results, wanted, task, name):
    if name is None:
        return None
    return score_of(results, [wanted.better(wanted.chosen(task, 0, name))])


def traces(results, wanted, named):
    rows = []
    for name, task, said in named:
        cell = wanted.trace(task, said)
        found = results.get(cell)
        if found:
            rows.append({
                "name": name, "task": task, "data": found["note"], "genuine": found["genuine"],
                "errors": found["errors"], "objective": found["objective"],
            })
    return {"rows": rows}


def figure1(results, wanted, arguments):
    return traces(results, wanted, [(task, task, ABLATION["SSO"]) for task in wanted.of(SIX)])


def figure2(results, wanted, arguments):
    tasks = wanted.of(["hopper-expert"])
    return traces(results, wanted, [(n, t, said) for t in tasks for n, said in ABLATION.items()])


def appendixc(results, wanted, arguments):
    rows = []
    for task in wanted.of(SIX):
        ours = {
            "rbf": score_of(results, [wanted.kio(task)]),
            "laplace": score_of(results, [wanted.kio(task, kernel="laplace")]),
            "linear": score_of(results, [wanted.kio(task, kernel="linear", primal=True)]),
        }
        rows.append({
            "task": task,
            "data": data_note(results, [wanted.kio(task)], task),
            "genuine": wanted.is_genuine(task),
            **ours,
            "published": dict(zip(("rbf", "laplace", "linear"), APPENDIX_C[task], strict=True)),
        })
    return {"rows": rows}


def by_rows(results, wanted, arguments, pairs):
    """The ways side by side, for pairs of a task and a number of rows."""
    rows = []
    for task, n in pairs:
        kinds = wanted.compared(task, n)
        choice_ = choice(results, wanted, task, arguments.rule)
        if choice_ is not None:
            kinds["argwhy"] = wanted.chosen(task, 0, choice_, n)
        row = {"task": task, "n": n, "genuine": wanted.is_genuine(task)}
        row["data"] = data_note(results, kinds.values(), task)
        for name, cell in kinds.items():
            found = results.get(cell)
            row[name] = score_of(results, [cell])
            row[f"{name} times"] = found and {
                "fit_seconds": found["fit_seconds"],
                "decision_microseconds": found["decision_microseconds"],
            }
        rows.append(row)
    return {"rows": rows}


def growth(results, wanted, arguments):
    pairs = [(task, n) for task in wanted.of(SIX) for n in wanted.sizes(task)]
    return by_rows(results, wanted, arguments, pairs)


def why(results, wanted, arguments):
    asked = WHY if "hopper-medium-expert" in wanted.tasks else []
    sizes = (10_000 // wanted.shrink, 40_000 // wanted.shrink)
    return by_rows(results, wanted, arguments, [(task, n) for n in sizes for task in asked])


def landscape(results, wanted, arguments):
    """Every candidate's criteria and score; what each rule would have chosen, and had."""
    rows, chosen, related = [], {}, {}
    for task in wanted.of([*SIX, *THREE]):
        judged, scores = judged_of(results, wanted, task), {}
        for name, said in wanted.grid.items():
            found = score_of(results, [wanted.tried(task, 0, said)])
            if found and name in judged:
                scores[name] = found["mean"]
                criteria = {c: judged[name].get(c) for c in rules.CRITERIA}
                rows.append({
                    "task": task, "data": judged[name]["note"], "genuine": judged[name]["genuine"],
                    "settings": name, **criteria, "score": found,
                })
        alike = score_of(results, [wanted.tried(task, 0, ONE_FOR_ALL)])
        if len(scores) < 2 or alike is None:
            continue
        known = {name: judged[name] for name in scores}
        scores[ONE_FOR_ALL] = alike["mean"]
        related[task] = {c: rules.correlation(known, scores, c) for c in rules.CRITERIA}
        best = max(known, key=scores.get)
        chosen[task] = {"best of all": {"settings": best, "score": scores[best]}}
        for rule, pick in rules.RULES.items():
            name = pick(known)
            chosen[task][rule] = {"settings": name, "score": scores[name]}
    for task, picks in chosen.items():
        if (elsewhere := rules.best_elsewhere(chosen, task)) is not None:
            picks[ELSEWHERE] = {**picks[elsewhere], "rule": elsewhere}
    return {"rows": rows, "rules": chosen, "correlation": related}


PARTS = {
    "table1": table1, "table2": table2, "table3": table3, "figure1": figure1, "figure2": figure2,
    "appendixc": appendixc, "growth": growth, "why": why, "landscape": landscape,
    **beyond.PARTS,
}


def said(value):
    """A score or a number for people."""
    if value is None or isinstance(value, dict):
        return shown(value)
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def as_text(found):
    """Tables 1 to 3 in a terminal."""
    lines = []
    columns = {
        "table1": ("KIO", "IO", "cloning", "argwhy", "tune", "teacher"),
        "table3": (
            "KIO", "cloning", "argwhy", "one law", "KIO, better half", "argwhy, better half", "teacher",
        ),
        "appendixc": ("rbf", "laplace", "linear"),
        "growth": ("n", "KIO", "argwhy", "fixed", "cloning"),
        "why": ("n", "KIO", "fixed", "cloning"),
        "fresh": ("n", "KIO", "cloning", "argwhy", "experts", "one law", "as with few rows", "tune", *beyond.COMPARED),
        "rehearsal": ("n", "KIO", "cloning", "argwhy", "rehearsed", "rehearsed on draw 0"),
        "again": ("n", *beyond.AGAIN),
        "halves": ("KIO, medium", "KIO, expert", "KIO, both", *beyond.OURS),
        "million": ("n", "argwhy"),
        "many": ("n", "draws", "KIO", "argwhy", *ON_DRAWS, *(f"draw 0: {name}" for name in ON_DRAWS)),
        "switching": ("n", "draws", *beyond.SWITCHED),
    }
    for part, names in columns.items():
        rows = found["parts"].get(part, {}).get("rows", [])
        if rows:
            lines += ["", part + " (the paper's number in brackets)"]
            lines.append(" | ".join(f"{name:>20}" for name in ("task", *names)))
        for row in rows:
            cells = [f"{row['task']:>20}"]
            for name in names:
                theirs = row.get("published", {}).get(name)
                theirs = theirs[0] if isinstance(theirs, tuple) else theirs
                text = said(row.get(name)) + ("" if theirs is None else f" ({theirs:g})")
                cells.append(f"{text:>20}")
            lines.append(" | ".join(cells) + f" | {row['data']}")
    for row in found["parts"].get("table2", {}).get("rows", []):
        newton, sso = (row[key]["objective"] if row[key] else None for key in ("newton", "sso"))
        scores = f"{said(row['newton score'])}, {said(row['sso score'])}"
        lines.append(
            f"table2 {row['task']}: Newton {newton}, SSO {sso}; paper {row['published']}; "
            f"scores {scores} | {row['data']}"
        )
    for row in found["parts"].get("steady", {}).get("rows", []):
        lines.append(f"steady {row['mean']:.3f} {row['settings']}")
    for task, ways in found["parts"].get("switching", {}).get("steady", {}).items():
        lines.append(f"steady, {task}: " + ", ".join(f"{way} {value:.4f}" for way, value in ways.items()))
    for task, chosen in found["parts"].get("landscape", {}).get("rules", {}).items():
        lines += ["", f"rules, {task}"]
        for rule, pick in chosen.items():
            lines.append(f"  {rule:<28} {pick['score']:7.1f}  {pick['settings']}")
    return "\n".join(lines).strip()
