"""The chain of an export, checked from the file alone."""

import hashlib
from pathlib import Path

import pytest

from takifugu.errors import InvalidFile, LedgerDamaged
from takifugu.ledger import open_ledger
from takifugu.ledger.event_documents import ExportedChain, check_export
from takifugu.ledger.events.event_chain import Anchor
from tests.raising import raises


@pytest.fixture
def export(tmp_path: Path) -> Path:
    with open_ledger(tmp_path / "a.ledger", witness=False) as ledger:
        for budget in range(1, 6):
            ledger.set_budget("stäys", budget)
        ledger.export(tmp_path / "events.jsonl")
        (tmp_path / "head").write_text(f"{ledger.head().seq} {ledger.head().hash}")
    return tmp_path / "events.jsonl"


def test_an_export_has_the_head_and_the_origin_of_its_ledger(export: Path) -> None:
    seq, hash_ = (export.parent / "head").read_text().split()
    found = check_export(export, [Anchor(int(seq), hash_)])
    assert found.head == Anchor(int(seq), hash_) and found.events == int(seq)
    assert found.origin.seq == 1


def test_a_changed_event_a_missing_one_and_another_order_are_found(export: Path) -> None:
    lines = export.read_text().splitlines(keepends=True)
    for changed in (
        [*lines[:2], lines[2].replace('"budget"', '"charge"'), *lines[3:]],
        [*lines[:2], *lines[3:]],
        [lines[0], lines[2], lines[1], *lines[3:]],
        lines[1:],
    ):
        assert changed != lines
        export.write_text("".join(changed))
        with raises(LedgerDamaged, reason="edited"):
            check_export(export)


def test_an_export_that_was_cut_lacks_what_was_recorded(export: Path) -> None:
    seq, hash_ = (export.parent / "head").read_text().split()
    lines = export.read_text().splitlines(keepends=True)
    export.write_text("".join(lines[:-1]))
    assert check_export(export).events == int(seq) - 1
    with raises(LedgerDamaged, reason="missing", event=int(seq)):
        check_export(export, [Anchor(int(seq), hash_)])


def test_another_history_is_told_apart(export: Path) -> None:
    with raises(LedgerDamaged, reason="anchor", event=2):
        check_export(export, [Anchor(2, "0" * 64)])


@pytest.mark.parametrize("text", ["", "\n", "{}\n", '{"hash":"00","body":{}}\n', "no line"])
def test_what_is_no_export_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").write_text(text)
    with raises(InvalidFile, field="export"):
        check_export(tmp_path / "x")
    with raises(InvalidFile, field="export"):
        check_export(tmp_path / "missing")


# --- files written by hand, event by event ---


def lines_of(*texts: str) -> list[str]:
    """The lines of an export with these events: each hash is of the one before and of the text."""
    found, before = [], "0" * 64
    for text in texts:
        before = hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()
        found.append(f'{{"hash":"{before}","body":{text}}}\n')
    return found


LINES = lines_of('{"n":1}', '{"n":2,"more":"}"}', "[]", '"four"')
HASHES = [line[9:73] for line in LINES]


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "export").write_text("".join(LINES))
    return tmp_path / "export"


def test_an_export_is_known_by_its_first_and_last_event(made: Path) -> None:
    ends = Anchor(1, HASHES[0]), Anchor(4, HASHES[3])
    assert check_export(made) == ExportedChain(4, *ends)
    every = [Anchor(seq, hash_) for seq, hash_ in enumerate(HASHES, 1)]
    assert check_export(made, every) == ExportedChain(4, *ends)
    made.write_text(LINES[0])
    assert check_export(made, every[:1]) == ExportedChain(1, ends[0], ends[0])


def test_the_first_event_that_breaks_the_chain_is_named(made: Path) -> None:
    for place in range(4):
        text = LINES[place].replace('"body":', '"body": ')
        made.write_text("".join([*LINES[:place], text, *LINES[place + 1 :]]))
        with raises(LedgerDamaged, reason="edited", event=place + 1):
            check_export(made)
    made.write_text("".join([LINES[0], LINES[1].replace(HASHES[1], "0" * 64), *LINES[2:]]))
    with raises(LedgerDamaged, reason="edited", event=2):
        check_export(made)


def test_the_first_recorded_event_that_is_another_or_missing_is_named(made: Path) -> None:
    known = [Anchor(seq, hash_) for seq, hash_ in enumerate(HASHES, 1)]
    for place in (0, 3):
        others = [*known[:place], Anchor(place + 1, "f" * 64), *known[place + 1 :]]
        with raises(LedgerDamaged, reason="anchor", event=place + 1):
            check_export(made, others)
    later = [Anchor(9, "f" * 64), Anchor(5, "e" * 64), Anchor(7, "d" * 64)]
    with raises(LedgerDamaged, reason="missing", event=5) as told:
        check_export(made, [*known, *later])
    assert "ends with event 4 and lacks event 5," in str(told.value)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (1, "\n"),
        (2, LINES[1][1:]),  # no bracket at its beginning
        (4, LINES[3][:-2] + "\n"),  # none at its end
        (3, LINES[2].replace('","body":', '","text":')),
        (4, LINES[3].replace('{"hash":"', '{"HASH":"')),
        (4, LINES[3].replace(HASHES[3], HASHES[3][:-1])),
        (4, LINES[3].replace(HASHES[3], HASHES[3] + "0")),
    ],
)
def test_the_line_that_is_no_event_is_named(made: Path, place: int, line: str) -> None:
    made.write_text("".join([*LINES[: place - 1], line, *LINES[place:]]))
    with raises(InvalidFile, field="export", reason="not-an-export") as told:
        check_export(made)
    assert told.value.given == f"has no event in line {place}"


@pytest.mark.parametrize(("text", "place"), [("", 1), ("".join(LINES)[:-1], 4), ("x", 1)])
def test_a_file_that_does_not_end_with_its_line_is_no_export(
    made: Path, text: str, place: int
) -> None:
    made.write_text(text)
    with raises(InvalidFile, field="export", reason="not-an-export") as told:
        check_export(made)
    assert told.value.given == f"has no event in line {place}"


def test_a_file_that_cannot_be_read_is_told_what_it_must_be(tmp_path: Path) -> None:
    needed = "be as `takifugu ledger export` wrote it"
    with raises(InvalidFile, field="export", reason="missing", needed=needed):
        check_export(tmp_path / "missing")
