"""What a lost part of the history may have charged, and by value; by every budget there was."""

import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.costs.cost import ANY, Column, Cost
from takifugu.costs.losses import Metric, Pure, Total
from takifugu.errors import BudgetExceeded, UnsoundRequest
from takifugu.ledger import Anchor, Cells, Ledger, Terms, Window, accept_loss, open_ledger
from takifugu.ledger.witnesses import lost_history
from takifugu.ledger.witnesses.lost_history import LossTerms
from takifugu.priors import BayesianNetwork, MarkovChain
from takifugu.priors.secrets import Secrets
from takifugu.project.owner_changes import cell_change
from takifugu.translation.accounting.tables import TabledTranslation, tabulate
from takifugu.translation.rows.columns_of_row import ColumnsOfRow
from takifugu.translation.translation import Translation
from tests.ledger.charges import DOUBLING, EVERY_PAIR, KNOWN, Places, charge, count
from tests.raising import raises

Opener = Callable[..., Ledger]
MINE: dict[str, Any] = {"secrets": EVERY_PAIR, "translation": "places"}


@pytest.fixture
def counted(folder: Path) -> Path:
    """An older copy of a ledger whose newer one has charged a count beyond what ε allows."""
    path = folder / "places.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge(count("1/10", "home"), (0, 5), **MINE), KNOWN)
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        ledger.charge(charge(count("0.4", "ward"), (7, 8), **MINE), KNOWN)
        (lost,) = ledger.lost("ward", window=Window(7, 8))
        assert lost.scalar > Fraction(KNOWN.to_dp(2))
    shutil.copy(folder / "copy", path)
    return path


def test_costs_that_were_lost_count_as_the_epsilon_of_the_budget(
    counted: Path, opened: Opener
) -> None:
    event = accept_loss(counted)
    assert [one["epsilon"] for one in event.body["accounts"]] == ["2"]
    assert "costs" not in event.body["accounts"][0]  # 1/10 is within the 2 that are counted
    ledger = opened(counted)
    assert ledger.lost("ward") == ledger.lost("ward", window=Window(9, 10)) == (Total(Fraction(2)),)
    for budget in (2, 11):
        ledger.set_budget("ward", budget)
        for loss in (count("1/1000000", "home"), Pure("1/1000000")):
            with raises(BudgetExceeded, left=0):
                ledger.charge(charge(loss, (9, 10), **MINE), KNOWN)
    ledger.set_budget("ward", 13)
    ledger.charge(charge(count("1/4", "ward"), (7, 8), **MINE), KNOWN)
    assert ledger.spent("ward", KNOWN) == 13 and ledger.verify().sound


def test_what_the_copy_holds_beyond_the_budget_is_kept(counted: Path, opened: Opener) -> None:
    with open_ledger(counted, inspect=True) as ledger:
        (before,) = ledger.lost("ward")
    accept_loss(counted, costs=False, translations={"ward": Places()}, budgets={"ward": 0})
    ledger = opened(counted)
    assert before.costs and ledger.verify().sound
    (after,) = ledger.lost("ward", window=Window(9, 10))
    assert after.epsilon == Fraction(KNOWN.to_dp(2)) and not after.costs


def test_costs_of_the_copy_that_no_budget_covers_stay_costs(folder: Path, opened: Opener) -> None:
    path = folder / "places.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 9)
        ledger.charge(charge(Metric(Cost.any(1) + count("1/2", "home").cost), **MINE), KNOWN)
        ledger.set_budget("ward", 1)
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        ledger.set_partition("ward", ("country",))
    shutil.copy(folder / "copy", path)
    event = accept_loss(path)
    assert event.body["accounts"][0]["costs"] == [["1/2", ["member", ["home"]]]]
    ledger = opened(path)
    assert ledger.lost("ward") == (Total(Fraction(1), costs=count("1/2", "home").cost),)
    assert ledger.lost("ward", analyst="new") == ledger.lost("ward")
    assert ledger.verify().sound
    ledger.rebuild()
    assert ledger.verify().sound


