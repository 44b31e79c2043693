"""``takifugu translate``: per-entry DP loss to Pufferfish loss and back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from takifugu._core.exact import is_finite
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
    listed,
    print_json,
    read_json_option,
    read_secrets,
    refuse_given,
    show_warnings,
    the_project,
    without_project,
)
from takifugu.cli.shell_completion import complete_dataset
from takifugu.errors import UnsoundRequest
from takifugu.visible import Rounded, four_digits, visible

if TYPE_CHECKING:
    from takifugu.costs.cost import Cost
    from takifugu.translation.entry_costs import EntryCosts
    from takifugu.translation.translation import Method, TranslatedLoss, Translation

COST_NEEDED = (
    'be a cost, [["1/10", ["member", ["home"]]]], or {"profile": [cost, …]} with one for each entry'
)
MAX_LISTED_STATES = 12  # in a message


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

    JSON: pufferfish_epsilon and dp_epsilon (lists if several were given; a profile is always a
    list), lower_bound (some mechanism with this DP ε leaks as much), exact (whether upper and lower
    bound agree up to a factor of 1 ± 1e-6), method, by_method (the result of each method; null
    where it does not apply), binding (the secret pair that leaks most); with --delta also
    pufferfish_delta, with --profile also by_entry, with --table only the two ε, method and table.
    With --values or --cost also cost, gap (between the two bounds) and without_values (the loss if
    every value counts alike), with --pufferfish dp_epsilon_without_values. With --start or --known,
    and for chains that have them, also by_adversary: the result for the plain chain, an unknown
    start, known entries and both; and against: what the adversary knows to whom a mechanism leaks
    the lower bound. An infinite number is the string "infinity".
    """
    from takifugu import reports
    from takifugu.influence.families import has_curve
    from takifugu.priors import read_prior
    from takifugu.priors.adversaries import against
    from takifugu.reports.curve_figures import translation_figure
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
        beside = {"--profile": profile, "--delta": delta, "--table": table, "--plot": plot}
        beside |= {"--cost": None if values is None else cost}
        by = "--cost" if values is None else "--values"
        refuse_given(beside, given=f"is beside {by}", needed="be left out")
    if plot is not None:
        reports.check_target(plot)
    if delta and pufferfish is not None:
        raise InvalidOption("--delta", given="is beside --pufferfish", needed="be beside --dp")
    chosen = checked_method(method)
    named = start is not None or known is not None
    if "." not in prior.name and not prior.exists():
        stated = {
            "--pairs": pairs, "--entries": entries, "--secrets-within": secrets_within,
            "--uncertainty": uncertainty, "--start": start, "--known": known, "--table": table,
        }  # fmt: skip
        refuse_given(stated, needed="be left out for a dataset: its policy states it")
        translation = the_project(folder).load(str(prior)).entry_translation
    else:
        without_project(folder, "PRIOR")
        assumed = against(read_prior(prior), start=start, known=known)
        secrets = read_secrets(pairs, entries, secrets_within)
        translation = Translation(assumed, secrets, uncertainty=uncertainty)
    assumed = next(iter(translation.priors.values()))
    plain = len(translation.priors) > 1 or (has_curve(assumed) and not named)
    work = Translating(translation, {} if plain else _others(translation), chosen, delta)
    spent = None if dp is None else _numbers(dp, "--dp")
    targets = None if pufferfish is None else _numbers(pufferfish, "--pufferfish")
    with show_warnings(), Spinner("translating") as spinner:
        if cost is not None:
            results = [work.cost(read_costs(cost))]
        elif values is not None:
            unit = count_of(translation, values)
            results = [work.cost(unit * e) for e in spent or ()]
            results += [work.largest_count(unit, target) for target in targets or ()]
        elif table:
            results = _from_table(prior, translation, spent, targets, spinner)
        elif profile is not None:
            results = [work.profile(_listed(profile))]
        else:
            results = [work.forwards(e) for e in spent or ()]
            results += [work.backwards(target) for target in targets or ()]
        if plot is not None:
            spinner("drawing")
            marks = [_mark(result) for result in results]
            figure = translation_figure(translation, title=prior.stem, marked=marks)
            reports.save(figure, plot)
    if as_json:
        print_json(_together(results))
        return
    for result in results:
        if by_value:
            _print_by_value(result, values)
        else:
            _print(result, "up" if pufferfish is None else "down")


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
    from takifugu.priors.adversaries import adversaries

    (prior,) = translation.priors.values()
    return {
        name: translation if other == prior else replace(translation, prior=other)
        for name, other in adversaries(prior).items()
    }


