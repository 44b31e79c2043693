"""What a translation answers: a loss, where it binds, and who proves it from below."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from takifugu.finite.mechanism import FiniteMechanism
from takifugu.numeric import Floats
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.priors.universe import Name

EXACT = 1e-6  # how far apart, as a share, the two bounds of a number may be that is called exact


class LooserTranslation(UserWarning):
    """The tight translation is out of reach for this prior; the answer is sound but looser."""


@dataclass(frozen=True)
class Binding:
    """The question with the largest loss: "is it ``left``, or is it ``right``?".

    Attributes:
        entry: The entry that the question is about; None if it is the same for all, or not known.
        left: The value, or the values joined by "|", on the side whose odds go up.
        right: The same for the other side.
        prior: Which prior, if there are several, or whose, if there are several people.
    """

    left: str
    right: str
    entry: Name | None = None
    prior: str | None = None

    def __str__(self) -> str:
        where = "" if self.entry is None else f"{self.entry}="
        whose = "" if self.prior is None else f"{self.prior}: "
        return f"{whose}{where}{self.left} / {where}{self.right}"

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        given = {"entry": self.entry, "left": self.left, "right": self.right, "prior": self.prior}
        return {key: value for key, value in given.items() if value is not None}

    @classmethod
    def of_pair(cls, label: str) -> "Binding":
        """The binding that a row of an influence curve names."""
        left, _, right = label.partition(" / ")
        (entry, mark, one), (again, _, other) = left.partition("="), right.partition("=")
        if mark and entry == again:
            return cls(one, other, entry=int(entry) if entry.isdigit() else entry)
        return cls(left, right or left)


@dataclass(frozen=True, eq=False)
class Bound:
    """An upper bound on the Pufferfish loss.

    Attributes:
        value: At least the loss.
        binding: Where it is largest; None if nothing can be asked.
        by_entry: ``[entry]``: the largest loss of each entry; None if it is not known apart.
        by_values: ``[x, y]``: the loss of each pair of values where it binds, of a chain.
    """

    value: float
    binding: Binding | None = None
    by_entry: Floats | None = None
    by_values: Floats | None = field(default=None, repr=False)

    def named(self, prior: str) -> "Bound":
        """The same, for one prior of several."""
        binding = None if self.binding is None else replace(self.binding, prior=prior)
        return replace(self, binding=binding)


@dataclass(frozen=True, eq=False)
class Witness:
    r"""A per-entry ε-DP mechanism, and what it leaks: a proof from below.

    With ``factors`` it is randomised response on each of ``entries``, independently: entry j says
    "yes" with chance :math:`g_j(x_j) / (1 + e^{ε_j})`, where :math:`1 \le g_j \le e^{ε_j}`. Both
    answers are then ε_j-DP, and "all say yes" has a likelihood proportional to
    :math:`\prod_j g_j(x_j)`. With ``mechanism`` it is a table of likelihoods.

    Attributes:
        leak: At most the loss of ``binding`` when "yes" is seen everywhere; rounded down.
            Near the supremum of an unbounded chain no entries are listed: it takes many.
        binding: The question that leaks.
        entries: The entries that are asked.
        factors: ``[entry, value]``: g, rounded down to what float64 can hold.
        mechanism: The table instead, where the world is written out.
    """

    leak: float
    binding: Binding | None
    entries: tuple[Name, ...] = field(default=(), repr=False)
    factors: Floats | None = field(default=None, repr=False)
    mechanism: FiniteMechanism | None = field(default=None, repr=False)

    def named(self, prior: str) -> "Witness":
        """The same, for one prior of several."""
        binding = None if self.binding is None else replace(self.binding, prior=prior)
        return replace(self, binding=binding)


def worst(bounds: Mapping[str, Bound]) -> Bound:
    """The largest of several bounds; entries are kept apart if all of them do so."""
    name = max(bounds, key=lambda key: bounds[key].value)
    lists = [bound.by_entry for bound in bounds.values()]
    together = None
    if all(part is not None for part in lists):
        together = np.concatenate([part for part in lists if part is not None])
    top = bounds[name] if len(bounds) == 1 else bounds[name].named(name)
    return Bound(top.value, top.binding, together, top.by_values)


def of_pair(pair: SecretPair) -> Binding:
    """The binding that a pair of statements names."""
    if isinstance(pair.left, EntryIs) and isinstance(pair.right, EntryIs):
        left, right = ("|".join(map(str, side.values)) for side in (pair.left, pair.right))
        return Binding(left, right, entry=pair.left.entry)
    return Binding(str(pair.left), str(pair.right))
