"""``takifugu translate``: per-entry DP loss to Pufferfish loss and back."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu._core.exact import is_finite
from takifugu.cli.commands.translate_costs import (
    allowed,
    count_of,
    listed_bounds,
    print_adversaries,
    print_translated,
    read_costs,
    translated,
)
from takifugu.cli.shared_options import (
    AsJson,
    InProject,
    InvalidOption,
    MethodOption,
    Pairs,
    SecretEntries,
    SecretsWithin,
    Spinner,
    Uncertainty,
    echo,
    print_json,
    read_json_option,
    read_secrets,
    show_warnings,
    the_project,
    without_project,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.visible import Rounded, four_digits

if TYPE_CHECKING:
    from takifugu.translation.translation import Method, TranslatedLoss, Translation


def run_translate(
    prior: Annotated[
        Path,
        typer.Argument(
            help="The prior: a JSON document, a BIF file, or a dataset of the project, with its"
            " secrets.",
            autocompletion=complete_dataset,
        ),
    ],
    pufferfish: Annotated[
        str | None, typer.Option(help="Pufferfish ε to allow: 1, or several as 0.5,1,2.")
    ] = None,
    dp: Annotated[
        str | None, typer.Option("--dp", help="Per-entry DP ε: 0.1, or several as 0.1,0.2.")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(help="A .json file with a list: the DP ε of each entry.")
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(help="With --dp or --pufferfish: of a count of these labels, as 'home,work'."),
    ] = None,
    cost: Annotated[
        Path | None,
        typer.Option(help="A .json file with a cost, value by value, or one for each entry."),
    ] = None,
    method: MethodOption = "best",
    delta: Annotated[
        float, typer.Option(help="With --dp or --profile: the δ of (ε, δ)-DP per entry.")
    ] = 0.0,
    pairs: Pairs = None,
    entries: SecretEntries = None,
    secrets_within: SecretsWithin = None,
    uncertainty: Uncertainty = 0.0,
    start: Annotated[
        str | None,
        typer.Option(help="Of a Markov chain: 'unknown' for any law of the first entry."),
    ] = None,
    known: Annotated[
        str | None,
        typer.Option(help="Of a Markov chain: 'any' if any other entries may be known."),
    ] = None,
    table: Annotated[
        bool,
        typer.Option(
            "--table", help="Use a cached table beside PRIOR; it is made if there is none."
        ),
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the translation: a .png, .svg or .pdf file.")
    ] = None,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Translate per-entry DP ε into Pufferfish ε for PRIOR, or back.

    For a dataset of the project all its priors count, with the secrets and the uncertainty of its
    policy.

    Keys of the JSON object: pufferfish_epsilon and dp_epsilon (lists if several were given; a
    profile is always a list), lower_bound (some mechanism with this DP ε leaks as much), exact
    (whether upper and lower bound agree up to a factor of 1 ± 1e-6), method, by_method (the result
    of each method; null where it does not apply), binding (the secret pair that leaks most); with
    --delta also pufferfish_delta, with --profile also by_entry, with --table only the two ε, method
    and table. With --values or --cost also cost, gap (between the two bounds) and without_values
    (the loss if every value counts alike), with --pufferfish dp_epsilon_without_values. With
    --start or --known, and for chains that have them, also by_adversary: the result for the plain
    chain, an unknown start, known entries and both; and against: what the adversary knows to whom a
    mechanism leaks the lower bound. An infinite number is the string "infinity".
    """
    from takifugu import reports
    from takifugu.influence.families import has_curve
    from takifugu.priors import read_prior
    from takifugu.priors.adversaries import against
    from takifugu.reports.translation_figure import translation_figure
    from takifugu.translation.translation import Translation

    if sum(given is not None for given in (pufferfish, dp, profile, cost)) != 1:
        raise InvalidOption(
            "--dp",
            given="is missing, or is beside --pufferfish, --profile or --cost",
            needed="be given, or one of these: give exactly one of --dp, --pufferfish, --profile,"
            " --cost",
        )
    by_value = values is not None or cost is not None
    if by_value:
        _refuse_beside_values(values, profile, cost, delta, table, plot)
    if plot is not None:
        reports.check_target(plot)
    if delta and pufferfish is not None:
        raise InvalidOption("--delta", given="is beside --pufferfish", needed="be beside --dp")
    chosen = checked_method(method)
    named = start is not None or known is not None
    if "." not in prior.name and not prior.exists():
        stated = {
            "--pairs": pairs, "--entries": entries, "--secrets-within": secrets_within,
            "--uncertainty": uncertainty or None, "--start": start, "--known": known,
            "--table": table or None,
        }  # fmt: skip
        translation = _of_dataset(str(prior), folder, stated)
    else:
        without_project(folder, "PRIOR")
        assumed = against(read_prior(prior), start=start, known=known)
        secrets = read_secrets(pairs, entries, secrets_within)
        translation = Translation(assumed, secrets, uncertainty=uncertainty)
    assumed = next(iter(translation.priors.values()))
    plain = len(translation.priors) > 1 or (has_curve(assumed) and not named)
    others = {} if plain else _others(translation)
    with show_warnings(), Spinner("translating") as spinner:
        if by_value:
            result = _by_value(translation, others, values, cost, dp, pufferfish, chosen)
        elif table:
            result = _from_table(prior, translation, dp, pufferfish, spinner)
        elif profile is not None:
            result = _profile(translation, _listed(profile), chosen, delta, others)
        elif dp is not None:
            numbers = _numbers(dp, "--dp")
            found = [_forwards(translation, e, chosen, delta, others) for e in numbers]
            result = _several(found)
        else:
            numbers = _numbers(pufferfish or "", "--pufferfish")
            found = [_backwards(translation, e, chosen, others) for e in numbers]
            result = _several(found)
        if plot is not None:
            spinner("drawing")
            figure = translation_figure(translation, title=prior.stem, marked=_marks(result))
            reports.save(figure, plot)
    if as_json:
        print_json(result)
    elif by_value:
        for one in _each(result):
            print_translated(one, values)
    else:
        _print(result, "up" if pufferfish is None else "down")


