"""Synthetic contact lists: groups that meet often, everybody else now and then.

The lists that people wear badges for (SocioPatterns) are dense, and their contact times are
heavy-tailed: most pairs meet for a minute in all, a few for hours, most of these within a class or
a ward. `school` has the size of the primary school among them: 242 people in ten classes with
their teachers, 8,317 pairs, 125,773 contacts of 20 seconds.
"""

from math import comb

import numpy as np

from takifugu.errors import UnsoundRequest
from takifugu.priors.contacts import Contacts

SECONDS = 20.0  # of one contact
SPREAD = 1.1  # of the logarithm of a pair's share of the contacts
CLOSER = 6.0  # times as much of it within a group


def contact_list(
    people: int,
    pairs: int,
    contacts: int,
    *,
    groups: int,
    rng: np.random.Generator,
) -> Contacts:
    """``contacts`` contacts of 20 s between ``pairs`` pairs of ``people`` in ``groups`` groups.

    Everybody meets all of their group first; the other pairs are drawn evenly. Every pair meets
    once, and the other contacts fall to pairs by lognormal shares.
    """
    if not (0 < groups <= people and 0 < pairs <= min(comb(people, 2), contacts)):
        raise UnsoundRequest(
            f"{pairs} pairs of {people} people in {groups} groups with {contacts} contacts are not"
            " possible; every pair needs a contact, and every group somebody",
            field="pairs",
        )
    group = np.arange(people) % groups
    one, other = np.triu_indices(people, 1)
    same = group[one] == group[other]
    order = np.argsort(rng.random(len(one)) - same)[:pairs]  # those of a group come first
    one, other, same = one[order], other[order], same[order]
    share = np.exp(SPREAD * rng.standard_normal(pairs)) * np.where(same, CLOSER, 1.0)
    met = 1 + rng.multinomial(contacts - pairs, share / share.sum())
    width = len(str(people - 1))
    names = tuple(f"{k:0{width}d}" for k in range(people))
    found = sorted(zip(one.tolist(), other.tolist(), met.tolist(), strict=True))
    return Contacts(
        names,
        tuple(f"group {g}" for g in group.tolist()),
        tuple((names[i], names[j]) for i, j, _ in found),
        tuple(SECONDS * count for _, _, count in found),
    )


def school(*, rng: np.random.Generator) -> Contacts:
    """A list of the size and density of a primary school."""
    return contact_list(242, 8317, 125_773, groups=10, rng=rng)
