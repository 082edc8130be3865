"""What README, book, help and docstrings tell a reader to type works, on files that a reader has.

Runs `docs/book/checks/commands.py`, whose `--update` writes what commands print now. D4RL's file,
which is not ours to give away, is stood in for by a small one of the same layout, and rows are
counted accordingly.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "docs/book/src"
DOCUMENTS = [ROOT / "README.md", ROOT / "python/README.md", *sorted(BOOK.glob("*.md"))]
PROSE = [*DOCUMENTS, ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/README.md", ROOT / "crates/io/FORMAT.md"]

spec = importlib.util.spec_from_file_location("commands", ROOT / "docs/book/checks/commands.py")
commands = importlib.util.module_from_spec(spec)
sys.modules["commands"] = commands
spec.loader.exec_module(commands)

# Commands that build or install; what tries them.
ELSEWHERE = {
    "cargo run --release -- demo": "the tutorial's `argwhy demo`",
    "./test": "whoever runs this",
    "cargo install --path crates/cli": "the workflow `binaries` builds it",
    "pip install ./python": "the workflow `wheels`, job sdist",
    "pip install './python[sklearn,plot,onnx,mujoco]'": "extras are those of requirements-test.txt",
    "pip install maturin ziglang": "the workflow `wheels`",
    "cd python && maturin build --release --zig --compatibility manylinux2014": "the workflow `wheels`",
    "pip install 'argwhy[ray]'": "extras are those of requirements-test.txt",
    "argwhy fit demonstrations.parquet --bounds=-1,1 --ray auto --ray-workers 8 --ray-cpus 16 -o expert.argwhy": "test_ray.py",
    "cargo install mdbook --locked --no-default-features --features search && mdbook build docs/book": "the workflow `book`",
}
# Chapters that go on with the files of another.
CONTINUES = {"why.md": "tutorial.md"}
# Their output is the machine's.
MACHINE = ("argwhy doctor", "argwhy bench")
# Fewer rows and episodes, so that all of it takes seconds; the words printed are the same.
SHORTER = [
    ("0:5000", "0:300"), ("10000:20000", "300:400"), ("5000:10000", "300:400"),
    ("--max-iterations 6", "--max-iterations 6 --tol 1e-15"),
    ("--memory 50MiB", "--memory 20MiB"),
    ('evaluate(pilot, "hopper")', 'evaluate(pilot, "hopper", episodes=1)'),
    ('record(pilot, "hopper", "hopper.gif")', "pass  # test_gym_record.py draws where there is EGL"),
    ("--seeds 5", "--seeds 1"),
]


def short(command):
    for long, brief in SHORTER:
        command = command.replace(long, brief)
    return command


def elsewhere(command):
    return command.split("#")[0].strip() in ELSEWHERE


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Where a shell finds the command under test, and this Python."""
    folder = tmp_path_factory.mktemp("bin")
    program = os.environ.get("ARGWHY_COMMAND", str(ROOT / "target" / "debug" / "argwhy"))
    (folder / "argwhy").symlink_to(Path(program).resolve())
    for name in ("python", "python3"):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.fixture(scope="module")
def demos(tmp_path_factory, path):
    """Both demos, run once: their folder, and what each has printed."""
    folder = tmp_path_factory.mktemp("demos")
    reader = commands.Reader(folder, path=path)
    for name in ("demo", "demo charging"):
        status, screen = reader.types(f"argwhy {name}")
        assert status == 0, screen
        (folder / f"{name}.txt").write_text(screen)
    return folder


