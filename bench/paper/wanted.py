"""Which cells each table and figure is made of."""

import data
from published import SIX, THREE
from tasks import TASKS

import settings
from switching import WAYS

PARTS = [
    "table1", "table2", "table3", "figure1", "figure2", "appendixc", "growth", "why", "landscape",
    "fresh", "rehearsal", "again", "ideas", "halves", "million", "steady", "many", "switching",
]
# Without the questions that the paper did not ask.
USUAL = PARTS[: PARTS.index("why")]
# Of what `criteria.py` measures: cells of an earlier version are made anew.
CRITERIA = 2
# Of `several.py` and `switching.py`, likewise.
EXPERTS = 1
SWITCHING = 1
# How many draws after the first `many` has, by rows; of tasks that need more to tell, more.
DRAWS = {5000: 6, 10_000: 3}
MORE_DRAWS = {"walker2d-medium": 12, "hopper-medium": 12, "hopper-expert": 8}
# Fits of minutes with 10,000 rows, on one core, which seldom are most alike.
SLOW = ("1/d, k 1e-7",)
WHY = ["hopper-medium-expert", "hopper-medium-expert-genuine"]

# Plain inverse optimization: the signals themselves, no kernel.
PLAIN = {"kernel": "linear", "features": "raw", "intercept": True, "primal": True}
# Figure 2: with and without the paper's two tricks, and our own way.
ABLATION = {
    "SSO": {"selection": "paper", "init": "paper-warm-up", "warm_up": 2},
    "Heuristic": {"selection": "paper", "init": "zero"},
    "WarmUp": {"selection": "random", "init": "paper-warm-up", "warm_up": 2},
    "neither": {"selection": "random", "init": "zero"},
    "argwhy's SSO": {"selection": "violation", "init": "warm-up", "warm_up": 2},
}


