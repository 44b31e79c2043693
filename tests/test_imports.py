"""What is not imported: every command is a process of its own, and waits for what it imports."""

import ast
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import takifugu

SOURCE = Path(takifugu.__file__).parent
LAZY = sorted(
    str(path.parent.relative_to(SOURCE.parent)).replace("/", ".")
    for path in SOURCE.rglob("__init__.py")
    if "lazy_names(" in path.read_text(encoding="utf-8")
)
HEAVY = {
    *("numba", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "pydantic", "psycopg"),
    *("numpy.ma", "numpy.testing", "pyspark"),
}
RUN = """
import json, sys
from takifugu.cli import main
try:
    main()
except SystemExit as stop:
    print(json.dumps([stop.code, sorted(sys.modules)]), file=sys.stderr)
"""
STAYS = """\
[source]
kind = "csv"
path = "stays.csv"
[entity]
column = "person"
[order]
column = "day"
kind = "number"
ties = "refuse"
[protected.state]
values = ["home", "ward"]
outside = "refuse"
[public.zone]
values = ["north", "south"]
"""


DAYS = [("north", "home"), ("north", "ward"), ("south", "home"), ("south", "home")] * 2


def imported(folder: Path, *arguments: str) -> set[str]:
    """The modules that a command has imported when it ends; it must succeed."""
    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", RUN, *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    status, modules = json.loads(done.stderr.splitlines()[-1])
    assert status == 0, done.stderr
    return set(modules)


@pytest.fixture(scope="module")
def stays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of ten rows and two states, from which one histogram was released."""
    folder = tmp_path_factory.mktemp("stays")
    rows = [f"{p},{d},{z},{s}" for p in ("Ann", "Bea") for d, (z, s) in enumerate(DAYS[:5])]
    (folder / "stays.csv").write_text("\n".join(["person,day,zone,state", *rows, ""]))
    (folder / "stays.toml").write_text(STAYS)
    for line in (
        "init",
        "prior new 0.9,0.1;0.2,0.8 --states home,ward --out prior.json",
        "dataset add stays stays.toml --prior prior.json",
        "budget set stays 20",
        "release stays histogram --by zone --epsilon 1 --yes",
    ):
        imported(folder, *line.split())
    return folder


@pytest.mark.nightly
@pytest.mark.parametrize(
    "line",
    [
        "budget show stays",
        "plan stays histogram --by zone --epsilon 1.5",
        "plan stays transitions --epsilon 1.5",
        "release stays histogram --by zone --epsilon 1.25 --yes",
        "release stays histogram --by zone --epsilon 1",  # again: free
    ],
)
def test_a_command_on_two_states_imports_nothing_heavy(stays: Path, line: str) -> None:
    found = imported(stays, *line.split())
    assert not HEAVY & found
    if line.startswith("budget"):
        assert not {"duckdb", "ibis", "opendp", "rich", "asyncio"} & found


@pytest.mark.parametrize("package", LAZY)
def test_a_lazy_package_names_for_the_type_checker_what_it_has(package: str) -> None:
    module = import_module(package)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {
        (str(node.module), alias.asname or alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {name for _, name in typed} == set(module.__all__) == set(dir(module))
    for home, name in typed:
        assert getattr(module, name) is getattr(import_module(home), name)
    folder = Path(str(module.__file__)).parent
    taken = {path.stem for path in folder.iterdir()}  # a module would replace the name
    assert not taken & set(module.__all__)


def test_all_packages_of_a_session_are_lazy() -> None:
    needed = (
        "tables",
        "fitting",
        "influence",
        "ledger",
        "mechanisms",
        "priors",
        "project",
        "session",
    )
    assert {f"takifugu.{name}" for name in needed} <= set(LAZY)