@pytest.fixture
def reader(tmp_path, path, demos):
    """A reader with D4RL's file, of whom demos cost nothing."""
    rng = np.random.default_rng(0)
    observations = rng.normal(size=(400, 11)).astype("f4")
    wish = np.sin(observations[:, :3] * 2) + observations[:, 3:6]
    with h5py.File(tmp_path / "hopper_expert-v2.hdf5", "w") as file:
        file["observations"] = observations
        file["actions"] = np.clip(wish, -1, 1).astype("f4")
        file["terminals"] = np.zeros(400, bool)

    def shortened(command):
        if re.fullmatch(r"argwhy demo( charging)?", command):
            return f"cp -r '{demos}/argwhy-demo' . && cat '{demos}/{command.removeprefix('argwhy ')}.txt'"
        return short(command)

    return commands.Reader(tmp_path, shortened, path)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_says_to_type_works(document, reader, demos):
    text = document.read_text(encoding="utf-8")
    if document.name == "README.md":
        shutil.copytree(demos / "argwhy-demo", reader.folder / "argwhy-demo")
        # A shell keeps its folder from line to line.
        text = text.replace("cd argwhy-demo\n", "")
        for file in (demos / "argwhy-demo").iterdir():
            shutil.copy(file, reader.folder)
    if document.name in CONTINUES:
        commands.check((BOOK / CONTINUES[document.name]).read_text(encoding="utf-8"), reader)
    faults, _ = commands.check(
        text, reader, skip=elsewhere, compare=lambda command: not command.startswith(MACHINE)
    )
    assert not faults, "\n\n".join(f"{document.name}:{line}: {message}" for line, message in faults)


def test_every_command_that_is_not_run_is_still_in_a_document():
    written = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    assert [command for command in ELSEWHERE if command not in written] == []


