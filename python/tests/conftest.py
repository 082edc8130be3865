"""Data and tools that tests share. Data is made here: nothing is read from elsewhere."""

import contextlib
import os
import re
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def plain():
    """A message without what tells `--infeasible clip` of the command from `infeasible="clip"`."""

    def without(text):
        words = re.sub(r'[-_="\s]+', " ", text.replace(" -k", " regularization"))
        return re.sub(r" (?=[,;.)])", "", words)

    return without


@pytest.fixture(scope="session")
def task():
    """200 signals, decisions of two dimensions within ±1, many of them at a limit."""
    rng = np.random.default_rng(0)
    signals = rng.uniform(-1, 1, (200, 3))
    wish = np.stack([2 * signals[:, 0] * signals[:, 1], np.sin(3 * signals[:, 2]) + signals[:, 0]], axis=1)
    return signals, np.clip(wish, -1, 1)


def on_a_terminal(words):
    """The same where stderr is a terminal, which is what lines of progress are for."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=theirs, text=True)
    os.close(theirs)
    seen = []

    def read():
        with contextlib.suppress(OSError):  # Linux says so at the end
            while part := os.read(ours, 4096):
                seen.append(part)

    reader = threading.Thread(target=read)
    reader.start()
    out, _ = process.communicate(timeout=120)
    reader.join()
    os.close(ours)
    return subprocess.CompletedProcess(words, process.returncode, out, b"".join(seen).decode())


@pytest.fixture(scope="session")
def command():
    """Runs the `argwhy` command of the same profile; ARGWHY_COMMAND names another one."""
    program = os.environ.get("ARGWHY_COMMAND", str(ROOT / "target" / "debug" / "argwhy"))
    assert Path(program).exists(), f"no command at {program}: python/test builds it"

    def run(*args, check=True, terminal=False):
        words = [program, *map(str, args)]
        done = on_a_terminal(words) if terminal else subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert not check or done.returncode in (0, 1), done.stderr
        return done

    run.program = program
    return run
