r"""Per-entry DP loss to Pufferfish loss and back, for any prior, by every proven method.

* ``transport``: the worst loss over all per-entry DP mechanisms, or a close upper bound on it.
* ``curve``: :math:`\min_b bε + a(b)` of the influence curve (the paper, Theorem 6).
* ``group``: |I|·ε, everything counted at once.
* ``best``: the least of them. All are upper bounds, so the least is one.

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

from takifugu._rounding import UNIT, down, float_down, float_up, up
from takifugu.costs import NOTHING, Cost
from takifugu.errors import UnsoundRequest
from takifugu.fingerprint import ByContent
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.families import has_curve, influence_curve
from takifugu.influence.presets import uncertain, union
from takifugu.losses import Total
from takifugu.numeric import Floats, distinct
from takifugu.priors.factors import NetworkPrior
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.independent import Product
from takifugu.priors.prior import Prior
from takifugu.priors.secret_distance import check_distance
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name
from takifugu.translation.accounting.largest_epsilon import UNUSED, largest_within
from takifugu.translation.accounting.totals import total_to_pufferfish
from takifugu.translation.bounds import EXACT, Binding, Bound, TransportBound, Witness
from takifugu.translation.entry_costs import EntryCosts, check_labels, labels_of
from takifugu.translation.network.spending import group_loss
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.transport_bound import transport_bound, transport_bound_of_any
from takifugu.translation.witness_of_costs import leaking_with

Method = Literal["best", "transport", "curve", "group"]
ALL = Secrets()  # every entry, every pair of values
METHODS: tuple[Method, ...] = get_args(Method)
LARGEST = 1e300  # a larger loss is refused: sums of them must be floats
KEPT = 1024  # translated totals that are cached
MOST_GAINED = 64.0  # times the target: the largest factor that is tried
MOST_SEARCHED = 24  # entries of a network whose curve is computed beside other bounds
ROUNDED = 1e-12  # relative: what rounding may add to a bound
KEPT_BOUNDS = 64  # bounds, which may have an array for all entries


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
    secrets: Secrets = ALL
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
            check_distance(prior, self.secrets)

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
        return self.secrets == ALL

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
        listed = [p for q in self.priors.values() for p in getattr(q, "parts", {"": q}).values()]
        return any(isinstance(p, NetworkPrior) and p.breadth > MOST_SEARCHED for p in listed)

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
        return max_size([prior.size for prior in self.priors.values()])

    @cached_property
    def entries(self) -> tuple[Name, ...] | None:
        """The names of the entries, in the order of a profile; None if unbounded."""
        names = next(iter(self.priors.values())).entry_names
        return None if names is None else tuple(names)

    def to_pufferfish(self, dp: ArrayLike, method: Method = "best") -> Floats:
        """The Pufferfish loss of ``dp`` per entry, rounded up; infinite if the method has none."""
        spent = self._losses(dp, "dp")
        values = {e: self._value(e, method) for e in distinct(spent).tolist()}
        found: Floats = np.vectorize(values.__getitem__, otypes=[np.float64])(spent)
        return found[()]

    def _value(self, dp: float, method: Method) -> float:
        known = self._values.get((dp, method))
        if known is None:
            known = self.bound(dp, method).value
            if len(self._values) >= KEPT:
                self._values.clear()
            self._values[dp, method] = known
        return known

    @cached_property
    def _values(self) -> dict[tuple[float, Method], float]:
        """A cache of more losses than `_bounds` has: a number each, and no array."""
        return {}

    def to_dp(self, pufferfish: ArrayLike, method: Method = "best") -> Floats:
        """The largest loss per entry whose Pufferfish loss is ``pufferfish``, rounded down."""
        targets = self._losses(pufferfish, "pufferfish")
        values = {t: self._allowed(t, method) for t in distinct(targets).tolist()}
        found: Floats = np.vectorize(values.__getitem__, otypes=[np.float64])(targets)
        return found[()]

    def _allowed(self, target: float, method: Method) -> float:
        known = self._allowances.get((target, method))
        if known is None:
            known = self._largest(target, method)
            if len(self._allowances) >= KEPT:
                self._allowances.clear()
            self._allowances[target, method] = known
        return known

    @cached_property
    def _allowances(self) -> dict[tuple[float, Method], float]:
        """A cache: a budget is priced, kept to and advised from."""
        return {}

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """An ε, rounded up, at which ``total`` on every entry is (ε, ``delta``)-Pufferfish private.

        Sound also if queries depend on earlier results: see
        `takifugu.translation.accounting.totals`. Infinite if no bound of this prior proves one.
        """
        known = self._totals.get((total, delta))
        if known is None:
            known = total_to_pufferfish(lambda dp: (dp, self.bound(dp).value), total, delta)
            if len(self._totals) >= KEPT:
                self._totals.clear()
            self._totals[total, delta] = known
        return known

    @cached_property
    def _totals(self) -> dict[tuple[Total, Fraction], float]:
        """A cache: a ledger translates the same totals again and again."""
        return {}

    def bound(self, dp: float | Floats, method: Method = "best") -> Bound:
        """The bound for one ε on all entries, or for one ε each, and where it binds.

        For a profile the curve takes the largest ε everywhere, and ``group`` the sum.
        """
        _check_method(method)
        if np.ndim(dp) > 0:
            return self._bound(dp, method)
        key = float(dp), method
        if key not in self._bounds:
            if len(self._bounds) >= KEPT_BOUNDS:
                self._bounds.clear()
            self._bounds[key] = self._bound(dp, method)
        return self._bounds[key]

    @cached_property
    def _bounds(self) -> dict[tuple[float, Method], Bound]:
        """A cache: the same losses are priced, confirmed and explained."""
        return {}

    def _bound(self, dp: float | Floats, method: Method) -> Bound:
        if method == "best":
            transport = self.bound(dp, "transport")
            useless = transport.solved or (self.curve_waits and transport.value < np.inf)
            others: tuple[Method, ...] = ("group",) if useless else ("curve", "group")
            bounds: dict[Method, Bound] = {"transport": transport}
            bounds |= {other: self.bound(dp, other) for other in others}
            return _least(bounds)[1]
        found = self._all(dp, only=method)
        return found.get(method, Bound(np.inf))

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
        first, most = room / (2 * float_up(unit.scalar)), MOST_GAINED * target
        most /= float_down(unit.scalar)
        if self._numbers:  # the loss is all but linear in the factor, and costs add up at most
            alone = self.cost_to_pufferfish(unit)
            if not 0 < alone < np.inf:
                return Fraction(0)
            first = (target - self.cost_to_pufferfish(*spent)) / alone * (1 - 1e-10)
            most = min(2 * target / alone, LARGEST)
        found = largest_within(
            lambda factor: self.cost_bound(charged(factor)).value,
            target,
            tolerance=1e-9 if self._numbers else UNUSED,
            first=first or None,
            most=most,
            nearby=nearby,
        )
        if found > 0:
            return Fraction(found)
        return super().to_cost(unit, pufferfish, spent=spent, beside=beside)

    @cached_property
    def _numbers(self) -> bool:
        """Whether values are real numbers: their bounds are in closed form, and quick."""
        return any(isinstance(prior, Gaussian) for prior in self.priors.values())

    def cost_bound(
        self, costs: EntryCosts | Cost | Sequence[Cost], method: Method = "best"
    ) -> Bound:
        """The bound if every entry has lost a cost, or each of them its own, and where it binds.

        The curve takes the largest scalar loss everywhere, and ``group`` the sum of them.
        """
        _check_method(method)
        given = EntryCosts.of(costs)
        key = given, method
        if key not in self._cost_bounds:
            if len(self._cost_bounds) >= KEPT_BOUNDS:
                self._cost_bounds.clear()
            found = self._all_costs(given, None if method == "best" else method)
            self._cost_bounds[key] = _least(found)[1] if found else Bound(np.inf)
        return self._cost_bounds[key]

    @cached_property
    def _cost_bounds(self) -> dict[tuple[EntryCosts, Method], Bound]:
        """A cache: the same costs are priced, confirmed and explained."""
        return {}

    def explain_cost(
        self, costs: EntryCosts | Cost | Sequence[Cost], method: Method = "best"
    ) -> TranslatedLoss:
        """The loss of a cost on every entry, or of one each: as `explain`."""
        given = EntryCosts.of(costs)
        found = self._all_costs(given)
        name, chosen = method, found.get(method, Bound(np.inf))
        if method == "best":
            name, chosen = _least(found)
        values: dict[str, float | None] = {
            key: found[key].value if key in found else None for key in METHODS[1:]
        }
        witness = Witness(0.0, chosen.binding)
        by_entry = None
        if self.transport is not None:
            witness = leaking_with(self.transport, given, found["transport"])
            by_entry = found["transport"].by_entry
        return TranslatedLoss(
            *(given.scalars(), chosen.value, name, values, chosen.binding, witness),
            by_entry=by_entry,
            costs=given,
        )

    def _all_costs(self, costs: EntryCosts, only: Method | None = None) -> dict[Method, Bound]:
        """The bound of every method that applies, value by value where it can be.

        The curve, which knows no values, is asked only where nothing else has a bound.
        """
        spent = costs.scalars()
        self._losses(spent, "cost")
        self._check_profile(spent)
        for prior in self.priors.values():
            check_labels(costs, labels_of(prior))
        bounds: dict[Method, Bound] = {}
        if only in (None, "transport") and self.transport is not None:
            found = self.transport.valued(costs)
            bounds["transport"] = (
                self._shifted(found) if costs.scalar else Bound(0.0, found.binding)
            )
        known = "transport" in bounds and bounds["transport"].value < np.inf
        if only == "curve" or (only is None and not known):
            bounds |= self._all(spent, only="curve")
        if only in (None, "group"):
            bounds |= self._all(spent, only="group")
        return bounds

    def _shifted(self, bound: Bound) -> Bound:
        """The same bound if joint probabilities may be off."""
        if not self._shift:
            return bound
        by_entry = None if bound.by_entry is None else up(bound.by_entry + self._shift)
        value = float(up(bound.value + self._shift))
        return Bound(value, bound.binding, by_entry, bound.by_values)

    def explain(self, dp: float | ArrayLike, method: Method = "best") -> TranslatedLoss:
        """The loss by each method, where it binds, and a mechanism that leaks as much as known."""
        spent = self._losses(dp, "dp")
        one: float | Floats = float(spent) if spent.ndim == 0 else spent
        found = self._all(one, without_curve=method != "curve" and self.curve_waits)
        name, chosen = method, found.get(method, Bound(np.inf))
        if method == "best":
            name, chosen = _least(found)
        values: dict[str, float | None] = {
            key: found[key].value if key in found else None for key in METHODS[1:]
        }
        by_entry = found["transport"].by_entry if "transport" in found else None
        return TranslatedLoss(
            one, chosen.value, name, values, chosen.binding, self._witness(one, found), by_entry
        )

    def witness(self, dp: float | Floats) -> Witness:
        """A mechanism with this DP loss, and a lower bound on what it leaks."""
        name: Method = "curve" if self.transport is None else "transport"
        return self._witness(dp, {name: self.bound(dp, name)})

    def _all(
        self, dp: float | Floats, only: Method | None = None, *, without_curve: bool = False
    ) -> dict[Method, Bound]:
        """The bound of every method that applies, the best kind first.

        ``without_curve``: unless nothing else is finite.
        """
        self._check_profile(dp)
        top = float(np.max(dp, initial=0.0))
        bounds: dict[Method, Bound] = {}
        if only in (None, "transport") and self.transport is not None:
            uniform = np.ndim(dp) == 0
            found = self.transport.uniform(float(dp)) if uniform else self.transport.profile(dp)  # type: ignore[arg-type]
            if top == 0:  # nothing was released
                zeros = None if found.by_entry is None else np.zeros_like(found.by_entry)
                found = Bound(0.0, found.binding, zeros, found.by_values)
            else:
                found = self._shifted(found)
            bounds["transport"] = found
        known = "transport" in bounds and bounds["transport"].value < np.inf
        if only in (None, "curve") and self.has_curve and not (without_curve and known):
            by_pair = self.curve.pufferfish_by_pair(top)
            pair = int(np.argmax(by_pair))
            value = float(by_pair[pair]) if top > 0 else 0.0
            bounds["curve"] = Bound(value, Binding.of_pair(self.curve.pairs[pair]))
        if only in (None, "group"):
            group = max(self._group(prior, dp) for prior in self.priors.values())
            bounds["group"] = Bound(group if top > 0 else 0.0)
        return bounds

    def _witness(self, dp: float | Floats, found: Mapping[Method, Bound]) -> Witness:
        if self.transport is None:  # randomised response on the secret's own entry
            binding = found["curve"].binding if "curve" in found else None
            if binding is None:  # whether there is a pair that can happen is not known
                return Witness(0.0, None)
            return Witness(max(float(down(float(np.min(dp)))), 0.0), binding)
        return self.transport.witness(dp, found["transport"])

    def _largest(self, target: float, method: Method) -> float:
        _check_method(method)
        if target == 0:
            return 0.0
        allowed = []
        if method in ("best", "transport") and self.transport is not None:
            room = target
            if self._shift:
                room = target - self._shift - (target + 1) * 32 * UNIT
            allowed.append(self.transport.largest(room) if room > 0 else 0.0)
        solved = max(allowed, default=0.0) > 0 and (
            self.curve_waits or self.bound(allowed[0], "transport").solved
        )
        if self.has_curve and (method == "curve" or (method == "best" and not solved)):
            allowed.append(float(self.curve.to_dp(target)))
        if method in ("best", "group"):
            most = max_size([self._together(prior) for prior in self.priors.values()])
            allowed.append(float_down(Fraction(target) / most) if most else 0.0)
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

    def _group(self, prior: Prior, dp: float | Floats) -> float:
        """All entries of a person counted at once; of all people under uncertainty."""
        if np.ndim(dp) == 0:
            size = self._together(prior)
            return np.inf if size is None else float_up(size * Fraction(float(dp)))
        spent = np.asarray(dp, dtype=np.float64)
        parts = [spent]
        sizes = [p.size for p in prior.parts.values()] if isinstance(prior, Product) else []
        if sizes and not self.uncertainty:
            if None in sizes:
                return np.inf
            ends = np.cumsum([size for size in sizes if size is not None])
            parts = np.split(spent, ends[:-1])
        return max(group_loss(part.tolist()) for part in parts)

    def _losses(self, given: ArrayLike, name: str) -> Floats:
        try:
            numbers = np.asarray(given, dtype=np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise UnsoundRequest(
                f"{name} is not a number or a list of numbers", field=name
            ) from error
        if not ((numbers >= 0) & (numbers < np.inf)).all():  # also false for NaN
            raise UnsoundRequest(
                f"{name} holds a number that is not 0 or more, and finite", field=name
            )
        if (numbers > LARGEST).any():
            raise UnsoundRequest(
                f"{name} holds a number above {LARGEST:g}; it must be below",
                field=name,
                needed=LARGEST,
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


def uncertainty_shift(r: float) -> float:
    """log((1+r)/(1−r)), rounded up: what a bound rises by if every P(D|s) may be off by r."""
    return float(up(np.log1p(r) - np.log1p(-r))) if r else 0.0


def _least(bounds: Mapping[Method, Bound]) -> tuple[Method, Bound]:
    """The method with the least bound, and that bound; of equal ones the first.

    The other methods end in group privacy too, and say which pair binds there: they are named
    where they differ from it by rounding alone.
    """
    name = min(bounds, key=lambda key: bounds[key].value)
    least = bounds[name]
    if name == "group":
        for other, bound in bounds.items():
            if bound.value <= least.value * (1 + ROUNDED):
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


def max_size(sizes: Sequence[int | None]) -> int | None:
    """The largest size; None, which means unbounded, if some size is None."""
    return None if None in sizes else max(size for size in sizes if size is not None)
