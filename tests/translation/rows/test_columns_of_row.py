"""``over = "row"``: the columns of a row depend on each other, rows are independent."""

from math import expm1, log, log1p

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.costs.cost import ANY, Column, Cost, Jointly, Membership
from takifugu.errors import UnsoundRequest
from takifugu.priors import (
    Explicit,
    IndependentEntries,
    MarkovChain,
    MarkovRandomField,
    Secrets,
    read_bif,
)
from takifugu.priors.networks import BayesianNetwork, NetworkPrior
from takifugu.translation import Translation
from takifugu.translation.rows import columns_of_row
from takifugu.translation.rows.columns_of_row import ColumnsOfRow
from tests.oracles import cost_programs as programs
from tests.oracles import table_programs as oracle
from tests.oracles.table_instances import table_instance
from tests.priors.files import example
from tests.raising import raises

FIVE = 5.1e-6  # half a unit in the fifth digit, and a little
ILL = BayesianNetwork(
    ("smokes", "ill", "coughs"),
    (("no", "yes"),) * 3,
    ((), ("smokes",), ("ill",)),
    (
        np.array([0.7, 0.3]),
        np.array([[0.95, 0.05], [0.8, 0.2]]),
        np.array([[0.9, 0.1], [0.25, 0.75]]),
    ),
)


def tables(*given: object) -> tuple[Floats, ...]:
    return tuple(np.array(table, dtype=np.float64) for table in given)


def every_column(prior: BayesianNetwork, **given: float) -> ColumnsOfRow:
    return ColumnsOfRow({"prior": prior}, {str(e): Secrets() for e in prior.entries}, **given)


def read(*columns: str, epsilon: str = "0.5") -> Cost:
    return Cost.of({Column(column, ANY): epsilon for column in columns})


@pytest.mark.parametrize(
    ("asked", "other", "loss"),
    [
        ("asia", "tub", 0.02450),
        ("tub", "either", 0.09900),
        ("smoke", "lung", 0.23522),
        ("lung", "either", 0.43850),
        ("bronc", "dysp", 0.33768),
        ("either", "lung", 0.49590),
        ("xray", "either", 0.46724),
        ("dysp", "bronc", 0.33951),
    ],
)
def test_one_column_of_asia_costs_itself_and_the_next_column_less(
    asked: str, other: str, loss: float
) -> None:
    found = dict(every_column(read_bif(example("asia"))).losses(read(asked)))
    assert found.pop(asked) == 0.5  # exactly
    assert found[other] == pytest.approx(loss, abs=FIVE)
    assert max(found.values()) == found[other]


@pytest.mark.parametrize(
    ("asked", "loss"),
    [
        (("smoke", "xray"), 0.69857),
        (("xray", "dysp"), 0.67543),
        (("lung", "tub", "either"), 1.00571),
        (("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"), 2.01371),
    ],
)
def test_several_columns_of_asia(asked: tuple[str, ...], loss: float) -> None:
    asia = every_column(read_bif(example("asia")))
    assert asia.cost_to_pufferfish(read(*asked)) == pytest.approx(loss, abs=FIVE)


