"""Priors, entries and declarations that are refused in tests of what a refusal says."""

from dataclasses import replace
from typing import Any

import numpy as np

from takifugu.binding.entries import stated_entries
from takifugu.priors import IndependentEntries, MarkovChain
from takifugu.session import Entries
from tests.session.plain_engine import DECLARED
from tests.session.tables import NETWORK

STATES = ("home", "ward", "clinic")
CHAIN = MarkovChain(np.full((3, 3), 1 / 3), states=STATES, length=4)
TABLE = DECLARED
ONE = replace(TABLE, protected=TABLE.protected[:1])
NONE_PUBLIC = replace(TABLE, public=())
LETTERS = tuple(f"n{k}" for k in range(12))
HALVES: dict[str | int, float] = {"home": 0.5, "ward": 0.5}
FREE = IndependentEntries({"x": HALVES, "y": HALVES})
NETS = replace(NETWORK, entries=("ann", "bob"), parents=((), ("ann",)))
SEQUENCE, ENTITIES, ROW = Entries("sequence"), Entries("entities"), Entries("row")
HOUSE = Entries("household", household="zone")
DAYS = replace(TABLE.order, kind="time", zone="Europe/Berlin")


def read(priors: Any, over: Any = None, **how: Any) -> Any:
    """What the entries of priors are."""
    named = priors if isinstance(priors, dict) else {"prior": priors}
    return stated_entries(named, over, entity="person", **how)
