"""Cells on many cores: each done once, each result a file, stopped cleanly before a limit.

Workers are processes with one thread each; they live on, because importing a physics engine takes
longer than some cells. A cell that is cut off leaves nothing behind and is done the next time.
"""

import json
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
import traceback

import cells

# A cell is not begun when less than this is left, in seconds.
LEAST = 3.0
# Large fits wait for one another (`cells.one_gpu`); more of them at once would only stand in line
# on cores that small ones could use. One fits, the others read their rows or act.
LARGE_AT_ONCE = 4


class Results:
    """A folder of small JSON files, one a cell."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, cell):
        return self.folder / f"{cells.name_of(cell)}.json"

    def get(self, cell):
        """What a cell found; None where it was not done or could not be."""
        path = self.path(cell)
        return json.loads(path.read_text()).get("found") if path.exists() else None

    def why_not(self, cell):
        path = self.path(cell)
        return json.loads(path.read_text()).get("left") if path.exists() else None

    def cost(self, cells_wanted):
        """Seconds of processors that these cells took; how many of them are there."""
        paths = [path for cell in unique(cells_wanted) if (path := self.path(cell)).exists()]
        return sum(json.loads(path.read_text()).get("processor_seconds", 0.0) for path in paths), len(paths)

    def put(self, cell, result):
        path = self.path(cell)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(result))
        part.rename(path)


def work(source, folder, waiting, done):
    """A worker: takes cells until there is none."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; who began them ends them
    threading.Thread(target=leave_with_parent, daemon=True).start()
    results = Results(folder)
    while (cell := waiting.get()) is not None:
        name = cells.name_of(cell)
        done.put(("begun", os.getpid(), name))
        try:
            results.put(cell, cells.run(cell, source))
            done.put(("done", os.getpid(), name))
        except cells.Left as left:
            results.put(cell, {"cell": cell, "left": str(left)})
            done.put(("done", os.getpid(), name))
        except Exception:  # noqa: BLE001: one cell's failure is no other's
            done.put(("failed", os.getpid(), f"{name}\n{traceback.format_exc()}"))


def leave_with_parent():
    """Ends a worker whose run was killed: no queue tells it, and nobody would hand out more."""
    multiprocessing.parent_process().join()
    os._exit(1)


class Feed:
    """Cells handed out one by one: what has not begun at the limit is not begun."""

    def __init__(self, todo):
        # The longest first, or the last of them would run alone.
        todo = sorted(todo, key=lambda cell: -cell.get("rows", 0))
        self.large = [cell for cell in todo if cell.get("rows", 0) > cells.LARGE]
        self.small = [cell for cell in todo if cell.get("rows", 0) <= cells.LARGE]
        self.running = set()

    def next(self):
        """None where there is none left."""
        if self.large and (len(self.running) < LARGE_AT_ONCE or not self.small):
            self.running.add(cells.name_of(self.large[0]))
            return self.large.pop(0)
        return self.small.pop(0) if self.small else None

    def is_over(self, name):
        self.running.discard(name)


class Schedule:
    def __init__(self, results, source, jobs, deadline):
        self.results, self.source, self.jobs, self.deadline = results, source, jobs, deadline
        self.failed, self.wanted = [], []
        self.begun = time.monotonic()

    def left(self):
        return self.deadline - (time.monotonic() - self.begun)

    def run(self, wanted, title):
        """Does what is not there yet. False where time ran out before everything was."""
        self.wanted += wanted
        todo = [cell for cell in unique(wanted) if not self.is_done(cell)]
        if not todo:
            return True
        say(f"{title}: {len(todo)} cells on {self.jobs} cores, {self.left():.0f} s left")
        context = multiprocessing.get_context("spawn")
        waiting, done = context.Queue(), context.Queue()
        feed = Feed(todo)
        workers = [
            context.Process(target=work, args=(self.source, self.results.folder, waiting, done), daemon=True)
            for _ in range(min(self.jobs, len(todo)))
        ]
        finished = False
        try:
            for worker in workers:
                waiting.put(feed.next())
                worker.start()
            finished = self._follow(workers, feed, waiting, done, len(todo))
        except KeyboardInterrupt:
            say("interrupted: cells that were under way are left; the same command goes on")
        finally:
            for worker in workers:
                if worker.pid is not None:
                    if not finished:
                        worker.terminate()
                    worker.join()
        return finished

    def is_done(self, cell):
        """Rollouts are files of their own, too large to be carried about with the results."""
        if cell["kind"] == "rollout":
            return self.source.chunk(cell["teacher"], cell["number"]).exists()
        return self.results.get(cell) is not None  # what could not be may be possible now

    def _follow(self, workers, feed, waiting, done, total):
        count, dead = 0, set()
        while count < total:
            if self.left() <= 0:
                say(f"time is over: {total - count} cells are left; the same command goes on")
                return False
            try:
                what, _, text = done.get(timeout=min(1.0, max(0.05, self.left())))
            except queue.Empty:
                killed = {w.pid for w in workers if w.exitcode not in (None, 0)} - dead
                dead |= killed
                count += len(killed)
                self.failed += [f"process {pid} was killed, by lack of memory?" for pid in killed]
                if len(dead) == len(workers):
                    say("every process was killed")
                    return False
                continue
            if what == "begun":
                continue
            count += 1
            feed.is_over(text.split("\n")[0])
            if what == "failed":
                self.failed.append(text)
                say(f"failed: {text}")
            else:
                say(f"{count}/{total} {text}")
            # Hand out the next one only while there is time for it.
            if self.left() > LEAST:
                waiting.put(feed.next())
        for _ in workers:
            waiting.put(None)
        return True


def unique(wanted):
    return list({cells.name_of(cell): cell for cell in wanted}.values())


def say(text):
    print(f"bench/paper: {text}", file=sys.stderr, flush=True)
