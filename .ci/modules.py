#!/usr/bin/env python3
"""Rust files that no `mod` line names, so that they are never compiled and their tests never run.

Cargo does not look for tests of its own where a crate has one test binary (`autotests = false`),
and a module of a library that is forgotten is silent too. Prints what is forgotten; exit status 1.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def sources():
    listed = ["git", "-C", str(ROOT), "ls-files", "*.rs", "--cached", "--others"]
    named = subprocess.run(
        [*listed, "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout.split()
    return [ROOT / name for name in named if (ROOT / name).exists()]


def owners(path):
    """The files that may have the `mod` line of this one; none for what Cargo finds by itself."""
    folder = path.parent
    if path.name == "mod.rs":
        folder = folder.parent
    elif path.name in ("main.rs", "lib.rs", "build.rs") or is_target(path):
        return []
    beside = [folder / name for name in ("main.rs", "lib.rs", "mod.rs")]
    return [*beside, folder.with_suffix(".rs")]


def is_target(path):
    """Whether Cargo compiles the file by itself: examples, benchmarks, tests unless told not to."""
    crate = path.parent.parent
    if path.parent.name in ("examples", "benches", "fuzz_targets"):
        return True
    manifest = crate / "Cargo.toml"
    told_not_to = manifest.exists() and "autotests = false" in manifest.read_text(encoding="utf-8")
    return path.parent.name == "tests" and manifest.exists() and not told_not_to


def forgotten(path):
    candidates = owners(path)
    name = path.parent.name if path.name == "mod.rs" else path.stem
    line = re.compile(rf"^\s*(pub(\([a-z]+\))? )?mod {name};", re.MULTILINE)
    has_line = (
        line.search(owner.read_text(encoding="utf-8"))
        for owner in candidates
        if owner.exists() and owner != path
    )
    return bool(candidates) and not any(has_line)


def main():
    found = [path for path in sources() if forgotten(path)]
    for path in found:
        name = path.parent.name if path.name == "mod.rs" else path.stem
        print(f"{path.relative_to(ROOT)}: add `mod {name};` to the file it belongs to")
    print(f"{len(found)} Rust files that are never compiled")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
