"""The world of the reproduction: the paper's number of rows, and habits calibrated to Table 1."""

from takifugu.papers.composition.experiments.measurements import PrintedColumn
from takifugu.synthetic.habits import HabitParameters

CALIBRATION_NOTES: tuple[str, ...] = ()
PAPER_ROWS = 33_278_683
PRINTED_ACCURACIES = HabitParameters()
CALIBRATED = tuple(PrintedColumn("Ours-Exp", False, f"acc@{place}") for place in (1, 2, 3))
