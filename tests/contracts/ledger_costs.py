"""What every backend of the ledger has to keep where losses know values; see `ledger`.

The translation `KNOWN` adds up the largest costs of all changes between three places, so that each
ε counts six times; a budget of 2 allows ε = 1/3 alone.
"""

import json
from fractions import Fraction
from typing import Any

import pytest

from takifugu.costs.cost import Cost, Distance, Matrix, Membership
from takifugu.costs.losses import Approximate, Concentrated, Loss, Metric, Pure, Total
from takifugu.errors import BudgetExceeded, CellsChanged, InvalidCharge, LedgerDamaged
from takifugu.ledger import Cells, Charge, Groups, Ledger, Window
from takifugu.ledger import ledger as ledger_module
from takifugu.ledger.account import Books
from takifugu.ledger.events.event_chain import link
from takifugu.ledger.limits import Limit
from tests.contracts.ledger import Opener, paid, tamper, worker
from tests.ledger.charges import CELLS, DOUBLING, KNOWN, Places, charge, count
from tests.oracles.digests import root as oracle_root
from tests.raising import raises

TENTH = Fraction(1, 10)
ODD = Membership(['a "b\\ ; c', "é;", " ", "\\u0020", "1;2"])


def known(loss: Loss | str, *cells: Any, **others: Any) -> Charge:
    return charge(loss, *cells, translation="places", **others)


def test_counts_of_different_labels_are_admitted_by_what_they_mean_together(
    ledger: Ledger,
) -> None:
    assert ledger.remaining("ward", KNOWN, like=count("1", "home")) == Fraction(1, 2)
    ledger.charge(known(count("0.4", "home")), KNOWN)
    assert ledger.spent("ward", KNOWN) == 1.6 and ledger.spent("ward", DOUBLING) == 0.8
    with raises(BudgetExceeded, currency="epsilon", needs=Fraction(1, 2)):
        ledger.charge(known(count("0.5", "ward")), KNOWN)
    ledger.charge(known(count("0.1", "ward")), KNOWN)
    assert ledger.spent("ward", KNOWN) == 2
    (total,) = ledger.lost("ward")
    assert total == Total(costs=Cost.of({Membership(["home"]): "0.4", Membership(["ward"]): "0.1"}))
    with raises(BudgetExceeded, left=0):
        ledger.charge(known(count("1/1000000000", "work")), KNOWN)
    assert [r.epsilon for r in ledger.odometer("ward", KNOWN)] == [1.6, 2]
    assert [r.epsilon for r in ledger.odometer("ward", KNOWN, last=1)] == [2]
    assert ledger.verify().sound


@pytest.mark.parametrize("window", [None, (3, 9)])
def test_the_advice_of_a_refused_cost_works_when_followed(
    ledger: Ledger, url: str, opened: Opener, window: tuple[int, int] | None
) -> None:
    ledger.charge(known(count("1/7", "home"), (0, 5)), KNOWN)
    wanted = Cost.of({Membership(["ward"]): 3, Membership(["home", "ward"]): 1})
    with raises(BudgetExceeded, needs=wanted.scalar) as refused:  # 4, and rounded up
        ledger.charge(known(Metric(wanted), window), KNOWN)
    left = refused.value.left
    assert 0 < left < 4 <= wanted.scalar < 4 + TENTH**12
    factor = ledger.remaining("ward", KNOWN, window=Window(*window or ()), like=Metric(wanted))
    assert left == factor * wanted.scalar
    more = Metric(wanted * (factor + Fraction(1, 10**6)))
    with pytest.raises(BudgetExceeded):
        ledger.charge(known(more, window), KNOWN)
    opened(url).charge(known(Metric(wanted * factor), window), Places())
    assert Fraction(ledger.spent("ward", KNOWN)) <= 2 < ledger.spent("ward", KNOWN) + 1e-6


