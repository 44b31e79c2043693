"""CSV files are read as the declaration says, or refused; never another way."""

import re
from pathlib import Path

import pytest

from takifugu._core.fingerprint import fingerprint
from takifugu.declarations import (
    DatabaseFailed,
    InvalidDeclaration,
    Order,
    Source,
    parse_declaration,
)
from takifugu.drafting import table
from takifugu.session.cells import cells_of, declared
from takifugu.tables import check, open_engine
from tests.raising import raises

DECLARATION = """
[source]
kind = "csv"
path = "v.csv"
separator = ";"
[entity]
column = "user"
[order]
column = "at"
kind = "time"
zone = "UTC"
ties = "refuse"
format = "%d/%m/%Y %H:%M"
[protected.place]
values = ["home", "café"]
outside = "other"
[public.zone]
values = "from the data"
"""
ROWS = "user;at;more;place;zone\n1;3/4/2012 12:18;x;home;n\n#2;4/4/2012 9:05;;café;s\n"


def put(folder: Path, text: str = ROWS, encoding: str = "utf-8", name: str = "v.csv") -> None:
    (folder / name).write_bytes(text.encode(encoding))


def counts(folder: Path, text: str = DECLARATION) -> list[int]:
    with open_engine(parse_declaration(text, folder=folder), threads=1) as engine:
        check(engine)
        found: list[int] = engine.histogram(["place"]).counts.tolist()
        return found


def test_times_are_read_in_the_format_that_is_said(tmp_path: Path) -> None:
    put(tmp_path)
    with open_engine(parse_declaration(DECLARATION, folder=tmp_path)) as engine:
        first, last = engine.span()
        assert (str(first), str(last)) == ("2012-04-03 12:18:00", "2012-04-04 09:05:00")
    american = DECLARATION.replace("%d/%m", "%m/%d")
    with open_engine(parse_declaration(american, folder=tmp_path)) as engine:
        assert str(engine.span()[0]) == "2012-03-04 12:18:00"


def test_a_line_that_begins_with_a_hash_is_a_row(tmp_path: Path) -> None:
    put(tmp_path)
    assert counts(tmp_path) == [1, 1, 0]


def test_a_time_with_its_own_zone_is_an_instant(tmp_path: Path) -> None:
    put(tmp_path, ROWS.replace("12:18", "12:18 +0200").replace("9:05", "9:05 +0000"))
    text = DECLARATION.replace("%M", "%M %z")
    with open_engine(parse_declaration(text, folder=tmp_path)) as engine:
        assert engine.clock == "instants" and engine.span()[0].hour == 10  # type: ignore[union-attr]


def test_rows_whose_time_is_otherwise_are_refused_with_how_many_they_are(tmp_path: Path) -> None:
    put(tmp_path, ROWS + "3;yesterday;x;secret;n\n4;2012-04-05;x;secret;n\n")
    declaration = parse_declaration(DECLARATION, folder=tmp_path)
    with open_engine(declaration) as engine:
        with raises(InvalidDeclaration, field="order, format", reason="unparsed") as refused:
            check(engine)
        assert "2 rows" in str(refused.value) and "yesterday" not in str(refused.value)
        with raises(DatabaseFailed):  # and no query leaves them out
            engine.span()


def test_a_number_that_is_none_is_refused_without_it(tmp_path: Path) -> None:
    text = DECLARATION.replace('[public.zone]\nvalues = "from the data"', "") + (
        "[protected.kwh]\nbounds = [0, 9]\nmissing = 'drop'\n"
    )
    put(tmp_path, ROWS.replace(";zone", ";kwh").replace(";n", ";1").replace(";s", ";secret"))
    with (
        open_engine(parse_declaration(text, folder=tmp_path)) as engine,
        raises(DatabaseFailed) as refused,
    ):
        engine.sums("kwh")
    assert "secret" not in str(refused.value)


def test_latin_1_is_read_as_such_and_never_by_accident(tmp_path: Path) -> None:
    put(tmp_path, encoding="latin-1")
    assert counts(tmp_path, DECLARATION.replace('";"', '";"\nencoding = "latin-1"')) == [1, 1, 0]
    with raises(InvalidDeclaration, reason="encoding"):
        counts(tmp_path)
    put(tmp_path)  # UTF-8 that is said to be latin-1 has other letters, and is refused
    with raises(InvalidDeclaration, field="source, encoding"):
        counts(tmp_path, DECLARATION.replace('";"', '";"\nencoding = "latin-1"'))


def test_decimal_commas(tmp_path: Path) -> None:
    text = DECLARATION.replace('";"', '";"\ndecimal = ","') + (
        "[protected.more]\nbounds = [0, 9]\nstep = 0.25\nmissing = 'drop'\n"
    )
    put(tmp_path, ROWS.replace(";x;", ";1,25;"))
    with open_engine(parse_declaration(text, folder=tmp_path)) as engine:
        found = engine.sums("more")
        assert (int(found.units), int(found.counts)) == (5, 1)


