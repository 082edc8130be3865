"""What has to exist before anything is measured: the peers' virtual environment and argwhy's release binary."""

import pathlib
import subprocess
import sys


def virtual_environment(bench):
    """bench/.venv with exactly requirements.txt in it; made once, made again when that file changes. Returns its python."""
    requirements = bench / "requirements.txt"
    folder = bench / ".venv"
    python = folder / "bin" / "python"
    stamp = folder / "requirements.installed"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return python
    if sys.version_info < (3, 11):
        raise SystemExit("bench: the peers need Python 3.11 or later")
    say("installing the peers into bench/.venv")
    check([sys.executable, "-m", "venv", "--clear", str(folder)])
    check([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(requirements)])
    stamp.write_text(requirements.read_text())
    return python


def release_binary(repository):
    """target/release/argwhy, built now."""
    say("cargo build --release")
    check(["cargo", "build", "--release"], cwd=repository)
    binary = pathlib.Path(repository) / "target" / "release" / "argwhy"
    if not binary.exists():
        raise SystemExit(f"bench: cargo built no {binary}")
    return binary


def check(command, cwd=None):
    # stdout belongs to the page
    if subprocess.run(command, cwd=cwd, stdout=sys.stderr).returncode != 0:
        raise SystemExit(f"bench: failed: {' '.join(command)}")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)
