"""Lower bounds on ε from outputs: an audit refutes a privacy claim, or does not; it proves none."""

from takifugu.auditing.claim_audit import Audit, Comparison, Sampler, audit
from takifugu.auditing.draws import (
    Release,
    always,
    datasets_given,
    neighbours,
    paths_given,
    released,
    simulated,
    world_comparisons,
)
from takifugu.auditing.events import OutputEvent
from takifugu.auditing.loss_bounds import Claim, epsilon_below, largest_finding, power, rho_below

__all__ = [
    "Audit",
    "Claim",
    "Comparison",
    "OutputEvent",
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
    "rho_below",
    "simulated",
    "world_comparisons",
]
