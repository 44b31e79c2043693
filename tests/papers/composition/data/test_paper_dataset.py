"""Which sources a folder has, what is said about files that do not fit, and what is kept."""

import gzip
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from takifugu.declarations import Order
from takifugu.errors import InvalidFile, InvalidWorld, UnsoundRequest
from takifugu.papers.composition.data import (
    REAL,
    SIMULATED,
    SOURCES,
    DrawnCounts,
    PaperDataset,
    find,
    prepare,
    read_prepared,
    write_prepared,
)
from takifugu.papers.composition.data.preparation import by_days, check_ins, prepare_table
from takifugu.papers.composition.data.raw_tables import make_synthetic_table
from takifugu.papers.composition.data.simulated import PRINTED_ACCURACIES, WORLD_SEED
from takifugu.papers.composition.experiments.measurements import Prepared
from takifugu.priors.labels import foursquare_labels
from takifugu.synthetic import (
    write_check_ins,
)
from tests.papers.composition.data.raw_files import check_in_time, write_csv, write_tabs
from tests.raising import raises

FIRST = datetime(2012, 4, 3, 18, 0, 6)
HIDDEN = "Hidden Bar"  # a value that no message may repeat


def prepared(key: str, data: Path | None, work: Path) -> Prepared:
    return prepare(SOURCES[key], data, work, lambda *_: None)


def write_tist(folder: Path, days: int = 10) -> None:
    write_tabs(
        folder / "dataset_TIST2015_Checkins.txt",
        [(n % 3, f"v{n % 2}", check_in_time(FIRST + timedelta(days=n)), 0) for n in range(days)],
    )
    write_tabs(
        folder / "dataset_TIST2015_POIs.txt",
        [("v0", 0, 0, "Bar", "US"), ("v1", 0, 0, HIDDEN, "JP")],
    )


def write_nyc(folder: Path, hour: str = "14", when: str = "") -> None:
    begin = 1333909229
    write_csv(
        folder / "checkins_nyc.csv.gz",
        ("user_idx", "poi_idx", "cat", "lat", "lon", "unix_s", "hour", "dow", "traj_id", "block"),
        [
            (0, 7, HIDDEN, 40.7, -73.9, when or begin + 86400 * n, hour, 6, "1_2", "T0")
            for n in range(10)
        ],
    )


def write_sleep(folder: Path, stage: str = "2", people: int = 10) -> None:
    write_csv(
        folder / "sleep_hypnograms.csv.gz",
        ("dataset", "scorer", "recording", "stages_30s"),
        [("dodh", "scorer_1", f"r{n}", f"0 1 {stage} -1 4") for n in range(people)],
    )


def write_capture24(folder: Path, *, raw: str = "known", people: int = 10) -> None:
    for n in range(1, people + 1):
        write_csv(
            folder / f"P{n:03d}.csv.gz",
            ("time", "x", "y", "z", "annotation"),
            [(f"2016-11-13 02:{m:02d}:00.010000", 0, 0, 1, raw) for m in range(5)],
        )
    write_csv(
        folder / "annotation-label-dictionary.csv",
        ("annotation", "label:WillettsMET2018"),
        [("known", "sleep")],
    )
    rows = [(f"P{n:03d}", "18-29", "F") for n in range(1, people + 1)]
    write_csv(folder / "metadata.csv", ("pid", "age", "sex"), rows)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("key", "write", "facts"),
    [
        ("foursquare", write_tist, "rows 10, not 33,278,683; groups 2, not 77"),
        ("capture24", write_capture24, "entities 10, not 151; groups 1, not 4"),
    ],
)
def test_files_that_are_named_like_the_papers_data_are_not_called_its_own(
    key: str, write: Callable[[Path], None], facts: str, tmp_path: Path
) -> None:
    write(tmp_path)
    made = prepared(key, tmp_path, tmp_path / "work")
    assert SOURCES[key].about.origin == "paper" and made.origin == "real"
    assert made.title != SOURCES[key].title and any(facts in note for note in made.notes)
    again = prepared(key, tmp_path, tmp_path / "work")
    assert (again.origin, again.title, again.notes) == (made.origin, made.title, made.notes)


