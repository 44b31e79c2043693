"""Charging and answering, step by step, on a ledger that is written by hand."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import LedgerConflict, LedgerError, LedgerUnavailable
from takifugu.ledger.resumed_charges import request_key
from takifugu.session import releasing
from takifugu.session.releasing import CHARGED, Releasing
from tests.raising import raises

pytestmark = pytest.mark.nightly


@dataclass(frozen=True)
class Paid:
    """A charge by its key."""

    key: str = "plan's"
    approval: int | None = None
    request: str | None = None


class Half(Releasing):
    """A session of which every step but the order of steps is noted."""

    def __init__(self, **ledger: Any) -> None:
        self.done: list[Any] = []
        self.charged: list[tuple[str, bool]] = []
        self.may_release = [True]
        self._analyst, self._dataset = "Ann", "ward"
        self._translation: Any = "translation"
        self._engine: Any = "engine"
        self.earlier = ledger.pop("earlier", [None])
        self._ledger: Any = SimpleNamespace(
            earlier=lambda _: self.earlier.pop(0) if self.earlier else None,
            reuse=self._reused,
            charge=self._charged,
            abandon=lambda receipt: self.done.append(("abandon", receipt)),
            record_answer=lambda _, record: record,
            **ledger,
        )
        self.quote = SimpleNamespace(stored=False, answer=None, shared=False, reuse=False)
        self.fits = True

    def _reused(self, charge: Any, _: Any) -> Any:
        self.done.append(("reuse", charge.key))
        return "known"

    def _charged(self, charge: Any, _: Any, *, resume: bool = False) -> Any:
        self.charged.append((charge.key, resume))
        return SimpleNamespace(may_release=self.may_release.pop(0), charge=charge)

    def _unpriced(self, options: Any) -> Any:
        return SimpleNamespace(charge=Paid(), query="query", mechanism="noise", options=options)

    def _quote(self, *_: Any) -> Any:
        return self.quote

    def _cost(self, *_: Any) -> Any:
        return SimpleNamespace(fits=self.fits, alone=1.0, most=2)

    def _paid_cost(self, *_: Any) -> Any:
        return "paid"

    def _refuse_unapproved(self, *given: Any) -> None:
        self.done.append(("approval", given[-1]))

    def _refuse_noise(self, *_: Any) -> None:
        self.done.append("noise")

    def _refuse_rows(self, query: Any) -> None:
        self.done.append(("rows", query))

    def _result(self, _made: Any, cost: Any, answer: Any, *, free: bool) -> Any:
        return cost, answer, free


PLAN: Any = SimpleNamespace(charge=Paid("of the plan"), options=None, differences=lambda _: ())


@pytest.fixture(autouse=True)
def _drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releasing, "draw", lambda *_: "drawn")
    monkeypatch.setattr(releasing, "answer_record", lambda _made, drawn, _engine: {"a": drawn})
    monkeypatch.setattr(releasing, "software", lambda _: {"takifugu": "1"})


def released(session: Half, *, noise: bool = False, key: str | None = None) -> Any:
    return session._released(PLAN, noise, key, 7, "request")


ANSWER = {"a": "drawn", "software": {"takifugu": "1"}}


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("fits", [True, False])
def test_what_is_new_is_approved_confirmed_charged_and_drawn(noise: bool, fits: bool) -> None:
    session = Half()
    session.fits = fits
    _, answer, free = released(session, noise=noise)
    assert answer == ANSWER and not free and session.charged == [("of the plan", False)]
    asked = ["noise"] if fits and not noise else []
    assert session.done == [("approval", 7), *asked, ("rows", "query")]


@pytest.mark.parametrize("reuse", [True, False])
def test_what_is_stored_is_given_again_unasked(reuse: bool) -> None:
    session = Half()
    session.quote = SimpleNamespace(stored=True, answer="stored", shared=True, reuse=reuse)
    _, answer, free = released(session)
    assert (answer, free) == ("stored", not reuse) and not session.charged and not session.done


@pytest.mark.parametrize("key", [None, "mine"])
def test_what_another_analyst_has_is_charged_to_this_one(key: str | None) -> None:
    session = Half()
    session.quote = SimpleNamespace(stored=False, answer=None, shared=True, reuse=True)
    _, answer, free = released(session, noise=True, key=key)
    assert answer == "known" and not free and not session.charged
    (_, used) = session.done[-1]
    mine = request_key("Ann", "mine")
    assert used == mine if key else used not in ("of the plan", mine)


def test_a_charge_whose_noise_may_have_been_seen_is_paid_again_under_a_new_key() -> None:
    session = Half()
    session.may_release = [False, True]
    assert released(session, noise=True)[1] == ANSWER
    (first, _), (second, resumed) = session.charged
    assert first == "of the plan" != second and not resumed
    keyed = Half(earlier=[None, SimpleNamespace(answer="theirs", receipt=None)])
    keyed.may_release = [False]
    assert released(keyed, noise=True, key="mine") == ("paid", "theirs", False)
    assert keyed.charged == [(request_key("Ann", "mine"), True)]


def test_a_key_that_was_charged_has_the_same_answer_or_none() -> None:
    receipt = SimpleNamespace(may_release=False, anchor=SimpleNamespace(seq=5))
    known = Half(earlier=[SimpleNamespace(answer="known", receipt=receipt)])
    assert released(known, key="mine") == ("paid", "known", False) and not known.charged
    lost = Half(earlier=[SimpleNamespace(answer=None, receipt=receipt)])
    with raises(LedgerConflict, reason="lost", dataset="ward", event=5):
        released(lost, key="mine")
    waiting = SimpleNamespace(may_release=True)
    drawn = Half(earlier=[SimpleNamespace(answer=None, receipt=waiting)])
    assert released(drawn, key="mine") == ("paid", ANSWER, False) and not drawn.charged
    unkeyed = Half(earlier=[SimpleNamespace(answer="known", receipt=receipt)])
    assert released(unkeyed)[1] == ANSWER  # without a key nothing is looked up


@pytest.mark.parametrize("abandoned", [True, False])
def test_trouble_with_what_was_drawn_ends_the_charge(
    monkeypatch: pytest.MonkeyPatch, abandoned: bool
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("of a draw")

    session = Half()
    monkeypatch.setattr(releasing, "draw", broken)
    if not abandoned:

        def stuck(_: Any) -> None:
            raise LedgerError("gone")

        session._ledger.abandon = stuck
    with pytest.raises(ValueError, match="of a draw") as caught:
        released(session, noise=True)
    assert caught.value.__notes__ == [CHARGED]
    assert [what for what, _ in session.done] == ["approval", "abandon"][: 1 + abandoned]


def test_trouble_from_outside_leaves_a_charge_that_can_be_resumed() -> None:
    session = Half()

    def gone(*_: Any) -> Any:
        raise LedgerUnavailable("away")

    session._ledger.record_answer = gone
    with pytest.raises(LedgerUnavailable) as caught:
        released(session, noise=True)
    assert not getattr(caught.value, "__notes__", [])
    assert session.done == [("approval", 7), ("rows", "query")]


def test_an_approval_and_its_request_are_part_of_the_charge() -> None:
    session, seen = Half(), list[Any]()
    session._quote = lambda _made, charge: seen.append(charge) or session.quote  # type: ignore
    released(session, noise=True)
    assert seen == [replace(Paid("of the plan"), approval=7, request="request")]
