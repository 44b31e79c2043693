"""Tests in every environment: each Python with the oldest, the pinned and the newest versions."""

import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

import numpy as np

from torture.dependencies.environments import (
    LEVELS,
    VERSIONS,
    Environment,
    NotInstalled,
    cache,
    copied_tree,
    environment,
    interpreters,
    surroundings,
)
from torture.dependencies.requirements import ALWAYS, OURSELVES, RUNTIME, Asked
from torture.dependencies.until import OUTCOMES, UNTIL
from torture.part_report import ROOT, Cell, Report

_SERVES = "tests/server/test_process.py::test_a_server_starts_answers_and_stops"
# For every package that takifugu asks for at run time, files or tests that call it, quick ones.
CORE: Mapping[str, tuple[str, ...]] = {
    "numpy": ("tests/test_numeric.py", "tests/test_rounding.py", "tests/test_fingerprint.py"),
    "scipy": ("tests/mechanisms/test_calibration.py", "tests/priors/test_gaussian.py"),
    "numba": ("tests/influence/test_chains.py", "tests/translation/test_chain_losses.py"),
    "opendp": ("tests/mechanisms/test_losses.py", "tests/mechanisms/test_noise_law.py"),
    "duckdb": ("tests/tables/test_files.py", "tests/tables/test_duckdb.py"),
    "matplotlib": ("tests/reports/test_plots.py",),
    "rich": ("tests/cli/test_main.py", "tests/cli/test_check.py"),
    "typer": ("tests/test_front_door.py", "tests/cli/test_commands.py"),
    "pandas": ("tests/tables/test_frames.py", "tests/session/test_tables_in_memory.py"),
    "polars": ("tests/tables/test_frames.py",),
    "pyarrow": ("tests/tables/test_frames.py", "tests/session/test_result_files.py"),
    "openpyxl": ("tests/session/test_result_files.py",),
    "psycopg": (
        "tests/ledger/test_contract.py::test_a_budget_can_be_spent_to_the_last_bit_and_no_further",
        "tests/tables/test_postgres.py",
    ),
    "pyspark": (
        "tests/tables/test_spark.py::test_lengths_do_not_depend_on_protected_values",
        "tests/tables/test_spark.py::test_queries_are_answered_as_the_sql_of_ibis_is",
    ),
    "cryptography": ("tests/reports/test_report_signature.py",),
    "weasyprint": ("tests/cli/test_report.py",),
    "fastapi": ("tests/server/api/test_app.py", "tests/server/api/test_openapi_document.py"),
    "jinja2": ("tests/server/pages/test_page_templates.py",),
    "markupsafe": ("tests/server/pages/test_page_templates.py",),
    "prometheus-client": ("tests/server/test_metrics.py",),
    "pydantic": ("tests/server/api/test_app.py", "tests/server/api/test_strict_json.py"),
    "starlette": ("tests/server/api/test_app.py", "tests/server/access/test_headers.py"),
    "uvicorn": (_SERVES, "tests/client/test_real_process.py::test_the_same_script_here_and_there"),
    "httptools": (_SERVES,),
    "uvloop": (_SERVES,),
}
LEFT_OUT = ("tests/torture",)  # a run within a run
AT_ONCE = 24  # files in a process, which takes seconds to begin
LATE = 5 * 60.0  # seconds after its time at which a process of tests is stopped
WHOLE = 15 * 60.0  # seconds for tests that are run in any case
TOLD = 20  # failures of one environment that are findings of their own
# The oldest versions of what we ask for meet newer ones of what those ask for, and use what these
# have deprecated since: that is between them. With the pinned and newest ones it is an error.
FORGIVEN = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
FINE = {0, 1, 2, 5}  # what pytest ends with: well, failures, told to end, nothing to run


@dataclass
class Outcomes:
    """What the tests of an environment came to.

    Attributes:
        by_test: "passed", "skipped" or "failed".
        odd: Processes that did not end as pytest does.
    """

    by_test: dict[str, str] = field(default_factory=dict)
    odd: list[str] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        """How many tests came to that."""
        return list(self.by_test.values()).count(outcome)

    @property
    def failed(self) -> list[str]:
        """The tests that failed."""
        return [test for test, outcome in self.by_test.items() if outcome == "failed"]


