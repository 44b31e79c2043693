"""Influence curves of Markov chains, of any order and by hour of the day, rounded up."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, repeat

import numpy as np

from takifugu._core.numeric import Booleans, Floats
from takifugu.errors import InvalidWorld, TooLarge
from takifugu.influence.chain.splitting import (
    ALL_SECRETS,
    MAX_CURVE_NUMBERS,
    CurveRequest,
    EntryLeaks,
    PairLeaks,
    Pairs,
    assemble,
    curve_request,
    entry_time,
)
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.rounded_ratios import (
    LogProduct,
    Side,
    groups_ratio_up,
    largest_ratios,
    masses_ratio_up,
    mixtures_ratio_up,
    products,
    rounding_of_leaks,
    scaled_rows,
    turned,
)
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.markov import MarkovChain, reachable
from takifugu.priors.secrets import Secrets
from takifugu.priors.time_of_day import TimeOfDayChain

MAX_SETTLING_STEPS = 4096  # to wait for a law to become stationary before all later are bounded
SETTLED = 1e-10  # nats; two laws this close count as one
MAX_DEFAULT_WORK = 2e9  # multiplications for the splits of a curve of order k, by default

# which pairs can happen, the ratios of their laws, which of these are exact; and the laws
Offsets = tuple[Booleans, Floats, Booleans, LogProduct]


def chain_curve(
    chain: MarkovChain,
    secrets: Secrets = ALL_SECRETS,
    *,
    max_exposed: int | None = None,
    symmetric: bool = False,
    by_entry: bool | None = None,
) -> InfluenceCurve:
    r"""The influence curve of a Markov chain, for each ordered pair of values (or groups).

    With the nearest seen entries at distances dL and dR (see `splitting` for why the best H is
    an interval), what is seen right and left is independent given X_i, so that two terms add:

    .. math:: \max_z \log\frac{P^{d_R}(x,z)}{P^{d_R}(y,z)}
            + \max_l \log\frac{P^{d_L}(l,x)}{P^{d_L}(l,y)} + \log\frac{\pi_i(y)}{\pi_i(x)},

    the maxima over what x can lead to and come from. The position i enters only through its law
    and through which l are possible. An entry near an end has the splits of one further inside
    and others that show less at the same price: where (dL, dR) would reach past the end, exposing
    all of that side leaks only one of two terms that are both 0 or more. So in a stationary chain
    one class of entries stands for all when ``max_exposed`` ≤ (length − 1)/2. Otherwise, and near a
    given start, entries have rows of their own. Later entries of a chain with a given start are
    bounded together: for j ≥ D the law of entry j is a mixture of rows of :math:`P^D`, hence
    :math:`\pi_j(y)/\pi_j(x) \le \max_l P^D(l,y)/P^D(l,x)`.

    For an ordered pair the ratio in its own direction is enough: the proof of Theorem 6 bounds
    P(ω|s)/P(ω|s′) by the group loss times max P(x_L|s)/P(x_L|s′), and uses no other. The paper's
    a† takes the absolute value, that is one split for both directions: ``symmetric=True``. It is
    never smaller, and larger where the two directions have different best splits.

    Every leak is at least the exact value for the chain as given (rows divided by their exact
    sums); ``exact`` says where it is above it by rounding only. Values that are impossible at an
    entry are left out there. Groups are maximised jointly over both sides, not bounded by values.

    >>> curve = chain_curve(MarkovChain([[0.8, 0.2], [0.2, 0.8]], length=1000))
    >>> curve.to_dp(1.0).round(4)
    np.float64(0.0765)

    Args:
        chain: The prior.
        secrets: Which values, groups of values and entries (numbered from 0) are secret.
        max_exposed: The largest b, besides all entries; by default all of a chain of up
            to 40, else 100 or half the chain.
        symmetric: The paper's reading: one split for both directions of a pair.
        by_entry: Keep the rows of different entries apart, or take their maximum; by default
            they are kept apart, which is never worse, while there is room.
    """
    request = curve_request(
        chain.states,
        chain.length,
        secrets,
        max_exposed=max_exposed,
        symmetric=symmetric,
        by_entry=by_entry,
    )
    return assemble(request, Walk(chain, request).entry_leaks())


def higher_order_curve(
    prior: HigherOrderChain, secrets: Secrets = ALL_SECRETS, *, max_exposed: int | None = None
) -> InfluenceCurve:
    r"""The influence curve of a higher-order chain: an upper bound at every point.

    Let X have order k and windows :math:`Y_i = (X_{i-k+1}, \ldots, X_i)`. Expose the entries from
    :math:`i - d_L + 1` to :math:`i + d_R - 1`: :math:`b = d_L + d_R - 1` of them. Seen are X up to
    :math:`i - d_L` and from :math:`i + d_R` on. Given :math:`Y_{i-d_L}` the values before it are
    independent of all later ones. Given
    :math:`Y_{i+d_R+k-1} = (X_{i+d_R}, \ldots, X_{i+d_R+k-1})` the values after it are independent
    of all earlier ones. So with A and B the windows that end in the two values of a secret pair,
    the leak is

    .. math:: \max_{l,z} \log \frac{P(Y_{i-d_L}=l, Y_{i+d_R+k-1}=z \mid Y_i \in A)}
                                   {P(Y_{i-d_L}=l, Y_{i+d_R+k-1}=z \mid Y_i \in B)},

    that of a Markov chain and two groups of states (`GroupLeaks`) whose
    nearest seen state to the right is k − 1 steps further away. Near the ends of a finite sequence
    less is seen than these two windows, since some of their values come before the first entry or
    after the last one; the leak of what is seen is then at most as large. The curve is an upper
    bound also because sets other than intervals are not tried.

    By default it goes as far as it is quick: fewer entries if there are many windows.

    >>> chain = HigherOrderChain(
    ...     [[[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.9]]], length=1000
    ... )
    >>> higher_order_curve(chain).to_dp(1.0).round(4)
    np.float64(0.0227)
    """
    values = curve_request(
        prior.states,
        prior.length,
        secrets,
        max_exposed=max_exposed,
        symmetric=False,
        by_entry=None,
    )
    last = prior.windows[:, -1]

    def ending_in(side: Side) -> Side:
        return tuple(np.flatnonzero(np.isin(last, side)).tolist())

    sides = {side: ending_in(side) for pair in values.single + values.grouped for side in pair}
    pairs = tuple(
        (sides[a], sides[b]) for a, b in values.single + values.grouped if sides[a] and sides[b]
    )
    if not pairs:
        raise InvalidWorld(
            "secrets", given="name values that never happen", needed="name values that can"
        )
    most = values.most
    if max_exposed is None:
        each = len(pairs) * len(last) ** 2 * max(len(a) + len(b) for a, b in pairs)
        most = max(1, min(most, int(np.sqrt(2 * MAX_DEFAULT_WORK / each))))
    request = replace(
        values,
        states=prior.window_chain.states,
        most=most,
        single=(),
        grouped=pairs,
        side_names={windows: values.side_name(side) for side, windows in sides.items()},
    )
    walk = Walk(prior.window_chain, request, shift=prior.order - 1)
    return assemble(request, walk.entry_leaks())


def time_of_day_curve(
    prior: TimeOfDayChain, secrets: Secrets, *, max_exposed: int | None = None
) -> InfluenceCurve:
    """The curve for entities that begin at any hour: an upper bound at every point.

    The entries of an entity that begins at hour h are entries of one chain Z
    (`takifugu.priors.time_of_day.TimeOfDayChain`), of which it shows T. A mechanism on them is one
    on Z that reads no other entry, so that every point of the curve of Z, as long as any entity
    needs, is one of theirs: b entries exposed, the rest leaks at most a(b). All T of them exposed
    leak nothing. The curve is an upper bound: a curve for each hour would be below it.
    """
    length, hours = prior.entries, prior.hours
    if secrets.entries is not None:
        named = [entry_time(entry, length) for entry in secrets.entries]
        later = {i + h for i in named for h in range(hours)}
        secrets = replace(secrets, entries=tuple(sorted(later)))
    days = chain_curve(prior.days_of(length + hours - 1), secrets, max_exposed=max_exposed)
    shorter = np.flatnonzero(days.exposed < length)
    leak = days.leak[:, shorter]
    return InfluenceCurve(
        exposed=np.append(days.exposed[shorter], length),
        leak=np.concatenate([leak, np.zeros((len(leak), 1))], axis=1),
        entries=length,
        pairs=days.pairs,
        exact=np.zeros((len(leak), len(shorter) + 1), dtype=bool),
    )


@dataclass(frozen=True)
class GroupLeaks(EntryLeaks):
    r"""What one entry leaks about "in A" against "in B".

    Given only that X_i is in A, left and right are not independent: both depend on which value of
    A it is. The ratio of the mixtures is maximised over (l, z) together,

    .. math:: \max_{l,z} \log \frac{\sum_{x \in A} P^{d_L}(l,x)\,P^{d_R}(x,z)}
                                  {\sum_{x \in B} P^{d_L}(l,x)\,P^{d_R}(x,z)}
              + \log\frac{\pi_i(B)}{\pi_i(A)},

    with the law of entry i in place of a row of :math:`P^{d_L}` where nothing is seen to the
    left, and 1 in place of a column of :math:`P^{d_R}` where nothing is seen to the right.
    """

    pairs: Pairs
    before: Sequence[LogProduct]  # [distance - 1], rows: the l that are possible there
    after: Sequence[LogProduct]
    law: LogProduct
    offset: Floats
    _scaled: dict[tuple[int, str, int], tuple[Floats, float]] = field(default_factory=dict)

    def leaks(self, left: int, rights: range) -> Iterator[Floats]:
        """See `EntryLeaks`."""
        for right in rights:
            yield self._leak(left, right)

    def _leak(self, left: int, right: int) -> Floats:
        ends = [
            reach is not None and distance > reach
            for reach, distance in zip(self.reach, (left, right), strict=True)
        ]
        total = np.zeros(len(self.pairs))
        if all(ends):
            return total
        for k in np.flatnonzero(self.keep):
            past = self._side(int(k), "before", 0 if ends[0] else left)
            future = self._side(int(k), "after", 0 if ends[1] else right)
            size = len(self.pairs[k][0])
            total[k] = groups_ratio_up(past, future, size, float(self.offset[k]))
        return total

    def _side(self, pair: int, which: str, distance: int) -> tuple[Floats, float]:
        """``[l or z, value of A or B]``: logarithms up to a shift of each row, and their error."""
        key = (pair, which, distance)
        if key not in self._scaled:
            columns = [x for side in self.pairs[pair] for x in side]
            if which == "before":
                source = self.before[distance - 1] if distance else self.law
                log = source.log[:, columns]
            elif distance:
                source = self.after[distance - 1]
                log = source.log[columns].T
            else:
                source = LogProduct(np.zeros((1, len(columns))), 0.0)
                log = source.log
            self._scaled[key] = scaled_rows(log, source.error)
        return self._scaled[key]


class Walk:
    """A chain unrolled as far as a curve needs, with the tables that entries share.

    With ``shift`` the nearest seen state to the right is taken to be that many steps further away
    than its distance says; the leaks of groups are then upper bounds. For pairs of groups only.
    """

    def __init__(self, chain: MarkovChain, request: CurveRequest, *, shift: int = 0) -> None:
        chain.refuse_unless_one_law("an influence curve")
        self.chain, self.request, self.shift = chain, request, shift
        self.stationary = chain.stationary_start
        length = chain.length
        self.far = request.most if length is None else min(request.most, max(length - 1, 1))
        if not chain.homogeneous:
            size = len(chain.transition) * self.far * len(chain.states) ** 2
            if size > 2 * MAX_CURVE_NUMBERS:
                raise TooLarge(
                    f"a chain with a matrix for each of {len(chain.transition):,} steps needs"
                    f" {size:,} numbers, more than {2 * MAX_CURVE_NUMBERS:,}; take a smaller"
                    " max_exposed",
                    field="max_exposed",
                    size=size,
                    limit=2 * MAX_CURVE_NUMBERS,
                )
        self._powers: dict[int, list[LogProduct]] = {}
        self._tables: dict[tuple[object, ...], Floats] = {}
        self._laws: list[LogProduct] = []
        self._law_steps = products(
            chain.start_law[None],
            chain.start_error,
            repeat(chain.kernel())
            if chain.homogeneous
            else (chain.kernel(t) for t in range(len(chain.transition))),
            chain.row_error,
        )

    def law(self, entry: int) -> LogProduct:
        """``[0, x]``: the logarithm of the law of an entry."""
        entry = 0 if self.stationary else entry
        while len(self._laws) <= entry:
            self._laws.append(next(self._law_steps))
        return self._laws[entry]

    def power(self, entry: int, distance: int) -> LogProduct:
        """``[x, z]``: log P(X at ``entry`` + ``distance`` is z | X at ``entry`` is x)."""
        first = 0 if self.chain.homogeneous else entry
        if first not in self._powers:
            kernel, error = self.chain.kernel(first), self.chain.row_error
            last = None if self.chain.length is None else self.chain.length - 1
            later = (
                repeat(kernel)
                if self.chain.homogeneous
                else (self.chain.kernel(t) for t in range(first + 1, last or 0))
            )
            steps = products(kernel, error, later, error)
            self._powers[first] = list(islice(steps, self.far + self.shift))
        return self._powers[first][distance - 1]

    def after(self, entry: int, distance: int) -> Floats:
        """``[pair]``: what the entry at ``distance`` to the right leaks."""
        key = ("after", 0 if self.chain.homogeneous else entry, distance)
        if key not in self._tables:
            power = self.power(entry, distance)
            self._tables[key] = largest_ratios(power, self.request.left, self.request.right)
        return self._tables[key]

    def before(self, entry: int, distance: int, support: Booleans) -> Floats:
        """``[pair]``: what the entry at ``distance`` to the left leaks, without the laws' ratio."""
        key = ("before", 0 if self.chain.homogeneous else entry, distance, support.tobytes())
        if key not in self._tables:
            power = self.power(entry - distance, distance)
            seen = turned(LogProduct(power.log[support], power.error))
            self._tables[key] = largest_ratios(seen, self.request.left, self.request.right)
        return self._tables[key]

    def support(self, entry: int) -> Booleans:
        """``[x]``: which states are possible at an entry."""
        row: Booleans = self.law(entry).possible[0]
        return row

    def entry_leaks(self) -> list[list[EntryLeaks]]:
        """One item for each entry, or class of entries, that the curve has rows for."""
        length, most = self.chain.length, self.request.most
        entries = self.request.entries
        settled = self._settles()
        inside = most + (settled or 0)  # from here on all possible pasts look alike
        if entries is not None:
            if self.stationary and any(self._interior(i) for i in entries):
                return [self.later(most, settled)]
            listed = self.stationary or not self.chain.homogeneous
            far = [] if listed else [i for i in entries if i >= inside + MAX_SETTLING_STEPS]
            near = [self.at(i) for i in entries if listed or i < inside + MAX_SETTLING_STEPS]
            return [*near, self.later(inside, settled, far)] if far else near
        if length is not None and (not self.chain.homogeneous or length <= inside + most):
            self.request.apart(length)  # an error now rather than after all the work
            return [self.at(i) for i in range(length)]
        late = self.later(inside, settled)
        return [late] if self.stationary else [*(self.at(i) for i in range(inside)), late]

    def _interior(self, entry: int) -> bool:
        length, most = self.chain.length, self.request.most
        return entry >= most and (length is None or length - 1 - entry >= most)

    def _settles(self) -> int | None:
        """The time from which on the same states are possible; None if there is none soon."""
        if self.stationary:
            return 0
        follows = self.chain.kernel() > 0
        support = self.chain.start_law > 0
        for time in range(2 * len(support) + 64):
            further = np.asarray(follows[support].any(axis=0))
            if (further == support).all():
                return time
            support = further
        return None

    def at(self, entry: int) -> list[EntryLeaks]:
        """The rows of one entry."""
        length, law = self.chain.length, self.law(entry)
        reach = (entry, None if length is None else length - 1 - entry)
        behind = min(entry, self.far)
        ahead = self.far if reach[1] is None else min(reach[1], self.far)
        supports = [self.support(entry - d) for d in range(1, behind + 1)]

        def offsets(pairs: Pairs) -> Offsets:
            keep, offset = masses_ratio_up(law, pairs)
            return keep, offset, np.ones(len(keep), dtype=bool), law

        return self._parts(str(entry), entry, reach, supports, ahead, offsets, law)

    def later(self, first: int, settled: int | None, far: Sequence[int] = ()) -> list[EntryLeaks]:
        """The rows that hold for every entry from ``first`` on, as if the chain were unbounded.

        With ``far``: for these entries only, each at least `MAX_SETTLING_STEPS` further.
        """
        supports = [self._ever() if settled is None else self.support(settled)] * self.far
        return self._parts(
            *(f"{first}+", first, (None, None), supports, self.far),
            lambda pairs: self._later_offset(first, settled, pairs, far),
            self.law(0),
            room=0.0 if self.stationary else 4 * SETTLED,
        )

    def _parts(
        self,
        name: str,
        entry: int,
        reach: tuple[int | None, int | None],
        supports: Sequence[Booleans],
        ahead: int,
        offsets: Callable[[Pairs], Offsets],
        law: LogProduct,
        *,
        room: float = 0.0,
    ) -> list[EntryLeaks]:
        """Single values, then groups, as far as ``supports`` and ``ahead`` reach to both sides."""
        parts: list[EntryLeaks] = []
        behind, further = range(1, len(supports) + 1), range(1, ahead + 1)
        if pairs := self.request.single:
            keep, offset, exact, laws = offsets(pairs)
            error = room + self._error(entry, (len(supports), ahead), laws)
            before = [self.before(entry, d, supports[d - 1]) for d in behind]
            after = [self.after(entry, d) for d in further]
            parts.append(PairLeaks(name, reach, keep, exact, before, after, offset, error=error))
        if pairs := self.request.grouped:
            keep, offset, exact, laws = offsets(pairs)
            error = room + self._error(entry, (len(supports), ahead), laws, pairs)
            powers = [self.power(entry - d, d) for d in behind]
            seen = [
                LogProduct(power.log[support], power.error)
                for power, support in zip(powers, supports, strict=True)
            ]
            future = [self.power(entry, d + self.shift) for d in further]
            known = exact & (not self.shift)
            shown = (pairs, seen, future, law, offset)
            parts.append(GroupLeaks(name, reach, keep, known, *shown, error=error))
        return parts

    def _error(
        self,
        entry: int,
        sides: tuple[int, int],
        law: LogProduct,
        grouped: Pairs = (),
    ) -> float:
        """How far leaks may be above the truth by rounding, at so many distances to both sides."""
        used = [self.power(entry - d, d) for d in range(1, sides[0] + 1)]
        used += [self.power(entry, d + self.shift) for d in range(1, sides[1] + 1)]
        members = max((len(a) + len(b) for a, b in grouped), default=0)
        return rounding_of_leaks(used, law, members)

    def _ever(self) -> Booleans:
        """``[x]``: the states that are possible at some entry."""
        first = self.chain.start_law > 0
        return np.asarray(reachable(self.chain.kernel() > 0)[first].any(axis=0))

    def _later_offset(
        self,
        first: int,
        settled: int | None,
        pairs: Pairs,
        far: Sequence[int] = (),
    ) -> Offsets:
        """The largest offset of any entry from ``first`` on, and where it is one of theirs.

        Also the laws that they have at last, with the largest error that was met.
        If only entries that are ``far`` are asked about, no other one counts: where the law has
        settled, theirs is the one that all mixtures have.
        """
        if self.stationary:
            keep, offset = masses_ratio_up(self.law(0), pairs)
            return keep, offset, np.ones(len(keep), dtype=bool), self.law(0)
        length, most = self.chain.length, self.request.most
        highest_yet = np.full(len(pairs), -np.inf)
        attained = highest_yet.copy()  # by an entry with enough others to its right
        ever = self._ever() if settled is None else self.support(settled)
        begin = settled or 0  # the mixtures are of rows that are possible from this entry on
        kernel, error = self.chain.kernel(), self.chain.row_error
        steps = products(kernel, error, repeat(kernel), error)
        laws = self.law(0)
        for entry, power in enumerate(steps, start=begin + 1):
            if entry < first:
                continue
            if entry == length:
                break
            if not far:
                keep, offset = masses_ratio_up(self.law(entry), pairs)
                np.copyto(highest_yet, np.maximum(highest_yet, offset), where=keep)
                if length is None or length - 1 - entry >= most:
                    np.copyto(attained, np.maximum(attained, offset), where=keep)
            met = laws.error if far else max(laws.error, self.law(entry).error)
            rows = LogProduct(power.log[ever], power.error)
            laws = LogProduct(rows.log, max(met, rows.error))
            one_law = _spread(rows) <= SETTLED + 2 * rows.error
            if entry >= first + MAX_SETTLING_STEPS or one_law:
                highest_yet = np.maximum(highest_yet, mixtures_ratio_up(rows, pairs))
                if far and one_law and (length is None or length - 1 - min(far) >= most):
                    attained = highest_yet
                break
        keep = highest_yet > -np.inf
        with np.errstate(invalid="ignore"):
            near: Booleans = np.asarray(highest_yet - attained <= 4 * SETTLED)
        exact = near if settled is not None else np.zeros_like(near)
        return keep, np.where(keep, highest_yet, 0.0), exact, laws


def _spread(rows: LogProduct) -> float:
    """How far apart the rows are, in nats; infinite if some reach what others do not."""
    possible = rows.possible
    if (possible.any(axis=0) != possible.all(axis=0)).any():
        return np.inf
    logs = rows.log[:, possible.all(axis=0)]
    return float(np.max(logs.max(axis=0) - logs.min(axis=0)))
