"""How mechanisms and metrics are named, ordered, rounded and coloured, on all that is written."""

from dataclasses import dataclass
from math import isfinite

from takifugu.papers.composition.experiments.contenders import (
    GROUP_DP,
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
)
from takifugu.reports.html_style import BLUE, GREEN, GREY, ORANGE, PURPLE

INK = "#000000"  # the colour of words, in the light and in the dark


@dataclass(frozen=True)
class Metric:
    """What is measured, and how it is shown; ``counts`` if it is a number of rows."""

    key: str
    label: str
    digits: int
    percent: bool = False
    higher: bool = True
    counts: bool = False

    def shown(self, value: float) -> str:
        """A number, rounded as the paper rounds it."""
        return f"{100 * value if self.percent else value:.{self.digits}f}"

    @property
    def heading(self) -> str:
        """The label with its unit, and an arrow to where it is better."""
        return f"{self.label}{' %' if self.percent else ''} {'↑' if self.higher else '↓'}"


@dataclass(frozen=True)
class LineStyle:
    """How a mechanism is drawn."""

    color: str
    marker: str
    width: float = 1.6


@dataclass(frozen=True)
class Sheet:
    """A table of the paper: which metrics stand in it, and what it is called."""

    key: str
    number: str
    title: str
    metrics: tuple[Metric, ...]


ACCURACY = tuple(Metric(f"acc@{k}", f"Acc@{k}", 1, percent=True) for k in (1, 2, 3))
RANKING = (
    Metric("hit", "HR", 1, percent=True),
    Metric("ndcg", "NDCG", 3),
    Metric("l1", "ℓ1", 0, higher=False, counts=True),
)
SHEETS = (
    Sheet("accuracy", "Table 1", "Acc@k", ACCURACY),
    Sheet("ranking", "Table 2", "Hit Rate@3, NDCG@3 and ℓ1 count error", RANKING),
)
STYLES = {
    TAKIFUGU: LineStyle(INK, "o", 2.2),
    OURS_EXP: LineStyle(BLUE, "s"),
    MQM_VECTOR: LineStyle(ORANGE, "D"),
    MQM_SPLIT: LineStyle(PURPLE, "v"),
    GROUP_DP: LineStyle(GREY, "x"),
}
OTHER = LineStyle(GREEN, "^")


def mechanisms(names: list[str]) -> tuple[str, ...]:
    """The mechanisms that are there, in the order of the tables; Majority has no column."""
    known = [name for name in STYLES if name in names]
    return tuple(known + [n for n in names if n not in STYLES and n != MAJORITY])


def shown_size(value: float) -> str:
    """An ε or a noise in three significant digits, or whole from a thousand on."""
    if not isfinite(value):
        return "∞"
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"
