"""`draft_of`: a declaration from names and types, with everything else left open."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from takifugu.declarations import InvalidDeclaration
from takifugu.declarations.declaration import OpenDeclaration
from takifugu.declarations.declaration_files import parse_declaration, read_declaration
from takifugu.drafting import draft_of
from takifugu.drafting.draft_guesses import guess_entity, guess_order, guess_protected, words_of
from takifugu.drafting.draft_text import draft_text, path_from
from takifugu.drafting.source_schema import SchemaColumn
from takifugu.errors import InvalidFile
from takifugu.tables import open_engine
from tests.raising import raises

ROWS = [
    ("user", "at", "place", "country", "kwh"),
    ("ann", "2012-04-13 12:18:00", "secret-café", "FR", "1.5"),
    ("ann", "2012-04-14 09:00:00", "secret-ward", "FR", "2.25"),
    ("bob", "2012-05-01 09:30:00", "secret-café", "DE", "3"),
]


def write(
    path: Path,
    rows: Sequence[tuple[str, ...]] = ROWS,
    *,
    separator: str = ",",
    encoding: str = "utf-8",
    end: str = "\n",
) -> Path:
    """A CSV file of these rows."""
    text = "".join(separator.join(row) + end for row in rows)
    path.write_bytes(text.encode(encoding))
    return path


def opened(path: Path, **answers: Any) -> list[str]:
    return [point.key for point in draft_of(path, **answers).open]


def test_parts_are_guessed_and_labels_are_left_open(tmp_path: Path) -> None:
    draft = draft_of(write(tmp_path / "visits.csv"))
    assert draft.document == {
        "source": {
            "kind": "csv",
            "path": str(tmp_path / "visits.csv"),
            "separator": ",",
            "encoding": "utf-8",
        },
        "entity": {"column": "user"},
        "order": {"column": "at", "kind": "time", "zone": "UTC", "ties": "refuse"},
        "protected": {"place": {"values": "?", "outside": "other"}},
    }
    assert [point.key for point in draft.open] == ["protected.place.values"]
    assert [column.name for column in draft.left_out] == ["country", "kwh"]
    assert draft.rows == 3 and "public" not in draft.document


def test_nothing_in_a_draft_is_a_protected_value(tmp_path: Path) -> None:
    draft = draft_of(write(tmp_path / "visits.csv"))
    shown = draft_text(draft, tmp_path) + str(draft.describe())
    assert "secret" not in shown and "ann" not in shown and "FR" not in shown


def test_a_finished_draft_reads_the_file(tmp_path: Path) -> None:
    draft = draft_of(
        write(tmp_path / "visits.csv"),
        public=("country",),
        values={"place": ["secret-café", "secret-ward"]},
    )
    assert draft.open == ()
    text = draft_text(draft, tmp_path)
    (tmp_path / "visits.toml").write_text(text)
    declaration = read_declaration(tmp_path / "visits.toml")
    assert declaration.source.path == "visits.csv"
    with open_engine(declaration) as engine:
        assert engine.histogram(["country", "place"]).counts.tolist() == [[1, 0, 0], [1, 1, 0]]


def test_answers_are_added_to_those_before(tmp_path: Path) -> None:
    draft = draft_of(write(tmp_path / "visits.csv"), public=("country",))
    done = draft.answered(values={"place": ["a"]}).answered(bounds={"kwh": [0, 9]})
    assert done.open == () and list(done.document["protected"]) == ["place", "kwh"]
    assert done.document["public"] == {"country": {"values": "from the data"}}


@pytest.mark.nightly
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_how_a_file_is_written_is_found_and_read_exactly_so(
    tmp_path: Path, separator: str, encoding: str, end: str
) -> None:
    path = write(tmp_path / "v.csv", separator=separator, encoding=encoding, end=end)
    draft = draft_of(path, values={"place": ["secret-café"]}, folder=tmp_path)
    found = draft.document["source"]
    assert (found["separator"], found["encoding"]) == (separator, encoding.removesuffix("-sig"))
    assert any("latin-1" in d.reason for d in draft.decisions) == (encoding == "latin-1")
    declaration = parse_declaration(draft_text(draft, tmp_path), folder=tmp_path)
    with open_engine(declaration) as engine:
        assert engine.histogram(["place"]).counts.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("values", "decimal"),
    [
        (("1,5", "2,25"), ","),
        (("0,125", "0,250"), ","),
        (("1,250", "2,375"), "?"),  # a thousand and a quarter, or one and a quarter
        (("1.5", "2.25"), None),
        (("1", "2"), None),
    ],
)
def test_a_decimal_comma_is_found_unless_it_may_mark_thousands(
    tmp_path: Path, values: tuple[str, str], decimal: str | None
) -> None:
    rows = [("meter", "at", "kwh"), ("a", "2012-04-13", values[0]), ("b", "2012-04-13", values[1])]
    path = write(tmp_path / "m.csv", rows, separator=";")
    draft = draft_of(path, bounds={"kwh": [0, 9]})
    assert draft.document["source"].get("decimal") == decimal
    assert [point.key for point in draft.open] == ["source.decimal"] * (decimal == "?")
    if decimal == ",":
        with open_engine(draft.declaration()) as engine:
            assert engine.sums("kwh").counts == 2


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("times", "format_"),
    [
        (("3/4/2012 12:18", "5/6/2012 9:30"), "?"),
        (("3/4/2012 12:18", "13/6/2012 9:30"), "%d/%m/%Y %H:%M"),
        (("3/4/2012 12:18", "6/13/2012 9:30"), "%m/%d/%Y %H:%M"),
        (("03.04.2012", "13.04.2012"), "%d.%m.%Y"),
        (("13-Apr-2012", "1-May-2012"), "%d-%b-%Y"),
        (
            ("Tue Apr 03 18:00:09 +0000 2012", "Wed Apr 04 18:00:09 +0200 2012"),
            "%a %b %d %H:%M:%S %z %Y",
        ),
        (("2012-04-03 12:18:00", "2012-04-03 12:19:00"), None),
        (("2012-04-03T12:18:00Z", "2012-04-03T12:19:00Z"), None),
        (("2012-04-03 12:18:00+02:00", "2012-04-03 12:19:00+02:00"), None),
        (("sometime", "later"), "?"),
    ],
)
def test_times_are_read_in_the_one_way_that_fits_or_left_open(
    tmp_path: Path, times: tuple[str, str], format_: str | None
) -> None:
    rows = [("user", "at", "place"), ("a", times[0], "x"), ("b", times[1], "y")]
    draft = draft_of(write(tmp_path / "v.csv", rows), values={"place": ["x", "y"]})
    assert draft.document["order"].get("format") == format_
    assert [point.key for point in draft.open] == ["order.format"] * (format_ == "?")
    if format_ != "?":
        with open_engine(draft.declaration()) as engine:
            assert engine.count() == 2 and engine.span()[0].year == 2012  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"ann,2012-04-13,home\nbob,2012-05-01,work\n", "header"),
        (b"ann,home\nbob,home\n", "header"),
        (b"user,,place\na,b,c\n", "header"),
        (b"user,at,at\na,b,c\n", "header"),
        (b"user\na\nb\n", "separator"),
        (b"user,at\na,1\nb,2,3\n", "separator"),
        (b"a;b,c\n1;2,3\n", "separator"),
        ("user,place\na,10 \u20ac\n".encode("cp1252"), "encoding"),
        ("user,place\na,x\n".encode("utf-16"), "encoding"),
        ("user,place\na,x\n".encode("utf-16-be"), "encoding"),
    ],
)
def test_a_file_that_could_be_misread_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "v.csv"
    path.write_bytes(content)
    with raises(InvalidDeclaration, field="source, path", reason=reason) as refused:
        draft_of(path)
    assert "bob" not in str(refused.value) and "home" not in str(refused.value)


def test_a_row_that_is_cut_further_down_is_refused_without_its_values(tmp_path: Path) -> None:
    rows = [("user", "at", "place"), *[("ann", "2012-04-13", "x")] * 3000, ("secret", "2012")]
    with raises(InvalidDeclaration, field="source, path", reason="fields") as refused:
        draft_of(write(tmp_path / "v.csv", rows))
    assert "1 row on line 3002" in str(refused.value) and "secret" not in str(refused.value)


def test_several_columns_that_would_do_are_left_open(tmp_path: Path) -> None:
    rows = [("a", "b", "c"), ("1", "x", "y")]
    path = write(tmp_path / "v.csv", rows)
    assert opened(path)[:2] == ["entity.column", "order.column"]
    twice = [("user_id", "patient_id", "at", "place"), ("1", "2", "2012-04-13", "x")]
    assert opened(write(tmp_path / "w.csv", twice))[0] == "entity.column"


def test_one_row_for_each_entity_needs_no_order(tmp_path: Path) -> None:
    rows = [("person", "job"), ("a", "x"), ("b", "y")]
    draft = draft_of(write(tmp_path / "v.csv", rows))
    assert "order" not in draft.document
    more = draft_of(write(tmp_path / "w.csv", [*rows, ("a", "y")]))
    assert [point.key for point in more.open] == ["order.column", "protected.job.values"]
    none = draft_of(write(tmp_path / "w.csv", [*rows, ("a", "y")]), order="")
    assert none.open[0].key == "order.column"


def test_rows_that_tie_are_an_open_point(tmp_path: Path) -> None:
    rows = [*ROWS, ("ann", "2012-04-14 09:00:00", "x", "FR", "1")]
    path = write(tmp_path / "v.csv", rows)
    assert opened(path) == ["order.ties", "protected.place.values"]
    assert opened(path, ties=("kwh",)) == ["protected.place.values"]


def test_numbers_need_bounds(tmp_path: Path) -> None:
    rows = [("meter", "hour", "kwh"), ("a", "0", "1.5"), ("a", "1", "2.5")]
    draft = draft_of(write(tmp_path / "m.csv", rows))
    assert draft.document["order"] == {"column": "hour", "kind": "number", "ties": "refuse"}
    assert draft.document["protected"] == {"kwh": {"bounds": "?", "missing": "refuse"}}
    assert [point.key for point in draft.open] == ["protected.kwh.bounds"]


@pytest.mark.parametrize(
    ("first", "kind"), [("1333909229", "unix"), ("5", "number"), ("1333909229000", "number")]
)
def test_seconds_since_1970_are_told_from_other_numbers(
    tmp_path: Path, first: str, kind: str
) -> None:
    rows = [("user", "unix_s", "place"), ("a", first, "x")]
    draft = draft_of(write(tmp_path / "v.csv", rows))
    assert draft.document["order"]["kind"] == kind


def test_labels_of_an_enum_are_part_of_its_type_those_of_a_category_are_not(
    tmp_path: Path,
) -> None:
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    labels = ["secret;1", "é", "never there"]
    frame = polars.DataFrame(
        {
            "user": ["a", "b"],
            "at": [1, 2],
            "place": polars.Series(["é", "é"], dtype=polars.Enum(labels)),
            "state": polars.Series(["secret-a", "secret-b"], dtype=polars.Categorical),
        }
    )
    frame.write_parquet(tmp_path / "v.parquet")
    for source in (tmp_path / "v.parquet", frame, frame.to_arrow()):
        draft = draft_of(source, protected=("place", "state"), order="at")
        assert draft.document["protected"] == {
            "place": {"values": labels, "outside": "refuse"},
            "state": {"values": "?", "outside": "other"},
        }
        assert [point.key for point in draft.open] == ["protected.state.values"]
        assert "secret-a" not in str(draft.describe())


def test_labels_of_a_pandas_category_are_left_open() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {
            "user": ["a", "b"],
            "when": pandas.to_datetime(["2012-04-13", "2012-04-14"]),
            "zoned": pandas.to_datetime(["2012-04-13", "2012-04-14"], utc=True),
            "place": pandas.Categorical(["secret", "x"]),
            "flag": [True, False],
        }
    )
    draft = draft_of(frame, order="when")
    assert [column.kind for column in draft.schema.columns] == [
        "text", "time", "zoned", "text", "text"
    ]  # fmt: skip
    assert draft.document["order"] == {
        "column": "when", "kind": "time", "zone": "UTC", "ties": "refuse"
    }  # fmt: skip
    assert [point.key for point in draft.open] == ["protected.place.values"]
    with raises(InvalidDeclaration, field="zoned", reason="kind"):
        draft_of(frame, protected=("zoned",))


def test_columns_of_a_frame_need_names_of_their_own() -> None:
    pandas = pytest.importorskip("pandas")
    for names in ([0, 1], ["a", "a"]):
        with raises(InvalidDeclaration, field="source", reason="header"):
            draft_of(pandas.DataFrame([["x", "y"]], columns=names))


def test_an_enum_of_a_duckdb_file_is_its_list(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "v.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TYPE place AS ENUM ('home', 'it''s')")
        connection.execute('CREATE TABLE v ("user" varchar, "at" timestamp, place place)')
    draft = draft_of(path, table="v")
    assert draft.document["protected"]["place"]["values"] == ["home", "it's"]
    assert draft.open == ()
    with raises(InvalidDeclaration, field="source, table"):
        draft_of(path)


HOSTILE = [
    "a b", 'qu"ote', "it's", "emoji 😀", "l" * 300, "back\\slash", "[x]", "#", "=", "?", "a.b",
    "new\nline", "values", "\u202ereversed", "-", "protected",
]  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("name", HOSTILE)
def test_any_name_of_a_column_survives(tmp_path: Path, name: str) -> None:
    shown = '"' + name.replace('"', '""') + '"'
    path = tmp_path / "v.csv"
    path.write_text(f"user,at,{shown}\na,2012-04-13,x\n")
    draft = draft_of(path, values={name: ["x"]})
    declaration = parse_declaration(draft_text(draft, tmp_path), folder=tmp_path)
    assert declaration.protected[0].column == name
    with open_engine(declaration) as engine:
        assert engine.histogram([name]).counts.tolist() == [1, 0]


@pytest.mark.nightly
def test_open_points_are_refused_all_at_once_with_their_lines(tmp_path: Path) -> None:
    rows = [("user", "at", "place"), ("a", "3/4/2012", "x"), ("b", "3/4/2012", "y")]
    draft = draft_of(write(tmp_path / "v.csv", rows))
    text = draft_text(draft, tmp_path)
    with pytest.raises(OpenDeclaration) as refused:
        parse_declaration(text)
    lines = text.splitlines()
    assert [key for key, _ in refused.value.points] == ["order.format", "protected.place.values"]
    assert [lines[line - 1] for _, line in refused.value.points] == [
        'format = "?"',
        'values = "?"',
    ]
    (tmp_path / "v.toml").write_text(text)
    with raises(InvalidFile, reason="open"):
        read_declaration(tmp_path / "v.toml")


def test_a_label_may_be_a_question_mark(tmp_path: Path) -> None:
    draft = draft_of(write(tmp_path / "visits.csv"), values={"place": ["?", "x"]})
    found = parse_declaration(draft_text(draft, tmp_path)).category("place")
    assert found.values == ("?", "x")


def test_an_answer_that_names_no_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "v.csv")
    for answers in ({"entity": "usr"}, {"public": ("x",)}, {"values": {"y": ["a"]}}):
        with raises(InvalidDeclaration, reason="unknown column"):
            draft_of(path, **answers)


@pytest.mark.parametrize(
    ("columns", "entity", "order", "protected"),
    [
        ("participant:whole epoch:whole activity:text age:text", "participant", "epoch",
         "activity"),
        ("patientId:text admitted_at:time diagnosis:text ward:text", "patientId", "admitted_at",
         "diagnosis"),
        ("user_idx:whole poi_idx:whole cat:text lat:real unix_s:whole hour:whole", "user_idx",
         "unix_s", "cat"),
        ("user_index:whole user_id:whole row:whole est_hours:whole category_name:text", "user_id",
         "row", "category_name"),
        ("meter:text timestamp:zoned kwh:real", "meter", "timestamp", "kwh"),
        ("meter_id:whole read_at:text kwh:real tariff:text", "meter_id", "read_at", "kwh"),
        ("person:text name:text comment:text job:text sex:text", "person", None, "job"),
        ("x:text y:text", None, None, "x y"),
    ],
)  # fmt: skip
def test_names_that_people_give(
    columns: str, entity: str | None, order: str | None, protected: str
) -> None:
    pairs = [word.split(":") for word in columns.split()]
    found = [SchemaColumn(name, kind, "") for name, kind in pairs]  # type: ignore[arg-type]
    assert guess_entity(found).column == entity
    assert guess_order(found, entity).column == order
    taken = [name for name in (entity, order) if name]
    assert " ".join(guess_protected(found, taken)) == protected


def test_words_of_a_name() -> None:
    assert words_of("userId") == words_of("user_ids") == words_of("User-ID") == ("user", "id")
    assert words_of("😀") == ()


def test_booleans_have_two_labels_and_are_nobody(tmp_path: Path) -> None:
    duckdb.sql(
        "SELECT range % 9 AS person, range AS step, range % 2 = 0 AS member FROM range(90)"
    ).write_parquet(str(tmp_path / "clubs.parquet"))
    draft = draft_of(tmp_path / "clubs.parquet")
    assert draft.open == () and draft.document["entity"] == {"column": "person"}
    assert draft.document["protected"] == {
        "member": {"values": ["false", "true"], "outside": "refuse"}
    }
    with open_engine(draft.declaration(tmp_path)) as engine:
        assert engine.histogram(["member"]).counts.tolist() == [45, 45]


def test_yes_and_no_of_a_csv_file_are_text(tmp_path: Path) -> None:
    path = tmp_path / "clubs.csv"
    path.write_text("person,step,member\n1,1,yes\n1,2,no\n2,1,no\n")
    draft = draft_of(path)
    assert draft.document["protected"] == {"member": {"values": "?", "outside": "other"}}
    draft = draft.answered(values={"member": ["yes", "no"]}, outside={"": "refuse"})
    assert draft.document["protected"]["member"]["outside"] == "refuse"
    with open_engine(draft.declaration(tmp_path)) as engine:
        assert engine.histogram(["member"]).counts.tolist() == [1, 2]


@pytest.mark.parametrize("rules", [{"": "refuses"}, {"step": "drop"}, {"person": "other"}])
def test_rules_that_no_column_follows_are_refused(tmp_path: Path, rules: dict[str, str]) -> None:
    path = tmp_path / "clubs.csv"
    path.write_text("person,step,member\n1,1,yes\n1,2,no\n2,1,no\n")
    with raises(InvalidDeclaration, reason="outside"):
        draft_of(path, values={"member": ["yes", "no"]}, outside=rules)


def test_the_person_is_asked_for_by_a_number_of_people_not_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "wages.csv"
    path.write_text("rownames,nr,year,trade\n1,13,1980,a\n2,13,1981,b\n")
    (point,) = (point for point in draft_of(path).open if point.key == "entity.column")
    assert point.option == "--entity nr" and "rownames" not in point.needed
    assert "[public." not in draft_text(draft_of(path, protected=("trade",)), tmp_path)


def test_the_order_is_not_declared_public_too(tmp_path: Path) -> None:
    path = tmp_path / "wages.csv"
    path.write_text("nr,year,trade\n13,1980,a\n13,1981,b\n")
    draft = draft_of(path, entity="nr", order="year", public=("year",), values={"trade": ["a"]})
    with raises(InvalidDeclaration, field="year", reason="order"):
        draft.declaration(tmp_path)


def test_paths_are_relative_where_a_project_is_moved_with_its_data(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "data").mkdir()
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    project = tmp_path / "a" / "b"
    for path, expected in (
        ("a/b/x.csv", "x.csv"), ("a/x.csv", "../x.csv"), ("x.csv", "../../x.csv"),
        ("a/data/x*.csv", "../data/x*.csv"), ("far/x.csv", str(tmp_path / "far" / "x.csv")),
    ):  # fmt: skip
        assert path_from(path, project, tmp_path) == expected
    assert path_from("x.csv", tmp_path / "link", tmp_path) == str(tmp_path / "x.csv")
