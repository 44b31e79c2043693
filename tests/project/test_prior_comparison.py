"""What adversaries with other priors learn from releases that were made under this one."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from takifugu.errors import UnsoundRequest
from takifugu.priors import AR1, Gaussian, MarkovChain, Prior, write_prior
from takifugu.project.budgets import PRESENT, compare_priors
from takifugu.project.project import Project, init_project
from takifugu.translation.translation import Translation
from tests.cli.running import call
from tests.cli.test_several_columns_cli import DECLARED
from tests.project.studies import CHAIN, three_places, with_prior
from tests.raising import raises
from tests.session import hospital
from tests.session.tables import CHAIN as CHAIN_OF_BOTH
from tests.session.tables import HEADER, NETWORK, ROWS

STICKY = replace(CHAIN, transition=np.array([[0.95, 0.05], [0.1, 0.9]]))


def written(folder: Path, prior: Prior, name: str = "other.json") -> str:
    write_prior(prior, folder / name)
    return str(folder / name)


def events(project: Project) -> int:
    with project.ledger(read_only=True) as ledger:
        return ledger.head().seq


@pytest.mark.nightly
def test_every_release_and_all_together_are_translated_anew(tmp_path: Path) -> None:
    project = with_prior(tmp_path)
    with project.session("stays") as session:
        plans = [session.plan.histogram(epsilon=e) for e in ("0.3", "0.5")]
        plans.append(session.plan.histogram(epsilon="0.2", window=(0, 6)))
        for plan in plans:
            session.release(plan, accept_noise=True)
    file, before = written(tmp_path, STICKY), events(project)
    found = compare_priors(project, "stays", [file])
    assert events(project) == before  # nothing was written
    spent = [plan.cost.per_entry for plan in plans]
    for name, prior in ((PRESENT, CHAIN), (file, STICKY)):
        translation = Translation(prior)
        for release, loss in zip(found.releases, spent, strict=True):
            assert release.losses[name] == float(translation.to_pufferfish(float(loss)))
        whole = float(translation.to_pufferfish(float(sum(spent))))
        assert found.totals[name] == pytest.approx(whole, rel=1e-9)
    assert found.totals[file] > found.totals[PRESENT] and found.count == 3
    assert found.leaks == {PRESENT: None, file: None}  # a window: some rows may have lost less
    assert found.budget == 2 and found.beyond == (file,)
    short = compare_priors(project, "stays", [file], last=1)
    assert short.releases == found.releases[-1:] and short.count == 3
    assert short.totals == found.totals


@pytest.mark.nightly
def test_what_is_leaked_is_said_where_all_rows_lost_the_same(tmp_path: Path) -> None:
    project, file = with_prior(tmp_path), written(tmp_path, STICKY)
    with project.session("stays") as session:
        for epsilon in ("0.3", "0.5"):
            session.release(session.plan.histogram(epsilon=epsilon), accept_noise=True)
        found = compare_priors(project, "stays", [file])
        assert found.leaks[file] == pytest.approx(found.totals[file], rel=1e-6)  # two states: exact
        assert (found.leaks[file] or 0) <= found.totals[file]
        session.release(session.plan.histogram(epsilon="0.2", window=(0, 1)), accept_noise=True)
    assert compare_priors(project, "stays", [file]).leaks == {PRESENT: None, file: None}


def test_values_are_told_apart_under_other_priors_too(tmp_path: Path) -> None:
    project = three_places(tmp_path)
    with project.session("stays") as session:
        plan = session.plan.count(values=["ward"], epsilon=1)
        session.release(plan, accept_noise=True)
    assert plan.cost.by_value is not None
    other = replace(hospital.CHAIN, transition=np.full((3, 3), 1 / 3))
    file = written(tmp_path, other)
    found = compare_priors(project, "stays", [file])
    truth = Translation(other).cost_to_pufferfish(plan.cost.by_value)
    assert found.totals[file] == truth == pytest.approx(float(plan.cost.by_value.scalar))
    leak = found.leaks[file]
    assert leak is not None and 0.9 * truth < leak <= truth
    assert found.totals[PRESENT] > truth


def test_losses_with_delta_are_read_at_that_of_the_budget(tmp_path: Path) -> None:
    project = with_prior(tmp_path)
    project.set_budget("stays", "2", delta="1e-6")
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon=1, delta="1e-6"), accept_noise=True)
    file = written(tmp_path, STICKY)
    found = compare_priors(project, "stays", [file])
    assert found.delta == Fraction(1, 10**6)
    with project.ledger(read_only=True) as ledger:
        assert found.totals[file] == ledger.spent("stays", Translation(STICKY))
    assert found.releases[0].losses[file] >= found.releases[0].losses[PRESENT] > 0
    assert found.leaks == {PRESENT: None, file: None}


def test_a_prior_that_exceeds_the_budget_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = with_prior(tmp_path)
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon="1.9"), accept_noise=True)
    written(tmp_path, replace(CHAIN, transition=np.array([[0.99, 0.01], [0.01, 0.99]])), "a.json")
    written(tmp_path, STICKY, "b.json")
    shown = call(tmp_path, monkeypatch, "prior", "compare", "stays", "a.json", "b.json")
    assert shown.status == 0, shown.err
    assert "all together" in shown.out and "nothing was charged" in shown.out
    assert "under a.json that is more than the budget of 2" in shown.out
    found = call(tmp_path, monkeypatch, "prior", "compare", "stays", "a.json", "--json").json()
    assert found["beyond"] == ["a.json"] and found["count"] == 1
    assert set(found["totals"]) == {"present", "a.json"}
    assert found["releases"][0]["query"]["name"] == "histogram"


@pytest.mark.nightly
def test_what_is_not_about_these_rows_is_refused(tmp_path: Path) -> None:
    project = with_prior(tmp_path)
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon="0.1"), accept_noise=True)
    others = {
        "labels.json": MarkovChain(CHAIN.transition, states=("day", "night"), length=12),
        "short.json": replace(CHAIN, length=3),
        "numbers.json": Gaussian(AR1(0.5)),
    }
    for name, prior in others.items():
        with pytest.raises(UnsoundRequest):
            compare_priors(project, "stays", [written(tmp_path, prior, name)])
    file = written(tmp_path, STICKY)
    with raises(UnsoundRequest, field="priors"):
        compare_priors(project, "stays", [file, file])
    with pytest.raises(UnsoundRequest):
        compare_priors(project, "stays", [file], over="entities")


@pytest.mark.nightly
def test_without_releases_nothing_is_lost_and_analysts_have_their_own(tmp_path: Path) -> None:
    project = with_prior(tmp_path)
    file = written(tmp_path, STICKY)
    empty = compare_priors(project, "stays", [file])
    assert empty.count == 0 and set(empty.totals.values()) == {0.0}
    project.set_budget("stays", "1", analyst="eve")
    with project.session("stays", "eve") as session:
        session.release(session.plan.histogram(epsilon="0.4"), accept_noise=True)
    mine = compare_priors(project, "stays", [file], analyst="eve")
    assert mine.budget == 1 and mine.count == 1 and mine.releases[0].analyst == "eve"
    nobody = compare_priors(project, "stays", [file], analyst="bob")
    assert nobody.count == 0 and nobody.totals[file] == 0


def test_columns_of_a_row_and_joint_sequences_are_compared_by_their_readings(
    tmp_path: Path,
) -> None:
    """A column asked at ε tells ε about itself, and by the closed form about another."""
    (tmp_path / "table.csv").write_text(
        "\n".join([",".join(HEADER), *(",".join(map(str, row)) for row in ROWS)]) + "\n"
    )
    (tmp_path / "survey.toml").write_text(DECLARED)
    apart = replace(NETWORK, parents=((), ()), tables=(np.array([0.6, 0.4]), np.array([0.7, 0.3])))
    write_prior(apart, tmp_path / "apart.json")
    project = init_project(tmp_path).add_dataset(
        "survey", tmp_path / "survey.toml", priors=[tmp_path / "apart.json"], over="row"
    )
    project.set_budget("survey", "2")
    with project.session("survey") as session:
        plan = session.plan.histogram(column="health", epsilon="0.5")
        session.release(plan, accept_noise=True)
    spent = float(plan.cost.per_entry)
    file = written(tmp_path, NETWORK)
    found = compare_priors(project, "survey", [file])  # read as those of the policy are
    assert found.totals[PRESENT] == pytest.approx(spent) == pytest.approx(0.5, rel=1e-3)
    assert found.totals[file] == pytest.approx(spent)  # `health` itself; `place` loses less
    gain = np.expm1(spent)
    about_place = np.log((1 + gain * 0.5) / (1 + gain * 0.1))
    assert 0 < about_place < spent
    joint = written(tmp_path, CHAIN_OF_BOTH, "joint.json")
    sequence = compare_priors(project, "survey", [joint], over="sequence")
    assert sequence.totals[joint] > found.totals[PRESENT]  # rows tell about each other
    with pytest.raises(UnsoundRequest):  # a chain is no network over columns
        compare_priors(project, "survey", [joint])
    swapped = replace(NETWORK, entries=("place", "mood"), parents=((), ("place",)))
    with pytest.raises(UnsoundRequest):
        compare_priors(project, "survey", [written(tmp_path, swapped, "mood.json")])
