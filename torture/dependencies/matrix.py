"""Tests in every environment: each Python with the oldest, the pinned and the newest versions."""

import json
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from torture.dependencies.environments import (
    LEVELS,
    Environment,
    NotInstalled,
    cache,
    copied_tree,
    environment,
    lines,
    surroundings,
)
from torture.dependencies.pythons import VERSIONS, interpreters
from torture.dependencies.requirements import ALWAYS, OURSELVES, RUNTIME, Asked
from torture.dependencies.selection import CORE, batches
from torture.dependencies.until import OUTCOMES, UNTIL
from torture.part_report import Cell, Report

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


def cells(rng: np.random.Generator, versions: tuple[str, ...]) -> list[tuple[str, str]]:
    """Pythons and levels, those that tell most first: the corners of the table."""
    every = [(version, level) for version in versions for level in LEVELS]
    corners = [(versions[0], "oldest"), (versions[-1], "newest"), (versions[-1], "pinned")]
    rest = [cell for cell in every if cell not in corners]
    return [*dict.fromkeys(corners), *(rest[index] for index in rng.permutation(len(rest)))]


def run_matrix(report: Report, rng: np.random.Generator, limit: int | None = None) -> None:
    """Fill the table, each environment with its share of the time; at most ``limit`` of them."""
    there = interpreters()
    for version in VERSIONS:
        if version not in there:
            report.remark(f"Python {version} is not on this machine: not run.")
    if not there:
        report.remark("None of these Pythons is here: nothing was run.")
        return
    within = report.folder / "dependencies"
    tree = copied_tree(within / "tree")
    rows: list[tuple[Cell, ...]] = []
    found: dict[str, dict[str, str]] = {}
    waiting = cells(rng, tuple(there))[:limit]
    least = 0.0  # seconds to install one and to run the first tests of it, the longest so far
    while waiting and not report.over:
        version, level = waiting.pop(0)
        began = time.monotonic()
        try:
            with environment(version, there[version], level, within=within, tree=tree) as made:
                log = within / f"{made.version}-{made.level}.log"
                log.write_text("", encoding="utf-8")
                packages = made.packages()
                found.setdefault(level, packages)
                report.count("environments")
                outcomes = Outcomes()
                tests = batches(rng, tree)
                run_batch(made, next(tests), None, outcomes, log)
                least = max(least, time.monotonic() - began)
                share = share_of(report.seconds_left, least, len(waiting))
                run_tests(made, tests, share, outcomes, log)
                told_twice(report, made, outcomes)
                not_reached(report, made, outcomes)
                licences(report, made, within)
        except NotInstalled as error:
            made = Environment(version, level, within, tree)
            report.finding(f"{made.name}: not installed: {error}", _again(made))
            continue
        for outcome in ("passed", "failed", "skipped"):
            report.count(f"tests {outcome}", outcomes.count(outcome))
        minutes = round((time.monotonic() - began) / 60, 1)
        counts = (outcomes.count(one) for one in ("passed", "failed", "skipped"))
        rows.append((version, level, len(packages), *counts, minutes))
        rows.sort(key=lambda row: (row[0], list(LEVELS).index(str(row[1]))))
        report.table(
            "Python and versions",
            ("Python", "versions", "packages", "passed", "failed", "skipped", "minutes"),
            rows,
        )
        report.table("Versions of what people need", ("package", *found), _versions(found))
    for used in (tree, cache(within)):
        shutil.rmtree(used, ignore_errors=True)
    if waiting:
        left = ", ".join(f"{version} {level}" for version, level in waiting)
        report.remark(f"No time was left for {left}.")


def share_of(seconds: float, least: float, waiting: int) -> float:
    """Of the time that is left, what further tests of one get if each that waits needs `least`."""
    return max(0.0, seconds - least * waiting) / (waiting + 1)