def refused(key: str, folder: Path) -> str:
    """The one line that is said; no value of the data is in it."""
    with pytest.raises(InvalidFile) as caught:
        prepared(key, folder, folder / "work")
    line = str(caught.value)
    assert "\n" not in line and HIDDEN not in line and "Error" not in line
    assert caught.value.__cause__ is None
    assert not list((folder / "work").rglob("*.part"))
    return line


def test_every_source_says_what_it_needs_and_where_it_is_published() -> None:
    assert set(SOURCES) == {source.key for source in (*REAL, *SIMULATED)}
    for source in REAL:
        assert source.files and source.published.startswith("https://") and source.cite
        assert source.about.origin != "simulated"
    for source in SIMULATED:
        assert not source.files and source.about.origin == "simulated"
        made = source.made_by
        about = made.described(source.about, 7) if isinstance(made, DrawnCounts) else source.about
        assert any("Synthetic" in note for note in about.notes)


def test_sources_are_found_by_their_files_also_one_folder_down(tmp_path: Path) -> None:
    assert find(None) == list(SIMULATED)
    assert find(tmp_path) == []
    (tmp_path / "metadata.csv").write_text("pid,age,sex\n")  # a name that many datasets use
    assert find(tmp_path) == []
    inner = tmp_path / "dataset_TIST2015"
    inner.mkdir()
    write_tist(inner)
    write_nyc(tmp_path)
    assert [source.key for source in find(tmp_path)] == ["foursquare", "nyc"]
    assert prepared("foursquare", tmp_path, tmp_path / "work").groups == ("JP", "US")
    with raises(InvalidFile, field=str(tmp_path / "nowhere")):
        find(tmp_path / "nowhere")


@pytest.mark.parametrize("source", REAL, ids=lambda source: source.key)
def test_a_missing_file_is_named_with_its_columns_and_its_publisher(
    source: PaperDataset, tmp_path: Path
) -> None:
    line = refused(source.key, tmp_path)
    needed = next(iter(source.files.values()))
    assert line.startswith(f"`{needed.name}` is missing from {tmp_path};")
    assert all(column.name in line for column in needed.columns)
    assert source.published in line


def test_the_second_file_is_missed_too(tmp_path: Path) -> None:
    write_tist(tmp_path)
    (tmp_path / "dataset_TIST2015_POIs.txt").unlink()
    assert [source.key for source in find(tmp_path)] == ["foursquare"]
    assert refused("foursquare", tmp_path).startswith("`dataset_TIST2015_POIs.txt` is missing")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])  # the end of an archive, not of its rows


def no_archive(path: Path) -> None:
    path.write_bytes(b"user_idx,cat,unix_s,hour\n")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def only_blanks(path: Path) -> None:
    path.write_bytes(gzip.compress(b" \n\n"))


def other_encoding(path: Path) -> None:
    path.write_bytes(gzip.compress("user_idx,cat,unix_s,hour\n0,Café,1,2\n".encode("latin-1")))


def only_a_header(path: Path) -> None:
    path.write_bytes(gzip.compress(b"user_idx,cat,unix_s,hour\n"))


def other_column(path: Path) -> None:
    path.write_bytes(gzip.compress(b"user_idx,category,unix_s,hour\n0,Bar,1,2\n"))


def short_line(path: Path) -> None:
    path.write_bytes(gzip.compress(b"user_idx,cat,unix_s,hour\n0,Bar,1,2\n1,Bar\n"))


