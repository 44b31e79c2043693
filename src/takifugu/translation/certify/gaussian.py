r"""What is proven of Gaussian processes, rounded: the shift of a secret, and what it costs.

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

**Lags.** An entry k steps away is shifted by :math:`r|ρ(k)|`, which falls with k, and a shift by d
costs f(d) ≤ s·d + j. So with M lags evaluated one by one the lags from M + 1 to m add at most
:math:`(m − M) f(r|ρ(M)|)`, and at most
:math:`s\,r \sum_{k>M} |ρ(k)| + (m − M)\,j`, where the sum is half of what the closed form of
:math:`\sum_k |ρ(k)|` leaves.

**Numbers that are rounded to steps.**
After rounding, two numbers may be one step further apart than before, however close they were. That
step is paid once, by the secret's own entry, and not by all that move with it:

**Theorem.** Let :math:`s^2 > 0` be at most the least eigenvalue of K. Let a release see the entries
rounded to a grid of step σ, and let a change by one step on entry j cost at most κ_j. Then entry
j ≠ i costs at most :math:`R_j κ_j |δ_j| / σ` for a shift by δ_j, where R is close to 1.

*Proof.* The covariance of the other entries given X_i has no smaller eigenvalue than K (its inverse
is a principal block of :math:`K^{-1}`), so they are :math:`m + U + Z` with Z independent N(0, s²)
in every entry, and only m depends on X_i. Keep U, and average an admissible g over Z. In one
coordinate, with all others averaged, h > 0 on the grid still has h(n ± 1) ≤ e^κ h(n), and
:math:`H(a) = E\,h(\mathrm{round}(a + Z)) = \sum_n h(n) P_n`, with P_n the mass of a cell. Its
derivative adds up the jumps at the ends of cells, and
:math:`|h(n+1) − h(n)| ≤ \tanh(κ/2)(h(n+1) + h(n))`, so

.. math:: |H'(a)| ≤ \frac{2\tanh(κ/2)}{σ} \sum_n h(n) T_n, \qquad
          T_n = σ\,\frac{φ_s(b_n − a) + φ_s(b_{n−1} − a)}{2},

where T_n is the trapezoidal rule for P_n. With η = σ/s the two differ by at most
:math:`η^3/12 · \max |φ''|` over the cell, and :math:`h(n) / h(n_0)` lies within
:math:`e^{±κ|n − n_0|}`, n₀ being the cell of a. Hence |H'| ≤ R κ/σ · H with

.. math:: R = 1 + \frac{(η^3/12) \sum_n e^{κ|n−n_0|} \max_n |φ''|}{e^{−κ}\,E e^{−κ|Z|/η}},

Z now standard normal. Change one coordinate of m after the other. ∎ A smaller s is allowed too, so
η may be raised where that is easier to compute.

**A mechanism that leaks: noise on a clamped sum, far out.**
Entry j has cost :math:`\sum_t a_{jt}|\mathrm{clamp}_t u − \mathrm{clamp}_t v|` at least, so the
likelihood :math:`h = \exp \sum_j s_j φ_j(X_j)` with :math:`φ_j = \sum_t a_{jt}\mathrm{clamp}_t` is
admissible for any signs s: it is that of Laplace noise on such a sum as the output goes to
infinity. Take :math:`s_j` = sign of K_ji and the entries j ∈ J beside the secret's own. Then

.. math:: \log\frac{E[h|X_i=x]}{E[h|X_i=y]} = φ_i(x) − φ_i(y) +
          \int_y^x \sum_{j∈J} \frac{|K_{ji}|}{K_{ii}} \sum_t a_{jt}\,Q_s(X_j \text{ inside } t)\,ds,

with :math:`Q_s` the law given X_i = s tilted by h: no term is negative. Unclamped, every
probability is 1, and this is the upper bound. Otherwise let T be the law tilted by the unclamped
sum. h exceeds that by :math:`e^{A−B}`, where A and B add up a_{jt} times how far X_j is outside on
either side, so

.. math:: Q_s(\text{outside}) ≤ \frac{E_T[e^A 1_{\text{outside}}]}{E_T[e^{−B}]}
          ≤ \sqrt{E_T[e^{2A}]}\; e^{E_T[B]} \sqrt{T(\text{outside})}

by Cauchy-Schwarz and Jensen; Hölder's inequality splits A. Under T all of it is Gaussian. Every J
is a mechanism; the best of a few is reported.

If numbers are rounded to steps, the mechanism sees the rounded ones. Each :math:`φ_j` moves by half
a step at most, on both sides of the ratio, which costs κ_j for every entry that is used. Better, by
the theorem on steps: for :math:`h(n) = e^{κn}` all that is said there
of H′ are equalities but the trapezoidal rule, whose error is at most R − 1 of H, inside and outside
the bounds. So a term is at least :math:`(\tanh(κ/2)/(κ/2))(1 − 2(R−1) − Q_s(\text{outside}))` of
its size.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp, inf
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT, float_down, float_up
from takifugu.costs.cost import ANY, Column, Cost, Distance, Jointly, Shape, Steps
from takifugu.errors import UnsoundRequest
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import TINY, Covariance, StationaryKernel
from takifugu.translation.entry_costs import EntryCosts

MAX_LISTED_ENTRIES = 2**17  # up to which the loss of each is listed
MAX_PROFILE_LAGS = 2**14  # entries up to which every lag of a profile is added up one by one
MAX_LAGS = 2**14  # that are evaluated one by one
ROW_BLOCK = 256  # rows of a covariance at a time
FINEST_GRID = 1 / 64  # η: a finer grid gains nothing more
COARSEST_GRID = 1.0  # η: beyond it R is of no use
STEEPEST_STEP = 5.0  # κ/η
FAR_DEVIATIONS = 40.0  # φ there is below 1e-347, and what is beyond below 1e-200
LEAK_SLACK = 1e-9  # a share of the leak, past all rounding of the few operations that computed it


@dataclass(frozen=True, eq=False)
class ShiftProblem:
    """What is protected, and what each entry has lost.

    Attributes:
        prior: The process.
        within: How far apart the two numbers of a secret pair are at most.
        secret: The entries that are secret; None for all.
        costs: What each entry has lost; or ``[entry]``: ε of each.
    """

    prior: Gaussian
    within: Fraction
    secret: tuple[int, ...] | None
    costs: EntryCosts | Floats

    def slopes(self, entry: int, choice: int) -> "Slopes":
        """How the cost of an entry rises with a distance, of one of those it may have lost."""
        if not isinstance(self.costs, EntryCosts):
            return Slopes(jump=Fraction(float(self.costs[entry])))
        return _slopes(self.costs.at(entry), choice)


@dataclass(frozen=True)
class Shift:
    """A proof: couple by the shift of the conditional mean.

    Attributes:
        smoothed: Whether a step of rounded numbers is paid by the secret's own entry alone.
    """

    smoothed: bool = False

    def to_document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {"kind": "shift", "smoothed": self.smoothed}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Shift":
        """The proof that was written."""
        return cls(document.get("smoothed") is True)


@dataclass(frozen=True, eq=False)
class ShiftLosses:
    """What is proven: the largest loss, its entry if that is known, and the loss of each entry."""

    value: float
    entry: int | None
    by_entry: Floats | None = None


@dataclass(frozen=True)
class ClampedSum:
    """A witness: noise on a sum of clamped numbers, with outputs far out.

    Attributes:
        entry: The entry whose numbers, half the distance on either side of ``middle``, it tells
            apart.
        middle: The number between them.
        beside: The entries that are added to it, with the signs of their correlation.
        choice: Which of the costs that an entry may have lost it has.
    """

    entry: int
    middle: Fraction
    beside: tuple[int, ...]
    choice: int = 0

    def to_document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        written = {"kind": "clamped sum", **asdict(self)}
        return written | {"middle": str(self.middle), "beside": list(self.beside)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "ClampedSum":
        """The witness that was written."""
        return cls(
            int(document["entry"]),
            Fraction(document["middle"]),
            tuple(map(int, document["beside"])),
            int(document["choice"]),
        )


def share_of_shift(shape: Shape, distances: Floats) -> Floats:
    """The most that ``shape`` may cost between two numbers that are this far apart.

    Numbers clamped to bounds are no farther apart than before, and no farther than the bounds:
    min(distance / width, 1). Rounded to steps they may be one step further apart. Any other shape
    may cost its diameter between any two numbers that differ.
    """
    moved = distances > 0
    if isinstance(shape, Distance | Steps):
        width = float_down(shape.high - shape.low)
        if width == 0:  # below all floats
            return moved.astype(np.float64)
        with np.errstate(over="ignore"):
            part = distances / width * (1 + 2 * UNIT)
            if isinstance(shape, Steps):  # rounded apart by one step more, at most
                part = (part + float_up(Fraction(1, shape.count))) * (1 + 2 * UNIT)
        return np.where(moved, np.clip(part, TINY, 1.0), 0.0)
    if isinstance(shape, Column | Jointly):
        about = shape.column if isinstance(shape, Column) else ", ".join(shape.columns)
        raise UnsoundRequest(
            f"a cost is about column {about!r}, and the entries of a Gaussian are single"
            " numbers; give a cost that names no column",
            field="columns",
            needed=about,
        )
    return np.where(moved, float_up(shape.diameter), 0.0)


def largest_cost(costs: Iterable[Cost], distances: Floats) -> Floats:
    """The most that any of ``costs`` charges for each of some distances."""
    largest = np.zeros(np.shape(distances))
    for cost in costs:
        total = np.zeros(np.shape(distances))
        for shape, value in cost.terms:
            total = total + times_up(float_up(value), share_of_shift(shape, distances))
        np.maximum(largest, total * (1 + 2 * len(cost.terms) * UNIT), out=largest)
    return largest


def times_up(factor: float | Floats, shares: Floats) -> Floats:
    """The product, rounded up; 0 only where a factor is."""
    with np.errstate(under="ignore", over="ignore"):
        product = np.maximum(factor * shares * (1 + 2 * UNIT), TINY)
    return np.where((np.asarray(factor) > 0) & (shares > 0), product, 0.0)


def slope_and_jump(cost: Cost) -> tuple[float, float]:
    """A and b with cost ≤ a·distance + b, both rounded up: distances, and all other shapes."""
    slope, jump = 0.0, 0.0
    for shape, value in cost.terms:
        if isinstance(shape, Distance | Steps):
            slope += float_up(value / (shape.high - shape.low))
            if isinstance(shape, Steps):
                jump += float_up(value / shape.count)
        else:
            jump += float_up(value * shape.diameter)
    units = 1 + 2 * len(cost.terms) * UNIT
    return slope * units, jump * units


def rounding_factor(kappa: float, step: float, deviation: float) -> float:
    """R of the theorem, rounded up; infinite where the grid is too coarse for the prior."""
    if not deviation > 0 or not kappa < STEEPEST_STEP:
        return inf
    eta = max(
        step / deviation * (1 + 8 * UNIT), FINEST_GRID, kappa / STEEPEST_STEP * (1 + 8 * UNIT)
    )
    if not eta <= COARSEST_GRID:
        return inf
    cells = np.arange(1, int(FAR_DEVIATIONS / eta) + 2)
    # how far out a cell may begin and end
    inner = np.asarray((cells - 1) * eta, dtype=np.float64)
    outer = np.asarray((cells + 1) * eta, dtype=np.float64)
    bend = np.exp(kappa * cells) * _most_bent(inner, outer)
    above = (eta**3 / 12) * (1 + 2 * float(bend.sum())) * 0.39894229 + 1e-200
    from scipy.special import erfcx

    below = exp(-kappa) * float(erfcx(kappa / eta / 2**0.5))
    return (1 + above / below * (1 + 1e-9)) * (1 + 4 * UNIT)


def _most_bent(inner: Floats, outer: Floats) -> Floats:
    """The largest |z² − 1|·exp(−z²/2) between two ends.

    It falls to 0 at 1, rises to √3 and falls again.
    """
    ends = [np.abs(z**2 - 1) * np.exp(-(z**2) / 2) for z in (inner, outer)]
    over = (inner <= 3**0.5) & (outer >= 3**0.5)
    bent: Floats = np.maximum(np.maximum(*ends), np.where(over, 2 * exp(-1.5), 0.0))
    return bent * (1 + 1e-12)


def without_rounding(cost: Cost, deviation: float) -> tuple[Cost, float] | None:
    """A cost by distance alone for entries that are shifted, and what the own entry pays beside.

    None if the theorem does not apply: shapes other than `Steps`, or several grids.
    """
    shapes = [(shape, value) for shape, value in cost.terms if isinstance(shape, Steps)]
    grids = {shape.step for shape, _ in shapes}
    if len(shapes) < len(cost.terms) or len(grids) > 1:
        return None
    if not shapes:
        return cost, 0.0
    per_step = sum((value / shape.count for shape, value in shapes), Fraction(0))
    factor = rounding_factor(float_up(per_step), float_up(grids.pop()), deviation)
    if not factor < inf:
        return None
    raised: dict[Shape, Fraction] = {
        shape.distance: value * Fraction(factor) for shape, value in shapes
    }
    return Cost.of(raised), float_up(per_step)


def all_without_rounding(
    costs: Sequence[Cost], deviation: float
) -> tuple[tuple[Cost, ...], Floats] | None:
    """`without_rounding` of every cost; None if it does not apply to all, or changes none."""
    smoothed = {cost: without_rounding(cost, deviation) for cost in dict.fromkeys(costs)}
    known = {cost: smooth for cost, smooth in smoothed.items() if smooth is not None}
    if len(known) < len(smoothed) or not any(own for _, own in known.values()):
        return None
    return tuple(known[c][0] for c in costs), np.array([known[c][1] for c in costs])


def shifts_by_lag(kernel: StationaryKernel, within: float, lags: Integers) -> Floats:
    """How far an entry at each lag is shifted, rounded up; 0 only where nothing moves."""
    shares = kernel.most(lags)
    with np.errstate(over="ignore", under="ignore"):
        moved = np.maximum(shares * within * (1 + 2 * UNIT), TINY)
    return np.where(shares > 0, moved, 0.0)


class LagCosts:
    """What the shift of an entry by ``within`` costs at each lag, if each entry has lost a cost."""

    def __init__(self, kernel: StationaryKernel, within: float, costs: Sequence[Cost]) -> None:
        self._kernel, self._within, self._costs = kernel, within, costs

    @cached_property
    def own(self) -> float:
        """What the entry itself costs."""
        return float(self._by_lag[0])

    @cached_property
    def _by_lag(self) -> Floats:
        return largest_cost(
            self._costs, shifts_by_lag(self._kernel, self._within, np.arange(MAX_LAGS + 1))
        )

    @cached_property
    def _running(self) -> Floats:
        """``[m]``: the lags from 1 to m together."""
        added = np.concatenate([[0.0], np.cumsum(self._by_lag[1:])])
        return added * (1 + (MAX_LAGS + 4) * UNIT)

    def up_to(self, lags: Integers) -> Floats:
        """What the lags from 1 to each of ``lags`` cost together, rounded up."""
        inside = self._running[np.minimum(lags, MAX_LAGS)]
        more = np.maximum(lags - MAX_LAGS, 0).astype(np.float64)
        if not (more > 0).any():
            return inside
        slope, jump = self._beyond
        last = float(self._by_lag[-1])
        rest = np.minimum(more * last, slope + more * jump) * (1 + 8 * UNIT)
        total = (inside + np.where(more > 0, rest, 0.0)) * (1 + 2 * UNIT)
        return np.minimum(total, self.all_lags)

    @cached_property
    def all_lags(self) -> float:
        """What all lags from 1 on cost together, rounded up; it may be infinite."""
        if self._by_lag[-1] == 0:  # nothing moves there, nor beyond
            return float(self._running[-1])
        slope, jump = self._beyond
        if jump > 0:
            return np.inf
        steep = max(a for a, _ in map(slope_and_jump, self._costs))
        with np.errstate(over="ignore"):
            unclamped = steep * self._within * ((self._kernel.total() - 1) / 2)
        return min(float(self._running[-1]) + slope, max(unclamped, TINY)) * (1 + 8 * UNIT)

    @cached_property
    def _beyond(self) -> tuple[float, float]:
        """What distances cost beyond the lags that were evaluated, and each jump."""
        parts = [slope_and_jump(cost) for cost in self._costs]
        slope = max((a for a, _ in parts), default=0.0)
        jump = max((b for _, b in parts), default=0.0)
        known = float(self._kernel.least(np.arange(1, MAX_LAGS + 1)).sum())
        left = (self._kernel.total() - 1) / 2 - known * (1 - (MAX_LAGS + 4) * UNIT)
        left += 8 * UNIT * self._kernel.total()
        with np.errstate(over="ignore"):
            far = slope * self._within * max(left, 0.0) * (1 + 8 * UNIT)
        return (max(far, TINY) if slope > 0 else 0.0), jump


def upper(problem: ShiftProblem, proof: Shift) -> ShiftLosses:
    """The loss that ``proof`` shows, rounded up; infinite if it proves nothing."""
    costs = problem.costs
    if not proof.smoothed:
        return _SecretShifts(problem).losses()
    if not isinstance(costs, EntryCosts):
        return ShiftLosses(inf, None)
    smoothing = all_without_rounding(
        costs.by_entry or costs.anywhere, problem.prior.least_deviation()
    )
    if smoothing is None:
        return ShiftLosses(inf, None)
    smooth, own = smoothing
    if costs.by_entry is None:
        costs, own = EntryCosts(smooth), np.max(own, keepdims=True)
    else:
        costs = EntryCosts(by_entry=smooth)
    shifts = _SecretShifts(replace(problem, costs=costs))
    moved = shifts.losses()
    if moved.by_entry is not None:
        return shifts.largest((moved.by_entry + own) * (1 + 4 * UNIT))
    return ShiftLosses((moved.value + float(own.max())) * (1 + 4 * UNIT), moved.entry)


class _SecretShifts:
    """The theorem above: what the shift of every entry costs."""

    def __init__(self, problem: ShiftProblem) -> None:
        self._problem, self._prior = problem, problem.prior
        self._within = float_up(problem.within)

    def losses(self) -> ShiftLosses:
        costs = self._problem.costs
        if not isinstance(costs, EntryCosts):
            return self._of_profile({ANY: costs})
        if costs.by_entry is not None:
            return self._of_profile(_coefficients(costs.by_entry))
        if isinstance(self._prior.kernel, Covariance):
            rows = self._covariance_rows(lambda shift: largest_cost(costs.anywhere, shift).sum(1))
            return self.largest(rows * (1 + (len(rows) + 4) * UNIT))
        return self._stationary(LagCosts(self._prior.kernel, self._within, costs.anywhere))

    def largest(self, by_entry: Floats) -> ShiftLosses:
        """The largest of the entries that are secret."""
        losses, secret = by_entry, self._problem.secret
        if secret is not None:
            losses = np.zeros_like(by_entry)
            losses[list(secret)] = by_entry[list(secret)]
        worst = int(np.argmax(losses))
        return ShiftLosses(float(losses[worst]), worst, losses)

    def _stationary(self, lags: LagCosts) -> ShiftLosses:
        length, secret = self._prior.length, self._problem.secret
        if secret is not None:
            entries = np.array(secret, dtype=np.int64)
        elif length is None:  # every |ρ(k)| falls with k: an entry in the middle loses most
            return ShiftLosses((lags.own + 2 * lags.all_lags) * (1 + 4 * UNIT), None)
        elif length > MAX_LISTED_ENTRIES:
            entries = np.array([(length - 1) // 2])
        else:
            entries = np.arange(length)
        left = lags.up_to(entries)
        right = (
            np.full(len(entries), lags.all_lags)
            if length is None
            else lags.up_to(length - 1 - entries)
        )
        losses = (lags.own + left + right) * (1 + 4 * UNIT)
        if length is None or length > MAX_LISTED_ENTRIES:
            worst = int(np.argmax(losses))
            return ShiftLosses(float(losses[worst]), int(entries[worst]))
        by_entry = np.zeros(length)
        by_entry[entries] = losses
        return self.largest(by_entry)

    def _of_profile(self, coefficients: Mapping[Shape, Floats]) -> ShiftLosses:
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
            if isinstance(self._prior.kernel, Covariance):
                part = self._covariance_rows(lambda shift: _weighed(shape, shift, values))  # noqa: B023
            else:
                part = self._weighed_lags(self._prior.kernel, shape, values)
            total = total + part
        return self.largest(total * (1 + 2 * (len(coefficients) + 1) * UNIT))

    def _weighed_lags(self, kernel: StationaryKernel, shape: Shape, values: Floats) -> Floats:
        """``[entry]``: what a shift there costs in all entries."""
        size = len(values)
        reach = min(
            size - 1, MAX_PROFILE_LAGS - 1 if size <= MAX_PROFILE_LAGS else MAX_PROFILE_LAGS // 4
        )
        shifts = shifts_by_lag(kernel, self._within, np.arange(reach + 1))
        shares = share_of_shift(shape, shifts)
        both = np.concatenate([shares[:0:-1], shares])
        with np.errstate(under="ignore"):
            total = np.convolve(values, both)[reach : reach + size]
        total = total * (1 + (2 * len(both) + 8) * UNIT) + 2 * len(both) * TINY
        if reach < size - 1:  # what is farther away costs at most as much as the last lag
            total = total + times_up(float(shares[-1]), np.array(values.sum())) * (
                1 + (size + 4) * UNIT
            )
        return total * (1 + 2 * UNIT)

    def _covariance_rows(self, cost: Callable[[Floats], Floats]) -> Floats:
        """``[entry]``: ``cost`` of the shifts of all entries, some rows at a time."""
        assert isinstance(self._prior.kernel, Covariance)  # noqa: S101
        rows = self._prior.kernel.rows
        total = np.zeros(len(rows))
        for start in range(0, len(rows), ROW_BLOCK):
            part = np.abs(rows[start : start + ROW_BLOCK])
            own = np.diag(rows)[start : start + ROW_BLOCK, None]
            with np.errstate(over="ignore", under="ignore"):
                shift = np.maximum(part / own * self._within * (1 + 4 * UNIT), TINY)
            total[start : start + ROW_BLOCK] = cost(np.where(part > 0, shift, 0.0))
        return total


def _weighed(shape: Shape, shift: Floats, values: Floats) -> Floats:
    """``[row]``: the shares of a shape times the coefficient of each column's entry."""
    with np.errstate(under="ignore"):
        total: Floats = share_of_shift(shape, shift) @ values
    return total * (1 + (len(values) + 4) * UNIT) + len(values) * TINY