def first() -> list[str]:
    """One file or test of every package, about a minute: every environment runs all of them."""
    return list(dict.fromkeys(tests[0] for tests in CORE.values()))


def core() -> list[str]:
    """The tests of packages, once each: one of every package, then the next."""
    turns = zip_longest(*CORE.values())
    return list(dict.fromkeys(test for turn in turns for test in turn if test is not None))


def others(rng: np.random.Generator, root: Path = ROOT) -> list[str]:
    """All other files of tests, in an order that is drawn; those with a test in the core too."""
    known = set(core())
    files = sorted(
        path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")
    )
    left = [one for one in files if one not in known and not one.startswith(LEFT_OUT)]
    return [left[index] for index in rng.permutation(len(left))]


def batches(rng: np.random.Generator, root: Path = ROOT) -> Iterator[list[str]]:
    """The files of tests, so many at once: the first of every package, then the others of it."""
    yield first()
    yield core()[len(first()) :]
    files = others(rng, root)
    for start in range(0, len(files), AT_ONCE):
        yield files[start : start + AT_ONCE]


def cells(rng: np.random.Generator, versions: tuple[str, ...]) -> list[tuple[str, str]]:
    """Pythons and levels, those that tell most first: the corners of the table."""
    every = [(version, level) for version in versions for level in LEVELS]
    corners = [(versions[0], "oldest"), (versions[-1], "newest"), (versions[-1], "pinned")]
    rest = [cell for cell in every if cell not in corners]
    return [*dict.fromkeys(corners), *(rest[index] for index in rng.permutation(len(rest)))]


def run_matrix(report: Report, rng: np.random.Generator) -> None:
    """Fill the table, each environment with its share of the time."""
    pythons = interpreters()
    for version in VERSIONS:
        if version not in pythons:
            report.remark(f"Python {version} is not on this machine: not run.")
    if not pythons:
        report.remark("None of these Pythons is here: nothing was run.")
        return
    within = report.folder / "dependencies"
    tree = copied_tree(within / "tree")
    rows: list[tuple[Cell, ...]] = []
    by_level: dict[str, dict[str, str]] = {}
    waiting = cells(rng, tuple(pythons))
    least = 0.0  # seconds to install one and to run the first tests of it, the longest so far
    while waiting and not report.over:
        version, level = waiting.pop(0)
        began = time.monotonic()
        try:
            with environment(version, level, within=within, tree=tree) as env:
                log = within / f"{env.version}-{env.level}.log"
                log.write_text("", encoding="utf-8")
                packages = env.packages()
                by_level.setdefault(level, packages)
                report.count("environments")
                outcomes = Outcomes()
                tests = batches(rng, tree)
                run_batch(env, next(tests), None, outcomes, log)
                least = max(least, time.monotonic() - began)
                share = share_of(report.seconds_left, least, len(waiting))
                run_tests(env, tests, share, outcomes, log)
                told_twice(report, env, outcomes)
                not_reached(report, env, outcomes)
                licences(report, env, within)
        except NotInstalled as error:
            env = Environment(version, level, within, tree)
            report.finding(f"{env.name}: not installed: {error}", _again(env))
            continue
        for outcome in ("passed", "failed", "skipped"):
            report.count(f"tests {outcome}", outcomes.count(outcome))
        minutes = round((time.monotonic() - began) / 60, 1)
        counts = (outcomes.count(outcome) for outcome in ("passed", "failed", "skipped"))
        rows.append((version, level, len(packages), *counts, minutes))
        rows.sort(key=lambda row: (row[0], LEVELS.index(str(row[1]))))
        report.table(
            "Python and versions",
            ("Python", "versions", "packages", "passed", "failed", "skipped", "minutes"),
            rows,
        )
        report.table("Versions of what people need", ("package", *by_level), _versions(by_level))
    for used in (tree, cache(within)):
        shutil.rmtree(used, ignore_errors=True)
    if waiting:
        left = ", ".join(f"{version} {level}" for version, level in waiting)
        report.remark(f"No time was left for {left}.")


def share_of(seconds: float, least: float, waiting: int) -> float:
    """Of the time that is left, what further tests of one get if each that waits needs `least`."""
    return max(0.0, seconds - least * waiting) / (waiting + 1)


