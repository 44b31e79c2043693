"""Plans in words: the same numbers as the plan prints, rounded the same way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from takifugu.project.project import open_project
from takifugu.session.release_plan import plan_words
from takifugu.session.session import Session
from takifugu.visible import four_digits
from tests.server.projects import small_project
from tests.session.world import opened


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder: Path = tmp_path_factory.mktemp("words")
    with open_project(small_project(folder, budget="2")).session("stays") as asking:
        yield asking


@pytest.mark.nightly
@pytest.mark.parametrize("epsilon", ["0.001", "0.2", "1", "5"])
def test_words_are_those_that_the_plan_prints(session: Session, epsilon: str) -> None:
    plan = session.plan.histogram(by="zone", epsilon=epsilon)
    words, text = plan_words(plan), str(plan)
    for name in ("error", "odds", "useful", "verdict"):
        assert words[name] in text
    assert words["cost"].replace("ε", "epsilon") in text
    assert f"{words['spent']} is spent" in text or not plan.cost.fits
    assert words["confirm"] == plan.needs_confirmation
    if plan.cost.marginal is not None:
        assert four_digits(plan.cost.marginal, "up") in words["takes"]
    assert four_digits(plan.cost.alone, "up") in words["takes"]
    assert bool(words["over"]) == (not plan.cost.fits)


@pytest.mark.nightly
def test_what_is_offered_instead_is_accepted(session: Session) -> None:
    over = plan_words(session.plan.histogram(epsilon="5"))
    assert session.plan.histogram(epsilon=over["most"]).cost.fits
    noise = plan_words(session.plan.histogram(by="zone", epsilon="0.001"))
    better = session.plan.histogram(by="zone", epsilon=noise["needed"])
    assert better.cost.fits and better.usefulness.verdict == "useful"
    assert plan_words(better)["needed"] is None and plan_words(better)["most"] is None


def test_a_stored_answer_costs_nothing_and_says_so(session: Session) -> None:
    plan = session.plan.histogram(by="zone", epsilon="0.3")
    session.release(plan)
    words = plan_words(session.plan.histogram(by="zone", epsilon="0.3"))
    assert (words["cost"], words["adds"], words["takes"]) == ("nothing", "0", "free")
    assert words["notes"][0].startswith("free")
    assert not words["confirm"] and not words["over"]


def test_who_asks_without_a_budget_of_their_own_is_named(tmp_path: Path) -> None:
    told = "asked by analyst 'ana', who has no budget of their own"
    with opened(tmp_path, how={"analyst": "ana"}) as (asking, ledger, _):
        assert told in str(asking.plan.histogram(epsilon="1/2")).splitlines()
        ledger.set_budget("visits", 1, analyst="ana")
        assert told not in (text := str(asking.plan.histogram(epsilon="1/2")))
        assert "is spent by analyst 'ana'" in text


def test_a_plan_says_what_all_rows_of_an_entity_add_up_to(tmp_path: Path) -> None:
    """Group DP: as many times the loss of a replaced entry as an entity has rows."""
    with opened(tmp_path) as (session, _, _):
        plan = session.plan.histogram(epsilon=1)
        many = plan.reads.longest
        assert many is not None and many > 1
        together = four_digits(float(many * plan.cost.per_entry), "up")
        (line,) = plan.all_rows
        assert f"up to {many}: at most ε = {together} " in line and line in str(plan)
