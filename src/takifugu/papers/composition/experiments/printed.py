"""What the paper prints: Tables 1 and 2 and the two numbers for Majority, as data.

Numbers are kept as the text that is printed, so that 20.83 stays 20.83 beside 36.3.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

UNCERTAINTY = 0.2
PERCENT = ("acc", "hit")


@dataclass(frozen=True)
class PrintedCell:
    """One printed number.

    Attributes:
        table: The label of its table in the paper's source.
        family: The experiment that it belongs to.
        mechanism: Its name here: what the paper calls MQM is "MQM, split budget".
        uncertain: Whether the prior is only known to 20 %.
        epsilon: The Pufferfish ε.
        metric: What was measured, by its name here.
        text: As printed, without its percent sign.
    """

    table: str
    family: str
    mechanism: str
    uncertain: bool
    epsilon: float
    metric: str
    text: str

    @property
    def value(self) -> float:
        """The number on the scale of our measurements: shares are between 0 and 1."""
        return float(self.text) / (100 if self.metric.startswith(PERCENT) else 1)


@cache
def printed_numbers() -> tuple[PrintedCell, ...]:
    """Every number of Tables 1 and 2, in the order of the paper."""
    return tuple(
        PrintedCell(
            table["label"], table["family"], mechanism, uncertain, float(epsilon), metric, text
        )
        for table in _document()["tables"]
        for epsilon, row in table["rows"].items()
        for (mechanism, uncertain, metric), text in zip(
            ((name, flag, m) for name, flag in table["columns"] for m in table["metrics"]),
            row,
            strict=True,
        )
    )


def printed_number(
    family: str, mechanism: str, *, uncertain: bool, epsilon: float, metric: str
) -> PrintedCell | None:
    """What the paper prints there, if it prints anything."""
    wanted = (family, mechanism, uncertain, epsilon, metric)
    for number in printed_numbers():
        have = (number.family, number.mechanism, number.uncertain, number.epsilon, number.metric)
        if have == wanted:
            return number
    return None


def printed_majority(family: str) -> float:
    """The accuracy of Majority, averaged over the three positions, between 0 and 1."""
    return float(_document()["majority"][family]) / 100


@cache
def _document() -> Any:
    path = files("takifugu.papers.composition.experiments") / "printed.json"
    return json.loads(path.read_text(encoding="utf-8"))