def open_quote(path: Path) -> None:
    path.write_bytes(gzip.compress(b'user_idx,cat,unix_s,hour\n0,"Bar,1,2\n1,Bar,3,4\n'))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (cut, "is cut off"),
        (no_archive, "is not a gzip archive"),
        (empty, "is cut off"),
        (only_blanks, "is empty"),
        (other_encoding, "is not text in utf-8"),
        (only_a_header, "hold no rows"),
        (other_column, "column cat` is missing"),
        (short_line, "cannot be read at line 3"),
        (open_quote, "cannot be read"),
    ],
)
def test_a_malformed_file_gets_one_line(
    harm: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    write_nyc(tmp_path)
    harm(tmp_path / "checkins_nyc.csv.gz")
    line = refused("nyc", tmp_path)
    assert said in line and "checkins_nyc.csv.gz" in line


def test_a_wrong_value_is_blamed_on_its_column(tmp_path: Path) -> None:
    write_nyc(tmp_path, when=HIDDEN)
    line = refused("nyc", tmp_path)
    assert "column unix_s` holds something else, or nothing, in 10 rows" in line
    assert line.endswith("it must hold whole numbers")
    write_nyc(tmp_path, hour="25")
    assert "column hour` is out of range; it must be from 0 to 23" in refused("nyc", tmp_path)
    write_nyc(tmp_path, hour="")
    assert "column hour` holds something else, or nothing" in refused("nyc", tmp_path)


def test_columns_without_a_header_are_counted_and_checked(tmp_path: Path) -> None:
    write_tist(tmp_path)
    pois = tmp_path / "dataset_TIST2015_POIs.txt"
    write_tabs(pois, [("v0", 0, 0, "US"), ("v1", 0, 0, "JP")])
    assert "has 4 columns; it must have 5: venue, latitude" in refused("foursquare", tmp_path)
    write_tabs(pois, [("v0", 0, 0, "Bar", "US"), ("v1", 0, 0, "Bar", "")])
    assert "POIs.txt, column country` holds" in refused("foursquare", tmp_path)
    write_tist(tmp_path)
    write_tabs(
        tmp_path / "dataset_TIST2015_Checkins.txt",
        [(1, "v0", "2012-04-03 18:00:06", 0), (1, "v0", "2012-04-04 18:00:06", 0)],
    )
    line = refused("foursquare", tmp_path)
    assert "Checkins.txt, column utc_time` holds" in line
    assert line.endswith("it must hold times, as Tue Apr 03 18:00:06 +0000 2012")


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    write_tist(tmp_path)
    write_tabs(tmp_path / "dataset_TIST2015_POIs.txt", [("elsewhere", 0, 0, "Bar", "US")])
    assert "10 of 10 rows in no group" in refused("foursquare", tmp_path)


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    write_tist(tmp_path)
    unix = prepared("foursquare", tmp_path, tmp_path / "work")
    for path in tmp_path.glob("*.txt"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    windows = prepared("foursquare", tmp_path, tmp_path / "work")
    assert windows.fingerprint != unix.fingerprint
    assert windows.groups == unix.groups
    assert (windows.counts == unix.counts).all()
    assert windows.chain == unix.chain


def test_activities_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write_sleep(tmp_path, stage="7")
    assert "column stages_30s` holds another stage" in refused("sleep", tmp_path)
    write_sleep(tmp_path, people=8)
    assert "must name more than 8 in each dataset" in refused("sleep", tmp_path)
    write_capture24(tmp_path, people=8)
    line = refused("capture24", tmp_path)
    assert "18-29` has 8 people; it must have more than the 8 that are held out" in line
    write_capture24(tmp_path, raw=HIDDEN)
    assert "column annotation` holds what the dictionary does not" in refused("capture24", tmp_path)
    write_capture24(tmp_path)
    write_csv(tmp_path / "metadata.csv", ("pid", "age", "sex"), [("P001", "18-29", "F")])
    assert "`metadata.csv` has no row for P002" in refused("capture24", tmp_path)
    write_csv(
        tmp_path / "annotation-label-dictionary.csv",
        ("annotation", "label:WillettsMET2018"),
        [("known", HIDDEN)],
    )
    assert "column label:WillettsMET2018` holds another activity" in refused("capture24", tmp_path)


def test_some_venues_may_be_unknown_but_not_many(tmp_path: Path) -> None:
    write_tist(tmp_path)
    write_tabs(tmp_path / "dataset_TIST2015_POIs.txt", [("v0", 0, 0, "Bar", "US")])
    assert "has 1 of 2 rows in no group" in refused("foursquare", tmp_path)


def test_too_few_days_are_refused(tmp_path: Path) -> None:
    write_tist(tmp_path, days=1)
    assert "2 or more" in refused("foursquare", tmp_path)


def test_nothing_is_made_again_unless_the_files_changed(tmp_path: Path) -> None:
    write_tist(tmp_path)
    work = tmp_path / "work"
    first = prepared("foursquare", tmp_path, work)
    times = {path: path.stat().st_mtime_ns for path in work.iterdir()}
    again = prepared("foursquare", tmp_path, work)
    assert {path: path.stat().st_mtime_ns for path in work.iterdir()} == times
    assert again.chain == first.chain and (again.counts == first.counts).all()
    assert (again.facts, again.notes) == (first.facts, first.notes)

    pois = tmp_path / "dataset_TIST2015_POIs.txt"
    pois.write_bytes(pois.read_bytes())  # the same bytes, written again
    assert prepared("foursquare", tmp_path, work).fingerprint == first.fingerprint
    assert (work / "foursquare.parquet").stat().st_mtime_ns == times[work / "foursquare.parquet"]

    pois.write_bytes(pois.read_bytes().replace(b"US", b"ID"))  # as many bytes as before
    changed = prepared("foursquare", tmp_path, work)
    assert changed.fingerprint != first.fingerprint
    assert changed.groups == ("ID", "JP")


@pytest.mark.parametrize("name", ["foursquare.json", "foursquare.parquet"])
def test_a_damaged_table_or_note_is_made_anew(name: str, tmp_path: Path) -> None:
    write_tist(tmp_path)
    work = tmp_path / "work"
    first = prepared("foursquare", tmp_path, work)
    (work / name).write_bytes((work / name).read_bytes()[:-20])
    (work / "foursquare.prepared.json").unlink()
    again = prepared("foursquare", tmp_path, work)
    assert again.fingerprint == first.fingerprint and (again.counts == first.counts).all()


def test_prepared_data_is_written_and_read_to_the_last_bit(tmp_path: Path) -> None:
    write_tist(tmp_path)
    made = prepared("foursquare", tmp_path, tmp_path / "work")
    write_prepared(made, tmp_path / "made.json")
    found = read_prepared(tmp_path / "made.json", of=made.fingerprint)
    for name in ("key", "title", "family", "origin", "chain", "group_by", "groups", "notes"):
        assert getattr(found, name) == getattr(made, name)
    assert dict(found.facts) == dict(made.facts)
    for mine, theirs in ((found.counts, made.counts), (found.train, made.train)):
        assert np.array_equal(mine, theirs) and mine.dtype == theirs.dtype
        assert not mine.flags.writeable
    with raises(InvalidFile, field=str(tmp_path / "made.json")):
        read_prepared(tmp_path / "made.json", of="0" * 64)


@pytest.mark.parametrize(
    ("field", "value"),
    [("counts", [[1, 2]]), ("key", "other"), ("chain", {}), ("format", "2"), ("facts", None)],
)
def test_prepared_data_that_was_changed_is_refused(
    field: str, value: object, tmp_path: Path
) -> None:
    write_tist(tmp_path)
    write_prepared(prepared("foursquare", tmp_path, tmp_path / "work"), tmp_path / "made.json")
    document = json.loads((tmp_path / "made.json").read_text())
    document[field] = value
    (tmp_path / "made.json").write_text(json.dumps(document))
    place = "format" if field == "format" else "digest"
    with raises(InvalidFile, field=f"{tmp_path / 'made.json'}: {place}"):
        read_prepared(tmp_path / "made.json")


@pytest.mark.nightly
def test_the_simulated_activities_are_prepared(tmp_path: Path) -> None:
    found = prepared("simulated-activities", None, tmp_path)
    assert found.groups == ("18-29", "30-37", "38-52", "53+")
    assert found.counts.sum(axis=1).tolist() == [8 * 2880] * 4
    assert found.chain.length == 2880
    assert found.facts["entities fitted on"] == 151 - 32


def drawn(work: Path, rows: int = 20_000) -> Prepared:
    return prepare(SOURCES["simulated-checkins"], None, work, lambda *_: None, rows=rows)


@pytest.mark.nightly
def test_the_simulated_check_ins_are_prepared_and_the_same_everywhere(tmp_path: Path) -> None:
    one, two = (drawn(tmp_path / name) for name in "ab")
    assert one.fingerprint == two.fingerprint and (one.counts == two.counts).all()
    assert one.chain == two.chain
    assert one.chain.states == foursquare_labels().labels
    assert one.facts["rows"] == 20_000 and any("20,000 rows" in note for note in one.notes)
    assert (one.facts["days fitted on"], one.facts["days released from"]) == (400, 100)
    assert int(one.train[-1]) > 0  # "other" is a label of its own there
    assert not list((tmp_path / "a").glob(".*"))
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").iterdir()}
    again = drawn(tmp_path / "a")
    assert again.notes == one.notes and (again.counts == one.counts).all()
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "a").iterdir()} == times
    more = drawn(tmp_path / "a", rows=30_000)
    assert more.facts["rows"] == 30_000 and more.fingerprint != one.fingerprint