def _coefficients(costs: tuple[Cost, ...]) -> dict[Shape, Floats]:
    """``[entry]`` of each shape that some entry's cost has: its coefficient, rounded up."""
    by_shape: dict[Shape, Floats] = {}
    floats: dict[Cost, list[tuple[Shape, float]]] = {}
    for entry, cost in enumerate(costs):
        if cost not in floats:
            floats[cost] = [(shape, float_up(value)) for shape, value in cost.terms]
        for shape, value in floats[cost]:
            if shape not in by_shape:
                by_shape[shape] = np.zeros(len(costs))
            by_shape[shape][entry] = value
    return by_shape or {ANY: np.zeros(len(costs))}


@dataclass(frozen=True)
class Slopes:
    """The distances of a cost, each per unit and between bounds; and what any change costs."""

    terms: tuple[tuple[Fraction, Fraction, Fraction], ...] = ()  # per unit, low, high
    jump: Fraction = Fraction(0)
    grain: Fraction = Fraction(0)  # by how much rounding to steps may change the likelihood
    step: Fraction | None = None  # if the only distance is of numbers rounded to it

    @property
    def steep(self) -> float:
        """What a small change costs per unit, about."""
        return float(sum((per for per, _, _ in self.terms), Fraction(0)))

    def between(self, x: Fraction, y: Fraction) -> Fraction:
        """The cost of the change from y to x, exactly."""
        moved = [
            per * (min(max(x, low), high) - min(max(y, low), high)) for per, low, high in self.terms
        ]
        return max(sum(moved, self.jump) - self.grain, Fraction(0))


