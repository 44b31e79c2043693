"""``takifugu translate`` of losses by value: the count of some labels, or a cost in a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.cli.shared_options import InvalidOption, echo, listed, read_json_option
from takifugu.errors import UnsoundRequest
from takifugu.visible import Rounded, four_digits, visible

if TYPE_CHECKING:
    from takifugu.costs.cost import Cost
    from takifugu.translation.entry_costs import EntryCosts
    from takifugu.translation.translation import Method, Translation

NEEDED = (
    'be a cost, [["1/10", ["member", ["home"]]]], or {"profile": [cost, …]} with one for each entry'
)


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
        some = ", ".join(sorted(states)[:12]) + (", …" if len(states) > 12 else "")
        given = f"hold {unknown[0]!r:.80}"
        raise InvalidOption("--values", given=given, needed=f"be states of the prior: {some}")
    return Cost.of({Membership([states[name] for name in names]): 1})


def read_costs(path: Path) -> "EntryCosts":
    """The cost of every entry, or of each, in a file."""
    from takifugu.costs.cost import Cost
    from takifugu.translation.entry_costs import EntryCosts

    found = read_json_option("--cost", path, NEEDED)
    try:
        if isinstance(found, dict) and set(found) == {"profile"} and found["profile"]:
            if not isinstance(found["profile"], list):
                raise UnsoundRequest("a profile is a list of costs", field="profile")
            return EntryCosts(by_entry=tuple(map(Cost.of_document, found["profile"])))
        cost = Cost.of_document(found)
    except UnsoundRequest as error:
        raise InvalidOption("--cost", given=f"{path}: {error}", needed=NEEDED) from error
    if not cost:
        raise InvalidOption("--cost", given=f"{path} holds an empty cost", needed=NEEDED)
    return EntryCosts((cost,))


def translated(
    translation: "Translation", costs: "EntryCosts | Cost", method: "Method"
) -> dict[str, Any]:
    """Upper and lower bound of a cost, and what the loss is if every value counts alike."""
    from takifugu.translation.entry_costs import EntryCosts

    given = EntryCosts.of(costs)
    answer = translation.explain_cost(given, method)
    scalar = given.scalars()
    return {
        "pufferfish_epsilon": answer.pufferfish,
        "dp_epsilon": scalar if isinstance(scalar, float) else scalar.tolist(),
        "cost": [cost.document() for cost in given.by_entry]
        if given.by_entry is not None
        else given.anywhere[0].document(),
        "lower_bound": answer.lower,
        "gap": answer.gap,
        "exact": answer.exact,
        "method": answer.method,
        "by_method": dict(answer.by_method),
        "binding": {} if answer.binding is None else answer.binding.document(),
        "without_values": translation.bound(scalar, method).value,
    }


def allowed(
    translation: "Translation", unit: "Cost", target: float, method: "Method"
) -> dict[str, Any]:
    """The largest ε of a count that a Pufferfish loss allows, and what it is without values."""
    if method != "best":
        raise InvalidOption(
            "--method",
            given="is beside --values and --pufferfish",
            needed="be left out: the best method that applies is used",
        )
    factor = translation.to_cost(unit, target)
    result = translated(translation, unit * factor, method)
    result["pufferfish_epsilon"] = target
    result["dp_epsilon_without_values"] = float(translation.to_dp(target))
    return result


def print_translated(one: dict[str, Any], values: str | None) -> None:
    """A result for people."""
    dp, loss = one["dp_epsilon"], four_digits(one["pufferfish_epsilon"], "up")
    if isinstance(dp, list):
        what = f"a profile of {len(dp)} costs up to ε {four_digits(max(dp), 'up')}"
    elif values is None:
        what = f"a cost of at most ε {four_digits(dp, 'up')}"
    else:
        what = f"a count of {visible(', '.join(listed(values)))} at ε {four_digits(dp, 'down')}"
    echo(f"{what} per entry is Pufferfish ε {loss}")
    if "dp_epsilon_without_values" in one:
        plain = one["dp_epsilon_without_values"]
        times = f": {four_digits(dp / plain)} times the noise" if plain > 0 else ""
        echo(f"  without values ε {four_digits(plain, 'down')} would be allowed{times}")
    else:
        echo(f"  without values {four_digits(one['without_values'], 'up')}")
    echo(f"  by {one['method']} ({listed_bounds(one['by_method'], 'up')})")
    if one["binding"]:
        b = one["binding"]
        where = f" at entry {b['entry']}" if "entry" in b else ""
        echo(f"  most about {b['left']} / {b['right']}{where}")
    if one["exact"]:
        echo("  exact: some mechanism leaks as much")
    else:
        lower, gap = four_digits(one["lower_bound"], "down"), four_digits(one["gap"], "up")
        echo(f"  some mechanism leaks {lower}: {gap} less")
    print_adversaries(one, "down" if "dp_epsilon_without_values" in one else "up")


def print_adversaries(one: dict[str, Any], rounded: Rounded) -> None:
    """What the result is against each adversary, if that was asked for."""
    if "by_adversary" in one:
        echo(f"  by what is known: {listed_bounds(one['by_adversary'], rounded)}")


def listed_bounds(bounds: Mapping[str, float | None], rounded: Rounded) -> str:
    """Bounds by name in one line: losses are rounded up and allowances down, as the result is."""
    return ", ".join(
        f"{name.replace('_', ' ')} {'-' if bound is None else four_digits(bound, rounded)}"
        for name, bound in bounds.items()
    )
