"""Whether the committed engine of `argwhy explore` is what its sources make, without compiling it.

`crates/wasm/build` notes which sources it compiled, beside the engine; here they are compared.
Comments and tests do not count. What can't change a decision in a browser (solvers, products of
training) does not either. `--note` writes the note.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "crates/cli/src/pages/explore/engine.wasm.zst"
NOTE = ENGINE.with_name("engine.sources")
FOLDERS = ["crates/wasm/src", "crates/core/src"]
ALONE = ["crates/wasm/Cargo.toml", "crates/wasm/build", "rust-toolchain.toml"]
# What training needs and deciding does not.
LEFT_OUT = ["crates/core/src/" + part for part in ("operator/", "precond/", "problem/", "solver/", "leave_one_out/", "metrics.rs", "backend.rs")]


def code(path: str) -> str:
    """A file without comments on lines of their own, blank lines and its tests."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".rs"):
        text = text.split("#[cfg(test)]\nmod tests {")[0]
    kept = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith(("//", "#!/", "# "))]
    return "\n".join(kept)


def sources() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *FOLDERS, *ALONE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    named = sorted(set(listed.stdout.split()))
    return [path for path in named if not path.endswith("tests.rs") and not path.startswith(tuple(LEFT_OUT))]


def fingerprint() -> str:
    """One line a source, and one for the engine itself."""
    lines = [f"{hashlib.sha256(code(path).encode()).hexdigest()[:16]}  {path}" for path in sources()]
    engine = hashlib.sha256(ENGINE.read_bytes()).hexdigest()[:16]
    return "\n".join([*lines, f"{engine}  {ENGINE.name}"]) + "\n"


def main() -> int:
    now = fingerprint()
    if "--note" in sys.argv[1:]:
        NOTE.write_text(now, encoding="utf-8")
        return 0
    then = NOTE.read_text(encoding="utf-8") if NOTE.exists() else ""
    changed = sorted({line.split("  ")[1] for line in set(now.splitlines()) ^ set(then.splitlines())})
    if not changed:
        return 0
    shown = "\n  ".join(changed[:10])
    print(f"since {ENGINE.relative_to(ROOT)} was made, these have changed:\n  {shown}\nmake it anew: crates/wasm/build")
    return 1


if __name__ == "__main__":
    sys.exit(main())
