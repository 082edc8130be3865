"""The page: one HTML file with everything in it, tables beside plots, for people to show around."""

import html
import pathlib

import beyond
import plots
import rules
import scores
from settings import ON_DRAWS


def render(found):
    style = pathlib.Path(__file__).with_name("page.css").read_text()
    parts = [SECTIONS[name](part) for name, part in found["parts"].items()]
    head = (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
        'content="width=device-width,initial-scale=1"><title>The paper, reproduced</title>'
        f"<style>{style}</style><main><h1>Scalable Kernel Inverse Optimization, reproduced</h1>"
    )
    return head + about(found["about"]) + "".join(parts) + "</main></html>"


def about(said):
    versions = ", ".join(f"{name} {version}" for name, version in said["versions"].items())
    quick = (
        "<p><b>Quick mode: a tenth of the rows and a few episodes. These numbers show that "
        "everything runs and compare with nothing.</b></p>" if said["quick"] else ""
    )
    unfinished = (
        "" if said["complete"] else
        "<p><b>Not finished: what is missing here has not been computed yet. The command below goes on.</b></p>"
    )
    return (
        "<p>The tables and figures of the NeurIPS 2024 paper, computed again with argwhy in the "
        "physics D4RL was recorded on. Small numbers are the paper's. Scores are D4RL's (0 a random "
        "policy, 100 its expert), with 95&nbsp;% intervals: over draws of rows or seeds where there are "
        "three or more, else over episodes; of two draws both are shown. Every row says whether its data is genuine: a stand-in is "
        "other data, and its score compares with the paper's only loosely.</p>"
        f"{quick}{unfinished}<p class=soft>{e(said['date'])} · {e(said['machine'])} · commit {e(said['commit'])} · "
        f"{e(versions)} · {said['episodes']} episodes, {e(said['seeds'])}<br><code>{e(said['command'])}</code></p>"
    )


def e(text):
    return html.escape(str(text))


def score(value, published=None):
    """A cell with mean, interval and the paper's number."""
    own = scores.shown(value)
    if isinstance(published, (tuple, list)):
        published = f"{published[0]:g} ± {published[1]:g}"
    below = "" if published is None else f"<small>{published if isinstance(published, str) else f'{published:g}'}</small>"
    return own + below


def table(header, rows):
    """Rows of cells; a pair is a cell and its class."""
    cells = lambda row, tag: "".join(  # noqa: E731
        f'<{tag} class="{c[1]}">{c[0]}</{tag}>' if isinstance(c, tuple) else f"<{tag}>{c}</{tag}>" for c in row
    )
    head = cells([(name, "left") if name == "data" else name for name in header], "th")
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f"<div class=scroll><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def scores_table(part, columns, more=()):
    """Tasks by methods, the best of our columns marked."""
    rows = []
    for row in part["rows"]:
        own = {name: row[name]["mean"] for name in columns if name != "teacher" and row[name]}
        best = max(own, key=own.get, default=None)
        cells = [e(row["task"]) + (f"<small>{row['n']:,} rows</small>" if "n" in row else "")]
        for name in columns:
            cell = score(row[name], row["published"].get(name))
            cells.append((cell, "win") if name == best else cell)
        cells += [f"{row['published'][name]:g}" for name in more]
        rows.append([*cells, (e(row["data"]), "left")])
    theirs = [f"{e(name)}<small>paper, 1M rows</small>" for name in more]
    return table(["task", *columns, *theirs, "data"], rows)


def chosen_note(part):
    lines = [f"<li>{e(row['task'])}: {e(row['chosen'])}</li>" for row in part["rows"] if row["chosen"]]
    if not lines:
        return ""
    return f"<details><summary>What the rule chose</summary><ul>{''.join(lines)}</ul></details>"


