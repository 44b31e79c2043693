"""``takifugu check``: what the mechanisms of a world file leak, alone and when repeated.

Only the standard library and typer are imported at the top, so that ``--help`` stays quick.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.telling import echo
from takifugu.errors import Malformed
from takifugu.visible import visible

if TYPE_CHECKING:
    from rich.table import Table

    from takifugu.finite.verdict import MechanismVerdict, Verdict

MOST_RUNS = 50


def run_check(
    world: Annotated[
        Path, typer.Argument(help="World file, .toml or .json (docs/reference/worlds.md).")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
    runs: Annotated[
        int, typer.Option(help=f"Follow the loss up to so many runs, 1 to {MOST_RUNS}.")
    ] = 4,
) -> None:
    """Check the mechanisms of WORLD: leakage, differential privacy, composition.

    Exit status: 0, or 1 if a mechanism leaks more than its file claims, or 2 if the file or the
    options cannot be understood.
    """
    if not 1 <= runs <= MOST_RUNS:
        raise Malformed("--runs", given=f"is {runs}", needed=f"be from 1 to {MOST_RUNS}")

    from takifugu.finite.files import read_world
    from takifugu.finite.verdict import judge

    verdict = judge(read_world(world), runs=runs)
    if as_json:
        echo(json.dumps(document(verdict), indent=2, allow_nan=False))
    else:
        _print(verdict)
    if not verdict.claims_kept:
        raise typer.Exit(1)


def document(verdict: "Verdict") -> dict[str, Any]:
    """The verdict as JSON; docs/reference/worlds.md says what every key means."""
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
    }


def _mechanism(found: "MechanismVerdict") -> dict[str, Any]:
    from takifugu.finite.verdict import lower_bound

    once, dp, whole = found.once, found.dp, found.composition
    attack = whole.attack
    return {
        "name": found.name,
        "one_run": {
            "epsilon": _number(once.epsilon),
            "at_least": _number(lower_bound(once)),
            "kind": once.kind,
            "pair": [str(once.worst.pair.left), str(once.worst.pair.right)],
            "prior": once.worst.prior,
            "output": once.worst.output,
        },
        "claim": None
        if found.claim is None
        else {"epsilon": _number(found.claim), "kept": found.kept},
        "differential": None
        if dp is None
        else {
            "entry": _number(dp.entry),
            "record": _number(dp.record),
            "entries": {str(name): _number(epsilon) for name, epsilon in dp.entries},
        },
        "composition": {
            "linear": whole.linear,
            "fails_below": _number(whole.fails_below),
            "proven_at": _number(whole.proven_at),
            "line": None if whole.line is None else [_number(part) for part in whole.line],
            "dp_style": _number(whole.dp_style),
            "attack": None
            if attack is None
            else {
                "counts": [[seen.output, count] for seen, count in attack.counts],
                "runs": attack.runs,
                "pair": [str(attack.pair.left), str(attack.pair.right)],
                "prior": attack.prior,
                "leaked": _number(attack.leakage),
                "linear": _number(attack.claimed),
                "fewest": attack.fewest,
            },
            "note": whole.note,
        },
        "growth": [
            {
                "runs": step.runs,
                "epsilon": _number(step.epsilon),
                "at_least": _number(step.attained),
                "linear": _number(step.linear),
                "pair": [str(step.worst.pair.left), str(step.worst.pair.right)],
                "prior": step.worst.prior,
                "outputs": list(step.worst.outputs),
            }
            for step in found.growth
        ],
    }


def _number(value: float | None) -> float | str | None:
    """Strict JSON has no infinity: it is the string "infinity"."""
    return "infinity" if value == float("inf") else value


def _print(verdict: "Verdict") -> None:
    from rich.console import Console
    from rich.text import Text

    from takifugu.cli import check_words

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that lacks ε still answers
    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    plain = not console.is_terminal
    console.print(Text(visible(check_words.head(verdict), keep="\n")), soft_wrap=plain)
    for found in verdict.mechanisms:
        console.print()
        console.print(Text(visible(found.name), style="bold"), soft_wrap=plain)
        if plain:
            shown = [f"  {label:<22}{words}" for label, words in check_words.lines(found)]
            for line in (*shown, "", *check_words.growth_lines(found)):
                console.print(visible(line), soft_wrap=True)
        else:
            console.print(*_tables(found), sep="\n")
    console.print()
    console.print(check_words.LEGEND, style="dim")


def _tables(found: "MechanismVerdict") -> tuple["Table", "Table"]:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from takifugu.cli import check_words

    grid = Table.grid(padding=(0, 2))
    for label, words in check_words.lines(found):
        grid.add_row(Text(f"  {label}", style="dim", no_wrap=True), Text(visible(words, keep="\n")))
    growth = Table(box=SIMPLE_HEAD)
    for heading in check_words.HEADINGS:
        growth.add_column(heading, justify="right" if heading else "left")
    for row in check_words.growth(found):
        growth.add_row(*map(visible, row))
    return grid, growth
