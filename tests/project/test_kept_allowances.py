"""Allowances by value that are cached beside a project: confirmed each time, never trusted."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.costs.cost import Cost, Membership
from takifugu.costs.losses import Pure
from takifugu.priors import MarkovChain
from takifugu.project.project_cache import KeptAllowances
from takifugu.session.release_cost import Prices
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation
from tests.project.studies import three_places
from tests.session.hospital import CHAIN, TRANSLATION

HOME = Cost.of({Membership(["home"]): 1})


class Counted(LossTranslation):
    """A translation that counts how often an allowance is searched for."""

    def __init__(self) -> None:
        self.searches = 0

    def to_pufferfish(self, dp: float, /) -> Any:
        """As it is."""
        return TRANSLATION.to_pufferfish(dp)

    def to_dp(self, pufferfish: float, /) -> Any:
        """As it is."""
        return TRANSLATION.to_dp(pufferfish)

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """As it is."""
        return TRANSLATION.cost_to_pufferfish(*costs)

    def to_cost(self, unit: Cost, pufferfish: float, **others: Any) -> Fraction:
        """As it is, and counted."""
        self.searches += 1
        return TRANSLATION.to_cost(unit, pufferfish, **others)


def allowed(folder: Path, epsilon: str = "1") -> tuple[Fraction, int]:
    """The allowance of a count, by new prices, and how often it was searched for."""
    counted = Counted()
    prices = Prices("stays", counted, KeptAllowances(folder, "stays", TRANSLATION))
    found = prices.allowed(epsilon, None, HOME)
    assert isinstance(found, Pure)
    return found.epsilon, counted.searches


def test_an_allowance_is_searched_for_once(tmp_path: Path) -> None:
    first, searches = allowed(tmp_path)
    assert searches == 1 and first == TRANSLATION.to_cost(HOME, 1.0)
    assert allowed(tmp_path) == (first, 0)
    assert allowed(tmp_path, "0.5")[1] == 1
    assert allowed(tmp_path, "0.5")[1] == allowed(tmp_path)[1] == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(text.split('"')[-2], "100"),  # would lose far more
        lambda text: text.replace(text.split('"')[-2], "-1"),
        lambda text: text.replace(text.split('"')[-2], "nan"),
        lambda text: text.replace("takifugu-allowances-1", "takifugu-allowances-2"),
        lambda text: text.replace('"translation": "', '"translation": "0'),
        lambda text: text[:-20],
        lambda _: "[]",
        lambda _: "",
    ],
)
def test_a_file_that_was_changed_is_not_believed(tmp_path: Path, change: Any) -> None:
    first, _ = allowed(tmp_path)
    (path,) = (tmp_path / ".takifugu").glob("*.allowances.json")
    path.write_text(change(path.read_text()))
    assert allowed(tmp_path) == (first, 1)
    assert allowed(tmp_path) == (first, 0)  # and mended


def test_allowances_of_another_translation_are_others(tmp_path: Path) -> None:
    allowed(tmp_path)
    other = Translation(MarkovChain(CHAIN.transition, CHAIN.states, length=6))
    assert KeptAllowances(tmp_path, "stays", other).find(HOME, 1.0) is None
    assert KeptAllowances(tmp_path, "others", TRANSLATION).find(HOME, 1.0) is None


def test_a_folder_that_cannot_be_written_to_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / ".takifugu").write_text("a file")
    assert allowed(tmp_path)[1] == allowed(tmp_path)[1] == 1


def test_a_project_keeps_them_and_plans_the_same_again(tmp_path: Path) -> None:
    project = three_places(tmp_path)
    with project.session("stays") as session:
        plan = session.plan.count("home", epsilon="1")
        assert plan.cost.by_value is not None
        first = session.release(plan, accept_noise=True)
    assert list((tmp_path / ".takifugu").glob("stays.*.allowances.json"))
    for table in (True, False):
        with project.session("stays", table=table) as session:
            again = session.plan.count("home", epsilon="1")
            assert again.stored and session.release(again, accept_noise=True).rows == first.rows
