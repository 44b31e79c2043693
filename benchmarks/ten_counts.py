"""Ten counts of New York's check-ins: what they cost by value, and what they cost before.

Needs the check-ins, in the folder that ``TAKIFUGU_DATA`` names or in `../shared/data`; without them
it says so and does nothing. The chain is over the paper's 78 labels and fitted on the first 240
days; released from are the rows after them. Each label is counted to within a tenth of what the
chain, which is public, expects. Without values a cell is charged as told in full: the per-entry
losses add up and are translated as one ε.
"""

import csv
import gzip
import tempfile
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks._data import CHECKINS
from takifugu import Session, Translation, fit_markov, table
from takifugu._core.rounding import float_up
from takifugu.priors.labels import foursquare_labels
from takifugu.tables import Scope

OTHER = "other"  # what the paper calls a place that is none of its common ones
FIRST_DAYS = 240
COUNTED, EVERY = 10, 4  # every fourth label, the commonest first
SHARE = 0.1  # of the expected count: the error that is asked for


def run() -> None:
    """Print the error and both prices of each count, then of all, and how long a price takes."""
    if not CHECKINS.exists():
        print(f"skipped: {CHECKINS.name} is not in {CHECKINS.parent}")
        return
    with tempfile.TemporaryDirectory() as folder:
        _ten(_table(Path(folder)), Path(folder))


def _table(folder: Path) -> Any:
    labels = foursquare_labels()
    path = folder / "checkins.csv"
    with (
        gzip.open(CHECKINS, "rt", encoding="utf-8") as cut,
        path.open("w", encoding="utf-8", newline="") as file,
    ):
        rows = csv.writer(file)
        rows.writerow(["user", "at", "line", "kind"])
        for line, row in enumerate(csv.DictReader(cut)):
            kind = labels.common(row["cat"], other=OTHER)
            rows.writerow([row["user_idx"], row["unix_s"], line, kind])
    return table(
        path,
        entity="user",
        order="at",
        order_kind="unix",
        zone="America/New_York",
        ties=["line"],
        protected={"kind": labels.labels},
    )


def _ten(checkins: Any, folder: Path) -> None:
    chain = fit_markov(checkins, "kind", first_days=FIRST_DAYS)
    translation = Translation(chain)
    with Session(checkins, translation, budget=6, ledger=folder / "checkins.ledger") as session:
        with checkins.open() as engine:
            size = engine.count(Scope(start=session.releasable.start))
        expected = size * chain.stationary
        order = np.argsort(-expected, kind="stable")[::EVERY][:COUNTED]
        print(f"{len(chain.states)} labels, {size:,} rows to release from")
        scalar, seconds = Fraction(0), []
        for place in order.tolist():
            label, near = chain.states[place], max(2, round(SHARE * expected[place]))
            begin = process_time()
            plan = session.plan.count(label, within=near)
            seconds.append(process_time() - begin)
            session.release(plan, accept_noise=True)
            scalar += plan.cost.per_entry
            before = float(translation.to_pufferfish(float_up(scalar)))
            print(
                f"  {label:28} about {expected[place]:6.0f} ± {near:4}: {plan.cost.alone:.4f} by"
                f" value, {plan.cost.without_values:.4f} without; together so far"
                f" {session.spent():.4f} and {before:.4f}",
                flush=True,
            )
        allowed = float(translation.to_dp(session.spent()))
        print(
            f"without values all errors would be {float(scalar) / allowed:.1f} times as large",
            end="",
        )
        print(f" for {session.spent():.4f} (per-entry ε {float(scalar):.4f} and {allowed:.4f})")
        print(f"a price took {np.median(seconds):.2f} s of a processor in the median", end="")
        print(f", {max(seconds):.2f} s at most")


if __name__ == "__main__":
    run()
