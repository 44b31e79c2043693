"""Small worlds written out in full: the paper's definitions, executable and exact."""

from takifugu.finite.leakage import Leakage, Worst, leakage
from takifugu.finite.mechanism import Mechanism
from takifugu.finite.world import World

__all__ = ["Leakage", "Mechanism", "World", "Worst", "leakage"]