def test_entries_that_lost_different_costs_count_together(ledger: Ledger) -> None:
    """Each count alone means 1.4; a sequence that has both of them in it loses 2.1."""
    ledger.charge(known(count("0.35", "home"), (0, 5)), KNOWN)
    later = count("0.35", "ward")
    (standing,) = ledger.quote(known(later, (5, 9)), KNOWN).standings
    assert standing.spent == pytest.approx(1.4) and not standing.admits(later)
    assert standing.spent_after(later) == pytest.approx(2.1)
    with raises(BudgetExceeded, needs=Fraction(7, 20)):
        ledger.charge(known(later, (5, 9)), KNOWN)
    ledger.charge(known(count("0.3", "ward"), (5, 9)), KNOWN)
    assert ledger.spent("ward", KNOWN) == 2.0 and len(ledger.lost("ward")) == 2
    assert len(ledger.lost("ward", window=Window(0, 5))) == 1
    assert ledger.verify().sound


def test_losses_of_epsilon_and_costs_of_any_shape_add_up(ledger: Ledger) -> None:
    ledger.set_budget("ward", 20)
    channel = Matrix(["home", "ward", "work"], [[0, "1/7", 1], ["1/5", 0, 1], [1, 1, 0]])
    shapes = Cost.of({channel: "1/3", Distance(0, "2.5"): "1/9", ODD: "1/11"})
    ledger.charge(known(Metric(shapes + Cost.any("1/2")), (0, 5), ["fr"]), KNOWN)
    ledger.charge(known(Metric(shapes), (2, 9)), KNOWN)
    ledger.charge(known("1/4"), KNOWN)
    fr = Groups(["country"], [("fr",)])
    whole = Total(Fraction(3, 4), costs=shapes + shapes)
    assert ledger.lost("ward", window=Window(2, 5), groups=fr) == (whole,)
    assert ledger.lost("ward", window=Window(5, 9)) == (Total(Fraction(1, 4), costs=shapes),)
    assert ledger.lost("ward") == (whole,)
    room = ledger.remaining("ward", KNOWN)
    ledger.charge(known(str(room)), KNOWN)
    assert Fraction(ledger.spent("ward", KNOWN)) <= 20
    with pytest.raises(BudgetExceeded):
        ledger.charge(known("1/1000"), KNOWN)
    books = Books()
    for event in ledger.history():
        books.apply(event.body)
        assert event.body["totals"] == oracle_root(books), event.seq
    assert ledger.verify().sound
    ledger.rebuild()
    assert ledger.verify().sound and ledger.lost("ward") != (whole,)


def test_beside_a_delta_or_a_rho_costs_count_as_epsilon(ledger: Ledger) -> None:
    ledger.set_budget("ward", 2, delta="1e-6")
    half = count("0.45", "home")
    ledger.charge(known(half, (0, 5)), KNOWN)  # more than ε = 1/3, by its values
    for other in (Approximate("0.01", "1e-12"), Concentrated("1e-9")):
        with raises(BudgetExceeded, left=0):
            ledger.charge(known(other, (5, 9)), KNOWN)
    ledger.set_budget("clinic", 2, delta="1e-6")
    ledger.charge(known(Approximate("0.01", "1e-12"), (5, 9), dataset="clinic"), KNOWN)
    with raises(BudgetExceeded, needs=Fraction(9, 20)) as refused:
        ledger.charge(known(half, (0, 5), dataset="clinic"), KNOWN)
    assert Fraction(33, 100) < refused.value.left <= Fraction(1, 3)
    ledger.charge(known(count(refused.value.left, "home"), (0, 5), dataset="clinic"), KNOWN)
    assert ledger.spent("clinic", KNOWN) <= 2 and ledger.verify().sound


def test_counts_of_many_labels_are_an_epsilon_of_the_two_largest(ledger: Ledger) -> None:
    """A translation that knows no values: sound, and not worse than it must be."""
    for label in ("a", "b", "c"):
        ledger.charge(charge(count("1/2", label)), DOUBLING)
    assert ledger.spent("ward", DOUBLING) == 2
    fourth = count("1/2", "d")
    assert ledger.remaining("ward", DOUBLING, like=fourth) == 1
    ledger.charge(charge(fourth), DOUBLING)
    assert ledger.remaining("ward", DOUBLING) == 0
    with raises(BudgetExceeded, left=0):
        ledger.charge(charge(count("1/1000", "a")), DOUBLING)


