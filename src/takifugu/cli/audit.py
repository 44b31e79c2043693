"""``takifugu audit``: what statistics already released under DP guarantee against a prior."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu._atomic import read_whole
from takifugu._toml import parse_json
from takifugu.cli.options import (
    ENTRIES_HELP,
    PAIRS_HELP,
    InvalidOption,
    Working,
    plain,
    read_secrets,
)
from takifugu.cli.telling import echo
from takifugu.cli.translate import METHOD_HELP, UNCERTAINTY_HELP, checked_method, warned
from takifugu.errors import InvalidFile

if TYPE_CHECKING:
    from takifugu.translation.accounting.composition import Composed, Release

RELEASED_HELP = (
    "A release, repeatable: ε, or ε,δ, or rho=ρ; then @start:end or @name,name if it looked at some"
    " entries only. Or a .json file with a list of such texts."
)


def run_audit(
    prior: Annotated[Path, typer.Argument(help="The prior: a JSON document, or a BIF file.")],
    released: Annotated[list[str] | None, typer.Option(help=RELEASED_HELP)] = None,
    delta: Annotated[
        float | None, typer.Option(help="The Pufferfish δ to aim at, for releases with rho=….")
    ] = None,
    method: Annotated[str, typer.Option(help=METHOD_HELP)] = "best",
    pairs: Annotated[str | None, typer.Option(help=PAIRS_HELP)] = None,
    entries: Annotated[str | None, typer.Option(help=ENTRIES_HELP)] = None,
    uncertainty: Annotated[float, typer.Option(help=UNCERTAINTY_HELP)] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Say which Pufferfish guarantee releases under per-entry DP have in retrospect.

    Losses are added up for each entry, and the sum is translated once. Keys of the JSON object:
    pufferfish_epsilon, pufferfish_delta, dp_epsilon (a list if entries differ), dp_delta,
    lower_bound (some mechanism with the ε released leaks it), method, by_method, binding,
    theorem_7 (the paper's bound; null unless all losses are pure), releases (how many).
    """
    from takifugu.priors import read_prior
    from takifugu.translation.accounting.composition import compose
    from takifugu.translation.translation import Translation

    chosen = checked_method(method)
    listed = _releases(released or [])
    translation = Translation(
        read_prior(prior), read_secrets(pairs, entries), uncertainty=uncertainty
    )
    with warned(), Working("translating"):
        found = compose(translation, listed, delta=delta, method=chosen)
    result = _result(found, len(listed))
    if as_json:
        echo(json.dumps(plain(result), ensure_ascii=False, allow_nan=False))
    else:
        _print(result)


def _releases(given: list[str]) -> "list[Release]":
    from takifugu.translation.accounting.composition import Release

    texts: list[str] = []
    for text in given:
        texts += _file(Path(text)) if text.endswith(".json") else [text]
    if not texts:
        raise InvalidOption("--released", given="is missing", needed="name at least one release")
    return [Release.read(text) for text in texts]


def _file(path: Path) -> list[str]:
    needed = 'hold a list such as ["0.1", "0.5,1e-6@3:7", "rho=0.01"]'
    try:
        listed = parse_json(read_whole(path), field=str(path))
    except InvalidFile as error:
        raise InvalidOption("--released", given=f"{path} {error.given}", needed=needed) from None
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise InvalidOption("--released", given=f"{path} is not a list of texts", needed=needed)
    return listed


def _result(found: "Composed", count: int) -> dict[str, Any]:
    answer = found.translated
    return {
        "pufferfish_epsilon": found.epsilon,
        "pufferfish_delta": found.delta,
        "dp_epsilon": found.dp if isinstance(found.dp, float) else found.dp.tolist(),
        "dp_delta": found.dp_delta,
        "lower_bound": found.lower,
        "method": found.method,
        "by_method": dict(answer.by_method),
        "binding": {} if answer.binding is None else answer.binding.document(),
        "theorem_7": found.theorem_7,
        "releases": count,
    }


def _print(result: dict[str, Any]) -> None:
    dp = result["dp_epsilon"]
    most = max(dp) if isinstance(dp, list) else dp
    many = "release" if result["releases"] == 1 else "releases"
    spent = f", δ {result['dp_delta']:.3g}" if result["dp_delta"] else ""
    echo(f"{result['releases']} {many}, together DP ε {most:.6g}{spent} on the entry most used")
    spare = f", δ = {result['pufferfish_delta']:.3g}" if result["pufferfish_delta"] else ""
    echo(f"Pufferfish ε {result['pufferfish_epsilon']:.6g}{spare}, by {result['method']}")
    if result["binding"]:
        b = result["binding"]
        where = f" at entry {b['entry']}" if "entry" in b else ""
        echo(f"  most about {b['left']} / {b['right']}{where}")
    echo(f"  some mechanism with these losses leaks {result['lower_bound']:.6g}")
    if result["theorem_7"] is not None:
        echo(f"  Theorem 7 of the paper would say {result['theorem_7']:.6g}")
