"""Sessions over people and time: a field over all rows, matched by who and when."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.binding.matched_rows import people_and_positions
from takifugu.declarations import Category
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Ledger
from takifugu.priors import MarkovChain, MarkovRandomField
from takifugu.session import Session
from takifugu.translation.translation import Translation
from tests.oracles import cost_programs as oracle
from tests.raising import raises
from tests.session.tables import opened_table

OVER = "entities × sequence"
PEOPLE, TIMES = ("ann", "bob", "cid"), 3
ILL = (Category("ill", (0, 1), "refuse"),)
HEADER = ("person", "day", "ill")
ROWS = tuple((who, day, (k + day) % 2) for k, who in enumerate(PEOPLE) for day in (10, 11, 14))


def field(
    people: Sequence[Any] = PEOPLE, times: int = TIMES, lengths: Mapping[Any, int] | None = None
) -> MarkovRandomField:
    """Ising: 0.8 from one time to the next, 0.05 between people at one time."""
    last = {who: (lengths or {}).get(who, times) for who in people}
    names = [f"{who}: {t}" for who in people for t in range(last[who])]
    couplings = {
        (f"{who}: {t}", f"{who}: {t + 1}"): 0.8 for who in people for t in range(last[who] - 1)
    }
    for k, who in enumerate(people):
        for other in people[k + 1 :]:
            for t in range(min(last[who], last[other])):
                couplings[f"{who}: {t}", f"{other}: {t}"] = 0.05
    return MarkovRandomField.ising(dict.fromkeys(names, 0.0), couplings)


@contextmanager
def study(
    folder: Path, rows: Sequence[tuple[Any, ...]] = ROWS, prior: Any = None, over: Any = OVER
) -> Iterator[tuple[Session, Ledger]]:
    prior = field() if prior is None else prior
    table: dict[str, Any] = {"protected": ILL, "rows": rows, "header": HEADER, "public": ()}
    with opened_table(folder, prior, over, budget=20, **table) as opened:
        yield opened


def refused(folder: Path, rows: Any = ROWS, prior: Any = None, **fields: Any) -> str:
    with raises(UnsoundRequest, **fields) as error, study(folder, rows, prior):
        pass
    return str(error.value)


@pytest.mark.nightly
@pytest.mark.parametrize("over", [OVER, "entities x sequence"])
def test_all_rows_together_are_one_draw(tmp_path: Path, over: str) -> None:
    with study(tmp_path, over=over) as (session, _):
        plan = session.plan.histogram(epsilon=1)
        lost = float(plan.charge.loss.epsilon)  # type: ignore[union-attr]
        session.release(plan, accept_noise=True)
        text = " ".join(session.guarantee().split())
        spent = session.spent()
    assert "one draw" in text and "matched by name and position" in text
    assert spent == pytest.approx(float(Translation(field()).to_pufferfish(lost)), rel=1e-6)
    weights = np.ones((2,) * 9)
    for one in range(9):  # written out: entry 3·who + time
        for other in range(one + 1, 9):
            coupled = 0.8 if other == one + 1 and one % 3 < 2 else 0.0
            coupled += 0.05 if (other - one) % 3 == 0 else 0.0
            shape = [2 if k in (one, other) else 1 for k in range(9)]
            weights = weights * np.exp([0, 0, 0, coupled]).reshape(shape)
    table = weights / weights.sum()
    costs = [oracle.any_value(2, lost)] * 9
    truth = max(oracle.pair_loss(table, costs, 4, x, 1 - x).lower for x in (0, 1))
    assert lost < truth <= spent * (1 + 1e-9)


@pytest.mark.nightly
def test_people_may_stop_early_and_the_prior_may_be_longer(tmp_path: Path) -> None:
    for k, (rows, prior) in enumerate(
        ((ROWS[:-1], field()), (ROWS, field(times=5)), (ROWS[:-2], field(lengths={"cid": 1})))
    ):
        folder = tmp_path / str(k)
        folder.mkdir()
        with study(folder, rows, prior) as (session, _):
            assert session.plan.histogram(epsilon=1)


def test_people_are_matched_by_name(tmp_path: Path) -> None:
    text = refused(
        tmp_path,
        prior=field(("ann", "bob", "dan")),
        field="prior",
        reason="names-differ",
        given=("dan",),
        needed=("cid",),
    )
    assert "'dan'" in text and "'cid'" in text
    refused(tmp_path, prior=field(("ann", "bob")), reason="names-differ", needed=("cid",))
    refused(tmp_path, ROWS[:6], field="prior", reason="names-differ", given=("cid",))


@pytest.mark.nightly
def test_people_may_be_numbers(tmp_path: Path) -> None:
    rows = tuple((PEOPLE.index(who) + 7, day, ill) for who, day, ill in ROWS)
    with study(tmp_path, rows, field((7, 8, 9))) as (session, _):
        assert session.plan.histogram(epsilon=1)
    refused(tmp_path, rows, field(("07", "8", "9")), field="prior")


def test_more_rows_than_positions_are_refused(tmp_path: Path) -> None:
    refused(tmp_path, (*ROWS, ("ann", 15, 0)), field="prior", reason="too-short", given=3, needed=4)


@pytest.mark.parametrize(
    "rows",
    [
        tuple((who, day + (who == "bob"), ill) for who, day, ill in ROWS),  # begins a day later
        tuple(row for row in ROWS if row[:2] != ("bob", 11)),  # skips one
    ],
)
def test_positions_that_are_other_times_for_some_are_refused(tmp_path: Path, rows: Any) -> None:
    text = refused(tmp_path, rows, field="prior", reason="positions-differ")
    assert "day" in text


def test_entries_must_be_people_and_positions() -> None:
    made = MarkovRandomField.ising(dict.fromkeys(["a: b: 0", "a: b: 1", "c: 0"], 0.0), {})
    assert people_and_positions("prior", made) == {"a: b": 2, "c": 1}
    for names, fields in (
        (["ann: 0", "bob"], {"reason": "no-positions", "given": "bob"}),
        (["ann: 0", "ann: 2"], {"reason": "position-missing", "given": "ann: 1"}),
        (["ann: 0", "ann: 01"], {"reason": "no-positions", "given": "ann: 01"}),
        (["ann: 0", "ann: -1"], {"reason": "no-positions", "given": "ann: -1"}),
    ):
        other = MarkovRandomField.ising(dict.fromkeys(names, 0.0), {})
        with raises(UnsoundRequest, field="prior", **fields):
            people_and_positions("prior", other)


def test_a_chain_is_a_sequence(tmp_path: Path) -> None:
    refused(tmp_path, prior=MarkovChain(np.full((2, 2), 0.5)), field="prior", reason="over")
