#!/usr/bin/env python3
"""Runs what README and book tell a reader to type, and compares what comes back.

    commands.py FILE.md …             in a folder of its own a document, from top to bottom
    commands.py --update FILE.md …    writes what the commands print now into the document

Needs `argwhy` in the PATH (`PATH=target/release:$PATH`) and the Python package where Python blocks
use it. Blocks are told apart by the word after the fence:

    console           `$` commands with what they print; words must agree, numbers may differ
    sh                commands, one a line
    python, toml      a file where the first line is a comment with its name; else Python to be run

`python/tests/test_documents.py` runs this with small data in the place of D4RL's.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\S*)\s*$")
FILE_NAME = re.compile(r"^# ([\w.-]+\.(?:py|toml))$")
SECONDS = 300


@dataclass
class Block:
    """A fenced block of a document; `first` is the index of its first line in it."""

    language: str
    lines: list
    first: int


def blocks(text):
    """The fenced blocks of a document, in order."""
    found, open_block = [], None
    for index, line in enumerate(text.splitlines()):
        fence = FENCE.match(line)
        if open_block is None and fence:
            open_block = Block(fence[1], [], index + 1)
        elif open_block is not None and line == "```":
            found.append(open_block)
            open_block = None
        elif open_block is not None:
            open_block.lines.append(line)
    return found


def exchanges(block):
    """Commands of a console block, each with the lines printed below it."""
    told = []
    for line in block.lines:
        if line.startswith("$ "):
            told.append((line[2:], []))
        elif told:
            told[-1][1].append(line)
    return told


def shape(lines):
    """What a reader compares: the words. Numbers, units of time and precision are the machine's."""
    text = "\n".join(line.rstrip() for line in lines).strip()
    # How good a model is belongs to the data, which may be a stand-in.
    text = re.sub(r"^(verdict: [^,]*), .*$", r"\1", text, flags=re.MULTILINE)
    # So does which of its rows do not fit.
    text = re.sub(r"^rows that do not fit .*(\n  (row \d|… and more).*)*\n?", "", text, flags=re.MULTILINE).strip()
    text = re.sub(r"about (a second|[\d.]+ (s|min|h))", "about #", text)
    text = re.sub(r"\bf(32|64)\b", "f#", text)
    text = re.sub(r"[-+]?\d[\d,_]*(\.\d+)?(e[-+]?\d+)?", "#", text)
    # Tables move with the width of their numbers.
    return re.sub(r"[ \t]+", " ", text)


class Reader:
    """Somebody at a shell, in a folder of their own."""

    def __init__(self, folder, shorten=lambda command: command, path=""):
        self.folder = Path(folder)
        self.shorten = shorten
        """Makes a command quicker; what it prints must have the same words."""
        self.path = os.pathsep.join(filter(None, [path, os.environ["PATH"]]))

    def types(self, command):
        """Exit status and what is on the screen."""
        done = subprocess.run(
            ["bash", "-c", self.shorten(command)], cwd=self.folder, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            timeout=SECONDS, env={**os.environ, "PATH": self.path},
        )
        return done.returncode, done.stdout

    def runs_python(self, code):
        """Exit status and what is on the screen."""
        done = subprocess.run(
            [sys.executable, "-c", self.shorten(code)], cwd=self.folder, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
        )
        return done.returncode, done.stdout


def named_file(block):
    """The name a block gives itself, `# days.py`."""
    name = FILE_NAME.match(block.lines[0]) if block.lines else None
    return name and name[1]


def check(text, reader, skip=lambda command: False, compare=lambda command: True):
    """Every fault of a document as `(line, message)`, and its console blocks as they print now."""
    faults, fresh = [], {}
    for block in blocks(text):
        name = named_file(block)
        if block.language in ("python", "toml") and name:
            (reader.folder / name).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        elif block.language == "python":
            status, screen = reader.runs_python("\n".join(block.lines))
            if status:
                faults.append((block.first + 1, f"Python ends with status {status}: {screen}"))
        elif block.language == "sh":
            for offset, command in enumerate(block.lines):
                if command.strip() and not skip(command):
                    faults += _typed(command, block.first + offset + 1, reader)
        elif block.language == "console":
            told, now = exchanges(block), []
            for command, printed in told:
                now.append("$ " + command)
                if skip(command):
                    now += printed
                    continue
                _, screen = reader.types(command)
                now += screen.rstrip("\n").splitlines() if compare(command) else printed
                if compare(command) and shape(printed) != shape(screen.splitlines()):
                    where = block.first + 1 + block.lines.index("$ " + command)
                    faults.append((where, f"`{command}` prints\n{screen}\nand not\n" + "\n".join(printed)))
            fresh[block.first] = (len(block.lines), now)
    return faults, fresh


def _typed(command, where, reader):
    status, screen = reader.types(command)
    return [(where, f"`{command}` ends with status {status}: {screen}")] if status else []


def updated(text, fresh):
    """The document with what its commands print now."""
    lines = text.splitlines()
    for first in sorted(fresh, reverse=True):
        length, now = fresh[first]
        lines[first:first + length] = now
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--update", action="store_true", help="write what is printed now")
    parser.add_argument("--data", type=Path, help="a folder with hopper_expert-v2.hdf5")
    args = parser.parse_args()
    count = 0
    for document in args.documents:
        text = document.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            for file in args.data.iterdir() if args.data else []:
                (Path(folder) / file.name).symlink_to(file.resolve())
            faults, fresh = check(text, Reader(folder), skip=_not_ours)
        if args.update:
            document.write_text(updated(text, fresh), encoding="utf-8")
        for line, message in faults:
            print(f"{document}:{line}: {message}")
        count += len(faults)
    return 1 if count and not args.update else 0


def _not_ours(command):
    """What installs, builds or publishes is not for this."""
    return not re.search(r"\bargwhy\b|\bpython3?\b|^cat |^printf |^echo ", command)


if __name__ == "__main__":
    sys.exit(main())
