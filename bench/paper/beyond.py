"""Questions that the paper did not ask: fresh rows, rehearsals, ideas, halves, a million.

In: the folder of cells. Out: parts of the page, as in `tables.py`.
"""

import numpy as np
from published import SIX, THREE
from scores import choice, data_note, score_of
from settings import FEW_ROWS, IDEAS, ONE_FOR_ALL, one_for_all
from wanted import SLOW

import rules
import several

# Rules whose choices are scored on fresh rows too.
COMPARED = ("error", "ranks: error, drift", "liveliest within two percent")
AGAIN = ("argwhy", "rehearsed", "rehearsed, if clearly")
# Less than this between two candidates says nothing: odd and even episodes of the same
# demonstrations are 0.001 to 0.014 apart, as a rule.
CLEARLY = 0.01
# Of several experts one alone, told without scores; the page shows them beside the row.
ALONE = {
    "expert with more rows": lambda one: int(np.argmax(one["rows"])),
    "expert learned best": lambda one: int(np.argmin([e or np.inf for e in one["held out"]])),
}
# Who acts where several experts were found (`switching.py`).
SWITCHED = ("argwhy", "drawn by rows", "unless clear", "gate", "told", "one law")
OURS = ("argwhy, medium", "argwhy, expert", "argwhy, both")


def chosen_cells(results, wanted):
    """What those rules chose on draw 0, where its candidates have been judged."""
    for task in wanted.of([*SIX, *THREE]):
        for rule in COMPARED:
            name = choice(results, wanted, task, rule)
            if name is not None:
                yield from wanted.chosen_on_fresh(task, name)


def ideas(results, wanted, arguments):
    """Everything tried on draw 0 alike for all tasks: its scores, the best mean first."""
    rows = []
    tasks = wanted.of([*SIX, *THREE])
    for name, said in {**wanted.grid, **IDEAS}.items():
        scores = {task: score_of(results, [wanted.tried(task, 0, said)]) for task in tasks}
        if tasks and all(scores.values()):
            mean = float(np.mean([one["mean"] for one in scores.values()]))
            rows.append({"settings": name, "scores": scores, "mean": mean})
    return {"rows": sorted(rows, key=lambda row: -row["mean"])}


def steady(results, wanted, arguments):
    """Settings by how far they are off steadily, relative to the least of each task."""
    tasks = wanted.of(SIX)
    found = {
        name: [one["steady"] for task in tasks if (one := results.get(wanted.steady_cell(task, said)))]
        for name, said in wanted.steadied().items()
    }
    found = {name: values for name, values in found.items() if tasks and len(values) == len(tasks)}
    if not found:
        return {"rows": []}
    least = np.min(list(found.values()), axis=0)
    rows = [
        {"settings": name, "tasks": dict(zip(tasks, (values / least).tolist(), strict=True))}
        | {"mean": float(np.mean(values / least))} | scored(results, wanted, wanted.steadied()[name])
        for name, values in found.items()
    ]
    return {"rows": sorted(rows, key=lambda row: row["mean"])}


def scored(results, wanted, said):
    """Mean score on draw 0, where `ideas` has been run: no choice looks at it."""
    scores = [score_of(results, [wanted.tried(task, 0, said)]) for task in wanted.of([*SIX, *THREE])]
    return {"score": float(np.mean([one["mean"] for one in scores])) if all(scores) else None}


def fresh(results, wanted, arguments):
    rows = []
    for task, large in wanted.fresh_sizes():
        kio = wanted.fresh_kio(task, large)
        row = {
            "task": task,
            "data": data_note(results, kio, task),
            "genuine": wanted.is_genuine(task),
            "n": kio[0]["rows"],
            "draws": len(kio),
            "KIO": score_of(results, kio),
            "cloning": score_of(results, wanted.fresh_cloning(task, large)),
            "argwhy": of_chosen(results, wanted, task, ONE_FOR_ALL, large),
            "one law": score_of(results, wanted.one_law_on_fresh(task, large)) if task in THREE else None,
            **of_experts(results, wanted, task, large),
            "as with few rows": of_chosen(results, wanted, task, FEW_ROWS, large),
            "tune": None if large else score_of(results, [wanted.fresh_tune(task)]),
            "published": {},
        }
        for rule in COMPARED:
            name = None if large else choice(results, wanted, task, rule)
            row[rule] = name and of_chosen(results, wanted, task, name, large)
        if row["KIO"] or row["argwhy"]:
            rows.append(row)
    return {"rows": rows}


