r"""Per-entry DP loss to Pufferfish loss and back, for any prior, by every proven method.

* ``transport``: the worst loss over all per-entry DP mechanisms, or a close upper bound on it.
* ``curve``: :math:`\min_b bε + a(b)` of the influence curve (the paper, Theorem 6).
* ``group``: |I|·ε, everything counted at once.
* ``best``: the least of them. All are upper bounds, so the least is one. The curve is asked only
  where it may be the least (`Translation.curve_may_help`), or nothing else has a bound.

Uncertainty. If every P(D|s) may be off by a factor of 1 ± r, then E[g|s] is at most (1+r) times,
and E[g|s′] at least (1−r) times, what was assumed: ``transport`` rises by log((1+r)/(1−r)),
whatever proved it. So does the curve wherever some entry is not exposed. ``group`` then counts
the entries of all people: those of others may depend on the secret as well.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, distinct
from takifugu.costs.cost import NOTHING, Cost
from takifugu.costs.losses import Total
from takifugu.errors import UnsoundRequest
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.families import has_curve, influence_curve
from takifugu.influence.presets import uncertain, union
from takifugu.influence.rounded_ratios import uncertainty_shift
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import Product
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.networks import NetworkPrior
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name
from takifugu.translation.accounting.largest_epsilon import UNUSED_SHARE, largest_within
from takifugu.translation.bounds import EXACT, Binding, Bound, Cache, TransportBound, Witness
from takifugu.translation.certify.closed import (
    group_allowance,
    group_loss,
    own_entry_leak,
    profile_group_loss,
    with_uncertainty,
    without_uncertainty,
)
from takifugu.translation.entry_costs import EntryCosts, check_labels, checked_losses, labels_of
from takifugu.translation.protocol import LossTranslation, total_to_pufferfish
from takifugu.translation.transport_bound import transport_bound, transport_bound_of_any

Method = Literal["best", "transport", "curve", "group"]
Spent = float | Floats | EntryCosts  # ε of every entry, or one for each, or costs by value
ALL_SECRETS = Secrets()  # every entry, every pair of values
METHODS: tuple[Method, ...] = get_args(Method)
MAX_LOSS = 1e300  # a larger loss is refused: sums of them must be floats
MAX_CACHED_NUMBERS = 1024
MAX_CACHED_BOUNDS = 64  # which may have an array for all entries
LARGE_LOSS = 6.0  # from which the curve may be below the transport bound
MAX_FACTOR = 64.0  # times the target: the largest factor that is tried
MAX_QUICK_NODES = 24  # entries of a network whose curve is computed beside other bounds
MAX_WITNESS_COSTS = 4  # the largest first
SAME_BOUND = 1e-12  # relative: what rounding may add to a bound


@dataclass(frozen=True, eq=False)
class TranslatedLoss:
    """The Pufferfish loss of a per-entry loss: by each method, where it binds, and from below.

    Attributes:
        dp: ε of every entry, or one ε for each.
        pufferfish: An upper bound on the Pufferfish loss, by ``method``.
        method: The method with the least bound, or the one that was chosen.
        by_method: The bound of each method; None where it does not apply.
        binding: The secret pair with the largest loss.
        witness: A mechanism that leaks at least ``lower``.
        by_entry: ``[entry]``: the largest loss of each entry, by transport; None if not known.
        costs: What each entry has lost, value by value; then ``dp`` is a scalar that covers it.
    """

    dp: float | Floats
    pufferfish: float
    method: Method
    by_method: Mapping[str, float | None]
    binding: Binding | None
    witness: Witness
    by_entry: Floats | None = None
    costs: EntryCosts | None = None

    @property
    def lower(self) -> float:
        """A lower bound on the largest loss of all mechanisms, attained by ``witness``."""
        return min(self.witness.leak, self.pufferfish)

    @property
    def gap(self) -> float:
        """The distance between the two bounds."""
        return self.pufferfish - self.lower

    @property
    def exact(self) -> bool:
        """Whether both bounds agree to a relative 1e-6. No other number is called exact."""
        return self.pufferfish < np.inf and self.lower >= (1 - EXACT) * self.pufferfish


@dataclass(frozen=True, eq=False)
class Translation(ByContent, LossTranslation):
    """How much a per-entry DP mechanism reveals to an adversary who holds a prior.

    >>> from takifugu.priors import MarkovChain
    >>> home = Translation(MarkovChain([[0.9, 0.1], [0.1, 0.9]], length=7))
    >>> home.to_pufferfish([0.2, 1.0]).round(5)
    array([0.97324, 4.12131])
    >>> home.to_dp(1.0).round(3)
    np.float64(0.206)

    Attributes:
        prior: A prior; or several, as a list or by name: then the guarantee holds for each.
        secrets: The secret pairs to protect; by default all of every entry.
        uncertainty: How far every joint probability may be off, relatively: 0.2 is 20 %.
        tolerance: How close to its limit an iteration stops; the bound is sound in any case.
        max_exposed: The most entries that the curve exposes, apart from all of them.
    """

    prior: Prior | Sequence[Prior] | Mapping[str, Prior]
    secrets: Secrets = ALL_SECRETS
    uncertainty: float = 0.0
    tolerance: float = 1e-3
    max_exposed: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.uncertainty, int | float) or not 0 <= self.uncertainty < 1:
            raise UnsoundRequest(
                f"uncertainty is {self.uncertainty}; it must be at least 0 and below 1",
                field="uncertainty",
                given=self.uncertainty,
            )
        if not 0 < self.tolerance < 0.5:
            raise UnsoundRequest(
                f"tolerance is {self.tolerance}; it must be above 0 and below 0.5",
                field="tolerance",
                given=self.tolerance,
            )
        if not self.priors:
            raise UnsoundRequest(
                "no prior was given; a set of priors holds at least one", field="prior"
            )
        for name, prior in self.priors.items():
            if not isinstance(prior, Prior):
                raise UnsoundRequest(
                    f"{name} is a {type(prior).__name__}; it must be a prior", field=name
                )
        if not isinstance(self.secrets, Secrets):
            raise UnsoundRequest(
                f"secrets is a {type(self.secrets).__name__}; it must be `Secrets`",
                field="secrets",
            )
        for prior in self.priors.values():
            prior.check_secrets(self.secrets)

    def identity(self) -> Any:
        """The priors, the secrets and the uncertainty: what determines a loss."""
        return ("Translation", dict(self.priors), self.secrets, float(self.uncertainty))

    @cached_property
    def priors(self) -> Mapping[str, Prior]:
        """The priors by name."""
        if isinstance(self.prior, Mapping):
            return {str(name): prior for name, prior in self.prior.items()}
        if isinstance(self.prior, Sequence) and not isinstance(self.prior, str):
            return {f"prior {k}": prior for k, prior in enumerate(self.prior)}
        return {"prior": self.prior}

    @property
    def every_pair(self) -> bool:
        """Whether each pair of values of each entry is secret."""
        return self.secrets == ALL_SECRETS

    @cached_property
    def curve(self) -> InfluenceCurve:
        """The influence curve, with the uncertainty in it."""
        curves = {
            name: influence_curve(prior, self.secrets, max_exposed=self.max_exposed)
            for name, prior in self.priors.items()
        }
        curve = next(iter(curves.values())) if len(curves) == 1 else union(curves)
        return uncertain(curve, relative=self.uncertainty) if self.uncertainty else curve

    @cached_property
    def has_curve(self) -> bool:
        """Whether there is an influence curve: not against a start or entries beyond a prior."""
        return all(has_curve(prior) for prior in self.priors.values())

    @cached_property
    def curve_waits(self) -> bool:
        """Whether the curve is computed only where it is asked for, or nothing else has a bound.

        That of a large network takes minutes, and at the ε that matter it ends at group DP. It
        cannot be below the loss of any mechanism, so a witness says how much it could gain.
        """
        return any(
            isinstance(prior, NetworkPrior) and prior.breadth > MAX_QUICK_NODES
            for prior in self._parts
        )

    def curve_may_help(self, loss: float) -> bool:
        """Whether the curve may be below a transport bound of ``loss``: for ``best`` and tables.

        Measured, it is for interval chains, whose transport takes every step from a box of its
        own, and for losses far beyond any use, where couplings of several entries are not tried.
        """
        if not self.has_curve or (self.curve_waits and loss < np.inf):
            return False
        return loss > LARGE_LOSS or self._has_intervals

    @cached_property
    def _has_intervals(self) -> bool:
        return any(isinstance(part, IntervalMarkovChain) for part in self._parts)

    @property
    def _parts(self) -> list[Prior]:
        """All priors, and those of independent people one by one."""
        return [
            part
            for prior in self.priors.values()
            for part in (prior.parts.values() if isinstance(prior, Product) else (prior,))
        ]

    @cached_property
    def transport(self) -> TransportBound | None:
        """The transport bound; None, with a warning that says why, where there is none."""
        if len(self.priors) > 1:
            return transport_bound_of_any(self.priors, self.secrets, tolerance=self.tolerance)
        (prior,) = self.priors.values()
        return transport_bound(prior, self.secrets, tolerance=self.tolerance)

    @cached_property
    def size(self) -> int | None:
        """How many entries there are in all; None if they are unbounded."""
        return _max_size([prior.size for prior in self.priors.values()])

    @cached_property
    def entries(self) -> tuple[Name, ...] | None:
        """The names of the entries, in the order of a profile; None if unbounded."""
        names = next(iter(self.priors.values())).entry_names
        return None if names is None else tuple(names)

    def to_pufferfish(self, dp: ArrayLike, method: Method = "best") -> Floats:
        """The Pufferfish loss of ``dp`` per entry, rounded up; infinite if the method has none."""
        return self._elementwise(
            self._losses(dp, "dp"),
            lambda e: self._numbers_cache.computed(
                ("loss", e, method), lambda: self.bound(e, method).value
            ),
        )

    def to_dp(self, pufferfish: ArrayLike, method: Method = "best") -> Floats:
        """The largest loss per entry whose Pufferfish loss is ``pufferfish``, rounded down."""
        return self._elementwise(
            self._losses(pufferfish, "pufferfish"),
            lambda target: self._numbers_cache.computed(
                ("allowance", target, method), lambda: self._largest(target, method)
            ),
        )

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """An ε, rounded up, at which ``total`` on every entry is (ε, ``delta``)-Pufferfish private.

        Sound also if queries depend on earlier results: see
        `takifugu.translation.certify.closed`. Infinite if no bound of this prior proves one.
        """
        return self._numbers_cache.computed(
            ("total", total, delta),
            lambda: total_to_pufferfish(lambda dp: (dp, self.bound(dp).value), total, delta),
        )

    @cached_property
    def _numbers_cache(self) -> Cache[tuple[Any, ...], float]:
        """More losses, allowances and totals than `_bounds` has: a number each, and no array."""
        return Cache(MAX_CACHED_NUMBERS)

    @cached_property
    def _bounds(self) -> Cache[tuple[float | EntryCosts, Method], Bound]:
        """The same losses are priced, confirmed and explained."""
        return Cache(MAX_CACHED_BOUNDS)

    def _elementwise(self, numbers: Floats, function: Callable[[float], float]) -> Floats:
        values = {number: function(number) for number in distinct(numbers).tolist()}
        results: Floats = np.vectorize(values.__getitem__, otypes=[np.float64])(numbers)
        return results[()]

    def bound(self, dp: float | Floats, method: Method = "best") -> Bound:
        """The bound for one ε on all entries, or for one ε each, and where it binds.

        For a profile the curve takes the largest ε everywhere, and ``group`` the sum.
        """
        _check_method(method)
        if np.ndim(dp) > 0:
            return self._bound(np.asarray(dp, dtype=np.float64), method)
        epsilon = float(dp)
        return self._bounds.computed((epsilon, method), lambda: self._bound(epsilon, method))

    def cost_bound(
        self, costs: EntryCosts | Cost | Sequence[Cost], method: Method = "best"
    ) -> Bound:
        """The bound if every entry has lost a cost, or each of them its own, and where it binds.

        The curve takes the largest scalar loss everywhere, and ``group`` the sum of them.
        """
        _check_method(method)
        given = EntryCosts.of(costs)
        return self._bounds.computed((given, method), lambda: self._bound(given, method))

    def _bound(self, spent: Spent, method: Method) -> Bound:
        if method == "best":
            return _least(self.by_method(spent))[1]
        return self._proposed(spent, method) or Bound(np.inf)

    def by_method(self, spent: Spent, *, with_curve: bool = False) -> dict[Method, Bound]:
        """The bound of every method that applies, the best kind first.

        Without the curve, unless it may be below the transport bound. It knows no values: of costs
        it is asked for only if nothing else is finite.
        """
        transport = self._cached_proposal(spent, "transport")
        known = np.inf if transport is None else transport.value
        by_value = isinstance(spent, EntryCosts)
        helps = not known < np.inf if by_value else with_curve or self.curve_may_help(known)
        curve = self._cached_proposal(spent, "curve") if helps else None
        bounds: dict[Method, Bound | None] = {
            "transport": transport,
            "curve": curve,
            "group": self._proposed(spent, "group"),
        }
        return {name: bound for name, bound in bounds.items() if bound is not None}

    def _cached_proposal(self, spent: Spent, method: Method) -> Bound | None:
        applies = self.has_curve if method == "curve" else self.transport is not None
        if not applies:
            return None
        if isinstance(spent, EntryCosts):
            return self.cost_bound(spent, method)
        return self.bound(spent, method)

    def _proposed(self, spent: Spent, method: Method) -> Bound | None:
        """The bound of one method; None if it does not apply."""
        scalars = self._scalars(spent)
        top = float(np.max(scalars, initial=0.0))
        match method:
            case "transport":
                return self._transported(spent, released=top > 0)
            case "curve" if self.has_curve:
                by_pair = self.curve.pufferfish_by_pair(top)
                pair = int(np.argmax(by_pair))
                value = float(by_pair[pair]) if top > 0 else 0.0
                return Bound(value, Binding.of_pair(self.curve.pairs[pair]))
            case "group":
                group = max(self._group(prior, scalars) for prior in self.priors.values())
                return Bound(group if top > 0 else 0.0)
        return None

    def _scalars(self, spent: Spent) -> float | Floats:
        """One ε for all entries, or one for each, that what was spent is at most."""
        scalars = spent
        if isinstance(spent, EntryCosts):
            scalars = spent.scalars()
            self._losses(scalars, "cost")
            for prior in self.priors.values():
                check_labels(spent, labels_of(prior))
        assert not isinstance(scalars, EntryCosts)  # noqa: S101
        self._check_profile(scalars)
        return scalars

    def _transported(self, spent: Spent, *, released: bool) -> Bound | None:
        if self.transport is None:
            return None
        if isinstance(spent, EntryCosts):
            bound = self.transport.valued(spent)
        elif isinstance(spent, float):
            bound = self.transport.uniform(spent)
        else:
            bound = self.transport.profile(spent)
        by_entry = bound.by_entry
        if not released:
            zeros = None if by_entry is None else np.zeros_like(by_entry)
            return Bound(0.0, bound.binding, zeros, bound.by_values)
        if not self._shift:
            return bound
        by_entry = None if by_entry is None else with_uncertainty(by_entry, self._shift)
        value = float(with_uncertainty(bound.value, self._shift))
        return Bound(value, bound.binding, by_entry, bound.by_values)

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """The Pufferfish loss, rounded up, if every entry has lost at most one of ``costs``."""
        if not any(costs):
            return 0.0
        return self.cost_bound(EntryCosts(tuple(dict.fromkeys(costs)))).value

    def to_cost(
        self,
        unit: Cost,
        pufferfish: float,
        *,
        spent: Sequence[Cost] = (NOTHING,),
        beside: Sequence[Cost] = (),
    ) -> Fraction:
        """The largest factor, rounded down, such that factor·``unit`` more loses ``pufferfish``.

        Entries that are read have lost one of ``spent`` before, others one of ``beside``.
        """
        target = float(self._losses(pufferfish, "pufferfish"))
        if not unit.scalar or self.cost_to_pufferfish(*spent, *beside) > target:
            return Fraction(0)

        if unit.is_scalar and all(cost.is_scalar for cost in (*spent, *beside)):
            return super().to_cost(unit, pufferfish, spent=spent, beside=beside)

        def charged(factor: float) -> EntryCosts:
            more = unit * factor
            costs = *(cost + more for cost in spent), *beside
            return EntryCosts(tuple(dict.fromkeys(costs)))

        def nearby(factor: float) -> Callable[[float], float] | None:
            transport = self.transport
            if transport is None or self._shift:
                return None
            estimate = transport.nearby(self.cost_bound(charged(factor)))
            return None if estimate is None else lambda other: estimate(charged(other))

        room = target - self.cost_to_pufferfish(*spent, *beside)
        first, most = room / (2 * float(unit.scalar)), MAX_FACTOR * target / float(unit.scalar)
        if self._has_numbers:  # the loss is all but linear in the factor, and costs add up at most
            alone = self.cost_to_pufferfish(unit)
            if not 0 < alone < np.inf:
                return Fraction(0)
            first = (target - self.cost_to_pufferfish(*spent)) / alone * (1 - 1e-10)
            most = min(2 * target / alone, MAX_LOSS)
        factor = largest_within(
            lambda factor: self.cost_bound(charged(factor)).value,
            target,
            tolerance=1e-9 if self._has_numbers else UNUSED_SHARE,
            first=first or None,
            most=most,
            nearby=nearby,
        )
        if factor > 0:
            return Fraction(factor)
        return super().to_cost(unit, pufferfish, spent=spent, beside=beside)

    @cached_property
    def _has_numbers(self) -> bool:
        """Whether values are real numbers: their bounds are in closed form, and quick."""
        return any(isinstance(prior, Gaussian) for prior in self.priors.values())

    def explain(self, dp: float | ArrayLike, method: Method = "best") -> TranslatedLoss:
        """The loss by each method, where it binds, and a mechanism that leaks as much as known."""
        spent = self._losses(dp, "dp")
        epsilon: float | Floats = float(spent) if spent.ndim == 0 else spent
        bounds = self.by_method(epsilon, with_curve=method == "curve" or not self.curve_waits)
        return self._explained(epsilon, method, bounds)

    def explain_cost(
        self, costs: EntryCosts | Cost | Sequence[Cost], method: Method = "best"
    ) -> TranslatedLoss:
        """The loss of a cost on every entry, or of one each: as `explain`."""
        given = EntryCosts.of(costs)
        return self._explained(given, method, self.by_method(given))

    def _explained(
        self, spent: Spent, method: Method, bounds: dict[Method, Bound]
    ) -> TranslatedLoss:
        name, chosen = method, bounds.get(method, Bound(np.inf))
        if method == "best":
            name, chosen = _least(bounds)
        transport = bounds.get("transport")
        return TranslatedLoss(
            dp=spent.scalars() if isinstance(spent, EntryCosts) else spent,
            pufferfish=chosen.value,
            method=name,
            by_method={key: bounds[key].value if key in bounds else None for key in METHODS[1:]},
            binding=chosen.binding,
            witness=self._witness(spent, transport or bounds.get("curve"), chosen.binding),
            by_entry=None if transport is None else transport.by_entry,
            costs=spent if isinstance(spent, EntryCosts) else None,
        )

    def witness(self, dp: float | Floats) -> Witness:
        """A mechanism with this DP loss, and a lower bound on what it leaks."""
        bound = self.bound(dp, "curve" if self.transport is None else "transport")
        return self._witness(dp, bound, None)

    def _witness(self, spent: Spent, bound: Bound | None, binding: Binding | None) -> Witness:
        """The largest of what some mechanisms leak.

        Where every entry has lost one of several costs, a mechanism has one of them everywhere:
        none needs to have the largest of them value by value, which the bound is about.
        """
        if self.transport is None or bound is None:
            if isinstance(spent, EntryCosts):
                return Witness(0.0, binding)
            if bound is None or bound.binding is None:
                return Witness(0.0, None)  # whether there is a pair that can happen is not known
            return Witness(own_entry_leak(spent), bound.binding)
        if not isinstance(spent, EntryCosts):
            return self.transport.witness(spent, bound)
        alone = spent.alone
        if len(alone) == 1:
            return self.transport.valued_witness(alone[0], bound)
        witnesses = [
            self.transport.valued_witness(costs, self.transport.valued(costs))
            for costs in alone[:MAX_WITNESS_COSTS]
        ]
        return max(witnesses, key=lambda witness: witness.leak)

    def _largest(self, target: float, method: Method) -> float:
        _check_method(method)
        if target == 0:
            return 0.0
        allowed = []
        if method in ("best", "transport") and self.transport is not None:
            room = without_uncertainty(target, self._shift)
            allowed.append(self.transport.largest(room) if room > 0 else 0.0)
        known = target if max(allowed, default=0.0) > 0 else np.inf
        if (method == "best" and self.curve_may_help(known)) or (
            method == "curve" and self.has_curve
        ):
            allowed.append(float(self.curve.to_dp(target)))
        if method in ("best", "group"):
            most = _max_size([self._together(prior) for prior in self.priors.values()])
            allowed.append(group_allowance(most, target))
        return max(allowed, default=0.0)

    @cached_property
    def _shift(self) -> float:
        return uncertainty_shift(self.uncertainty)

    def _together(self, prior: Prior) -> int | None:
        """How many entries ``group`` counts at once; None if they are unbounded.

        Those of one person if people are independent. If joint probabilities may be off, other
        people's entries may depend on the secret as well.
        """
        return prior.size if self.uncertainty else prior.person_size

    def _group(self, prior: Prior, spent: float | Floats) -> float:
        """All entries of a person counted at once; of all people under uncertainty."""
        if isinstance(spent, float):
            return group_loss(self._together(prior), spent)
        parts = [spent]
        sizes = [p.size for p in prior.parts.values()] if isinstance(prior, Product) else []
        if sizes and not self.uncertainty:
            if None in sizes:
                return np.inf
            ends = np.cumsum([size for size in sizes if size is not None])
            parts = np.split(spent, ends[:-1])
        return max(profile_group_loss(part.tolist()) for part in parts)

    def _losses(self, given: ArrayLike, name: str) -> Floats:
        numbers = checked_losses(given, name)
        if (numbers > MAX_LOSS).any():
            raise UnsoundRequest(
                f"{name} holds a number above {MAX_LOSS:g}; it must be below",
                field=name,
                needed=MAX_LOSS,
            )
        return numbers

    def _check_profile(self, dp: float | Floats) -> None:
        """One number for all entries, or one for each of them."""
        shape = np.shape(dp)
        if len(shape) > 1:
            raise UnsoundRequest(
                f"the profile has the shape {shape}; it must be a list of one loss for each entry",
                field="profile",
                given=shape,
            )
        if shape and self.size is not None and shape[0] != self.size:
            raise UnsoundRequest(
                f"the profile has {shape[0]} numbers; there are {self.size} entries",
                field="profile",
                given=shape[0],
                needed=self.size,
            )


def _least(bounds: Mapping[Method, Bound]) -> tuple[Method, Bound]:
    """The method with the least bound, and that bound; of equal ones the first.

    The other methods end in group privacy too, and say which pair binds there: they are named
    where they differ from it by rounding alone.
    """
    name = min(bounds, key=lambda key: bounds[key].value)
    least = bounds[name]
    if name == "group":
        for other, bound in bounds.items():
            if bound.value <= least.value * (1 + SAME_BOUND):
                return other, replace(bound, value=least.value)
    return name, least


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise UnsoundRequest(
            f"method is {method!r}; it must be one of {', '.join(METHODS)}",
            field="method",
            given=method,
            needed=METHODS,
        )


def _max_size(sizes: Sequence[int | None]) -> int | None:
    """The largest size; None, which means unbounded, if some size is None."""
    return None if None in sizes else max(size for size in sizes if size is not None)