@lru_cache(maxsize=256)
def _slopes(costs: tuple[Cost, ...], choice: int) -> Slopes:
    """Those of the chosen one of ``costs``, or of the last if there are fewer."""
    if not costs:
        return Slopes()
    cost = costs[min(max(choice, 0), len(costs) - 1)]
    terms = [
        (value / (shape.high - shape.low), shape.low, shape.high)
        for shape, value in cost.terms
        if isinstance(shape, Distance | Steps)
    ]
    rounded = [(shape, value) for shape, value in cost.terms if isinstance(shape, Steps)]
    grain = sum((value / shape.count for shape, value in rounded), Fraction(0))
    step = rounded[0][0].step if len(rounded) == len(terms) == 1 else None
    return Slopes(tuple(terms), cost.coefficients.get(ANY, Fraction(0)), grain, step)


def lower(problem: ShiftProblem, witness: ClampedSum) -> float:
    """What ``witness`` leaks, rounded down; 0 if it is no mechanism for this problem."""
    prior, entry, beside = problem.prior, witness.entry, witness.beside
    given = problem.costs.size  # of an array or of a list of costs: one for each entry
    length = min(inf if size is None else size for size in (prior.length, given))
    distinct = len({entry, *beside}) == len(beside) + 1
    if not distinct or not all(0 <= k < length for k in (entry, *beside)):
        return 0.0
    if problem.secret is not None and entry not in problem.secret:
        return 0.0
    half = problem.within / 2
    x, y = witness.middle + half, witness.middle - half
    alone = float_down(problem.slopes(entry, witness.choice).between(x, y))
    slopes = [problem.slopes(k, witness.choice) for k in beside]
    more = _leak_beside(prior, problem.within, entry, (float(y), float(x)), beside, slopes)
    leak = (alone + more * (1 - LEAK_SLACK)) * (1 - 2.0**-50)
    return leak if 0 < leak < inf else 0.0


