"""Prepared data against plain loops over the same files, written in the published formats."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import md5
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.papers.composition.data import SOURCES, prepare
from takifugu.papers.composition.data.capture24 import MET, STAGES, held_out
from takifugu.papers.composition.experiments.measurements import Prepared
from takifugu.priors.labels import foursquare_labels
from tests.papers.composition.data import recount
from tests.papers.composition.data.raw_files import check_in_time, read_csv, write_csv, write_tabs
from tests.papers.composition.data.recount import Entry, Recount
from tests.real_data import real

FIRST = datetime(2012, 4, 3, 18, 0, 6)
MEMBERS = dict(foursquare_labels().members)
CATEGORIES = (
    "Bar",
    "Cocktail Bar",
    "Café",
    "Ramen /  Noodle House",
    "Sushi Restaurant",
    "Home (private)",
    "Nowhere in the Map",
)


def prepared(key: str, data: Path, work: Path) -> Prepared:
    return prepare(SOURCES[key], data, work, lambda *_: None)


@cache
def label(raw: str) -> str:
    return recount.common_label(raw, MEMBERS)


def assert_same(found: Prepared, wanted: Recount) -> None:
    states = [str(state) for state in found.chain.states]
    assert {
        (group, state): int(count)
        for group, row in zip(found.groups, found.counts, strict=True)
        for state, count in zip(states, row, strict=True)
        if count
    } == dict(wanted.counts)
    assert {s: int(n) for s, n in zip(states, found.train, strict=True) if n} == dict(wanted.train)
    assert found.chain.length == wanted.longest
    assert found.facts["rows fitted on"] == wanted.fitted
    assert found.facts["rows released from"] == wanted.released
    table = recount.matrix(wanted.steps, states)
    for state, mine, theirs in zip(states, found.chain.transition.tolist(), table, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-12), state


@st.composite
def check_ins(draw: st.DrawFn, *, most_days: int) -> list[tuple[int, datetime, int, int]]:
    """Rows of user, time, number of the category and offset; some to fit on, some to release."""
    minutes = draw(st.integers(2, most_days)) * 24 * 60 - 1
    moments = st.integers(0, minutes)
    rows = st.tuples(
        st.integers(1, 4),
        st.one_of(moments, st.sampled_from([0, 60, minutes])),  # some at the same time
        st.integers(0, len(CATEGORIES) - 1),
        st.sampled_from([-300, 0, 540]),
    )
    drawn = draw(st.lists(rows, max_size=60))
    drawn += [(1, 0, 0, 0), (1, min(minutes, 500 * 24 * 60 - 1), 1, 0), (1, minutes, 2, 0)]
    midnight = FIRST.replace(hour=0, minute=0, second=0)
    return [(user, midnight + timedelta(minutes=at), kind, off) for user, at, kind, off in drawn]


@pytest.mark.nightly
@settings(max_examples=8)
@given(rows=check_ins(most_days=40))
def test_one_city_is_split_and_counted_as_plain_loops_do(
    rows: list[tuple[int, datetime, int, int]],
) -> None:
    with TemporaryDirectory() as folder:
        write_tabs(
            Path(folder) / "dataset_TSMC2014_TKY.txt",
            [
                (
                    user,
                    f"v{kind}",
                    f"c{kind}",
                    CATEGORIES[kind],
                    35.7,
                    139.8,
                    off,
                    check_in_time(at),
                )
                for user, at, kind, off in rows
            ],
            encoding="latin-1",
        )
        found = prepared("tsmc-tky", Path(folder), Path(folder) / "work")
    entries = [
        Entry(
            user,
            (at, line),
            at.toordinal(),
            label(CATEGORIES[kind]),
            f"{(at + timedelta(minutes=off)).hour:02d}",
        )
        for line, (user, at, kind, off) in enumerate(rows)
    ]
    wanted, fitted, released = recount.by_days(entries)
    assert_same(found, wanted)
    assert found.facts["days fitted on"] == fitted
    assert found.facts["days released from"] == released
    assert any(f"{fitted} are fitted on" in note for note in found.notes)


@pytest.mark.nightly
@settings(max_examples=8)
@given(rows=check_ins(most_days=700))
def test_check_ins_are_joined_with_venues_split_and_counted_as_plain_loops_do(
    rows: list[tuple[int, datetime, int, int]],
) -> None:
    places = [f"{number:024x}" for number in range(len(CATEGORIES))]
    countries = ["US", "JP", "US", "ID", "BR", "JP", "ID"]
    with TemporaryDirectory() as folder:
        write_tabs(
            Path(folder) / "dataset_TIST2015_Checkins.txt",
            [(user, places[kind], check_in_time(at), off) for user, at, kind, off in rows],
        )
        write_tabs(
            Path(folder) / "dataset_TIST2015_POIs.txt",
            [
                (place, 1.5, -2.5, category, country)
                for place, category, country in zip(places, CATEGORIES, countries, strict=True)
            ],
        )
        found = prepared("foursquare", Path(folder), Path(folder) / "work")
    wanted, fitted, released = recount.by_days(
        Entry(user, (at, line), at.toordinal(), label(CATEGORIES[kind]), countries[kind])
        for line, (user, at, kind, _) in enumerate(rows)
    )
    assert_same(found, wanted)
    assert (fitted, released) == (found.facts["days fitted on"], found.facts["days released from"])
    assert found.chain.transition.shape == (78, 78)


def test_day_400_is_the_first_that_is_released_from_and_day_499_the_last(tmp_path: Path) -> None:
    midnight = FIRST.replace(hour=0, minute=0, second=0)
    days = (0, 399, 400, 499, 500, 530)
    ends = [midnight + timedelta(days=day, hours=23, minutes=59, seconds=59) for day in days]
    starts = [midnight + timedelta(days=day) for day in days]
    write_tabs(
        tmp_path / "dataset_TIST2015_Checkins.txt",
        [(7, "v", check_in_time(at), 0) for at in (*starts, *ends)],
    )
    write_tabs(tmp_path / "dataset_TIST2015_POIs.txt", [("v", 0, 0, "Bar", "US")])
    found = prepared("foursquare", tmp_path, tmp_path / "work")
    assert (found.facts["days fitted on"], found.facts["days released from"]) == (400, 100)
    assert (found.facts["rows fitted on"], found.facts["rows released from"]) == (4, 4)
    assert found.facts["rows"] == 12
    assert found.chain.length == 4
    assert not [note for note in found.notes if "spans" in note]


def test_a_state_never_left_is_followed_by_the_others_alike(tmp_path: Path) -> None:
    rows = [(1, FIRST + timedelta(days=day), kind) for day, kind in enumerate((0, 1, 0, 0, 0))]
    write_tabs(
        tmp_path / "dataset_TSMC2014_NYC.txt",
        [(user, "v", "c", CATEGORIES[kind], 0, 0, 0, check_in_time(at)) for user, at, kind in rows],
    )
    chain = prepared("tsmc-nyc", tmp_path, tmp_path / "work").chain
    other = chain.states.index("other")
    wanted = [1 / 77 * (1 - 1e-5)] * 78
    wanted[other] = 1e-5
    assert chain.transition[other].tolist() == pytest.approx(wanted, abs=1e-15)


def test_check_ins_at_unknown_venues_are_entries_of_no_country(tmp_path: Path) -> None:
    moments = [FIRST + timedelta(hours=hour) for hour in range(1000)]
    write_tabs(
        tmp_path / "dataset_TIST2015_Checkins.txt",
        [(1, "gone" if n == 990 else "v", check_in_time(at), 0) for n, at in enumerate(moments)],
    )
    write_tabs(tmp_path / "dataset_TIST2015_POIs.txt", [("v", 0, 0, "Bar", "US")])
    found = prepared("foursquare", tmp_path, tmp_path / "work")
    assert found.facts["rows released from no group"] == 1
    assert int(found.counts.sum()) == int(found.facts["rows released from"]) - 1


def write_capture24(folder: Path, people: dict[str, str]) -> dict[str, list[tuple[datetime, str]]]:
    """Samples every 6 seconds: annotated, not annotated, and epochs that are tied."""
    annotations = {
        "7030 sleeping;MET 0.95": "sleep",
        "home activity;sitting;MET 1.3": "sitting",
        "walking, slow;MET 2.5": "walking",
    }
    samples: dict[str, list[tuple[datetime, str]]] = {}
    names = ["", *annotations]
    for number, pid in enumerate(people):
        begin = datetime(2016, 11, 13, 2, 18, 0) + timedelta(seconds=7 * number)
        samples[pid] = [
            (begin + timedelta(seconds=6 * n), names[(n * (number + 3) // 7 + n // 11) % 4])
            for n in range(80)
        ]
        write_csv(
            folder / f"{pid}.csv.gz",
            ("time", "x", "y", "z", "annotation"),
            [(f"{at:%Y-%m-%d %H:%M:%S.%f}", 0.1, -0.2, 0.97, raw) for at, raw in samples[pid]],
        )
    write_csv(
        folder / "annotation-label-dictionary.csv",
        ("annotation", "label:Willetts2018", "label:WillettsMET2018"),
        [(raw, "any", short) for raw, short in annotations.items()],
    )
    write_csv(
        folder / "metadata.csv",
        ("pid", "age", "sex"),
        [(pid, age, "F") for pid, age in people.items()],
    )
    return {
        pid: [(at, annotations.get(raw, "")) for at, raw in ones] for pid, ones in samples.items()
    }


def most_frequent(ones: list[str]) -> str:
    """Of two as frequent, the one that comes first."""
    return max(ones, key=lambda one: (ones.count(one), -ones.index(one)))


def epochs(samples: list[tuple[datetime, str]]) -> list[tuple[datetime, str]]:
    """Half minutes of the clock, each with the label of most samples, of two the one before."""
    grouped: dict[datetime, list[str]] = {}
    for at, short in samples:
        grouped.setdefault(at.replace(second=at.second // 30 * 30), []).append(short)
    most = [(epoch, most_frequent(ones)) for epoch, ones in grouped.items()]
    return [(epoch, short) for epoch, short in most if short]


@pytest.mark.nightly
def test_activities_become_epochs_and_eight_of_each_age_are_held_out(tmp_path: Path) -> None:
    people = {
        f"P{n:03d}": ("18-29", "53+")[n % 2] for n in range(1, 22)
    }  # 10 and 11 people: 2 and 3 are fitted on
    samples = write_capture24(tmp_path, people)
    found = prepared("capture24", tmp_path, tmp_path / "work")
    out = set[str]()
    for age in ("18-29", "53+"):
        ones = [pid for pid, group in people.items() if group == age]
        out |= set(
            sorted(ones, key=lambda pid: md5(pid.encode(), usedforsecurity=False).hexdigest())[:8]
        )
    wanted = recount.by_people(
        [
            Entry(pid, at, 0, short, people[pid])
            for pid, ones in samples.items()
            for at, short in epochs(ones)
        ],
        out,
    )
    assert_same(found, wanted)
    assert found.chain.states == MET and len(MET) == 11
    assert found.facts["entities released from"] == 16
    assert found.facts["entities fitted on"] == 5


@pytest.mark.real_data
def test_every_annotation_of_the_published_dictionary_has_its_activity(tmp_path: Path) -> None:
    name = "capture24_annotation_label_dictionary.csv"
    known = read_csv(real(name))
    (tmp_path / "annotation-label-dictionary.csv").write_bytes(real(name).read_bytes())
    begin = datetime(2016, 11, 13)
    people = [f"P{n:03d}" for n in range(1, 10)]
    for pid in people:
        write_csv(
            tmp_path / f"{pid}.csv.gz",
            ("time", "x", "y", "z", "annotation"),
            [
                (f"{begin + timedelta(minutes=n)}.000000", 0, 0, 1, row["annotation"])
                for n, row in enumerate(known)
            ],
        )
    rows = [(pid, "38-52", "M") for pid in people]
    write_csv(tmp_path / "metadata.csv", ("pid", "age", "sex"), rows)
    found = prepared("capture24", tmp_path, tmp_path / "work")
    wanted = Counter(row["label:WillettsMET2018"] for row in known)
    assert dict(zip(found.chain.states, found.train.tolist(), strict=True)) == wanted
    assert found.counts.tolist() == [[8 * count for count in found.train.tolist()]]


@pytest.mark.nightly
def test_a_capture24_run_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    people = {f"P{n:03d}": "30-37" for n in range(1, 11)}
    write_capture24(tmp_path, people)
    first = prepared("capture24", tmp_path, tmp_path / "work")
    tables = tmp_path / "work" / "capture24"
    before = {path.name: path.stat().st_mtime_ns for path in tables.glob("*.parquet")}
    (tables / "P004.parquet").unlink()
    (tmp_path / "P005.csv.gz").write_bytes((tmp_path / "P006.csv.gz").read_bytes())
    again = prepared("capture24", tmp_path, tmp_path / "work")
    after = {path.name: path.stat().st_mtime_ns for path in tables.glob("*.parquet")}
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"P004.parquet", "P005.parquet"}
    assert again.fingerprint != first.fingerprint


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=6), st.just("g"), min_size=9))
def test_who_is_held_out_depends_on_the_names_alone(ages: dict[str, str]) -> None:
    parts = held_out(ages)
    assert sorted(parts.values()).count("release") == 8
    assert parts == held_out(dict(reversed(ages.items())))


def votes(nights: list[list[str]]) -> list[tuple[int, str]]:
    """For each epoch the stage of most scorers, of two the one of the scorer before."""
    found = []
    for epoch in range(len(nights[0])):
        cast = [night[epoch] for night in nights if night[epoch] != "-1"]
        if cast:
            found.append((epoch, STAGES[int(most_frequent(cast))]))
    return found


def recount_sleep(rows: list[dict[str, str]]) -> Recount:
    nights: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        person = nights.setdefault((row["dataset"], row["recording"]), {})
        person[row["scorer"]] = row["stages_30s"].split()
    out = set[str]()
    for group in {group for group, _ in nights}:
        ones = [person for which, person in nights if which == group]
        out |= set(
            sorted(
                ones, key=lambda person: md5(person.encode(), usedforsecurity=False).hexdigest()
            )[:8]
        )
    return recount.by_people(
        [
            Entry(person, epoch, 0, stage, group)
            for (group, person), scored in nights.items()
            for epoch, stage in votes([scored[scorer] for scorer in sorted(scored)])
        ],
        out,
    )


def test_scorers_vote_and_unscored_epochs_are_left_out(tmp_path: Path) -> None:
    rows = [
        {
            "dataset": "dodh",
            "scorer": f"scorer_{scorer}",
            "recording": f"night-{night}",
            "stages_30s": " ".join(
                str((night * epoch + scorer * (epoch % 3)) % 6 - 1) for epoch in range(40)
            ),
        }
        for scorer in range(1, 6)
        for night in range(12)
    ]
    header = tuple(rows[0])
    write_csv(tmp_path / "sleep_hypnograms.csv.gz", header, [tuple(row.values()) for row in rows])
    found = prepared("sleep", tmp_path, tmp_path / "work")
    wanted = recount_sleep(rows)
    assert_same(found, wanted)
    assert wanted.fitted + wanted.released < 12 * 40  # some nobody scored


def ties(found: list[tuple[Any, str]]) -> tuple[int, int]:
    """How many groups have two equal numbers among the first four places, of how many."""
    counts: dict[Any, dict[str, int]] = {}
    for group, one in found:
        row = counts.setdefault(group, {})
        row[one] = row.get(one, 0) + 1
    tops = [sorted([*row.values(), 0, 0, 0, 0], reverse=True)[:4] for row in counts.values()]
    return sum(len(set(top)) < 4 for top in tops), len(tops)


@pytest.mark.real_data
def test_new_york_is_what_plain_loops_make_of_the_file(tmp_path: Path) -> None:
    folder = real("checkins_nyc.csv.gz").parent
    found = prepared("nyc", folder, tmp_path)
    rows = read_csv(folder / "checkins_nyc.csv.gz")
    zone = ZoneInfo("America/New_York")
    days = [
        datetime.fromtimestamp(int(row["unix_s"]), tz=UTC).astimezone(zone).date().toordinal()
        for row in rows
    ]
    wanted, fitted, _ = recount.by_days(
        Entry(
            row["user_idx"],
            (int(row["unix_s"]), line),
            day,
            label(row["cat"]),
            f"{int(row['hour']):02d}",
        )
        for line, (row, day) in enumerate(zip(rows, days, strict=True))
    )
    assert_same(found, wanted)
    cut = min(days) + fitted
    late = [row for row, day in zip(rows, days, strict=True) if day >= cut]
    assert ties([((row["dow"], row["hour"]), label(row["cat"])) for row in late]) == (92, 168)
    assert ties([(row["hour"], label(row["cat"])) for row in late]) == (2, 24)
    assert any("92 of 168" in note and "2 of 24" in note for note in found.notes)


@pytest.mark.real_data
def test_jakarta_is_what_plain_loops_make_of_the_file(tmp_path: Path) -> None:
    folder = real("checkins_jakarta.csv.gz").parent
    found = prepared("jakarta", folder, tmp_path)
    latest, entries, weekly = 0, [], []
    for row in read_csv(folder / "checkins_jakarta.csv.gz"):
        latest = max(latest, int(row["est_hours"]))
        hour = int(row["hour_of_week"]) - 1
        one = label(row["category_name_inferred"])
        entries.append(
            Entry(row["user_id"], int(row["row"]), latest // 24, one, f"{hour % 24:02d}")
        )
        weekly.append((hour, one))
    wanted, fitted, released = recount.by_days(entries)
    assert_same(found, wanted)
    assert (fitted, released) == (400, 100)
    first = min(entry.day for entry in entries)
    late = [first + 400 <= entry.day < first + 500 for entry in entries]
    assert ties([one for one, kept in zip(weekly, late, strict=True) if kept]) == (63, 162)
    daily = [(entry.group, entry.label) for entry in entries]
    assert ties([one for one, kept in zip(daily, late, strict=True) if kept]) == (1, 24)
    assert any("63 of 162" in note and "1 of 24" in note for note in found.notes)


@pytest.mark.real_data
def test_sleep_is_what_plain_loops_make_of_the_file(tmp_path: Path) -> None:
    folder = real("sleep_hypnograms.csv.gz").parent
    found = prepared("sleep", folder, tmp_path)
    assert_same(found, recount_sleep(read_csv(folder / "sleep_hypnograms.csv.gz")))
    assert found.groups == ("dodh", "dodo")
    assert found.facts["entities released from"] == 16
