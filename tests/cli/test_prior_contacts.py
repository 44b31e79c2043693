"""``takifugu prior contacts``: from a list of contacts to a plan, and what is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from takifugu.cli.shared_options import InvalidOption
from takifugu.errors import InvalidFile, UnsoundRequest
from takifugu.priors import MarkovRandomField, contagion, read_prior
from takifugu.project.policy import InvalidProject
from takifugu.project.project import init_project, open_project
from takifugu.synthetic import contact_list
from tests.cli.running import Ran, call
from tests.real_data import real

DECLARATION = """\
[source]
kind = "{kind}"
path = "cases.{kind}"
[entity]
column = "who"
[order]
column = "at"
kind = "number"
ties = "refuse"
[protected.ill]
values = [0, 1]
outside = "refuse"
[public.role]
values = "from the data"
"""
LIST = "0 1 2 NUR PAT\n20 1 2 NUR PAT\n90000 2 3 PAT PAT\n"
ODDS = ("--background", "0.02", "--per-hour", "1.5")
Rows = tuple[tuple[str, int], ...]
PEOPLE: Rows = (("1", 0), ("2", 0), ("3", 0))


def project(folder: Path, rows: Rows = PEOPLE, kind: str = "csv") -> Path:
    """A project with a dataset of cases, and a list of contacts beside it."""
    lines = ["who,at,role,ill"]
    roles = {"1": "NUR"}
    lines += [f"{who},{at},{roles.get(who, 'PAT')},{(int(who) + at) % 2}" for who, at in rows]
    (folder / "cases.csv").write_text("\n".join(lines) + "\n")
    if kind == "parquet":
        import duckdb

        source, target = folder / "cases.csv", folder / "cases.parquet"
        duckdb.sql(f"COPY (FROM '{source}') TO '{target}' (FORMAT parquet)")  # whole numbers
    (folder / "cases.toml").write_text(DECLARATION.format(kind=kind))
    (folder / "met.txt").write_text(LIST)
    init_project(folder).add_dataset("cases", folder / "cases.toml")
    open_project(folder).set_budget("cases", "1")
    return folder


def contacts(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Ran:
    return call(folder, monkeypatch, "prior", "contacts", *arguments)


def test_a_file_says_people_pairs_hours_and_what_it_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "met.txt").write_text(LIST)
    out = ("--out", "made.json")
    found = contacts(tmp_path, monkeypatch, "met.txt", *ODDS, *out, "--json").json()
    assert (found["people"], found["pairs"], found["positions"]) == (3, 2, 1)
    assert found["hours"] == pytest.approx(60 / 3600) and found["over"] == "entities"
    made = read_prior(tmp_path / "made.json")
    assert isinstance(made, MarkovRandomField) and made.entries == ("1", "2", "3")
    assert found["fingerprint"] == made.fingerprint
    said = contacts(tmp_path, monkeypatch, "met.txt", *ODDS, "--most", "3", *out)
    assert said.status == 0 and "3 people, 2 pairs" in said.out and "odds 0.02 to 1" in said.out
    assert "by 1.5 for every hour they met, but by no more than 3" in said.out


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_dataset_gets_it_bound_by_name_and_plans_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    folder = project(tmp_path, kind=kind)
    found = contacts(folder, monkeypatch, "met.txt", "cases", *ODDS, "--json").json()
    assert found["dataset"] == "cases"
    (entered,) = open_project(folder).dataset("cases").priors
    assert entered.over == "entities" and entered.fingerprint == found["fingerprint"]
    names = read_prior(folder / entered.file).entry_names
    assert names == (("1", "2", "3") if kind == "csv" else (1, 2, 3))
    query = ("cases", "count", "--values", "1", "--by", "role", "--epsilon", "0.5")
    plan = call(folder, monkeypatch, "plan", *query, "--json").json()
    assert 0.25 < float(eval_fraction(plan["cost"]["per_entry"])) <= 0.5
    again = contacts(folder, monkeypatch, "met.txt", "cases", *ODDS)
    assert isinstance(again.error, InvalidProject) and again.error.reason == "exists"
    more = ("--most", "2", "--replace")
    assert contacts(folder, monkeypatch, "met.txt", "cases", *ODDS, *more).status == 0
    assert len(open_project(folder).dataset("cases").priors) == 1


def eval_fraction(text: str) -> float:
    from fractions import Fraction

    return float(Fraction(text))


def test_people_over_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "met.txt").write_text(LIST)
    for how in (("--by-day",), ("--times", "2")):
        options = (*ODDS, *how, "--again", "5", "--out", "made.json", "--json")
        found = contacts(tmp_path, monkeypatch, "met.txt", *options).json()
        assert found["positions"] == 2 and found["over"] == "entities × sequence"
        made = read_prior(tmp_path / "made.json")
        assert made.entry_names == ("1: 0", "1: 1", "2: 0", "2: 1", "3: 0", "3: 1")
        assert "multiplies the odds at the next one by 5" in found["meaning"]


def test_people_who_are_missing_are_listed_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(tmp_path, (("1", 0), ("2", 0), ("4", 0)))
    before = (folder / "takifugu.toml").read_text()
    found = contacts(folder, monkeypatch, "met.txt", "cases", *ODDS)
    assert isinstance(found.error, UnsoundRequest) and found.error.reason == "names-differ"
    assert found.error.given == ("3",) and found.error.needed == ("4",)
    assert (folder / "takifugu.toml").read_text() == before
    assert not list(folder.glob("*.prior.json"))


@pytest.mark.parametrize(
    ("options", "kind", "field"),
    [
        (("--background", "0", "--per-hour", "1.5"), InvalidOption, "--background"),
        (("--background", "nan", "--per-hour", "1.5"), InvalidOption, "--background"),
        (("--background", "0.1", "--per-hour", "0.5"), InvalidOption, "--per-hour"),
        ((*ODDS, "--most", "0.5"), InvalidOption, "--per-hour"),
        ((*ODDS, "--seconds", "0"), InvalidOption, "--seconds"),
        ((*ODDS, "--by-day"), InvalidOption, "--again"),
        ((*ODDS, "--again", "3"), InvalidOption, "--again"),
        ((*ODDS, "--by-day", "--times", "2", "--again", "3"), InvalidOption, "--again"),
        ((*ODDS, "--times", "0", "--again", "3"), InvalidOption, "--times"),
        ((*ODDS, "--times", "2", "--again", "0.5"), InvalidOption, "--again"),
        ((*ODDS, "--times", "2", "--again", "0"), InvalidOption, "--again"),
        ((*ODDS, "--replace"), InvalidOption, "--replace"),
    ],
)
def test_what_makes_no_sense_is_refused_by_the_name_of_the_option(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    kind: type[InvalidOption],
    field: str,
) -> None:
    (tmp_path / "met.txt").write_text(LIST)
    found = contacts(tmp_path, monkeypatch, "met.txt", *options, "--out", "made.json")
    assert isinstance(found.error, kind) and found.error.field == field
    assert not (tmp_path / "made.json").exists()


def test_damaged_lists_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gzip.compress((LIST * 100).encode())
    for content, field in (
        (whole[: len(whole) // 2], "met.txt"),
        (b"\xff\xfe\x00", "met.txt"),
        (b"", "met.txt"),
        (LIST.encode() + b"40 1 2 PAT PAT\n", "met.txt, line 4"),
        (LIST.encode() + b"forty 1 2\n", "met.txt, line 4"),
        (LIST.encode() + b"40 1 1\n", "met.txt, line 4"),
    ):
        (tmp_path / "met.txt").write_bytes(content)
        found = contacts(tmp_path, monkeypatch, "met.txt", *ODDS, "--out", "made.json")
        assert isinstance(found.error, InvalidFile) and found.error.field == field
        assert not (tmp_path / "made.json").exists()
    both = contacts(tmp_path, monkeypatch, "met.txt", "cases", *ODDS, "--out", "made.json")
    assert isinstance(both.error, InvalidOption) and both.error.field == "--out"
    neither = contacts(tmp_path, monkeypatch, "met.txt", *ODDS)
    assert isinstance(neither.error, InvalidOption) and neither.error.field == "--out"


@pytest.mark.nightly
def test_what_takes_long_is_said(tmp_path: Path) -> None:
    people = contact_list(24, 60, 900, groups=3, rng=np.random.default_rng(2))
    folder = project(tmp_path, tuple((f"{k:02d}", 0) for k in range(24)))
    open_project(folder).enter_prior(
        "cases",
        lambda whole: contagion(people, background=0.1, odds_per_hour=2.0),  # noqa: ARG005
        over="entities",
    )
    said: list[str] = []
    with open_project(folder).session("cases", progress=said.append) as session:
        session.plan.count(values=[1], epsilon=0.5)
    assert any("24 entries" in line for line in said)


@pytest.mark.real_data
def test_the_ward_is_planned_and_released_by_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from takifugu.priors import read_contacts

    listed = real("hospital_contacts.csv.gz")
    people = read_contacts(listed)
    lines = [
        f"{who},0,{role},{int(who) % 7 == 0:d}"
        for who, role in zip(people.people, people.roles, strict=True)
    ]
    project(tmp_path)
    (tmp_path / "cases.csv").write_text("\n".join(["who,at,role,ill", *lines]) + "\n")
    assert contacts(tmp_path, monkeypatch, str(listed), "cases", *ODDS).status == 0
    query = ("cases", "count", "--values", "1", "--by", "role", "--epsilon", "0.5")
    plan = call(tmp_path, monkeypatch, "plan", *query, "--json").json()
    assert 0.34 < eval_fraction(plan["cost"]["per_entry"]) < 0.35  # group DP: 0.0067
    assert plan["cost"]["fits"] and plan["cost"]["alone"] <= 0.5
    released = call(tmp_path, monkeypatch, "release", *query, "--json", "--yes").json()
    assert len(released["rows"]) == 4
