"""Small worlds as takifugu's priors: its side of an instance."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.priors import (
    BayesianNetwork,
    Explicit,
    HigherOrderChain,
    IndependentEntries,
    MarkovChain,
    MarkovRandomField,
    Prior,
    Product,
    Secrets,
    Tables,
    TimeOfDayChain,
)
from takifugu.translation import Translation
from torture.oracles.comparison import Allowance, Instance
from torture.oracles.spending import NAMES, cost, entry_costs


@dataclass(frozen=True, eq=False)
class Said:
    """What takifugu says: a bound, a witness, what is allowed.

    Attributes:
        upper: The bound; of an allowance, the target.
        lower: What the witness leaks.
        exact: Whether it is called exact.
        by_entry: The bound of each entry, if it is known.
        unit: What the losses of the instance are multiples of: of an allowance, its answer. Where
            that is 0 nothing is lost, and nothing can be compared.
        allowance: Whether it is one.
    """

    upper: float
    lower: float | None
    exact: bool | None
    by_entry: Floats | None
    unit: Fraction
    allowance: bool = False

    def asked(self) -> Iterator[Allowance]:
        """That an allowance was asked for, if it was."""
        if self.allowance:
            yield Allowance(nothing=not self.unit)


def prior_of(world: Instance) -> Prior | list[Prior]:
    """The prior; several for a guarantee that holds for each."""
    match world["kind"]:
        case "table":
            universe = Tables.of({j: NAMES[:n] for j, n in enumerate(world["sizes"])})
            return Explicit(universe, np.array(world["table"]))
        case "chain" | "known" | "unknown" | "both":
            return _chain(world)
        case "second order":
            return HigherOrderChain(
                np.array(world["follow"]), NAMES[: len(world["follow"])], world["length"]
            )
        case "hours":
            rows = np.array(world["rows"])
            states = NAMES[: rows.shape[-1]]
            return TimeOfDayChain(rows, states, np.array(world["start"]), world["length"])
        case "network":
            nodes = _nodes(world)
            return BayesianNetwork(
                nodes,
                tuple(NAMES[:n] for n in world["sizes"]),
                tuple(tuple(nodes[k] for k in above) for above in world["parents"]),
                tuple(np.array(table) for table in world["tables"]),
            )
        case "field":
            nodes = _nodes(world)
            return MarkovRandomField(
                nodes,
                tuple(NAMES[:n] for n in world["sizes"]),
                tuple(np.array(weights) for weights in world["unary"]),
                tuple((nodes[i], nodes[j]) for i, j in world["edges"]),
                tuple(np.array(weights) for weights in world["weights"]),
            )
        case "independent":
            laws: list[dict[str | int, float]] = [
                dict(zip(NAMES, law, strict=False)) for law in world["laws"]
            ]
            return IndependentEntries({f"n{j}": law for j, law in enumerate(laws)})
        case "people":
            return Product({f"p{k}": _chain(part) for k, part in enumerate(world["parts"])})
        case "several":
            return [prior_of(part) for part in world["parts"]]  # type: ignore[misc]
        case kind:
            raise ValueError(kind)


def _chain(world: Instance) -> MarkovChain:
    rows = np.array(world["rows"])
    start: Any = world["start"] if isinstance(world["start"], str) else np.array(world["start"])
    return MarkovChain(
        rows,
        NAMES[: rows.shape[-1]],
        start=start,
        length=world["length"],
        known="any" if world["kind"] in ("known", "both") else "none",
    )


def _nodes(world: Instance) -> tuple[str, ...]:
    return tuple(f"n{j}" for j in range(len(world["sizes"])))


def secrets_of(groups: list[list[int]] | None) -> Secrets:
    """Every pair of values, or two groups of them."""
    if groups is None:
        return Secrets()
    left, right = (tuple(NAMES[k] for k in side) for side in groups)
    return Secrets(pairs=((left, right),))


def said_of(instance: Instance) -> Said:
    """What takifugu answers."""
    translation = Translation(prior_of(instance["world"]), secrets_of(instance.get("groups")))
    return said_by(translation, instance["spent"], instance["unit"])


def said_by(translation: Translation, spent: Instance, epsilon: float) -> Said:
    """What a translation says of a spending."""
    unit = Fraction(epsilon)
    match spent["kind"]:
        case "allowance":
            allowed = Fraction(float(translation.to_dp(epsilon)))
            return Said(epsilon, None, None, None, allowed, allowance=True)
        case "factor":
            factor = translation.to_cost(cost(spent["terms"], Fraction(1)), epsilon)
            return Said(epsilon, None, None, None, factor, allowance=True)
        case "dp":
            found = translation.explain(epsilon)
        case "profile":
            found = translation.explain([epsilon * n for n in spent["times"]])
        case _:
            found = translation.explain_cost(entry_costs(spent, unit))
    return Said(found.pufferfish, found.witness.leak, found.exact, found.by_entry, unit)
