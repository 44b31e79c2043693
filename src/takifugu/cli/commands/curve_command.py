"""``takifugu curve``: the influence curve of a prior."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.shared_options import (
    AsJson,
    InvalidOption,
    Pairs,
    PriorFile,
    SecretEntries,
    SecretsWithin,
    Spinner,
    Uncertainty,
    echo,
    print_json,
    read_secrets,
)
from takifugu.visible import four_digits, visible

if TYPE_CHECKING:
    from takifugu.influence import InfluenceCurve
    from takifugu.priors import Prior


def run_curve(
    prior: PriorFile,
    max_b: Annotated[
        int | None,
        typer.Option(
            "--max-b",
            help="The most entries to expose, besides all; --epsilon uses the whole curve.",
        ),
    ] = None,
    pairs: Pairs = None,
    entries: SecretEntries = None,
    secrets_within: SecretsWithin = None,
    uncertainty: Uncertainty = 0.0,
    epsilon: Annotated[
        float | None, typer.Option(help="A Pufferfish ε; also print the DP ε per entry it allows.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the curve: a .png, .svg or .pdf file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the influence curve of PRIOR: expose b entries, and the rest leaks at most a(b).

    JSON: points (b, a, exact, secret, split; an infinite a is the string "infinity"), entries (null
    if unbounded), kind, fingerprint, pairs (their number), uncertainty; with --epsilon also epsilon
    and dp_epsilon.
    """
    from takifugu import reports
    from takifugu.influence.families import influence_curve
    from takifugu.influence.presets import uncertain
    from takifugu.priors import read_prior
    from takifugu.reports.curve_figures import curves_figure

    if plot is not None:
        reports.check_target(plot)
    if max_b is not None and max_b < 1:
        raise InvalidOption("--max-b", given=f"is {max_b}", needed="be at least 1")
    model = read_prior(prior)
    secrets = read_secrets(pairs, entries, secrets_within)
    with Spinner("influence") as spinner:
        curve = influence_curve(model, secrets, max_exposed=max_b, progress=spinner)
        whole = curve
        if epsilon is not None and max_b is not None:  # what is not shown may allow more
            whole = influence_curve(model, secrets, progress=spinner)
    if uncertainty:
        curve, whole = (uncertain(one, relative=uncertainty) for one in (curve, whole))
    if plot is not None:
        reports.save(curves_figure({prior.stem: whole}, epsilon=epsilon, most=max_b), plot)
    result = _result(curve, model, uncertainty)
    if epsilon is not None:
        result["epsilon"] = epsilon
        result["dp_epsilon"] = max(float(one.to_dp(epsilon)) for one in (curve, whole))
    if as_json:
        print_json(result)
    else:
        _print(result)


def _result(curve: "InfluenceCurve", prior: "Prior", uncertainty: float) -> dict[str, Any]:
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
    return {
        "points": points,
        "entries": curve.entries,
        "kind": prior.kind,
        "fingerprint": prior.fingerprint,
        "pairs": len(curve.pairs),
        "uncertainty": uncertainty,
    }


def _print(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    entries = "unbounded" if result["entries"] is None else f"{result['entries']:,} entries"
    echo(f"{result['kind']}, {entries}, {result['pairs']:,} ordered secret pairs")
    table = Table(box=None, pad_edge=False)
    for name, side in (("b", "right"), ("a(b)", "right"), ("", "left"), ("secret", "left")):
        table.add_column(name, justify=side)  # type: ignore[arg-type]
    table.add_column("exposed")
    for p in result["points"]:
        a = p["a"] if isinstance(p["a"], str) else four_digits(p["a"], "up")
        split = ", ".join(f"{k} {v}" for k, v in p["split"].items())
        table.add_row(
            f"{p['b']:,}",
            a,
            "exact" if p["exact"] else "at most",
            *map(visible, (p["secret"], split)),
        )
    Console(soft_wrap=True).print(table, markup=False)
    if "epsilon" in result:
        allowed = four_digits(result["dp_epsilon"], "down")
        echo(f"a Pufferfish ε of {four_digits(result['epsilon'])} allows {allowed} per entry")