def of_experts(results, wanted, task, large):
    """How many experts were found, and scores of one of them alone: more rows, learned best."""
    cells = wanted.chosen_on_fresh(task, ONE_FOR_ALL, large)
    found = [one["experts"] for cell in cells if "experts" in (one := results.get(cell) or {})]
    if not found:
        return {"experts": None, **dict.fromkeys(ALONE)}
    out = {"experts": [one["n"] for one in found]}
    out["purity"] = [one["purity"] for one in found if "purity" in one]
    for name, pick in ALONE.items():
        # A grouping stands for a cell here: what it holds is that one expert's.
        own = {n: {"scores": one["scores"][pick(one)]} for n, one in enumerate(found)}
        several = any(one["n"] > 1 for one in found)
        out[name] = score_of(own, own) if several else None
    return out


def of_chosen(results, wanted, task, chosen, large):
    return score_of(results, wanted.chosen_on_fresh(task, chosen, large))


def most_alike(results, cells):
    """The candidate least apart from the demonstrations; None if one is missing."""
    found = {name: results.get(cell) for name, cell in cells.items()}
    return rules.smallest("apart")(found) if all(found.values()) else None


def rehearsed_on_own_rows(results, wanted, task, large):
    """For all fresh rows what a rehearsal with these rows chose, by name, and its score's cell."""
    out = []
    for rows, draw, loaded in wanted.fresh_rows(task, large):
        name = most_alike(results, wanted.rehearsals(task, rows, draw, loaded, large))
        if name is not None:
            said = wanted.rehearsed(task, large)[name]
            out.append((name, wanted.score(task, "argwhy", draw, rows, settings=said, **loaded)))
    return out


def rehearsed_on_draw_0(results, wanted, task):
    """What a rehearsal with draw 0's rows chose, and the cells of its scores on fresh rows."""
    first = wanted.rehearsed_rows(task)[0]
    name = most_alike(results, wanted.rehearsals(task, *first))
    return name, [] if name is None else wanted.chosen_on_fresh(task, wanted.rehearsed(task)[name])


def rehearsed_cells(results, wanted):
    for task, large in wanted.fresh_sizes():
        yield from (cell for _, cell in rehearsed_on_own_rows(results, wanted, task, large))
        if not large:
            yield from rehearsed_on_draw_0(results, wanted, task)[1]


def rehearsal(results, wanted, arguments):
    rows, orders = [], {}
    for task, large in wanted.fresh_sizes():
        own = rehearsed_on_own_rows(results, wanted, task, large)
        first, on_fresh = (None, []) if large else rehearsed_on_draw_0(results, wanted, task)
        if not own and first is None:
            continue
        kio = wanted.fresh_kio(task, large)
        rows.append({
            "task": task, "data": data_note(results, kio, task), "genuine": wanted.is_genuine(task),
            "n": kio[0]["rows"], "draws": len(kio), "published": {},
            "KIO": score_of(results, kio),
            "cloning": score_of(results, wanted.fresh_cloning(task, large)),
            "argwhy": of_chosen(results, wanted, task, ONE_FOR_ALL, large),
            "rehearsed": score_of(results, [cell for _, cell in own]),
            "rehearsed on draw 0": score_of(results, on_fresh),
            "chosen": [name for name, _ in own], "chosen on draw 0": first,
        })
        if not large:
            orders[task] = order_on_draw_0(results, wanted, task)
    return {"rows": rows, "correlation": orders}


def order_on_draw_0(results, wanted, task):
    """How well rehearsals order those candidates of draw 0 that were scored there, too."""
    cells = wanted.rehearsals(task, *wanted.rehearsed_rows(task)[0])
    judged = {name: found for name, cell in cells.items() if (found := results.get(cell))}
    scores = {}
    for name, cell in cells.items():
        found = score_of(results, [wanted.tried(task, 0, cell["settings"])])
        if found:
            scores[name] = found["mean"]
    return rules.correlation(judged, scores, "apart")


def again_on(results, wanted, task):
    """For each of these rows: one for all, the most alike, and the latter only if clearly so."""
    for rows, draw, loaded in wanted.again_rows(task):
        cells = wanted.rehearsals(task, rows, draw, loaded, without=SLOW)
        best = most_alike(results, cells)
        if best is None:
            continue
        found = {name: results.get(cell)["apart"] for name, cell in cells.items()}
        usual = next(name for name in cells if cells[name]["settings"] == one_for_all(rows))
        clearly = best if found[usual] - found[best] > CLEARLY else usual
        named = {"argwhy": usual, "rehearsed": best, "rehearsed, if clearly": clearly}
        yield named, {
            way: wanted.score(task, "argwhy", draw, rows, settings=cells[name]["settings"], **loaded)
            for way, name in named.items()
        }


