"""``python -m tests.extremes.kept_bounds``: renew what `test_kept_bounds` compares with.

A bound that becomes looser is sound, and no oracle objects. So `kept_bounds.json` has, for
instances of the families of `torture.oracles` (finite mechanisms apart: they are not translated),
what takifugu answered, and what oracles say of the truth where they say it.

After a change that makes a bound tighter (or, for a reason, looser) run the command: it asks the
same questions again, compares with the oracles again, refuses to write what they contradict, and
says what changed. ``--draw`` draws other instances: for each family many, of which those are kept
that are quick and run lines of `takifugu.translation` and `takifugu.influence` that others do not.
"""

import argparse
import json
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from takifugu._atomic import write_whole
from takifugu.translation import LooserTranslation
from takifugu.translation.bounds import EXACT
from tests.extremes.kept_answers import DIRECT, TRANSLATED, Answer
from tests.extremes.kept_questions import OWN, answers
from tests.oracles.all_vertices import TooManyMechanisms
from torture.oracles.comparison import Instance
from torture.oracles.families import BY_NAME
from torture.oracles.runner import Refused, compared

KEPT = Path(__file__).with_name("kept_bounds.json")
NAMES = [name for name in BY_NAME if name in DIRECT or name in TRANSLATED]
SEED = 19
DIGITS = 25  # of a truth
LEAST_DIGITS = Fraction(1, 10**20)  # relative: what they leave out
SAME = 1e-9  # relative: the same number, computed on another machine
TINY = 1e-13  # of the scale of an answer
SEARCHED = 2e-6  # relative: what a search for an allowance may leave
FIELDS = ("upper", "lower", "exact", "allowed", "method")
Truth = tuple[str, str]


