"""The verdict of ``takifugu check`` as text. Losses are rounded up, never down."""

from decimal import Decimal
from fractions import Fraction
from math import inf

from takifugu.finite.linearity import Composition
from takifugu.finite.nfc import Attack
from takifugu.finite.verdict import MechanismVerdict, Verdict, lower_bound
from takifugu.priors.explicit import Knowledge
from takifugu.visible import four_digits

NEGLIGIBLE = 1e-12
LEGEND = "+ stands for less than 1e-9 more, by rounding"


def upper(bound: float) -> str:
    """An upper bound, rounded up; a "+" stands for less than 1e-9 more."""
    if bound == inf:
        return "infinite"
    text = "0" if bound < NEGLIGIBLE else four_digits(bound, "up")
    return f"{text}+" if Decimal(text) < Decimal(bound) else text


def lower(bound: float) -> str:
    """A lower bound, rounded down."""
    return "infinite" if bound == inf else four_digits(Fraction(bound), "down")


HEADINGS = ("runs", "loss", "runs × ε", "")


def head(verdict: Verdict) -> str:
    """The title and the size of the world."""
    world = verdict.file.world
    priors = (
        "knowledge by inequalities"
        if isinstance(world.priors, Knowledge)
        else _many(len(world.priors), "prior")
    )
    size = (
        f"{_many(len(world.universe), 'dataset')}, {priors},"
        f" {_many(len(world.pairs), 'ordered secret pair')}"
    )
    return f"{verdict.file.title}\n{size}" if verdict.file.title else size


def lines(found: MechanismVerdict) -> list[tuple[str, str]]:
    """Label and text, line by line."""
    result = [("one run", _once(found))]
    if found.claim is not None:
        result.append(("claim", _claim(found)))
    if found.dp is not None:
        each = ", ".join(f"{name} {upper(loss)}" for name, loss in found.dp.entries)
        result.append(("DP, one entry", f"ε = {upper(found.dp.entry)} ({each})"))
        result.append(("DP, one record", f"ε = {upper(found.dp.record)}"))
    result.append(("composes linearly?", _composes(found.composition, found.once.epsilon)))
    result.append(("attack", _attack(found.composition)))
    result.append(("DP-style certificate", _certificate(found.composition)))
    if found.composition.note:
        result.append(("note", found.composition.note))
    return result


def together_lines(verdict: Verdict) -> list[tuple[str, str]]:
    """Label and text, line by line, on all mechanisms together; nothing if there is only one."""
    if verdict.together is None:
        return []
    once, whole = verdict.together.once, verdict.together.composition
    result = [("one run of each", "not computed: too many combinations of outputs")]
    if once is not None:
        names = [found.name for found in verdict.mechanisms]
        outputs = [f"{o!r} of {name!r}" for o, name in zip(once.worst.outputs, names, strict=True)]
        more = "more than" if once.attained > once.linear else "their own add up to"
        text = (
            f"ε = {upper(once.epsilon)}, {more} {upper(once.linear)}: {once.worst.pair} under"
            f" {once.worst.prior!r} when the outputs are {', '.join(outputs)}"
        )
        result = [("one run of each", text)]
    result.append(("compose linearly?", _composes(whole, None)))
    result.append(("attack", _attack(whole, names=True)))
    if whole.note:
        result.append(("note", whole.note))
    return result


def growth(found: MechanismVerdict) -> list[tuple[str, str, str, str]]:
    """Runs, their loss, runs times the loss of one, and whether the first is more."""
    return [
        (
            str(step.runs),
            upper(step.epsilon),
            upper(step.linear),
            "more than linear" if step.attained > step.linear else "",
        )
        for step in found.growth
    ]


def growth_lines(found: MechanismVerdict) -> list[str]:
    """The same in columns, under a heading."""
    rows = [HEADINGS, *growth(found)]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return [
        "  ".join(["", *(row[i].rjust(widths[i]) for i in range(3)), row[3]]).rstrip()
        for row in rows
    ]


def _once(found: MechanismVerdict) -> str:
    once = found.once
    kind = "exact" if once.kind == "exact" else "an upper bound"
    return (
        f"ε = {upper(once.epsilon)}, {kind}: {once.worst.pair} under {once.worst.prior!r}"
        f" when the output is {once.worst.output!r}"
    )


def _claim(found: MechanismVerdict) -> str:
    words = {
        "yes": "is kept",
        "no": "is BROKEN",
        "unclear": f"is undecided: the loss is between {lower(lower_bound(found.once))} and"
        f" {upper(found.once.epsilon)}",
    }
    return f"ε = {four_digits(found.claim or 0.0, 'up')} {words[found.kept or 'unclear']}"


def _composes(whole: Composition, epsilon: float | None) -> str:
    """Whether losses add up: those of one mechanism (``epsilon``), or of several, their own."""
    always = "for every k, also after post-processing"
    linear = "the sum of their ε" if epsilon is None else f"k × {upper(epsilon)}"
    match whole.linear:
        case "void":
            return "nothing to compose: one run can reveal the secret"
        case "yes":
            if epsilon is not None:
                linear = f"k × {upper(whole.proven_at or 0.0)}"
            return f"yes: k runs leak at most {linear}, {always}"
        case "almost":
            return f"almost: a few runs leak more than {linear}; {_bounds(whole)}, {always}"
        case "no":
            words = "no: repetition leaks more than linearly"
            if epsilon is None:
                words = "no: together they leak more than the sum of their ε"
            if whole.fails_below is None:
                return words
            least = lower(whole.fails_below)
            return words + (", at any ε" if least == "infinite" else f", at any ε below {least}")
        case _:
            return "undecided: neither proven nor refuted" + (
                f"; {_bounds(whole)}, {always}" if whole.line or whole.proven_at else ""
            )


def _bounds(whole: Composition) -> str:
    known = []
    if whole.proven_at is not None and whole.proven_at < inf:
        known.append(f"k × {upper(whole.proven_at)}")
    if whole.line is not None:
        known.append(f"k × {upper(whole.line[0])} plus {upper(whole.line[1])} once")
    return f"k runs leak at most {', and at most '.join(known)}" if known else "no bound was proven"


def _attack(whole: Composition, *, names: bool = False) -> str:
    attack = whole.attack
    if attack is None:
        return {
            "yes": "none exists",
            "void": "one run is enough",
            "no": "not constructed; the certificate shows that one exists",
        }.get(whole.linear, "none was found")
    outputs = ", ".join(
        repr(seen.output)
        + (f" of {seen.name!r}" if names else "")
        + ("" if count == 1 else " twice" if count == 2 else f" {count} times")
        for seen, count in attack.counts
    )
    fewest = ", no fewer suffice" if attack.fewest else ""
    runs = _many(attack.runs, "run")
    return f"see {outputs} ({runs}{fewest}): {attack.pair} under {attack.prior!r} {_leaks(attack)}"


def _leaks(attack: Attack) -> str:
    if attack.leakage == inf:
        return "is revealed"
    return f"leaks {lower(attack.leakage)}, more than {upper(attack.claimed)}"


def _certificate(whole: Composition) -> str:
    if whole.dp_style is None:
        return "not searched for"
    if whole.dp_style == inf:
        return "none: some dataset hides behind no other"
    return f"every dataset hides behind one other at ε = {upper(whole.dp_style)}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
