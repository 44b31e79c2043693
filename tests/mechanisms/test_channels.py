"""Channels, priced against exact numbers and drawn with the bytes that are given."""

from datetime import date
from fractions import Fraction
from math import log
from typing import Any

import mpmath
import numpy as np
import pytest
from opendp.domains import atom_domain
from opendp.measurements import make_laplace
from opendp.metrics import absolute_distance
from opendp.mod import enable_features

from takifugu.costs.cost import Cost, Matrix
from takifugu.costs.losses import Pure
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.mechanisms import ExternalMeasurement, FiniteChannel, RandomisedResponse
from takifugu.mechanisms.external_measurement import channel_cost, log_ratio, log_up
from takifugu.mechanisms.mechanism_protocol import loss_document
from takifugu.priors.universe import Tables
from tests.raising import raises

pytestmark = pytest.mark.nightly

RATIOS = [
    *(1 + Fraction(1, n) for n in (1, 2, 3, 7, 1000, 2**30, 2**60, 10**15)),
    *(Fraction(n, m) for n in (5, 7, 2**40 + 1, 3**50) for m in (1, 2, 3, 3**25) if n > m),
    Fraction(2),
    Fraction(2**1000 + 1, 2**999 - 1),
    Fraction(10**400),
    Fraction(10**400 + 1, 10**399),
]


def logarithm(ratio: Fraction) -> mpmath.mpf:
    """To 60 digits; within `workdps`."""
    return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@pytest.mark.parametrize("ratio", RATIOS, ids=lambda ratio: f"{float(log(ratio.numerator)):.5g}")
def test_a_logarithm_is_rounded_up_by_little(ratio: Fraction) -> None:
    with mpmath.workdps(700):
        exact = logarithm(ratio)
        found = mpmath.mpf(log_up(ratio))
        both = mpmath.log(ratio.numerator) + mpmath.log(ratio.denominator)
        slack = 0 if ratio < 2 else mpmath.mpf(2) ** -50 * both
        assert exact <= found <= exact * (1 + mpmath.mpf(2) ** -48) + slack


def test_many_logarithms_are_rounded_up() -> None:
    rng = np.random.default_rng(5)
    with mpmath.workdps(50):
        for n, m in rng.integers(1, 2**40, (400, 2)).tolist():
            ratio = Fraction(max(n, m), min(n, m))
            for one in (ratio, 1 + ratio / 2**41, 1 + 1 / ratio):
                exact = logarithm(one)
                assert exact <= mpmath.mpf(log_up(one)) <= exact * (1 + mpmath.mpf(2) ** -42)


def test_nothing_told_costs_nothing() -> None:
    assert log_up(Fraction(1)) == 0.0
    assert log_ratio([1, 3], [2, 6]) == 0.0
    assert log_ratio([0, 1], [1, 1]) == log_up(Fraction(2))
    assert log_ratio([0.0, 0.0, 2.0], [0.0, 1.0, 5.0]) == log_up(Fraction(6, 5))


def test_rows_are_divided_by_their_sums() -> None:
    p, q = [0.5, 0.25, 3.0], [1.5, 0.5, 0.125]
    totals = Fraction(15, 4), Fraction(17, 8)
    assert log_ratio(p, q) == log_up(Fraction(24) * totals[1] / totals[0])
    assert log_ratio(q, p) == log_up(Fraction(3) * totals[0] / totals[1])
    assert log_ratio([0.25, 0.5], [0.5, 0.25]) == log_up(Fraction(2))
    with raises(UnsoundRequest, field="channel", reason="infinite") as caught:
        log_ratio([0.5, 0.5], [1.0, 0.0])
    assert "'the channel'" in str(caught.value)
    with raises(UnsoundRequest, field="channel", reason="infinite") as caught:
        log_ratio([0.5, 0.5], [1.0, 0.0], name="mine")
    assert "'mine'" in str(caught.value)


def test_a_channel_costs_what_each_pair_of_values_tells() -> None:
    rows = [[3.0, 1.0, 0.5], [1.0, 1.0, 1.0], [0.25, 4.0, 8.0]]
    cost = channel_cost(["a", "b", "c"], rows)
    wanted = [[log_ratio(p, q) for q in rows] for p in rows]
    assert cost == Cost.of({Matrix(["a", "b", "c"], wanted): 1})
    assert channel_cost([1, 2], [[3, 1], [1, 3]]).scalar == log_up(Fraction(3))


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ("ab", [1, 1]),
        ("ab", [[1, 1]]),
        ("ab", [[1, 1], [1, 1], [1, 1]]),
        ("a", [[1, 1]]),
        ("", np.zeros((0, 2))),
        ("ab", [[[1], [1]], [[1], [1]]]),
    ],
)
def test_a_channel_has_a_row_for_each_value(values: str, rows: Any) -> None:
    with raises(InvalidMechanism, field="channel") as caught:
        channel_cost(list(values), rows)
    assert "shape" in str(caught.value)