@dataclass(frozen=True)
class Translating:
    """What is translated, and how; each result is a part of the JSON object.

    Attributes:
        translation: The translation.
        others: The same against each adversary; empty if that is not asked for.
        method: How.
        delta: The δ of (ε, δ)-DP per entry.
    """

    translation: "Translation"
    others: "Mapping[str, Translation]"
    method: "Method"
    delta: float

    def forwards(self, epsilon: Any) -> dict[str, Any]:
        """The Pufferfish ε of a per-entry DP ε, or of one for each entry."""
        answer = self.translation.explain(epsilon, self.method)
        result = _facts(answer, dict(answer.by_method))
        if self.translation.curve_waits and answer.by_method["curve"] is None:
            result["curve_waits"] = True
        if self.others:
            losses = {n: each.bound(epsilon, self.method).value for n, each in self.others.items()}
            result |= {"by_adversary": losses, "against": answer.witness.against}
        if self.delta:
            from takifugu.translation.accounting.composition import approximate

            loss = approximate(self.translation, epsilon, self.delta, method=self.method)
            result["pufferfish_epsilon"], result["pufferfish_delta"] = loss.epsilon, loss.delta
            result["method"], result["exact"] = loss.method, False
        return result

    def profile(self, epsilon: list[float]) -> dict[str, Any]:
        """The Pufferfish ε of a DP ε for each entry, and what it is entry by entry."""
        import numpy as np

        size = self.translation.size
        if size is not None and len(epsilon) != size:
            needed = f"have {size}, one an entry"
            raise InvalidOption("--profile", given=f"has {len(epsilon)} numbers", needed=needed)
        by_entry = self.translation.bound(np.array(epsilon), "transport").by_entry
        listed_losses = None if by_entry is None else by_entry.tolist()
        return self.forwards(np.array(epsilon)) | {"by_entry": listed_losses}

    def backwards(self, target: float) -> dict[str, Any]:
        """The largest per-entry DP ε whose Pufferfish ε is at most ``target``."""
        from takifugu.translation.bounds import EXACT
        from takifugu.translation.translation import METHODS

        translation, method = self.translation, self.method
        waits = translation.curve_waits and translation.transport and method != "curve"
        by_method: dict[str, float | None] = {"transport": None}
        for name in METHODS[1:]:
            by_method[name] = None
            if name == "curve" and (not translation.has_curve or waits):
                continue
            if name != "transport" or translation.transport is not None:
                by_method[name] = float(translation.to_dp(target, name))
        values = [value for value in by_method.values() if value is not None]
        allowed = max(values) if method == "best" else by_method[method] or 0.0
        answer = translation.explain(allowed, method)
        result = _facts(answer, by_method)
        result["pufferfish_epsilon"] = target
        result["exact"] = answer.exact and answer.lower >= (1 - EXACT) * target
        if self.others:
            allowances = {n: float(o.to_dp(target, method)) for n, o in self.others.items()}
            result |= {"by_adversary": allowances, "against": answer.witness.against}
        return result

    def cost(self, costs: "EntryCosts | Cost") -> dict[str, Any]:
        """Upper and lower bound of a cost, and what the loss is if every value counts alike."""
        return self._against_all(
            lambda each: _translated(each, costs, self.method), "pufferfish_epsilon"
        )

    def largest_count(self, unit: "Cost", target: float) -> dict[str, Any]:
        """The largest ε of a count that a Pufferfish loss allows, and what it is without values."""
        if self.method != "best":
            raise InvalidOption(
                "--method",
                given="is beside --values and --pufferfish",
                needed="be left out: the best method that applies is used",
            )

        def largest(each: "Translation") -> dict[str, Any]:
            result = _translated(each, unit * each.to_cost(unit, target), self.method)
            result["pufferfish_epsilon"] = target
            return result | {"dp_epsilon_without_values": float(each.to_dp(target))}

        return self._against_all(largest, "dp_epsilon")

    def _against_all(
        self, translate: "Callable[[Translation], dict[str, Any]]", key: str
    ) -> dict[str, Any]:
        result = translate(self.translation)
        if self.others:
            by_adversary = {name: translate(each)[key] for name, each in self.others.items()}
            result["by_adversary"] = by_adversary
        return result


