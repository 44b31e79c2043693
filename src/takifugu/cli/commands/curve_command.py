"""``takifugu curve``: what a prior costs, before any mechanism is chosen."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    ENTRIES_HELP,
    PAIRS_HELP,
    InvalidOption,
    Working,
    read_secrets,
)
from takifugu.cli.terminal import echo
from takifugu.visible import visible

if TYPE_CHECKING:
    from takifugu.influence import InfluenceCurve
    from takifugu.priors import Prior


def run_curve(
    prior: Annotated[Path, typer.Argument(help="The prior: a JSON document, or a BIF file.")],
    max_b: Annotated[
        int | None, typer.Option("--max-b", help="The most entries to expose, besides all.")
    ] = None,
    pairs: Annotated[str | None, typer.Option(help=PAIRS_HELP)] = None,
    entries: Annotated[str | None, typer.Option(help=ENTRIES_HELP)] = None,
    uncertainty: Annotated[
        float, typer.Option(help="Relative error of every joint probability, as 0.2 for 20 %.")
    ] = 0.0,
    epsilon: Annotated[
        float | None, typer.Option(help="A Pufferfish ε: also print the per-entry ε it allows.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the curve: a .png, .svg or .pdf file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Print the influence curve of PRIOR: expose b entries, and the rest leaks at most a(b).

    Keys of the JSON object: points (b, a, exact, secret, split; an infinite a is the string
    "infinity"), entries (null if there is no end to them), kind, fingerprint, pairs (how many),
    uncertainty; with --epsilon also epsilon and dp_epsilon.
    """
    from takifugu import reports
    from takifugu.influence.families import influence_curve
    from takifugu.influence.presets import uncertain
    from takifugu.priors import read_prior
    from takifugu.reports.influence_figures import curves_figure

    if plot is not None:
        reports.check_target(plot)
    if max_b is not None and max_b < 1:
        raise InvalidOption("--max-b", given=f"is {max_b}", needed="be at least 1")
    belief = read_prior(prior)
    with Working("influence") as tell:
        curve = influence_curve(
            belief, read_secrets(pairs, entries), max_exposed=max_b, progress=tell
        )
    if uncertainty:
        curve = uncertain(curve, relative=uncertainty)
    if plot is not None:
        reports.save(curves_figure({prior.stem: curve}, epsilon=epsilon, most=max_b), plot)
    result = _result(curve, belief, uncertainty, epsilon)
    if as_json:
        echo(json.dumps(result, ensure_ascii=False, allow_nan=False))
    else:
        _print(result)


def _result(
    curve: "InfluenceCurve", belief: "Prior", uncertainty: float, epsilon: float | None
) -> dict[str, Any]:
    points = [
        {
            "b": p.b,
            "a": p.a if math.isfinite(p.a) else "infinity",
            "exact": p.exact,
            "secret": p.secret,
            "split": dict(p.split),
        }
        for p in curve.points()
    ]
    result: dict[str, Any] = {
        "points": points,
        "entries": curve.entries,
        "kind": belief.kind,
        "fingerprint": belief.fingerprint,
        "pairs": len(curve.pairs),
        "uncertainty": uncertainty,
    }
    if epsilon is not None:
        result["epsilon"] = epsilon
        result["dp_epsilon"] = float(curve.to_dp(epsilon))
    return result


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    entries = "no end of" if result["entries"] is None else f"{result['entries']:,}"
    echo(f"{result['kind']}, {entries} entries, {result['pairs']:,} ordered secret pairs")
    table = Table(box=None, pad_edge=False)
    for name, side in (("b", "right"), ("a(b)", "right"), ("", "left"), ("secret", "left")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    table.add_column("exposed")
    for p in result["points"]:
        a = p["a"] if isinstance(p["a"], str) else f"{p['a']:.6g}"
        split = ", ".join(f"{k} {v}" for k, v in p["split"].items())
        table.add_row(
            f"{p['b']:,}",
            a,
            "exact" if p["exact"] else "at most",
            *map(visible, (p["secret"], split)),
        )
    Console(soft_wrap=True).print(table, markup=False)
    if "epsilon" in result:
        allowed = result["dp_epsilon"]
        echo(f"a Pufferfish ε of {result['epsilon']:g} allows {allowed:.6g} per entry")
