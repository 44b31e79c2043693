"""A dataset that was about one column becomes one about all of them, and back: nothing is lost."""

from pathlib import Path

import numpy as np
import pytest

from takifugu.errors import CellsChanged, NotAccepted, SameRows
from takifugu.priors import BayesianNetwork, MarkovChain, write_prior
from takifugu.project.policy import InvalidProject
from takifugu.project.project import Project, init_project, open_project
from tests.declared import declared
from tests.raising import raises

PLACES, HEALTH = ("home", "out", "ward"), ("well", "ill")
DECLARED = declared(
    "table.csv", "person", "step", {"place": ["home", "out", "ward"], "health": ["well", "ill"]}
)
CHAIN = MarkovChain(np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]]), states=PLACES)
NETWORK = BayesianNetwork(
    entries=("place", "health"),
    states=(PLACES, HEALTH),
    parents=((), ("place",)),
    tables=(np.array((0.5, 0.3, 0.2)), np.array(((0.9, 0.1), (0.6, 0.4), (0.2, 0.8)))),
)
ONE = 'about = "place"\n'
CHAIN_OF_PLACES = 'file = "chain.json"\n'
NETWORK_OF_BOTH = 'file = "network.json"\nover = "row"\n'


def begun(folder: Path) -> Project:
    """A dataset about places, from which two queries were answered."""
    rows = [(f"p{k}", s, PLACES[k * s % 3], HEALTH[(k + s) % 2]) for k in range(4) for s in (0, 1)]
    lines = ["person,step,place,health", *(",".join(map(str, row)) for row in rows)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    (folder / "survey.toml").write_text(DECLARED)
    write_prior(CHAIN, folder / "chain.json")
    write_prior(NETWORK, folder / "network.json")
    project = init_project(folder).add_dataset(
        "survey", folder / "survey.toml", about="place", priors=[folder / "chain.json"]
    )
    project.set_budget("survey", "9")
    with project.session("survey") as session:
        session.release(session.plan.count(["home"], epsilon="1/2"), accept_noise=True)
        session.release(session.plan.histogram(epsilon="1/2"), accept_noise=True)
    return project


def edited(project: Project, *changes: tuple[str, str]) -> Project:
    text = project.file.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    project.file.write_text(text)
    return open_project(project.file)


@pytest.mark.nightly
def test_earlier_releases_count_on_every_column_once_the_owner_says_so(tmp_path: Path) -> None:
    project = begun(tmp_path)
    with project.ledger(read_only=True) as ledger:
        (lost,) = ledger.lost("survey")
        assert lost.costs  # a count of a label, by value, that names no column
    wider = edited(project, (ONE, ""), (CHAIN_OF_PLACES, NETWORK_OF_BOTH))
    with raises(NotAccepted), wider.session("survey"):
        pass
    change = wider.change("survey")
    assert change.needed
    wider.accept_prior("survey", change)
    with pytest.raises(CellsChanged), wider.session("survey") as session:
        session.release(session.plan.histogram("health", epsilon="1/2"), accept_noise=True)
    pending = wider.pending("survey")
    assert pending.charged and pending.changes
    wider.accept(pending)
    with wider.session("survey") as session:
        assert session.columns == ("place", "health")
        # what named no column may have been about any of them, and counts as any change of a row
        assert session.spent() >= float(lost.scalar) * (1 - 1e-9)
        before = session.spent()
        session.release(session.plan.histogram("health", epsilon="1/2"), accept_noise=True)
        assert session.spent() > before
    named = '\ndeclaration = "survey.toml"\n'
    narrow = edited(wider, (NETWORK_OF_BOTH, CHAIN_OF_PLACES), (named, f"{named}{ONE}"))
    narrow.accept_prior("survey", narrow.change("survey"))
    narrow.accept(narrow.pending("survey"))
    with narrow.session("survey") as session:
        assert session.about == "place"
        assert session.spent() >= before * (1 - 1e-9)
        session.release(session.plan.count(["out"], epsilon="1/10"), accept_noise=True)


@pytest.mark.nightly
def test_the_new_columns_are_known_to_the_ledger(tmp_path: Path) -> None:
    """A dataset about one of them, elsewhere in the same ledger, would be a second budget."""
    project = begun(tmp_path)
    wider = edited(project, (ONE, ""), (CHAIN_OF_PLACES, NETWORK_OF_BOTH))
    wider.accept_prior("survey", wider.change("survey"))
    wider.accept(wider.pending("survey"))
    with wider.session("survey") as session:
        session.release(session.plan.histogram("health", epsilon="1/2"), accept_noise=True)
    (tmp_path / "copy.csv").write_bytes((tmp_path / "table.csv").read_bytes())
    (tmp_path / "copy.toml").write_text(DECLARED.replace("table.csv", "copy.csv"))
    health = MarkovChain(np.full((2, 2), 0.5), states=HEALTH)
    write_prior(health, tmp_path / "health.json")
    other = wider.add_dataset(
        "copy", tmp_path / "copy.toml", about="health", priors=[tmp_path / "health.json"]
    )
    other.set_budget("copy", "9")
    with other.session("copy") as session, raises(SameRows):
        session.release(session.plan.histogram(epsilon="1/2"), accept_noise=True)


def test_a_table_of_a_reading_of_rows_is_refused_and_not_left_out_silently(tmp_path: Path) -> None:
    project = begun(tmp_path)
    wider = edited(project, (ONE, "table = true\n"), (CHAIN_OF_PLACES, NETWORK_OF_BOTH))
    with raises(InvalidProject, field="dataset, survey, table"):
        _ = wider.load("survey").translation
