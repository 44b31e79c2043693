"""Lower bounds on ε from outputs: refutes a claim, never proves one."""

from takifugu.auditing.audit import Audit, Question, Sampler, audit
from takifugu.auditing.bounds import Claim, epsilon_below, largest_finding, power
from takifugu.auditing.draws import (
    Release,
    always,
    datasets_given,
    neighbours,
    paths_given,
    released,
    simulated,
    world_questions,
)
from takifugu.auditing.events import Event

__all__ = [
    "Audit",
    "Claim",
    "Event",
    "Question",
    "Release",
    "Sampler",
    "always",
    "audit",
    "datasets_given",
    "epsilon_below",
    "largest_finding",
    "neighbours",
    "paths_given",
    "power",
    "released",
    "simulated",
    "world_questions",
]
