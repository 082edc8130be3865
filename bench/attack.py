#!/usr/bin/env python3
"""Random fits against 60-digit arithmetic: is a certificate ever false?

    target/python-venv/bin/python bench/attack.py --count 20000 --jobs 2 [--out findings.jsonl]
    target/python-venv/bin/python bench/attack.py --seed 123 [--write case.npz]    one, in full

Draws problems (``draw``), fits them by the installed package, and judges every claim (``judge``,
with ``exact`` for the mathematics). Needs python-flint beside the package: `python/test --install`
brings both. Exit status 1 where anything is false.

Classes of faults: `gap` (the true gap is larger than claimed), `dual` and `primal` (they do not
enclose the optimum), `not solved` (status "solved", but a group of dimensions is not, by the
tolerance), `prediction` (further from the exact one than its bound), `outside` (of its set), `not
finite`, `exception`, `false refusal`. Notes are no faults: `refused`, `weak` (stopped short where
one factorisation in doubles would have done), `worse than nothing` (stopped short at a P above that
of the model without coefficients), `modest` (stopped short, but good), `undecided`.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import time
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from draw import draw  # noqa: E402
from judge import Verdict, for_command, judge  # noqa: E402

PATIENCE = 40
"""Seconds of processor time for one problem."""


class TooLong(Exception):
    """The exact side takes too long."""


def _give_up(signum, frame):
    raise TooLong


def attack(task):
    """The verdict on a seed; always one."""
    seed, largest = task
    problem = draw(seed, largest)
    signal.signal(signal.SIGVTALRM, _give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        return judge(problem)
    except TooLong:
        verdict = Verdict(seed, problem.tags, "unknown")
        verdict.note("undecided", f"more than {PATIENCE} s")
        return verdict
    except Exception as error:  # noqa: BLE001
        verdict = Verdict(seed, problem.tags, "unknown")
        verdict.note("undecided", f"judge failed: {type(error).__name__}: {error}")
        return verdict
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def attack_all(seeds, largest=40, jobs=1):
    """Verdicts on all seeds, as they come."""
    tasks = [(seed, largest) for seed in seeds]
    if jobs == 1:
        yield from map(attack, tasks)
        return
    with get_context("spawn").Pool(jobs, maxtasksperchild=500) as pool:
        yield from pool.imap_unordered(attack, tasks, chunksize=4)


def describe(problem):
    """A problem in a few lines."""
    lines = [f"seed {problem.seed}: N, d, n = {problem.shape}; {', '.join(problem.tags)}"]
    lines += [f"  {name} = {value!r}" for name, value in problem.parameters.items()]
    if problem.path:
        lines.append(f"  path = {problem.path}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--largest", type=int, default=40, help="samples at most")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, help="one problem, in full")
    parser.add_argument("--out", type=Path, help="a line of JSON for every problem")
    parser.add_argument("--write", type=Path, metavar="FILE.npz",
                        help="with --seed: the problem as data, and the command that fits it")
    asked = parser.parse_args()
    if asked.seed is not None:
        problem = draw(asked.seed, asked.largest)
        print(describe(problem))
        if asked.write:
            options = " ".join(map(shlex.quote, for_command(problem, asked.write)))
            print(f"argwhy fit {asked.write} -o /tmp/model.argwhy {options}")
        verdict = judge(problem)
        print(verdict.outcome, *verdict.faults, *verdict.notes, sep="\n  ")
        return int(bool(verdict.faults))
    faults, notes, outcomes = Counter(), Counter(), Counter()
    started, bad, done = time.monotonic(), 0, 0
    out = asked.out.open("w") if asked.out else None
    seeds = range(asked.start, asked.start + asked.count)
    for verdict in attack_all(seeds, asked.largest, asked.jobs):
        done += 1
        bad += bool(verdict.faults)
        outcomes[verdict.outcome] += 1
        faults.update({name for name, _ in verdict.faults})
        notes.update({name for name, _ in verdict.notes})
        if out:
            out.write(json.dumps(vars(verdict)) + "\n")
            out.flush()
        for name, detail in verdict.faults[:1]:
            print(f"seed {verdict.seed} {name}: {detail[:200]} ({', '.join(verdict.tags)})")
    seconds = time.monotonic() - started
    print(f"{done} problems in {seconds:.0f} s, {bad} with a fault")
    for title, counts in (("outcomes", outcomes), ("faults", faults), ("notes", notes)):
        print(f"{title}: " + (", ".join(f"{n} {name}" for name, n in counts.most_common()) or "none"))
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
