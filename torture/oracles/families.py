"""Every family that is compared."""

from torture.oracles import (
    curves,
    finite_worlds,
    gaussian_processes,
    linear_programs,
    long_chains,
    small_worlds,
    wider_worlds,
)
from torture.oracles.comparison import Family

FAMILIES: tuple[Family, ...] = (
    *small_worlds.FAMILIES,
    *wider_worlds.FAMILIES,
    *long_chains.FAMILIES,
    *linear_programs.FAMILIES,
    *gaussian_processes.FAMILIES,
    *finite_worlds.FAMILIES,
    *curves.FAMILIES,
)
BY_NAME = {family.name: family for family in FAMILIES}
assert len(BY_NAME) == len(FAMILIES)
