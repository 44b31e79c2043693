"""Charges and translations to test with."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any

from takifugu._core.fingerprint import fingerprint
from takifugu._core.rounding import float_down, float_up
from takifugu.costs.cost import NOTHING, Cost, Membership
from takifugu.costs.losses import Loss, Metric, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Cells, Charge, Groups, Window
from takifugu.priors.secrets import Secrets
from takifugu.translation.protocol import LossTranslation


class Doubling(LossTranslation):
    """Every ε counts twice: exact, in both directions, for floats without rounding."""

    fingerprint = "doubling"

    def to_pufferfish(self, dp: float, /) -> float:
        """Rounded up."""
        return 2 * dp

    def to_dp(self, pufferfish: float, /) -> float:
        """Rounded down."""
        return pufferfish / 2


class Identity(LossTranslation):
    """Every ε counts once, as for entries that are independent."""

    def to_pufferfish(self, dp: float, /) -> float:
        """The same."""
        return dp

    def to_dp(self, pufferfish: float, /) -> float:
        """The same."""
        return pufferfish


class Rich(Identity):
    """A bound that reads all three currencies: (ε, δ) by adding up, ρ by Bun and Steinke's 1.3."""

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """Rounded up, generously."""
        left = delta - total.delta
        if total.rho and left <= 0:
            return math.inf
        if left < 0:
            return math.inf
        rho = float(total.rho)
        tail = 2 * math.sqrt(rho * math.log(1 / left)) if rho else 0.0
        return math.nextafter(float(total.epsilon) + rho + tail, math.inf) * (1 + 1e-12)


PLACES = ("home", "ward", "work")


class Places(LossTranslation):
    """Knows values: the largest costs of all changes between three places, added up both ways.

    Each ε counts six times. What costs mean together is more than what each of them means.
    """

    fingerprint = "places"

    def to_pufferfish(self, dp: float, /) -> float:
        """Rounded up."""
        return float_up(6 * Fraction(dp))

    def to_dp(self, pufferfish: float, /) -> float:
        """Rounded down."""
        return float_down(Fraction(pufferfish) / 6)

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """Rounded up."""
        pairs = permutations(PLACES, 2)
        return float_up(sum((max(c.between(*p) for c in costs) for p in pairs), Fraction(0)))

    def to_cost(
        self,
        unit: Cost,
        pufferfish: float,
        *,
        spent: Sequence[Cost] = (NOTHING,),
        beside: Sequence[Cost] = (),
    ) -> Fraction:
        """Rounded down, by halving."""
        low, high = Fraction(0), Fraction(2**40)
        for _ in range(100):
            middle = (low + high) / 2
            loss = self.cost_to_pufferfish(*(cost + unit * middle for cost in spent), *beside)
            low, high = (middle, high) if loss <= pufferfish else (low, middle)
        return low


def count(epsilon: str | Fraction, *labels: str) -> Metric:
    """The loss of a noisy count of ``labels``."""
    return Metric(Cost.of({Membership(labels): epsilon}))


DOUBLING, IDENTITY, RICH, KNOWN = Doubling(), Identity(), Rich(), Places()
EVERY_PAIR = fingerprint(Secrets())
CELLS = Cells.of({"source": {"kind": "csv", "path": "ward.csv"}, "entity": "person"})


def charge(
    loss: Loss | str | float | Fraction,
    window: Window | tuple[int | None, int | None] | None = None,
    groups: Groups | list[str] | None = None,
    **others: Any,
) -> Charge:
    """A charge on the dataset "ward"; what does not matter is filled in."""
    given: dict[str, Any] = {
        "dataset": "ward",
        "query": {"name": "stays"},
        "mechanism": {"kind": "laplace"},
        "loss": loss if isinstance(loss, Loss) else Pure(loss),
        "data": "data",
        "prior": "prior",
        "secrets": "secrets",
        "translation": "doubling",
        "cells": CELLS,
        "window": Window(*window) if isinstance(window, tuple) else window,
        "groups": Groups(["country"], [(key,) for key in groups])
        if isinstance(groups, list)
        else groups,
    }
    return Charge(**(given | others))


class Blind(Places):
    """It can read no cost."""

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """Refused."""
        del costs
        raise UnsoundRequest("no such label", reason="label")

    def to_cost(
        self,
        unit: Cost,
        pufferfish: float,
        *,
        spent: Sequence[Cost] = (NOTHING,),
        beside: Sequence[Cost] = (),
    ) -> Fraction:
        """Refused."""
        del unit, pufferfish, spent, beside
        raise UnsoundRequest("no such label", reason="label")


def total(epsilon: str = "0", delta: str = "0", rho: str = "0", **counts: str) -> Total:
    """A total of currencies and of counts of single labels."""
    made = Total(Fraction(epsilon), Fraction(delta), Fraction(rho))
    for label, size in counts.items():
        made = made.plus(count(size, label))
    return made
