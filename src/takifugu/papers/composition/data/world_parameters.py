"""The world of the reproduction: the paper's number of rows, and habits calibrated to Table 1."""

from takifugu.papers.composition.experiments.measurements import PrintedColumn
from takifugu.synthetic.habits import HabitParameters

CALIBRATION_NOTES: tuple[str, ...] = ()
PAPER_ROWS = 33_278_683
PRINTED_ACCURACIES = HabitParameters(
    sticky=(0.02, 0.261),
    zipf=0.75,
    head=6,
    boost=7.5,
    taste=0.302,
    taste_law="laplace",
    by_kind=0.35,
    decline=0.0597,
)
CALIBRATED = tuple(PrintedColumn("Ours-Exp", False, f"acc@{place}") for place in (1, 2, 3))
