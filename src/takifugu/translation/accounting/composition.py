"""Several releases: their losses added up by entry, and translated once.

A Pufferfish loss does not add up in general; per-entry DP losses do. So the losses of all releases
are summed for every entry that they touched, exactly, and the sum is translated. This is also the
retrospective guarantee of statistics that were released under plain DP. Approximate and
concentrated DP are converted as `takifugu.translation.certify.closed` proves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.exact import require_finite, require_inside_one
from takifugu._core.numeric import Floats
from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.priors.universe import Name
from takifugu.translation.bounds import Bound
from takifugu.translation.certify.closed import (
    added_up,
    epsilon_up,
    pufferfish_delta,
    sequential_curve_loss,
    zcdp_epsilon_at,
)
from takifugu.translation.entry_costs import EntryCosts, checked_losses
from takifugu.translation.translation import (
    MAX_LOSS,
    Method,
    TranslatedLoss,
    Translation,
)

MAX_FITTING_ROUNDS = 60  # of fitting δ per entry to a δ of Pufferfish privacy
RAISED_SHARE = 0.1  # an entry with δ > 0 gets at least this share of the largest ε


@dataclass(frozen=True)
class Release:
    """One statistic that was published.

    Attributes:
        loss: Its DP loss for one replaced entry.
        window: The positions [start, end) that it used; None if it used all entries.
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
    loss = mixed(
        translation, spent, deltas, rho, delta=0.5 if delta is None else delta, method=method
    )
    translated = translation.explain(loss.dp, method)
    lower = translated.lower
    if not np.array_equal(loss.dp, plain):  # ρ or a cost was converted, or a small ε raised
        lower = translation.witness(float(plain) if plain.ndim == 0 else plain).leak
    return Composed(
        loss.epsilon,
        loss.delta,
        loss.method,
        loss.dp,
        loss.dp_delta,
        translated,
        min(lower, loss.epsilon),
        _theorem_7(translation, releases),
    )