@pytest.mark.parametrize("row", [[-1, 2], [0, 0], [float("nan"), 1], [float("inf"), 1]])
def test_each_row_is_a_law(row: Any) -> None:
    with raises(InvalidMechanism, field="channel") as caught:
        channel_cost(["a", "b"], [[1, 1], row])
    assert "law" in str(caught.value)


# finite channels

WORLD = Tables.of({"x": ("low", "mid", "high"), "y": (0, 1)})
TABLE = np.array(
    [
        [0.5, 0.25, 0.25],
        [0.25, 0.5, 0.25],
        [0.125, 0.375, 0.5],
        [0.25, 0.25, 0.5],
        [0.0625, 0.4375, 0.5],
        [0.125, 0.75, 0.125],
    ]
)
CHANNEL = FiniteChannel(FiniteMechanism(WORLD, TABLE, ("p", "q", "r"), name="mine"))


def by_hand(entry: int) -> dict[tuple[Any, Any], Fraction]:
    """The largest ratio for each ordered pair of values of an entry."""
    found: dict[tuple[Any, Any], Fraction] = {}
    for i, one in enumerate(WORLD.datasets):
        for j, other in enumerate(WORLD.datasets):
            differ = [k for k in range(2) if one[k] != other[k]]  # type: ignore[index]
            if differ == [entry]:
                pair = one[entry], other[entry]  # type: ignore[index]
                ratios = [
                    Fraction(p) / Fraction(q) for p, q in zip(TABLE[i], TABLE[j], strict=True)
                ]
                found[pair] = max(found.get(pair, Fraction(1)), *ratios)
    return found


@pytest.mark.parametrize(("entry", "name"), [(0, "x"), (1, "y")])
def test_an_entry_costs_the_largest_ratio_of_each_pair(entry: int, name: str) -> None:
    cost, exact = CHANNEL.cost(name), by_hand(entry)
    names: Any = WORLD.values[entry]
    wanted = [[0.0 if u == v else log_up(exact[u, v]) for v in names] for u in names]
    assert cost == Cost.of({Matrix(names, wanted): 1})
    assert float(cost.scalar) == max(map(max, wanted))


def test_the_loss_is_the_largest_ratio() -> None:
    worst = max(*by_hand(0).values(), *by_hand(1).values())
    assert CHANNEL.loss == Pure(log_up(worst))
    one = FiniteChannel(FiniteMechanism(Tables.of({"x": ("a",)}), [[0.5, 0.5]]))  # type: ignore[arg-type]
    assert one.loss == Pure(0)
    same = FiniteChannel(FiniteMechanism(Tables.bits(1), np.array([[0.25, 0.75]] * 2)))
    assert same.loss == Pure(0)
    mixed = Tables.of({"x": ("a",), "y": (0, 1)})
    rows = np.array([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]])
    assert FiniteChannel(FiniteMechanism(mixed, rows)).loss == Pure(log_up(Fraction(2)))


@pytest.mark.parametrize("more", [0, 1])
def test_of_entries_that_lose_nearly_the_same_the_larger_counts(more: int) -> None:
    """Whichever comes first: 2 and 2 (1 + 4e-10), as far apart as exact numbers tell."""
    chance = np.array([0.2, 0.4, 0.4, 0.4])
    chance[1 + more] *= 1 + 4e-10
    rows = np.stack([chance, 1 - chance], axis=1)
    made = FiniteChannel(FiniteMechanism(Tables.bits(2), rows))
    exact = Fraction(float(rows[1 + more, 0])) / Fraction(0.2)
    assert float(made.loss.epsilon) == pytest.approx(log(exact), abs=1e-13)


def test_the_loss_is_of_the_rows_divided_by_their_exact_sums() -> None:
    rows = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]])
    sums = [sum(map(Fraction, row), Fraction(0)) for row in rows.tolist()]
    made = FiniteChannel(FiniteMechanism(Tables.bits(1), rows))
    likelihood = made.channel.likelihood.tolist()
    sums = [sum(map(Fraction, row), Fraction(0)) for row in likelihood]
    ratio = Fraction(likelihood[1][0]) / Fraction(likelihood[0][0]) * sums[0] / sums[1]
    assert made.loss == Pure(log_up(ratio))


