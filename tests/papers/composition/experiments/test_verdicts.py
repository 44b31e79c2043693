"""Claims about cells: what shows them, what contradicts them, what leaves them open, and ties."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from takifugu.papers.composition.experiments.experiment import (
    GROUP_DP,
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
)
from takifugu.papers.composition.experiments.measurements import Cell, Difference, Estimate
from takifugu.papers.composition.experiments.metrics import METRICS, difference, interval
from takifugu.papers.composition.experiments.verdicts import (
    AT_LEAST,
    BETTER,
    CLAIMS,
    ORDER,
    REVERSAL,
    ClaimVerdict,
    Judgement,
    comparisons,
    judge,
    judgements,
    verdicts,
)

REPETITIONS = 200
ERROR = 0.001


def lead(mean: float, error: float = ERROR) -> Difference:
    return Difference(mean, error, 1e-6, REPETITIONS)


TIE = Difference(0.0, 0.0, 0.0, REPETITIONS)


def cell(
    mechanism: str,
    ours: float | Difference | Mapping[str, float],
    exp: float | Difference = 0.0,
    *,
    epsilon: float = 1.0,
    accuracy: float = 0.5,
) -> Cell:
    """A cell with the same leads in every metric, or with one of takifugu for each."""
    means = ours if isinstance(ours, Mapping) else dict.fromkeys(METRICS, ours)
    leads = {m: one if isinstance(one, Difference) else lead(one) for m, one in means.items()}
    over = exp if isinstance(exp, Difference) else lead(exp)
    compared = mechanism in (MQM_SPLIT, MQM_VECTOR, GROUP_DP)
    return Cell(
        "made up",
        mechanism,
        False,
        epsilon,
        0.1,
        1.0,
        dict.fromkeys(METRICS, Estimate(accuracy, 0.01)),
        {} if mechanism == TAKIFUGU else leads,
        dict.fromkeys(METRICS, over) if compared else {},
    )


def said(*cells: Cell) -> dict[str, ClaimVerdict]:
    return {one.claim: one for one in verdicts([cell(TAKIFUGU, 0.0), *cells])}


def counts(verdict: ClaimVerdict) -> tuple[int, int, int, int]:
    return verdict.shown, verdict.tied, verdict.open, verdict.contradicted


def test_every_claim_is_shown_by_a_clear_order() -> None:
    found = said(cell(OURS_EXP, 0.3), cell(MQM_VECTOR, 0.1, -0.2), cell(MQM_SPLIT, 0.5, 0.2))
    assert tuple(found) == CLAIMS
    assert [counts(found[claim]) for claim in CLAIMS] == [(n, 0, 0, 0) for n in (18, 3, 6, 6)]
    assert all(one.holds and one.compared == one.shown for one in found.values())


def test_a_tie_is_neither_shown_nor_open() -> None:
    found = said(cell(OURS_EXP, 0.3), cell(MQM_VECTOR, TIE, -0.2), cell(MQM_SPLIT, 0.0, TIE))
    assert counts(found[AT_LEAST]) == (6, 6, 6, 0) and found[AT_LEAST].holds
    assert counts(found[ORDER]) == (0, 6, 0, 0) and not found[ORDER].holds
    assert lead(0.0).exactly_zero is False and TIE.exactly_zero is True


def test_a_lead_that_is_surely_negative_contradicts_the_first_claim() -> None:
    worse = dict.fromkeys(METRICS, 0.3) | {"hit": -0.02, "l1": -0.0005}
    found = said(cell(OURS_EXP, worse))
    assert counts(found[AT_LEAST]) == (4, 0, 1, 1) and not found[AT_LEAST].holds
    assert found[BETTER].holds  # it speaks of accuracy alone


def test_better_is_judged_only_at_small_epsilon_and_where_there_is_room() -> None:
    assert said(cell(OURS_EXP, 0.0, epsilon=2.0))[BETTER].compared == 0
    assert said(cell(OURS_EXP, 0.0, accuracy=0.995))[BETTER].holds
    both_guess = said(cell(OURS_EXP, 0.0005))[BETTER]
    assert counts(both_guess) == (0, 0, 3, 0) and not both_guess.holds
    assert said(cell(OURS_EXP, -0.02))[BETTER].contradicted == 3


def test_comparisons_that_were_left_out_still_widen_the_intervals_of_the_others() -> None:
    near = cell(OURS_EXP, 0.3)
    near = replace(near, measured={**near.measured, "acc@1": Estimate(0.999, 0.001)})
    own = [j for j in judgements([near]) if j.comparison.claim == BETTER]
    assert [j.comparison.metric for j in own] == ["acc@2", "acc@3"]
    assert own[0].lead == interval(lead(0.3), together=3)


@pytest.mark.parametrize(
    ("over", "expected"),
    [(0.2, (6, 0, 0, 0)), (0.0005, (0, 0, 6, 0)), (-0.2, (0, 0, 0, 6))],
)
def test_the_order_is_tested_in_both_directions(
    over: float, expected: tuple[int, int, int, int]
) -> None:
    cells = cell(OURS_EXP, 0.3), cell(MQM_SPLIT, 0.5, over)
    found = said(*cells)[ORDER]
    assert counts(found) == expected
    assert found.holds is (over == 0.2)
    [one] = [
        j
        for j in judgements(cells)
        if (j.comparison.claim, j.comparison.metric) == (ORDER, "acc@1")
    ]
    assert (one.comparison.better, one.comparison.worse) == (OURS_EXP, MQM_SPLIT)
    assert one.lead.mean == over and one.lead == interval(lead(over), together=6)


def test_the_reversal_is_the_other_way_round() -> None:
    assert said(cell(OURS_EXP, 0.3), cell(MQM_VECTOR, 0.1, -0.2))[REVERSAL].holds
    against = said(cell(OURS_EXP, 0.3), cell(MQM_VECTOR, 0.1, 0.2))[REVERSAL]
    assert counts(against) == (0, 0, 0, 6)
    assert not said(cell(OURS_EXP, 0.1))[REVERSAL].holds  # nothing shows it
    [first, *_] = [c for c in comparisons([cell(MQM_VECTOR, 0.1, -0.2)]) if c.claim == REVERSAL]
    assert (first.better, first.worse, first.lead.mean) == (MQM_VECTOR, OURS_EXP, 0.2)


def test_what_one_interval_would_show_many_together_may_not() -> None:
    """Between 1.97 and 2.67 standard errors: clear alone, open among six."""
    found: list[Judgement] = []
    for together in (1, 6):
        [first, *_] = [c for c in comparisons([cell(MQM_SPLIT, 0.5, -2.3 * ERROR)]) if
                       c.claim == ORDER]  # fmt: skip
        found.append(judge(first, together))
    assert [one.outcome for one in found] == ["contradicted", "open"]
    assert all(one.doubted for one in found)


@pytest.mark.nightly
def test_all_comparisons_are_right_at_once_as_often_as_it_says() -> None:
    """Equal mechanisms, twelve comparisons of one stream: seldom is any of them judged wrongly.

    500 runs of a given seed: at a rate of 1 in 20 more than 45 would be four standard deviations.
    """
    rng = np.random.default_rng(11)
    wrong = alone = 0
    for _ in range(500):
        common = rng.normal(size=(40, 100))
        leads = [difference(common + rng.normal(size=(40, 100)), least=0.0) for _ in range(12)]
        joint = [interval(one, together=12) for one in leads]
        wrong += any(abs(one.mean) > one.half for one in joint)
        single = [interval(one) for one in leads]
        alone += any(abs(one.mean) > one.half for one in single)
    assert wrong <= 45
    assert alone > 75  # and the test would notice


def test_majority_is_no_mechanism() -> None:
    assert judgements([cell(MAJORITY, -0.5)]) == ()