def _of_dataset(name: str, folder: Path | None, stated: dict[str, Any]) -> "Translation":
    """The translation of a dataset's priors, with the secrets and uncertainty of its policy."""
    for option, given in stated.items():
        if given is not None:
            raise InvalidOption(
                option, given="is given", needed="be left out for a dataset: its policy states it"
            )
    return the_project(folder).load(name).entry_translation


def _refuse_beside_values(
    values: str | None,
    profile: Path | None,
    cost: Path | None,
    delta: float,
    table: bool,
    plot: Path | None,
) -> None:
    option = "--cost" if values is None else "--values"
    for name, given in (
        ("--cost", values is not None and cost is not None),
        ("--profile", profile is not None),
        ("--delta", bool(delta)),
        ("--table", table),
        ("--plot", plot is not None),
    ):
        if given:
            raise InvalidOption(name, given=f"is beside {option}", needed="be left out")


def _by_value(
    translation: "Translation",
    others: "dict[str, Translation]",
    values: str | None,
    cost: Path | None,
    dp: str | None,
    pufferfish: str | None,
    method: "Method",
) -> dict[str, Any]:
    def against_all(found: "Callable[[Translation], dict[str, Any]]", key: str) -> dict[str, Any]:
        result = found(translation)
        if others:
            result["by_adversary"] = {name: found(other)[key] for name, other in others.items()}
        return result

    if cost is not None:
        costs = read_costs(cost)
        return against_all(lambda one: translated(one, costs, method), "pufferfish_epsilon")
    unit = count_of(translation, values or "")
    if dp is not None:
        spent = [unit * e for e in _numbers(dp, "--dp")]
        return _several(
            [
                against_all(lambda one, c=c: translated(one, c, method), "pufferfish_epsilon")  # type: ignore[misc]
                for c in spent
            ]
        )
    targets = _numbers(pufferfish or "", "--pufferfish")
    return _several(
        [
            against_all(lambda one, t=t: allowed(one, unit, t, method), "dp_epsilon")  # type: ignore[misc]
            for t in targets
        ]
    )


def checked_method(method: str) -> "Method":
    """A method by its name."""
    from takifugu.translation.translation import METHODS

    for known in METHODS:
        if method == known:
            return known
    raise InvalidOption(
        "--method", given=f"is {method!r}", needed=f"be one of {', '.join(METHODS)}"
    )


def _others(translation: "Translation") -> "dict[str, Translation]":
    """The translation against each adversary."""
    from dataclasses import replace

    from takifugu.priors.adversaries import adversaries

    (prior,) = translation.priors.values()
    return {
        name: translation if other == prior else replace(translation, prior=other)
        for name, other in adversaries(prior).items()
    }


def _forwards(
    translation: "Translation",
    epsilon: Any,
    method: "Method",
    delta: float,
    others: "dict[str, Translation]",
) -> dict[str, Any]:
    answer = translation.explain(epsilon, method)
    result = _facts(answer, dict(answer.by_method))
    if translation.curve_waits and answer.by_method["curve"] is None:
        result["curve_waits"] = True
    if others:
        found = {name: other.bound(epsilon, method).value for name, other in others.items()}
        result |= {"by_adversary": found, "against": answer.witness.against}
    if delta:
        from takifugu.translation.accounting.composition import approximate

        loss = approximate(translation, epsilon, delta, method=method)
        result["pufferfish_epsilon"], result["pufferfish_delta"] = loss.epsilon, loss.delta
        result["method"], result["exact"] = loss.method, False
    return result


