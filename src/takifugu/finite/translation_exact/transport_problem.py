"""One pair, one prior, one allowance: the transport problem behind an exact translation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu._core.rounding import gamma
from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.priors.universe import Name, Tables, numbers_by_entry

MOST_LOSS = 300.0  # e^300 · 2^500 is still a float64; a larger total of ε is refused

Allowance = float | Mapping[Name, float] | Sequence[float] | Floats


def allowance_per_entry(universe: Tables, epsilon: Allowance) -> Floats:
    """``[entry]``: the total ε spent on every entry, from one number, a mapping or a list."""
    for name in epsilon if isinstance(epsilon, Mapping) else ():
        universe.entry(name)
    given = numbers_by_entry(universe.entries, epsilon, "epsilon", InvalidWorld).tolist()
    for name, value in zip(universe.entries, given, strict=True):
        if not 0 <= value < np.inf:
            raise UnsoundRequest(
                f"`epsilon` of entry {name!r} is {value:g}; it must be a finite number, 0 or more:"
                " a mechanism without a finite ε may reveal the entry outright",
                field="epsilon",
                given=value,
            )
    if sum(given) > MOST_LOSS:
        raise TooLarge(
            f"`epsilon` adds up to {sum(given):g} over the entries; at most {MOST_LOSS:g} can be"
            " certified in double precision. Ask for a smaller ε: the loss never exceeds the sum",
            field="epsilon",
            size=sum(given),
            limit=MOST_LOSS,
        )
    return frozen(given)


@dataclass(frozen=True, eq=False)
class TransportProblem:
    r"""Carry μ = P(·|s) to ν = P(·|s′), every changed entry j at a gain of e^{ε_j}.

    Entries that cannot matter are left out, which changes nothing but the size:

    * ε_j = 0: no admissible g depends on entry j, so only the laws of the others count.
    * μ has one value x of entry j only, and ν one value y: every coupling pays e^{ε_j [x≠y]}
      for it, whatever it does with the others. Secrets about one entry are of this kind.

    Attributes:
        source: ``[dataset]``: μ over the tables that are left.
        target: ``[dataset]``: ν over the same.
        allowance: ``[entry]``: ε_j > 0 of the entries that are left.
        shape: How many values each of them has.
        whole_shape: The same for all entries of the world.
        whole_allowance: ``[entry of the world]``: ε_j.
        kept: ``[entry of the world]``: whether it is left.
        paid: ``[entry of the world]``: x where the entry is settled at x ≠ y, else −1.
    """

    source: Floats
    target: Floats
    allowance: Floats
    shape: tuple[int, ...]
    whole_shape: tuple[int, ...]
    whole_allowance: Floats
    kept: Booleans
    paid: Integers

    @classmethod
    def between(
        cls, source: Floats, target: Floats, allowance: Floats, shape: tuple[int, ...]
    ) -> "TransportProblem":
        """The problem for two laws over all tables of ``shape``, with settled entries left out."""
        mu, nu = source.reshape(shape), target.reshape(shape)
        kept = np.ones(len(shape), dtype=bool)
        paid = np.full(len(shape), -1, dtype=np.int64)
        for j in range(len(shape)):
            others = tuple(k for k in range(len(shape)) if k != j)
            left, right = (np.flatnonzero(law.max(axis=others) > 0) for law in (mu, nu))
            if allowance[j] == 0:
                kept[j] = False
            elif len(left) == 1 and len(right) == 1:
                kept[j] = False
                paid[j] = left[0] if left[0] != right[0] else -1
        gone = tuple(int(j) for j in np.flatnonzero(~kept))
        return cls(
            source=frozen(mu.sum(axis=gone).ravel()),
            target=frozen(nu.sum(axis=gone).ravel()),
            allowance=frozen(allowance[kept]),
            shape=tuple(n for n, keep in zip(shape, kept, strict=True) if keep),
            whole_shape=shape,
            whole_allowance=allowance,
            kept=kept,
            paid=paid,
        )

    @property
    def settled(self) -> float:
        """Σ ε_j over the settled entries: what every coupling pays anyway."""
        return float(self.whole_allowance[self.paid >= 0].sum())

    @property
    def error(self) -> float:
        """How far, relatively, rounding may have moved a number of ``source`` or ``target``."""
        return 2 * gamma(2 * prod(self.whole_shape))

    def lift(self, log_g: Floats) -> Floats:
        """``[dataset of the world]``: log g with the left-out entries put back.

        A settled entry multiplies g by e^{ε_j} where it has the value x, and an entry with
        ε_j = 0 changes nothing: a product of admissible factors.
        """
        sizes = [n if keep else 1 for n, keep in zip(self.whole_shape, self.kept, strict=True)]
        whole = np.broadcast_to(log_g.reshape(sizes), self.whole_shape)
        for j in np.flatnonzero(self.paid >= 0):
            factor = np.zeros(self.whole_shape[j])
            factor[self.paid[j]] = self.whole_allowance[j]
            sizes = [-1 if k == j else 1 for k in range(len(self.whole_shape))]
            whole = whole + factor.reshape(sizes)
        return np.ascontiguousarray(whole).ravel()