class Wanted:
    """The cells of a run: `tasks` of the nine, how many draws, episodes and seeds."""

    def __init__(self, source, arguments):
        self.source, self.tasks = source, arguments.tasks
        self.quick = arguments.quick
        self.episodes = arguments.episodes
        self.draws, self.seeds = arguments.draws, arguments.seeds
        self.grid = settings.candidates(arguments.grid)
        self.landscape_episodes = arguments.landscape_episodes
        self.budget = arguments.budget
        self.shrink = arguments.shrink
        self.on_draws = settings.ON_DRAWS

    def rows(self, task):
        return max(200, TASKS[task].rows // self.shrink)

    def of(self, names):
        return [name for name in names if name in self.tasks]

    def score(self, task, method, draw=0, rows=None, **more):
        rows = self.rows(task) if rows is None else rows
        cell = {
            "kind": "score", "task": task, "method": method, "rows": rows, "draw": draw,
            "episodes": self.episodes,
        }
        return {**cell, **more}

    def kio(self, task, draw=0, **settings_):
        return self.score(task, "kio", draw, settings={"preset": TASKS[task].preset, **settings_})

    def cloning(self, task, draw, seed, rows=None):
        more = {"max_epochs": 20} if self.quick else {}
        return self.score(task, "cloning", draw, rows, seed=seed, **more)

    def teacher(self, task):
        return {"kind": "teacher", "task": task, "episodes": self.episodes, "seed": 0}

    def tune(self, task, draw, by="error"):
        return self.score(task, "tune", draw, judge=by, budget=self.budget)

    def chosen(self, task, draw, chosen, rows=None):
        """The score of settings that a rule chose, by name or as they are."""
        rows = self.rows(task) if rows is None else rows
        return self.score(task, "argwhy", draw, rows, **self.as_chosen(chosen, rows))

    def as_chosen(self, chosen, rows):
        """One for all has as many experts as demonstrations say, everything else one law."""
        experts = {"experts": EXPERTS} if chosen == settings.ONE_FOR_ALL else {}
        return {"settings": self.named(chosen, rows), **experts}

    def named(self, chosen, rows):
        """Settings by the name that a rule gives them."""
        if chosen == settings.ONE_FOR_ALL:
            return settings.one_for_all(rows)
        return self.grid[chosen] if isinstance(chosen, str) else chosen

    def table1(self):
        for task in self.of(SIX):
            yield self.teacher(task)
            for draw in self.draws_of(task):
                yield self.kio(task, draw)
                yield self.score(task, "io", draw, settings={"preset": TASKS[task].preset, **PLAIN})
                for seed in range(self.seeds):
                    yield self.cloning(task, draw, seed)

    def tuned(self):
        for task in self.of(SIX):
            for draw in self.draws_of(task):
                yield self.tune(task, draw)

    def table2(self):
        for task in self.of(SIX):
            yield self.kio(task)
            yield self.sso(task)
            yield self.scs(task)

    def scs(self, task):
        """As many rows as SCS solves in a minute or two; the paper gave it all of them."""
        return {
            "kind": "scs", "task": task, "rows": 1000 // self.shrink, "draw": 0,
            "settings": {"preset": TASKS[task].preset}, "episodes": self.episodes,
        }

    def sso(self, task):
        said = {"solver": "sso", "max_iterations": 20, "tol": 1e-12, **ABLATION["SSO"]}
        return self.score(task, "sso", settings={"preset": TASKS[task].preset}, sso=said)

    def table3(self):
        for task in self.of(THREE):
            yield self.teacher(task)
            yield self.kio(task)
            yield self.better(self.kio(task))
            yield self.one_law(task)
            for seed in range(self.seeds):
                yield self.cloning(task, 0, seed)

    def one_law(self, task):
        """argwhy's settings, without asking how many experts there are."""
        return self.chosen(task, 0, settings.one_for_all(self.rows(task)))

    @staticmethod
    def better(cell):
        """The same with the better half of the episodes: rewards are looked at."""
        return {**cell, "better": 0.5}

    def trace(self, task, said):
        said = {**said, "max_iterations": 20}
        return {
            "kind": "trace", "task": task, "rows": self.rows(task), "draw": 0,
            "settings": {"preset": TASKS[task].preset}, "sso": said,
        }

    def figure1(self):
        for task in self.of(SIX):
            yield self.trace(task, ABLATION["SSO"])

    def figure2(self):
        for task in self.of(["hopper-expert"]):
            for said in ABLATION.values():
                yield self.trace(task, said)

    def appendixc(self):
        for task in self.of(SIX):
            yield self.kio(task)
            yield self.kio(task, kernel="laplace")
            yield self.kio(task, kernel="linear", primal=True)

    def sizes(self, task):
        """Rows of the figure of growth; a genuine file has no more than it has."""
        sizes = [n // self.shrink for n in (5000, 20_000, 100_000)]
        part_of_a_file = TASKS[task].genuine and data.find_hdf5(self.source.folder, TASKS[task]) is None
        return sizes[:2] if part_of_a_file else sizes

    def is_genuine(self, task):
        """Whether the rows are the paper's own."""
        return data.is_genuine(self.source, TASKS[task])

    def growth(self):
        """The paper's settings, argwhy's without looking at any score, and cloning."""
        for task in self.of(SIX):
            for rows in self.sizes(task):
                yield from self.compared(task, rows).values()

    def why(self):
        """Is it the stand-in expert that makes medium-expert hard, the rows, or the settings?"""
        for task in WHY if "hopper-medium-expert" in self.tasks else []:
            for rows in (10_000 // self.shrink, 40_000 // self.shrink):
                yield from self.compared(task, rows).values()

    def compared(self, task, rows):
        paper = {"preset": TASKS[task].preset}
        return {
            "KIO": self.score(task, "kio", 0, rows, settings=paper),
            "fixed": self.score(task, "argwhy", 0, rows, settings=settings.FIXED),
            "cloning": self.cloning(task, 0, 0, rows),
        }

    def landscape_rows(self, task):
        """Medium-expert data is judged with fewer rows than it is fitted with."""
        return min(self.rows(task), 10_000 // self.shrink)

    def judged(self, task, draw, chosen):
        return {
            "kind": "judge", "task": task, "rows": self.landscape_rows(task), "draw": draw,
            "settings": chosen, "folds": 5 if self.landscape_rows(task) <= 5000 and not self.quick else 3,
            "criteria": CRITERIA,
        }

    def tried(self, task, draw, chosen):
        cell = self.chosen(task, draw, chosen, self.landscape_rows(task))
        return {**cell, "episodes": self.landscape_episodes}

    def judgements(self, names):
        """What a rule looks at to choose for these tasks."""
        for task in self.of(names):
            for chosen in self.grid.values():
                yield self.judged(task, 0, chosen)

    def landscape(self):
        for task in self.of([*SIX, *THREE]):
            yield self.tried(task, 0, settings.ONE_FOR_ALL)
            for chosen in self.grid.values():
                yield self.judged(task, 0, chosen)
                yield self.tried(task, 0, chosen)

    def ideas(self):
        """Every idea on draw 0, where choices are made."""
        for task in self.of([*SIX, *THREE]):
            for idea in settings.IDEAS.values():
                yield self.tried(task, 0, idea)

    def steadied(self):
        """Settings among which `steady` chooses one for all tasks, by name."""
        more = {"gradients 0.3/d": settings.FEW_ROWS} if self.quick else settings.IDEAS
        known = list(self.grid.values())
        return {**self.grid, **{name: said for name, said in more.items() if said not in known}}

    def steady_cell(self, task, said):
        rows = min(self.rows(task), 5000 // self.shrink)
        return {"kind": "steady", "task": task, "rows": rows, "draw": 0, "settings": said}

    def steady(self):
        """Every setting on demonstrations alone."""
        for said in self.steadied().values():
            for task in self.of(SIX):
                yield self.steady_cell(task, said)

    def drawn_rows(self, task):
        """Many draws of a task's usual rows, none of them the first: draw, and what tells them.

        Of a genuine file whole episodes after the first draw's rows are drawn, so draws overlap.
        """
        rows = TASKS[task].rows
        draws = range(1, 1 + MORE_DRAWS.get(task, DRAWS[rows]))
        rows //= self.shrink
        if TASKS[task].genuine:
            return [(rows, draw, {"resampled": rows}) for draw in draws]
        return [(rows, draw, {"loaded": max(4, draw + 1) * rows}) for draw in draws]

    def compared_on_draws(self, task):
        """The ways that are compared on many draws, with the cells of each; also of draw 0."""
        own = {"argwhy": self.as_chosen(settings.ONE_FOR_ALL, TASKS[task].rows)}
        own |= {name: {"settings": settings.IDEAS[name]} for name in self.on_draws}
        own["KIO"] = {"settings": {"preset": TASKS[task].preset}}
        cells_of = {}
        for name, said in own.items():
            method = "kio" if name == "KIO" else "argwhy"
            cells_of[name] = [
                self.score(task, method, draw, rows, **said, **more) for rows, draw, more in self.drawn_rows(task)
            ]
        return cells_of

    def first_draws(self, task):
        """Draw 0 of the same: the row was chosen by its scores, these were not."""
        named = {name: settings.IDEAS[name] for name in self.on_draws}
        return {name: self.score(task, "argwhy", 0, settings=said) for name, said in named.items()}

    def many(self):
        """The row and what `steady` chooses on many draws of one policy's rows."""
        tasks = self.of(SIX)
        for name in ("argwhy", *self.on_draws):
            for task in tasks:
                yield from self.compared_on_draws(task)[name]
        for task in tasks:
            yield from self.first_draws(task).values()
        for task in tasks:
            yield from self.compared_on_draws(task)["KIO"]

    def switching_rows(self, task, large):
        """Draws after the first; of 100,000 rows one."""
        if large:
            return self.fresh_rows(task, large)
        rows = self.landscape_rows(task)
        return [(rows, draw, {"loaded": 4 * rows}) for draw in (1, 2, 3)]

    def switched(self, task, large=False):
        """Two experts' laws and all ways to switch between them."""
        cells_of = []
        for rows, draw, more in self.switching_rows(task, large):
            said = self.as_chosen(settings.ONE_FOR_ALL, rows)
            cells_of.append(self.score(task, "argwhy", draw, rows, **said, **more, ways=SWITCHING))
        return cells_of

    def one_law_switched(self, task, large=False):
        """One law of the same rows."""
        return [
            self.score(task, "argwhy", draw, rows, settings=settings.one_for_all(rows), **more)
            for rows, draw, more in self.switching_rows(task, large)
        ]

    def steady_ways(self, task):
        """What demonstrations alone say of one law, and of ways to ask whose a state is."""
        rows = self.landscape_rows(task)
        cell = {"kind": "steady", "task": task, "rows": rows, "draw": 0}
        cell["settings"] = settings.one_for_all(rows)
        return {"one law": cell, **{way: {**cell, "way": way, "version": SWITCHING} for way in WAYS}}

    def switching(self):
        for task in self.of(THREE):
            yield from self.steady_ways(task).values()
            for large in (False, True):
                yield from self.switched(task, large)
                yield from self.one_law_switched(task, large)

    def fresh_rows(self, task, large=False):
        """Rows that no choice was made on: how many, which draw, and what is loaded."""
        shrink = self.shrink
        if large:
            return [(100_000 // shrink, 1, {"loaded": 200_000 // shrink})]
        rows = self.landscape_rows(task)
        if rows <= 5000 // shrink:
            return [(rows, draw, {}) for draw in (1, 2, 3)]
        if task in THREE:
            return [(rows, 1, {})]
        return [(rows, 1, {}), (rows, 2, {"loaded": 4 * rows})]

    def on_fresh(self, task, method, large=False, **more):
        """Cells of a method on these rows."""
        return [
            self.score(task, method, draw, rows, **more, **loaded)
            for rows, draw, loaded in self.fresh_rows(task, large)
        ]

    def chosen_on_fresh(self, task, chosen, large=False):
        rows = self.fresh_rows(task, large)[0][0]
        return self.on_fresh(task, "argwhy", large, **self.as_chosen(chosen, rows))

    def one_law_on_fresh(self, task, large=False):
        """The row "argwhy" without asking how many experts there are."""
        rows = self.fresh_rows(task, large)[0][0]
        return self.chosen_on_fresh(task, settings.one_for_all(rows), large)

    def fresh_cloning(self, task, large=False):
        own = {"max_epochs": 20} if self.quick else {}
        return [
            cell
            for seed in range(self.seeds)
            for cell in self.on_fresh(task, "cloning", large, seed=seed, **own)
        ]

    def fresh_kio(self, task, large=False):
        return self.on_fresh(task, "kio", large, settings={"preset": TASKS[task].preset})

    def fresh_tune(self, task):
        return self.tune(task, 1)

    def fresh_sizes(self):
        """Tasks with whether they are learned from 100,000 rows."""
        for task in self.of([*SIX, *THREE]):
            yield task, False
            if task in THREE or task == "halfcheetah-expert":
                yield task, True

    def fresh(self):
        """The paper's settings, cloning, one for all; what rules choose comes afterwards."""
        for task, large in self.fresh_sizes():
            yield from self.fresh_kio(task, large)
            yield from self.chosen_on_fresh(task, settings.ONE_FOR_ALL, large)
            if task in THREE:
                yield from self.one_law_on_fresh(task, large)
            if large:
                yield from self.chosen_on_fresh(task, settings.FEW_ROWS, large)
            if large or task in SIX:
                yield from self.fresh_cloning(task, large)

    def rehearsed(self, task, large=False):
        """Settings among which a rehearsal chooses, by name; few where each fit is large."""
        if self.quick:
            return {name: settings.REHEARSED[name] for name in settings.REHEARSED_LARGE[:2]}
        if large:
            return {name: settings.REHEARSED[name] for name in settings.REHEARSED_LARGE}
        return {**settings.REHEARSED, "the paper's": {"preset": TASKS[task].preset}}

    def rehearsals(self, task, rows, draw, loaded, large=False, without=()):
        """The cells that a choice for these rows looks at, by the settings' names."""
        cell = {"kind": "rehearse", "task": task, "rows": rows, "draw": draw, **loaded}
        cell["episodes"] = self.landscape_episodes
        candidates = self.rehearsed(task, large).items()
        return {name: {**cell, "settings": s} for name, s in candidates if name not in without}

    def rehearsed_rows(self, task, large=False):
        """Draw 0, where choices for other rows are made, and the fresh rows themselves."""
        first = [] if large else [(self.landscape_rows(task), 0, {})]
        return first + self.fresh_rows(task, large)

    def rehearsal(self):
        """What is compared with, and every candidate; scores of what is chosen come afterwards."""
        yield from self.fresh()
        for task, large in self.fresh_sizes():
            for rows, draw, loaded in self.rehearsed_rows(task, large):
                yield from self.rehearsals(task, rows, draw, loaded, large).values()

    def again_rows(self, task):
        """Rows that not even a rehearsal has seen; of a genuine file there are no more."""
        rows = self.landscape_rows(task)
        if TASKS[task].genuine:
            return []
        if rows <= 5000 // self.shrink:
            return [(rows, draw, {"loaded": 6 * rows}) for draw in (4, 5)]
        return [(rows, 2 if task in THREE else 3, {"loaded": 4 * rows})]

    def again(self):
        """The rule that was made when scores of rehearsals were known, on rows that were not."""
        for task in self.of([*SIX, *THREE]):
            for rows, draw, loaded in self.again_rows(task):
                one = settings.one_for_all(rows)
                yield self.score(task, "argwhy", draw, rows, settings=one, **loaded)
                yield from self.rehearsals(task, rows, draw, loaded, without=SLOW).values()

    def of_halves(self, task):
        """Medium-expert's halves alone and together, as many rows of each: by name."""
        rows = 10_000 // self.shrink
        ways = {"KIO": {"preset": TASKS[task].preset}, "argwhy": settings.one_for_all(rows)}
        parts = {"medium": {"half": 0}, "expert": {"half": 1}, "both": {}}
        return {
            f"{way}, {part}": {
                **self.score(task, "argwhy", 1, rows, settings=given, loaded=4 * rows), **half,
            }
            for way, given in ways.items() for part, half in parts.items()
        }

    def halves(self):
        for task in self.of(THREE):
            yield from self.of_halves(task).values()

    def million(self):
        """A million rows of hopper's two policies, the paper's model."""
        for task in self.of(["hopper-medium-expert"]):
            rows = 1_000_000 // self.shrink
            yield self.score(task, "argwhy", 0, rows, settings=settings.DOCUMENTED)

    def draws_of(self, task):
        """One where the rows are the paper's own or all there are, else as many as asked for."""
        if self.is_genuine(task) or task in THREE:
            return [0]
        room = 20_000 // TASKS[task].rows
        return list(range(min(self.draws, room)))

    def rollouts(self, cells_wanted):
        """The rollouts that these cells read."""
        pairs = {}
        for cell in cells_wanted:
            if "rows" not in cell:
                continue
            loaded = cell.get("loaded", cell["rows"])
            needed = data.chunks_needed(self.source, TASKS[cell["task"]], loaded)
            pairs |= dict.fromkeys(needed)
        return [{"kind": "rollout", "teacher": t, "number": n} for t, n in pairs]