def test_all_columns_of_alarm_at_once() -> None:
    alarm = read_bif(example("alarm"))
    found = every_column(alarm).losses(read(*map(str, alarm.entries), epsilon="0.1"))
    assert max(found.values()) == pytest.approx(1.0781, abs=5e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("column", ["HR", "LVFAILURE", "CATECHOL", "VENTLUNG"])
def test_one_column_of_alarm_costs_itself_and_is_what_the_network_says_of_others(
    column: str,
) -> None:
    alarm = read_bif(example("alarm"))
    few = every_column(alarm).losses(read(column, epsilon="0.1"))
    assert few[column] == max(few.values()) == 0.1
    profile = [Cost.any("0.1" if entry == column else 0) for entry in alarm.entries]
    by_entry = Translation(alarm).cost_bound(profile, "transport").by_entry
    assert by_entry is not None
    for entry, loss in zip(alarm.entries, by_entry, strict=True):
        assert few[str(entry)] <= loss + 1e-9


def test_the_closed_form_of_one_column() -> None:
    """A column read at ε, a secret about another: q, q' = P(smokes | ill), P(smokes | well)."""
    for epsilon in ("0.1", "1", "3"):
        found = every_column(ILL).losses(read("smokes", epsilon=epsilon))
        ill = 0.3 * 0.2 / (0.3 * 0.2 + 0.7 * 0.05)
        well = 0.3 * 0.8 / (0.3 * 0.8 + 0.7 * 0.95)
        gain = expm1(float(epsilon))
        sides = [(ill, well), (1 - well, 1 - ill)]
        truth = max(log1p(gain * q) - log1p(gain * other) for q, other in sides)
        assert found["ill"] == pytest.approx(truth, rel=1e-9)
        assert found["ill"] >= truth


def test_a_count_costs_less_than_a_histogram_of_the_same_scale() -> None:
    three = BayesianNetwork(
        ("kind", "sign"),
        (("flu", "cold", "none"), ("no", "yes")),
        ((), ("kind",)),
        (np.array([0.1, 0.2, 0.7]), np.array([[0.2, 0.8], [0.5, 0.5], [0.95, 0.05]])),
    )
    secrets = {"sign": Secrets()}
    count = Cost.of({Column("kind", Membership(["cold"])): "0.5"})
    rows = ColumnsOfRow({"prior": three}, secrets)
    q, other = 0.2 * 0.5 / (0.08 + 0.1 + 0.035), 0.1 / (0.02 + 0.1 + 0.665)
    gain = expm1(0.5)
    truth = max(
        log1p(gain * q) - log1p(gain * other), log1p(gain * (1 - other)) - log1p(gain * (1 - q))
    )
    assert rows.cost_to_pufferfish(count) == pytest.approx(truth, rel=1e-9)
    assert rows.cost_to_pufferfish(count) < 0.6 * rows.cost_to_pufferfish(read("kind"))


def test_a_cross_tabulation_costs_its_columns_once() -> None:
    both = Cost.of({Jointly(["smokes", "coughs"]): "0.5"})
    found = every_column(ILL).losses(both)
    assert found["smokes"] == found["coughs"] == 0.5
    apart = every_column(ILL).losses(read("smokes", "coughs"))
    assert found["ill"] < 0.5 < apart["ill"]


def test_any_change_of_a_row_costs_the_same_for_every_column() -> None:
    found = every_column(ILL).losses(Cost.any("0.5"))
    assert set(found.values()) == {0.5}
    more = every_column(ILL).losses(Cost.any("0.5") + read("coughs", epsilon="0.25"))
    alone = every_column(ILL).losses(read("coughs", epsilon="0.25"))
    for column, loss in more.items():
        assert loss == pytest.approx(0.5 + alone[column], abs=1e-12)
        assert loss >= 0.5 + alone[column]


def test_rows_that_lost_different_columns_are_not_charged_for_both() -> None:
    """Rows are independent: each lost one of the costs, and no row lost both."""
    rows = every_column(ILL)
    one, other = read("smokes"), read("coughs")
    together = rows.losses(one, other)
    for column, loss in together.items():
        assert loss == max(rows.losses(one)[column], rows.losses(other)[column])


def test_the_worst_prior_counts() -> None:
    sure = BayesianNetwork(
        ILL.entries,
        ILL.states,
        ILL.parents,
        (ILL.tables[0], np.array([[0.99, 0.01], [0.01, 0.99]]), ILL.tables[2]),
    )
    kept = {str(e): Secrets() for e in ILL.entries}
    found = ColumnsOfRow({"first": ILL, "second": sure}, kept).losses(read("smokes"))
    parts = [every_column(prior).losses(read("smokes")) for prior in (ILL, sure)]
    assert found == {c: max(part[c] for part in parts) for c in found}


@pytest.mark.parametrize("kind", [NetworkPrior.explicit, lambda _: ILL])
def test_the_same_law_written_out_has_the_same_loss(kind: object) -> None:
    prior = kind(ILL)  # type: ignore[operator]
    kept = {str(e): Secrets() for e in ILL.entries}
    found = ColumnsOfRow({"prior": prior}, kept).losses(read("smokes", "coughs"))
    truth = every_column(ILL).losses(read("smokes", "coughs"))
    assert max(found.values()) >= max(truth.values()) - 1e-9
    if not isinstance(prior, Explicit):
        assert found == truth


def test_columns_that_are_independent_cost_each_their_own() -> None:
    prior = IndependentEntries({"a": {"0": 0.5, "1": 0.5}, "b": {"0": 0.1, "1": 0.9}})
    rows = ColumnsOfRow({"prior": prior}, {"a": Secrets(), "b": Secrets()})
    cost = read("a", epsilon="0.5") + read("b", epsilon="0.25")
    assert rows.losses(cost) == pytest.approx({"a": 0.5, "b": 0.25}, abs=1e-12)


def test_pairs_of_one_column_leave_those_of_others_alone() -> None:
    kind = BayesianNetwork(
        ("kind", "sign"),
        (("flu", "cold", "none"), ("no", "yes")),
        ((), ("kind",)),
        (np.array([0.1, 0.2, 0.7]), np.array([[0.2, 0.8], [0.5, 0.5], [0.95, 0.05]])),
    )
    close = Secrets(pairs=((("flu",), ("cold",)),))
    some = ColumnsOfRow({"prior": kind}, {"kind": close, "sign": Secrets()})
    all_of_them = ColumnsOfRow({"prior": kind}, {"kind": Secrets(), "sign": Secrets()})
    for cost in (read("sign"), read("kind"), read("kind", "sign")):
        few, many = some.losses(cost), all_of_them.losses(cost)
        assert few["sign"] == many["sign"]
        assert few["kind"] <= many["kind"]
    assert some.losses(read("sign"))["kind"] < all_of_them.losses(read("sign"))["kind"]


def test_uncertainty_raises_every_bound_but_that_of_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shift = log(1.01 / 0.99)
    for most in (columns_of_row.MAX_READ_STATES, 0):
        monkeypatch.setattr(columns_of_row, "MAX_READ_STATES", most)
        sure, unsure = every_column(ILL), every_column(ILL, uncertainty=0.01)
        for cost in (read("smokes"), read("smokes", "ill"), Cost.any("0.5")):
            for column, loss in unsure.losses(cost).items():
                expected = min(sure.losses(cost)[column] + shift, float(cost.scalar))
                assert loss == pytest.approx(expected, abs=1e-9)
    assert every_column(ILL, uncertainty=0.01).losses() == dict.fromkeys(sure.secrets, 0.0)


def test_treating_columns_as_independent_is_unsound() -> None:
    """Laplace noise on two sums leaks more about one column than its own ε."""
    law = {
        row: float(weight)
        for row, weight in zip(
            oracle.row_values((2, 2, 2)), ILL.explicit().probability, strict=True
        )
    }
    leak = oracle.noisy_counts_leak(law, {1: 0.5, 2: 0.5}, 1)
    assert leak > 0.5 + 0.1
    found = every_column(ILL).losses(read("ill", "coughs"))["ill"]
    assert leak <= found <= leak * (1 + 1e-6)  # and no mechanism is worse


def test_what_is_allowed_loses_no_more() -> None:
    rows = every_column(ILL)
    unit = read("ill", epsilon="1") + Cost.of({Jointly(["smokes", "coughs"]): "1/3"})
    spent = read("coughs", epsilon="0.2")
    factor = rows.to_cost(unit, 1.0, spent=(spent, read("ill", epsilon="0.1")), beside=(spent,))
    within = [cost + unit * factor for cost in (spent, read("ill", epsilon="0.1"))]
    assert 0.999 < rows.cost_to_pufferfish(*within, spent) <= 1.0
    allowed = rows.to_dp(0.7)
    assert rows.to_pufferfish(allowed) <= 0.7
    assert allowed == pytest.approx(0.7, rel=1e-9)
    assert rows.to_dp(0) == 0
    assert rows.to_cost(unit, 0.05, spent=(spent,)) == 0  # more was lost before


def test_names_are_matched() -> None:
    rows = every_column(ILL)
    with raises(UnsoundRequest, given="fever", needed=("smokes", "ill", "coughs")):
        rows.losses(read("fever"))
    with raises(UnsoundRequest, reason="unknown label", given="maybe"):
        rows.losses(Cost.of({Column("ill", Membership(["maybe"])): 1}))
    with raises(UnsoundRequest, field="columns"):
        rows.losses(Cost.of({Membership(["yes"]): 1}))
    with raises(UnsoundRequest, field="prior", given="fever"):
        ColumnsOfRow({"prior": ILL}, {"fever": Secrets()})
    with raises(UnsoundRequest, field="entries"):
        ColumnsOfRow({"prior": ILL}, {"ill": Secrets(entries=("ill",))})
    with raises(UnsoundRequest, field="within"):
        ColumnsOfRow({"prior": ILL}, {"ill": Secrets(within=1)})
    with raises(UnsoundRequest, field="uncertainty"):
        every_column(ILL, uncertainty=1.0)
    chain = MarkovChain(np.array([[0.9, 0.1], [0.1, 0.9]]), length=3)
    with raises(UnsoundRequest, field="prior", given="MarkovChain"):
        ColumnsOfRow({"prior": chain}, {"0": Secrets()})


def test_a_label_of_another_column_is_not_one_of_this() -> None:
    prior = BayesianNetwork(
        ("a", "b"),
        (("x", "y"), ("u", "v")),
        ((), ("a",)),
        tables([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]]),
    )
    with raises(UnsoundRequest, reason="unknown label", given="u"):
        every_column(prior).losses(Cost.of({Column("a", Membership(["u"])): 1}))


