"""SQL of our own: hostile names and values, and what a release no longer has to import."""

import csv
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import takifugu as tf
from takifugu.declarations import Amount, Category, Declaration, InvalidQuery, Order, Source
from takifugu.declarations.columns import Outside
from takifugu.tables import Scope, Share, expressions, open_engine
from takifugu.tables import relations as rel
from takifugu.tables.aggregates import Histogram
from takifugu.tables.relations import Relation
from takifugu.tables.sql_writer import DIALECTS, sql
from tests.contracts.engines import statements
from tests.contracts.written_sql import compare_with_ibis
from tests.raising import raises
from tests.tables import recount

NAMES = (  # of columns: keywords, aliases, names that queries use themselves, marks of SQL
    "t", "data", "count", "missing", "units", "cell", "who", "first", "before", "here", "gap",
    "tie", "key_0", "place_0", "by_0", "length", "select", "group by", 'a"b', "a`b", "a'b", "a.b",
    '"; DROP VIEW data; --', "{}", "{0}", "%s", "ü", "東京", "😀", "\\", "a\\'b", "*",
    "line\nbreak", " ",
)  # fmt: skip
LABELS = (
    "", " ", "a", "A", "é", "e\u0301", "'", "''", '"', "\\", "\\'", "\n", "\t", "😀", "{}", "%s",
    "NULL", "null", "a\0b", "\0", "-- ", "$$", "';", "nan", "\u200b", "\x1b[0m",
)  # fmt: skip


