"""ALARM as a table: 37 protected columns that depend on each other, 10,000 rows.

``python -m benchmarks alarm_table`` draws the rows from the network (it comes with pgmpy), opens a
session with ``over = "row"`` and plans and releases the count of one column. Beside it, what other
releases cost: several columns, all of them, a cross-tabulation; group DP for a row, and what would
be claimed if columns were taken as independent, with a mechanism that leaks more than that.
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np

from takifugu.costs.cost import ANY, Column, Cost, Jointly
from takifugu.priors import BayesianNetwork, Secrets, read_bif
from takifugu.translation import Translation
from takifugu.translation.rows.columns_of_row import ColumnsOfRow

ROWS, SEED = 10_000, 14
TWO = ("HR", "BP")


def run() -> None:
    """Print prices and times."""
    spec = find_spec("pgmpy")
    if spec is None or not spec.submodule_search_locations:
        print("pgmpy, which ALARM comes with, is not installed")
        return
    folder = Path(spec.submodule_search_locations[0]) / "utils" / "example_models"
    alarm = read_bif(folder / "alarm.bif.gz")
    _prices(alarm)
    with tempfile.TemporaryDirectory() as place:
        _session(alarm, Path(place))


def _prices(alarm: BayesianNetwork) -> None:
    columns = tuple(map(str, alarm.entries))
    rows = ColumnsOfRow({"alarm": alarm}, dict.fromkeys(columns, Secrets()))
    each = {column: Cost.of({Column(column, ANY): "0.1"}) for column in columns}
    everything = sum(each.values(), Cost())
    asked = {
        "one column (HR)": each["HR"],
        "two columns (HR, BP)": each["HR"] + each["BP"],
        "HR and BP together": Cost.of({Jointly(TWO): "0.1"}),
        "all 37 columns": everything,
        "all 37, and HR with BP": everything + Cost.of({Jointly(TWO): "0.1"}),
    }
    rows.losses(Cost.any(1), each["HR"])  # what is compiled once
    print(f"{'at 0.1 each':24s} {'loss':>8s} {'next worst':>10s} {'group DP':>9s} {'CPU':>8s}")
    for name, cost in asked.items():
        began = process_time()
        losses = sorted(rows.losses(cost).values(), reverse=True)
        seconds = process_time() - began
        print(
            f"{name:24s} {losses[0]:8.4f} {losses[1]:10.4f} {float(cost.scalar):9.2f}"
            f" {1e3 * seconds:6.0f} ms"
        )
    one_by_one = Translation(alarm).explain(0.1)
    print(f"as if independent: 0.1; some mechanism leaks {one_by_one.lower:.4f}")


def _session(alarm: BayesianNetwork, folder: Path) -> None:
    import pyarrow as pa

    import takifugu as tf

    drawn = alarm.sample(ROWS, rng=np.random.default_rng(SEED))
    labels = {
        str(name): [str(states[v]) for v in drawn[:, k]]
        for k, (name, states) in enumerate(zip(alarm.entries, alarm.states, strict=True))
    }
    table = pa.table({"patient": np.arange(ROWS), "at": np.zeros(ROWS, dtype=int), **labels})
    protected = {
        str(name): list(map(str, states))
        for name, states in zip(alarm.entries, alarm.states, strict=True)
    }
    began = process_time()
    data = tf.table(
        table, name="alarm", entity="patient", order="at", order_kind="number", protected=protected
    )
    with tf.Session(data, alarm, over="row", budget=1, ledger=folder / "alarm.ledger") as session:
        opened = process_time()
        plan = session.plan.count(["HIGH"], "HR", epsilon=0.1)
        planned = process_time()
        session.release(plan, accept_noise=True)
        released = process_time()
    print(
        f"{ROWS:,} rows: open {opened - began:.2f} s, plan a count of HR {planned - opened:.2f} s"
        f" (ε = {plan.cost.alone:.4f}), release {released - planned:.2f} s of CPU"
    )


if __name__ == "__main__":
    run()