def test_a_label_that_the_prior_does_not_have_counts_as_epsilon(ledger: Ledger) -> None:
    class Strict(Places):
        def cost_to_pufferfish(self, *costs: Cost) -> float:
            if any(label not in ("home", "ward") for c in costs for _, label in c.labels()):
                from takifugu.errors import UnsoundRequest

                raise UnsoundRequest("no such label", reason="unknown label")
            return super().cost_to_pufferfish(*costs)

    strict = Strict()
    ledger.charge(known(count("0.2", "gym")), strict)
    assert ledger.spent("ward", strict) == pytest.approx(1.2)
    factor = ledger.remaining("ward", strict, like=count("0.1", "gym"))
    assert factor == pytest.approx(4 / 3)
    ledger.charge(known(Metric(count("0.1", "gym").cost * factor)), strict)
    assert Fraction(ledger.spent("ward", strict)) <= 2


def test_analysts_pay_for_costs_and_reuse_them(ledger: Ledger) -> None:
    ledger.set_budget("ward", 1, analyst="bob")
    ledger.set_budget("ward", 2, analyst="ana")
    hers = known(count("0.25", "home"), analyst="ana")
    ledger.record_answer(ledger.charge(hers, KNOWN), 7)
    assert ledger.reuse(known(count("0.25", "home"), analyst="bob"), KNOWN) is not None
    assert ledger.spent("ward", KNOWN) == ledger.spent("ward", KNOWN, analyst="bob") == 1
    with raises(BudgetExceeded, analyst="bob", left=0):
        ledger.charge(known(count("0.1", "ward"), analyst="bob"), KNOWN)
    ledger.charge(known(count("0.1", "ward"), analyst="ana"), KNOWN)
    assert ledger.spent("ward", KNOWN, analyst="ana") == pytest.approx(1.4)
    other = count("0.25", "ward")
    assert ledger.lookup(known(other, analyst="ana")) is None
    assert ledger.lookup(hers) is not None and ledger.verify().sound


def test_cells_with_new_names_start_from_all_that_was_lost(ledger: Ledger) -> None:
    ledger.set_budget("ward", 4)
    ledger.charge(known(count("0.3", "home"), (0, 5)), KNOWN)
    ledger.charge(known(count("0.2", "ward"), (5, 9)), KNOWN)
    ledger.accept_cells("ward", Cells.of(CELLS.parts | {"public": {"zone": ["a"]}}))
    both = Cost.of({Membership(["home"]): "0.3", Membership(["ward"]): "0.2"})
    assert ledger.lost("ward", window=Window(7, 8)) == (Total(costs=both),)
    assert ledger.verify().sound


LABELS = Cells.of(CELLS.parts | {"protected": {"place": {"values": ["home", "ward"]}}})


@pytest.mark.parametrize(
    "renamed",
    [
        Cells.of(CELLS.parts | {"protected": {"place": {"values": ["home", "other"]}}}),
        Cells.of(LABELS.parts, {"place": {"states": "not known by name"}}),
        Cells.of(LABELS.parts, {"place": {"bounds": ["0", "2"], "step": "1"}}),
        Cells.of(LABELS.parts | {"source": {"path": "other.csv"}}),
        Cells.of(LABELS.parts | {"reading": {"decimal": ","}}),
    ],
    ids=["list", "states", "step", "source", "decimals"],
)
def test_costs_count_as_scalars_once_their_values_have_other_names(
    ledger: Ledger, renamed: Cells
) -> None:
    ledger.set_budget("ward", 8)
    ledger.set_budget("ward", 8, analyst="bob")
    for label in ("home", "ward", "work"):
        bobs = known(count("0.25", label), (0, 5), cells=LABELS, analyst="bob")
        ledger.charge(bobs, KNOWN)
    again = known(count("0.25", "home"), (0, 5), cells=renamed, analyst="bob")
    with pytest.raises(CellsChanged):
        ledger.charge(again, KNOWN)
    event = ledger.accept_cells("ward", renamed)
    assert event.body["costs"] == "scalars"
    scalar = (Total(Fraction(1, 2)),)  # two of three labels differ at most
    for analyst in (None, "bob"):
        assert ledger.lost("ward", analyst=analyst, window=Window(7, 8)) == scalar
    ledger.charge(again, KNOWN)
    assert ledger.verify().sound


