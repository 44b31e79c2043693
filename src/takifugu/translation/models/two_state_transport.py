"""The transport bound of Markov chains with two states: exact, by the closed form.

With two states an entry has one secret pair, in both orders, whatever secrets are chosen.
The closed form (`takifugu.translation.certify.two_states`) gives its loss at every entry from
both sides, a few units in the last place apart. Its lower side is a mechanism's: the one that
counts. A cost of two values is two numbers, one for each order; a scalar loss is the same number
twice.
"""

from functools import cached_property

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu.costs.cost import Cost
from takifugu.errors import InvalidPrior
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.translation.accounting.largest_epsilon import largest_by_bracket
from takifugu.translation.bounds import Bound, Witness
from takifugu.translation.certify.two_states import (
    BinaryLosses,
    BinaryStep,
    attainable,
    binary_losses,
    counting_factors,
    group_privacy,
    single_entry,
    stationary_losses,
)
from takifugu.translation.entry_costs import CostLevels, EntryCosts
from takifugu.translation.models.chain_entries import (
    ChainBound,
    refuse_other_length,
    refuse_unbounded,
    secret_entries,
)
from takifugu.translation.search.groups import pair_mask

LISTED = 62_500  # entries up to which a constant ε is translated entry by entry
LOWERED = 1e-14  # share by which an ε is lowered until its loss is within the target
STEEP = 600.0  # an ε whose exponential is written down as a factor
MOST = 1e15  # a total ε beyond this is not exponentiated
LONG = 10_000  # entries on each side of one whose loss is unbounded
PAIRS = ((1, 0), (0, 1))  # the ordered pairs of states, as the closed form numbers them