@dataclass
class Kept:
    """One question about one instance.

    Attributes:
        family: The family in `torture.oracles`.
        instance: The instance.
        question: What is asked.
        answers: By claim: what was answered.
        truths: By claim: between which numbers the truth is, if an oracle says it.
    """

    family: str
    instance: Instance
    question: str
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    truths: dict[str, Truth] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.family}: {self.question}"

    def now(self) -> list[Answer]:
        """What takifugu answers now."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LooserTranslation)
            found = answers(self.family, self.instance, self.question)
        return list({one.claim: one for one in found}.values())

    def faults(self, found: Sequence[Answer]) -> Iterator[str]:
        """What the truth contradicts, and what is not as good as it was."""
        claims = {one.claim for one in found}
        for claim in self.answers.keys() - claims:
            yield f"{claim}: nothing is answered any more"
        for one in found:
            truth = self.truths.get(one.claim)
            if truth is not None:
                yield from unsound(one, truth)
            if one.claim in self.answers:
                yield from worse(one, self.answers[one.claim], certain=truth is not None)


def unsound(one: Answer, truth: Truth) -> Iterator[str]:
    """What the truth contradicts."""
    least, most = _fraction(truth[0]), _fraction(truth[1])
    if one.upper is not None and least is None and one.upper < np.inf:
        yield f"{one.claim}: {one.upper!r} is finite, and the truth is not"
    if one.upper is not None and least is not None and _less(one.upper, least):
        yield f"{one.claim}: the upper bound {one.upper!r} is below the truth {truth[0]}"
    if most is None:
        return
    if one.lower is not None and _more(one.lower, most):
        yield f"{one.claim}: the lower bound {one.lower!r} is above the truth {truth[1]}"
    if one.exact and one.upper is not None and _more(one.upper, most / (1 - Fraction(EXACT))):
        yield f"{one.claim}: {one.upper!r} is called exact, and the truth is {truth[1]}"


def _less(value: float, truth: Fraction) -> bool:
    return value < np.inf and Fraction(value) < truth * (1 - LEAST_DIGITS)


def _more(value: float, truth: Fraction) -> bool:
    return value == np.inf or Fraction(value) > truth * (1 + LEAST_DIGITS)


def worse(one: Answer, kept: dict[str, Any], *, certain: bool) -> Iterator[str]:
    """What is looser than it was; without a truth (not ``certain``) also what is tighter."""
    tiny = TINY * one.scale
    renew = "if that is meant, renew the file (see kept_bounds.py)"
    missing = [name for name in FIELDS if name in kept and getattr(one, name) is None]
    if missing:
        yield f"{one.claim}: no {', '.join(missing)} any more; {renew}"
        return
    if "upper" in kept:
        was, now = kept["upper"], one.upper or 0.0
        if now > was * (1 + SAME) + tiny:
            yield f"{one.claim}: the upper bound rose from {was!r} to {now!r}; {renew}"
        if not certain and now < was * (1 - SAME) - tiny:
            yield f"{one.claim}: the upper bound fell from {was!r} to {now!r}; {renew}"
    if "lower" in kept:
        was, now = kept["lower"], one.lower or 0.0
        if now < was * (1 - SAME) - tiny:
            yield f"{one.claim}: the lower bound fell from {was!r} to {now!r}; {renew}"
        if not certain and now > was * (1 + SAME) + tiny:
            yield f"{one.claim}: the lower bound rose from {was!r} to {now!r}; {renew}"
    if "allowed" in kept:
        was, now = kept["allowed"], one.allowed or 0.0
        if now < was * (1 - SEARCHED):
            yield f"{one.claim}: {now!r} is allowed, and {was!r} was; {renew}"
        if now > was * (1 + SAME):
            yield f"{one.claim}: {now!r} is allowed, and nothing above {was!r} was checked; {renew}"
    if kept.get("exact") and not one.exact:
        yield f"{one.claim}: it was exact; {renew}"
    if "method" in kept and one.method != kept["method"]:
        yield f"{one.claim}: it was proved by {kept['method']}, and is by {one.method}; {renew}"
    if "binding" in kept:
        part, was_bound = kept["binding"]
        if one.bound_to(part) != was_bound:
            yield f"{one.claim}: {was_bound} was binding, and {one.bound_to(part)} is; {renew}"


def record(one: Answer) -> dict[str, Any]:
    """An answer as it is kept."""
    found = {name: getattr(one, name) for name in FIELDS if getattr(one, name) is not None}
    part = one.unique()
    return {**found, "binding": [part, one.bound_to(part)]} if part else found


def truths(kept: Kept) -> dict[str, Truth]:
    """What the family's oracle says; empty if it does not say.

    Raises:
        AssertionError: takifugu contradicts it.
    """
    if kept.question != OWN:
        return {}
    family = BY_NAME[kept.family]
    found = {}
    for one in compared(family, kept.instance):
        wrong = list(one.faults(family.off))
        assert not wrong, (kept.name, kept.instance, wrong)
        off = mpmath.mpf(family.off)
        found[one.claim] = _text(one.least * (1 - off)), _text(one.most * (1 + off))
    return found


def same_truth(one: Truth, other: Truth) -> bool:
    """Whether some number is within both."""
    return all(
        high is None or (low is not None and low <= high * (1 + LEAST_DIGITS))
        for low, high in (
            (_fraction(one[0]), _fraction(other[1])),
            (_fraction(other[0]), _fraction(one[1])),
        )
    )


def _text(value: Any) -> str:
    with mpmath.workdps(2 * DIGITS):
        return str(mpmath.nstr(mpmath.mpf(value), DIGITS, strip_zeros=True))


def _fraction(text: str) -> Fraction | None:
    """None if infinite."""
    return None if text in ("inf", "+inf") else Fraction(text)


def read() -> list[Kept]:
    """The file."""
    listed = json.loads(KEPT.read_text(encoding="utf-8"))
    return [
        Kept(family, instance, question, asked["answers"], asked.get("truths", {}))
        for family, instances in listed.items()
        for instance, asked_of in ((one["instance"], one["asked"]) for one in instances)
        for question, asked in asked_of.items()
    ]


def write(listed: Sequence[Kept]) -> None:
    """The file: a line for each instance."""
    lines: dict[str, dict[str, dict[str, Any]]] = {}
    for one in listed:
        key = json.dumps(one.instance)
        asked = {"answers": one.answers, **({"truths": one.truths} if one.truths else {})}
        lines.setdefault(one.family, {}).setdefault(key, {})[one.question] = asked
    parts = [
        json.dumps(family, ensure_ascii=False)
        + ": [\n"
        + ",\n".join(
            json.dumps({"instance": json.loads(key), "asked": asked}, ensure_ascii=False)
            for key, asked in instances.items()
        )
        + "\n]"
        for family, instances in lines.items()
    ]
    write_whole(KEPT, "{\n" + ",\n".join(parts) + "\n}\n")


def renewed(kept: Kept) -> Kept:
    """The same question, answered now and compared with its oracle."""
    found = kept.now()
    truth = truths(kept)
    claims = {one.claim for one in found}
    after = replace(
        kept,
        answers={one.claim: record(one) for one in found},
        truths={claim: ends for claim, ends in truth.items() if claim in claims},
    )
    wrong = list(after.faults(found))
    assert not wrong, (kept.name, kept.instance, wrong)
    return after


class TooSlow(Exception):
    """Something took longer than it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Give up after so much work; compiled code is waited for."""
    fired = False

    def late(*_: object) -> None:
        nonlocal fired
        fired = True
        raise TooSlow

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except Exception as error:
        if fired:  # a compiler may have made another error of it
            raise TooSlow from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Renew the file, or draw another."""
    options = argparse.ArgumentParser(prog="python -m tests.extremes.kept_bounds")
    options.add_argument("--draw", action="store_true", help="draw other instances")
    options.add_argument("--seed", type=int, default=SEED)
    options.add_argument("--seconds", type=float, default=6.0, help="of work to draw a family")
    options.add_argument("--only", default="", help="families whose name has this in it")
    given = options.parse_args()
    names = [name for name in NAMES if given.only in name]
    there = read() if KEPT.exists() else []
    if given.draw:
        from tests.extremes.kept_draws import drawn

        before = drawn(names, given.seed, given.seconds)
    else:
        before = [one for one in there if one.family in names]
    after = [one for one in there if one.family not in names]
    for k, one in enumerate(before):
        try:
            with at_most(20.0):
                after.append(renewed(one))
        except (TooSlow, TooManyMechanisms, Refused) as error:
            say(f"left out: {one.name}: {type(error).__name__}: {error}")
            if not given.draw:
                say(f"nothing is written: it was answered before, for {one.instance}")
                return 1
            continue
        if one.answers and one.answers != after[-1].answers:
            say(f"changed: {one.name}")
            for what in one.faults(one.now()):
                say(f"    {what}")
        if k % 200 == 0:
            say(f"{k} of {len(before)}")
    after.sort(key=lambda one: NAMES.index(one.family))
    write(after)
    say(f"{len(after)} questions, {sum(len(one.answers) for one in after)} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