@pytest.mark.nightly
def test_drawn_counts_are_prepared_as_rows_are(tmp_path: Path) -> None:
    """The same facts, groups and shapes as rows of the same world that go through an engine."""
    rng = np.random.default_rng(WORLD_SEED)
    made = write_check_ins(tmp_path, rows=20_000, rng=rng, parameters=PRINTED_ACCURACIES)
    recipe = 'SELECT "user" AS entity, "at", "row", place AS label, country AS "group" FROM {made}'

    def path(_: Path) -> Path:
        return made.with_suffix(".parquet")

    table = make_synthetic_table(tmp_path / "entries.parquet", recipe, "rows", path)
    about = SOURCES["simulated-checkins"].about
    declaration = check_ins(table.path, order=Order("at", "time", "UTC", ties=("row",)))
    rows = prepare_table(about, declaration, by_days, identity="rows")
    counts = drawn(tmp_path / "work")
    assert list(rows.facts) == list(counts.facts)
    for name in ("rows", "entities", "first day", "days fitted on", "states"):
        assert rows.facts[name] == counts.facts[name], name
    ours, theirs = (int(one.facts["rows fitted on"]) for one in (rows, counts))
    assert abs(ours - theirs) < 8 * (2 * 20_000 * 0.8 * 0.2) ** 0.5
    assert list(counts.groups) == sorted(counts.groups) and list(rows.groups) == sorted(rows.groups)
    assert rows.counts.dtype == counts.counts.dtype and not counts.counts.flags.writeable
    assert rows.chain.states == counts.chain.states and rows.calibrated == counts.calibrated


def test_rows_are_chosen_for_drawn_counts_alone(tmp_path: Path) -> None:
    with raises(UnsoundRequest, field="rows"):
        prepare(SOURCES["simulated-activities"], None, tmp_path, lambda *_: None, rows=20_000)
    with raises(InvalidWorld, field="rows"):
        drawn(tmp_path, rows=5)
    assert not list(tmp_path.glob("*.json"))
