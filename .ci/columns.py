#!/usr/bin/env python3
"""Lines longer than 100 columns: any of Rust, comments and docstrings of Python. None may be.

Rustfmt keeps code to 100 columns and leaves comments and strings alone. This lists what is longer,
and with `--wrap` breaks anew the paragraphs of comments and docstrings that have a long line, and
long strings of Rust. Tables, formulas, code inside macros and the first line of a docstring are
left to a person. Run `cargo fmt` afterwards. Arguments: files and folders, everything if none.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

WIDTH = 100
ROOT = Path(__file__).resolve().parent.parent
COMMENT = {".rs": re.compile(r"^(\s*//[/!]?)( ?)(.*)$"), ".py": re.compile(r"^(\s*#)( ?)(.*)$")}
# What starts a line that is no running text: lists, headings, tables, quotations, doctests.
SPECIAL = re.compile(r"(\s|[*\-+]\s|[|>#]|\d+\.|```|\[.*\]:|\.\.\.)|.*\S {3}|-+$")


def sources():
    listed = ["git", "-C", str(ROOT), "ls-files", "*.rs", "*.py", "--cached", "--others"]
    named = subprocess.run(
        [*listed, "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout.split()
    return [ROOT / name for name in named if (ROOT / name).exists()]


def long_lines(path):
    found, docstring = [], False
    for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        quotes = line.count('"""')
        is_text = path.suffix == ".rs" or docstring or quotes or line.lstrip().startswith("#")
        docstring ^= quotes % 2 == 1
        if is_text and len(line) > WIDTH:
            found.append((n, line))
    return found


def flow(paragraph, prefix):
    """The lines of one paragraph, broken anew where one is too long."""
    if all(len(prefix + line) <= WIDTH for line in paragraph):
        return [prefix + line for line in paragraph]
    return textwrap.wrap(
        " ".join(paragraph),
        WIDTH,
        initial_indent=prefix,
        subsequent_indent=prefix,
        break_long_words=False,
        break_on_hyphens=False,
    )


class Wrapper:
    """Collects lines, and breaks each paragraph once it is complete."""

    def __init__(self, suffix):
        self.comment = COMMENT[suffix]
        self.is_python = suffix == ".py"
        self.out, self.paragraph, self.prefix = [], [], ""
        self.fenced = self.docstring = self.in_string = False
        self.indent = ""

    def end(self):
        self.out += flow(self.paragraph, self.prefix)
        self.paragraph = []

    def verbatim(self, line):
        self.end()
        self.out.append(line)

    def text(self, prefix, words, line):
        if prefix != self.prefix:
            self.end()
            self.prefix = prefix
        if words.startswith("```"):
            self.fenced = not self.fenced
        bullet = re.match(r"^(\* |- )(?=\S)", words)
        if bullet and not self.fenced:
            # An item of its own; what belongs to it is indented and stays.
            self.end()
            self.out += textwrap.wrap(
                words, WIDTH, initial_indent=prefix, subsequent_indent=prefix + "  ",
                break_long_words=False, break_on_hyphens=False,
            )
        elif self.fenced or not words or SPECIAL.match(words):
            self.verbatim(line)
        else:
            self.paragraph.append(words)

    def line(self, line):
        if self.is_python and (self.docstring or '"""' in line):
            self.docstring_line(line)
            return
        found = None if self.in_string else self.comment.match(line)
        if found and (found[2] or not found[3]):
            self.text(found[1] + " ", found[3], line)
            return
        self.fenced = False
        self.end()
        self.out += [line] if self.is_python else self.broken_strings(line)

    def docstring_line(self, line):
        inside, quotes = self.docstring, line.count('"""')
        indent = line[: len(line) - len(line.lstrip())]
        if quotes % 2:
            self.docstring = not self.docstring
            self.indent = indent
        # What is indented further is a list or a formula.
        if inside and not quotes and indent == self.indent:
            self.text(indent, line.strip(), line)
        else:
            self.verbatim(line)

    def broken_strings(self, line):
        """A line of Rust, its long strings broken by backslashes where it is too long."""
        indent = line[: len(line) - len(line.lstrip())]
        continued = inside = self.in_string
        raw, start, places = False, len(indent) if inside else 0, []
        for at, character in enumerate(line):
            before = line[at - 1] if at else ""
            if character == '"' and before not in ("\\", "'"):
                inside = not inside
                raw, start = inside and before in ("r", "#"), at + 1
            elif character == " " and inside and not raw and start < at < WIDTH - 1:
                end = (line + '"').index('"', at)
                is_long = start + 60 < end or continued
                if is_long and line[at + 1 : at + 2].strip() not in ("", "\\"):
                    places.append((at, start))
        self.in_string = inside and line.endswith("\\")
        if len(line) <= WIDTH or not places:
            return [line]
        at, start = places[-1]
        following = " " * (start if start <= WIDTH // 2 else len(indent) + 4)
        state, self.in_string = self.in_string, True
        rest = self.broken_strings(following + line[at + 1 :])
        self.in_string = state
        return [line[: at + 1] + "\\", *rest]


def joined_strings(lines):
    """Strings of Rust that are broken over lines, one of them too long, as one line each."""
    out, at = [], 0
    while at < len(lines):
        end = at
        while lines[end].endswith(" \\") and end + 1 < len(lines):
            end += 1
        if any(len(line) > WIDTH for line in lines[at : end + 1]):
            parts = [line.removesuffix("\\") for line in lines[at:end]] + [lines[end]]
            out.append(parts[0] + "".join(part.lstrip() for part in parts[1:]))
        else:
            out += lines[at : end + 1]
        at = end + 1
    return out


def wrap(path):
    before = path.read_text(encoding="utf-8")
    wrapper = Wrapper(path.suffix)
    lines = before.splitlines()
    for line in lines if path.suffix == ".py" else joined_strings(lines):
        wrapper.line(line)
    wrapper.end()
    after = "\n".join(wrapper.out) + "\n"
    if after != before:
        path.write_text(after, encoding="utf-8")


def chosen(names):
    wanted = [Path(name).resolve() for name in names]
    return [p for p in sources() if not wanted or any(p.is_relative_to(w) for w in wanted)]


def main():
    names = sys.argv[1:]
    if names[:1] == ["--wrap"]:
        for path in chosen(names[1:]):
            if long_lines(path):
                wrap(path)
        return 0
    found = 0
    for path in chosen(names):
        for n, line in long_lines(path):
            found += 1
            print(f"{path.relative_to(ROOT)}:{n}: {len(line)} columns: {line.strip()[:60]} …")
    print(f"{found} lines longer than {WIDTH} columns")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