def table1(part):
    names = ["KIO", "argwhy", "tune", "IO", "cloning", "teacher"]
    names = [name for name in names if any(row[name] for row in part["rows"])]
    return (
        "<h2>Table 1: how well policies do that were learned from few rows</h2>"
        "<p>KIO: the paper's settings. argwhy: what --rule chose, the same settings for all tasks unless "
        "another rule is asked for. tune: those of <code>argwhy tune</code>. IO: no kernel, the signals "
        "themselves. Cloning: a network of two layers of 256 on the same rows.</p>"
        + scores_table(part, names, ("BC (TD3+BC)", "BC (CQL)"))
        + plots.bars([(row["task"], row) for row in part["rows"]], names, "D4RL score")
        + chosen_note(part)
    )


def table2(part):
    rows = []
    for row in part["rows"]:
        paper = row["published"]
        rows.append([
            e(row["task"]),
            objective(row["newton"], paper["SCS"]), objective(row["sso"], paper["SSO"]),
            difference(row), score(row["newton score"], paper["SCS score"]),
            score(row["sso score"], paper["SSO score"]), *scs(row["scs"]), (e(row["data"]), "left"),
        ])
    header = ["task", "Newton, exact", "SSO, 20 blocks", "off the paper's", "score", "score of SSO"]
    header += ["SCS, few rows", "Newton, the same", "data"]
    return (
        "<h2>Table 2: the optimum</h2><p>The objective in the paper's scale. Newton is exact and proves it "
        "(relative gap below); the paper solved with SCS. SSO is the paper's algorithm; the paper's score of it is the "
        "best of 20. Only genuine data can have the paper's optimum. SCS has the first 1,000 rows, with Newton on the same rows beside it: "
        "at the paper's 5,000 to 10,000 it was not run, as memory grows with the square of the rows and time faster "
        "(318 and 760 MB, 7.5 and 24 s at 500 and 1,000 rows of another program, bench/RESULTS.md).</p>" + table(header, rows)
    )


def objective(found, published):
    if found is None:
        return score(None, published)
    return (
        f"{found['objective']:.4f}<small>{published:g} · gap {found['relative_gap']:.0e} · "
        f"{found['fit_seconds']:.1f} s</small>"
    )


def scs(found):
    """Both solvers on the rows that SCS can take."""
    if "left" in found:
        return [(f"not run<small>{e(found['left'])}</small>", "left"), "not run"]
    cells = []
    for solver, seconds in (("scs", found["seconds"]), ("newton", found["newton seconds"])):
        one = found[solver]
        below = f"score {one['score']:.1f} · {seconds:.2g} s"
        cells.append(f"{one['objective']:.4f}<small>{below}</small>")
    cells[0] = cells[0].replace("</small>", f" · {found['rows']} rows</small>")
    return cells


def difference(row):
    if not row["genuine"]:
        return "other data"
    if not row["newton"]:
        return "–"
    return f"{row['newton']['objective'] / row['published']['SCS'] - 1:.1e}"


def table3(part):
    names = ["KIO", "argwhy", "one law", "cloning", "KIO, better half", "argwhy, better half", "teacher"]
    names = [name for name in names if any(row[name] for row in part["rows"])]
    return (
        "<h2>Table 3: two policies in one file, 100,000 rows</h2><p>argwhy asks the demonstrations how many "
        "experts there are, learns a law of each, and stays with one an episode; “one law” does not ask. “Better half” "
        "learned only from the better half of the episodes: that looks at rewards, which no other column does.</p>"
        + scores_table(part, names, ("BC (TD3+BC)", "BC (CQL)"))
        + plots.bars([(row["task"], row) for row in part["rows"]], names, "D4RL score")
        + chosen_note(part)
    )


def convergence(part, title, words):
    series = {row["name"]: list(enumerate(row["errors"])) for row in part["rows"]}
    rows = [
        [e(row["name"]), f"{row['errors'][min(10, len(row['errors']) - 1)]:.1e}", f"{row['errors'][-1]:.1e}",
         (e(row["data"]), "left")]
        for row in part["rows"]
    ]
    return (
        f"<h2>{title}</h2><p>{words}</p>"
        + plots.lines(series, "blocks (0: the start)", "objective above the optimum", log_y=True)
        + table(["", "after 10", "after 20", "data"], rows)
    )


