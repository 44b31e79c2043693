"""The pages of the documentation do what they say.

Every page (below docs/, and README.md) is worked through in a folder of its own, in order:

* a block marked with a language and a file name (```` ```toml ward.toml ````) is written there;
* in a ```` ```console ```` block every line ``$ takifugu …`` is run there. What the block shows
  below it must be what the command prints, standard output first, then errors; trailing blanks do
  not count and a line ``…`` stands for any lines. The status must be 0, or N if the block is
  marked ``console exit=N``. Other commands are not run;
* a ```` ```python ```` block is run there, as a doctest if it begins with ``>>>``; all of a page's
  share their names;
* a page that reads ``visits.parquet`` finds a synthetic one there, and its ``labels``;
* a page of ``SERVED`` finds a server at the address that it names, and a token in the environment;
  of its console blocks the commands of ``TOOLS`` are run too, by a shell;
* a page of ``REAL_DATA`` finds the download that it starts from; without the data it is skipped.
"""

import contextlib
import csv
import doctest
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree, which
from typing import Any

import pytest

from takifugu.cli import main
from tests.real_data import write_new_york
from tests.visits import LABELS, write_visits

ROOT = Path(__file__).parents[1]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
REAL_DATA = {
    ROOT / "docs" / "tutorial" / "new-york.md": write_new_york,
    ROOT / "docs" / "tutorial" / "ten-counts.md": write_new_york,
}
SERVED = {
    ROOT / "docs" / "how-to" / "remote.md": "http://127.0.0.1:8461",
    ROOT / "docs" / "how-to" / "serve.md": "http://127.0.0.1:8461",
}
FITTING = ("fit-priors.md", "households.md", "several-columns.md")  # many fits: half a minute each
TOOLS = ("curl", "jq", "head")
FENCE = re.compile(r"^```(\S+)[ \t]*(.*?)[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what stands beside it, its lines and where it begins."""

    language: str
    mark: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(found[1], found[2], found[3], page.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(page)
    ]


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Every command of a console block, and the lines that are shown below it."""
    command, shown = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line.removeprefix("$ "), []
        elif command:
            shown.append(line.rstrip())
    if command:
        yield command, shown


def run(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[int, list[str]]:
    """The status and the printed lines of a ``takifugu`` command, run in ``folder``."""
    out, err = io.StringIO(), io.StringIO()
    status: object = 0
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", shlex.split(command))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
            except SystemExit as stop:
                status = stop.code or 0
    printed = (out.getvalue() + err.getvalue()).splitlines()
    return int(str(status)), [line.rstrip() for line in printed]


def run_tools(command: str, folder: Path) -> tuple[int, list[str]]:
    """The status and the printed lines of a command of other programs, run by a shell."""
    done = subprocess.run(  # noqa: S602 - the documentation's own commands
        command, shell=True, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    printed = (done.stdout + done.stderr).splitlines()
    return done.returncode, [line.rstrip() for line in printed]


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether ``printed`` is what is ``shown``; a line "…" or "..." stands for any lines."""
    wild = [".*" if line in ("…", "...") else re.escape(line) + "\n" for line in shown]
    return (
        re.fullmatch("".join(wild), "".join(f"{line}\n" for line in printed), re.DOTALL) is not None
    )


def without_blank_ends(lines: list[str]) -> list[str]:
    return "\n".join(lines).strip("\n").split("\n") if any(lines) else []


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Run a block of Python, or the examples in it; names that it binds stay bound."""
    if block.text.startswith(">>>"):
        parsed = doctest.DocTestParser().get_doctest(block.text, names, "page", None, block.line)
        report: list[str] = []
        runner = doctest.DocTestRunner()
        failed = runner.run(parsed, out=report.append, clear_globs=False).failed
        names.update(parsed.globs)
        assert not failed, "".join(report)
        return
    code = compile("\n" * block.line + block.text, "page", "exec")  # lines count as on the page
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)  # noqa: S102 - the documentation's own code


def work_through(
    page: str, folder: Path, monkeypatch: pytest.MonkeyPatch, tools: tuple[str, ...] = ()
) -> int:
    """Do all that a page says in ``folder``; how many commands of takifugu were run."""
    done = 0
    names: dict[str, Any] = {"__name__": "__main__", "labels": LABELS}
    if "visits.parquet" in page:
        write_visits(folder)
    for block in blocks(page):
        if block.language == "console":
            expected = int(block.mark.removeprefix("exit=") or 0)
            for command, shown in commands(block.text):
                if command.partition(" ")[0] in tools:
                    status, printed = run_tools(command, folder)
                elif command.startswith("takifugu "):
                    status, printed = run(command, folder, monkeypatch)
                    done += 1
                else:
                    continue
                where = f"line {block.line}: {command}\n" + "\n".join(printed)
                assert status == expected, where
                wanted = without_blank_ends(shown)
                assert not wanted or matches(wanted, without_blank_ends(printed)), where
        elif block.mark and re.fullmatch(r"[\w.-]+", block.mark):
            (folder / block.mark).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            with monkeypatch.context() as patch:
                patch.chdir(folder)
                run_python(block, names)
    return done


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=str(path.relative_to(ROOT)),
            marks=[pytest.mark.real_data] * (path in REAL_DATA)
            + [pytest.mark.nightly] * (path.name in FITTING),
        )
        for path in PAGES
    ],
)
def test_the_page_does_what_it_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if path in REAL_DATA:
        REAL_DATA[path](tmp_path)
    page = path.read_text(encoding="utf-8")
    shown = len(re.findall(r"^\$ takifugu ", page, re.MULTILINE))
    with contextlib.ExitStack() as stack:
        if path in SERVED:
            pytest.importorskip("fastapi", reason="it is an extra: install takifugu[server]")
            from tests.client.listening import listening
            from tests.server.projects import small_project

            server = stack.enter_context(listening(small_project(tmp_path / "a study")))
            assert SERVED[path] in page
            page = page.replace(SERVED[path], server.url)
            monkeypatch.setenv("TAKIFUGU_TOKEN", server.tokens["ana"])
            if missing := [tool for tool in TOOLS if f"$ {tool} " in page and not which(tool)]:
                pytest.skip(f"{', '.join(missing)} is not installed")
        tools = TOOLS if path in SERVED else ()
        assert work_through(page, tmp_path, monkeypatch, tools) == shown


ASKS_FOR_CHANGES = """
import sys
import takifugu as tf
from takifugu.cli import main

with tf.open_project("takifugu.toml").session("stays") as session:
    assert session.plan.changes(epsilon=5).cost.fits
for line, status in (
    ("takifugu release stays changes --by zone --epsilon 1 --yes", 2),
    ("takifugu release stays changes --to attic --epsilon 1 --yes", 2),
    ("takifugu plan stays changes --epsilon 5 --out plan.json", 0),
    ("takifugu release plan.json --yes --out answer.csv", 0),
    ("takifugu plan stays changes --to ward --epsilon 3 --out to-ward.json", 0),
    ("takifugu release to-ward.json --yes --out to-ward.csv", 0),
    ("takifugu report write --out report.html", 0),
):
    sys.argv, code = line.split(), 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    assert code == status, (line, code)
"""


def add_what_the_page_adds(page: str, source: Path) -> None:
    """Write the new modules of a page into the package, and what its lines with a sign change."""
    for block in blocks(page):
        path = source / block.mark.removeprefix("src/takifugu/")
        if block.language == "text":
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "diff":
            lines = block.text.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if not line.startswith("+"))
            text = path.read_text(encoding="utf-8")
            assert text.count(before) == 1, f"line {block.line}: {before}"
            added = "".join(line[1:] for line in lines if not line.startswith("-"))
            path.write_text(text.replace(before, added), encoding="utf-8")


def test_the_query_kind_of_the_page_is_planned_and_released(tmp_path: Path) -> None:
    from tests.server.projects import small_project, stays

    source = tmp_path / "source" / "takifugu"
    copytree(ROOT / "src" / "takifugu", source)
    page = ROOT / "docs" / "how-to" / "add-a-query-kind.md"
    add_what_the_page_adds(page.read_text(encoding="utf-8"), source)
    project = small_project(tmp_path / "study").parent

    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", ASKS_FOR_CHANGES], cwd=project, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(source.parent)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    steps = [(a[3], b[3]) for a, b in itertools.pairwise(stays()) if a[0] == b[0]]
    changes = [after for before, after in steps if before != after]
    for name, exact, epsilon in (
        ("answer", len(changes), 5),
        ("to-ward", changes.count("ward"), 3),
    ):
        with (project / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            (row,) = csv.DictReader(line for line in file if not line.startswith("#"))
        # the noise has a scale of less than 24 / ε: a probability below 1e-12 for each
        assert abs(int(row["estimate"]) - exact) <= 720 / epsilon


def test_the_examples_of_the_page_are_the_files() -> None:
    page = (ROOT / "docs" / "reference" / "worlds.md").read_text(encoding="utf-8")
    marked = {b.mark: b.text for b in blocks(page) if b.mark in os.listdir(ROOT / "docs/examples")}
    assert len(marked) == 4
    for path in (ROOT / "docs" / "examples").iterdir():
        assert marked[path.name] == path.read_text(encoding="utf-8")


PAGE = """
```toml w.toml
title = 1
```
```console exit=2
$ takifugu check w.toml
takifugu: `w.toml: title` is an integer; it must be text
```
```console
$ ls
$ takifugu --version
```
```python
open("made", "w").close()
```
```python
>>> 1 + 1
2
```
"""


def test_the_harness_runs_what_a_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert work_through(PAGE, tmp_path, monkeypatch) == 2
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("is an integer", "is a table"),
        ("exit=2", ""),
        ("title = 1", "title = ''"),
        ("open(", "1/0 + open("),
        ("1 + 1", "1 + 2"),
    ],
)
def test_the_harness_sees_a_page_that_is_wrong(
    right: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError)):
        work_through(PAGE.replace(right, wrong), tmp_path, monkeypatch)


def test_the_harness_runs_other_programs_where_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "```console\n$ printf a > made\n$ cat made\nb\n```\n"
    assert work_through(page, tmp_path, monkeypatch) == 0
    with pytest.raises(AssertionError, match="cat made"):
        work_through(page, tmp_path, monkeypatch, ("printf", "cat"))
    assert (tmp_path / "made").read_text() == "a"


def test_an_ellipsis_stands_for_any_lines() -> None:
    assert matches(["a", "…", "d"], ["a", "b", "c", "d"]) and matches(["a", "…"], ["a"])
    assert not matches(["a", "…", "d"], ["a", "b", "c"]) and not matches(["a.c"], ["abc"])
