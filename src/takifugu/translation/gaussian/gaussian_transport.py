r"""The transport bound of Gaussian processes: couple by the shift of the conditional mean.

**Theorem.** Let X ~ N(μ, K). Given X_i = x against X_i = y all entries have the same covariance,
and means that differ by :math:`δ_j = (K_{ji}/K_{ii})(x − y)`. So D ↦ D + δ carries one law into the
other. If a release costs at most :math:`c_j(|u − v|)` on entry j then its likelihoods satisfy
:math:`g(D) ≤ e^{\sum_j c_j(|δ_j|)} g(D − δ)` for every D (change one entry at a time), and the loss
of (x, y) at i is at most :math:`\sum_j c_j(|δ_j|)`, whatever μ is. It rises with |x − y|, so that
the pairs within a distance r lose at most :math:`\sum_j c_j(r|K_{ji}|/K_{ii})`.

For costs :math:`w_j|u − v|` that is :math:`r \sum_j w_j |K_{ji}| / K_{ii}`; over an unbounded
stationary process :math:`r w \sum_k |ρ(k)|`. Costs of several releases are added first, and this
holds for every transcript: also if queries depend on earlier results.

A cost that is not a distance, such as ε·[u≠v], may be charged in full for every entry that moves at
all: finitely many entries lose at most all of them together, and an unbounded process has no finite
bound of this kind. Nothing here speaks of a truncated law.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from math import nextafter

import numpy as np

from takifugu._rounding import UNIT, float_up
from takifugu.costs import ANY, Cost, Shape
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats, frozen
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import TINY, Covariance
from takifugu.priors.secret_distance import secret_distance
from takifugu.priors.secrets import Secrets
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.gaussian.gaussian_witness import GaussianWitness
from takifugu.translation.gaussian.lag_costs import LagCosts, shifts_by_lag
from takifugu.translation.gaussian.rounded_numbers import all_without_rounding
from takifugu.translation.gaussian.secret_entries import distance_binding, secret_entries
from takifugu.translation.gaussian.shift_costs import largest_cost, share_of_shift, times_up

MOST_LISTED = 2**17  # entries up to which the loss of each is listed
LONGEST_SUM = 2**14  # entries up to which every lag of a profile is added up one by one
ROWS = 256  # of a covariance, at a time


class GaussianTransport(TransportBound):
    """A Gaussian process: every entry's loss is what the shift of its neighbours costs."""

    def __init__(self, prior: Gaussian, secrets: Secrets) -> None:
        self._prior = prior
        self._exact = secret_distance(secrets)
        self._within = float_up(self._exact)
        self._secret = secret_entries(prior, secrets)

    @property
    def size(self) -> int | None:
        """How many entries there are; None if they are unbounded."""
        return self._prior.length

    def uniform(self, epsilon: float) -> Bound:
        """ε times the number of entries that vary with one of them."""
        return self.valued(EntryCosts((Cost.any(epsilon),)))

    def profile(self, epsilon: Floats) -> Bound:
        """The ε of all entries that vary with one of them."""
        return self._of_profile({ANY: np.asarray(epsilon, dtype=np.float64)})

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``; 0 if there is none."""
        most = self.uniform(1.0).value
        found = 0.0 if not most < np.inf else target / most if most > 0 else float(target)
        while found > 0 and self.uniform(found).value > target:
            found = nextafter(found * (1 - 4 * UNIT), 0.0)
        return found

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """Randomised response on whether the secret's own entry is above a threshold."""
        costs = (
            EntryCosts((Cost.any(epsilon),))
            if isinstance(epsilon, float)
            else EntryCosts(by_entry=tuple(Cost.any(float(e)) for e in epsilon))
        )
        return self.valued_witness(costs, bound)

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says, by distance."""
        counted = self._by_distance(costs)
        made = all_without_rounding(costs.by_entry or costs.anywhere, self._deviation)
        if made is None:
            return counted
        smooth, own = made
        if costs.by_entry is None:
            found = self._by_distance(EntryCosts(smooth))
            own = np.max(own, keepdims=True)
        else:
            found = self._by_distance(EntryCosts(by_entry=smooth))
        by_entry = None if found.by_entry is None else (found.by_entry + own) * (1 + 4 * UNIT)
        if by_entry is not None:
            found = self._bound(by_entry)
        else:
            found = Bound((found.value + float(own.max())) * (1 + 4 * UNIT), found.binding)
        return min(counted, found, key=lambda bound: bound.value)

    @cached_property
    def _deviation(self) -> float:
        """How much every entry varies by itself, at least."""
        return self._prior.least_deviation()

    def _by_distance(self, costs: EntryCosts) -> Bound:
        """The theorem above: what a shift of every entry costs."""
        if costs.by_entry is not None:
            return self._of_profile(_coefficients(costs.by_entry))
        if isinstance(self._prior.kernel, Covariance):
            rows = self._covariance_rows(lambda shift: largest_cost(costs.anywhere, shift).sum(1))
            return self._bound(rows * (1 + (len(rows) + 4) * UNIT))
        return self._stationary(LagCosts(self._prior.kernel, self._within, costs.anywhere))

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """Noise on a clamped sum that leaks nearly as much, where clamping hardly matters."""
        found = GaussianWitness(self._prior, self._exact, self._secret)
        leak, entry = found.best(costs, bound)
        return Witness(min(leak, bound.value), self._binding(entry))

    def _stationary(self, lags: LagCosts) -> Bound:
        length = self._prior.length
        if self._secret is not None:
            places = np.array(self._secret, dtype=np.int64)
        elif length is None or length > MOST_LISTED:
            # every |ρ(k)| falls with k, so that an entry in the middle loses most
            if length is None:
                value = (lags.own + 2 * lags.all_lags) * (1 + 4 * UNIT)
                return Bound(value, self._binding(None))
            places = np.array([(length - 1) // 2])
        else:
            places = np.arange(length)
        left = lags.up_to(places)
        right = (
            np.full(len(places), lags.all_lags)
            if length is None
            else lags.up_to(length - 1 - places)
        )
        losses = (lags.own + left + right) * (1 + 4 * UNIT)
        if length is None or length > MOST_LISTED:
            worst = int(np.argmax(losses))
            return Bound(float(losses[worst]), self._binding(int(places[worst])))
        by_entry = np.zeros(length)
        by_entry[places] = losses
        return self._bound(by_entry)

    def _of_profile(self, coefficients: Mapping[Shape, Floats]) -> Bound:
        """``[entry]`` of each shape: its coefficient there."""
        length = self._prior.length
        given = max(len(values) for values in coefficients.values())
        if length is None or given != length:
            raise UnsoundRequest(
                f"the profile has {given} losses; needed is one for each of the"
                f" {'unbounded' if length is None else length} entries",
                field="profile",
                given=given,
                needed=length,
            )
        total = np.zeros(length)
        for shape, values in coefficients.items():
            if not (values > 0).any():
                continue
            kernel = self._prior.kernel
            if isinstance(kernel, Covariance):
                part = self._covariance_rows(lambda shift: _weighed(shape, shift, values))  # noqa: B023
            else:
                part = self._weighed_lags(shape, values)
            total = total + part
        return self._bound(total * (1 + 2 * (len(coefficients) + 1) * UNIT))

    def _weighed_lags(self, shape: Shape, values: Floats) -> Floats:
        """``[entry]``: what a shift there costs in all entries."""
        assert not isinstance(self._prior.kernel, Covariance)  # noqa: S101
        size = len(values)
        reach = min(size - 1, LONGEST_SUM - 1 if size <= LONGEST_SUM else LONGEST_SUM // 4)
        shifts = shifts_by_lag(self._prior.kernel, self._within, np.arange(reach + 1))
        shares = share_of_shift(shape, shifts)
        both = np.concatenate([shares[:0:-1], shares])
        with np.errstate(under="ignore"):
            found = np.convolve(values, both)[reach : reach + size]
        found = found * (1 + (2 * len(both) + 8) * UNIT) + 2 * len(both) * TINY
        if reach < size - 1:  # what is farther away costs at most as much as the last lag
            found = found + times_up(float(shares[-1]), np.array(values.sum())) * (
                1 + (size + 4) * UNIT
            )
        return found * (1 + 2 * UNIT)

    def _covariance_rows(self, cost: Callable[[Floats], Floats]) -> Floats:
        """``[entry]``: ``cost`` of the shifts of all entries, some rows at a time."""
        assert isinstance(self._prior.kernel, Covariance)  # noqa: S101
        rows = self._prior.kernel.rows
        found = np.zeros(len(rows))
        for start in range(0, len(rows), ROWS):
            part = np.abs(rows[start : start + ROWS])
            own = np.diag(rows)[start : start + ROWS, None]
            with np.errstate(over="ignore", under="ignore"):
                shift = np.maximum(part / own * self._within * (1 + 4 * UNIT), TINY)
            found[start : start + ROWS] = cost(np.where(part > 0, shift, 0.0))
        return found

    def _bound(self, by_entry: Floats) -> Bound:
        """The largest of the entries that are secret."""
        losses = by_entry
        if self._secret is not None:
            losses = np.zeros_like(by_entry)
            losses[list(self._secret)] = by_entry[list(self._secret)]
        worst = int(np.argmax(losses))
        return Bound(float(losses[worst]), self._binding(worst), frozen(losses))

    def _binding(self, entry: int | None) -> Binding:
        return distance_binding(self._exact, entry)


def _weighed(shape: Shape, shift: Floats, values: Floats) -> Floats:
    """``[row]``: the shares of a shape times the coefficient of each column's entry."""
    with np.errstate(under="ignore"):
        found: Floats = share_of_shift(shape, shift) @ values
    return found * (1 + (len(values) + 4) * UNIT) + len(values) * TINY


def _coefficients(costs: tuple[Cost, ...]) -> dict[Shape, Floats]:
    """``[entry]`` of each shape that some entry's cost has: its coefficient, rounded up."""
    found: dict[Shape, Floats] = {}
    floats: dict[Cost, list[tuple[Shape, float]]] = {}
    for entry, cost in enumerate(costs):
        if cost not in floats:
            floats[cost] = [(shape, float_up(value)) for shape, value in cost.terms]
        for shape, value in floats[cost]:
            if shape not in found:
                found[shape] = np.zeros(len(costs))
            found[shape][entry] = value
    return found or {ANY: np.zeros(len(costs))}
