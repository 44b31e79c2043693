"""Oldest versions are the lower bounds, every Python here is found, and failures are told."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from torture.dependencies.environments import Environment, copied_tree
from torture.dependencies.matrix import (
    CORE,
    Outcomes,
    core,
    licences,
    not_reached,
    run_batch,
    told_twice,
)
from torture.dependencies.requirements import (
    ALWAYS,
    OLDEST,
    RUNTIME,
    Asked,
    imported,
    lower_bound,
    not_asked_for,
    oldest_constraints,
    pinned,
)
from torture.part_report import ROOT, Report

pytestmark = pytest.mark.nightly

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_the_oldest_versions_are_the_lower_bounds_and_each_is_allowed() -> None:
    asked = Asked.read()
    assert OLDEST.read_text(encoding="utf-8") == oldest_constraints(asked)
    assert set(pinned(OLDEST)) == set(asked.direct)
    for name, one in asked.direct.items():
        assert one.specifier.contains(pinned(OLDEST)[name])
        assert one.specifier.contains(pinned()[name])


BESIDE = {"diffprivlib", "pipeline_dp", "snsql", "tmlt"}  # benchmarks make environments for these


def test_what_is_imported_is_asked_for_by_name(tmp_path: Path) -> None:
    asked = Asked.read()
    users = {one.name for extra in (ALWAYS, *RUNTIME) for one in asked.requirements[extra]}
    assert not_asked_for(imported(ROOT / "src"), users, {"takifugu"}) == {}
    ours = {"takifugu", "tests", "torture", "benchmarks"}
    for folder in ("tests", "torture", "benchmarks", "docs"):
        found = not_asked_for(imported(ROOT / folder), set(asked.direct), ours)
        assert set(found) <= BESIDE
    (tmp_path / "a.py").write_text("import os, numpy.linalg\nfrom . import b\n")
    (tmp_path / "b.py").write_text("def f():\n    from markdown_it import main\n")
    assert set(imported(tmp_path)) == {"numpy", "markdown_it"}
    assert not_asked_for(imported(tmp_path), users, set()) == {"markdown_it": ["b.py"]}


@pytest.mark.parametrize("text", ["pandas", "pandas<3", "pandas!=2", "pandas>=2,!=2.0"])
def test_a_requirement_without_an_oldest_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="pandas"):
        lower_bound(Requirement(text))


def test_a_requirement_that_is_asked_for_in_two_ways_is_refused() -> None:
    twice = Asked({ALWAYS: (Requirement("a>=1"),), "tables": (Requirement("a>=2"),)})
    with pytest.raises(ValueError, match="a>=1"):
        _ = twice.direct


def test_every_package_that_people_need_has_tests_that_every_environment_runs() -> None:
    asked = Asked.read()
    needed = {one.name for extra in (ALWAYS, *RUNTIME) for one in asked.requirements[extra]}
    assert set(CORE) == needed - {"takifugu"}
    for test in core():
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file()
        defined = [ROOT / file, *(ROOT / "tests" / "contracts").glob("*.py")]
        assert any(f"def {name}" in path.read_text(encoding="utf-8") for path in defined)


PLANTED = """
from pathlib import Path
import pytest, warnings

def test_that_passes(): pass
def test_that_is_skipped(): pytest.skip("why")
def test_that_fails(): assert 1 == 2
def test_that_warns(): warnings.warn("going away", DeprecationWarning)
def test_that_fails_once():
    seen = Path(__file__).with_name("seen")
    if not seen.exists():
        seen.touch()
        assert False
@pytest.fixture
def broken():
    yield
    raise OSError
def test_that_ends_badly(broken): pass
"""


def test_failures_are_found_and_told_with_the_way_to_see_them_again(tmp_path: Path) -> None:
    tree = copied_tree(tmp_path / "tree")
    (tree / "tests" / "test_planted.py").write_text(PLANTED)
    (tree / "tests" / "test_no_module.py").write_text("import no_such_package\n")
    env = Environment(HERE, "newest", Path(sys.prefix), tree)
    outcomes = Outcomes()
    log = tmp_path / "log"
    files = ["tests/test_planted.py", "tests/test_keys.py"]
    run_batch(env, ["tests/test_no_module.py", *files], time.time() + 600, outcomes, log)
    named = {test.rpartition("::")[2]: outcome for test, outcome in outcomes.by_test.items()}
    assert named["test_that_passes"] == "passed" and named["test_that_is_skipped"] == "skipped"
    assert outcomes.count("passed") > 2 and outcomes.count("failed") == 5

    report = Report("dependencies", tmp_path, minutes=1, seed=0)
    told_twice(report, env, outcomes)
    failing = ("test_that_fails", "test_that_warns", "test_that_ends_badly", "test_no_module.py")
    assert len(report.findings) == len(failing)
    for name in failing:
        (one,) = (one for one in report.findings if f"{name} fails" in one.what)
        assert name in one.again and f"nox -s 'tests-{HERE}(newest)' --" in one.again
    (once,) = report.remarks
    assert "test_that_fails_once" in once and outcomes.count("failed") == 4

    ended = Outcomes()
    run_batch(env, files, time.time() - 1, ended, log)
    assert len(ended.by_test) == 1 and ended.odd == []  # the time was up after the first
    not_reached(report, env, ended)
    assert all(name in report.remarks[-1] for name in CORE)
    run_batch(env, ["tests/no_such_file.py"], time.time() + 600, ended, log)
    assert len(ended.odd) == 1
    told_twice(report, env, ended)
    assert "status 4" in report.findings[-1].what


def test_the_bill_of_an_environment_is_judged(tmp_path: Path) -> None:
    report = Report("dependencies", tmp_path, minutes=1, seed=0)
    env = Environment(HERE, "pinned", Path(sys.prefix), ROOT)
    licences(report, env, tmp_path)
    assert report.findings == [] and report.counts == {"bills of materials": 1}
    assert env.packages()["numpy"] == np.__version__
    licences(report, env, tmp_path / "nowhere")
    assert len(report.findings) == 1