def _facts(answer: "TranslatedLoss", by_method: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    return {
        "pufferfish_epsilon": answer.pufferfish,
        "dp_epsilon": np.asarray(answer.dp).tolist(),
        "lower_bound": answer.lower,
        "exact": answer.exact,
        "method": answer.method,
        "by_method": by_method,
        "binding": {} if answer.binding is None else answer.binding.document(),
    }


def _translated(
    translation: "Translation", costs: "EntryCosts | Cost", method: "Method"
) -> dict[str, Any]:
    import numpy as np

    from takifugu.translation.entry_costs import EntryCosts

    given = EntryCosts.of(costs)
    answer = translation.explain_cost(given, method)
    scalar = given.scalars()
    by_entry = given.by_entry
    return _facts(answer, dict(answer.by_method)) | {
        "dp_epsilon": np.asarray(scalar).tolist(),
        "cost": given.anywhere[0].document()
        if by_entry is None
        else [cost.document() for cost in by_entry],
        "gap": answer.gap,
        "without_values": translation.bound(scalar, method).value,
    }


def _together(results: list[dict[str, Any]]) -> dict[str, Any]:
    """One object; its values are lists if several numbers were given, but what names the table."""
    if len(results) == 1:
        return results[0]
    first = results[0]
    together: dict[str, Any] = {key: [result[key] for result in results] for key in first}
    for key in ("by_method", "by_adversary"):
        if key in first:
            together[key] = {name: [r[key][name] for r in results] for name in first[key]}
    return together | ({key: first[key] for key in ("method", "table")} if "table" in first else {})


def _from_table(
    prior: Path,
    translation: "Translation",
    spent: list[float] | None,
    targets: list[float] | None,
    spinner: Spinner,
) -> list[dict[str, Any]]:
    from takifugu.translation.accounting.tables import (
        TranslationTable,
        table_beside,
        tabulate,
    )

    if spent is None and targets is None:
        raise InvalidOption("--table", given="is beside --profile", needed="be with one ε for all")
    path = table_beside(prior, translation)
    if path.exists():
        table = TranslationTable.load(path, translation)
    else:
        table = tabulate(translation, progress=lambda k, n: spinner(f"table, {k} of {n}"))
        table.save(path)
    allowed = spent or [float(table.to_dp(t)) for t in targets or ()]
    losses = targets or [float(table.to_pufferfish(e)) for e in allowed]
    return [
        {"pufferfish_epsilon": loss, "dp_epsilon": dp, "method": "best", "table": path.name}
        for dp, loss in zip(allowed, losses, strict=True)
    ]


def _numbers(text: str, option: str) -> list[float]:
    try:
        numbers = [float(word) for word in text.split(",")]
    except ValueError:
        numbers = [-1.0]
    if not all(0 <= number < float("inf") for number in numbers):  # also false for NaN
        raise InvalidOption(option, given=f"is {text!r}", needed="hold finite numbers, 0 or more")
    return numbers


def _mark(result: dict[str, Any]) -> tuple[float, float]:
    """The DP ε and the Pufferfish ε of a result; a profile counts by its largest."""
    dp = result["dp_epsilon"]
    return max(dp) if isinstance(dp, list) else dp, result["pufferfish_epsilon"]


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


def count_of(translation: "Translation", text: str) -> "Cost":
    """What a count of these labels tells at ε = 1; texts are matched with the priors' states."""
    from takifugu.costs.cost import Cost, Membership
    from takifugu.translation.entry_costs import labels_of

    states = {
        str(value): value
        for prior in translation.priors.values()
        for column, value in labels_of(prior)
        if column is None and isinstance(value, str | int)
    }
    names = listed(text)
    unknown = [name for name in names if name not in states]
    if unknown:
        some = ", ".join(sorted(states)[:MAX_LISTED_STATES]) + (
            ", …" if len(states) > MAX_LISTED_STATES else ""
        )
        given = f"hold {unknown[0]!r:.80}"
        raise InvalidOption("--values", given=given, needed=f"be states of the prior: {some}")
    return Cost.of({Membership([states[name] for name in names]): 1})


def read_costs(path: Path) -> "EntryCosts":
    """The cost of every entry, or of each, in a file."""
    from takifugu.costs.cost import Cost
    from takifugu.translation.entry_costs import EntryCosts

    document = read_json_option("--cost", path, COST_NEEDED)
    try:
        if isinstance(document, dict) and set(document) == {"profile"} and document["profile"]:
            if not isinstance(document["profile"], list):
                raise UnsoundRequest("a profile is a list of costs", field="profile")
            return EntryCosts(by_entry=tuple(map(Cost.of_document, document["profile"])))
        cost = Cost.of_document(document)
    except UnsoundRequest as error:
        raise InvalidOption("--cost", given=f"{path}: {error}", needed=COST_NEEDED) from error
    if not cost:
        raise InvalidOption("--cost", given=f"{path} holds an empty cost", needed=COST_NEEDED)
    return EntryCosts((cost,))


def _print(result: dict[str, Any], rounded: Rounded) -> None:
    dp = result["dp_epsilon"]
    spent = four_digits(max(dp) if isinstance(dp, list) else dp, "down")
    if isinstance(dp, list):
        spent = f"a profile of {len(dp)} ε up to {spent}"
    loss = four_digits(result["pufferfish_epsilon"], "up")
    delta = (
        f", δ = {four_digits(result['pufferfish_delta'], 'up')}"
        if "pufferfish_delta" in result
        else ""
    )
    echo(f"DP ε {spent} per entry is Pufferfish ε {loss}{delta}")
    if "table" in result:
        echo(f"  from the table {result['table']}")
        return
    echo(f"  by {result['method']} ({_listed_bounds(result['by_method'], rounded)})")
    print_binding(result["binding"])
    told = f" to somebody who knows that {result['against']}" if result.get("against") else ""
    if result["exact"]:
        echo(f"  exact: some mechanism leaks as much{told}")
    else:
        echo(f"  some mechanism leaks {four_digits(result['lower_bound'], 'down')}{told}")
    if result.get("curve_waits"):
        least = four_digits(result["lower_bound"], "down")
        echo(f"  curve: not computed, it cannot be below {least}; --method curve computes it")
    _print_adversaries(result, rounded)


def print_binding(binding: Mapping[str, Any]) -> None:
    """Print the secret pair that leaks most, if there is one."""
    if binding:
        where = f" at entry {binding['entry']}" if "entry" in binding else ""
        echo(f"  most about {binding['left']} / {binding['right']}{where}")


def _print_by_value(result: dict[str, Any], values: str | None) -> None:
    """A result for people."""
    dp, loss = result["dp_epsilon"], four_digits(result["pufferfish_epsilon"], "up")
    if isinstance(dp, list):
        what = f"a profile of {len(dp)} costs up to ε {four_digits(max(dp), 'up')}"
    elif values is None:
        what = f"a cost of at most ε {four_digits(dp, 'up')}"
    else:
        what = f"a count of {visible(', '.join(listed(values)))} at ε {four_digits(dp, 'down')}"
    echo(f"{what} per entry is Pufferfish ε {loss}")
    if "dp_epsilon_without_values" in result:
        plain = result["dp_epsilon_without_values"]
        times = f": {four_digits(dp / plain)} times the noise" if plain > 0 else ""
        echo(f"  without values ε {four_digits(plain, 'down')} would be allowed{times}")
    else:
        echo(f"  without values {four_digits(result['without_values'], 'up')}")
    echo(f"  by {result['method']} ({_listed_bounds(result['by_method'], 'up')})")
    print_binding(result["binding"])
    if result["exact"]:
        echo("  exact: some mechanism leaks as much")
    else:
        lower, gap = four_digits(result["lower_bound"], "down"), four_digits(result["gap"], "up")
        echo(f"  some mechanism leaks {lower}: {gap} less")
    _print_adversaries(result, "down" if "dp_epsilon_without_values" in result else "up")


def _print_adversaries(result: dict[str, Any], rounded: Rounded) -> None:
    """What the result is against each adversary, if that was asked for."""
    if "by_adversary" in result:
        echo(f"  by what is known: {_listed_bounds(result['by_adversary'], rounded)}")


def _listed_bounds(bounds: Mapping[str, float | None], rounded: Rounded) -> str:
    """Bounds by name in one line: losses are rounded up and allowances down, as the result is."""
    return ", ".join(
        f"{name.replace('_', ' ')} {'-' if bound is None else four_digits(bound, rounded)}"
        for name, bound in bounds.items()
    )
