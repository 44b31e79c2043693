"""``takifugu check``: what the mechanisms of a world file leak, once and when repeated.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import AsJson, print_json
from takifugu.errors import Malformed
from takifugu.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from takifugu.finite.linearity import Composition
    from takifugu.finite.verdict import MechanismVerdict, Step, Verdict

MOST_RUNS = 50


def run_check(
    world: Annotated[Path, typer.Argument(help="A world file, .toml or .json.")],
    as_json: AsJson = False,
    runs: Annotated[
        int, typer.Option(help=f"Compute the loss for up to this many runs, 1 to {MOST_RUNS}.")
    ] = 4,
) -> None:
    """Check the mechanisms of WORLD: leakage, differential privacy, composition.

    Each mechanism is checked alone, and all of them together: mechanisms that each compose with
    themselves may fail to compose with each other.

    The status is 1 if a mechanism leaks more than its file claims, and 2 if the file or the options
    are invalid.
    """
    if not 1 <= runs <= MOST_RUNS:
        raise Malformed("--runs", given=f"is {runs}", needed=f"be from 1 to {MOST_RUNS}")

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

    from takifugu.cli.commands import check_text

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # for a terminal that lacks ε
    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    plain = not console.is_terminal
    console.print(Text(visible(check_text.head(verdict), keep="\n")), soft_wrap=plain)
    for found in verdict.mechanisms:
        console.print()
        console.print(Text(visible(found.name), style="bold"), soft_wrap=plain)
        _print_lines(console, check_text.lines(found))
        if plain:
            for line in ("", *check_text.growth_lines(found)):
                console.print(visible(line), soft_wrap=True)
        else:
            console.print(_growth(found))
    if together := check_text.together_lines(verdict):
        console.print()
        console.print(Text("all mechanisms together", style="bold"), soft_wrap=plain)
        _print_lines(console, together)
    console.print()
    console.print(check_text.LEGEND, style="dim")


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

    from takifugu.cli.commands import check_text

    growth = Table(box=SIMPLE_HEAD)
    for heading in check_text.HEADINGS:
        growth.add_column(heading, justify="right" if heading else "left")
    for row in check_text.growth(found):
        growth.add_row(*map(visible, row))
    return growth
