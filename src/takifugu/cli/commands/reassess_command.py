"""``takifugu reassess``: the Pufferfish guarantee of what was already released under DP."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu.cli.commands.translate_command import checked_method, print_binding
from takifugu.cli.shared_options import (
    AsJson,
    InvalidOption,
    MethodOption,
    Pairs,
    PriorFile,
    SecretEntries,
    SecretsWithin,
    Spinner,
    Uncertainty,
    echo,
    print_json,
    read_json_option,
    read_secrets,
    show_warnings,
)
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.translation.accounting.composition import Composed, Release

RELEASED_HELP = (
    "A release, repeatable: ε, or ε,δ, or rho=ρ; then @start:end or @name,name if it read some"
    " entries only. Or a .json file with a list of such strings."
)


def run_reassess(
    prior: PriorFile,
    released: Annotated[list[str] | None, typer.Option(help=RELEASED_HELP)] = None,
    delta: Annotated[
        float | None, typer.Option(help="The Pufferfish δ to aim at, for releases with rho=….")
    ] = None,
    method: MethodOption = "best",
    pairs: Pairs = None,
    entries: SecretEntries = None,
    secrets_within: SecretsWithin = None,
    uncertainty: Uncertainty = 0.0,
    as_json: AsJson = False,
) -> None:
    """Reassess releases made under per-entry DP: the Pufferfish guarantee that they have together.

    No data and no ledger is needed, only the losses that were published. They are added up for each
    entry, and the sum is translated once for PRIOR. (To test a claimed loss against outputs of a
    mechanism, use the package takifugu.auditing.)

    JSON: pufferfish_epsilon, pufferfish_delta, dp_epsilon (a list if entries differ), dp_delta,
    lower_bound (some mechanism with the released ε leaks it), method, by_method, binding, theorem_7
    (the paper's bound; null unless all losses are pure), releases (their number).
    """
    from takifugu.priors import read_prior
    from takifugu.translation.accounting.composition import compose
    from takifugu.translation.translation import Translation

    chosen = checked_method(method)
    listed = _releases(released or [])
    translation = Translation(
        read_prior(prior), read_secrets(pairs, entries, secrets_within), uncertainty=uncertainty
    )
    with show_warnings(), Spinner("translating"):
        composed = compose(translation, listed, delta=delta, method=chosen)
    result = _result(composed, len(listed))
    if as_json:
        print_json(result)
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
    listed = read_json_option("--released", path, needed)
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise InvalidOption("--released", given=f"{path} is not a list of strings", needed=needed)
    return listed


def _result(composed: "Composed", count: int) -> dict[str, Any]:
    answer = composed.translated
    return {
        "pufferfish_epsilon": composed.epsilon,
        "pufferfish_delta": composed.delta,
        "dp_epsilon": composed.dp if isinstance(composed.dp, float) else composed.dp.tolist(),
        "dp_delta": composed.dp_delta,
        "lower_bound": composed.lower,
        "method": composed.method,
        "by_method": dict(answer.by_method),
        "binding": {} if answer.binding is None else answer.binding.document(),
        "theorem_7": composed.theorem_7,
        "releases": count,
    }


def _print(result: dict[str, Any]) -> None:
    dp = result["dp_epsilon"]
    most = max(dp) if isinstance(dp, list) else dp
    many = "release" if result["releases"] == 1 else "releases"
    dp_delta = f", δ {_up(result['dp_delta'])}" if result["dp_delta"] else ""
    echo(f"{result['releases']} {many}, together DP ε {_up(most)}{dp_delta} on the entry most used")
    delta = f", δ = {_up(result['pufferfish_delta'])}" if result["pufferfish_delta"] else ""
    echo(f"Pufferfish ε {_up(result['pufferfish_epsilon'])}{delta}, by {result['method']}")
    print_binding(result["binding"])
    lower = four_digits(result["lower_bound"], "down")
    echo(f"  some mechanism with these losses leaks {lower}")
    if result["theorem_7"] is not None:
        echo(f"  Theorem 7 of the paper gives {_up(result['theorem_7'])}")


def _up(loss: float) -> str:
    return four_digits(loss, "up")
