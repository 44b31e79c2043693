"""The chain of an export, checked from the file alone."""

from pathlib import Path

import pytest

from takifugu.errors import InvalidFile, LedgerDamaged
from takifugu.ledger import open_ledger
from takifugu.ledger.event_documents import check_export, export_part
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


def test_parts_of_an_export_make_the_whole_and_go_no_further(export: Path) -> None:
    whole = export.read_bytes()
    kept = open_ledger(export.parent / "a.ledger", read_only=True, witness=False)
    for most in (1, 2, 5, 100):
        parts, after = b"", 0
        while after < 6:
            part, after = export_part(kept, after, 6, most)
            parts += part
        assert parts == whole
    part, after = export_part(kept, 2, 4, 100)  # none after the one that was last
    assert after == 4 and part.count(b"\n") == 2 and part in whole
    with raises(LedgerDamaged, reason="missing", event=7):
        export_part(kept, 6, 9, 100)
    kept.close()
