"""What takifugu answers for instances of the families of `torture.oracles`, without an oracle.

An instance has the answer that its family compares with the truth (question ``own``), and more may
be asked of its translation: by each method, allowances, profiles, curves, composition, advice.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from takifugu.costs import Cost
from takifugu.influence import InfluenceCurve, gaussian_curve
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.influence.chain.interval_curves import interval_chain_curve
from takifugu.influence.network.attractive_curves import attractive_curve
from takifugu.influence.network.network_curves import network_curve
from takifugu.numeric import Floats
from takifugu.priors import Secrets
from takifugu.translation import TranslatedLoss, Translation
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.entry_costs import EntryCosts
from tests.oracles import cost_instances, table_instances
from torture.oracles import (
    curves,
    gaussian_processes,
    linear_programs,
    long_chains,
    small_worlds,
    wider_worlds,
)
from torture.oracles.comparison import Instance
from torture.oracles.small_priors import prior_of, secrets_of
from torture.oracles.spending import cost, entry_costs

LEAST_EXACT = 5e-4  # nats; a smaller leak is not called exact
ALIKE = 1e-6  # relative: losses this close may be told in either order
SOME = 5  # entries of a long list that are kept
ROWS = 6  # rows of a curve that are kept


@dataclass(frozen=True)
class Answer:
    """One statement.

    Attributes:
        claim: What it is about; as its family says, where there is a truth.
        upper: A bound that nothing exceeds.
        lower: What something attains.
        exact: Whether it is called exact.
        allowed: What may be lost, instead of a bound.
        method: What proved it, if it is below what others prove.
        binding: The secret pair that loses most.
        scale: Rounding is a share of this, or of the number if it is larger.
        unique: Which part of the binding is no accident: "pair", "entry" or "".
    """

    claim: str
    upper: float | None = None
    lower: float | None = None
    exact: bool | None = None
    allowed: float | None = None
    method: str | None = None
    binding: Binding | None = None
    scale: float = 1.0
    unique: Callable[[], str] = field(default=lambda: "", compare=False, repr=False)

    def bound_to(self, part: str) -> str:
        """The pair, or its entry."""
        if self.binding is None:
            return ""
        return str(self.binding) if part == "pair" else f"entry {self.binding.entry}"


def told(claim: str, found: TranslatedLoss, again: Callable[[], Bound], scale: float) -> Answer:
    """A translated loss as an answer; ``again`` is its bound."""
    others = [v for name, v in found.by_method.items() if v is not None and name != found.method]
    clear = all(value > found.pufferfish * (1 + ALIKE) for value in others)
    return Answer(
        claim,
        found.pufferfish,
        found.witness.leak,
        found.exact,
        method=found.method if clear else None,
        binding=found.binding,
        scale=min(scale, 1.0),
        unique=lambda: _unique(again()),
    )


def _unique(bound: Bound) -> str:
    if bound.by_entry is None or not _one_top(bound.by_entry):
        return ""
    return "pair" if bound.by_values is not None and _one_top(bound.by_values) else "entry"


def _one_top(values: Floats) -> bool:
    ordered = np.sort(values, axis=None)
    top = ordered[-1]
    return bool(0 < top < np.inf and (len(ordered) < 2 or ordered[-2] < top * (1 - ALIKE)))


def some_entries(by_entry: Floats | None, scale: float) -> Iterator[Answer]:
    """The bounds of some entries: the largest, both ends, the middle."""
    if by_entry is None:
        return
    last = len(by_entry) - 1
    places = {0, 1, last // 2, last - 1, last, int(np.argmax(by_entry))}
    for entry in sorted(k for k in places if 0 <= k <= last):
        yield Answer(f"entry {entry}", float(by_entry[entry]), scale=min(scale, 1.0))


def curve_rows(curve: InfluenceCurve, where: str = "", rows: int = ROWS) -> Iterator[Answer]:
    """The points of some rows."""
    chosen = np.unique(np.linspace(0, len(curve.pairs) - 1, rows).astype(int))
    points = np.unique(np.linspace(0, len(curve.exposed) - 1, 2 * SOME).astype(int))
    points = np.union1d(np.arange(min(SOME, len(curve.exposed))), points)
    for row in chosen.tolist():
        for k in points.tolist():
            claim = f"{where}{curve.pairs[row]}, {curve.exposed[k]} exposed"
            leak, told_ = float(curve.leak[row, k]), bool(curve.exact[row, k])
            yield Answer(claim, leak, exact=told_ and (leak == 0 or leak >= LEAST_EXACT))


def _spent(translation: Translation, spent: Instance, unit: float, claim: str) -> Iterator[Answer]:
    """As `torture.oracles.small_priors.said_by`, with where it binds and why."""
    scale = float(unit)
    match spent["kind"]:
        case "allowance":
            yield Answer(claim, allowed=float(translation.to_dp(unit)), scale=0.0)
            return
        case "factor":
            factor = translation.to_cost(cost(spent["terms"], Fraction(1)), unit)
            yield Answer(claim, allowed=float(factor), scale=0.0)
            return
        case "dp" | "profile":
            times = spent.get("times")
            dp: Any = unit if times is None else np.array([unit * n for n in times])
            found = translation.explain(dp)
            yield told(claim, found, lambda: translation.bound(dp), scale)
        case _:
            costs = entry_costs(spent, Fraction(unit))
            found = translation.explain_cost(costs)
            yield told(claim, found, lambda: translation.cost_bound(costs), scale)
    yield from some_entries(found.by_entry, scale)


def _costs(translation: Translation, costs: EntryCosts | Cost, claim: str) -> Iterator[Answer]:
    found = translation.explain_cost(costs)
    scale = float(np.max(EntryCosts.of(costs).scalars()))
    yield told(claim, found, lambda: translation.cost_bound(costs), scale)
    yield from some_entries(found.by_entry, scale)


Asked = tuple[Translation, float, Callable[[], Iterator[Answer]]]


def _asked(translation: Translation, spent: Instance, unit: float, claim: str) -> Asked:
    return translation, unit, lambda: _spent(translation, spent, unit, claim)


def _small(instance: Instance) -> Asked:
    translation = Translation(prior_of(instance["world"]), secrets_of(instance.get("groups")))
    spent = instance["spent"]
    return _asked(translation, spent, instance["unit"], str(spent["kind"]))


def _within(instance: Instance) -> Asked:
    translation = Translation(wider_worlds.interval_chain(instance))
    spent = instance["spent"]
    return _asked(translation, spent, instance["unit"], str(spent["kind"]))


def _attractive(instance: Instance) -> Asked:
    translation = Translation(wider_worlds.attractive_field(instance))
    return _asked(translation, {"kind": instance["kind"]}, instance["unit"], "all secrets")


def _long(instance: Instance, *, make: Callable[[Instance], Any], claim: str) -> Asked:
    spent = long_chains.spending(instance)
    return _asked(Translation(make(instance)), spent, instance["unit"], claim)


def _classes(instance: Instance) -> Any:
    return long_chains.classes_chain(instance, instance.get("length"))


def _sums(instance: Instance) -> Asked:
    translation = Translation(long_chains.ordered_chain(instance))
    told_ = partial(_costs, translation, long_chains.sum_cost(instance), "the sum")
    return translation, instance["unit"], told_


def _program(instance: Instance, *, family: str) -> Asked:
    drawn = cost_instances.instance(instance["seed"], family)
    translation = Translation(drawn.prior, drawn.secrets)
    unit = float(np.max(drawn.costs.scalars()))
    return translation, unit, partial(_costs, translation, drawn.costs, "all secrets")


def _process(instance: Instance) -> Asked:
    translation, charged = gaussian_processes.process(instance)
    told_ = partial(_costs, translation, charged, "noisy sum")
    return translation, instance["steep"] * instance["within"], told_


TRANSLATED: dict[str, Callable[[Instance], Asked]] = {
    **{family.name: _small for family in small_worlds.FAMILIES},
    "chain with an unknown start": _small,
    "chain within intervals": _within,
    "attractive field": _attractive,
    "two states, up to 10,000 entries": partial(
        _long, make=long_chains.binary_chain, claim="the chain"
    ),
    "classes of states, long": partial(_long, make=_classes, claim="the chain"),
    "unbounded chain": partial(_long, make=_classes, claim="unbounded"),
    "permutation, up to 10,000 entries": partial(
        _long, make=long_chains.turning_chain, claim="the chain"
    ),
    "ordered states, noisy sum": _sums,
    "Gaussian process, noisy sum": _process,
    **{
        name: partial(_program, family=family)
        for family, name in linear_programs.NAMES.items()
        if family in cost_instances.FAMILIES
    },
}


def _rows(instance: Instance, *, family: str) -> Iterator[Answer]:
    for column, upper in table_instances.drawn_table(instance["seed"], family)[1].upper.items():
        yield Answer(f"column {column}", float(upper))


def _linear(instance: Instance) -> Iterator[Answer]:
    releases, listed = gaussian_processes.linear_releases(instance)
    laplace, normal = releases.laplace(listed), releases.gaussian(listed)
    scale = min(1.0, laplace.pufferfish)
    yield Answer(
        *("Laplace noise", laplace.pufferfish, laplace.lower, laplace.exact),
        *(None, None, laplace.binding, scale),
        unique=lambda: "entry" if _one_top(laplace.by_entry) else "",
    )
    scale = min(1.0, normal.mu)
    yield Answer("Gaussian noise", normal.mu, normal.lower, binding=normal.binding, scale=scale)
    for delta in (1e-9, 0.01):
        yield Answer(f"at δ = {delta:g}", normal.epsilon(delta), scale=scale)
        both = releases.mixed(listed[:1], listed[1:], delta=delta)
        yield Answer(f"mixed at δ = {delta:g}", both, scale=scale)
    yield Answer("δ at 0.5", normal.delta(0.5), scale=1e-6)


def _truncated(instance: Instance) -> Iterator[Answer]:
    curve = gaussian_curve(wider_worlds.truncated_gaussian(instance))
    for entry in range(len(curve.leak)):
        yield Answer(f"entry {entry}", float(curve.leak[entry, 0]))


def _network(instance: Instance) -> Iterator[Answer]:
    yield from curve_rows(network_curve(curves.network(instance), largest=3), rows=12)


def _attractive_curve(instance: Instance) -> Iterator[Answer]:
    yield from curve_rows(attractive_curve(curves.attractive(instance), largest=3), rows=12)


def _chain(instance: Instance, *, make: Callable[[Instance], Any]) -> Iterator[Answer]:
    chain, entries, sides, most = make(instance)
    asked = [(entry, side) for entry in entries for side in sides]
    for entry, side in asked[:: max(1, len(asked) // 8)]:
        curve = chain_curve(chain, Secrets(entries=(entry,), pairs=(side,)), max_exposed=most)
        yield from curve_rows(curve, f"entry {entry}: ", rows=2)


def _interval_curve(instance: Instance) -> Iterator[Answer]:
    curve = interval_chain_curve(curves.intervals(instance), max_exposed=curves.FEW)
    yield from curve_rows(curve, "entry 6: ")


DIRECT: dict[str, Callable[[Instance], Iterator[Answer]]] = {
    **{f"rows: {name}, LP": partial(_rows, family=name) for name in table_instances.FAMILIES},
    "Gaussian, linear queries": _linear,
    "curve: truncated Gaussian": _truncated,
    "curve: networks and fields": _network,
    "curve: attractive fields": _attractive_curve,
    "curve: short chains, groups": partial(_chain, make=curves.short_chain),
    "curve: chains, up to 10,000 entries": partial(_chain, make=curves.long_chain),
    "curve: chains within intervals": _interval_curve,
}
