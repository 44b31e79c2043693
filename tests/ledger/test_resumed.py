"""The contract of resumed charges, on SQLite and on PostgreSQL; and what a lost history ends."""

from dataclasses import replace
from pathlib import Path

from takifugu.errors import ApprovalRefused
from takifugu.ledger import open_ledger, restore_ledger
from takifugu.ledger.witnesses.lost_history import LossTerms
from tests.contracts.ledger_resumed import *  # noqa: F403
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises


def test_what_may_have_been_answered_in_a_lost_part_is_not_resumed(folder: Path) -> None:
    path, copy = folder / "ward.ledger", folder / "copy"
    wanted, asked = charge("0.25"), charge("0.125", analyst="ana")
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 4)
        receipt = ledger.charge(wanted, DOUBLING, resume=True)
        approval = ledger.acting("olga").approve(
            dataset="ward",
            analyst="ana",
            question=asked.body()["question"],
            words="stays",
            epsilon="0.25",
        )
        approved = replace(asked, approval=approval.seq)
        ledger.backup(copy)
        ledger.record_answer(receipt, "seen")
        ledger.acting("ana").charge(approved, DOUBLING)
    restore_ledger(copy, path, lossy=True, terms=LossTerms({"ward": DOUBLING}))
    with open_ledger(path) as ledger:
        assert not ledger.charge(wanted, DOUBLING, resume=True).may_release
        earlier = ledger.earlier(wanted)
        assert earlier is not None and earlier.answer is None
        assert not earlier.receipt.may_release
        ledger.set_budget("ward", 9)
        with raises(ApprovalRefused, reason="lost", approval=approval.seq):
            ledger.acting("ana").charge(approved, DOUBLING)
        new = charge("0.25")
        ledger.charge(new, DOUBLING, resume=True)
        assert ledger.charge(new, DOUBLING, resume=True).may_release  # made after the loss
        assert ledger.verify().sound
