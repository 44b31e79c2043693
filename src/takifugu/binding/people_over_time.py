r"""``over = "entities × sequence"``: one draw for all rows, of people who depend on each other.

An entry is called ``ann: 2``: the third row of ann. All rows of the table together are one draw, or
the part of one that is there. An entity may have fewer rows than the prior has positions: its rows
are then the beginning, and the entries that are missing are read by no query. A mechanism on the
rows is one on all entries that costs nothing on the others, so that the bound holds as it is.

A field that relates "ann: 2" to "bob: 2" is about two people at one time. So a position must be the
same place in the order for everybody who has it: were bob to begin a day later, his third row
would be another day than ann's, and whether the prior means the third row or the third day would be
a guess. It is refused.
"""

import re

from takifugu.binding.entity_names import as_keys, matched_entities
from takifugu.binding.name_lists import SHOWN, listed
from takifugu.errors import UnsoundRequest
from takifugu.priors import Name
from takifugu.priors.prior import Prior
from takifugu.tables import Engine
from takifugu.tables.household_facts import uneven_positions

NODE = re.compile(r"(?P<who>.*): (?P<position>0|[1-9][0-9]{0,15})", re.DOTALL)


def refuse_people_over_time(name: str, prior: Prior, engine: Engine) -> None:
    """Raise unless the rows of the table are the entries of the prior, by name and position."""
    lengths = people_and_positions(name, prior)
    people = tuple(lengths)
    keys = dict(zip(as_keys(people, engine), people, strict=True))
    entity = engine.declaration.entity
    for who, count in matched_entities(name, tuple(keys), engine).items():
        if count > lengths[keys[who]]:
            raise UnsoundRequest(
                f"{name} has {lengths[keys[who]]} positions of {entity} {who!r:.80}, who has"
                f" {count} rows; use a prior with a position for each",
                field=name,
                reason="too-short",
                given=lengths[keys[who]],
                needed=count,
            )
    engine.whole.refuse_disorder()
    uneven = uneven_positions(engine, SHOWN)
    if uneven:
        order = engine.declaration.order
        places = ", ".join((order.column, *order.ties))
        raise UnsoundRequest(
            f"{uneven.count} positions, the first {listed(uneven.first)}, are at different places"
            f" in the order ({places}) for some of `{entity}`; {name} relates people at one time,"
            f" and it is not stated whether its positions are rows or times: give everybody a row"
            " at each time from the first one on, and leave out only the last ones",
            field=name,
            reason="positions-differ",
            given=uneven.first,
        )


def people_and_positions(name: str, prior: Prior) -> dict[str, int]:
    """How many positions each person of the prior has: 0 to one less, in any order."""
    names: tuple[Name, ...] = tuple(prior.entry_names or ())
    found: dict[str, set[int]] = {}
    for node in names:
        parts = NODE.fullmatch(node) if isinstance(node, str) else None
        if parts is None:
            raise UnsoundRequest(
                f"{name} has the entries {listed(names)}, and {node!r:.80} is not a person and a"
                ' position: over = "entities × sequence" needs names such as "ann: 0", "ann: 1"',
                field=name,
                reason="no-positions",
                given=node,
            )
        found.setdefault(parts["who"], set()).add(int(parts["position"]))
    if not found:
        raise UnsoundRequest(f"{name} has no entries by name", field=name, reason="no-positions")
    for who, positions in found.items():
        missing = sorted(set(range(max(positions) + 1)) - positions)
        if missing:
            raise UnsoundRequest(
                f"{name} has no entry {f'{who}: {missing[0]}'!r:.80}, but one for a later position"
                f" of {who!r:.80}; the positions of each person are 0, 1, 2, … without a gap",
                field=name,
                reason="position-missing",
                given=f"{who}: {missing[0]}",
            )
    return {who: len(positions) for who, positions in found.items()}