def figure1(part):
    return convergence(
        part, "Figure 1: SSO approaches the optimum",
        "In the paper's scale. The paper: below 0.1 after 10 blocks, about 1e-4 after 20.",
    )


def figure2(part):
    return convergence(
        part, "Figure 2: what the paper's two tricks give",
        "Hopper-expert, blocks of half the samples. SSO has both tricks; argwhy's own way of "
        "choosing blocks and of warming up is beside it.",
    )


def appendixc(part):
    names = ["rbf", "laplace", "linear"]
    return (
        "<h2>Appendix C: kernels</h2>" + scores_table(part, names)
        + plots.bars([(row["task"], row) for row in part["rows"]], names, "D4RL score")
    )


def growth(part):
    return (
        "<h2>How the score grows with rows</h2><p>The paper's settings; those that the rule chose with the "
        "paper's number of rows (argwhy); one fixed setting for all tasks, suggested by earlier scores "
        "(matern52 on the signals with a linear trend, k&nbsp;1e-5); and cloning.</p>" + by_rows(part)
    )


def why(part):
    return (
        "<h2>Why medium-expert is hard here</h2><p>The expert half of the data stands in, or is "
        "D4RL's own; with few rows and with many.</p>" + by_rows(part)
    )


def by_rows(part):
    names, out = ["KIO", "argwhy", "fixed", "cloning"], []
    names = [name for name in names if any(row.get(name) for row in part["rows"])]
    for task in dict.fromkeys(row["task"] for row in part["rows"]):
        rows = [row for row in part["rows"] if row["task"] == task]
        series = {
            name: [(row["n"], row[name]["mean"], row[name]["half"]) for row in rows if row.get(name)]
            for name in names
        }
        if any(series.values()):
            sizes = [row["n"] for row in rows]
            drawn = plots.lines(series, "rows", "D4RL score", log_x=True, x_ticks=sizes)
            out.append(f"<div><h3>{e(task)}</h3><p class=soft>{e(rows[-1]['data'])}</p>{drawn}</div>")
    return f"<div class=pair>{''.join(out)}</div>" + times_table(part, names)


def times_table(part, names):
    rows = []
    for row in part["rows"]:
        cells = [e(row["task"]), f"{row['n']:,}"]
        for name in names:
            times = row.get(f"{name} times")
            spent = times and f"<small>{times['fit_seconds']:.1f} s, {times['decision_microseconds']:.0f} µs</small>"
            cells.append(score(row.get(name)) + (spent or ""))
        rows.append([*cells, (e(row["data"]), "left")])
    header = ["task", "rows", *[f"{name}<small>score; fit, decision</small>" for name in names], "data"]
    return table(header, rows)


def landscape(part):
    picked = part["rules"]
    header = ["rule", *map(e, picked), "mean"]
    rows = []
    for rule in next(iter(picked.values()), {}):
        found = [picked[task][rule]["score"] for task in picked]
        cells = [f"{picks[rule]['score']:.1f}<small>{e(told(picks[rule]))}</small>" for picks in picked.values()]
        rows.append([e(rule), *cells, f"{sum(found) / len(found):.1f}"])
    related = [
        [e(c), *[shown(part["correlation"][task][c]) for task in part["correlation"]]] for c in rules.CRITERIA
    ]
    clouds = {}
    for row in part["rows"]:
        if row["drift"] is not None:
            words = f"{row['task']}: {row['settings']}, {row['score']['mean']:.1f}"
            clouds.setdefault(row["task"], []).append((row["error"], row["score"]["mean"], words))
    return (
        "<h2>Choosing without scores</h2><p>Each candidate is judged on demonstrations alone (whole "
        "episodes kept aside) and, for this comparison only, scored too. What each rule chooses, and "
        "what that scores; the first line is what an oracle would have.</p>" + table(header, rows)
        + "<h3>How well each criterion orders the candidates</h3><p>Spearman's correlation with the score; 1 is perfect.</p>"
        + table(["criterion", *map(e, part["correlation"])], related)
        + plots.scatter(clouds, "error on episodes kept aside", "D4RL score") + data_notes(part)
    )


