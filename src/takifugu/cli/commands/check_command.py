"""``takifugu check``: what the mechanisms of a world file leak, once and when repeated.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

import sys
from decimal import Decimal
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import AsJson, aligned, print_json, refuse_outside
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from takifugu.finite.nfc import Attack
    from takifugu.finite.verdict import Composition, MechanismVerdict, Step, Verdict

MAX_RUNS = 50
NEGLIGIBLE = 1e-12
LEGEND = "+ stands for less than 1e-9 more, by rounding"
HEADINGS = ("runs", "loss", "runs × ε", "")


def run_check(
    world: Annotated[Path, typer.Argument(help="A world file, .toml or .json.")],
    as_json: AsJson = False,
    runs: Annotated[
        int, typer.Option(help=f"Compute the loss for up to this many runs, 1 to {MAX_RUNS}.")
    ] = 4,
) -> None:
    """Check the mechanisms of WORLD: leakage, differential privacy, composition.

    Each mechanism is checked alone, and all of them together: mechanisms that each compose with
    themselves may fail to compose with each other.

    The status is 1 if a mechanism leaks more than its file claims, and 2 if the file or the options
    are invalid.
    """
    refuse_outside("--runs", runs, 1, MAX_RUNS)

    from takifugu.finite.files import read_world
    from takifugu.finite.verdict import judge

    verdict = judge(read_world(world), runs=runs)
    if as_json:
        print_json(document(verdict))
    else:
        _print(verdict)
    if not verdict.claims_kept:
        raise typer.Exit(1)


def document(verdict: "Verdict") -> dict[str, Any]:
    """The verdict as JSON; the page on worlds explains every key."""
    from takifugu.priors.explicit import Knowledge

    world = verdict.file.world
    listed = not isinstance(world.priors, Knowledge)
    return {
        "title": verdict.file.title,
        "fingerprint": verdict.file.fingerprint,
        "datasets": len(world.universe),
        "priors": [prior.name for prior in world.listed_priors] if listed else "knowledge",
        "pairs": [[str(pair.left), str(pair.right)] for pair in world.pairs],
        "claims_kept": verdict.claims_kept,
        "mechanisms": [_mechanism(found) for found in verdict.mechanisms],
        "together": _together(verdict),
    }


def _together(verdict: "Verdict") -> dict[str, Any] | None:
    if verdict.together is None:
        return None
    once = verdict.together.once
    names = [found.name for found in verdict.mechanisms]
    return {
        "one_run_of_each": None
        if once is None
        else {
            **_step(once),
            "outputs": [list(seen) for seen in zip(names, once.worst.outputs, strict=True)],
        },
        "composition": _composition(verdict.together.composition, names=True),
    }


def _mechanism(found: "MechanismVerdict") -> dict[str, Any]:
    from takifugu.finite.verdict import lower_bound

    once, dp = found.once, found.dp
    return {
        "name": found.name,
        "one_run": {
            "epsilon": once.epsilon,
            "at_least": lower_bound(once),
            "kind": once.kind,
            "pair": [str(once.worst.pair.left), str(once.worst.pair.right)],
            "prior": once.worst.prior,
            "output": once.worst.output,
        },
        "claim": None if found.claim is None else {"epsilon": found.claim, "kept": found.kept},
        "differential": None
        if dp is None
        else {
            "entry": dp.entry,
            "record": dp.record,
            "entries": {str(name): epsilon for name, epsilon in dp.entries},
        },
        "composition": _composition(found.composition),
        "growth": [_step(step) for step in found.growth],
    }


def _composition(whole: "Composition", *, names: bool = False) -> dict[str, Any]:
    attack = whole.attack
    return {
        "linear": whole.linear,
        "fails_below": whole.fails_below,
        "proven_at": whole.proven_at,
        "line": None if whole.line is None else list(whole.line),
        "dp_style": whole.dp_style,
        "attack": None
        if attack is None
        else {
            "counts": [
                [*([seen.name] if names else []), seen.output, count]
                for seen, count in attack.counts
            ],
            "runs": attack.runs,
            "pair": [str(attack.pair.left), str(attack.pair.right)],
            "prior": attack.prior,
            "leaked": attack.leakage,
            "linear": attack.claimed,
            "fewest": attack.fewest,
        },
        "note": whole.note,
    }


def _step(step: "Step") -> dict[str, Any]:
    return {
        "runs": step.runs,
        "epsilon": step.epsilon,
        "at_least": step.attained,
        "linear": step.linear,
        "pair": [str(step.worst.pair.left), str(step.worst.pair.right)],
        "prior": step.worst.prior,
        "outputs": list(step.worst.outputs),
    }


def _print(verdict: "Verdict") -> None:
    from rich.console import Console
    from rich.text import Text

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # for a terminal that lacks ε
    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    plain = not console.is_terminal
    console.print(Text(visible(head(verdict), keep="\n")), soft_wrap=plain)
    for found in verdict.mechanisms:
        console.print()
        console.print(Text(visible(found.name), style="bold"), soft_wrap=plain)
        _print_lines(console, mechanism_lines(found))
        if plain:
            for line in ("", *growth_lines(found)):
                console.print(visible(line), soft_wrap=True)
        else:
            console.print(_growth(found))
    if together := together_lines(verdict):
        console.print()
        console.print(Text("all mechanisms together", style="bold"), soft_wrap=plain)
        _print_lines(console, together)
    console.print()
    console.print(LEGEND, style="dim")


def _print_lines(console: "Console", lines: list[tuple[str, str]]) -> None:
    """Label and text: one line each where the output is piped, a table on a terminal."""
    from rich.table import Table
    from rich.text import Text

    if not console.is_terminal:
        for label, text in lines:
            console.print(visible(f"  {label:<22}{text}"), soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 2))
    for label, text in lines:
        grid.add_row(Text(f"  {label}", style="dim", no_wrap=True), Text(visible(text, keep="\n")))
    console.print(grid)


def _growth(found: "MechanismVerdict") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading else "left")
    for row in growth_rows(found):
        table.add_row(*map(visible, row))
    return table


# --- the verdict as text: losses are rounded up, never down ---


def upper(bound: float) -> str:
    """An upper bound, rounded up; a "+" stands for less than 1e-9 more."""
    if bound == inf:
        return "infinite"
    text = "0" if bound < NEGLIGIBLE else four_digits(bound, "up")
    return f"{text}+" if Decimal(text) < Decimal(bound) else text


def lower(bound: float) -> str:
    """A lower bound, rounded down."""
    return "infinite" if bound == inf else four_digits(Fraction(bound), "down")


def head(verdict: "Verdict") -> str:
    """The title and the size of the world."""
    from takifugu.priors.explicit import Knowledge

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


def mechanism_lines(found: "MechanismVerdict") -> list[tuple[str, str]]:
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


def together_lines(verdict: "Verdict") -> list[tuple[str, str]]:
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


def growth_rows(found: "MechanismVerdict") -> list[tuple[str, str, str, str]]:
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


def growth_lines(found: "MechanismVerdict") -> list[str]:
    """The same in columns, under a heading."""
    rows = [HEADINGS, *growth_rows(found)]
    return [f"  {line}" for line in aligned(rows, right=range(3))]


def _once(found: "MechanismVerdict") -> str:
    once = found.once
    kind = "exact" if once.kind == "exact" else "an upper bound"
    return (
        f"ε = {upper(once.epsilon)}, {kind}: {once.worst.pair} under {once.worst.prior!r}"
        f" when the output is {once.worst.output!r}"
    )


def _claim(found: "MechanismVerdict") -> str:
    from takifugu.finite.verdict import lower_bound

    words = {
        "yes": "is kept",
        "no": "is BROKEN",
        "unclear": f"is undecided: the loss is between {lower(lower_bound(found.once))} and"
        f" {upper(found.once.epsilon)}",
    }
    return f"ε = {four_digits(found.claim or 0.0, 'up')} {words[found.kept or 'unclear']}"


def _composes(whole: "Composition", epsilon: float | None) -> str:
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


def _bounds(whole: "Composition") -> str:
    bounds = []
    if whole.proven_at is not None and whole.proven_at < inf:
        bounds.append(f"k × {upper(whole.proven_at)}")
    if whole.line is not None:
        bounds.append(f"k × {upper(whole.line[0])} plus {upper(whole.line[1])} once")
    return (
        f"k runs leak at most {', and at most '.join(bounds)}" if bounds else "no bound was proven"
    )


def _attack(whole: "Composition", *, names: bool = False) -> str:
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


def _leaks(attack: "Attack") -> str:
    if attack.leakage == inf:
        return "is revealed"
    return f"leaks {lower(attack.leakage)}, more than {upper(attack.claimed)}"


def _certificate(whole: "Composition") -> str:
    if whole.dp_style is None:
        return "not searched for"
    if whole.dp_style == inf:
        return "none: some dataset hides behind no other"
    return f"every dataset hides behind one other at ε = {upper(whole.dp_style)}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
