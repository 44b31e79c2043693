"""``takifugu translate``: per-entry DP loss to Pufferfish loss and back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    from takifugu.translation.translation import Method, TranslatedLoss, Translation


def run_translate(
    prior: PriorFile,
    pufferfish: Annotated[
        str | None, typer.Option(help="Pufferfish ε to allow: 1, or several as 0.5,1,2.")
    ] = None,
    dp: Annotated[
        str | None, typer.Option("--dp", help="Per-entry DP ε: 0.1, or several as 0.1,0.2.")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(help="A .json file with a list: the DP ε of each entry.")
    ] = None,
    method: MethodOption = "best",
    delta: Annotated[
        float, typer.Option(help="With --dp or --profile: the δ of (ε, δ)-DP per entry.")
    ] = 0.0,
    pairs: Pairs = None,
    entries: SecretEntries = None,
    secrets_within: SecretsWithin = None,
    uncertainty: Uncertainty = 0.0,
    table: Annotated[
        bool,
        typer.Option(
            "--table", help="Use a cached table beside PRIOR; it is made if there is none."
        ),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the translation: a .png, .svg or .pdf file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Translate per-entry DP ε into Pufferfish ε for PRIOR, or back.

    Keys of the JSON object: pufferfish_epsilon and dp_epsilon (lists if several were given; a
    profile is always a list), lower_bound (some mechanism with this DP ε leaks as much), exact
    (whether upper and lower bound agree up to a factor of 1 ± 1e-6), method, by_method (the result
    of each method; null where it does not apply), binding (the secret pair that leaks most); with
    --delta also pufferfish_delta, with --profile also by_entry, with --table only the two ε, method
    and table. An infinite number is the string "infinity".
    """
    from takifugu import reports
    from takifugu.priors import read_prior
    from takifugu.reports.translation_figure import translation_figure
    from takifugu.translation.translation import Translation

    if sum(given is not None for given in (pufferfish, dp, profile)) != 1:
        raise InvalidOption(
            "--dp",
            given="is missing, or is beside --pufferfish or --profile",
            needed="be given, or one of these: give exactly one of --dp, --pufferfish, --profile",
        )
    if plot is not None:
        reports.check_target(plot)
    if delta and pufferfish is not None:
        raise InvalidOption("--delta", given="is beside --pufferfish", needed="be beside --dp")
    chosen = checked_method(method)
    translation = Translation(
        read_prior(prior), read_secrets(pairs, entries, secrets_within), uncertainty=uncertainty
    )
    with show_warnings(), Spinner("translating") as spinner:
        if table:
            result = _from_table(prior, translation, dp, pufferfish, spinner)
        elif profile is not None:
            result = _profile(translation, _listed(profile), chosen, delta)
        elif dp is not None:
            numbers = _numbers(dp, "--dp")
            found = [_forwards(translation, e, chosen, delta) for e in numbers]
            result = _several(found)
        else:
            numbers = _numbers(pufferfish or "", "--pufferfish")
            found = [_backwards(translation, e, chosen) for e in numbers]
            result = _several(found)
        if plot is not None:
            spinner("drawing")
            figure = translation_figure(translation, title=prior.stem, marked=_marks(result))
            reports.save(figure, plot)
    if as_json:
        print_json(result)
    else:
        _print(result)


def checked_method(method: str) -> "Method":
    """A method by its name."""
    from takifugu.translation.translation import METHODS

    for known in METHODS:
        if method == known:
            return known
    raise InvalidOption(
        "--method", given=f"is {method!r}", needed=f"be one of {', '.join(METHODS)}"
    )


def _forwards(
    translation: "Translation", epsilon: Any, method: "Method", delta: float
) -> dict[str, Any]:
    answer = translation.explain(epsilon, method)
    result = _facts(answer, dict(answer.by_method))
    if delta:
        from takifugu.translation.accounting.approximate import approximate

        loss = approximate(translation, epsilon, delta, method=method)
        result["pufferfish_epsilon"], result["pufferfish_delta"] = loss.epsilon, loss.delta
        result["method"], result["exact"] = loss.method, False
    return result


def _profile(
    translation: "Translation", epsilon: list[float], method: "Method", delta: float
) -> dict[str, Any]:
    import numpy as np

    size = translation.size
    if size is not None and len(epsilon) != size:
        raise InvalidOption(
            "--profile", given=f"has {len(epsilon)} numbers", needed=f"have {size}, one an entry"
        )
    result = _forwards(translation, np.array(epsilon), method, delta)
    by_entry = translation.bound(np.array(epsilon), "transport").by_entry
    result["by_entry"] = None if by_entry is None else by_entry.tolist()
    return result


def _backwards(translation: "Translation", target: float, method: "Method") -> dict[str, Any]:
    from takifugu.translation.bounds import EXACT
    from takifugu.translation.translation import METHODS

    by_method: dict[str, float | None] = {"transport": None}
    for name in METHODS[1:]:
        if name != "transport" or translation.transport is not None:
            by_method[name] = float(translation.to_dp(target, name))
    values = [value for value in by_method.values() if value is not None]
    allowed = max(values) if method == "best" else by_method[method] or 0.0
    answer = translation.explain(allowed, method)
    result = _facts(answer, by_method)
    result["pufferfish_epsilon"] = target
    result["exact"] = answer.exact and answer.lower >= (1 - EXACT) * target
    return result


