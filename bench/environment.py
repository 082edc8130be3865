"""What has to exist before anything is measured: the peers' environment and argwhy's binaries."""

import json
import pathlib
import subprocess
import sys


def virtual_environment(bench):
    """The python of bench/.venv, which has exactly requirements.txt in it.

    Made once, and made again when that file changes.
    """
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


def release_binary(repository, given=None):
    """The binary given, or the release one, built now."""
    if given is not None:
        binary = pathlib.Path(given).resolve()
        if not binary.exists():
            raise SystemExit(f"bench: {binary} is not there")
        return binary
    say("cargo build --release")
    return built(["cargo", "build", "--release"], repository, "argwhy")


def bench_binary(repository, name):
    """A benchmark of the core crate, built now as `cargo bench` would run it."""
    say(f"cargo bench -p argwhy-core --bench {name} --no-run")
    return built(["cargo", "bench", "-p", "argwhy-core", "--bench", name, "--no-run"], repository, name)


def built(command, repository, name):
    """Where cargo put the executable `name`: it says so itself, whatever the target folder."""
    done = subprocess.run([*command, "--message-format=json-render-diagnostics"], cwd=repository, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"bench: failed: {' '.join(command)}")
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["target"]["name"] == name and message.get("executable"):
            return pathlib.Path(message["executable"])
    raise SystemExit(f"bench: cargo built no {name}")


def check(command, cwd=None):
    # stdout belongs to the page
    if subprocess.run(command, cwd=cwd, stdout=sys.stderr).returncode != 0:
        raise SystemExit(f"bench: failed: {' '.join(command)}")


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)