def _leak_beside(
    prior: Gaussian,
    within: Fraction,
    entry: int,
    ends: tuple[float, float],
    beside: Sequence[int],
    slopes: Sequence[Slopes],
) -> float:
    """What the entries ``beside`` add, between the two ``ends``."""
    from scipy.special import ndtr

    if not any(part.terms for part in slopes):
        return 0.0
    law = prior.covariance([entry, *beside])
    cross, whole = law[1:, 0], law[0, 0]
    pull = cross / whole
    spread = law[1:, 1:] - np.outer(cross, cross) / whole
    sign = np.sign(pull)
    tilt = spread @ (sign * [part.steep for part in slopes])
    centre = float(prior.means([entry])[0])
    means = prior.means(list(beside))
    at_ends = means + np.outer(np.array(ends) - centre, pull) + tilt  # [end, entry]
    deviation = np.sqrt(np.maximum(np.diag(spread), 1e-300))
    rows = [(k, *term) for k, part in enumerate(slopes) for term in part.terms]
    owner = np.array([row[0] for row in rows])
    per, low, high = (np.array([float(row[c]) for row in rows]) for c in (1, 2, 3))
    sd, rises = deviation[owner], sign[owner] > 0
    least, most = at_ends.min(axis=0)[owner], at_ends.max(axis=0)[owner]
    size = np.abs(least) + np.abs(most) + np.abs(low) + np.abs(high)
    below = _nearer((low - least) / sd, size / sd)
    above = _nearer((most - high) / sd, size / sd)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        grown = _log_moment(np.where(rises, below, above), 2 * len(rows) * per * sd) / len(rows)
        other = np.where(rises, above, below)
        lost = per * sd * (np.exp(-(other**2) / 2) / 2.5 + np.maximum(other, 0) * ndtr(other))
        outside = np.exp(
            grown.sum() / 2 + lost.sum() + np.log(ndtr(below) + ndtr(above) + 1e-300) / 2
        )
        grain = float(sum((part.grain for part in slopes), Fraction(0)))
        moved = float(within) * np.abs(pull)[owner] * per
        plain = _certain_sum(moved, 1 - outside) - grain
        smoothing = {part: _smoothing(prior, part) for part in dict.fromkeys(slopes)}
        shares, errors = np.array([smoothing[part] for part in slopes]).T
        fine = _certain_sum(moved * shares[owner], 1 - errors[owner] - outside * np.exp(grain))
    return max(plain, fine, 0.0)