def _versions(by_level: dict[str, dict[str, str]]) -> Iterator[tuple[str, ...]]:
    asked = Asked.read()
    names = sorted({one.name for extra in (ALWAYS, *RUNTIME) for one in asked.requirements[extra]})
    for name in (name for name in names if name != OURSELVES):
        known = tuple(packages.get(name, "") for packages in by_level.values())
        if any(known):
            yield (name, *known)


def run_tests(
    env: Environment, tests: Iterable[list[str]], seconds: float, outcomes: Outcomes, log: Path
) -> None:
    """Run batches of tests one after the other while there is time, and add what they came to."""
    until = time.time() + seconds
    for files in tests:
        if time.time() > until:
            break
        run_batch(env, files, until, outcomes, log)


def run_batch(
    env: Environment, files: list[str], until: float | None, outcomes: Outcomes, log: Path
) -> None:
    """Run these files or tests in one process, all if there is no `until`; add what came of it."""
    ends = time.time() + WHOLE if until is None else until
    told = log.with_suffix(".jsonl")
    told.unlink(missing_ok=True)
    line = [str(env.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE"]
    line += ["--continue-on-collection-errors"]  # one file that fails must not hide the others
    line += [
        "-p",
        "torture.dependencies.until",
        "-m",
        "not real_data",
        *_forgiven(env.level),
        *files,
    ]
    with log.open("ab") as out:
        process = subprocess.Popen(  # noqa: S603 - an environment of ours
            line,
            cwd=env.tree,
            env={**surroundings(env.folder), UNTIL: str(ends), OUTCOMES: str(told)},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            status = process.wait(timeout=max(0.0, ends - time.time()) + LATE)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
    if status not in FINE:
        last = log.read_bytes()[-600:].decode(errors="replace").strip()
        outcomes.odd.append(f"pytest ended with status {status}: …{last}")
    if told.exists():
        for entry in map(json.loads, told.read_text(encoding="utf-8").splitlines()):
            outcomes.by_test[entry["test"]] = entry["outcome"]
        told.unlink()


def told_twice(report: Report, env: Environment, outcomes: Outcomes) -> None:
    """Run what failed once more, alone; what fails twice is a finding, else a remark."""
    again = _again(env)
    for odd in outcomes.odd:
        report.finding(f"{env.name}: {odd}", again)
    failed = outcomes.failed
    if not failed:
        return
    second = Outcomes()
    log = report.folder / "dependencies" / f"{env.version}-{env.level}-again.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("", encoding="utf-8")
    run_batch(env, failed[:TOLD], None, second, log)
    for test in failed[:TOLD]:
        if second.by_test.get(test) == "passed":
            outcomes.by_test[test] = "passed"
            report.remark(f"{env.name}: {test} failed once, and passed when it was run again.")
        else:
            report.finding(f"{env.name}: {test} fails", _again(env, test))
    if len(failed) > TOLD:
        report.finding(f"{env.name}: {len(failed) - TOLD} more tests fail", f"see {log.name}")


def not_reached(report: Report, env: Environment, outcomes: Outcomes) -> None:
    """Say which packages that people need have not been tried, for want of time."""
    begun = {test.partition("::")[0] for test in outcomes.by_test}
    late = sorted(
        name
        for name, tests in CORE.items()
        if not begun & {test.partition("::")[0] for test in tests}
    )
    if late:
        report.remark(f"{env.name}: the time was up before the tests of {', '.join(late)}.")


def _forgiven(level: str) -> list[str]:
    """Options of pytest, by level."""
    return [word for kind in FORGIVEN for word in ("-W", f"ignore::{kind}")] * (level == "oldest")


def _again(env: Environment, *tests: str) -> str:
    return shlex.join(["nox", "-s", env.session, "--", *_forgiven(env.level), *tests])


def licences(report: Report, env: Environment, folder: Path) -> None:
    """Other versions may have other licences, and need other packages: judge those too."""
    line = ["-m", "torture.dependencies", "--sbom"]
    done = env.run(*line, str(folder / f"sbom-{env.version}-{env.level}.json"), timeout=300)
    report.count("bills of materials")
    if done.returncode:
        errors = [line for line in done.stdout.splitlines() if line.startswith("takifugu: ")]
        again = shlex.join(["nox", "-s", env.session, "--install-only"])
        again += f" && .nox/{env.folder.name}/bin/python {shlex.join(line)} sbom.json"
        report.finding(f"{env.name}: {' '.join(errors) or done.stdout.strip()[-600:]}", again)