def _facts(answer: "TranslatedLoss", by_method: dict[str, Any]) -> dict[str, Any]:
    dp = answer.dp if isinstance(answer.dp, float) else answer.dp.tolist()
    return {
        "pufferfish_epsilon": answer.pufferfish,
        "dp_epsilon": dp,
        "lower_bound": answer.lower,
        "exact": answer.exact,
        "method": answer.method,
        "by_method": by_method,
        "binding": {} if answer.binding is None else answer.binding.document(),
    }


def _several(found: list[dict[str, Any]]) -> dict[str, Any]:
    """One object; its values are lists if several numbers were given."""
    if len(found) == 1:
        return found[0]
    together: dict[str, Any] = {
        key: [one[key] for one in found] for key in found[0] if key != "by_method"
    }
    names = found[0]["by_method"]
    together["by_method"] = {name: [one["by_method"][name] for one in found] for name in names}
    return together


def _from_table(
    prior: Path,
    translation: "Translation",
    dp: str | None,
    pufferfish: str | None,
    spinner: Spinner,
) -> dict[str, Any]:
    from takifugu.translation.accounting.translation_table import (
        TranslationTable,
        table_beside,
        tabulate,
    )

    path = table_beside(prior, translation)
    if path.exists():
        known = TranslationTable.load(path, translation)
    else:
        known = tabulate(translation, progress=lambda k, n: spinner(f"table, {k} of {n}"))
        known.save(path)
    if dp is None and pufferfish is None:
        raise InvalidOption("--table", given="is beside --profile", needed="be with one ε for all")
    spent = _numbers(dp, "--dp") if dp is not None else []
    targets = _numbers(pufferfish, "--pufferfish") if pufferfish is not None else []
    allowed = spent or [float(known.to_dp(t)) for t in targets]
    losses = targets or [float(known.to_pufferfish(e)) for e in spent]
    one = len(allowed) == 1
    return {
        "pufferfish_epsilon": losses[0] if one else losses,
        "dp_epsilon": allowed[0] if one else allowed,
        "method": "best",
        "table": path.name,
    }


def _numbers(text: str, option: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = [-1.0]
    if not all(0 <= number < float("inf") for number in numbers):  # also false for NaN
        raise InvalidOption(option, given=f"is {text!r}", needed="hold finite numbers, 0 or more")
    return numbers


def _marks(result: dict[str, Any]) -> list[tuple[float, float]]:
    """The pairs of DP ε and Pufferfish ε of a result; a profile counts by its largest."""
    dp, loss = result["dp_epsilon"], result["pufferfish_epsilon"]
    if isinstance(loss, list):
        return list(zip(dp, loss, strict=True))
    return [(max(dp) if isinstance(dp, list) else dp, loss)]


def _listed(path: Path) -> list[float]:
    listed = read_json_option("--profile", path, "be a JSON list of ε")
    if not isinstance(listed, list) or not all(
        isinstance(e, int | float) and not isinstance(e, bool) and 0 <= e < float("inf")
        for e in listed
    ):
        raise InvalidOption(
            "--profile", given=f"{path} is not a list of ε", needed="hold finite numbers, 0 or more"
        )
    return [float(e) for e in listed]


def _print(result: dict[str, Any]) -> None:
    rows = result["dp_epsilon"]
    many = isinstance(result["pufferfish_epsilon"], list)
    for k in range(len(rows) if many else 1):
        one = {key: _pick(value, k) if many else value for key, value in result.items()}
        _print_one(one)


def _pick(value: Any, k: int) -> Any:
    if isinstance(value, dict):
        return {key: part[k] for key, part in value.items()}
    return value[k] if isinstance(value, list) else value


def _print_one(one: dict[str, Any]) -> None:
    dp = one["dp_epsilon"]
    spent = four_digits(max(dp) if isinstance(dp, list) else dp, "down")
    if isinstance(dp, list):
        spent = f"a profile of {len(dp)} ε up to {spent}"
    loss = four_digits(one["pufferfish_epsilon"], "up")
    delta = (
        f", δ = {four_digits(one['pufferfish_delta'], 'up')}" if "pufferfish_delta" in one else ""
    )
    echo(f"DP ε {spent} per entry is Pufferfish ε {loss}{delta}")
    if "table" in one:
        echo(f"  from the table {one['table']}")
        return
    methods = ", ".join(
        f"{name} {'-' if value is None else four_digits(value)}"
        for name, value in one["by_method"].items()
    )
    echo(f"  by {one['method']} ({methods})")
    if one["binding"]:
        b = one["binding"]
        where = f" at entry {b['entry']}" if "entry" in b else ""
        echo(f"  most about {b['left']} / {b['right']}{where}")
    if one["exact"]:
        echo("  exact: some mechanism leaks as much")
    else:
        echo(f"  some mechanism leaks {four_digits(one['lower_bound'], 'down')}")
