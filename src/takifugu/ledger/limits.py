r"""Which totals a Pufferfish budget admits, by one translation.

A translation bounds the Pufferfish loss of what *every* entry has lost. It grows with that, and
no entry has lost more than some total of the frontier (`frontier`). Another prior is
another translation of the same totals. Losses are rounded up, allowances down.

**Theorem.** Let a budget be (E, δ), and let each query and what it costs depend on earlier
results. Suppose that the totals of all entries, after everything that was released, always satisfy

1. no total has a δ or ρ, and the translation of all costs of the frontier *together* is at most E;
   or
2. each total, its cost counted as an ε that covers it, is admitted by the filter of (E, δ)
   (`takifugu.translation.certify.closed`).

Then all results together are (E, δ)-Pufferfish private. *Proof.* Let S be a set of transcripts,
S₁ those that end in case 1 and S₂ the others. The likelihood :math:`g_ω` of a transcript is the
product of those of the queries in it. So it changes by at most :math:`e^{C(u,v)}` if one entry
changes from u to v, with C the sum of that entry's costs in ω: costs add up, whatever ω made the
next query be. For ω in S₁ the translation says :math:`E[g_ω|s] ≤ e^E E[g_ω|s']` for every secret
pair. Sum over S₁. For S₂ the proof of the filter's theorem holds with S ∩ S₂ in place of S: a cost
is at most ε·[u≠v], so that its steps are steps of ε; on paths outside of S₂ nothing needs to hold,
since :math:`P(S ∩ S_2) − e^A Q(S ∩ S_2)` counts paths of S₂ alone, and the supermartingale has
an expectation of at most 1 over all. So P(S|s) is at most e^E P(S₁|s′) + e^E P(S₂|s′) + δ. ∎

*Together*: entries of one sequence may have lost different totals of the frontier, and which one
lost which is not known. Each alone may translate to less than E while a sequence that lost
one in its first half and another in its second loses more. So incomparable costs are translated as
if every entry had lost the largest of them for each change of value. Of plain ε the largest is one
of the totals, and case 2 asks for one A and one s that do for all of them.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable
from fractions import Fraction

from takifugu._core.rounding import float_down, float_up
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Loss, Metric, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger.account import Book
from takifugu.ledger.frontier import Frontier, add, dominates, worst
from takifugu.translation.protocol import LossTranslation, joint_to_pufferfish

Costs = tuple[Cost, ...]
MAX_LIMITS = 64  # translated budgets that are remembered
MAX_TRANSLATED_COSTS = 256  # translated costs of one budget that are remembered
FACTOR_HALVINGS = 50  # of searching for the largest factor that fits


def to_pufferfish(translation: LossTranslation, totals: Frontier, delta: Fraction) -> float:
    """The Pufferfish ε of entries that lost ``totals`` at ``delta``, rounded up; may be infinite.

    With a δ or ρ anywhere, costs count as the ε that covers them; see the theorem above.
    """
    costs = costs_of(totals)
    if costs is not None:
        return _of_costs(translation, costs)
    value = max(_translated(translation, total, delta) for total in totals)
    if len(totals) < 2 or value == math.inf or not any(t.delta or t.rho for t in totals):
        return value

    def loss(epsilon: float) -> tuple[float, float]:
        return epsilon, _of_epsilon(translation, Fraction(epsilon))

    # together: one A and one s of the filter for all of them
    return max(value, joint_to_pufferfish(loss, totals, delta))


def spent_epsilon(
    translation: LossTranslation,
    totals: Frontier,
    epsilon: Fraction | None,
    delta: Fraction,
    limits: "Limits | None" = None,
) -> float:
    """`to_pufferfish`, and no more than a budget of ``epsilon`` if that admits all of ``totals``.

    A budget that admits them bounds what they reveal. Bounds are searched for: that of a smaller
    loss may end a little above that of a larger one, and so may the reading of δ and ρ. Those
    that were translated before are in ``limits``.
    """
    value = to_pufferfish(translation, totals, delta)
    if epsilon is None or _at_most(value, epsilon):
        return value
    return (limits or Limits()).limit(translation, epsilon, delta).capped(value, totals)


def costs_of(totals: Iterable[Total]) -> Costs | None:
    """What entries have lost, value by value; None if ε says it all, or a δ or ρ was spent."""
    totals = tuple(totals)
    if any(total.delta or total.rho for total in totals) or not any(t.costs for t in totals):
        return None
    return tuple(total.cost for total in totals)


def _at_most(value: float, epsilon: Fraction) -> bool:
    return value < math.inf and Fraction(value) <= epsilon


def _of_costs(translation: LossTranslation, costs: Costs) -> float:
    """The loss if every entry has lost one of ``costs``.

    Costs that the translation cannot read, about a label that its prior does not have, say, count
    as the ε that covers them.
    """
    try:
        value = float(translation.cost_to_pufferfish(*costs))
    except UnsoundRequest:
        return _of_epsilon(translation, max(cost.scalar for cost in costs))
    return _sensible(value)


def _translated(translation: LossTranslation, total: Total, delta: Fraction) -> float:
    if total == Total():
        return 0.0  # nothing was read
    if total.delta or total.rho:
        return _sensible(float(translation.total_to_pufferfish(total, delta)))
    return _of_epsilon(translation, total.scalar)


def _of_epsilon(translation: LossTranslation, epsilon: Fraction) -> float:
    spent = float_up(epsilon)
    return _sensible(math.inf if spent == math.inf else float(translation.to_pufferfish(spent)))


def _sensible(value: float) -> float:
    if not value >= 0:  # also true for NaN
        raise UnsoundRequest(
            f"the translation of a loss is {value}; it must be 0 or more",
            reason="broken translation",
            given=value,
        )
    return value


class Limit:
    """Which totals a Pufferfish budget admits, by one translation.

    Attributes:
        allowed: The per-entry ε that the budget allows on every entry, proven in both directions.
    """

    def __init__(self, translation: LossTranslation, epsilon: Fraction, delta: Fraction) -> None:
        self.translation, self.epsilon, self.delta = translation, epsilon, delta
        self.allowed = self._allowance()
        self._filter = translation.filter(self.allowed, epsilon, delta)
        self._known: tuple[Frontier, bool] = ((), True)
        self._losses: OrderedDict[Costs, float] = OrderedDict()
        self._admitted: Frontier = ()  # the last frontier that was admitted by its costs

    def _allowance(self) -> Fraction:
        allowed = float(self.translation.to_dp(float_down(self.epsilon)))
        if not 0 <= allowed < math.inf:
            raise UnsoundRequest(
                f"the translation allows ε = {allowed}; it must be 0 or more, and finite",
                reason="broken translation",
                given=allowed,
            )
        shrink = 2.0**-50
        while allowed > 0 and not self._within(allowed):
            allowed = max(0.0, allowed * (1 - shrink))  # a rounding apart at most, if it is honest
            shrink = min(1.0, shrink * 16)
        return Fraction(allowed)

    def _within(self, spent: float) -> bool:
        value = _translated(self.translation, Total(Fraction(spent)), self.delta)
        return _at_most(value, self.epsilon)

    def admits(self, totals: Frontier) -> bool:
        """Whether entries that lost ``totals`` are still within the budget; may take long."""
        answer = self.decided(totals)
        return self.translate(totals) if answer is None else answer

    def decided(self, totals: Frontier) -> bool | None:
        """`admits`, at once; None if costs have to be translated first."""
        known, answer = self._known
        if known != totals:
            answer = all(map(self._filter.admits, totals))
            self._known = (totals, answer)
        costs = None if answer else costs_of(totals)
        if costs is None:
            return answer
        if _covered(totals, self._admitted):
            return True
        loss = self._losses.get(costs)
        return None if loss is None else _at_most(loss, self.epsilon)

    def translate(self, totals: Frontier) -> bool:
        """Translate the costs of ``totals``, and remember it; whether they are within the budget.

        A frontier that is no larger than one that was admitted is admitted without it.
        """
        answer = _at_most(self._loss(totals), self.epsilon)
        if answer and not _covered(totals, self._admitted):
            self._admitted = totals
        return answer

    def _loss(self, totals: Frontier) -> float:
        costs = costs_of(totals)
        if costs is None:
            return to_pufferfish(self.translation, totals, self.delta)
        loss = self._losses.get(costs)
        if loss is None:
            loss = _of_costs(self.translation, costs)
            self._losses[costs] = loss
            while len(self._losses) > MAX_TRANSLATED_COSTS:
                self._losses.popitem(last=False)
        return loss

    def spent(self, totals: Frontier) -> float:
        """The Pufferfish ε of ``totals``, rounded up; as `spent_epsilon`."""
        return self.capped(self._loss(totals), totals)

    def capped(self, value: float, totals: Frontier) -> float:
        """``value``, or the budget where that is less and admits ``totals``."""
        if _at_most(value, self.epsilon) or not self.admits(totals):
            return value
        return float_up(self.epsilon)

    def room(self, spent: Frontier, loss: Loss, beside: Frontier = ()) -> Fraction:
        """How much of the currency of ``loss`` still fits on top of ``spent``, rounded down.

        For (ε, δ) that is ε beside the same δ; for a cost the largest factor of it. Entries that
        are not read have lost ``beside``.
        """
        if isinstance(loss, Metric):
            return self._factor(spent, loss.cost, beside)
        plain = Fraction(0)  # if others have lost what only their costs, read together, admit
        if all(map(self._filter.admits, beside)):
            plain = min(self._filter.room(total, loss) for total in spent)
        if isinstance(loss, Pure) and costs_of((*spent, *beside)) is not None:
            return max(plain, self._factor(spent, Cost.any(1), beside))
        return plain

    def _factor(self, spent: Frontier, unit: Cost, beside: Frontier) -> Fraction:
        """The largest factor of ``unit`` that is found to fit; 1 for a cost of nothing."""
        if not unit:
            return Fraction(1)
        by_epsilon = self._factor_of_scalars(spent, unit, beside)
        plain = unit.is_scalar and not any(total.costs for total in (*spent, *beside))
        if plain or any(total.delta or total.rho for total in (*spent, *beside)):
            return by_epsilon
        touched = tuple(total.cost for total in spent)
        others = tuple(t.cost for t in beside if not any(dominates(s, t) for s in spent))
        try:
            target = float_down(self.epsilon)
            factor = self.translation.to_cost(unit, target, spent=touched, beside=others)
        except UnsoundRequest:  # it cannot read them
            return by_epsilon
        shrink = Fraction(1, 2**40)
        while factor > by_epsilon and not self.admits(after(spent, Metric(unit * factor), beside)):
            factor = max(by_epsilon, Fraction(float_down(factor * (1 - shrink))))
            shrink = min(Fraction(1), shrink * 2**10)  # an honest one is within a rounding
        return max(factor, by_epsilon)

    def _factor_of_scalars(self, spent: Frontier, unit: Cost, beside: Frontier) -> Fraction:
        """The largest factor that the filter admits, by halving; each that is kept was tried.

        Counts of different labels add up to less than their ε do, so that a quotient says too
        little.
        """

        def fits(factor: Fraction) -> bool:
            return all(map(self._filter.admits, after(spent, Metric(unit * factor), beside)))

        if not unit.scalar or not fits(Fraction(0)):
            return Fraction(0)
        room = min(self._filter.room(total, Metric(unit)) for total in spent)
        low, high = room / unit.scalar, self.allowed / unit.scalar
        shrink = Fraction(1, 2**50)
        while low > 0 and not fits(low):  # an ε that covers sets which overlap is rounded
            low, shrink = max(low * (1 - shrink), Fraction(0)), shrink * 16
        if any(total.costs for total in spent):
            low, high = (high, high) if fits(high) else (low, high)
            for _ in range(FACTOR_HALVINGS):
                middle = Fraction(float_down((low + high) / 2))
                if not low < middle < high:
                    break
                low, high = (middle, high) if fits(middle) else (low, middle)
        return low


def after(spent: Frontier, loss: Loss, beside: Frontier) -> Frontier:
    """What entries have lost once those that lost ``spent`` lose ``loss`` as well."""
    return worst((*beside, *(add(total, loss) for total in spent)))


def _covered(totals: Frontier, others: Frontier) -> bool:
    """Whether each of ``totals`` is at most one of ``others``."""
    return all(any(dominates(other, total) for other in others) for total in totals)


class Limits:
    """Budgets, each translated once and outside the lock: a translation may be slow."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Fraction, Fraction], Limit] = {}

    def known(self, translation: LossTranslation, book: Book) -> Limit | None:
        """The limit of an account, if it was translated before."""
        if book.epsilon is None:
            return None
        return self._known.get((id(translation), book.epsilon, book.delta))

    def limit(self, translation: LossTranslation, epsilon: Fraction, delta: Fraction) -> Limit:
        """A translated budget, remembered. The limit holds the translation, so its id stays."""
        limit = self._known.get((id(translation), epsilon, delta))
        if limit is None:
            limit = Limit(translation, epsilon, delta)
            if len(self._known) >= MAX_LIMITS:
                self._known.clear()
            self._known[id(translation), epsilon, delta] = limit
        return limit
