"""A table of 37 columns that depend on each other: one column costs itself, all of them little."""

from pathlib import Path

import numpy as np
import pytest

from takifugu.declarations import Category
from takifugu.priors import read_bif
from tests.priors.files import examples
from tests.session.tables import opened_table

ROWS = 12


@pytest.mark.nightly
@pytest.mark.skipif(not examples(), reason="needs pgmpy, whose example networks are read")
def test_a_row_of_alarm(tmp_path: Path) -> None:
    (file,) = (path for path in examples() if path.name.startswith("alarm."))
    alarm = read_bif(file)
    names = tuple(map(str, alarm.entries))
    states = dict(zip(names, alarm.states, strict=True))
    rows = [
        (
            f"p{k}",
            0,
            *(states[name][(k + place) % len(states[name])] for place, name in enumerate(names)),
        )
        for k in range(ROWS)
    ]
    with opened_table(
        tmp_path,
        alarm,
        "row",
        budget="1.18",
        protected=[Category(name, states[name], "refuse") for name in names],
        rows=rows,
        header=("person", "step", *names),
        public=(),
    ) as (session, _):
        plan = session.plan.histogram("HR", epsilon="0.1")
        assert 0.0999 < float(plan.cost.per_entry) <= 0.1  # the column itself, and nothing beside
        by_column = plan.cost.by_column
        assert by_column is not None and set(by_column) == set(names)
        assert by_column["HR"] == plan.cost.alone <= 0.1
        assert max(loss for name, loss in by_column.items() if name != "HR") < 0.1
        assert "31 more at most" in str(plan)
        session.release(plan, accept_noise=True)
        every = session.plan.marginals(epsilon="1.08")
        assert float(every.cost.per_entry) / len(names) == pytest.approx(0.1, rel=0.01)
        session.release(
            every, accept_noise=True
        )  # each column at .1: group DP for a row would say 3.7
        assert 1.08 < session.spent() <= 1.18
        assert np.isfinite(session.spent())
