"""Contact lists, and an infection that spreads along the contacts as a prior.

People may also affect each other time after time (`field_over_time`). Then an entry is a person at
a position in time, called as ``"ann: 0"``: people in order, and of each of them the positions 0, 1,
…, as the entries of a `Product` are. Couplings join a person to the same person at the next
position, and different people at the same position. Every law of that form is a `MarkovRandomField`
of zeros and ones.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log
from pathlib import Path
from typing import Any

from takifugu._core.atomic import read_unpacked
from takifugu._core.fingerprint import ByContent
from takifugu.errors import InvalidFile, InvalidPrior, TooLarge
from takifugu.priors.networks import MarkovRandomField
from takifugu.priors.universe import Name

SECONDS_PER_DAY = 86_400.0  # seconds
MAX_POSITIONS = 10_000  # positions in time


@dataclass(frozen=True, eq=False)
class Contacts(ByContent):
    """Pairs of people who met, with the total length of their contacts.

    Attributes:
        people: Everybody, in alphabetical order.
        roles: What each of them does, as the list says; empty if it does not.
        pairs: Pairs of people who met, each once.
        seconds: How long each pair met in total.
    """

    people: tuple[str, ...]
    roles: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        known = set(self.people)
        if not known or len(known) != len(self.people) or len(self.roles) != len(self.people):
            raise InvalidPrior(
                "people", given="are empty, or do not fit their roles", needed="be named once each"
            )
        if len(self.pairs) != len(self.seconds) or len(set(map(frozenset, self.pairs))) != len(
            self.pairs
        ):
            raise InvalidPrior("pairs", given="repeat, or lack a time", needed="be given once each")
        for (first, second), time in zip(self.pairs, self.seconds, strict=True):
            if first == second or not {first, second} <= known or not 0 < time < float("inf"):
                raise InvalidPrior(
                    "pairs",
                    given=f"hold {first!r} and {second!r} for {time:g} s",
                    needed="join two known people for a positive time",
                )


def read_contacts(path: str | Path, *, seconds: float = 20.0) -> Contacts:
    """A contact list: one line ``t i j [role_i role_j]`` for each ``seconds`` of contact.

    Fields are separated by blanks or tabs (the lists of SocioPatterns); ``.gz`` is unpacked. t is a
    time in seconds; the same pair twice at the same t counts once.
    """
    roles, met = _read(path, seconds)
    return _contacts(roles, {pair: len(times) for pair, times in met.items()}, seconds)


def read_contact_slices(
    path: str | Path, *, times: int | None = None, seconds: float = 20.0
) -> tuple[Contacts, ...]:
    """The contacts of each day, or of ``times`` stretches of equal length, with all people in each.

    Days are 86,400 s, cut where t is a multiple of that: midnight UTC of Unix times. A day without
    contacts between two others counts as well.
    """
    roles, met = _read(path, seconds)
    moments = [float(t) for at in met.values() for t in at]
    first, last = min(moments), max(moments)
    if times is None:
        start, step = SECONDS_PER_DAY * floor(first / SECONDS_PER_DAY), SECONDS_PER_DAY
        count = floor((last - start) / step) + 1
    else:
        if isinstance(times, bool) or not 1 <= times <= MAX_POSITIONS:
            raise InvalidPrior(
                "times", given=f"is {times}", needed=f"be a number from 1 to {MAX_POSITIONS:,}"
            )
        start, count = first, times
        step = (last + seconds - first) / times
    if count > MAX_POSITIONS:
        raise InvalidFile(
            Path(path).name,
            given=f"spans {count:,} days",
            needed=f"span at most {MAX_POSITIONS:,}; are its times in seconds?",
            reason="span",
        )
    slices: list[dict[tuple[str, str], int]] = [{} for _ in range(count)]
    for pair, at in met.items():
        for t in at:
            part = slices[min(max(floor((float(t) - start) / step), 0), count - 1)]
            part[pair] = part.get(pair, 0) + 1
    return tuple(_contacts(roles, part, seconds) for part in slices)


def _contacts(
    roles: Mapping[str, str], met: Mapping[tuple[str, str], int], seconds: float
) -> Contacts:
    people, pairs = tuple(sorted(roles)), tuple(sorted(met))
    return Contacts(
        people,
        tuple(roles[person] for person in people),
        pairs,
        tuple(seconds * met[pair] for pair in pairs),
    )


def _read(
    path: str | Path, seconds: float
) -> tuple[dict[str, str], dict[tuple[str, str], set[str]]]:
    """The role of everybody, and the times at which each pair met."""
    place = Path(path)
    if not 0 < seconds < float("inf"):
        raise InvalidPrior("seconds", given=f"is {seconds:g}", needed="be a positive time")
    needed = "be a readable list of contacts, plain or gzipped"
    try:
        lines = read_unpacked(place, field=place.name, needed=needed).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidFile(place.name, given="is not text", needed=needed) from error
    met: dict[tuple[str, str], set[str]] = defaultdict(set)
    roles: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        if len(words) not in (3, 5) or words[1] == words[2] or not _is_time(words[0]):
            raise InvalidFile(
                f"{place.name}, line {number}",
                given=f"holds {len(words)} fields that are not a contact",
                needed="hold t i j, or t i j role_i role_j, with i and j different",
            )
        met[min(words[1:3]), max(words[1:3])].add(words[0])
        for person, role in zip(words[1:3], words[3:5] or ("", ""), strict=True):
            if roles.setdefault(person, role) != role:
                raise InvalidFile(
                    f"{place.name}, line {number}",
                    given="gives a person another role than before",
                    needed="give each person one role",
                )
    if not met:
        raise InvalidFile(place.name, given="holds no contact", needed="hold at least one")
    return roles, dict(met)


def contagion(
    contacts: Contacts,
    *,
    background: float,
    odds_per_hour: float,
    most: float = 4.0,
    name: str = "contagion",
) -> MarkovRandomField:
    r"""The prior of an adversary who knows the contacts: an infection spreads along them.

    Everybody is infected (1) or not (0). Somebody whose contacts are all healthy is infected with
    odds ``background``; each infected contact multiplies the odds by ``odds_per_hour`` for every
    hour they met, but by no more than ``most``:

    .. math:: P(x) \propto \prod_i o^{x_i} \prod_{ij} \min(m,\, r^{t_{ij}})^{x_i x_j}.

    With r ≥ 1 all weights favour agreement, so the field is attractive (log-supermodular).
    ``background`` is not the share of people infected; that is higher.
    """
    checked_odds(background, odds_per_hour, most)
    return MarkovRandomField.ising(
        dict.fromkeys(contacts.people, log(background)),
        hourly_pulls(contacts, odds_per_hour, most),
        name=name,
    )


def checked_odds(background: float, odds_per_hour: float, most: float) -> None:
    """Refuse odds that are not positive, and factors below 1."""
    if not 0 < background < float("inf"):
        raise InvalidPrior("background", given=f"is {background:g}", needed="be positive odds")
    if not (1 <= odds_per_hour < float("inf") and 1 <= most <= 1e100):
        raise InvalidPrior(
            "odds_per_hour",
            given=f"is {odds_per_hour:g} and `most` is {most:g}",
            needed="be 1 or more, and finite; 1 says that contacts do not matter",
        )


def hourly_pulls(
    contacts: Contacts, odds_per_hour: float, most: float
) -> dict[tuple[str, str], float]:
    """The coupling of each pair: the logarithm of what an infected contact does to the odds."""
    rate, cap = log(odds_per_hour) / 3600, log(most)
    return {
        pair: min(cap, rate * time)
        for pair, time in zip(contacts.pairs, contacts.seconds, strict=True)
    }


def _is_time(word: str) -> bool:
    try:
        return abs(float(word)) < float("inf")
    except ValueError:
        return False


MAX_FIELD_ENTRIES = 100_000  # people times positions

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
    if times * len(everybody) > MAX_FIELD_ENTRIES:
        raise TooLarge(
            f"{len(everybody)} people at {times} positions are {times * len(everybody):,} entries;"
            f" at most {MAX_FIELD_ENTRIES:,} are handled. Take fewer positions",
            field="between",
            size=times * len(everybody),
            limit=MAX_FIELD_ENTRIES,
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
        for (first, second), pull in met.items():
            if first == second or not {first, second} <= known:
                raise InvalidPrior(
                    f"between, {t}",
                    given=f"joins {first!r} and {second!r}",
                    needed="join two of the people",
                )
            pulls[entry_at(first, t), entry_at(second, t)] = pull
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
    if not listed or any(contacts.people != listed[0].people for contacts in listed):
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
        between=[hourly_pulls(contacts, odds_per_hour, most) for contacts in listed],
        name=name,
    )
