"""People who affect each other, time after time: pairwise fields over people and time.

An entry is a person at a position in time, called as ``"ann: 0"``: people in order, and of each
of them the positions 0, 1, …, as the entries of a `Product` are. Couplings join a person to the
same person at the next position, and different people at the same position. Every law of that form
is a `MarkovRandomField` of zeros and ones.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

from takifugu.errors import InvalidPrior, TooLarge
from takifugu.priors.contacts import Contacts, checked_odds, hourly_pulls
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.universe import Name

MOST_ENTRIES = 100_000  # people times positions

Pulls = Mapping[tuple[Any, Any], float]


def entry_at(person: Name, position: int) -> str:
    """What the entry of a person at a position is called."""
    return f"{person}: {position}"


def field_over_time(
    people: Sequence[Name],
    *,
    field: float | Mapping[Name, float],
    onward: float,
    between: Sequence[Pulls],
    name: str = "people over time",
) -> MarkovRandomField:
    r"""Zeros and ones for each person i at each position t, with couplings in time and between.

    .. math:: P(x) \propto \exp\Big(\sum_{i,t} h_i x_{it} + J \sum_{i,t} x_{it} x_{i,t+1}
            + \sum_t \sum_{ij} J_{ij}(t)\, x_{it} x_{jt}\Big).

    Args:
        people: Everybody, each once.
        field: h, the log odds of a 1 without any couplings; one number, or one for each person.
        onward: J, from one position of a person to the next.
        between: For each position the couplings of pairs of people; as many as there are positions.
        name: What the field is called.
    """
    everybody = tuple(people)
    if not everybody or len(set(map(str, everybody))) < len(everybody):
        raise InvalidPrior(
            "people", given="are none, or share a name", needed="be named once each", reason="names"
        )
    times = len(between)
    if not times:
        raise InvalidPrior("between", given="has no position", needed="have one or more")
    if times * len(everybody) > MOST_ENTRIES:
        raise TooLarge(
            f"{len(everybody)} people at {times} positions are {times * len(everybody):,} entries;"
            f" at most {MOST_ENTRIES:,} are handled. Take fewer positions",
            field="between",
            size=times * len(everybody),
            limit=MOST_ENTRIES,
        )
    alone = field if isinstance(field, Mapping) else dict.fromkeys(everybody, field)
    if set(alone) != set(everybody):
        raise InvalidPrior(
            "field", given="is about other people", needed="have one number for each person"
        )
    known = set(everybody)
    pulls: dict[tuple[str, str], float] = {}
    for person in everybody:
        for t in range(times - 1):
            pulls[entry_at(person, t), entry_at(person, t + 1)] = onward
    for t, met in enumerate(between):
        for (one, other), pull in met.items():
            if one == other or not {one, other} <= known:
                raise InvalidPrior(
                    f"between, {t}",
                    given=f"joins {one!r} and {other!r}",
                    needed="join two of the people",
                )
            pulls[entry_at(one, t), entry_at(other, t)] = pull
    return MarkovRandomField.ising(
        {entry_at(person, t): alone[person] for person in everybody for t in range(times)},
        {pair: pull for pair, pull in pulls.items() if pull},
        name=name,
    )


def contagion_over_time(
    slices: Sequence[Contacts],
    *,
    background: float,
    odds_per_hour: float,
    again: float,
    most: float = 4.0,
    name: str = "contagion over time",
) -> MarkovRandomField:
    r"""The prior of an adversary who knows the contacts of each day, or other length of time.

    Everybody is infected (1) or not (0) at each position. Odds are ``background`` without any
    infection around; each infected contact of the same position multiplies them by
    ``odds_per_hour`` for every hour they met, but by no more than ``most``, and having been
    infected at the position before, or being so at the next, by ``again``:

    .. math:: P(x) \propto \prod_{i,t} o^{x_{it}} \prod_{i,t} g^{x_{it} x_{i,t+1}}
            \prod_t \prod_{ij} \min(m,\, r^{h_{ij}(t)})^{x_{it} x_{jt}}.

    All weights favour agreement, so the field is attractive (log-supermodular), as `contagion` is:
    with one position it is the same. An epidemic with susceptible, infected and recovered people is
    another model, and not attractive by itself.
    """
    listed = tuple(slices)
    if not listed or any(one.people != listed[0].people for one in listed):
        raise InvalidPrior(
            "slices",
            given="are none, or about different people",
            needed="have the same people at every position",
            reason="people-differ",
        )
    checked_odds(background, odds_per_hour, most)
    if not 1 <= again <= 1e100:  # also false for NaN
        raise InvalidPrior(
            "again",
            given=f"is {again:g}",
            needed="be 1 or more; 1 says that a person's past does not matter",
        )
    return field_over_time(
        listed[0].people,
        field=log(background),
        onward=log(again),
        between=[hourly_pulls(one, odds_per_hour, most) for one in listed],
        name=name,
    )