def test_identity_tells_readings_priors_and_secrets_apart() -> None:
    kept = {str(e): Secrets() for e in ILL.entries}
    same = every_column(ILL)
    assert same == every_column(ILL)
    assert same.fingerprint == every_column(ILL).fingerprint
    assert same != ColumnsOfRow({"prior": ILL}, {"ill": Secrets()})
    assert same != ColumnsOfRow({"other": ILL}, kept)
    assert same != every_column(ILL, uncertainty=0.1)
    assert not same.every_pair
    assert same.knows_values


def test_impossible_values_have_no_secrets() -> None:
    prior = BayesianNetwork(
        ("a", "b"),
        (("x", "y"), ("u", "v")),
        ((), ("a",)),
        tables([1.0, 0.0], [[0.9, 0.1], [0.2, 0.8]]),
    )
    found = every_column(prior).losses(read("a", "b"))
    assert found["a"] <= 1e-12  # it is x: there is nothing to learn
    assert found["b"] == pytest.approx(0.5, abs=1e-12)


def test_probabilities_too_far_apart_fall_back_to_the_network() -> None:
    """No product of probabilities is rounded to 0."""
    tiny = 1e-140
    prior = BayesianNetwork(
        ("a", "b", "c"),
        (("x", "y"),) * 3,
        ((), ("a",), ("b",)),
        tables(
            [1 - tiny, tiny], [[1 - tiny, tiny], [0.5, 0.5]], [[1 - tiny, tiny], [tiny, 1 - tiny]]
        ),
    )
    found = every_column(prior).losses(read("a", "c"))
    assert all(0 < loss <= 1.0 for loss in found.values())
    assert found["a"] >= 0.5