def _versions(found: dict[str, dict[str, str]]) -> Iterator[tuple[str, ...]]:
    asked = Asked.read()
    names = sorted({one.name for extra in (ALWAYS, *RUNTIME) for one in asked.requirements[extra]})
    for name in (name for name in names if name != OURSELVES):
        known = tuple(packages.get(name, "") for packages in found.values())
        if any(known):
            yield (name, *known)


def run_tests(
    made: Environment, tests: Iterable[list[str]], seconds: float, outcomes: Outcomes, log: Path
) -> None:
    """Run batches of tests one after the other while there is time, and add what they came to."""
    until = time.time() + seconds
    for files in tests:
        if time.time() > until:
            break
        run_batch(made, files, until, outcomes, log)


def run_batch(
    made: Environment, files: list[str], until: float | None, outcomes: Outcomes, log: Path
) -> None:
    """Run these files or tests in one process, all if there is no `until`; add what came of it."""
    ends = time.time() + WHOLE if until is None else until
    told = log.with_suffix(".jsonl")
    told.unlink(missing_ok=True)
    line = [str(made.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rfE"]
    line += ["--continue-on-collection-errors"]  # one file that fails must not hide the others
    line += ["-p", "torture.dependencies.until", "-m", "not real_data", *files]
    if made.level == "oldest":
        line += [word for kind in FORGIVEN for word in ("-W", f"ignore::{kind}")]
    with log.open("ab") as out:
        process = subprocess.Popen(  # noqa: S603 - an environment of ours
            line,
            cwd=made.tree,
            env={**surroundings(made.folder), UNTIL: str(ends), OUTCOMES: str(told)},
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


def told_twice(report: Report, made: Environment, outcomes: Outcomes) -> None:
    """Run what failed once more, alone; what fails twice is a finding, else a remark."""
    again = _again(made)
    for odd in outcomes.odd:
        report.finding(f"{made.name}: {odd}", again)
    failed = outcomes.failed
    if not failed:
        return
    second = Outcomes()
    log = report.folder / "dependencies" / f"{made.version}-{made.level}-again.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("", encoding="utf-8")
    run_batch(made, failed[:TOLD], None, second, log)
    for test in failed[:TOLD]:
        if second.by_test.get(test) == "passed":
            outcomes.by_test[test] = "passed"
            report.remark(f"{made.name}: {test} failed once, and passed when it was run again.")
        else:
            report.finding(f"{made.name}: {test} fails", f"{again} {shlex.quote(test)}")
    if len(failed) > TOLD:
        report.finding(f"{made.name}: {len(failed) - TOLD} more tests fail", f"see {log.name}")


def not_reached(report: Report, made: Environment, outcomes: Outcomes) -> None:
    """Say which packages that people need have not been tried, for want of time."""
    begun = {test.partition("::")[0] for test in outcomes.by_test}
    late = sorted(
        name
        for name, tests in CORE.items()
        if not begun & {test.partition("::")[0] for test in tests}
    )
    if late:
        report.remark(f"{made.name}: the time was up before the tests of {', '.join(late)}.")


def _again(made: Environment) -> str:
    folder = Path("environment")
    commands = lines(Path(f"python{made.version}"), folder, made.level, uv=False)
    run = [str(folder / "bin" / "python"), "-m", "pytest"]
    return " && ".join(map(shlex.join, [*commands, run]))


def licences(report: Report, made: Environment, folder: Path) -> None:
    """Other versions may have other licences, and need other packages: judge those too."""
    bill = folder / f"sbom-{made.version}-{made.level}.json"
    line = ["-m", "torture.dependencies", "--sbom", str(bill)]
    done = made.run(*line, timeout=300)
    report.count("bills of materials")
    if done.returncode:
        said = " ".join(line for line in done.stdout.splitlines() if line.startswith("takifugu: "))
        again = _again(made).removesuffix("-m pytest") + shlex.join(line[:-1]) + " sbom.json"
        report.finding(f"{made.name}: {said or done.stdout.strip()[-600:]}", again)