@pytest.mark.parametrize("sure", [True, False])
def test_where_only_some_pairs_are_secret_the_owner_must_know_that_no_cost_was_charged(
    folder: Path, opened: Opener, sure: bool
) -> None:
    path = folder / "places.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("1/10", secrets="fewer", translation="places"), KNOWN)
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        ledger.set_partition("ward", ("country",))
    shutil.copy(folder / "copy", path)

    class EveryPair(Places):
        every_pair = True

    for given in (None, KNOWN):
        with raises(UnsoundRequest, field="costs", reason="some pairs"):
            accept_loss(path, translations={} if given is None else {"ward": given})
    if sure:
        accept_loss(path, translations={"ward": EveryPair()})
        assert opened(path).lost("ward") == (Total(Fraction(2)),)
    else:
        accept_loss(path, translations={"ward": KNOWN}, costs=False)
        assert opened(path).lost("ward") == (Total(Fraction(KNOWN.to_dp(2))),)


def test_translations_say_whether_they_know_values_and_whether_every_pair_is_secret() -> None:
    chain = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), states=("home", "ward"), length=3)
    whole = Translation(chain)
    some = Translation(chain, Secrets(pairs=((("home",), ("ward",)),)))
    table = tabulate(whole, losses=(0.1, 2.0), share=0.2)
    assert whole.every_pair and not some.every_pair and not table.every_pair
    assert whole.knows_values and not table.knows_values and not DOUBLING.knows_values
    tabled = TabledTranslation(whole, table)
    assert tabled.knows_values and tabled.every_pair


def test_the_owner_sees_what_a_change_of_cells_or_of_the_prior_makes_of_costs(
    folder: Path, opened: Opener
) -> None:
    ledger = opened(folder / "places.ledger")
    ledger.set_budget("ward", 3)
    ledger.charge(charge(count("0.3", "home"), (0, 5), **MINE), KNOWN)
    ledger.charge(charge(count("0.3", "ward"), (5, 9), **MINE), KNOWN)
    found = cell_change(ledger, "ward", Cells.of({"source": "other"}), KNOWN)
    assert found.charged and found.before == pytest.approx(1.8)  # the larger of both, pair by pair
    assert found.after == pytest.approx(1.8)  # the larger ε on every row, whatever values are now
    review = ledger.review("ward", DOUBLING, KNOWN)
    assert review.before == pytest.approx(1.8) and review.after == pytest.approx(0.6)
    ledger.accept(Terms("another", EVERY_PAIR), review)
    ledger.accept_cells("ward", Cells.of({"source": "other"}))
    assert ledger.spent("ward", KNOWN) == found.after and ledger.verify().sound


SURVEY = BayesianNetwork(
    entries=("place", "health"),
    states=(("home", "out"), ("well", "ill")),
    parents=((), ("place",)),
    tables=(np.array((0.6, 0.4)), np.array(((0.9, 0.1), (0.5, 0.5)))),
)


def test_what_was_lost_of_several_columns_counts_on_each(folder: Path, opened: Opener) -> None:
    path = folder / "survey.ledger"
    rows = ColumnsOfRow({"prior": SURVEY}, {"place": Secrets(), "health": Secrets()})
    some = ColumnsOfRow(
        {"prior": SURVEY},
        {"place": Secrets(), "health": Secrets(pairs=((("ill",), ("well",)),))},
    )
    terms: dict[str, Any] = {"secrets": "by column", "translation": rows.fingerprint}
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 1)
        ledger.charge(charge(of_column("place", "1/10"), **terms), rows)
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        for column in ("place", "health"):
            ledger.charge(charge(of_column(column, "3/5"), **terms), rows)
        (lost,) = ledger.lost("ward")
        assert lost.scalar > 1  # more than one ε of the budget covers
    shutil.copy(folder / "copy", path)
    for given in ({}, {"ward": some}):
        with raises(UnsoundRequest, field="costs", reason="some pairs"):
            accept_loss(path, translations=given)
    event = accept_loss(path, translations={"ward": rows})
    each = Cost.of({Column("place", ANY): 1, Column("health", ANY): 1})
    assert event.body["accounts"][0]["costs"] == each.document()
    ledger = opened(path)
    (counted,) = ledger.lost("ward")
    assert all(
        counted.cost.on_column(c).between(0, 1) >= lost.cost.on_column(c).between(0, 1)
        for c in ("place", "health")
    )
    with raises(BudgetExceeded, left=0):
        ledger.charge(charge(of_column("place", "1/1000000"), **terms), rows)
    assert ledger.verify().sound