def told(pick):
    return f"{pick['rule']}: {pick['settings']}" if "rule" in pick else pick["settings"]


def shown(value):
    return "–" if value is None else f"{value:.2f}"


def data_notes(part):
    notes = {row["task"]: row["data"] for row in part["rows"]}
    return table(["task", "data"], [[e(task), (e(note), "left")] for task, note in notes.items()])


def ideas(part):
    tasks = list(part["rows"][0]["scores"])
    rows = [
        [e(row["settings"]), f"{row['mean']:.1f}", *[f"{row['scores'][task]['mean']:.1f}" for task in tasks]]
        for row in part["rows"]
    ]
    return (
        "<h2>The same settings for every task</h2><p>Scores on the rows that choices are made on (draw 0), the best mean "
        "first. What is best here is chosen by its score; what that is worth stands under “fresh rows”.</p>"
        + table(["settings", "mean", *map(e, tasks)], rows)
    )


def fresh(part):
    names = ["KIO", "argwhy", "tune", "cloning", "one law", *beyond.ALONE, "as with few rows", *beyond.COMPARED]
    names = [name for name in names if any(row[name] for row in part["rows"])]
    return (
        "<h2>Fresh rows: what the choices are worth</h2><p>Other rows than those that any choice was made on. argwhy has "
        "the same settings for all tasks, with 100,000 rows others than with few; rules chose a setting a task on draw 0.</p>" + scores_table(part, names) + experts_note(part)
        + plots.bars([(f"{row['task']}, {row['n']:,}", row) for row in part["rows"]], names[:4], "D4RL score")
    )


def steady(part):
    tasks = list(part["rows"][0]["tasks"])
    rows = [
        [e(row["settings"]), f"{row['mean']:.3f}", *[f"{row['tasks'][task]:.3f}" for task in tasks],
         "–" if row["score"] is None else f"{row['score']:.1f}"]
        for row in part["rows"]
    ]
    return (
        "<h2>One setting for all, without scores</h2><p>How far settings are off steadily: two models learn from different "
        "episodes, and only the error that they share counts, as a body averages the rest. Relative to the least of each "
        "task, the least mean first; demonstrations alone. The last column, where <code>ideas</code> has been run, is what no "
        "choice here looked at.</p>" + table(["settings", "mean", *map(e, tasks), "score on draw 0"], rows)
    )


def many(part):
    names = ["KIO", "argwhy", *ON_DRAWS]
    first = [
        [e(row["task"]), *[score(row[f"draw 0: {name}"]) for name in ON_DRAWS]] for row in part["rows"]
    ]
    return (
        "<h2>Many draws</h2><p>The row “argwhy”, and beside it what a criterion on demonstrations alone chose "
        "(“one setting for all, without scores”), on many draws of rows that no choice was made on; intervals over draws. "
        "Of hopper-expert's genuine file whole episodes were drawn from all rows but the paper's: those draws overlap.</p>"
        + scores_table(part, names) + plots.bars([(row["task"], row) for row in part["rows"]], names, "D4RL score")
        + "<p>The same settings on the first draw, which is the paper's of hopper-expert:</p>"
        + table(["task", *map(e, ON_DRAWS)], first)
    )


