"""Small worlds written out in full: the paper's definitions, executable and exact.

Larger parts keep a namespace of their own: `nfc`, `translation_exact`, `joint_runs`, `dp_loss`.
"""

from takifugu.finite.files import WorldFile, parse_world, read_world, write_world
from takifugu.finite.leakage import Leakage, Odds, WorstCase, leakage, odds
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.finite.verdict import Verdict, judge
from takifugu.finite.world import World

__all__ = [
    "FiniteMechanism",
    "Leakage",
    "Odds",
    "Verdict",
    "World",
    "WorldFile",
    "WorstCase",
    "judge",
    "leakage",
    "odds",
    "parse_world",
    "read_world",
    "write_world",
]