def stored(folder: Path, columns: dict[str, list[Any]], *, real: str = "") -> Source:
    """A Parquet file of these columns, the names written by nobody's SQL but DuckDB's own."""
    path = folder / "rows.parquet"
    kinds = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE"}
    found = {
        name: next((kinds[type(value)] for value in values if value is not None), "VARCHAR")
        for name, values in columns.items()
    }
    found |= {real: "DOUBLE"} if real else {}
    quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
    made = ", ".join(f"{name} {kind}" for name, kind in zip(quoted, found.values(), strict=True))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE kept ({made})")
        for row in zip(*columns.values(), strict=True):
            connection.execute(f"INSERT INTO kept VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        connection.execute(f"COPY kept TO '{path}' (FORMAT parquet)")
    return Source("parquet", path=str(path))


@pytest.mark.nightly
@settings(max_examples=40)
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=6, max_size=6, unique=True),
    values=st.lists(st.sampled_from(LABELS), min_size=2, max_size=6, unique=True),
    data=st.data(),
)
def test_any_names_and_labels_mean_what_they_are(
    names: list[str], values: list[str], data: st.DataObject
) -> None:
    person, at, label, land, number, tie = names
    many = data.draw(st.integers(1, 12))
    people = data.draw(st.lists(st.sampled_from(LABELS), min_size=many, max_size=many))
    seen = st.sampled_from([*LABELS, None])
    table: dict[str, list[Any]] = {
        person: people,
        at: data.draw(st.lists(st.integers(-2, 2), min_size=many, max_size=many)),
        label: data.draw(st.lists(seen, min_size=many, max_size=many)),
        land: data.draw(st.lists(st.sampled_from(values), min_size=many, max_size=many)),
        number: data.draw(
            st.lists(
                st.floats(-4, 4, width=16) | st.none() | st.just(float("nan")),
                min_size=many,
                max_size=many,
            )
        ),
        tie: data.draw(st.permutations(range(many))),
    }
    amount = Amount(number, Fraction(-1), Fraction(3), Fraction(1, 4), "drop")
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        declaration = Declaration(
            stored(Path(folder), table, real=number),
            person,
            Order(at, "number", ties=(tie,)),
            (Category(label, tuple(values), "other"), amount),
            (Category(land, tuple(values), "drop"),),
        )
        with open_engine(declaration, threads=1) as engine:
            fold = recount.fold(values, "other")
            found = engine.histogram([label, land])
            truth = recount.histogram(rows, {label: fold, land: recount.fold(values, "drop")})
            assert found.counts.sum() == sum(truth.values()) == many
            assert all(found.at(*key) == count for key, count in truth.items())
            steps = recount.steps(recount.sequences(rows, person, (at, tie), label, fold))
            counted = engine.steps(label)
            assert counted.counts.sum() == sum(steps.values())
            assert all(counted.at(*step) == count for step, count in steps.items())
            chosen = values[: max(1, len(values) // 2)]
            kept = [row for row in rows if row[land] in chosen and row[at] >= 0]
            scope = Scope(start=0, where={land: chosen})
            assert engine.count(scope) == len(kept)
            share = Share("it's\\\0😀", Fraction(1, 3), Fraction(2, 3))
            mine = [row for row in rows if share.low <= _point(share, row[person]) < share.high]
            assert engine.count(Scope(entities=share)) == len(mine)
            rules = (amount.low, amount.high, amount.step, amount.missing)
            sums = engine.sums(number, by=[land], scope=scope)
            for key in values:
                numbers = [row[number] for row in kept if row[land] == key]
                count, units = recount.total(numbers, *rules)
                assert sums.at(key) == units * amount.step
                assert sums.counts[values.index(key)] == count
            cells = engine.distribution(number, every=2)
            assert cells.counts.tolist() == recount.cells(table[number], *rules, 2)
            lengths = engine.lengths()
            assert (lengths.rows, lengths.longest) == (many, max(Counter(people).values()))
            assert engine.entities(99) == Counter(people)


def _point(share: Share, entity: Any) -> Fraction:
    return recount.point(share.salt, entity)


@pytest.mark.nightly
def test_queries_are_answered_as_the_sql_of_ibis_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that queries use themselves; what is missing, outside the lists, and not a number."""
    names = [name for name in NAMES if "\n" not in name]
    equal = compare_with_ibis(monkeypatch)
    for begin in range(0, len(names) - 5, 6):
        person, at, label, land, number, tie = names[begin : begin + 6]
        texts = [None if i % 7 == 0 else LABELS[i % 18] for i in range(60)]
        table: dict[str, list[Any]] = {
            person: [LABELS[i % 5] for i in range(60)],
            at: [i // 9 for i in range(60)],
            label: texts,
            land: [LABELS[i % 3] for i in range(60)],
            number: [
                None if i % 11 == 0 else float("nan") if i % 5 == 0 else i / 8 for i in range(60)
            ],
            tie: list(range(60)),
        }
        declaration = Declaration(
            stored(tmp_path, table),
            person,
            Order(at, "number", ties=(tie,)),
            (
                Category(label, LABELS[:14], "other"),
                Amount(number, Fraction(0), Fraction(3), Fraction(1, 4), Fraction(1)),
            ),
            (Category(land, None, "drop"),),
        )
        scopes = (
            Scope(),
            Scope(start=2, end=4.5),
            Scope(where={land: ["", "a"]}),
            Scope(entities=Share("s'", Fraction(1, 4), Fraction(1, 2))),
        )
        with open_engine(declaration) as engine:
            engine.refuse_disorder()
            for scope in scopes:
                engine.count(scope)
                engine.lengths(scope)
                engine.histogram([label, land], scope)
                engine.histogram([land], scope)
                engine.transitions(label, scope)
                engine.sums(number, [land], scope)
                engine.sums(number, (), scope)
                engine.distribution(number, [label], scope, every=3)
                engine.distribution(number, (), scope)
                engine.runs([label], 2, scope)
                engine.runs([number], 1, scope, cuts=(Fraction(0), Fraction(1), Fraction(3)))
            engine.span()
            engine.entities(3)
    assert equal["Selection"] > 150 and equal["Grouped"] > 40
    assert not equal["not in Ibis"]


@pytest.mark.parametrize("outside", ["other", "drop"])
def test_labels_found_before_or_after_sorting_count_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outside: Outside
) -> None:
    """A value outside the list, or missing, is in neither case taken for no row before."""
    table: dict[str, list[Any]] = {
        "who": [str(i % 4) for i in range(200)],
        "at": list(range(200)),
        "label": [None if i % 9 == 0 else f"label {i * i % 13}" for i in range(200)],
        "land": [f"land {i % 2}" for i in range(200)],
    }
    labels = tuple(f"label {i}" for i in range(8))
    declaration = Declaration(
        stored(tmp_path, table),
        "who",
        Order("at", "number"),
        (Category("label", labels, outside),),
        (Category("land", ("land 0", "land 1"), "refuse"),),
    )
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    found = []
    for few in (0, 5, expressions.MAX_EARLY_LABELS):
        monkeypatch.setattr(expressions, "MAX_EARLY_LABELS", few)
        with open_engine(declaration) as engine:
            found.append(engine.steps("label", ["land"]))
    assert found[0] == found[1] == found[2]
    fold = recount.fold(labels, outside)
    truth = recount.steps(recount.sequences(rows, "who", ("at",), "label", fold))
    assert found[0].counts.sum() == sum(truth.values()) > 90
    assert all(found[0].counts.sum(axis=0)[_place(found[0], s)] == n for s, n in truth.items())


def _place(steps: Histogram, step: tuple[Any, Any]) -> tuple[int, int]:
    _, before, after = steps.keys
    return before.index(step[0]), after.index(step[1])


@pytest.mark.nightly
def test_a_release_reads_the_protected_column_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked beforehand is answered by public columns or the number of rows."""
    table: dict[str, list[Any]] = {
        "who": ["ann", "ann", "bob", "bob"],
        "at": [1, 2, 1, 2],
        "place": ["home", "work", "home", "home"],
        "land": ["x", "x", "y", "y"],
    }
    path = str(stored(tmp_path, table).path)
    kept: Any = {"protected": {"place": ["home", "work"]}, "public": {"land": ["x", "y"]}}
    declared = tf.table(path, entity="who", order="at", order_kind="number", **kept)
    chain = tf.MarkovChain(np.array([[0.7, 0.3], [0.4, 0.6]]), states=("home", "work"))
    with declared.open() as engine, tf.open_ledger(tmp_path / "one.ledger") as ledger:
        asked = statements(engine, monkeypatch)
        session = tf.Session(engine, chain, budget=9, ledger=ledger, dataset="visits")
        for kind, options in (("top_k", {"k": 1}), ("histogram", {}), ("transitions", {})):
            asked.clear()
            made = getattr(session.plan, kind)(**options, epsilon=1)
            assert not any('"place"' in text for text in asked)
            asked.clear()
            session.release(made, accept_noise=True)
            assert sum('"place"' in text for text in asked) == 1


@pytest.mark.parametrize("place", [2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
def test_whole_places_are_compared_as_whole_numbers(tmp_path: Path, place: int) -> None:
    """As real numbers 2**53 and 2**53 + 1 are one."""
    near = [n for n in range(place - 2, place + 3) if -(2**63) <= n < 2**63]
    many = len(near)
    source = stored(tmp_path, {"who": ["a"] * many, "at": near, "label": ["x"] * many})
    declaration = Declaration(
        source, "who", Order("at", "number"), (Category("label", ("x",), "drop"),)
    )
    with open_engine(declaration) as engine:
        for bound in (*near, float(place), 10**30, -(10**30), 1e300, -1e300, 0.5):
            assert engine.count(Scope(start=bound)) == sum(n >= Fraction(bound) for n in near)
            assert engine.count(Scope(end=bound)) == sum(n < Fraction(bound) for n in near)


def test_real_places_are_compared_with_whole_bounds(tmp_path: Path) -> None:
    near = [2.0**53 - 1, 2.0**53, 2.0**53 + 2, 2.0**53 + 4]
    source = stored(tmp_path, {"who": ["a"] * 4, "at": near, "label": ["x"] * 4})
    declaration = Declaration(
        source, "who", Order("at", "number"), (Category("label", ("x",), "drop"),)
    )
    with open_engine(declaration) as engine:
        for bound in (2**53 + step for step in range(-2, 6)):
            assert engine.count(Scope(start=bound)) == sum(Fraction(n) >= bound for n in near)


def test_a_column_of_another_relation_is_refused() -> None:
    rows = rel.table("data", {"a": "whole", "b": "whole"})
    kept = rows.filter(rows.a > 1)
    assert "WHERE" in sql(kept.select(x=rows.b), "duckdb")  # the same columns, fewer rows
    other = rows.select(a=rows.b, b=rows.a)
    wrong: tuple[Callable[[], Relation], ...] = (
        lambda: other.select(x=rows.a),
        lambda: other.filter(rows.a > 1),
        lambda: other.group_by("a").aggregate(x=rows.a.sum()),
        lambda: rows.select("a", a=rows.b),
        lambda: rows.group_by("a").aggregate(a=rows.count()),
    )
    for make in wrong:
        with pytest.raises(ValueError, match=r"relation|one name"):
            make()
    with pytest.raises(TypeError, match="true or false"):
        bool(rows.a == 1)
    with pytest.raises(TypeError, match="real"):
        _ = rows.a / 2
    with pytest.raises(KeyError):
        rows["c"]


def test_what_a_database_cannot_write_is_refused() -> None:
    rows = rel.table("data", {"a\0": "whole", "label": "text"})
    for dialect in DIALECTS:
        with raises(InvalidQuery, reason="NUL"):
            sql(rows.select("a\0"), dialect)
    nul = rows.filter(rows.label.isin(["a\0b"])).select("label")
    with raises(InvalidQuery, reason="NUL"):
        sql(nul, "postgres")
    for endless in (float("inf"), float("nan")):
        with raises(InvalidQuery, field="number"):
            sql(rows.filter(rows.label > endless).select("label"), "duckdb")


def test_every_dialect_writes_the_same_relations() -> None:
    """One line for each dialect and relation, whatever is in it: nothing is formatted twice."""
    rows = rel.table("data", {"{}": "text", "n": "whole", "x": "real", "at": "time"})
    labels = ("{}", "{0}", "it's", "\\")
    relations: Iterable[Relation] = (
        rows.filter(rows["{}"].isin(labels)).select(place=rel.place_in(labels, rows["{}"])),
        rows.select(x=(rows.x / rel.literal(0.1, "real")).floor(), d=rows.n // 3),
    )
    for dialect, written in DIALECTS.items():
        for relation in relations:
            text = sql(relation, dialect)
            assert written.name("{}") in text or "floor" in text
            assert text.count("SELECT") == 1


HEAVY = ("ibis", "sqlglot", "pandas", "pyarrow", "polars", "psycopg", "pyspark")
RELEASE = """
import sys
from pathlib import Path
import takifugu as tf

source, ledger = sys.argv[1:]
visits = tf.table(source, entity="who", order="at", order_kind="number",
                  protected={"place": ["home", "work"]}, public={"land": ["x", "y"]})
with tf.Session(visits, tf.MarkovChain([[.7, .3], [.4, .6]], states=["home", "work"]),
                budget=9, ledger=ledger) as session:
    for plan in (
        session.plan.histogram(by="land", epsilon=1),
        session.plan.top_k(1, by="land", epsilon=1),
        session.plan.transitions(epsilon=1),
    ):
        print(len(session.release(plan, accept_noise=True).rows))
print(sorted(set(%r) & set(sys.modules)))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_release_imports_no_compiler_of_sql(tmp_path: Path, suffix: str) -> None:
    table: dict[str, list[Any]] = {
        "who": ["ann", "ann", "bob", "bob"],
        "at": [1, 2, 1, 2],
        "place": ["home", "work", "home", "home"],
        "land": ["x", "x", "y", "y"],
    }
    path = Path(str(stored(tmp_path, table).path))
    if suffix == "csv":
        path = tmp_path / "rows.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([list(table), *zip(*table.values(), strict=True)])
    done = subprocess.run(  # noqa: S603 - our own interpreter and program
        [sys.executable, "-c", RELEASE % (HEAVY,), str(path), str(tmp_path / "one.ledger")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["4", "2", "4", "[]"]