def again_cells(results, wanted):
    for task in wanted.of([*SIX, *THREE]):
        for _, cells in again_on(results, wanted, task):
            yield from cells.values()


def again(results, wanted, arguments):
    rows = []
    for task in wanted.of([*SIX, *THREE]):
        found = list(again_on(results, wanted, task))
        if found:
            cells = {way: [one[way] for _, one in found] for way in AGAIN}
            rows.append({
                "task": task, "data": data_note(results, cells["argwhy"], task), "published": {},
                "genuine": False, "n": cells["argwhy"][0]["rows"], "draws": len(found),
                **{way: score_of(results, cells[way]) for way in AGAIN},
                "chosen": [named["rehearsed, if clearly"] for named, _ in found],
            })
    return {"rows": rows}


def halves(results, wanted, arguments):
    rows = []
    for task in wanted.of(THREE):
        cells = wanted.of_halves(task)
        found = {name: score_of(results, [cell]) for name, cell in cells.items()}
        if any(found.values()):
            note = data_note(results, cells.values(), task)
            genuine = wanted.is_genuine(task)
            rows.append({"task": task, "data": note, "genuine": genuine, "published": {}, **found})
    return {"rows": rows}


def million(results, wanted, arguments):
    rows = []
    for cell in wanted.million():
        found = results.get(cell)
        if found:
            about = {name: found[name] for name in ("fit_seconds", "relative_gap", "status")}
            rows.append({
                "task": cell["task"], "n": cell["rows"], "data": found["note"], "genuine": False,
                "argwhy": score_of(results, [cell]), "published": {}, **about,
            })
    return {"rows": rows}


def many(results, wanted, arguments):
    """The row and what `steady` chose on many draws, and the latter on the first."""
    rows = []
    for task in wanted.of(SIX):
        cells_of = wanted.compared_on_draws(task)
        found = {name: score_of(results, cells) for name, cells in cells_of.items()}
        if not any(found.values()):
            continue
        first = {name: score_of(results, [cell]) for name, cell in wanted.first_draws(task).items()}
        counts = [one["experts"]["n"] for cell in cells_of["argwhy"] if (one := results.get(cell))]
        rows.append({
            "task": task, "data": data_note(results, cells_of["KIO"], task), "published": {},
            "genuine": wanted.is_genuine(task), "n": wanted.rows(task), "draws": len(cells_of["KIO"]),
            **found, "experts": counts, **{f"draw 0: {name}": one for name, one in first.items()},
        })
    return {"rows": rows}


def switching(results, wanted, arguments):
    """Two experts' laws: who acts, and what demonstrations alone say of it."""
    rows, said = [], {}
    for task in wanted.of(THREE):
        steadied = {way: results.get(cell) for way, cell in wanted.steady_ways(task).items()}
        if all(steadied.values()):
            said[task] = {way: one["steady"] for way, one in steadied.items()}
        for large in (False, True):
            cells = wanted.switched(task, large)
            if not any(results.get(cell) for cell in cells):
                continue
            rows.append({
                "task": task, "data": data_note(results, cells, task), "published": {}, "genuine": False,
                "n": cells[0]["rows"], "draws": len(cells), **ways_of(results, cells),
                "argwhy": score_of(results, cells),
                "one law": score_of(results, wanted.one_law_switched(task, large)),
            })
    return {"rows": rows, "steady": said}


def ways_of(results, cells):
    """Scores of every way to switch; of a draw with one expert they are its law's."""
    found = {name: {} for name in ("drawn by rows", "unless clear", "gate", "told")}
    for number, cell in enumerate(cells):
        one = results.get(cell)
        if one is None:
            continue
        experts = one["experts"]
        shares = np.array(experts["rows"]) / sum(experts["rows"])
        ways = {"drawn by rows": several.mixed(shares, experts["scores"]), **experts.get("ways", {})}
        for name in found:
            found[name][number] = {"scores": ways.get(name, one["scores"])}
    return {name: score_of(own, own) for name, own in found.items()}


PARTS = {
    "many": many, "switching": switching, "ideas": ideas, "fresh": fresh, "rehearsal": rehearsal, "again": again, "halves": halves,
    "million": million, "steady": steady,
}
