"""What the owner accepted holds until the moment of the charge, by whichever door it comes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from takifugu.cli.commands.ledger_command import app
from takifugu.errors import NotAccepted
from takifugu.fitting import FitOptions
from takifugu.project.project import Project, open_project
from takifugu.session import Session
from takifugu.tables import open_engine
from tests.session.study import study


def fitted(folder: Path) -> Project:
    """A project whose prior was fitted on the first steps, with a budget."""
    project, *_ = study(folder).fit("stays", FitOptions(first_days=8))
    project.set_budget("stays", "100")
    return project


def with_line(project: Project, line: str) -> Project:
    """The project with one more line in the policy of its dataset."""
    head = "[dataset.stays]\n"
    text = project.file.read_text(encoding="utf-8")
    assert head in text
    project.file.write_text(text.replace(head, f"{head}{line}\n"), encoding="utf-8")
    return open_project(project.file)


def without_line(project: Project, line: str) -> Project:
    text = project.file.read_text(encoding="utf-8")
    project.file.write_text(text.replace(f"{line}\n", ""), encoding="utf-8")
    return open_project(project.file)


ALLOWED = "release_fitted_rows = true"


@pytest.mark.nightly
def test_a_permission_that_is_taken_back_ends_at_once(tmp_path: Path) -> None:
    """Also for a session that was opened, and a plan that was made, under it."""
    project = with_line(fitted(tmp_path), ALLOWED)
    project.accept_prior("stays", project.change("stays"))
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
        plan = session.plan.histogram(window=(0, 8), epsilon=2)
        back = without_line(project, ALLOWED)
        back.accept_prior("stays", back.change("stays"))
        with back.ledger() as ledger:
            head = ledger.head()
        with pytest.raises(NotAccepted):
            session.release(plan, accept_noise=True)
        with pytest.raises(NotAccepted):
            session.plan.histogram(epsilon=2)
        with back.ledger() as ledger:
            assert ledger.head() == head
    with back.session("stays") as session:
        assert session.release(session.plan.histogram(epsilon=1), accept_noise=True)


@pytest.mark.nightly
def test_a_session_in_python_takes_no_permission_that_the_owner_did_not_give(
    tmp_path: Path,
) -> None:
    project = fitted(tmp_path)
    translation = project.load("stays").translation
    with project.ledger() as ledger, open_engine(project.load("stays").declaration) as engine:
        with pytest.raises(NotAccepted):
            Session(
                engine,
                translation,
                ledger=ledger,
                dataset="stays",
                home=project.folder,
                release_fitted_rows=True,
            )
        session = Session(engine, translation, ledger=ledger, dataset="stays", home=project.folder)
        assert session.releasable.start is not None
        assert session.release(session.plan.histogram(epsilon=1), accept_noise=True)


@pytest.mark.nightly
def test_rules_that_were_released_by_hold_where_nobody_ever_accepted_any(tmp_path: Path) -> None:
    """A prior that was entered by hand is in no event before the first charge."""
    (tmp_path / "one").mkdir()
    made = fitted(tmp_path / "one")
    (tmp_path / "two").mkdir()
    project = study(tmp_path / "two")
    section = made.file.read_text(encoding="utf-8").partition("[[dataset.stays.prior]]")
    text = project.file.read_text(encoding="utf-8")
    project.file.write_text(text + section[1] + section[2], encoding="utf-8")
    for prior in (tmp_path / "one").glob("*.prior.json"):
        (tmp_path / "two" / prior.name).write_bytes(prior.read_bytes())
    project = open_project(project.file)
    project.set_budget("stays", "100")
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    changed = with_line(project, ALLOWED)
    with pytest.raises(NotAccepted), changed.session("stays"):
        raise AssertionError("released from fitted rows")
    changed.accept_prior("stays", changed.change("stays"))
    with changed.session("stays") as session:
        assert session.releasable.start is None


@pytest.mark.nightly
@pytest.mark.parametrize("vouched", [False, True])
def test_a_loss_is_read_by_the_present_prior_only_on_the_owners_word(
    tmp_path: Path, vouched: bool
) -> None:
    """A weaker prior may have been in use, and admitted more, in the part that is lost."""
    project, copy = fitted(tmp_path), tmp_path / "copy"
    project.set_budget("stays", "2")
    with project.ledger() as ledger:
        ledger.backup(copy)
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    words = ["restore", str(copy), "--accept-loss", "--project", str(project.file)]
    done = CliRunner().invoke(app, [*words, *(["--same-prior", "--no-costs"] if vouched else [])])
    assert done.exit_code == 0, done.output
    with project.ledger() as ledger:
        (total,) = ledger.lost("stays")
    assert (total.epsilon == 2) != vouched and 0 < total.epsilon <= 2
