"""State machines of the ledger, the session, the project and the server, against plain sums.

Each machine does at random what owners, analysts and accidents do, and keeps a model in plain
Python that adds up what every cell (a person, at a time, in a column) has lost. After each step the
model's sum of no cell may be above what the ledger counts for it.
"""

import numpy as np

from torture.models.counted_machine import CountedMachine
from torture.models.ledger_files import LedgerMachine
from torture.models.machine_runs import run_rounds
from torture.models.project_machine import ProjectMachine
from torture.models.server_machine import ServerMachine
from torture.models.session_machine import SessionMachine
from torture.part_report import Report

MACHINES: tuple[type[CountedMachine], ...] = (
    LedgerMachine,
    SessionMachine,
    ProjectMachine,
    ServerMachine,
)
STEPS = (20, 50)  # of an example


def run(report: Report, rng: np.random.Generator, *, rounds: int | None = None) -> None:
    """Run every machine in turn until the time is over, or for so many rounds."""
    run_rounds(report, rng, MACHINES, steps=lambda rng: int(rng.integers(*STEPS)), rounds=rounds)