def _of_costs(
    translation: Translation, totals: Sequence[Total], *, everywhere: bool, method: Method
) -> Composed:
    """Pure losses and costs, added up entry by entry and translated value by value."""
    _numbers([total.scalar for total in totals])  # refuses what guarantees nothing
    costs = tuple(total.cost for total in totals)
    given = EntryCosts(costs) if everywhere else EntryCosts(by_entry=costs)
    loss = translation.explain_cost(given, method)
    return Composed(
        *(loss.pufferfish, 0.0, loss.method, loss.dp, 0.0, loss, loss.lower),
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
    losses: list[list[Loss]] = [[] for _ in range(size or 0)]
    for release in releases:
        for position in _positions(release, names, size or 0):
            losses[position].append(release.loss)
    return [Total.of(charged) for charged in losses]


def _everywhere(release: Release) -> bool:
    return release.window is None and release.entries is None


def _ends(release: Release) -> list[int]:
    if release.window is not None:
        return [release.window[1]]
    return [int(entry) + 1 for entry in release.entries or () if isinstance(entry, int)]


def _positions(release: Release, names: tuple[Name, ...] | None, size: int) -> range | list[int]:
    """The positions of the entries that a release used."""
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
    if any(value > Fraction(MAX_LOSS) for value in exact):
        raise UnsoundRequest(
            f"the releases add up to more than {MAX_LOSS:g}; they guarantee nothing",
            field="releases",
            reason="total",
        )
    return np.array([epsilon_up(value) for value in exact])


def _theorem_7(translation: Translation, releases: Sequence[Release]) -> float | None:
    """What Theorem 7 of the paper gives for pure losses; None for others."""
    losses = [release.loss for release in releases]
    if not translation.has_curve or not all(isinstance(loss, Pure) for loss in losses):
        return None
    spent = _numbers([loss.epsilon for loss in losses if isinstance(loss, Pure)])
    curve = translation.curve
    return sequential_curve_loss(curve.exposed, curve.pooled(), spent.tolist())


@dataclass(frozen=True, eq=False)
class ApproximateLoss:
    """A Pufferfish guarantee (ε, δ), both rounded up.

    Attributes:
        epsilon: An upper bound on the loss.
        delta: The δ beside it.
        method: Which method proves it.
        bound: The bound, and where it binds.
        dp: ε per entry that was translated.
        dp_delta: The largest δ of any entry that was translated.
    """

    epsilon: float
    delta: float
    method: Method
    bound: Bound
    dp: float | Floats
    dp_delta: float


def approximate(
    translation: Translation, epsilon: ArrayLike, delta: ArrayLike, *, method: Method = "best"
) -> ApproximateLoss:
    """What (ε, δ)-DP per entry gives; one number for all entries, or one for each.

    An entry with δ > 0 needs ε > 0 for the proof: a smaller ε is raised to a tenth of the largest,
    which is also true of the mechanism. ``best`` is the method with the least ε.
    """
    spent = checked_losses(epsilon, "epsilon")
    deltas = checked_losses(delta, "delta", below=1.0)
    top = float(spent.max(initial=0.0))
    least = RAISED_SHARE * top if top > 0 else 0.01
    raised = np.where((deltas > 0) & (spent < least), least, spent)
    dp: float | Floats = float(raised) if raised.ndim == 0 else raised
    best = method == "best"
    bounds = translation.by_method(dp) if best else {method: translation.bound(dp, method)}
    name = min(bounds, key=lambda key: bounds[key].value)
    bound = bounds[name]
    top_delta = float(deltas.max(initial=0.0))
    growth = np.inf
    if name == "curve" and top_delta:
        growth = translation.curve.most_exposed(float(np.max(raised))) * float(np.max(raised))
    spare = pufferfish_delta(raised, deltas, bound.value, growth)
    return ApproximateLoss(bound.value, spare, name, bound, dp, top_delta)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """An ε such that ρ-zCDP is (ε, δ)-DP, rounded up."""
    require_finite(rho, "rho")
    require_inside_one(delta, "delta")
    if rho == 0:
        return 0.0
    digits = -float(np.log(delta))  # log(1/δ)
    above = np.sqrt(max(digits, 1e-3) / max(rho, 1e-300)) * np.geomspace(1e-3, 1e3, 601)
    for _ in range(3):  # zoom in on the best order, 1 + one of ``above``
        k = int(np.argmin(_converted(rho, digits, above)))
        above = np.geomspace(above[max(k - 1, 0)], above[min(k + 1, len(above) - 1)], 101)
    best = float(above[int(np.argmin(_converted(rho, digits, above)))])
    return zcdp_epsilon_at(rho, delta, best)


def concentrated(
    translation: Translation, rho: ArrayLike, delta: float, *, method: Method = "best"
) -> ApproximateLoss:
    """What ρ-zCDP per entry gives: a Pufferfish (ε, δ) with at most this ``delta``."""
    return mixed(translation, 0.0, 0.0, rho, delta=delta, method=method)


def mixed(
    translation: Translation,
    epsilon: ArrayLike,
    delta_spent: ArrayLike,
    rho: ArrayLike,
    *,
    delta: float,
    method: Method = "best",
) -> ApproximateLoss:
    """Pure, approximate and concentrated losses of the same entries, each summed up before.

    ρ is converted with a δ per entry that is made smaller until the Pufferfish δ fits ``delta``.
    """
    spent, deltas = (
        checked_losses(epsilon, "epsilon"),
        checked_losses(delta_spent, "delta", below=1.0),
    )
    rhos = checked_losses(rho, "rho")
    if not rhos.any():
        return approximate(translation, spent, deltas, method=method)
    require_inside_one(delta, "delta")
    kinds, kind_of = np.unique(rhos, return_inverse=True)
    share = delta
    for _ in range(MAX_FITTING_ROUNDS):
        converted = np.array([zcdp_epsilon(float(r), share) for r in kinds])[kind_of]
        total = added_up(spent, converted.reshape(rhos.shape))
        with_share = added_up(deltas, np.where(rhos > 0, share, 0.0))
        loss = approximate(translation, total, with_share, method=method)
        if loss.delta <= delta:
            return loss
        share *= min(0.9, 0.9 * delta / loss.delta)
        if share < 1e-200:
            break
    raise UnsoundRequest(
        f"no δ per entry keeps the Pufferfish δ within {delta:g}: the approximate losses alone"
        " may need more; ask for a larger delta",
        field="delta",
        reason="allowance",
    )


def _converted(rho: float, digits: float, above: Floats) -> Floats:
    """ε at the orders 1 + ``above``, written so that an order close to 1 loses no digits."""
    grown = np.log1p(above)
    values: Floats = rho + above * rho + (digits - grown) / above + np.log(above) - grown
    return values
