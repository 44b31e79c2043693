"""A policy may widen the guarantee: any start, any known entries. Everybody is told."""

from pathlib import Path

from takifugu.project.policy import InvalidProject, parse_policy
from takifugu.project.project import Project, open_project
from tests.project.studies import with_prior
from tests.raising import raises

PRIOR = "[[dataset.stays.prior]]\n"


def widened(project: Project, *lines: str) -> Project:
    text = project.file.read_text()
    assert PRIOR in text
    added = "".join(f"{line}\n" for line in lines)
    project.file.write_text(text.replace(PRIOR, PRIOR + added))
    return open_project(project.file)


def test_a_policy_widens_the_guarantee_and_says_so(tmp_path: Path) -> None:
    plain = with_prior(tmp_path)
    before = plain.load("stays").translation
    loss, mark = float(before.to_pufferfish(0.5)), before.fingerprint
    wide = widened(plain, 'start = "unknown"', 'known = "any"').load("stays").translation
    (prior,) = wide.priors.values()
    assert (prior.start, prior.known) == ("unknown", "any")  # type: ignore[attr-defined]
    assert float(wide.to_pufferfish(0.5)) > loss
    assert wide.fingerprint != mark


def test_nothing_is_released_before_the_owner_accepts_and_then_the_guarantee_says_it(
    tmp_path: Path,
) -> None:
    plain = with_prior(tmp_path)
    with plain.session("stays") as session:
        assert "any law for the first row" not in " ".join(session.guarantee().split())
    wide = widened(plain, 'start = "unknown"', 'known = "any"')
    change = wide.change("stays")
    assert change.needed
    wide.accept_prior("stays", change)
    with wide.session("stays") as session:
        text = " ".join(session.guarantee().split())
        assert "may hold any law for the first row that is read" in text
        assert "may also know any other rows of the same" in text


def test_other_words_are_refused(tmp_path: Path) -> None:
    project = with_prior(tmp_path)
    for key, value in (("start", "free"), ("known", "all")):
        text = project.file.read_text().replace(PRIOR, f'{PRIOR}{key} = "{value}"\n')
        with raises(InvalidProject, field=f"dataset, stays, prior, {key}", reason="choice"):
            parse_policy(text)
