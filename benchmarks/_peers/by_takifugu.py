"""takifugu: a session with a prior that knows correlation, charged to a ledger before it counts.

Run with ``prior`` for a path it writes the prior, and the loss that it implies at ε for each entry,
which is computed once for all sessions.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._peers.answers import PLACES, Counts, answer
from benchmarks._visits import COUNTRIES, LABELS, labels

STAY = 0.2  # the adversary believes that a label stays as it is with this probability


def start(path: str, epsilon: float, beliefs: str, ledger: str) -> Callable[[], Counts]:
    """Import everything; what reads files belongs to the work."""
    import takifugu as tf
    import takifugu.tables.backends.duckdb_backend
    from takifugu.mechanisms import IntegerLaplace
    from takifugu.priors.documents import read_prior
    from takifugu.translation.accounting.tables import TranslationTable
    from takifugu.translation.translation import Translation

    IntegerLaplace(1.0).release([0])  # loads the library

    def work() -> Counts:
        translation = Translation(read_prior(Path(beliefs) / "prior.json"))
        table = TranslationTable.load(Path(beliefs) / "table.json", translation)
        loss = float(table.to_pufferfish(epsilon))
        visits = tf.table(
            path,
            entity="person",
            order="at",
            ties=("row",),
            protected={"label": labels()},
            public={"country": [f"country {i}" for i in range(COUNTRIES)]},
        )
        how: Any = {"budget": loss, "ledger": ledger, "translation_table": table}
        with tf.Session(visits, translation, **how) as session:
            plan = session.plan.top_k(PLACES, by="country", epsilon=loss)
            spent = plan.describe()["mechanism"]["loss"]["epsilon_near"]
            assert 0.99 * epsilon <= spent <= epsilon, spent  # of each entry, as all the others
            result = session.release(plan)
        ranks = zip(*(result.column(name) for name in ("country", "label", "rank")), strict=True)
        return [(country, label, -rank) for country, label, rank in ranks]

    return work


def believe(epsilon: float, beliefs: Path) -> None:
    """Write the prior, and the losses that are needed for ``epsilon``."""
    import numpy as np

    from takifugu.priors import MarkovChain
    from takifugu.priors.documents import write_prior
    from takifugu.translation.accounting.tables import tabulate_at
    from takifugu.translation.translation import Translation

    steps = np.full((LABELS, LABELS), (1 - STAY) / LABELS) + STAY * np.eye(LABELS)
    chain = MarkovChain(steps / steps.sum(axis=1, keepdims=True), states=labels())
    write_prior(chain, beliefs / "prior.json")
    tabulate_at(Translation(chain), [epsilon]).save(beliefs / "table.json")


if __name__ == "__main__":
    if sys.argv[1] == "prior":
        believe(float(sys.argv[2]), Path(sys.argv[3]))
    else:
        answer(start)