def _smoothing(prior: Gaussian, slopes: Slopes) -> tuple[float, float]:
    """tanh(κ/2)/(κ/2), and 2(R − 1); none of it where nothing is rounded."""
    if not slopes.grain:
        return 1.0, 0.0
    if slopes.step is None:
        return 1.0, inf
    kappa = float_up(slopes.grain)
    factor = rounding_factor(kappa, float_up(slopes.step), prior.least_deviation())
    return 1 - kappa**2 / 12, 2 * (factor - 1)


def _certain_sum(moved: Floats, share: Floats) -> float:
    """The sum of what is certain: shares below 0, and what is not a number, count as nothing."""
    known = np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 0.0)
    return float(np.sum(np.maximum(moved, 0.0) * known))


def _nearer(scores: Floats, size: Floats) -> Floats:
    """Standard scores, moved towards the outside past the rounding that made them."""
    return scores + 1e-9 * (1 + np.abs(scores)) + 1e-13 * size


def _log_moment(z: Floats, a: Floats) -> Floats:
    r"""Log E exp(a·(z − Z)₊) of a standard normal Z: what lies below a bound, weighed."""
    from scipy.special import log_ndtr

    moment: Floats = np.logaddexp(log_ndtr(-z), a * z + a**2 / 2 + log_ndtr(z + a))
    return moment
