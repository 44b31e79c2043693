"""What a release by value saves against one that is charged as telling everything of an entry."""

from dataclasses import dataclass
from typing import Any

from takifugu.documents.declared import NullFloat, to_document
from takifugu.visible import four_digits


@dataclass(frozen=True)
class Saving:
    """Less noise for the ε that was asked for, or a lower price for the error that was.

    Attributes:
        because: Why, in words.
        deviation: The standard deviation of its noise, in the unit of the answer.
        deviation_without_values: That at the same price, if it were charged without values.
        alone: Its Pufferfish ε, if nothing else were ever released.
        alone_without_values: That of the same noise, if it were charged without values.
    """

    because: str
    deviation: float
    deviation_without_values: float
    alone: float
    alone_without_values: NullFloat

    @property
    def noise_ratio(self) -> float:
        """How many times more noise there would be."""
        return self.deviation_without_values / self.deviation

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON; null for what is infinite."""
        ratio = {"noise_ratio": self.noise_ratio}
        document: dict[str, Any] = to_document(self, after={"deviation_without_values": ratio})
        return document

    def __str__(self) -> str:
        """As one line."""
        other = self.alone_without_values
        price = four_digits(other, "up") if other < float("inf") else "infinity"
        here, there = four_digits(self.deviation), four_digits(self.deviation_without_values)
        if self.noise_ratio > 1 and here != there:
            gain = f"noise with standard deviation {here} instead of {there}"
            cost = f"; without values this noise would cost epsilon = {price}"
        else:
            gain, cost = f"epsilon = {four_digits(self.alone, 'up')} instead of {price}", ""
        return f"{gain}, because {self.because}{cost}"
