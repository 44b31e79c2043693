"""Machines that are played by hand: one history each in which everything happens once."""

from fractions import Fraction
from typing import Any

from torture.models.counted_machine import CountedMachine, Tally
from torture.models.project_machine import ProjectMachine
from torture.models.server_machine import ServerMachine
from torture.models.session_machine import SessionMachine
from torture.models.table_model import Asked

Play = tuple[tuple[str, dict[str, Any]], ...]
SOME = Asked("histogram", "place", (1, 3), 1, "0.5")
OTHER = Asked("count", "place", (0, 2), 0, "0.25")
LESS = Asked("count", "place", (0, 2), 0, "0.125")
MUCH = Asked("histogram", "place", None, 0, "2")

RELEASES: Play = (
    ("begin", {"over": "sequence"}),
    ("ask", {"handle": 0, "asked": SOME, "analyst": None}),
    ("ask_twice", {"first": 1, "asked": SOME, "other": OTHER}),
    ("keep_plan", {"handle": 0, "asked": MUCH}),
    ("set_back", {"number": 0, "while_open": True}),
    ("interrupt", {"handle": 0, "asked": MUCH, "point": "written", "elsewhere": False}),
    (
        "request",
        {"handle": 0, "asked": LESS, "key": "first", "point": "drawn", "elsewhere": False},
    ),
    ("back_up", {"handle": 0, "number": 1}),
    (
        "request",
        {"handle": 0, "asked": LESS, "key": "first", "point": "stored", "elsewhere": False},
    ),
    ("request", {"handle": 1, "asked": LESS, "key": "first", "point": None, "elsewhere": False}),
    ("set_back", {"number": 1, "while_open": False}),
    ("change_rows", {"what": "value", "which": 3, "handle": 0}),
    ("request", {"handle": 1, "asked": MUCH, "key": "second", "point": "drawn", "elsewhere": True}),
    ("request", {"handle": 1, "asked": MUCH, "key": "second", "point": None, "elsewhere": False}),
    ("request", {"handle": 0, "asked": MUCH, "key": "second", "point": None, "elsewhere": True}),
    ("edit", {"naming": 1, "clock": 1}),
    ("ask", {"handle": 1, "asked": SOME, "analyst": None}),
    ("accept_edit", {"handle": 0, "unchanged": False}),
    ("ask_little", {"handle": 0, "asked": SOME}),
    ("replace_prior", {"handle": 0, "prior": 1, "accept": True}),
    ("budget", {"handle": 1, "most": Fraction(1), "analyst": None}),
    ("release_late", {"handle": 1, "which": 0}),
    ("ask", {"handle": 0, "asked": MUCH, "analyst": None}),
    ("edit_behind_its_back", {"what": "a total"}),
)
REUSES: Play = (  # of an answer, by another analyst, after cells were named anew
    ("begin", {"over": "sequence"}),
    ("ask_little", {"handle": 0, "asked": SOME}),
    ("accept_edit", {"handle": 0, "unchanged": False}),
    ("budget", {"handle": 0, "most": Fraction(1), "analyst": "ana"}),
    ("ask_little", {"handle": 1, "asked": SOME}),
    ("ask_little", {"handle": 0, "asked": SOME}),
)
SERVED: Play = (
    ("begin", {}),
    ("ask", {"asked": SOME, "who": "ana"}),
    ("request", {"asked": OTHER, "who": "bo", "key": "first", "kill": None}),
    ("request", {"asked": OTHER, "who": "bo", "key": "first", "kill": None}),
    ("lose_workers", {}),
    ("another_under_its_key", {"which": 0, "asked": MUCH}),
    ("ask_without_right", {"asked": SOME, "who": "udo"}),
    ("edit", {"naming": 1, "clock": 1}),
    ("ask", {"asked": SOME, "who": "ana"}),
    ("accept", {"what": "declaration"}),
    ("ask", {"asked": SOME, "who": "ana"}),
    ("edit", {"naming": 0, "clock": 1}),
    ("accept", {"what": "declaration"}),
    ("edit", {"naming": 1, "clock": 1}),
    ("accept", {"what": "declaration"}),
    ("ask", {"asked": SOME, "who": "bo"}),
    ("replace_prior", {"prior": 1}),
    ("ask", {"asked": OTHER, "who": "ana"}),
    ("accept", {"what": "policy"}),
    ("budget", {"most": "1", "who": None}),
    ("edit_row", {"which": 3}),
    ("ask", {"asked": MUCH, "who": "ana"}),
)
PLAYS: dict[str, tuple[type[CountedMachine], Play]] = {
    "session": (SessionMachine, RELEASES),
    "project": (ProjectMachine, RELEASES),
    "server": (ServerMachine, SERVED),
    "session, reused": (SessionMachine, REUSES),
    "project, reused": (ProjectMachine, REUSES),
}


def played(name: str) -> Tally:
    """Play a history; what must hold after every step is asked after every step."""
    machine, play = PLAYS[name]
    machine.tally = Tally()
    running: Any = machine()
    try:
        for step, given in play:
            getattr(running, step)(**given)
            running.no_cell_has_lost_more_than_is_counted()
    finally:
        running.teardown()
        machine.finish()
    return machine.tally
