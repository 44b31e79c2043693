"""Synthetic cells for tests of tables, figures and pages: they look like results."""

from math import exp, inf

import numpy as np

from takifugu.papers.composition.experiments.measurements import (
    Cell,
    DatasetSummary,
    Difference,
    Estimate,
    Family,
    Origin,
    PrintedColumn,
    Results,
)

NAMES = ("takifugu", "Ours-Exp", "MQM, vector Laplace", "MQM, split budget", "Group DP", "Majority")
EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
PAPER_ROWS = 33_278_683
LEAD, BEHIND = Difference(0.1, 0.005, 1e-5, 200), Difference(-0.1, 0.005, 1e-5, 200)
CALIBRATED = tuple(PrintedColumn("Ours-Exp", False, f"acc@{k}") for k in (1, 2, 3))
METRICS = ("acc@1", "acc@2", "acc@3", "hit", "ndcg", "l1")


def about(
    key: str = "world",
    family: Family = "foursquare",
    origin: Origin = "simulated",
    *,
    rows: int = 1234,
    calibrated: tuple[PrintedColumn, ...] = (),
) -> DatasetSummary:
    return DatasetSummary(
        key=key,
        title=f"Check-ins of {key} & co_1, 50 % café",
        family=family,
        origin=origin,
        group_by="country",
        groups=77,
        labels=78,
        length=120,
        facts={"rows": rows, "people": 56},
        notes=("Grouped by hour as there is one country.", "A <second> note."),
        fingerprint="0" * 64,
        repetitions=200,
        calibrated=calibrated,
    )


def cells(key: str = "world", seed: int = 3) -> tuple[Cell, ...]:
    rng = np.random.default_rng(seed)
    made = []
    for rank, name in enumerate(NAMES):
        for uncertain in (False, True):
            for epsilon in EPSILONS:
                spend = max(epsilon - 0.405 * uncertain, 0) / (1 + rank)
                good = (1 - exp(-2 * spend)) * float(rng.uniform(0.97, 1))
                if name == "Majority":
                    spend, good = 0.0, 0.2
                made.append(
                    Cell(
                        key, name, uncertain, epsilon, spend, 3 / spend if spend > 0.05 else inf,
                        {
                            metric: Estimate(1000 * (1 - good), 12.0)
                            if metric == "l1"
                            else Estimate(good, 0.004)
                            for metric in METRICS
                        },
                        {}
                        if name == "takifugu"
                        else dict.fromkeys(METRICS, LEAD),
                        dict.fromkeys(METRICS, LEAD if "split" in name else BEHIND)
                        if name in ("MQM, vector Laplace", "MQM, split budget", "Group DP")
                        else {},
                    )
                )  # fmt: skip
    return tuple(made)


def results(*keys: str) -> Results:
    return Results(
        tuple(about(key) for key in keys), tuple(cell for key in keys for cell in cells(key))
    )