def test_pairs_may_name_labels_that_other_columns_do_not_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(columns_of_row, "MAX_READ_STATES", 0)
    prior = BayesianNetwork(
        ("a", "b"),
        (("x", "y", "z"), ("u", "v")),
        ((), ("a",)),
        tables([0.5, 0.3, 0.2], [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]),
    )
    kept = {"a": Secrets(pairs=((("x",), ("z",)),)), "b": Secrets()}
    found = ColumnsOfRow({"prior": prior}, kept).losses(read("b"))
    assert 0 < found["a"] < 0.5


@pytest.mark.nightly
def test_a_cross_tabulation_in_a_wide_table_is_a_term_of_the_network() -> None:
    """Beside all 37 columns it adds less than if each of its two columns were read once more."""
    alarm = read_bif(example("alarm"))
    rows = every_column(alarm)
    columns = tuple(map(str, alarm.entries))
    everything = read(*columns, epsilon="0.1")
    together = rows.losses(everything + Cost.of({Jointly(["HR", "BP"]): "0.1"}))
    apart = rows.losses(everything + read("HR", "BP", epsilon="0.1"))
    before = rows.losses(everything)
    for column in columns:
        assert before[column] - 1e-9 <= together[column] <= apart[column] + 1e-9
    assert max(together.values()) < max(before.values()) + 0.6 * (
        max(apart.values()) - max(before.values())
    )


