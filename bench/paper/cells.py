"""One cell: a task, rows, a method, a seed. It runs in a process of its own and knows no other.

A cell is a dictionary of plain values; its name is made of them, and its result is one small JSON
file of that name. What is there already is never done again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import time
import warnings

import data
import numpy as np
import policies
from tasks import TASKS

import conic
import criteria
import published
import rehearsal
import several
import switching

# From here on a GPU pays (and is there for one process at a time).
LARGE = 10_000


def name_of(cell):
    """A file's name: words for people, a hash for the settings."""
    words = [cell[key] for key in ("kind", "task", "method", "teacher") if key in cell]
    words += [f"{key}{cell[key]}" for key in ("rows", "draw", "seed", "number") if key in cell]
    text = json.dumps(cell, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return re.sub(r"[^A-Za-z0-9-]+", "_", "-".join(map(str, words))) + f"-{digest}"


def run(cell, source):
    """What the cell found, with how long that took: by the clock, and of processors."""
    started, busy = time.monotonic(), processor_seconds()
    found = KINDS[cell["kind"]](cell, source)
    spent = {"seconds": time.monotonic() - started, "processor_seconds": processor_seconds() - busy}
    return {"cell": cell, "found": found, **spent}


def processor_seconds():
    """Of this process and those that it started (SCS)."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def roll_out(cell, source):
    from argwhy.gym import d4rl

    world = cell["teacher"].split("-")[0]
    path = source.chunk(cell["teacher"], cell["number"])
    note = policies.record_chunk(
        path, d4rl, world, cell["teacher"], source.teacher(cell["teacher"]), data.CHUNK,
        cell["number"],
    )
    return {"note": note, "file": path.name}


def score(cell, source):
    """Learn by the cell's method, act in D4RL's world, say how well that went."""
    demonstrations, mask = rows_of(cell, source)
    if "experts" in cell:
        return score_of_several(cell, source, demonstrations, mask)
    policy, about = METHODS[cell["method"]](cell, source, demonstrations, mask)
    return about | acted(cell, policy, demonstrations)


def acted(cell, policy, demonstrations):
    """How a policy does, and what it learned from."""
    about = {"note": demonstrations.note, "genuine": demonstrations.genuine}
    about["decision_microseconds"] = decision_time(policy, demonstrations.observations)
    if cell["episodes"]:
        at_once = 50 if cell["rows"] <= LARGE else 100
        world = TASKS[cell["task"]].world
        about |= episodes_of(policy, world, cell["episodes"], at_once)
    return about


def score_of_several(cell, source, demonstrations, mask):
    """A policy of each expert that demonstrations show; all of them act in all episodes."""
    started, threads = time.monotonic(), machine(cell["rows"])["threads"]
    found = several.grouped(demonstrations, mask, threads)
    experts = several.described(found, demonstrations, mask, threads)
    experts["seconds"] = time.monotonic() - started
    abouts, laws = [], []
    for own in several.masks(found, mask):
        policy, about = METHODS[cell["method"]](cell, source, demonstrations, own)
        abouts.append(about | acted(cell, policy, demonstrations))
        laws.append(policy)
    about = dict(abouts[0])
    about["fit_seconds"] = sum(one["fit_seconds"] for one in abouts)
    about["relative_gap"] = max(one["relative_gap"] for one in abouts)
    if cell["episodes"]:
        experts["scores"] = [one["scores"] for one in abouts]
        about["scores"] = several.mixed(found.shares, experts["scores"])
        if "ways" in cell and found.n_experts > 1:
            experts["ways"] = scores_of_ways(cell, source, demonstrations, mask, found, laws)
    return about | {"experts": experts}


def scores_of_ways(cell, source, demonstrations, mask, found, laws):
    """Of policies that ask in every state whose it is, and of an expert drawn by rows."""
    options = machine(cell["rows"])
    learner = switching.Learner(found, demonstrations, mask, cell["settings"], options)
    votes = learner.votes(mask)
    with one_gpu(cell["rows"], source):
        told = learner.told(mask)

    def scores(policy):
        return acted(cell, policy, demonstrations)["scores"]

    clear = [scores(switching.Gate(laws, votes, expert)) for expert in range(len(laws))]
    return {
        "gate": scores(switching.Gate(laws, votes)), "told": scores(told),
        "unless clear": several.mixed(found.shares, clear),
    }


def judge(cell, source):
    """Every criterion of settings on demonstrations alone."""
    demonstrations, mask = rows_of(cell, source)
    found = {"note": demonstrations.note, "genuine": demonstrations.genuine}
    with one_gpu(cell["rows"], source):
        world = criteria.learn_world(demonstrations, mask, machine(cell["rows"]))
        found |= criteria.measure(
            demonstrations, mask, cell["settings"], world, machine(cell["rows"]), cell["folds"]
        )
    return found


def steady(cell, source):
    """How far settings are off steadily, on demonstrations alone."""
    demonstrations, mask = rows_of(cell, source)
    about = {"note": demonstrations.note, "genuine": demonstrations.genuine}
    given = demonstrations, mask, cell["settings"], machine(cell["rows"])
    if "way" in cell:
        return about | switching.steady(*given, cell["way"])
    return about | criteria.steady(*given)


def rehearse(cell, source):
    """How like the demonstrations the policy's own states are, in the world, without rewards."""
    demonstrations, mask = rows_of(cell, source)
    policy, about = by_kernel(cell, source, demonstrations, mask)
    about |= {"note": demonstrations.note, "genuine": demonstrations.genuine}
    world = TASKS[cell["task"]].world
    return about | rehearsal.measure(policy, demonstrations, mask, world, cell["episodes"])


def trace(cell, source):
    """SSO block by block, its objective above the exact optimum."""
    demonstrations, mask = rows_of(cell, source)
    about = {"note": demonstrations.note, "genuine": demonstrations.genuine}
    scale = published.OBJECTIVE_SCALE[TASKS[cell["task"]].world]
    exact, _ = fitted(cell, demonstrations, mask, {"tol": 1e-9, "precision": "f64"})
    optimum = exact.certificate_.objective
    sso, _ = fitted(cell, demonstrations, mask, {**cell["sso"], "solver": "sso", "tol": 1e-12})
    steps = [scale * (value - optimum) for value in sso.history_["objective"].tolist()]
    return about | {"objective": scale * optimum, "errors": steps}


def rows_of(cell, source):
    """The demonstrations of a cell and the rows it learns from."""
    task = TASKS[cell["task"]]
    demonstrations = data.load(source, task, cell.get("loaded", cell["rows"]))
    if "resampled" in cell:
        mask = data.resampled(demonstrations, cell["rows"], cell["draw"], cell["resampled"])
    elif "half" in cell:
        mask = data.of_half(demonstrations, cell["rows"], cell["draw"], cell["half"])
    else:
        mask = data.drawn(demonstrations, cell["rows"], cell["draw"], published_rows(task, cell))
    if mask is None:
        raise Left(f"draw {cell['draw']} of {cell['rows']} rows: there are {len(demonstrations)}")
    if "better" in cell:
        mask = data.better(demonstrations, mask, cell["better"])
    return demonstrations, mask


class Left(Exception):
    """A cell that cannot be: said on the page instead of a number."""


def published_rows(task, cell):
    """The rows the paper drew, where the cell has as many."""
    parts = published.ROWS.get(task.name, [])
    return parts if sum(stop - start for start, stop in parts) == cell["rows"] else None


def machine(rows):
    """Where and with how much a fit of that many rows runs."""
    if rows <= LARGE:
        return {"threads": 1, "device": "cpu", "memory": "3GiB"}
    # By name where there is one, so that episodes are decided there as well.
    device = "cuda" if pathlib.Path("/dev/nvidia0").exists() else "auto"
    memory = "6GiB" if rows <= 200_000 else "32GiB"
    return {"threads": 4, "device": device, "memory": memory}


@contextlib.contextmanager
def one_gpu(rows, source):
    """Large fits one after the other: they would share a GPU's memory."""
    if rows <= LARGE:
        yield
        return
    source.cache.mkdir(parents=True, exist_ok=True)
    with (source.cache / "gpu.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fitted(cell, demonstrations, mask, more=None):
    """The cell's settings, fitted, and what the fit says of itself."""
    options = machine(cell["rows"]) | (more or {})
    signals, decisions = demonstrations.observations, demonstrations.actions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stopping short is in the result
        policy = criteria.fit(signals, decisions, mask, cell["settings"], options)
    scale = published.OBJECTIVE_SCALE[TASKS[cell["task"]].world]
    certificate = policy.certificate_
    about = {
        "objective": scale * certificate.objective,
        "relative_gap": certificate.relative_gap,
        "status": policy.status_,
        "fit_seconds": policy.seconds_,
        "plan": {name: value for name, value in policy.plan_.items() if isinstance(value, str)},
    }
    return policy, about


def by_kernel(cell, source, demonstrations, mask):
    with one_gpu(cell["rows"], source):
        return fitted(cell, demonstrations, mask, cell.get("sso"))


def by_tuning(cell, source, demonstrations, mask):
    """Settings by `tune`, whole episodes kept aside."""
    from argwhy import KernelInverseOptimizerCV

    search = KernelInverseOptimizerCV(
        bounds=(-1.0, 1.0), judge=cell["judge"], budget=cell["budget"], **machine(cell["rows"])
    )
    started = time.monotonic()
    with one_gpu(cell["rows"], source):
        search.fit(
            demonstrations.observations[mask], demonstrations.actions[mask],
            groups=demonstrations.episodes[mask],
        )
    about = {"chosen": search.best_params_, "error": search.best_error_}
    about |= {"regret": search.best_regret_, "tune_seconds": time.monotonic() - started}
    return search, about


def by_cloning(cell, source, demonstrations, mask):
    aside = data.folds(demonstrations.episodes, mask, 10)[cell["seed"] % 10][mask]
    started = time.monotonic()
    policy = policies.Cloning(cell["seed"], cell.get("max_epochs", 1000))
    policy.fit(demonstrations.observations[mask], demonstrations.actions[mask], aside)
    about = {"epochs": policy.epochs, "error": policy.error}
    return policy, about | {"fit_seconds": time.monotonic() - started}


def by_scs(cell, source):
    """SCS on the paper's semidefinite program beside Newton on the same rows."""
    demonstrations, mask = rows_of(cell, source)
    exact, about = fitted(cell, demonstrations, mask, {"tol": 1e-9})
    try:
        policy, found = conic.solve(demonstrations, mask, exact.regularization)
    except conic.Missing as missing:
        raise Left(str(missing)) from None
    world = TASKS[cell["task"]].world
    found["objective"] *= published.OBJECTIVE_SCALE[world]
    found |= episodes_of(policy, world, cell["episodes"])
    about |= episodes_of(exact, world, cell["episodes"])
    return {"note": demonstrations.note, "genuine": demonstrations.genuine, "scs": found, "newton": about}


def teachers(cell, source):
    """How good those are who made the data, with the noise they had; of two, both.

    Of genuine data the episodes themselves tell.
    """
    task = TASKS[cell["task"]]
    recorded = data.recorded_returns(source, task)
    if recorded is not None:
        from argwhy.gym import d4rl_score

        scores = [round(d4rl_score(task.world, one), 3) for one in recorded[: cell["episodes"]]]
        genuine = data.is_genuine(source, task)
        note = f"genuine: D4RL {task.name}-v2" if genuine else data.MINARIS
        return {"note": note, "genuine": genuine, "teacher": ["the data"], "scores": scores}
    out = {"note": task.stands_in, "genuine": False, "teacher": list(task.teachers), "scores": []}
    for name in task.teachers:
        policy = policies.NoisyTeacher(source.teacher(name), cell["seed"])
        found = episodes_of(policy, task.world, cell["episodes"])
        out |= {"versions": found["versions"], "scores": out["scores"] + found["scores"]}
    return out


METHODS = {
    "kio": by_kernel, "io": by_kernel, "sso": by_kernel, "argwhy": by_kernel, "tune": by_tuning,
    "cloning": by_cloning,
}
KINDS = {
    "rollout": roll_out, "score": score, "judge": judge, "trace": trace, "teacher": teachers,
    "scs": by_scs, "rehearse": rehearse, "steady": steady,
}


def decision_time(policy, signals, calls=200):
    """Microseconds of one decision, the median."""
    times = []
    for row in signals[:calls].astype(float):
        started = time.perf_counter()
        policy.predict(row[None, :])
        times.append(time.perf_counter() - started)
    return float(np.median(times) * 1e6)


def episodes_of(policy, world, episodes, at_once=50):
    from argwhy.gym import d4rl_score, evaluate

    result = evaluate(policy, world, episodes, seed=0, at_once=at_once)
    scores = [d4rl_score(world, one) for one in result.returns.tolist()]
    return {
        "scores": [round(one, 3) for one in scores],
        "length": float(result.lengths.mean()),
        "episode_seconds": result.seconds,
        "versions": result.versions,
    }
