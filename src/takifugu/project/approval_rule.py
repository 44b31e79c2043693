"""The rule of a policy that makes releases wait for a second person.

``[dataset.NAME.approval]`` names what waits for an owner's approval: releases whose Pufferfish ε
alone is above a number (``above = "0.5"``), the first release on the dataset (``first = true``), or
both. Answers that are stored cost nothing and need none. Every session of the project keeps the
rule: those of a server, of commands, batches and schedules, and of Python. What allows a release is
an event of the ledger by another person, which the charge names and the ledger checks
(`takifugu.ledger.events.decisions`).

Whoever can edit the project file can remove the rule, as they can change the budget: it binds those
who ask, not those who have the files.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any

from takifugu._core.exact import exactly
from takifugu._core.toml import TomlSection
from takifugu.errors import UnsoundRequest
from takifugu.visible import four_digits


@dataclass(frozen=True)
class ApprovalRule:
    """Which releases wait for an owner.

    Attributes:
        above: Those whose Pufferfish ε alone is above this; None for no such limit.
        first: Whether the first release on the dataset, by anybody, does.
    """

    above: Fraction | None = None
    first: bool = False

    def why(self, alone: float, *, first: bool) -> tuple[str, str] | None:
        """Why a release of this price waits, by a short name and in words; None if it does not.

        The price is rounded up, so that one at the limit waits if in doubt.
        """
        if self.above is not None and (not alone < inf or Fraction(alone) > self.above):
            price, most = four_digits(alone, "up"), four_digits(self.above, "down")
            return "above", f"it costs epsilon = {price}, above {most}"
        if self.first and first:
            return "first", "it is the first release on the dataset"
        return None

    @property
    def words(self) -> str:
        """The rule in words."""
        parts = ["the first release"] * self.first
        if self.above is not None:
            parts.append(f"releases above epsilon = {four_digits(self.above, 'down')}")
        return f"{' and '.join(parts)} {'wait' if self.above is not None else 'waits'} for an owner"

    def document(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        above = None if self.above is None else str(self.above)
        return {"above": above, "first": self.first, "words": self.words}


def read_rule(given: TomlSection) -> ApprovalRule | None:
    """The section ``approval`` of a dataset; None if it has none."""
    if "approval" not in given.content:
        return None
    section = given.section("approval", ("above", "first"))
    first, above = section.flag("first") or False, None
    if "above" in section.content:
        try:
            above = exactly(section.content["above"], "above")
        except UnsoundRequest:
            above = Fraction(-1)
        if above < 0:
            raise section.wrong(
                "above",
                given=f"is {section.content['above']!r:.40}",
                needed='be an epsilon of 0 or more, as "0.5"',
                reason="range",
            )
    if above is None and not first:
        raise section.wrong(
            "above",
            given="is missing",
            needed='be given, as above = "0.5", or first = true; or leave the section out',
            reason="missing",
        )
    return ApprovalRule(above, first)