@pytest.mark.parametrize("epsilon", ["1e-6", "0.5", "8"])
def test_by_the_network_or_by_the_columns_that_were_read(
    epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asia = read_bif(example("asia"))
    cost = read("smoke", "xray", epsilon=epsilon) + Cost.of({Jointly(["tub", "dysp"]): epsilon})
    exact = every_column(asia).losses(cost)
    monkeypatch.setattr(columns_of_row, "MAX_READ_STATES", 0)
    bound = every_column(asia).losses(cost)
    for column, loss in exact.items():
        assert loss * (1 - 1e-6) - 1e-13 <= bound[column] <= 1.15 * loss + 1e-12


@pytest.mark.parametrize("epsilon", ["1e-320", "1e-30", "400", "1e299"])
def test_extreme_losses_are_neither_lost_nor_overflow(epsilon: str) -> None:
    found = every_column(ILL).losses(read("ill", "coughs", epsilon=epsilon))
    for column in ("ill", "coughs"):
        assert float(epsilon) <= found[column] <= 2 * float(epsilon) * (1 + 1e-12) + 1e-323
    assert found["smokes"] > 0


def test_a_field_over_columns_is_held_to_its_programs() -> None:
    rng = np.random.default_rng(5)
    unary = [rng.uniform(0.2, 1, 2) for _ in range(3)]
    pairs = [(0, 1), (1, 2), (0, 2)]
    weights = [np.exp(rng.normal(0, 1, (2, 2))) for _ in pairs]
    names = ("a", "b", "c")
    field = MarkovRandomField(
        names,
        (("x", "y"),) * 3,
        tuple(unary),
        tuple((names[i], names[j]) for i, j in pairs),
        tuple(weights),
    )
    law = programs.factor_table(
        (2, 2, 2),
        [((k,), table) for k, table in enumerate(unary)] + list(zip(pairs, weights, strict=True)),
    )
    cost = Cost.of({Column("a", ANY): "0.5", Jointly(["b", "c"]): "0.25", ANY: "0.125"})
    terms = [((0,), 0.5), ((1, 2), 0.25), ((0, 1, 2), 0.125)]
    matrix = oracle.row_matrix((2, 2, 2), [oracle.any_change((2, 2, 2), *term) for term in terms])
    found = ColumnsOfRow({"field": field}, dict.fromkeys(names, Secrets())).losses(cost)
    for k, name in enumerate(names):
        losses = list(oracle.column_losses(law.reshape(8), (2, 2, 2), [matrix], k))
        truth = max(one.lower for one in losses)
        assert truth - 1e-9 <= found[name] <= truth * (1 + 1e-6)


def test_a_value_that_is_all_but_impossible_does_not_make_the_bound_loose() -> None:
    """The solver of the coupling perturbs gains by more than such a value weighs."""
    for seed in (5035, 5039):
        for found in table_instance(seed, "row"):
            assert found.least * (1 - 1e-9) <= found.upper <= found.most * (1 + 1e-6), found
