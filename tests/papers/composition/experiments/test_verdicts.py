"""Claims about cells: what bears them out, what contradicts them, and what leaves them open."""

from collections.abc import Mapping

import pytest

from takifugu.papers.composition.experiments.contenders import (
    MAJORITY,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
)
from takifugu.papers.composition.experiments.measurements import Cell, Estimate
from takifugu.papers.composition.experiments.metrics import METRICS
from takifugu.papers.composition.experiments.verdicts import (
    AT_LEAST,
    BETTER,
    CLAIMS,
    ORDER,
    REVERSAL,
    ClaimVerdict,
    judgements,
    verdicts,
)


def cell(
    mechanism: str,
    lead: float | Mapping[str, float],
    half: float = 0.01,
    *,
    epsilon: float = 1.0,
    accuracy: float = 0.5,
) -> Cell:
    """A cell with the same lead in every metric, or with one for each."""
    leads = lead if isinstance(lead, Mapping) else dict.fromkeys(METRICS, lead)
    return Cell(
        "made up",
        mechanism,
        False,
        epsilon,
        0.1,
        1.0,
        dict.fromkeys(METRICS, Estimate(accuracy, half)),
        {name: Estimate(mean, half) for name, mean in leads.items()}
        if mechanism != TAKIFUGU
        else {},
    )


def said(*cells: Cell) -> dict[str, ClaimVerdict]:
    return {one.claim: one for one in verdicts([cell(TAKIFUGU, 0.0), *cells])}


def test_every_claim_is_borne_out_by_a_clear_order() -> None:
    found = said(cell(OURS_EXP, 0.3), cell(MQM_VECTOR, 0.1), cell(MQM_SPLIT, 0.5))
    assert tuple(found) == CLAIMS
    assert all(one.holds and not one.failed and not one.open for one in found.values())
    assert [found[claim].held for claim in CLAIMS] == [18, 3, 6, 6]
    assert found[BETTER].detail == "shown in 3 of 3 comparisons"


def test_a_lead_that_is_surely_negative_contradicts_the_first_claim() -> None:
    worse = dict.fromkeys(METRICS, 0.3) | {"hit": -0.02, "l1": -0.005}
    found = said(cell(OURS_EXP, worse))
    assert not found[AT_LEAST].holds
    assert (found[AT_LEAST].held, found[AT_LEAST].failed) == (5, 1)
    assert "hit against Ours-Exp at ε = 1: -0.02 ± 0.01" in found[AT_LEAST].detail
    assert found[BETTER].holds  # it speaks of accuracy alone


def test_better_is_judged_only_at_small_epsilon_and_where_there_is_room() -> None:
    assert said(cell(OURS_EXP, 0.0, epsilon=2.0))[BETTER].detail == "nothing to compare"
    assert said(cell(OURS_EXP, 0.0, accuracy=0.995))[BETTER].holds
    both_guess = said(cell(OURS_EXP, 0.005))[BETTER]
    assert (both_guess.holds, both_guess.open) == (False, 3)
    assert "open in 3 (acc@1 against Ours-Exp" in both_guess.detail
    assert said(cell(OURS_EXP, -0.02))[BETTER].failed == 3


@pytest.mark.parametrize(
    ("split", "held", "failed", "open_"), [(0.5, 6, 0, 0), (0.31, 0, 0, 6), (0.1, 0, 6, 0)]
)
def test_the_order_of_two_others_comes_from_their_leads(
    split: float, held: int, failed: int, open_: int
) -> None:
    found = said(cell(OURS_EXP, 0.3), cell(MQM_SPLIT, split))[ORDER]
    assert (found.held, found.failed, found.open) == (held, failed, open_)
    assert found.holds is (held > 0)
    [one] = [
        j
        for j in judgements([cell(OURS_EXP, 0.3), cell(MQM_SPLIT, split)])
        if j.claim == ORDER and j.metric == "acc@1"
    ]
    assert one.lead.mean == pytest.approx(split - 0.3)
    assert one.lead.half == pytest.approx(0.02)
    assert (one.better, one.worse) == (OURS_EXP, MQM_SPLIT)


def test_the_reversal_is_the_other_way_round() -> None:
    assert said(cell(OURS_EXP, 0.3), cell(MQM_VECTOR, 0.1))[REVERSAL].holds
    assert said(cell(OURS_EXP, 0.1), cell(MQM_VECTOR, 0.3))[REVERSAL].failed == 6
    assert not said(cell(OURS_EXP, 0.1))[REVERSAL].holds  # nothing shows it


def test_majority_is_no_mechanism() -> None:
    assert judgements([cell(MAJORITY, -0.5)]) == ()