@pytest.mark.parametrize("how", [{}, {"costs": False}])
def test_of_several_columns_each_counts_also_where_no_translation_is_known(
    folder: Path, opened: Opener, how: dict[str, Any]
) -> None:
    """A copy from before the first charge: ε once for any change of a row would not cover both.

    What one column tells of another grows faster the more of it is known already. So the truth
    after more was released may exceed a budget that ε·[u≠v] alone would leave room in.
    """
    path = folder / "survey.ledger"
    names = ("place", "fever", "cough", "rash")
    rare = BayesianNetwork(
        entries=names,
        states=(("home", "out"), *[("no", "yes")] * 3),
        parents=((), *[("place",)] * 3),
        tables=(np.array((0.5, 0.5)), *[np.array(((0.99, 0.01), (0.97, 0.03)))] * 3),
    )
    rows = ColumnsOfRow({"prior": rare}, dict.fromkeys(names, Secrets()))
    terms: dict[str, Any] = {"secrets": "by column", "translation": rows.fingerprint}
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 5)
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        for column in names:
            ledger.charge(
                charge(of_column(column, "4" if column == "place" else "3"), **terms), rows
            )
        (lost,) = ledger.lost("ward")
    shutil.copy(folder / "copy", path)
    more = Cost.of({Column(column, ANY): "2.5" for column in names})
    truth = rows.cost_to_pufferfish(lost.cost + more)
    assert truth > rows.cost_to_pufferfish(Cost.any(5) + more) * 1.13  # counted once: too little
    if how:  # with a translation, whose charges all name columns, that none had a cost is untrue
        accept_loss(path, translations={"ward": rows}, **how)
    else:
        accept_loss(path, columns={"ward": names})
    (counted,) = opened(path).lost("ward")
    assert counted.cost.dominates(lost.cost)
    assert rows.cost_to_pufferfish(counted.cost + more) >= truth


def of_column(column: str, epsilon: str) -> Metric:
    return Metric(Cost.of({Column(column, ANY): epsilon}))


MICRO = Fraction(1, 10**6)


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    """Two datasets with budgets, and charges of several people under several terms."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 8)
        ledger.set_budget("town", 6)
        ledger.charge(charge("1/8", analyst="bob", secrets="s1"), DOUBLING)
        ledger.set_budget("ward", 4, analyst="ana")
        ledger.set_budget("ward", 2, analyst="bob")
        asked = charge("1/4", analyst="ana", secrets="s1")
        ledger.record_answer(ledger.charge(asked, DOUBLING), 7)
        ledger.set_partition("yard", ("country",))  # which has no budget
        yield ledger


def test_every_account_is_counted_also_of_a_dataset_that_the_copy_does_not_know(
    kept: Ledger,
) -> None:
    with kept._store.reading() as connection:
        terms = LossTerms(
            {"ward": DOUBLING},
            {"new": (9, 0), "town": 7},
            columns={"new": ("a", "b"), "ward": ("a",)},
            costs=False,
        )
        content, _ = lost_history.counted(connection, Anchor(99, "c" * 64), terms)
    each = [["9", ["column", "a", ["any"]]], ["9", ["column", "b", ["any"]]]]
    plain = {"delta": "0", "rho": "0"}
    expected: list[dict[str, Any]] = [
        {"dataset": "ward", "analyst": None, "epsilon": "4", **plain},
        {"dataset": "town", "analyst": None, "epsilon": "7", **plain},
        {"dataset": "ward", "analyst": "bob", "epsilon": "1", **plain},
        {"dataset": "ward", "analyst": "ana", "epsilon": "2", **plain},
        {"dataset": "new", "analyst": None, "epsilon": "0", **plain, "costs": each},
    ]
    found = sorted(content["accounts"], key=str)
    for one in (*found, *expected):
        one.get("costs", []).sort()
    assert found == sorted(expected, key=str)


def test_a_loss_is_counted_on_every_backend(ledger: Ledger) -> None:
    lost = Anchor(9, "c" * 64)
    with ledger._store.reading() as connection:
        content, _ = lost_history.counted(connection, lost, LossTerms({"ward": DOUBLING}))
    whole = {"dataset": "ward", "analyst": None, "epsilon": "1", "delta": "0", "rho": "0"}
    assert content == {"lost": {"seq": 9, "hash": "c" * 64}, "accounts": [whole]}