def test_names_of_values_may_change_where_nothing_was_charged_by_value(ledger: Ledger) -> None:
    ledger.set_budget("ward", 8)
    for step in ("1", "1/2", "1"):
        cells = Cells.of(LABELS.parts, {"load": {"bounds": ["0", "2"], "step": step}})
        ledger.charge(known(Pure("0.25"), cells=cells), KNOWN)
    ledger.charge(known(count("0.25", "home"), cells=cells), KNOWN)  # by value, in steps of 1
    with pytest.raises(CellsChanged):
        ledger.charge(known(Pure("0.25"), cells=LABELS), KNOWN)
    ledger.charge(known(Pure("0.25"), cells=cells), KNOWN)


# --- processes ---


def test_processes_that_charge_costs_together_never_overspend(ledger: Ledger, url: str) -> None:
    workers = [worker("count", url, "1/64", "10") for _ in range(4)]
    lines = [line for one in workers for line in one.communicate()[0].split()]
    assert all(one.returncode == 0 for one in workers)
    keys = {line for line in lines if line != "refused"}
    assert len(lines) == 40 and len(keys) == 32 and paid(ledger) == keys
    assert ledger.spent("ward", KNOWN) == 2 and ledger.verify().sound


@pytest.mark.parametrize("overtaken", [1, 100])
def test_totals_that_others_change_meanwhile_are_judged_anew(
    ledger: Ledger,
    url: str,
    opened: Opener,
    overtaken: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others charge while a cost is translated: once, or every time until the lock is held."""
    other, translate, turns = opened(url, wait=0.2), Limit.translate, []
    held = []

    def slow(limit: Limit, totals: tuple[Total, ...]) -> bool:
        answer = translate(limit, totals)
        turns.append(totals)
        if len(turns) <= overtaken:
            monkeypatch.setattr(Limit, "translate", translate)
            try:
                other.charge(known(count("1/64", "ward")), KNOWN)
            except Exception as error:  # noqa: BLE001 - the lock is held: nobody overtakes
                held.append(error)
            monkeypatch.setattr(Limit, "translate", slow)
        return answer

    monkeypatch.setattr(Limit, "translate", slow)
    ledger.charge(known(count("0.4", "home")), KNOWN)
    assert len(turns) == (2 if overtaken == 1 else ledger_module.MAX_UNLOCKED_TRANSLATIONS + 1)
    assert len(set(turns)) == len(turns) and len(held) == (overtaken > 1)
    with pytest.raises(BudgetExceeded):
        ledger.charge(known(count("0.2", "home")), KNOWN)
    assert Fraction(ledger.spent("ward", KNOWN)) <= 2 and ledger.verify().sound


def test_a_charge_that_others_made_impossible_is_refused(
    ledger: Ledger, url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, translate = opened(url), Limit.translate

    def slow(limit: Limit, totals: tuple[Total, ...]) -> bool:
        monkeypatch.setattr(Limit, "translate", translate)
        other.charge(known(count("0.3", "home")), KNOWN)
        return translate(limit, totals)

    monkeypatch.setattr(Limit, "translate", slow)
    with raises(BudgetExceeded, dataset="ward"):
        ledger.charge(known(count("0.4", "home")), KNOWN)
    assert len(paid(ledger)) == 1


# --- what is stored ---


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE takifugu_accounts SET always = '0 0 0', worst = '0 0 0'",
        "UPDATE takifugu_accounts SET worst = replace(worst, '2/5', '1/5')",
        "UPDATE takifugu_accounts SET worst = replace(worst, 'home', 'work')",
        "UPDATE takifugu_accounts SET worst = '0 0 0 []'",
        "UPDATE takifugu_accounts SET worst = '0 0 0 4'",
        'UPDATE takifugu_accounts SET worst = \'0 0 0 [["1/5",["any"]]]\'',
        'UPDATE takifugu_accounts SET worst = \'0 0 0 [["-1/5",["member",["home"]]]]\'',
        'UPDATE takifugu_accounts SET worst = \'0 0 0 [["1/5",["column","a"]]]\'',
        "UPDATE takifugu_accounts SET worst = '0 0 0 [['",
        'UPDATE takifugu_accounts SET worst = \'0 0 0 [["1/5",["member",{}]]] 1\'',
    ],
)
def test_an_edited_cost_releases_nothing(ledger: Ledger, url: str, edit: str) -> None:
    ledger.charge(known(count("0.4", "home")), KNOWN)
    tamper(url, edit)
    with raises(LedgerDamaged, reason="totals"):
        ledger.charge(known(count("0.1", "home")), KNOWN)
    assert not ledger.verify().sound
    ledger.rebuild()
    assert ledger.verify().sound and ledger.spent("ward", KNOWN) == 1.6


@pytest.mark.parametrize(
    "cost",
    [
        None,
        {},
        "1/10",
        [["0.1", ["member", ["home"]]]],  # not as a ledger writes it
        [["-1/10", ["member", ["home"]]]],
        [["1/0", ["member", ["home"]]]],
        [["1/10", ["member", []]]],
        [["1/10", ["member", ["ward", "home"]]]],
        [["1/10", ["member", [["home"]]]]],
        [["1/10", ["unheard of"]]],
        [["1/10", ["matrix", ["a", "b"], [["0", "1"], ["1"]]]]],
        [["1/10", ["any"]], ["1/10", ["any"]]],
        [[["1/10"], "any"]],
    ],
)
def test_an_event_whose_cost_has_no_meaning_is_damage(
    ledger: Ledger, url: str, opened: Opener, cost: object
) -> None:
    ledger.charge(known(count("0.4", "home")), KNOWN)
    (event,) = ledger.history(kind="charge")
    before = list(ledger.history())[-2].hash
    body = {**event.body, "loss": {"currency": "metric", "cost": cost}}
    if cost is None:
        del body["loss"]["cost"]
    text = json.dumps(body, sort_keys=True, separators=(",", ":")).replace("'", "''")
    mark = link(before, text)
    tamper(
        url,
        f"UPDATE takifugu_events SET body = '{text}', hash = '{mark}'"  # noqa: S608
        f" WHERE seq = {event.seq}",
        f"UPDATE takifugu_head SET hash = '{mark}'",  # noqa: S608
    )
    unseen = opened(url, witness=False)
    assert ("unreadable", event.seq) in {(p.reason, p.event) for p in unseen.verify().problems}
    with raises(LedgerDamaged, reason="unreadable", event=event.seq):
        unseen.rebuild()
    with raises(LedgerDamaged, reason="unreadable", event=event.seq):
        list(unseen.odometer("ward", KNOWN))


def test_a_cost_that_no_ledger_could_store_is_refused() -> None:
    for cost in (
        Cost.of({Membership(["home"]): Fraction(1, 3**800)}),
        Cost.any(2**65),
        Cost.of({Matrix(["a", "b"], [[0, Fraction(1, 3**800)], [1, 0]]): 1}),
        Cost.of({Distance(Fraction(-1, 3**800), 1): 1}),
    ):
        with raises(InvalidCharge, field="loss", reason="digits"):
            charge(Metric(cost))
    with raises(InvalidCharge, field="loss", reason="text"):
        charge(Metric(Cost.of({Membership(["\ud800"]): 1})))
    with raises(InvalidCharge, field="loss", reason="type"):
        charge(Metric(Pure(1)))  # type: ignore[arg-type]
    nothing = charge(Metric(Cost()))
    assert nothing.body()["loss"] == {"currency": "metric", "cost": []}


def test_the_cost_decides_whether_two_queries_are_the_same() -> None:
    one, two = count("1/10", "home", "work"), count("0.1", "work", "home")
    assert charge(one).body()["question"] == charge(two).body()["question"]
    for other in (Pure("0.1"), count("0.1", "home"), count("0.2", "home", "work")):
        assert charge(other).body()["question"] != charge(one).body()["question"]
