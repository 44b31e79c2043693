"""Real check-ins, where they are at hand, against plain loops over the file."""

import csv
import gzip
from itertools import pairwise

import pytest

from takifugu.declarations import Category, Declaration, InvalidDeclaration, Order, Source
from takifugu.fitting import FirstDays, fit
from takifugu.tables import check, open_engine
from tests.raising import raises
from tests.real_data import real

ZONE = "America/New_York"


@pytest.mark.real_data
def test_transitions_of_real_checkins_are_those_of_the_file() -> None:
    checkins = real("checkins_nyc.csv.gz")
    with gzip.open(checkins, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    kept = tuple(sorted({row["cat"] for row in rows})[:100])
    label = Category("cat", kept, "other")
    source = Source("csv", path=str(checkins))
    tied = Declaration(source, "user_idx", Order("unix_s", "unix", ZONE), (label,))
    with open_engine(tied) as engine, raises(InvalidDeclaration, field="order, ties"):
        check(engine)
    # the venue tells the category: it may settle ties in a test, not in a policy
    order = Order("unix_s", "unix", ZONE, ties=("poi_idx",))
    with open_engine(Declaration(source, "user_idx", order, (label,))) as engine:
        found = engine.transitions("cat")
        fitted = fit(engine, "cat", split=FirstDays(200), unseen="uniform")
        assert fitted.test is not None
        assert engine.count(fitted.train) + engine.count(fitted.test) == len(rows)
    people: dict[str, list[tuple[int, int, str]]] = {}
    for row in rows:
        seen = row["cat"] if row["cat"] in kept else "other"
        people.setdefault(row["user_idx"], []).append(
            (int(row["unix_s"]), int(row["poi_idx"]), seen)
        )
    number = {state: i for i, state in enumerate(found.states)}
    counts = [[0] * len(number) for _ in number]
    for path in people.values():
        for (*_, before), (*_, here) in pairwise(sorted(path)):
            counts[number[before]][number[here]] += 1
    assert found.counts.tolist() == counts
    assert str(fitted.train.end) == "2012-10-20 00:00:00"