def test_files_are_matched_by_the_names_of_their_columns(tmp_path: Path) -> None:
    put(tmp_path)
    put(tmp_path, "at;user;more;place;zone\n3/4/2012 12:18;1;x;home;n\n", name="w.csv")
    with raises(InvalidDeclaration, field="source, path", reason="header"):
        counts(tmp_path, DECLARATION.replace("v.csv", "?.csv"))


def test_a_wrong_separator_is_refused(tmp_path: Path) -> None:
    put(tmp_path)
    with raises(InvalidDeclaration, field="source, separator"):
        counts(tmp_path, DECLARATION.replace('";"', '"|"'))


def test_rows_that_are_cut_are_refused(tmp_path: Path) -> None:
    put(tmp_path, ROWS + "3;5/4/2012 10:00\n4;6/4/2012 10:00;secret;home;n;more\n")
    iso = DECLARATION.replace('format = "%d/%m/%Y %H:%M"\n', "")
    for text, content in (
        (DECLARATION, None),
        (iso, (tmp_path / "v.csv").read_text().replace("/4/2012", "").replace(":05", "")),
    ):
        if content is not None:
            put(tmp_path, re.sub(r";(\d) ", r";2012-04-0\1 0", content))
        with raises(InvalidDeclaration, field="source, path", reason="fields") as refused:
            counts(tmp_path, text)
        shown = str(refused.value)
        assert "2 rows, the first on line 4" in shown and "secret" not in shown


AMBIGUOUS = ROWS.replace("#", "").replace(";", ",").replace(" 12:18", "").replace(" 9:05", "")


def test_days_and_months_are_never_guessed_where_both_would_do(tmp_path: Path) -> None:
    """DuckDB reads such a file day first, until a row of it says otherwise."""
    old = DECLARATION.replace('separator = ";"\n', "").replace('format = "%d/%m/%Y %H:%M"\n', "")
    put(tmp_path, AMBIGUOUS)
    with raises(InvalidDeclaration, field="order, format", reason="ambiguous"):
        counts(tmp_path, old)
    put(tmp_path, AMBIGUOUS.replace("4/4/2012", "14/4/2012"))
    assert counts(tmp_path, old) == [1, 1, 0]  # settled: as it was before there was a format
    said = old.replace('path = "v.csv"', 'path = "v.csv"\nseparator = ","')
    with raises(InvalidDeclaration, field="order, format", reason="ambiguous"):
        counts(tmp_path, said)


def test_what_is_not_said_leaves_no_trace_in_any_identity(tmp_path: Path) -> None:
    """Charges of earlier versions stay those of the same cells, and answers stay free."""
    old = DECLARATION.replace('separator = ";"\n', "").replace('format = "%d/%m/%Y %H:%M"\n', "")
    put(tmp_path, AMBIGUOUS.replace("4/4/2012", "14/4/2012"))
    before = parse_declaration(old, folder=tmp_path)
    assert fingerprint(Source("csv", path="v.csv")) == (
        "6fc1c9a8705e7c384daf551fd004e2788eb1b5f78dc6fccaf07c6f6bf14ebb81"
    )
    assert fingerprint(Order("at", "time", "UTC")) == (
        "a078f8c9119c7ebdc8640ae3a0583b053f9df2ffcc4e650800681421b281cfb2"
    )
    with open_engine(before) as engine:
        parts = cells_of(engine, ("place",), None).parts
    assert set(parts) == {"source", "entity", "order", "public", "protected"}
    assert set(parts["order"]) == {"column", "kind", "zone", "ties", "clock"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('separator = ";"', 'separator = ";"\nencoding = "utf-8"'),
        ('separator = ";"', 'separator = ";"\ndecimal = ","'),
        ("%d/%m/%Y", "%m/%d/%Y"),
    ],
)
def test_how_a_file_is_read_is_part_of_what_names_its_cells(
    tmp_path: Path, one: str, other: str
) -> None:
    put(tmp_path)
    found = [
        parse_declaration(DECLARATION.replace(one, way), folder=tmp_path) for way in (one, other)
    ]
    assert declared(found[0]) != declared(found[1])
    named = []
    for declaration in found:
        with open_engine(declaration) as engine:
            named.append(cells_of(engine, ("place",), None).fingerprint)
    assert named[0] != named[1]


def test_an_order_of_numbers_that_is_taken_for_times_says_how_to_declare_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("user,step,place\nAnn,0,home\nAnn,1,work\n", encoding="utf-8")
    visits = table(path, entity="user", order="step", protected={"place": ["home", "work"]})
    with pytest.raises(InvalidDeclaration, match="order_kind = 'number' or 'unix'"):
        visits.open()