class BinaryTransport(ChainBound):
    """The closed form for one Markov chain with two states and chosen entries."""

    def __init__(self, chain: MarkovChain, secrets: Secrets) -> None:
        chain.refuse_unless_one_law("the closed form")
        self._chain = chain
        self.states, self.columns, self.length = chain.states, chain.columns, chain.length
        self._sides = tuple(((a,), (b,)) for a, b in PAIRS)
        self._stationary = chain.stationary_start
        self._secret_entries = secret_entries(secrets, chain.length)
        pair_mask(secrets.sides(chain.states), 2)  # an error now rather than later
        if self._stationary and not (chain.transition[0, 1] > 0 and chain.transition[1, 0] > 0):
            raise InvalidPrior(
                "transition",
                given="does not lead from every state to every other one",
                needed="do so for a stationary chain; give `start` if it begins somewhere",
                reason="recurrence",
            )
        if not self._stationary and chain.length is None:
            refuse_unbounded()

    def profile(self, epsilon: Floats) -> Bound:
        """The loss if entry i is charged ``epsilon[i]``, and later ones of an unbounded chain 0.

        In an unbounded chain the last number of ``by_entry`` is for all entries that follow: one
        entry reveals less of another, the further they are apart.
        """
        return self._one_by_one(_twice(epsilon))

    def everywhere(self, cost: Floats) -> Bound:
        """The loss when every entry has the same cost."""
        length, each = self.length, np.array([cost[place] for place in PAIRS])
        if length is not None and (not self._stationary or length <= LISTED):
            return self._one_by_one(np.repeat(each[:, None], length, axis=1))
        top = float(each.max())
        if top * (length or 1) > MOST:
            return Bound(np.inf if length is None else group_privacy(top, length))
        upper, _, entry = self._worst(each)
        pair = _larger(upper)
        return Bound(float(upper[pair]), self._binding(pair, entry), by_values=_table(upper))

    def one_by_one(self, charged: CostLevels) -> Bound:
        """The loss if every entry has a cost of its own; later ones of an unbounded chain none."""
        return self._one_by_one(
            np.array([[cost[place] for cost in charged.matrices] for place in PAIRS])[:, charged.at]
        )

    def _one_by_one(self, charged: Floats) -> Bound:
        """The loss if every entry has a cost of its own, ``[pair, entry]``."""
        spent = self._checked(charged)
        total = float(spent.max(axis=0).sum())
        if total > MOST:  # group privacy
            return Bound(group_privacy(total, spent.shape[1], summed=True))
        losses = self._losses(spent)
        by_entry = np.where(self._open(losses), losses.upper.max(axis=0), 0.0)
        entry, pair = self._place(losses)
        if self._chain.length is None:
            last = charged.shape[1]
            by_entry = np.append(by_entry[:last], by_entry[last:].max())
        value = float(by_entry.max())
        if entry is None:
            return Bound(value, None, frozen(by_entry))
        table = _table(losses.upper[:, min(entry, spent.shape[1] - 1)])
        return Bound(value, self._binding(pair, entry), frozen(by_entry), table)

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``, to ten digits; never above."""
        if self._stationary:
            found = largest_by_bracket(self._fast, target)
        else:
            found = largest_by_bracket(lambda e: self.uniform(e).value, target)
        # a stationary chain was searched by another order of the same operations
        while found > 0 and self.uniform(found).value > target:
            found *= 1 - LOWERED
        return found

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """The mechanism that counts the worse state, renamed after each step with λ < 0.

        In an unbounded chain it counts the entries on both sides as far as it takes to leak what
        is stated; that is less than the supremum, so a finite number of them is enough.
        """
        spent = np.asarray(epsilon, dtype=np.float64)
        return self._counting(_twice(spent))

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:  # noqa: ARG002
        """The mechanism that counts, as far as each entry's cost allows."""
        return self._counting(self._attainable(costs))

    def _attainable(self, costs: EntryCosts) -> Floats:
        """``[pair]`` or ``[pair, entry]``: what a mechanism with these costs tells."""
        states, columns = self._chain.states, self._chain.columns

        def told(cost: Cost) -> list[float]:
            both = [cost.between(states[u], states[v], columns) for u, v in PAIRS]
            return attainable(both)

        known = {cost: told(cost) for cost in costs.listed}
        if costs.by_entry is None:
            each = np.array([[0.0, 0.0], *(known[cost] for cost in costs.anywhere)])
            return np.asarray(each[np.argmax(each.max(axis=1))])  # a mechanism has one of them
        return np.array([known[cost] for cost in costs.by_entry]).T

    def _counting(self, spent: Floats) -> Witness:
        """The witness of a cost ``[pair]`` everywhere, or ``[pair, entry]``."""
        length = self._chain.length
        total = float(spent.max(axis=0).sum() if spent.ndim == 2 else spent.max() * (length or 1))
        if total > MOST:
            least = float(spent.min())
            return Witness(single_entry(least), self._binding(0, None))
        if spent.ndim == 1 and (length is None or (self._stationary and length > LISTED)):
            upper, lower, entry = self._worst(spent)
            pair = _larger(upper)
            if not np.isfinite(upper[pair]):
                reach = int(min(LONG, MOST / float(spent.max())))
                lower = stationary_losses(self._step, spent, reach, reach)[1]
            return Witness(float(lower[pair]), self._binding(pair, entry))
        if spent.ndim == 1:
            spent = np.repeat(spent[:, None], length or 1, axis=1)
        spent = self._checked(spent)
        losses = self._losses(spent)
        entry, pair = self._place(losses)
        if entry is None:
            return Witness(0.0, None)
        size = spent.shape[1]
        if entry >= size:  # further away than is listed: nothing is shown from below
            return Witness(0.0, self._binding(pair, entry))
        leak, binding = float(losses.lower[pair, entry]), self._binding(pair, entry)
        entries = tuple(range(size))
        if not spent.max() <= STEEP:
            return Witness(leak, binding, entries)
        return Witness(leak, binding, entries, self._factors(spent, entry, PAIRS[pair][0]))

    def _factors(self, spent: Floats, entry: int, counted: int) -> Floats:
        """``[entry, value]``: e^c for the value that is counted, 1 for the other."""
        steps, size = self._steps, spent.shape[1]
        kinds = [steps] * (size - 1) if isinstance(steps, BinaryStep) else steps
        flips = np.array([0, *(not step.same for step in kinds)], dtype=np.int64)
        renamed = np.cumsum(flips) % 2
        value = (counted + renamed + renamed[entry]) % 2
        own = spent[1 - value, np.arange(size)]  # pair 0 counts ones
        factors = np.ones((size, 2))
        factors[np.arange(size), value] = counting_factors(own)
        return frozen(factors)

    @cached_property
    def _steps(self) -> BinaryStep | list[BinaryStep]:
        """The one step, or one for each; equal ones are the same object."""
        table = self._chain.transition
        if table.ndim == 2:
            return BinaryStep.of(table)
        known: dict[bytes, BinaryStep] = {}
        for matrix in table:
            if matrix.tobytes() not in known:
                known[matrix.tobytes()] = BinaryStep.of(matrix)
        return [known[matrix.tobytes()] for matrix in table]

    @property
    def _step(self) -> BinaryStep:
        assert isinstance(self._steps, BinaryStep)  # noqa: S101 - a stationary chain has one
        return self._steps

    def _checked(self, spent: Floats) -> Floats:
        """The cost of each entry; of an unbounded chain with one more, and as far as secrets go."""
        length, size = self._chain.length, spent.shape[1]
        if length is None:
            more = 1
            if self._secret_entries is not None and len(self._secret_entries):
                more = max(1, min(int(self._secret_entries[-1]) + 1 - size, LISTED))
            return np.concatenate([spent, np.zeros((2, more))], axis=1)
        refuse_other_length(size, length)
        return spent

    def _losses(self, spent: Floats) -> BinaryLosses:
        """The closed form; the last result is cached, since its witness is needed next."""
        known = self.__dict__.get("_last")
        if known is None or not np.array_equal(known.charged, spent):
            start = None if self._stationary else np.asarray(self._chain.start_law)
            known = self.__dict__["_last"] = binary_losses(self._steps, spent, start=start)
        found: BinaryLosses = known
        return found

    def _open(self, losses: BinaryLosses) -> Booleans:
        """``[entry]``: whether the entry has a secret pair of which both sides are possible."""
        if self._secret_entries is None:
            return losses.possible
        size = len(losses.possible)
        secret = np.zeros(size, dtype=np.bool_)
        # of an unbounded chain, an entry far behind the last one loses less than that one
        secret[np.minimum(self._secret_entries, size - 1)] = True
        return losses.possible & secret

    def _place(self, losses: BinaryLosses) -> tuple[int | None, int]:
        """The entry and the pair with the largest loss."""
        open_ = self._open(losses)
        if not open_.any():
            return None, 0
        entry = int(np.argmax(np.where(open_, losses.upper.max(axis=0), -1.0)))
        pair = _larger(losses.upper[:, entry])
        if (
            self._secret_entries is not None and entry not in self._secret_entries
        ):  # it stands for a later one
            entry = int(self._secret_entries[self._secret_entries > entry][0])
        return entry, pair

    def _fast(self, epsilon: float) -> float:
        length = self._chain.length
        if (length or 1) * epsilon > MOST:
            return np.inf
        return float(self._worst(np.full(2, epsilon))[0].max())

    def _worst(self, cost: Floats) -> tuple[Floats, Floats, int | None]:
        """Both bounds of both pairs at the worst entry of a stationary chain, one cost everywhere.

        F of n further entries rises by less and less: by the recursion its n-th rise is at most
        the one before, or (λ < 0) at most the one before that. So the largest sum over both sides
        is found in the middle, or right beside it.
        """
        length = self._chain.length
        if length is None and self._secret_entries is None:
            return (*stationary_losses(self._step, cost, None, None), None)
        if self._secret_entries is not None:
            places: Integers | list[int] = self._secret_entries
        else:
            middle = (length or 1) // 2
            places = [k for k in (middle - 1, middle, middle + 1) if 0 <= k < (length or 1)]
        best: tuple[Floats, Floats, int | None] = np.zeros(2), np.zeros(2), None
        for entry in map(int, places):
            after = None if length is None else length - 1 - entry
            upper, lower = stationary_losses(self._step, cost, entry, after)
            if best[2] is None or upper.max() > best[0].max():
                best = upper, lower, entry
        return best


def _twice(epsilon: Floats) -> Floats:
    """``[pair, ...]``: a scalar loss, which both orders of the values cost."""
    spent = np.asarray(epsilon, dtype=np.float64)
    return np.array([spent, spent])


def _larger(upper: Floats) -> int:
    """The pair with the larger loss; (1, 0) if they are equal."""
    return 0 if upper[0] >= upper[1] else 1


def _table(upper: Floats) -> Floats:
    """``[x, y]``: the loss of each pair of values."""
    table = np.full((2, 2), -np.inf)
    for value, place in zip(upper, PAIRS, strict=True):
        table[place] = value
    return frozen(table)
