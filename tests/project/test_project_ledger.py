"""The ledger of a project: never another one, one budget for the same cells, listed analysts."""

from fractions import Fraction
from pathlib import Path

from takifugu.errors import NotALedger
from takifugu.project.policy import InvalidProject
from takifugu.project.project import init_project
from tests.project.studies import with_prior
from tests.raising import raises
from tests.session.study import study


def test_another_ledger_in_its_place_is_refused(tmp_path: Path) -> None:
    project = study(tmp_path)
    for left in tmp_path.glob("takifugu.ledger*"):
        left.unlink()
    with raises(NotALedger, reason="missing"), project.ledger():
        pass  # none is made: it would have nothing spent
    init_project(tmp_path / "other", ledger="../takifugu.ledger")
    with raises(NotALedger, reason="other-ledger"), project.ledger():
        pass


def test_the_same_cells_get_one_budget_only(tmp_path: Path) -> None:
    project = study(tmp_path)
    copy = tmp_path / "sub" / "copy.toml"
    copy.parent.mkdir()
    text = (tmp_path / "stays.toml").read_text().replace("Stays", "Other")
    copy.write_text(text.replace("stays.csv", "../stays.csv"))
    before = project.file.read_bytes()
    with raises(InvalidProject, field="dataset", reason="same-rows"):
        project.add_dataset("again", copy)
    assert project.file.read_bytes() == before
    (tmp_path / "sub" / "stays.csv").write_bytes((tmp_path / "stays.csv").read_bytes())
    copy.write_text(text)
    assert project.add_dataset("again", copy).dataset("again").declaration == "sub/copy.toml"


def test_listed_analysts_alone_may_ask(tmp_path: Path) -> None:
    project = with_prior(tmp_path, analysts=["ana"])
    for who in (None, "anna"):
        with raises(InvalidProject, field="analyst"), project.session("stays", who):
            pass
    with raises(InvalidProject, field="analyst", reason="unlisted"):
        project.set_budget("stays", "1", analyst="anna")
    project.set_budget("stays", "1/2", analyst="ana")
    assert project.budget("stays", "ana") == Fraction(1, 2)
    with project.session("stays", "ana") as session:
        assert session.plan.histogram(epsilon=1).cost.fits is False