def test_the_first_and_the_last_of_ties_are_compared_exactly() -> None:
    """Ratios that differ by less than floats show: the largest is the loss."""
    tiny = 2.0**-40
    rows = np.array([[0.5, 0.25, 0.25], [0.25, 0.25 - tiny, 0.5 + tiny]])
    made = FiniteChannel(FiniteMechanism(Tables.bits(1), rows))
    assert made.loss == Pure(log_up((Fraction(1, 2) + Fraction(tiny)) * 4))
    turned = FiniteChannel(FiniteMechanism(Tables.bits(1), rows[:, ::-1].copy()))
    assert turned.loss == made.loss


def test_an_output_that_is_forbidden_is_an_infinite_loss() -> None:
    for rows in ([[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [1.0, 0.0]]):
        made = FiniteChannel(FiniteMechanism(Tables.bits(1), np.array(rows), name="mine"))
        with raises(UnsoundRequest, field="channel", reason="infinite") as caught:
            _ = made.loss
        assert "'mine'" in str(caught.value)
        with raises(UnsoundRequest, field="channel", reason="infinite") as caught:
            made.cost(0)
        assert "'mine'" in str(caught.value)


def test_only_entries_with_plain_values_have_a_cost() -> None:
    with raises(InvalidMechanism, field="entry"):
        CHANNEL.cost("z")
    for values in ((True, False), (0.5, 1.5), ("a", None)):
        world = Tables.of({"x": values, "y": ("a", "b")})
        made = FiniteChannel(FiniteMechanism(world, np.full((4, 2), 0.5)))
        with raises(InvalidMechanism, field="channel"):
            made.cost("x")
        assert made.cost("y").scalar == 0


def test_a_channel_and_what_it_says() -> None:
    assert CHANNEL.probabilities(("mid", 0)).tolist() == TABLE[2].tolist()
    assert CHANNEL.error(("high", 1)).tolist() == TABLE[5].tolist()
    with raises(UnsoundRequest, field="values"):
        CHANNEL.error()
    assert CHANNEL.describe() == {
        "kind": "finite-channel",
        "query": "mine",
        "outputs": 3,
        "loss": loss_document(CHANNEL.loss),
    }
    assert CHANNEL.release(("mid", 0)) in ("p", "q", "r")
    with raises(InvalidMechanism, field="values"):
        CHANNEL.release(("mid", 2))
    drawn = CHANNEL.simulate(("mid", 0), 50, rng=np.random.default_rng(1))
    codes = np.random.default_rng(1).choice(3, size=50, p=TABLE[2])
    assert drawn == ["pqr"[code] for code in codes]


def test_days_of_an_array_are_those_of_a_list() -> None:
    days = (date(2020, 1, 1), date(2020, 1, 2))
    response = RandomisedResponse(days, 0.75)
    array: Any = np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[D]")
    assert response.codes(array).tolist() == [1, 0]


# measurements of others


def test_a_measurement_and_what_it_says() -> None:
    enable_features("contrib")
    laplace = make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), scale=2.0)
    asked: list[Any] = []

    def law(*given: Any) -> str:
        asked.append(given)
        return "drawn"

    rng = np.random.default_rng(1)
    mine = ExternalMeasurement(laplace, 3, "count", delta=None, law=law, deviation=2.5)
    assert mine.simulate([1, 2], 5, rng=rng) == "drawn"
    assert asked == [([1, 2], 5, rng)]
    assert mine.describe() == {
        "kind": "opendp",
        "query": "count",
        "d_in": "3",
        "loss": loss_document(Pure("1.5")),
    }
    for times in (0, 1.5, True):
        wrong: Any = times
        with raises(UnsoundRequest, field="repetitions"):
            mine.simulate([1], wrong, rng=rng)
    for delta in (0.0, 1.0, -0.5):
        with raises(UnsoundRequest, field="delta"):
            ExternalMeasurement(laplace, 3, "count", delta=delta)
    with raises(InvalidMechanism, field="cost"):
        ExternalMeasurement(laplace, 3, "count", cost=Cost.of({}))

    class Part:
        """It has a map, and is none."""

        map = None

    class Other:
        """It has a measure, and is none."""

        output_measure = None

    for part in (Part(), Other()):
        with raises(InvalidMechanism, field="measurement"):
            ExternalMeasurement(part, 3, "count")


@pytest.mark.parametrize("row", [[3, -1], [np.inf, 1], [np.nan, 1], [0, 0]])
def test_a_row_that_is_no_law_is_refused_wherever_it_stands(row: list[float]) -> None:
    law = [1.0, 3.0]
    for rows in ([row, law], [law, row]):
        with raises(InvalidMechanism, field="channel") as caught:
            channel_cost(["a", "b"], rows)
        assert "not a law" in str(caught.value)
