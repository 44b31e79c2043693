"""Mutants of a small package, and that tests which assert nothing are seen through."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from torture.mutants.finding import PACKAGES, all_mutants, modules, mutant, mutants_of, source_of
from torture.mutants.mutation import Mutant, valid
from torture.mutants.part import summed, told
from torture.mutants.trial import Verdict, sampled
from torture.part_report import ROOT, Report

pytestmark = pytest.mark.nightly

CODE = '''"""Water."""

LEAST = 2


def level(depth, most=9):
    """How full it is."""
    if depth < LEAST:
        raise ValueError("dry: less than 2")
    return min(depth, most) * 2


def unused(depth):
    return depth + 1
'''
GOOD = """
import pytest
from pond.water.level import level


def test_levels():
    with pytest.raises(ValueError, match="dry"):
        level(1)
    assert [level(depth) for depth in (2, 3, 9, 10)] == [4, 6, 18, 18]
"""
EMPTY = """
from pond.water.level import level


def test_nothing():
    level(3)
    level(10)
"""
BROKEN = """
from pond.water.level import level


def test_only_once(tmp_path_factory):
    import os, pathlib
    mark = pathlib.Path(os.environ["POND_MARK"])
    level(3)
    assert not mark.exists()
    mark.touch()
"""


def pond(folder: Path, tests: str) -> Path:
    """A project with a package and one file of tests."""
    home = folder / "src" / "pond" / "water"
    home.mkdir(parents=True)
    for package in (home, home.parent):
        (package / "__init__.py").write_text("")
    (home / "level.py").write_text(CODE, encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests" / "test_level.py").write_text(tests, encoding="utf-8")
    return folder


def tried(root: Path, folder: Path, top: str, module: str, size: int, *files: str) -> Any:
    """What became of mutants, tried in a process of their own."""
    places = os.pathsep.join(map(str, (ROOT / "src", ROOT)))
    command = [sys.executable, "-m", "tests.torture.mutant_trials"]
    command += [str(root), str(folder / "map"), top, module, str(size), *files]
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        command,
        env={**os.environ, "PYTHONPATH": places, "POND_MARK": str(folder / "mark")},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def of_pond(tmp_path: Path, tests: str) -> Any:
    root = pond(tmp_path / "pond", tests)
    before = (root / "src/pond/water/level.py").read_bytes()
    found = tried(root, tmp_path, "pond", "water/level.py", 99, "tests/test_level.py")
    assert (root / "src/pond/water/level.py").read_bytes() == before
    return found


def test_a_good_test_kills_whatever_it_runs(tmp_path: Path) -> None:
    found = of_pond(tmp_path, GOOD)
    lived = {
        (operator, before) for _, operator, before, kind, _ in found["verdicts"] if kind == "passed"
    }
    uncovered = [name for name, *_, kind, _ in found["verdicts"] if kind == "not covered"]
    assert not lived
    assert uncovered and all(":unused:" in name for name in uncovered)
    assert sum(kind in ("failed", "import") for *_, kind, _ in found["verdicts"]) >= 10
    assert not found["bad"]


def test_examples_in_the_code_are_those_of_the_mutant(tmp_path: Path) -> None:
    """A file that pytest is given is read from the disk, for examples as for tests."""
    root = pond(tmp_path / "pond", EMPTY)
    home = root / "src" / "pond" / "water" / "level.py"
    example = '"""How full it is.\n\n    >>> level(3)\n    6\n    """'
    home.write_text(CODE.replace('"""How full it is."""', example), encoding="utf-8")
    (root / "pytest.ini").write_text("[pytest]\naddopts = --doctest-modules\n", encoding="utf-8")
    files = "src/pond/water/level.py", "tests/test_level.py"
    found = tried(root, tmp_path, "pond", "water/level.py", 99, *files)
    doubling = [one for one in found["verdicts"] if one[1:3] == ["arithmetic", "*"]]
    assert doubling and all(one[4].startswith("src/") for one in doubling)
    assert not found["bad"]


def test_a_test_that_asserts_nothing_is_seen_through(tmp_path: Path) -> None:
    found = of_pond(tmp_path, EMPTY)
    lived = {
        (operator, before) for _, operator, before, kind, _ in found["verdicts"] if kind == "passed"
    }
    assert {("swap", "min"), ("arithmetic", "*"), ("compare", "<")} <= lived


def test_a_test_that_fails_by_itself_kills_nothing(tmp_path: Path) -> None:
    found = of_pond(tmp_path, BROKEN)
    assert found["bad"] == ["tests/test_level.py::test_only_once"]
    assert {kind for *_, kind, _ in found["verdicts"]} == {"not covered"}


def test_mutants_of_a_real_module_are_killed(tmp_path: Path) -> None:
    found = tried(
        ROOT, tmp_path, "takifugu", "ledger/canonical_text.py", 6, "tests/ledger/test_values.py"
    )
    assert len(found["verdicts"]) >= 5 and not found["bad"]
    assert any(kind == "failed" for *_, kind, _ in found["verdicts"])


def test_an_id_stays_when_other_lines_change(tmp_path: Path) -> None:
    root = pond(tmp_path, GOOD) / "src" / "pond"
    before = [one.id for one in mutants_of("water/level.py", root)]
    mutants_of.cache_clear()
    source_of.cache_clear()
    moved = CODE.replace("def level", "def first(a):\n    return a\n\n\ndef level")
    (root / "water" / "level.py").write_text(moved, encoding="utf-8")
    after = mutants_of("water/level.py", root)
    mutants_of.cache_clear()
    assert [one.id for one in after] == before and len(set(before)) == len(before) > 10
    assert mutant(before[3], root).id == before[3]
    with pytest.raises(LookupError):
        mutant(before[3] + "0", root)


def test_text_for_people_and_types_is_left_alone(tmp_path: Path) -> None:
    root = pond(tmp_path, GOOD) / "src" / "pond"
    changed = [(one.line, one.before) for one in mutants_of("water/level.py", root)]
    mutants_of.cache_clear()
    assert (9, "2") not in changed and (1, "Water") not in changed
    assert (3, "2") in changed and (6, "9") in changed


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_mutants_that_differ(package: str) -> None:
    every = all_mutants(package)
    assert len(every) > 50 * len(modules(package)) ** 0.5
    rng = np.random.default_rng(4)
    for one in sampled(every, 5, rng):
        source = (ROOT / "src/takifugu" / one.module).read_bytes()
        if valid(one, source):
            assert ast.dump(ast.parse(one.applied(source))) != ast.dump(ast.parse(source))


def verdicts(killed: int, lived: int) -> list[Verdict]:
    made = []
    for place in range(killed + lived):
        one = Mutant(f"m:{place}", "m", 1, (1,), (), "number", "1", "2", 0, 1)
        made.append(Verdict(one, "failed" if place < killed else "passed", "", 3))
    return made


def test_mutants_that_live_are_listed_and_no_score_is_owed(tmp_path: Path) -> None:
    report = Report("mutants", tmp_path, 1.0, 1)
    known = {"ledger": verdicts(70, 30), "session": verdicts(0, 2)}
    told(report, {name: [] for name in known}, known)
    assert not report.findings
    assert list(report.tables["Mutants by package"].rows) == [
        ("ledger", 0, 100, 30),
        ("session", 0, 2, 2),
    ]
    assert len(report.tables["Mutants that lived"].rows) == 32
    assert report.counts["mutants killed"] == 70
    assert summed(known["ledger"]) == "tried 100: {'failed': 70, 'passed': 30}"
