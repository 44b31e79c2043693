"""The closed form of two states, function by function, beside sums over all paths."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.translation.chain import binary_closed_form as form
from takifugu.translation.chain.binary_closed_form import BinaryStep, binary_losses

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53
LEAST = 5e-324
AGREE = BinaryStep.of(np.array([[0.75, 0.25], [0.375, 0.625]]))
DIFFER = BinaryStep.of(np.array([[0.125, 0.875], [0.5, 0.5]]))
FORGET = BinaryStep.of(np.array([[0.25, 0.75], [0.25, 0.75]]))
STICKY = BinaryStep.of(np.array([[0.999, 0.001], [0.002, 0.998]]))


def test_a_step_is_its_rows_divided_by_their_sums() -> None:
    step = BinaryStep.of(np.array([[3.0, 1.0], [2.0, 6.0]]))
    assert step.rows == (Fraction(3, 4), Fraction(1, 4), Fraction(1, 4), Fraction(3, 4))
    assert step.determinant == Fraction(1, 2) and step.same
    assert DIFFER.determinant == Fraction(-3, 8) and not DIFFER.same
    assert FORGET.determinant == 0 and FORGET.same
    assert AGREE.decimals() == (True, Decimal("0.375"), Decimal("0.25"), Decimal("0.375"))
    assert DIFFER.decimals() == (False, Decimal("0.375"), Decimal("0.125"), Decimal("0.5"))


def truth(steps: list[BinaryStep], law: list[Fraction], costs: Floats, i: int, pair: int) -> float:
    """What the mechanism that counts loses at entry i, over all paths."""
    counted = {i: 1 - pair}
    for j in range(i, len(steps)):
        counted[j + 1] = counted[j] if steps[j].same else 1 - counted[j]
    for j in reversed(range(i)):
        counted[j] = counted[j + 1] if steps[j].same else 1 - counted[j + 1]
    with mpmath.workdps(50):
        sums, masses = [mpmath.mpf(0)] * 2, [Fraction(0)] * 2
        for path in product((0, 1), repeat=len(steps) + 1):
            weight = law[path[0]]
            for n, step in enumerate(steps):
                weight *= step.rows[2 * path[n] + path[n + 1]]
            total = sum(
                float(costs[1 - counted[j], j])
                for j in range(len(path))
                if j != i and path[j] == counted[j]
            )
            masses[path[i]] += weight
            sums[path[i]] += mpmath.mpf(weight.numerator) / weight.denominator * mpmath.exp(total)
        means = [
            s / (mpmath.mpf(m.numerator) / m.denominator) for s, m in zip(sums, masses, strict=True)
        ]
        ratio = mpmath.log(means[1 - pair] / means[pair])
        return float(ratio + float(costs[pair, i]))


COSTS = np.array([[0.5, 0.25, 0.0, 1.5, 0.75], [0.125, 0.25, 2.0, 1.5, 0.5]])


@pytest.mark.parametrize("start", [[0.25, 0.75], [3.0, 1.0]])
@pytest.mark.parametrize(
    "steps",
    [[AGREE] * 4, [DIFFER] * 4, [AGREE, DIFFER, DIFFER, STICKY], [DIFFER, FORGET, AGREE, AGREE]],
)
def test_every_entry_loses_what_the_sum_over_paths_says(
    steps: list[BinaryStep], start: list[float]
) -> None:
    found = binary_losses(steps, COSTS, start=np.array(start))
    assert (found.charged == COSTS).all() and found.possible.all()
    law = [Fraction(w) / Fraction(sum(start)) for w in start]
    for pair, i in product((0, 1), range(5)):
        exact = truth(steps, law, COSTS, i, pair)
        upper, lower = found.upper[pair, i], found.lower[pair, i]
        assert exact * (1 - 40 * UNIT) <= lower <= exact <= upper <= exact * (1 + 40 * UNIT)
    scalar = binary_losses(steps, COSTS[0], start=np.array(start))
    assert scalar.charged.tolist() == [COSTS[0].tolist()] * 2


@pytest.mark.parametrize("step", [AGREE, DIFFER, STICKY])
def test_a_stationary_chain_begins_with_its_stationary_law(step: BinaryStep) -> None:
    out, back = step.rows[1], step.rows[2]
    law = [back / (out + back), out / (out + back)]
    found = binary_losses(step, COSTS)
    for pair, i in product((0, 1), range(5)):
        exact = truth([step] * 4, law, COSTS, i, pair)
        assert found.lower[pair, i] <= exact <= found.upper[pair, i]
        assert found.upper[pair, i] == pytest.approx(exact, rel=1e-14)
    same = np.array([0.5, 0.25])
    for before, after in ((0, 0), (1, 0), (0, 3), (2, 2), (1, 3), (3, 1)):
        upper, lower = form.stationary_losses(step, same, before, after)
        costs = np.repeat(same[:, None], before + after + 1, axis=1)
        for pair in (0, 1):
            exact = truth([step] * (before + after), law, costs, before, pair)
            assert lower[pair] <= exact <= upper[pair]
            assert upper[pair] == pytest.approx(exact, rel=1e-14)


def test_where_one_state_cannot_happen_nothing_before_is_revealed() -> None:
    into = BinaryStep.of(np.array([[0.0, 1.0], [0.0, 1.0]]))
    found = binary_losses([AGREE, into, AGREE], np.full(4, 0.5), start=np.array([1.0, 0.0]))
    assert found.possible.tolist() == [False, True, False, True]
    alone = binary_losses([], np.array([0.5]), start=np.array([0.0, 1.0]))
    assert alone.possible.tolist() == [False]
    # from the last entry only its own loss is left: the one before is known
    assert found.upper[:, 3] == pytest.approx([0.5, 0.5])
    ahead = binary_losses([AGREE], np.full(2, 0.5), start=np.array([0.5, 0.5]))
    both = binary_losses([AGREE, AGREE], np.full(3, 0.5), start=np.array([1.0, 0.0]))
    assert both.upper[:, 1] == pytest.approx(ahead.upper[:, 0])


@pytest.mark.parametrize("total", [LEAST, 10 * LEAST, 1.0, 3e10])
def test_bounds_on_both_sides_are_a_few_units_apart(total: float) -> None:
    upper, lower = form._both_sides(np.array([total, 0.0]))
    assert upper[1] == lower[1] == 0.0
    assert total * (1 + 15 * UNIT) + 3 * LEAST <= upper[0] <= total * (1 + 18 * UNIT) + 5 * LEAST
    assert lower[0] <= max(total * (1 - 15 * UNIT) - 3 * LEAST, 0.0)
    assert lower[0] >= max(total * (1 - 18 * UNIT) - 5 * LEAST, 0.0)
    assert not upper.flags.writeable and not lower.flags.writeable
    upper, lower = form._both_sides(np.array([np.inf]))
    assert (upper[0], lower[0]) == (np.inf, 0.0)


def test_equal_steps_at_equal_costs_are_one_stretch() -> None:
    a, b = AGREE, DIFFER
    spent = np.array([[1.0, 1.0, 1.0, 1.0, 2.0], [3.0, 3.0, 4.0, 4.0, 4.0]])

    def found(steps: list[BinaryStep], costs: Floats) -> list[tuple[BinaryStep, list[float], int]]:
        return [(s, c.tolist(), n) for s, c, n in form._stretches(steps, costs)]

    assert found([a] * 5, spent) == [(a, [1, 3], 2), (a, [1, 4], 2), (a, [2, 4], 1)]
    assert found([a, b, b, b, b], spent) == [
        *[(a, [1, 3], 1), (b, [1, 3], 1), (b, [1, 4], 2), (b, [2, 4], 1)]
    ]
    assert found([b, b], np.ones((2, 2))) == [(b, [1, 1], 2)]
    assert found([], np.ones((2, 0))) == []


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-12, 9.9e-7, 1e-6, 1.1e-6, 0.01, 1.0, 50.0])
def test_gains_have_nearly_all_digits(epsilon: float) -> None:
    known: dict[float, Decimal] = {}
    with localcontext(form._digits()):
        gain = form._gain(epsilon, known)
    assert known == {epsilon: gain}
    with mpmath.workdps(700):
        exact = mpmath.expm1(mpmath.mpf(epsilon))
        assert abs(mpmath.mpf(str(gain)) - exact) <= exact * mpmath.mpf(10) ** -37
    assert form._gain(epsilon, {epsilon: Decimal(7)}) == 7
    both = form._gains(np.array([epsilon, 2.0]), {epsilon: Decimal(7), 2.0: Decimal(3)})
    assert list(map(int, both)) == [7, 3]


@pytest.mark.parametrize("text", ["1e-10", "0.5", "3", "1e299", "1.5e300", "9e301", "7e5000"])
def test_logarithms_of_any_size(text: str) -> None:
    with mpmath.workdps(60):
        exact = float(mpmath.log1p(mpmath.mpf(text)))
    assert form._log1p(Decimal(text)) == pytest.approx(exact, rel=4 * UNIT)


def test_only_nothing_has_no_logarithm() -> None:
    assert form._log1p(Decimal("1e-400")) == LEAST
    assert form._log1p(Decimal(0)) == form._log1p(Decimal("0E+400")) == 0.0


def test_maps_are_multiplied_and_raised_to_powers() -> None:
    one = (Decimal(1), Decimal(2), Decimal(3), Decimal(5))
    two = (Decimal(7), Decimal(11), Decimal(13), Decimal(17))
    assert list(map(int, form._times(one, two))) == [33, 45, 86, 118]
    found = (Decimal(1), Decimal(0), Decimal(0), Decimal(1))
    for exponent in range(7):
        assert form._power(one, exponent) == found
        found = form._times(found, one)


@pytest.mark.parametrize("spent", [[0.5, 0.25], [0.0, 1.0], [2.0, 2.0]])
@pytest.mark.parametrize("step", [AGREE, DIFFER, FORGET, STICKY])
def test_sides_of_any_length_and_their_limit(step: BinaryStep, spent: list[float]) -> None:
    cost = np.array(spent)
    assert form._stationary_side(step, np.zeros(2), 5) == [0.0, 0.0]
    for count in (0, 1, 2, 3, 4, 7):
        costs = np.repeat(cost[:, None], count + 1, axis=1)
        costs[:, 0] = 0.0
        law = [Fraction(1, 2)] * 2
        expected = [truth([step] * count, law, costs, 0, pair) for pair in (0, 1)]
        assert form._stationary_side(step, cost, count) == pytest.approx(expected, rel=1e-14)
    limit = form._stationary_side(step, cost, None)
    assert limit == pytest.approx(form._stationary_side(step, cost, 10**6), rel=1e-14)
    assert form._stationary_side(step, cost, 10**6 + 1) == pytest.approx(limit, rel=1e-14)


def test_a_chain_that_never_moves_reveals_everything_in_the_end() -> None:
    never = BinaryStep.of(np.eye(2))
    assert form._limit(never, np.array([0.5, 0.5]), 0) == np.inf
    assert form._limit(never, np.array([0.0, 0.5]), 0) == 0.0
    flips = BinaryStep.of(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert form._limit(flips, np.array([0.5, 0.5]), 1) == np.inf
    falls = BinaryStep.of(np.array([[1.0, 0.0], [0.5, 0.5]]))  # a root without a square
    k = np.expm1(0.25)
    expected = np.log1p(0.5 * k / (1 - 0.5 * (1 + k)))
    assert form._limit(falls, np.array([0.25, 0.25]), 0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("move", "cost"), [(1e-300, 1e-300), (1e-40, 1e-80), (1e-80, 1e-40)])
def test_the_limit_of_a_chain_that_hardly_moves(move: float, cost: float) -> None:
    step = BinaryStep.of(np.array([[1.0, move], [move, 1.0]]))
    with mpmath.workdps(1500):
        out = mpmath.mpf(move) / (1 + mpmath.mpf(move))
        k, link = mpmath.expm1(mpmath.mpf(cost)), 1 - 2 * out
        slope = 1 + out * k - link * (1 + k)  # of one step
        root = mpmath.sqrt(slope**2 + 4 * out * (1 + k) * link * k)
        exact = float(mpmath.log1p((root - slope) / (2 * out * (1 + k))))
    found = form._limit(step, np.full(2, cost), 0)
    assert found == pytest.approx(exact, rel=1e-14, abs=0.0)


MOVES = {
    "agree": ([[0.75, 0.25], [0.375, 0.625]], [0.5, 0.5]),
    "differ": ([[0.125, 0.875], [0.5, 0.5]], [0.9, 0.1]),
    "slow": ([[0.9999, 0.0001], [0.0002, 0.9998]], [0.5, 0.5]),
    "a state that fades": ([[1.0, 1e-40], [0.5, 0.5]], [1.0, 1e-33]),
    "the other one": ([[0.5, 0.5], [1e-40, 1.0]], [1e-33, 1.0]),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("costs", [[0.5, 0.5], [0.0, 0.25], [1e-9, 3.0], [0.0, 0.0]])
def test_a_stretch_that_has_settled_is_as_if_it_were_walked(
    name: str, costs: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix, start = MOVES[name]
    step = BinaryStep.of(np.array(matrix))
    spent = np.concatenate(
        [np.ones((2, 3)), np.repeat(np.array(costs)[:, None], 97, axis=1), np.ones((2, 2))], axis=1
    )
    for begin in (None, np.array(start)):
        found = binary_losses(step, spent, start=begin)
        with monkeypatch.context() as patch:
            patch.setattr(form, "EVERY", 10**9)
            walked = binary_losses(step, spent, start=begin)
        assert found.upper == pytest.approx(walked.upper, rel=1e-15, abs=0.0)
        assert found.possible.tolist() == walked.possible.tolist()


def test_a_side_is_still_only_if_what_is_left_changes_nothing() -> None:
    with localcontext(form._digits()):
        one, tiny, gains = Decimal(1), Decimal("1e-30"), (Decimal(1), Decimal(1))
        assert form._still((one, one), (one, one), gains, 1000)
        assert not form._still((one, one), (one, 2 * one), gains, 1)
        assert form._still((one, one), (one, one + tiny), gains, 100)
        assert not form._still((one, one), (one, one + tiny), gains, 10**13)
        none = Decimal(0)
        assert form._still((none, one), (none, one), (none, one), 16)
        assert not form._still((none, one), (none, one + Decimal("1e-17")), (none, one), 16)
        gone, faint = Decimal("1e-346"), Decimal("1e-344")
        assert form._still((gone, gone), (gone / 2, gone / 2), (none, none), 10)
        assert not form._still((gone, gone), (gone / 2, gone / 2), (none, one), 10)
        assert not form._still((faint, gone), (faint / 2, gone / 2), (none, none), 10)


def test_what_is_left_is_weighed_by_the_least_of_both() -> None:
    with localcontext(form._digits()):
        one, gains = Decimal(1), (Decimal(1), Decimal(1))
        faint, large = Decimal("1e-25"), Decimal("1e10")
        assert not form._still((faint, one), (faint * 2, one), gains, 1)
        assert not form._still((one, faint), (one, faint * 2), gains, 1)
        assert not form._still((large, large), (large + 1, large + 1), gains, 1)
        close = large + Decimal("1e-9")
        assert form._still((large, large), (close, close), gains, 1)
        assert not form._still((large, large), (close, close), gains, 100)


@pytest.mark.parametrize("count", [10**12, 10**15 + 1])
def test_very_many_steps_have_as_many_digits_as_they_need(count: int) -> None:
    for step in (AGREE, STICKY):
        limit = form._stationary_side(step, np.array([0.5, 0.25]), None)
        found = form._stationary_side(step, np.array([0.5, 0.25]), count)
        assert found == pytest.approx(limit, rel=1e-14)
