"""Several releases: their losses added up by entry, and translated once.

A Pufferfish loss does not add up in general; per-entry DP losses do. So the losses of all releases
are summed for every entry that they touched, exactly, and the sum is translated. This is also the
retrospective guarantee of statistics that were released under plain DP.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from takifugu._rounding import float_up, up
from takifugu.errors import UnsoundRequest
from takifugu.losses import Approximate, Concentrated, Loss, Pure, Total
from takifugu.numeric import Floats
from takifugu.priors.universe import Name
from takifugu.translation.accounting.approximate import ApproximateLoss, mixed
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.translation import LARGEST, Method, TranslatedLoss, Translation


@dataclass(frozen=True)
class Release:
    """One statistic that was published.

    Attributes:
        loss: Its DP loss for one replaced entry.
        window: The places [start, end) that it used; None if it used all entries.
        entries: The names of the entries instead of a window.
    """

    loss: Loss
    window: tuple[int, int] | None = None
    entries: tuple[Name, ...] | None = None

    def __post_init__(self) -> None:
        if self.window is not None:
            start, end = self.window
            if self.entries is not None or not 0 <= start < end:
                raise UnsoundRequest(
                    f"a release has the window [{start}, {end}); it must start at 0 or later, hold"
                    " an entry, and not stand beside a list of entries",
                    field="window",
                )

    @classmethod
    def read(cls, text: str) -> "Release":
        """A release as text: ``ε``, ``ε,δ`` or ``rho=ρ``, then ``@start:end`` or ``@name,name``.

        >>> Release.read("0.5,1e-6@3:7").window
        (3, 7)
        """
        loss, at, where = text.partition("@")
        return cls(_loss(loss, text), *(_where(where, text) if at else (None, None)))


def _loss(words: str, text: str) -> Loss:
    if words.startswith("rho="):
        return Concentrated(words.removeprefix("rho="))
    numbers = words.split(",")
    if len(numbers) == 1:
        return Pure(numbers[0])
    if len(numbers) == 2:
        return Approximate(*numbers)
    raise UnsoundRequest(f"a release is {text!r}; it must be ε, or ε,δ, or rho=ρ")


def _where(where: str, text: str) -> tuple[tuple[int, int] | None, tuple[Name, ...] | None]:
    start, colon, end = where.partition(":")
    if colon and start.isdigit() and end.isdigit():
        return (int(start), int(end)), None
    if colon or not where:
        raise UnsoundRequest(
            f"a release is {text!r}; behind @ comes start:end, or names of entries"
        )
    return None, tuple(int(word) if word.isdigit() else word for word in where.split(","))


@dataclass(frozen=True, eq=False)
class Composed:
    """The guarantee of several releases together.

    Attributes:
        epsilon: An upper bound on the Pufferfish loss of all of them.
        delta: The δ beside it, rounded up; 0 for pure losses.
        method: Which method proves it.
        dp: ε per entry that was translated, after adding up (and converting ρ).
        dp_delta: The largest δ of any entry.
        translated: The translation of ``dp`` in detail.
        lower: A lower bound: some mechanism with these pure and approximate losses leaks it.
        theorem_7: What Theorem 7 of the paper gives, for pure losses; None otherwise.
    """

    epsilon: float
    delta: float
    method: Method
    dp: float | Floats
    dp_delta: float
    translated: TranslatedLoss
    lower: float
    theorem_7: float | None


def compose(
    translation: Translation,
    releases: Sequence[Release],
    *,
    delta: float | None = None,
    method: Method = "best",
) -> Composed:
    """The Pufferfish guarantee of all ``releases`` together.

    Costs are translated value by value; beside a δ or ρ they count as the ε that covers them.
    ``delta`` is the Pufferfish δ to aim at; only concentrated losses need one.
    """
    if not releases:
        raise UnsoundRequest("there is no release to compose", field="releases")
    totals = totals_by_entry(translation, releases)
    everywhere = len(totals) == 1 and all(_everywhere(release) for release in releases)
    if any(t.costs for t in totals) and not any(t.delta or t.rho for t in totals):
        return _of_costs(translation, totals, everywhere=everywhere, method=method)
    spent = _numbers([total.scalar for total in totals])
    plain = _numbers([total.epsilon for total in totals])
    deltas = _numbers([total.delta for total in totals])
    rho = _numbers([total.rho for total in totals])
    if rho.any() and delta is None:
        raise UnsoundRequest(
            "a release is concentrated (rho=…); give the delta to aim at", field="delta"
        )
    if everywhere:
        spent, plain, deltas, rho = spent[0], plain[0], deltas[0], rho[0]
    if (deltas >= 1).any():
        raise UnsoundRequest(
            "the δ of the releases add up to 1 or more; they guarantee nothing",
            field="releases",
            reason="delta",
        )
    found: ApproximateLoss = mixed(
        translation, spent, deltas, rho, delta=0.5 if delta is None else delta, method=method
    )
    translated = translation.explain(found.dp, method)
    lower = translated.lower
    if not np.array_equal(found.dp, plain):  # ρ or a cost was converted, or a small ε raised
        lower = translation.witness(float(plain) if plain.ndim == 0 else plain).leak
    return Composed(
        found.epsilon,
        found.delta,
        found.method,
        found.dp,
        found.dp_delta,
        translated,
        min(lower, found.epsilon),
        _theorem_7(translation, releases),
    )


def _of_costs(
    translation: Translation, totals: Sequence[Total], *, everywhere: bool, method: Method
) -> Composed:
    """Pure losses and costs, added up entry by entry and translated value by value."""
    _numbers([total.scalar for total in totals])  # refuses what guarantees nothing
    costs = tuple(total.cost for total in totals)
    given = EntryCosts(costs) if everywhere else EntryCosts(by_entry=costs)
    found = translation.explain_cost(given, method)
    return Composed(
        *(found.pufferfish, 0.0, found.method, found.dp, 0.0, found, found.lower),
        theorem_7=None,
    )


def totals_by_entry(translation: Translation, releases: Sequence[Release]) -> list[Total]:
    """The losses of each entry, added up exactly; one for all if every release used all.

    For an unbounded prior the list stops at the last entry that was used.
    """
    if all(_everywhere(release) for release in releases):
        return [Total.of(release.loss for release in releases)]
    names, size = translation.entries, translation.size
    if names is None:
        if any(_everywhere(release) for release in releases):
            raise UnsoundRequest(
                "some releases use all entries and some a window, and the entries are unbounded;"
                " give the prior a `length`, or every release a window",
                field="length",
            )
        size = max(end for r in releases for end in _ends(r))
    changes: dict[int, list[tuple[int, Loss]]] = {}
    sums = [Total() for _ in range(size or 0)]
    for release in releases:
        for place in _places(release, names, size or 0):
            changes.setdefault(place, []).append((place, release.loss))
    for place, charged in changes.items():
        sums[place] = Total.of(loss for _, loss in charged)
    return sums


def _everywhere(release: Release) -> bool:
    return release.window is None and release.entries is None


def _ends(release: Release) -> list[int]:
    if release.window is not None:
        return [release.window[1]]
    return [int(entry) + 1 for entry in release.entries or () if isinstance(entry, int)]


def _places(release: Release, names: tuple[Name, ...] | None, size: int) -> range | list[int]:
    """The places of the entries that a release used."""
    if release.window is not None:
        if release.window[1] > size:
            raise UnsoundRequest(
                f"a release uses entries up to {release.window[1]}; there are {size}",
                field="window",
                given=release.window[1],
                needed=size,
            )
        return range(*release.window)
    if release.entries is None:
        return range(size)
    known: dict[Name, int] = {
        name: k for k, name in enumerate(range(size) if names is None else names)
    }
    known.update({str(name): k for name, k in known.items() if str(name) not in known})
    for entry in release.entries:
        if entry not in known:
            raise UnsoundRequest(
                f"a release uses {entry!r}, which is not an entry", field="entries", given=entry
            )
    return sorted({known[entry] for entry in release.entries})


def _numbers(exact: list[Fraction]) -> Floats:
    """The rationals, rounded up."""
    if any(value > Fraction(LARGEST) for value in exact):
        raise UnsoundRequest(
            f"the releases add up to more than {LARGEST:g}; they guarantee nothing",
            field="releases",
            reason="total",
        )
    return np.array([float_up(value) for value in exact])


def _theorem_7(translation: Translation, releases: Sequence[Release]) -> float | None:
    """Max a + Σ bε, each release at its own best point of the pooled curve (the paper, Thm 7)."""
    losses = [release.loss for release in releases]
    if not translation.has_curve or not all(isinstance(loss, Pure) for loss in losses):
        return None
    pooled, exposed = translation.curve.pooled(), translation.curve.exposed
    group, leak = 0.0, 0.0
    for loss in losses:
        spent = float(_numbers([loss.epsilon])[0]) if isinstance(loss, Pure) else 0.0
        best = int(np.argmin(exposed * spent + pooled))
        group += float(exposed[best]) * spent
        leak = max(leak, float(pooled[best]))
    return float(up(up(group * (1 + len(losses) * 2.0**-52)) + leak))
