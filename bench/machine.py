"""The head of the page: machine, commit, date, versions. A figure without these is hearsay."""

import datetime
import os
import pathlib
import platform
import shlex
import subprocess


def describe(page, plan, command_line):
    page.title("argwhy and its peers")
    page.paragraph(
        "Ratios are between measurements of this run on this machine. `median [smallest, largest]`; *once* means a single "
        "measurement. Each program had its process to itself and all cores."
    )
    page.items(
        [
            f"date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
            f"machine: {processor()}, {plan.runner.cores} cores, {memory_gib():.0f} GiB, {platform.system()} {platform.release()}",
            f"load average when the measurements began: {os.getloadavg()[0]:.2f} (above about 0.5, something else was running and "
            "the threaded peers suffer most)",
            f"commit: {commit(plan.runner.repository)}",
            f"argwhy: {argwhy_version(plan)}",
            f"peers: {peer_versions(plan)}",
            f"data: {plan.data_note}; {plan.n_rows} rows loaded, {plan.feature_dim} features (degree 2 with constant, z-score over "
            f"all loaded rows, clipped to ±1000), rbf with γ = 1/{plan.feature_dim}, limits ±{plan.limit:g}, k = {plan.regularization:g}",
            f"command: `{shlex.join(command_line)}`",
        ]
    )


def processor():
    info = pathlib.Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def memory_gib():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


def commit(repository):
    revision = first_line(["git", "rev-parse", "--short=12", "HEAD"], repository)
    if revision is None:
        return "none"
    changed = first_line(["git", "status", "--porcelain", "--untracked-files=no"], repository)
    return revision + (" with uncommitted changes" if changed else "")


def argwhy_version(plan):
    if plan.argwhy is None:
        return "left out (--peers-only)"
    compiler = first_line(["rustc", "--version"], plan.runner.repository)
    version = first_line([str(plan.argwhy), "--version"], plan.runner.repository)
    if not plan.built_here:
        return f"{version}, a binary given by --argwhy, perhaps of another commit"
    return f"{version}, {compiler}, release profile"


def peer_versions(plan):
    code = (
        "import importlib.metadata as m, platform; "
        "print('Python', platform.python_version(), *[f', {p} {m.version(p)}' for p in "
        "('cvxpy', 'scs', 'osqp', 'clarabel', 'scikit-learn', 'numpy', 'scipy', 'quadprog')], sep='')"
    )
    text = first_line([str(plan.python), "-c", code], plan.runner.repository)
    return text.replace("Python", "Python ", 1) if text else "unknown"


def first_line(command, folder):
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return (done.stdout.splitlines() or [""])[0]
