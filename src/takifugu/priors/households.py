r"""Households: a few people whose joint state follows a chain, and an infection among them.

A prior over households is a `MarkovChain` whose ``columns`` are the members: a state is the tuple
of what every member is at one time. The members may be named, because a mother is not a child; or
they may be alike, if the chain is the same whoever is called the first (`is_exchangeable`).
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product

import numpy as np

from takifugu.errors import InvalidPrior, TooLarge
from takifugu.priors.markov import MarkovChain, Start
from takifugu.priors.universe import Name

MAX_MEMBERS = 8
MAX_JOINT_STATES = 256  # joint states: 8 people of 2 labels have 256; 64 take seconds, 128 minutes


def refuse_large_household(members: int, states: int) -> None:
    """Raise if a chain on the joint states of so many people is out of reach."""
    advice = (
        'use over = "entities × sequence" with a field over people and time, whose bound takes any'
        " number of them"
    )
    if members > MAX_MEMBERS:
        raise TooLarge(
            f"a household has {members} members; a chain on joint states serves at most"
            f" {MAX_MEMBERS}: {advice}",
            field="members",
            size=members,
            limit=MAX_MEMBERS,
        )
    if states > MAX_JOINT_STATES:
        raise TooLarge(
            f"a household has {states:,} joint states; at most {MAX_JOINT_STATES:,} are translated:"
            f" merge labels, or {advice}",
            field="states",
            size=states,
            limit=MAX_JOINT_STATES,
        )


def is_exchangeable(chain: MarkovChain) -> bool:
    """Whether the chain is the same law whatever order its members are put in, exactly.

    Compared are the numbers as given, under each swap of two neighbours: these make up every
    permutation. A stationary law is symmetric if the transitions are and it is the only one, which
    a chain checks; an unknown start is any law, and swaps lead from one to another.
    """
    if chain.columns is None:
        return False
    place = {state: k for k, state in enumerate(chain.states)}
    for member in range(len(chain.columns) - 1):
        swapped = []
        for state in chain.states:
            values = list(state)  # type: ignore[arg-type]
            values[member], values[member + 1] = values[member + 1], values[member]
            if tuple(values) not in place:
                return False
            swapped.append(place[tuple(values)])
        if not np.array_equal(chain.transition[..., swapped, :][..., swapped], chain.transition):
            return False
        if not isinstance(chain.start, str) and not np.array_equal(
            chain.start[swapped], chain.start
        ):
            return False
    return True


def household_contagion(
    members: int | Sequence[str],
    *,
    background: float,
    infection: float,
    recovery: float,
    labels: tuple[Name, Name] = ("well", "ill"),
    start: float | str = "stationary",
    length: int | None = None,
) -> MarkovChain:
    r"""A household in which people infect each other: SIS, step by step.

    From one time to the next, each person by themselves given who is ill now,

    .. math:: P(\text{well} \to \text{ill}) = 1 - (1-a)(1-b)^k, \qquad
              P(\text{ill} \to \text{well}) = r,

    with a = ``background``, b = ``infection``, r = ``recovery`` and k the number of members who are
    ill. All members are alike (`is_exchangeable`): every probability is computed from how many of
    them make which step, not from who does.

    >>> pair = household_contagion(2, background=0.1, infection=0.2, recovery=0.4, length=4)
    >>> pair.columns, pair.states[1]
    (('member 1', 'member 2'), ('well', 'ill'))

    Args:
        members: How many there are, called "member 1", "member 2", …; or their names.
        background: The probability that somebody well is infected from outside, in one step.
        infection: The probability that one ill member infects a well one, in one step; 0 if they
            do not infect each other.
        recovery: The probability that somebody ill is well at the next step.
        labels: What the column says of somebody well, and of somebody ill.
        start: The probability that each member is ill at first, independently; ``"stationary"``;
            or ``"unknown"`` for any law.
        length: The number of times; None if it is unbounded.
    """
    names = _members(members)
    for name, value, least in (
        ("background", background, False),
        ("infection", infection, True),
        ("recovery", recovery, False),
    ):
        if not (0 <= value <= 1 if least else 0 < value < 1 or (name == "recovery" and value == 1)):
            raise InvalidPrior(
                name,
                given=f"is {value:g}",
                needed="be a probability" + ("" if least else " above 0, or below 1 from outside"),
            )
    if len(set(labels)) != 2:
        raise InvalidPrior("labels", given="are not two", needed="name somebody well, and ill")
    refuse_large_household(len(names), 2 ** len(names))
    states = tuple(product((0, 1), repeat=len(names)))

    @cache
    def step(ill: int, fell: int, recovered: int) -> float:
        caught = -np.expm1(np.log1p(-background) + ill * _log1m(infection))
        stayed = len(names) - ill - fell, ill - recovered
        falls = caught**fell * (1 - caught) ** stayed[0]
        return float(falls * recovery**recovered * (1 - recovery) ** stayed[1])

    def between(x: tuple[int, ...], y: tuple[int, ...]) -> float:
        moves = list(zip(x, y, strict=True))
        return step(sum(x), moves.count((0, 1)), moves.count((1, 0)))

    law: Start
    if isinstance(start, str):
        law = start  # type: ignore[assignment]  # the chain refuses another word
    elif 0 <= start <= 1:
        each = [start ** sum(x) * (1 - start) ** (len(x) - sum(x)) for x in states]
        law = np.array(each)
    else:
        raise InvalidPrior("start", given=f"is {start:g}", needed="be a probability of being ill")
    return MarkovChain(
        np.array([[between(x, y) for y in states] for x in states]),
        states=tuple(tuple(labels[v] for v in x) for x in states),
        columns=names,
        start=law,
        length=length,
    )


def _members(members: int | Iterable[str]) -> tuple[str, ...]:
    if isinstance(members, bool) or (isinstance(members, int) and members < 1):
        raise InvalidPrior("members", given=f"is {members}", needed="be how many people there are")
    if isinstance(members, int):
        refuse_large_household(members, 1)
        return tuple(f"member {k}" for k in range(1, members + 1))
    names = tuple(members)
    if isinstance(members, str) or not names or len(set(names)) < len(names):
        raise InvalidPrior(
            "members", given="are not a list of names", needed="name each member once, or count"
        )
    refuse_large_household(len(names), 1)
    return names


def _log1m(probability: float) -> float:
    with np.errstate(divide="ignore"):  # nobody escapes at 1
        return float(np.log1p(-np.float64(probability)))
