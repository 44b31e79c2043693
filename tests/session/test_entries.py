"""What the entries of a prior are is said, and names are matched by name; nothing is guessed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, permutations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from takifugu.binding.entries import KINDS
from takifugu.binding.matched_rows import refuse_unmatched
from takifugu.declarations import Category, Source
from takifugu.errors import NotAccepted, UnsoundRequest
from takifugu.ledger import open_ledger
from takifugu.priors import (
    Explicit,
    IndependentEntries,
    IntervalMarkovChain,
    MarkovChain,
    MarkovRandomField,
    Name,
    Product,
    Tables,
    TruncatedGaussian,
    write_prior,
)
from takifugu.project import init_project, open_project
from takifugu.project.policy import InvalidProject, parse_policy
from takifugu.session import Entries, Session
from takifugu.tables import Engine, open_engine
from takifugu.tables.backends.duckdb_backend import FileBackend
from takifugu.translation.translation import Translation
from tests.declared import declared
from tests.oracles import session as oracle
from tests.raising import raises
from tests.session.world import CHAIN, WEIGHT, declaration, opened, said

ILL = ("well", "ill")
SICK = (Category("state", ILL, "refuse"),)
WEIGHTS = ((3.0, 1.0), ((2.0, 1.0), (1.0, 2.0)))  # of each person, and of each pair that met


def field(names: Sequence[Name]) -> MarkovRandomField:
    """Everybody met the next in line."""
    edges = tuple(pairwise(names))
    return MarkovRandomField(
        entries=tuple(names),
        states=(ILL,) * len(names),
        unary=(np.array(WEIGHTS[0]),) * len(names),
        edges=edges,
        weights=(np.array(WEIGHTS[1]),) * len(edges),
        name="contagion",
    )


def ward(names: Sequence[Name], rows: int = 1) -> dict[str, Any]:
    """So many rows for each person."""
    every = [(who, step, "a", ILL[i % 2], 0) for i, who in enumerate(names) for step in range(rows)]
    return {"rows": every, "protected": SICK}


def refused(tmp_path: Path, prior: Any, table: Mapping[str, Any], over: Any) -> UnsoundRequest:
    with (
        pytest.raises(UnsoundRequest) as error,
        opened(tmp_path, translation=Translation(prior), how={"over": over}, **table),
    ):
        pass
    assert "\n" not in str(error.value)
    return error.value


FOUR = ("p0", "p1", "p2", "p3")


def worlds(rows: int) -> tuple[Any, Any]:
    """``[table, row]`` and probabilities: the field over people, each the same in all rows."""
    every, probabilities = [], []
    for people in product((0, 1), repeat=4):
        confidence = 1.0
        for who in people:
            confidence *= WEIGHTS[0][who]
        for one, other in pairwise(people):
            confidence *= WEIGHTS[1][one][other]
        every.append([who for who in people for _ in range(rows)])
        probabilities.append(confidence)
    return np.array(every), np.array(probabilities) / sum(probabilities)


def leak(scale: float, rows: int) -> float:
    every, probabilities = worlds(rows)
    count = oracle.Noisy(((frozenset(range(4 * rows)), 1),), scale)
    return oracle.leak(every, probabilities, [count], most=100)


def test_the_same_field_on_two_rows_a_person_is_not_read_as_a_sequence(tmp_path: Path) -> None:
    """A count that keeps to 1 on one row a person leaks twice that on two rows a person."""
    people = Translation(field(FOUR))
    with opened(tmp_path, translation=people, how={"over": "entities"}, **ward(FOUR)) as (
        session, _, _,
    ):  # fmt: skip
        plan = session.plan.count(["ill"], epsilon=1)
        scale = plan.mechanism.describe()["scale"]
        assert (
            0.99 < leak(scale, rows=1) <= session.release(plan, accept_noise=True).cost.alone <= 1
        )
    assert leak(scale, rows=2) > 1.99
    for over, reason in (
        (None, "over-missing"),
        ("entities", "several-rows"),
        ("sequence", "no-positions"),
    ):
        assert refused(tmp_path, field(FOUR), ward(FOUR, rows=2), over).reason == reason


@pytest.mark.parametrize("rows", [1, 2])
def test_nothing_is_inferred_from_the_number_of_rows(tmp_path: Path, rows: int) -> None:
    error = refused(tmp_path, field(("ann", "bob")), ward(("ann", "bob"), rows), None)
    assert (error.field, error.reason) == ("prior", "over-missing")
    assert error.needed == KINDS


def test_somebody_else_in_the_table_is_refused_with_both_lists(tmp_path: Path) -> None:
    error = refused(tmp_path, field(("ann", "bob")), ward(("zoe", "bob")), "entities")
    assert (error.reason, error.given, error.needed) == ("names-differ", ("ann",), ("zoe",))
    assert "Prior: 'ann', 'bob'; person: 'bob', 'zoe'" in str(error)


@pytest.mark.parametrize(
    ("names", "only"),
    [
        (("p0", "p1", "p2"), (("p3",), ())),
        ((*FOUR, "p4"), ((), ("p4",))),
        (("p0", "p1", "p2", "P3"), (("p3",), ("P3",))),
        (("p0", "p1", "p2", "p3 "), (("p3",), ("p3 ",))),
        ((*FOUR, "p0"), None),
        ([f"q{i:02}" for i in range(40)], ((), tuple(f"q{i:02}" for i in range(15)))),
    ],
)
def test_more_fewer_or_other_entities_are_refused(
    tmp_path: Path, names: Sequence[str], only: tuple[Any, Any] | None
) -> None:
    rows = [(who, step, "a", "well", 0) for step, who in enumerate(names)]
    error = refused(tmp_path, field(FOUR), {"rows": rows, "protected": SICK}, "entities")
    if only is None:
        assert (error.reason, error.given) == ("several-rows", ("p0",))
    else:
        assert (error.reason, (error.given, error.needed)) == ("names-differ", only)
    assert "ill" not in str(error)


@pytest.mark.parametrize("order", list(permutations(FOUR))[::9])
def test_names_match_whatever_their_order(tmp_path: Path, order: Sequence[str]) -> None:
    how = {"over": "entities"}
    with opened(tmp_path, translation=Translation(field(order)), how=how, **ward(FOUR)) as (
        session, _, _,
    ):  # fmt: skip
        assert (
            session.release(session.plan.count(["ill"], epsilon=1), accept_noise=True).cost.alone
            <= 1
        )
        assert "one draw from it, whose entries are the entities of `person`, matched by name" in (
            said(session)
        )


class Listed:
    """What a match looks at of an engine, without one."""

    declaration = SimpleNamespace(entity="person")
    whole_entities = False

    def __init__(self, table: Sequence[Name]) -> None:
        self.whole, self.table = self, table

    def entities(self, most: int) -> Mapping[Name, int]:
        """As `Engine.entities`."""
        return dict(sorted(Counter(self.table).items())[:most])


@given(
    prior=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True),
    table=st.lists(st.sampled_from("abcdef"), max_size=6),
)
@example(prior=["a"], table=list("abcdefghijklmnopq"))
@example(prior=["a", "b"], table=["b", "a"])
@example(prior=["a"], table=[])
def test_exactly_the_same_names_once_each_are_accepted(prior: list[str], table: list[str]) -> None:
    engine: Any = Listed(table)
    try:
        refuse_unmatched({"prior": field(prior)}, {"prior": Entries("entities")}, engine)
        accepted = True
    except UnsoundRequest:
        accepted = False
    assert accepted == (sorted(prior) == sorted(table))


# --- 1 is not "1" ---


def numbered(folder: Path, names: Sequence[int]) -> Any:
    """A DuckDB table whose entities are whole numbers, unlike those of a CSV file."""
    with duckdb.connect(str(folder / "ward.duckdb")) as database:
        database.execute("CREATE TABLE ward (person BIGINT, step BIGINT, zone TEXT, state TEXT)")
        database.executemany(
            "INSERT INTO ward VALUES (?, 0, 'a', 'well')", [(name,) for name in names]
        )
    source = Source("duckdb", path=str(folder / "ward.duckdb"), table="ward")
    return declaration(folder, source=source, protected=SICK)


@pytest.mark.parametrize("over", ["entities", None])
def test_names_are_matched_with_their_type(tmp_path: Path, over: str | None) -> None:
    described = numbered(tmp_path, [1, 2, 3])
    with open_engine(described) as engine, open_ledger(tmp_path / "a.ledger") as ledger:
        ledger.set_budget("ward", 1)
        how: dict[str, Any] = {"dataset": "ward", "over": over}
        if over is None:  # keys of JSON objects are always text
            chain = MarkovChain(CHAIN.transition, states=ILL)
            Session(engine, Translation(Product(dict.fromkeys("123", chain))), ledger=ledger, **how)
            return
        Session(engine, Translation(field((3, 1, 2))), ledger=ledger, **how)
        with raises(UnsoundRequest, reason="types-differ"):
            Session(engine, Translation(field(("1", "2", "3"))), ledger=ledger, **how)
    error = refused(tmp_path, field((1, 2)), ward(("1", "2")), "entities")
    assert error.reason == "types-differ"
    assert (error.given, error.needed) == ((1, 2), ("1", "2"))


# --- sequences ---


@pytest.mark.parametrize(
    ("names", "over"),
    [
        ((0, 1), "sequence"),
        ((1, 0), "sequence"),
        (("0", "1"), "sequence"),
        (("night", "day"), Entries("sequence", ("day", "night"))),
    ],
)
def test_the_entries_of_a_sequence_are_its_places(
    tmp_path: Path, names: Sequence[Name], over: Any
) -> None:
    how = {"over": over}
    for rows in (1, 2):
        table = ward(("ann", "bob", "cy"), rows)
        with opened(tmp_path, translation=Translation(field(names)), how=how, **table) as (
            session, _, _,
        ):  # fmt: skip
            assert "independent of every other one's" in said(session)
            assert "one draw" not in said(session)
    error = refused(tmp_path, field(names), ward(("ann",), 3), over)
    assert (error.reason, error.given, error.needed) == ("too-short", 2, 3)


@pytest.mark.parametrize(
    ("names", "over", "fields"),
    [
        (("day", "night"), "sequence", {"reason": "no-positions", "given": ("day", "night")}),
        ((1, 2), "sequence", {"reason": "no-positions"}),
        (("00", "1"), "sequence", {"reason": "no-positions"}),
        (("0", "1", 0), "sequence", {"reason": "no-positions"}),
        (
            ("day", "night"),
            Entries("sequence", ("day",)),
            {"reason": "positions-differ", "given": ("night",), "needed": ()},
        ),
        (
            ("day", "night"),
            Entries("sequence", ("day", "day")),
            {"reason": "positions-differ", "given": ("night",), "needed": ()},
        ),
        (
            (1, 0),
            Entries("sequence", ("1", "0")),
            {"reason": "positions-differ", "given": (1, 0), "needed": ("1", "0")},
        ),
        ((0, 1), "columns", {"field": "over", "given": "columns"}),
        ((0, 1), "people", {"field": "over", "given": "people"}),
        ((0, 1), 3, {"field": "over", "given": 3, "needed": KINDS}),
        ((0, 1), {"other": "sequence"}, {"given": "other", "needed": ("prior",)}),
    ],
)
def test_what_is_no_reading_is_refused(
    tmp_path: Path, names: Sequence[Name], over: Any, fields: dict[str, Any]
) -> None:
    error = refused(tmp_path, field(names), ward(("ann",)), over)
    assert {name: getattr(error, name) for name in fields} == fields


def test_positions_go_with_sequences_and_people_with_households() -> None:
    for positions in (("a",), "ab", 3):
        with raises(UnsoundRequest, field="positions"):
            Entries("entities", positions)  # type: ignore[arg-type]
    wrong: tuple[tuple[str, Any, Any, str], ...] = (
        ("row", "zone", None, "household"),
        ("row", None, "zone", "member"),
        ("household", 3, None, "household"),
        ("household", "zone", 3, "member"),
        ("household", None, None, "household"),
    )
    for over, household, member, field in wrong:
        with raises(UnsoundRequest, field=field):
            Entries(over, household=household, member=member)  # type: ignore[arg-type]


# --- every other family ---


def test_a_chain_is_a_sequence_and_nothing_else(tmp_path: Path) -> None:
    chain = MarkovChain(CHAIN.transition, states=ILL, length=4)
    unsure = IntervalMarkovChain.around(chain, relative=0.1)
    for prior in (chain, unsure):
        error = refused(tmp_path, prior, ward(FOUR), "entities")
        assert (error.reason, error.needed) == ("over", "sequence")
        for over in (None, "sequence"):
            how = {"over": over}
            with opened(tmp_path, translation=Translation(prior), how=how, **ward(FOUR, 2)):
                pass


def test_an_explicit_table_and_a_gaussian_have_no_reading_of_their_own(tmp_path: Path) -> None:
    table = Explicit.uniform(Tables.of(dict.fromkeys(("ann", "bob"), ILL)))
    assert refused(tmp_path, table, ward(("ann", "bob")), None).reason == "over-missing"
    error = refused(tmp_path, table, ward(("ann", "zoe")), "entities")
    assert (error.given, error.needed) == (("bob",), ("zoe",))
    how = {"over": "entities"}
    with opened(tmp_path, translation=Translation(table), how=how, **ward(("bob", "ann"))):
        pass
    wave = TruncatedGaussian(np.eye(2) + 0.1, bound=4.0, width=1.0)
    people = {"rows": ward(("ann", "bob"))["rows"], "protected": (WEIGHT,)}
    assert refused(tmp_path, wave, people, None).reason == "over-missing"
    error = refused(tmp_path, wave, people, "entities")
    assert (error.given, error.needed) == ((0, 1), ("ann", "bob"))
    with opened(tmp_path, translation=Translation(wave), how={"over": "sequence"}, **people):
        pass


def test_a_table_of_records_is_not_read_as_something_else(tmp_path: Path) -> None:
    values: dict[Name, tuple[str, str]] = dict.fromkeys((0, 1, 2, 3), ILL)
    both = Explicit.uniform(Tables.of(values, records={0: "a", 1: "a", 2: "b", 3: "b"}))
    for over in ("sequence", "entities"):
        assert refused(tmp_path, both, ward(("a", "b"), 2), over).reason == "records"
    one = Explicit.uniform(Tables.of(values, records=dict.fromkeys(values, "a")))
    with opened(
        tmp_path, translation=Translation(one), how={"over": "sequence"}, **ward(("a", "b"), 2)
    ):
        pass


def test_independent_entries_fit_either_and_the_guarantee_says_which(tmp_path: Path) -> None:
    coins = IndependentEntries({who: {"well": 0.5, "ill": 0.5} for who in ("ann", "bob")})
    for over, words in ((None, "independent of every other"), ("entities", "one draw from it")):
        how = {"over": over}
        with opened(tmp_path, translation=Translation(coins), how=how, **ward(("ann", "bob"))) as (
            session, _, _,
        ):  # fmt: skip
            assert words in said(session)
    assert refused(tmp_path, coins, ward(("ann", "zoe")), "entities").needed == ("zoe",)
    assert refused(tmp_path, coins, ward(("ann", "zoe")), "sequence").reason == "no-positions"


def test_the_parts_of_a_product_are_the_entities_of_that_name(tmp_path: Path) -> None:
    long, short = (MarkovChain(CHAIN.transition, states=ILL, length=n) for n in (4, 2))
    table = {"rows": ward(("ann",), 4)["rows"] + ward(("bob",), 2)["rows"], "protected": SICK}
    people = Translation(Product({"bob": short, "ann": long}))
    with opened(tmp_path, translation=people, **table) as (session, _, _):
        assert "the part of it that has its name" in said(session)
    wrong: list[tuple[dict[str, Any], str, Any, Any]] = [
        ({"ann": short, "bob": long}, "too-short", 2, 4),
        ({"ann": long, "zoe": long}, "names-differ", ("zoe",), ("bob",)),
        ({"ann": long}, "names-differ", (), ("bob",)),
        ({"ann": long, "bob": long, "cy": long}, "names-differ", ("cy",), ()),
        ({"ann": Product({"ann": long}), "bob": long}, "nested-product", None, None),
        (
            {"ann": field(("x", "y", "z", "u")), "bob": long},
            "no-positions",
            ("x", "y", "z", "u"),
            None,
        ),
    ]
    for parts, *fields in wrong:
        error = refused(tmp_path, Product(parts), table, None)
        assert [error.reason, error.given, error.needed] == fields
    error = refused(tmp_path, Product({"ann": long}), table, "sequence")
    assert (error.reason, error.needed) == ("over", "entities")
    named = Product({"ann": field((3, 2, 1, 0)), "bob": field((0, 1))})
    with opened(tmp_path, translation=Translation(named), how={"over": "entities"}, **table):
        pass


def test_several_priors_are_read_by_name(tmp_path: Path) -> None:
    both = Translation(
        {"contacts": field(FOUR), "alone": MarkovChain(CHAIN.transition, ILL, length=4)}
    )
    how = {"over": {"contacts": "entities"}}
    with opened(tmp_path, translation=both, how=how, **ward(FOUR)) as (session, _, _):
        assert "one draw from contacts, whose" in said(session)
        assert "a draw from alone, or the beginning" in said(session)
    with (
        raises(UnsoundRequest, field="alone", reason="over", needed="sequence"),
        opened(tmp_path, translation=both, how={"over": "entities"}, **ward(FOUR)),
    ):
        pass


# --- the data is looked at again ---


class Growing(Engine):
    """A table that others write to: from some time on it has another entity, or more rows."""

    more: Mapping[Name, int] = {}

    def entities(self, most: int) -> Mapping[Name, int]:
        """Those of the file, and more."""
        return {**super().entities(most), **self.more}


@pytest.mark.nightly
@pytest.mark.parametrize("more", [{"p0": 2}, {"zoe": 1}])
@pytest.mark.parametrize("when", ["plan", "release", "read"])
def test_rows_are_matched_at_plan_and_at_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[Name, int], when: str
) -> None:
    how = {"over": "entities"}
    with opened(tmp_path, translation=Translation(field(FOUR)), how=how, **ward(FOUR)) as (
        session, ledger, engine,
    ):  # fmt: skip
        engine.__class__ = Growing
        plan = session.plan.count(["ill"], epsilon=1)
        if when == "read":
            exact = Growing.histogram

            def late(self: Any, *asked: Any) -> Any:
                monkeypatch.setattr(Growing, "more", more)
                return exact(self, *asked)

            monkeypatch.setattr(Growing, "histogram", late)
        else:
            monkeypatch.setattr(Growing, "more", more)
        again: Any = {
            "plan": lambda: session.plan.count(["ill"], epsilon=1),
            "release": lambda: session.release(plan, accept_noise=True),
        }
        with pytest.raises(UnsoundRequest) as error:
            again["plan" if when == "plan" else "release"]()
        assert error.value.reason in ("several-rows", "names-differ")
        charges = list(ledger.history(kind="charge"))
        assert len(charges) == (when == "read") and not list(ledger.history(kind="answer"))


def test_sequences_of_a_table_that_others_write_to_are_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FileBackend, "may_change", True)
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.count(["ward"], epsilon=1)
        monkeypatch.setattr(Engine, "lengths", lambda _: SimpleNamespace(longest=5))
        with raises(UnsoundRequest, reason="too-short", given=4, needed=5):
            session.plan.count(["ward"], epsilon=1)
        with raises(UnsoundRequest, reason="too-short", given=4, needed=5):
            session.release(plan, accept_noise=True)
        assert list(ledger.history(kind="charge")) == []


# --- policies ---

STUDY = declared("ward.csv", "person", "step", {"state": ["well", "ill"]})


def study(folder: Path, prior: Any, rows: int = 1, over: str | None = None) -> Any:
    folder.mkdir(exist_ok=True)
    lines = [f"{who},{step},{ILL[i % 2]}" for i, who in enumerate(FOUR) for step in range(rows)]
    (folder / "ward.csv").write_text("\n".join(["person,step,state", *lines]) + "\n")
    (folder / "ward.toml").write_text(STUDY)
    write_prior(prior, folder / "prior.json")
    project = init_project(folder).add_dataset(
        "ward", folder / "ward.toml", priors=[folder / "prior.json"], over=over
    )
    project.set_budget("ward", "1")
    return project


LINE, HEADER = 'over = "entities"', "[[dataset.ward.prior]]"


def test_an_old_policy_is_refused_with_the_line_to_add(tmp_path: Path) -> None:
    project = study(tmp_path, field(FOUR), over="entities")
    text = project.file.read_text()
    unsaid = text.replace(f"\n{LINE}\n", "\n")  # as in a policy from before it could be said
    assert unsaid != text
    project.file.write_text(unsaid)
    old = open_project(project.file)
    with pytest.raises(UnsoundRequest) as error, old.engine("ward") as engine:
        old.load("ward").refuse_misfit(engine)
    told = str(error.value)
    assert LINE in told and f"under {HEADER} in takifugu.toml" in told
    project.file.write_text(unsaid.replace(f"\n{HEADER}\n", f"\n{HEADER}\n{LINE}\n"))
    with open_project(project.file).session("ward") as session:
        assert (
            session.release(
                session.plan.count(["ill"], epsilon="0.5"), accept_noise=True
            ).cost.alone
            <= 0.5
        )
        assert "matched by name" in said(session)


def test_a_network_of_which_nothing_is_said_is_not_entered(tmp_path: Path) -> None:
    with raises(UnsoundRequest, reason="over-missing"):
        study(tmp_path, field(FOUR))
    with raises(UnsoundRequest, reason="no-positions"):
        study(tmp_path / "two", field(("day", "night")), rows=2, over="sequence")
    for folder in (tmp_path, tmp_path / "two"):
        assert "[dataset.ward]" not in (folder / "takifugu.toml").read_text()


def test_another_reading_of_a_prior_is_accepted_first(tmp_path: Path) -> None:
    project = study(tmp_path, field(FOUR), over="entities")
    with project.session("ward") as session:
        session.release(session.plan.count(["ill"], epsilon="0.5"), accept_noise=True)
    other = f'\nover = "sequence"\npositions = {list(FOUR)}\n'
    project.file.write_text(project.file.read_text().replace(f"\n{LINE}\n", other))
    again = open_project(project.file)
    with raises(NotAccepted, dataset="ward"), again.session("ward"):
        pass


def test_a_policy_says_what_entries_are(tmp_path: Path) -> None:
    project = study(tmp_path, field((0, 1)), rows=2, over="sequence")
    with project.session("ward") as session:
        assert "independent of every other one's" in said(session)
    with project.engine("ward") as engine:
        project.load("ward").refuse_misfit(engine)


def test_one_prior_is_not_read_two_ways(tmp_path: Path) -> None:
    project = study(tmp_path, field((0, 1)), rows=2, over="sequence")
    more = '\n[[dataset.ward.prior]]\nfile = "prior.json"\nover = "entities"\n'
    project.file.write_text(project.file.read_text() + more)
    with pytest.raises(InvalidProject, match="names one prior twice"):
        _ = open_project(project.file).load("ward").priors


HEAD = """
[ledger]
place = "x"
id = "ab"
[dataset.a]
declaration = "a.toml"
[[dataset.a.prior]]
file = "p"
"""


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('over = "people"', "be one of sequence, row, entities, household"),
        ("over = 1", "be text in quotes"),
        ('positions = ["a"]', "go with over = 'sequence'"),
        ('over = "entities"\npositions = ["a"]', "go with over = 'sequence'"),
        ('over = "sequence"\npositions = []', "list text or whole numbers"),
    ],
)
def test_a_reading_that_is_not_understood_is_refused(line: str, says: str) -> None:
    with pytest.raises(InvalidProject) as error:
        parse_policy(f"{HEAD}{line}\n")
    assert says in str(error.value)


def test_the_reading_is_no_part_of_the_prior(tmp_path: Path) -> None:
    """A ledger knows priors by what they say: to say what they are about asks for no new one."""
    prior = field((0, 1))
    assert replace(prior).fingerprint == prior.fingerprint
    how = {"over": "sequence"}
    with opened(tmp_path, translation=Translation(prior), how=how, **ward(("0", "1"))) as (
        session, ledger, engine,
    ):  # fmt: skip
        session.release(session.plan.count(["ill"], epsilon=1), accept_noise=True)
        named = {"over": Entries("sequence", (1, 0))}
        Session(engine, Translation(prior), ledger=ledger, dataset="visits", **named)  # type: ignore[arg-type]
