"""One program in one process: its JSON answer, wall-clock seconds and peak resident memory."""

import dataclasses
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
# Nothing here should take half as long: beyond it, something hangs.
LONGEST = 5400.0  # seconds


@dataclasses.dataclass
class Result:
    """`answer`: the object on the last line of stdout; None if it failed, `failure` says why."""

    answer: dict | None
    wall: float
    peak_bytes: int
    failure: str | None = None
    messages: str = ""  # stderr


class Runner:
    """Runs programs one at a time and remembers the commands and the failures."""

    def __init__(self, repository):
        self.repository = repository
        self.cores = len(os.sched_getaffinity(0))
        self.commands = []
        self.failures = []
        self.given_up = []

    def environment_note(self):
        return ", ".join(f"{name}={self.cores}" for name in THREAD_VARIABLES) + " for all of them"

    def run(self, command, accept=(0,), patience=None, silent=False):
        """What a program answered, with its time and memory.

        `accept`: exit statuses with a usable answer (argwhy writes its object on exit 1 too).
        `patience`: seconds after which a program is stopped, which is then a result and no failure:
        "not finished in 180 s". `silent`: it has no answer to give.
        """
        command = [str(part) for part in command]
        shown = " ".join(shlex.quote(self.relative(part)) for part in command)
        if shown not in self.commands:
            self.commands.append(shown)
        print(f"bench: {shown}", file=sys.stderr, flush=True)
        variables = os.environ | {name: str(self.cores) for name in THREAD_VARIABLES}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            started = time.perf_counter()
            process = subprocess.Popen(command, stdout=out, stderr=err, env=variables, cwd=self.repository)
            # Not process.kill: it might collect the child, and with it the memory it took.
            alarm = threading.Timer(patience or LONGEST, os.kill, (process.pid, signal.SIGKILL))
            alarm.start()
            # wait4 reports this child alone. Its ru_maxrss starts from the parent's size at the
            # time of exec, which is why this parent imports nothing large.
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - started
            alarm.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            output, errors = out.read().decode(errors="replace"), err.read().decode(errors="replace")
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if process.returncode == -signal.SIGKILL and wall >= (patience or LONGEST):
            result = Result(None, wall, peak, f"not finished in {patience or LONGEST:.0f} s", errors)
            if patience is None:
                return self.failed(result, shown)
            self.given_up.append(f"{shown}: {result.failure}")
            return result
        if process.returncode not in accept:
            last = (errors.strip().splitlines() or ["nothing on stderr"])[-1]
            ended = f"exit {process.returncode}" if process.returncode > 0 else f"killed by {signal.Signals(-process.returncode).name}"
            return self.failed(Result(None, wall, peak, f"{ended}: {last}", errors), shown)
        if silent:
            return Result({}, wall, peak, None, errors)
        try:
            return Result(parse(output), wall, peak, None, errors)
        except ValueError:
            return self.failed(Result(None, wall, peak, "no JSON object on stdout", errors), shown)

    def failed(self, result, shown):
        self.failures.append(f"{shown}: {result.failure}")
        return result

    def relative(self, part):
        return part.removeprefix(f"{self.repository}/")


def parse(output):
    """The whole of stdout as one object, or its last line."""
    try:
        answer = json.loads(output)
    except ValueError:
        lines = output.strip().splitlines()
        answer = json.loads(lines[-1] if lines else "")
    if not isinstance(answer, dict):
        raise ValueError("not an object")
    return answer