def test_percentages_of_the_demos_are_those_they_print(demos):
    """The README's tables, and what the book says of them, are the demos' last column."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    beside = (BOOK / "comparison.md").read_text(encoding="utf-8")
    told = {}
    for name in ("demo", "demo charging"):
        screen = (demos / f"{name}.txt").read_text()
        told[name] = re.findall(r"^\S.*? {2,}([\d.]+) %", screen, re.MULTILINE)
        tables = readme.split(f"`argwhy {name}`: ", 1)[1].split("\n\n")
        shown = re.findall(r"\| ([\d.]+) % \|", tables[1])
        assert sorted(shown) == sorted(told[name][: len(shown)]) and len(shown) >= 3, name
    ours, *ridge = [float(percent) for percent in told["demo"]]
    assert f"argwhy {ours:.2f} %" in beside
    assert f"{min(ridge):.1f} to {max(ridge):.1f} %" in beside


def test_every_line_of_the_workflows_is_in_the_table_of_what_was_tried():
    table = (ROOT / "RELEASE.md").read_text(encoding="utf-8").replace("\\|", "|")
    lines = set()
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        text = path.read_text(encoding="utf-8")
        lines |= set(re.findall(r"^ *(?:- )?run: (?!\|)(.+)$", text, re.MULTILINE))
        for indent, block in re.findall(r"^( *)(?:- )?run: \|\n((?:\1 +.+\n)+)", text, re.MULTILINE):
            lines |= {line.strip() for line in block.splitlines()}
    assert len(lines) > 25
    assert [line for line in sorted(lines) if f"`{line}`" not in table] == []


def test_actions_are_pinned_by_hash():
    """A tag can be moved to other code. Behind the hash stands a version, one for each action."""
    versions: dict[str, set[str]] = {}
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        for name, rest in re.findall(r"^ *(?:- )?uses: ([^@\s]+)(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            if not name.startswith("./"):
                assert re.fullmatch(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+", rest), f"{path.name}: {name}{rest}"
                versions.setdefault(name, set()).add(rest)
    assert len(versions) > 10
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_ten_lines_are_ten():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for section in re.findall(r"^## Ten lines of [\s\S]*?^```\w+\n([\s\S]*?)^```", text, re.MULTILINE):
        assert len([line for line in section.splitlines() if line.strip()]) <= 10, section


def test_rust_of_the_documents_is_compiled():
    """Documents show what a documentation test runs, line by line."""
    tested = (ROOT / "crates/argwhy/src/lib.rs").read_text()
    tested = {re.sub(r"\s*//.*$", "", line.removeprefix("//!")).strip() for line in tested.splitlines()}
    for document in DOCUMENTS:
        for block in commands.blocks(document.read_text(encoding="utf-8")):
            if block.language.startswith("rust"):
                shown = [re.sub(r"\s*//.*$", "", line).strip() for line in block.lines]
                assert [line for line in shown if line and line not in tested] == [], document


@pytest.fixture(scope="module")
def helps(command):
    """The help of each subcommand."""
    listed = command("--help").stdout.split("Commands:")[1].split("Options:")[0]
    words = re.findall(r"^  (\w+)", listed, re.MULTILINE)
    return {word: command(word, "--help").stdout for word in words if word != "help"}


def spoken(text):
    """Commands of ours inside sentences."""
    return re.findall(r"`+argwhy ([a-z]+)([^`]*)`", text.replace("\n", " "))


def test_commands_inside_sentences_have_known_words(helps):
    documents = [(path, path.read_text(encoding="utf-8")) for path in [*PROSE, *(ROOT / "python/argwhy").rglob("*.py")]]
    found = [(path.name, word, rest) for path, text in documents for word, rest in spoken(text)]
    assert len(found) > 20
    wrong = []
    for name, word, rest in found:
        flags = re.findall(r"(?<![\w-])--[a-z][a-z-]*", rest)
        if word not in helps or not all(re.search(rf"{flag}\b", helps[word]) for flag in flags if flag != "--help"):
            wrong.append((name, f"argwhy {word}{rest}"))
    assert wrong == []


def test_examples_in_the_help_work(helps, reader):
    for document in ("tutorial", "constraints"):
        for block in commands.blocks((BOOK / f"{document}.md").read_text(encoding="utf-8")):
            name = commands.named_file(block)
            if name and name.endswith(".py"):
                (reader.folder / name).write_text("\n".join(block.lines))
                status, screen = reader.types(f"python3 {name} > {name.removesuffix('.py')}.csv")
                assert status == 0, screen
    (reader.folder / "hours.csv").write_text("product_0,product_1\n2,1\n1,3\n")
    ran = 0
    for word in ("fit", "predict", "evaluate", "inspect", "ablate", "bench"):
        examples = "".join(helps[word].split("\nExample", 1)[1:])
        # A line that a narrow terminal would break can't be pasted.
        assert all(len(line) < 80 for line in examples.splitlines() if line.startswith("  "))
        text = examples.replace("\\\n", " ")
        for example in re.findall(r"^\s+(argwhy .*)$", text, re.MULTILINE):
            status, screen = reader.types(example)
            assert status == 0, f"{example}\n{screen}"
            ran += 1
    assert ran >= 4


def test_messages_of_the_troubleshooting_page_are_ones_that_come():
    """Each is looked for in the sources, between the dots that stand for names and numbers."""
    rooms = ["crates/core/src", "crates/io/src", "crates/argwhy/src", "crates/cli/src", "crates/cuda/src", "crates/cluster/src"]
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.rs")] + list((ROOT / "python/argwhy").rglob("*.py"))
    source = " ".join(path.read_text(encoding="utf-8") for path in paths)
    # One line, with marks and arguments as dots: `{count} decisions` and `{infeasible clip}`.
    source = re.sub(r"\\\n\s*|\"\s*\n?\s*f?\"", "", source)
    source = re.sub(r"\{[^{}]*\}|\{\{[^{}]*\}\}", "…", source)
    page = (BOOK / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert len(messages) > 25
    missing = []
    for message in messages:
        parts = [part.strip(" ;`,") for part in message.split("…")]
        if not all(part in source for part in parts if len(part) > 3):
            missing.append(message)
    assert missing == []


def test_the_reference_is_what_the_docstrings_say():
    check = ROOT / "docs/book/checks/reference.py"
    done = subprocess.run([sys.executable, str(check), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_chapter_is_in_the_summary_and_every_link_leads_somewhere():
    summary = (BOOK / "SUMMARY.md").read_text(encoding="utf-8")
    assert [path.name for path in BOOK.glob("*.md") if path.name != "SUMMARY.md" and f"({path.name})" not in summary] == []
    broken = []
    for document in PROSE:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```[\s\S]*?```|`[^`]*`", "", text)):
            file, _, anchor = target.partition("#")
            if target.startswith("http"):
                continue
            path = (document.parent / file).resolve() if file else document
            # A page of the site has no neighbours but pages.
            astray = document.parent == BOOK and BOOK not in path.parents
            if astray or not path.exists() or (anchor and anchor not in anchors(path)):
                broken.append((document.name, target))
    assert broken == []


def anchors(path):
    """What headings are called in addresses."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