def _profile(
    translation: "Translation",
    epsilon: list[float],
    method: "Method",
    delta: float,
    others: "dict[str, Translation]",
) -> dict[str, Any]:
    import numpy as np

    size = translation.size
    if size is not None and len(epsilon) != size:
        raise InvalidOption(
            "--profile", given=f"has {len(epsilon)} numbers", needed=f"have {size}, one an entry"
        )
    result = _forwards(translation, np.array(epsilon), method, delta, others)
    by_entry = translation.bound(np.array(epsilon), "transport").by_entry
    result["by_entry"] = None if by_entry is None else by_entry.tolist()
    return result


def _backwards(
    translation: "Translation", target: float, method: "Method", others: "dict[str, Translation]"
) -> dict[str, Any]:
    from takifugu.translation.bounds import EXACT
    from takifugu.translation.translation import METHODS

    by_method: dict[str, float | None] = {"transport": None}
    for name in METHODS[1:]:
        by_method[name] = None
        if name == "curve" and (
            not translation.has_curve
            or (translation.curve_waits and translation.transport and method != "curve")
        ):
            continue
        if name != "transport" or translation.transport is not None:
            by_method[name] = float(translation.to_dp(target, name))
    values = [value for value in by_method.values() if value is not None]
    allowed = max(values) if method == "best" else by_method[method] or 0.0
    answer = translation.explain(allowed, method)
    result = _facts(answer, by_method)
    result["pufferfish_epsilon"] = target
    result["exact"] = answer.exact and answer.lower >= (1 - EXACT) * target
    if others:
        found = {name: float(other.to_dp(target, method)) for name, other in others.items()}
        result |= {"by_adversary": found, "against": answer.witness.against}
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
    tables = [key for key in ("by_method", "by_adversary") if key in found[0]]
    together: dict[str, Any] = {
        key: [one[key] for one in found] for key in found[0] if key not in tables
    }
    for key in tables:
        together[key] = {name: [one[key][name] for one in found] for name in found[0][key]}
    return together


def _from_table(
    prior: Path,
    translation: "Translation",
    dp: str | None,
    pufferfish: str | None,
    spinner: Spinner,
) -> dict[str, Any]:
    from takifugu.translation.accounting.tables import (
        TranslationTable,
        table_beside,
        tabulate,
    )

    if dp is None and pufferfish is None:
        raise InvalidOption("--table", given="is beside --profile", needed="be with one ε for all")
    spent = _numbers(dp, "--dp") if dp is not None else []
    targets = _numbers(pufferfish, "--pufferfish") if pufferfish is not None else []
    path = table_beside(prior, translation)
    if path.exists():
        known = TranslationTable.load(path, translation)
    else:
        known = tabulate(translation, progress=lambda k, n: spinner(f"table, {k} of {n}"))
        known.save(path)
    found = spent or [float(known.to_dp(t)) for t in targets]
    losses = targets or [float(known.to_pufferfish(e)) for e in spent]
    one = len(found) == 1
    return {
        "pufferfish_epsilon": losses[0] if one else losses,
        "dp_epsilon": found[0] if one else found,
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
        isinstance(e, int | float) and not isinstance(e, bool) and e >= 0 and is_finite(e)
        for e in listed
    ):
        raise InvalidOption(
            "--profile", given=f"{path} is not a list of ε", needed="hold finite numbers, 0 or more"
        )
    return [float(e) for e in listed]


def _print(result: dict[str, Any], rounded: Rounded) -> None:
    for one in _each(result):
        _print_one(one, rounded)


def _each(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What `_several` put together, one by one."""
    losses = result["pufferfish_epsilon"]
    if not isinstance(losses, list):
        return [result]
    return [{key: _pick(value, k) for key, value in result.items()} for k in range(len(losses))]


def _pick(value: Any, k: int) -> Any:
    if isinstance(value, dict):
        return {key: part[k] for key, part in value.items()}
    return value[k] if isinstance(value, list) else value


def _print_one(one: dict[str, Any], rounded: Rounded) -> None:
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
    echo(f"  by {one['method']} ({listed_bounds(one['by_method'], rounded)})")
    if one["binding"]:
        b = one["binding"]
        where = f" at entry {b['entry']}" if "entry" in b else ""
        echo(f"  most about {b['left']} / {b['right']}{where}")
    told = f" to somebody who knows that {one['against']}" if one.get("against") else ""
    if one["exact"]:
        echo(f"  exact: some mechanism leaks as much{told}")
    else:
        echo(f"  some mechanism leaks {four_digits(one['lower_bound'], 'down')}{told}")
    if one.get("curve_waits"):
        least = four_digits(one["lower_bound"], "down")
        echo(f"  curve: not computed, it cannot be below {least}; --method curve computes it")
    print_adversaries(one, rounded)