def switching(part):
    ways = next(iter(part["steady"].values()), {})
    said = [[e(task), *[f"{value:.4f}" for value in found.values()]] for task, found in part["steady"].items()]
    return (
        "<h2>Two experts: who acts?</h2><p>argwhy draws an expert when an episode begins, as often as it demonstrated "
        "episodes; “by rows”, as many rows. “Unless clear”: the drawn one decides unless the ten nearest demonstrated signals are "
        "all another's. “Gate”: who has most of these decides. “Told”: one law that sees these shares. “One law”: nobody "
        "asks.</p>" + scores_table(part, beyond.SWITCHED)
        + plots.bars([(f"{row['task']}, {row['n']:,}", row) for row in part["rows"]], beyond.SWITCHED, "D4RL score")
        + ("<p>Error that two models of different episodes share, on demonstrations alone:</p>"
           + table(["task", *map(e, ways)], said) if said else "")
    )


def experts_note(part):
    """How many experts the demonstrations were found to have."""
    lines = []
    for row in part["rows"]:
        if row["experts"]:
            found = ", ".join(map(str, row["experts"]))
            pure = "".join(f"; {100 * one:.1f} % of the rows with those of their policy" for one in row["purity"])
            lines.append(f"<li>{e(row['task'])}, {row['n']:,} rows: {found}{pure}</li>")
    return f"<details><summary>Experts found</summary><ul>{''.join(lines)}</ul></details>" if lines else ""


def rehearsal(part):
    names = ["KIO", "argwhy", "rehearsed", "rehearsed on draw 0", "cloning"]
    names = [name for name in names if any(row[name] for row in part["rows"])]
    lines = [
        f"<li>{e(row['task'])}, {row['n']:,} rows: {e('; '.join(row['chosen']) or '–')} "
        f"(on draw 0: {e(row['chosen on draw 0'] or '–')})</li>" for row in part["rows"]
    ]
    order = [[e(task), shown(value)] for task, value in part["correlation"].items()]
    return (
        "<h2>Choosing by rehearsal</h2><p>Every candidate acts in the world, no reward is looked at, and the one is taken "
        "whose states are least apart from the demonstrated ones (energy distance). This uses the world's dynamics. "
        "“Rehearsed” chose among models of the very rows it is scored with, “on draw 0” a setting for other rows.</p>"
        + scores_table(part, names)
        + f"<details><summary>What was chosen</summary><ul>{''.join(lines)}</ul></details>"
        + "<p>How well this orders the candidates of draw 0 (Spearman's correlation with the score; 1 is perfect):</p>"
        + table(["task", "correlation"], order)
    )


def again(part):
    lines = [f"<li>{e(row['task'])}: {e('; '.join(row['chosen']))}</li>" for row in part["rows"]]
    return (
        "<h2>Rehearsals again</h2><p>Rows that nothing had been seen of. “If clearly” leaves argwhy's one setting only for a "
        f"candidate that is more than {beyond.CLEARLY} less apart from the demonstrations; that was decided when the scores above "
        "were known and these were not.</p>" + scores_table(part, list(beyond.AGAIN))
        + f"<details><summary>What was chosen</summary><ul>{''.join(lines)}</ul></details>"
    )


def halves(part):
    names = [name for name in part["rows"][0] if ", " in name]
    return (
        "<h2>Why medium-expert is hard: two laws for the same states</h2><p>As many rows from the medium policy, from the "
        "expert, or half from each.</p>" + scores_table(part, names)
    )


def million(part):
    rows = [
        [e(row["task"]), f"{row['n']:,}", score(row["argwhy"]), f"{row['fit_seconds']:.1f} s", f"{row['relative_gap']:.1e}",
         (e(row["data"]), "left")]
        for row in part["rows"]
    ]
    return "<h2>A million rows</h2>" + table(["task", "rows", "score", "fit", "relative gap", "data"], rows)


SECTIONS = {
    "table1": table1, "table2": table2, "table3": table3, "figure1": figure1, "figure2": figure2,
    "appendixc": appendixc, "growth": growth, "why": why, "landscape": landscape,
    "ideas": ideas, "fresh": fresh, "rehearsal": rehearsal, "again": again, "halves": halves, "million": million,
    "steady": steady, "many": many, "switching": switching,
}
