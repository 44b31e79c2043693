"""Families in turn, those that take less time more often, until the time is over."""

import json
import re
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from takifugu._core.atomic import write_whole
from takifugu.errors import TakifuguError
from takifugu.translation import LooserTranslation
from tests.oracles.all_vertices import TooManyMechanisms
from torture.oracles.comparison import Allowance, Compared, Family, Instance, Rng
from torture.oracles.tally import COLUMNS, Tally
from torture.part_report import Report

TITLE = "Bounds beside the truth"
KEPT = "oracles-kept"  # the folder of the instances that a finding is about
LONGEST = 60.0  # seconds of the processor for one instance
MOST_FINDINGS = 20  # instances of a family that are told of and kept; the others are counted
SHOWN_EVERY = 50  # instances between two tables


class _TooSlow(Exception):
    """An instance took longer than it may."""


def run_families(
    report: Report, rng: Rng, families: Sequence[Family], *, limit: int | None = None
) -> list[Tally]:
    """Compare until the time is over, or ``limit`` instances of each family are done."""
    tallies = [Tally(family) for family in families]
    done = 0
    while not report.over:
        open_ = [t for t in tallies if limit is None or t.instances < limit]
        if not open_:
            break
        one_instance(report, rng, min(open_, key=lambda t: t.seconds * (1 + t.instances)))
        done += 1
        if done % SHOWN_EVERY == 0:
            _tell(report, tallies)
    _tell(report, tallies)
    for tally in tallies:
        for what in tally.blind():
            again = f"python -m torture oracles --seed {report.seed}"
            report.finding(f"{tally.family.name}: {what}", again)
    return tallies


def one_instance(report: Report, rng: Rng, tally: Tally) -> None:
    """Draw an instance, compare, and tell what must not be."""
    began = time.process_time()
    instance: Instance = json.loads(json.dumps(tally.family.draw(rng)))
    tally.instances += 1
    report.count("instances")
    wrong: list[str] = []
    try:
        with _at_most(LONGEST):
            for one in told(tally.family, instance):
                wrong += tally.add(one)
    except Refused:
        tally.refused += 1
        report.count("refused with a reason")
    except TooManyMechanisms:
        tally.skipped += 1
        report.count("too large for an oracle")
    except _TooSlow:
        kept = keep(report, tally.family, instance, "slow")
        report.count("over a minute")
        report.remark(f"{tally.family.name}: an instance took over {LONGEST:.0f} s: {kept}")
    except Exception as error:  # noqa: BLE001 - each of them is a finding
        tally.violations += 1
        wrong.append(f"{type(error).__name__}: {error}")
    tally.seconds += time.process_time() - began
    if wrong:
        tally.faulty += 1
        report.count("violations", len(wrong))
        if tally.faulty <= MOST_FINDINGS:
            kept = keep(report, tally.family, instance, f"{tally.faulty}")
            more = f" (the first of {len(wrong)} faults)" if len(wrong) > 1 else ""
            again = f"python -m torture.oracles.again {kept}"
            report.finding(f"{tally.family.name}, {wrong[0]}{more}", again)


class Refused(Exception):
    """takifugu gave no number, and said why."""


def told(family: Family, instance: Instance) -> Iterator[Compared | Allowance]:
    """What takifugu says of one instance, with its refusals told apart from faults."""
    answers = iter(family.compare(instance))
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # what is not a number, or overflows
            warnings.simplefilter("ignore", LooserTranslation)
            try:
                one = next(answers)
            except StopIteration:
                return
            except TakifuguError as error:
                raise Refused(str(error)) from error
        yield one


def compared(family: Family, instance: Instance) -> Iterator[Compared]:
    """The statements about one instance."""
    return (one for one in told(family, instance) if isinstance(one, Compared))


def keep(report: Report, family: Family, instance: Instance, name: str) -> Path:
    """Write an instance so that it can be compared again."""
    folder = report.folder / KEPT
    folder.mkdir(parents=True, exist_ok=True)
    words = "-".join(re.findall(r"[\w.]+", family.name))
    path = folder / f"{words}-{report.seed}-{name}.json"
    content = {"family": family.name, "instance": instance}
    write_whole(path, json.dumps(content, indent=1) + "\n")
    return path


def _tell(report: Report, tallies: Sequence[Tally]) -> None:
    report.counts["statements compared"] = sum(tally.statements for tally in tallies)
    report.counts.setdefault("violations", 0)
    report.counts['called "exact" and not'] = sum(tally.wrongly_exact for tally in tallies)
    report.table(TITLE, COLUMNS, [tally.row() for tally in tallies])


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Give up an instance after so long; compiled code is waited for."""

    def late(_number: int, _frame: FrameType | None) -> None:
        raise _TooSlow

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
