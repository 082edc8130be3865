#!/usr/bin/env python3
"""Writes the chapter "Reference" from the docstrings of the Python package.

    reference.py            rewrites docs/book/src/python-reference.md
    reference.py --check    says whether it is what the docstrings say, and changes nothing

Needs the package (`python/test --install` has it in target/python-venv). The chapter is kept in the
repository so that the book builds without the package; a test compares.
"""

import argparse
import inspect
import re
import sys
import textwrap
from pathlib import Path

PAGE = Path(__file__).parents[1] / "src" / "python-reference.md"

HEAD = """# Reference

Everything public in the Python package, from its docstrings. Written by
`docs/book/checks/reference.py`: change the docstrings, not this page.
`help(argwhy.KernelInverseOptimizer)` says the same where you work.
"""


def gathered():
    """The public things, module by module."""
    import argwhy
    import argwhy.gym
    import argwhy.ray
    from argwhy import datasets, errors

    of_datasets = [getattr(datasets, n) for n in ("load", "read", "describe", "make_quadrotor", "make_charging", "Data", "Quadrotor", "Charging")]
    return [
        ("argwhy", [argwhy.KernelInverseOptimizer, argwhy.Certificate, argwhy.Constraints, argwhy.Iteration, argwhy.find_experts, argwhy.Experts, argwhy.experts.Trial, argwhy.export_onnx]),
        ("argwhy.datasets", of_datasets),
        ("argwhy.gym", [getattr(argwhy.gym, n) for n in ("evaluate", "record", "make_d4rl_env", "d4rl_score", "Evaluation", "Recording")]),
        ("argwhy.ray", [argwhy.ray.Cluster, argwhy.ray.simulate, argwhy.ray.Simulation]),
        ("argwhy.errors", [getattr(errors, n) for n in errors.__all__]),
    ]


def prose(text):
    """A docstring as Markdown: roles become code, sections of parameters become lists."""
    text = inspect.cleandoc(text or "")
    text = re.sub(r":(?:class|func|meth|attr):`~?([^`]+)`", r"`\1`", text)
    text = text.replace("``", "`")
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    out = [parts[0].strip()]
    for title, body in zip(parts[1::2], parts[2::2]):
        out.append(f"*{title}*")
        out.append(examples(body) if title == "Examples" else listed(body))
    return "\n\n".join(part for part in out if part)


def listed(body):
    """`name:` with an indented text below becomes an item; other lines stay as they are."""
    items, rest = [], []
    for line in body.strip("\n").splitlines():
        if line and not line.startswith(" "):
            if line.endswith(":") or re.fullmatch(r"[A-Z]\w*", line):
                items.append([line.rstrip(":"), []])
            else:
                rest.append(line)
        elif items and not rest:
            items[-1][1].append(line.strip())
        elif rest:
            rest.append(line)
    lines = []
    for name, told in items:
        names = ", ".join(f"`{part.strip()}`" for part in name.split(","))
        lines.append(f"- {names}: {' '.join(filter(None, told))}")
    return "\n".join(lines) + ("\n\n" + "\n".join(rest).strip() if rest else "")


def examples(body):
    return "```pycon\n" + body.strip("\n") + "\n```"


def signature(thing, name):
    """How it is called; defaults of the estimator come from Rust and are shown by value."""
    try:
        inspected = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    called = [p for p in inspected.parameters.values() if p.name != "self"]
    words, starred = [], False
    for p in called:
        if p.kind is p.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        default = "" if p.default is p.empty else f"={p.default!r}"
        words.append(("**" if p.kind is p.VAR_KEYWORD else "") + p.name + default)
    line = f"{name}({', '.join(words)})"
    if len(line) <= 100:
        return line
    inside = textwrap.fill(", ".join(words), 92, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return f"{name}(\n{inside}\n)"


def members(cls):
    """What a class has of its own: methods, properties, fields with a docstring."""
    for name, value in vars(cls).items():
        if name.startswith("_") or name in ("mro",):
            continue
        if isinstance(value, property) and value.__doc__:
            yield f"`{name}`", None, value.__doc__
        elif isinstance(value, (classmethod, staticmethod)) or inspect.isfunction(value):
            function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if function.__doc__:
                yield f"`{name}`", signature(getattr(cls, name), name), function.__doc__


def entry(module, thing):
    name = thing.__name__
    bare = inspect.isclass(thing) and issubclass(thing, Exception)
    lines = [f"### `{name}`", ""]
    if not bare:
        lines += ["```text", signature(thing, f"{module}.{name}"), "```", ""]
    lines += [prose(thing.__doc__), ""]
    if inspect.isclass(thing) and not bare:
        for title, called, told in members(thing):
            lines += [f"#### {title}", ""]
            if called:
                lines += ["```text", called, "```", ""]
            lines += [prose(told), ""]
    return "\n".join(lines)


def page():
    parts = [HEAD]
    for module, things in gathered():
        parts.append(f"## {module}\n")
        parts += [entry(module, thing) for thing in things]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and change nothing")
    args = parser.parse_args()
    if args.check:
        if PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE} is not what the docstrings say; run docs/book/checks/reference.py", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
