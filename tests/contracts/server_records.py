"""What every backend of a server's state keeps of results, and of the heads of other ledgers.

For the fixtures see `tests.contracts.server_state`.
"""

from concurrent.futures import ThreadPoolExecutor

from takifugu.ledger.events.event_chain import Anchor
from takifugu.server.state.server_state import ServerState, WitnessedHead
from takifugu.server.state.state_store import (
    InvalidResult,
    StateConflict,
)
from tests.contracts.server_state import Clock, Opener
from tests.raising import raises

# --- results ---


def paid(number: int, letter: str = "f") -> Anchor:
    return Anchor(number, letter * 64)


def test_a_number_that_is_used_again_after_a_loss_is_another_charge(state: ServerState) -> None:
    lost = state.keep_result(paid(8), "ward", "ana", {"of": "the lost history"})
    assert state.result(paid(8, "e")) is None and state.result(paid(8, "e"), "ana") is None
    kept = state.keep_result(paid(8, "e"), "ward", "bo", {"of": "what came after"})
    assert state.result(paid(8, "e")) == kept and state.result(paid(8)) == lost
    assert state.result(paid(8, "e"), "ana") is None and state.result(paid(8), "bo") is None


def test_a_result_is_kept_once(state: ServerState, clock: Clock) -> None:
    document = {"rows": [["é\u2028", 1.5, None]], "deep": {"a": [True]}}
    kept = state.keep_result(paid(12), "ward", "ana", document)
    assert kept == state.result(paid(12)) and kept.document == document and kept.kept == clock.time
    assert (kept.charge, kept.dataset, kept.analyst) == (paid(12), "ward", "ana")
    assert state.keep_result(paid(12), "ward", "ana", {"rows": []}) == kept  # never a second answer
    assert state.result(paid(13)) is None
    assert state.result(paid(12), "bo") is None and state.result(paid(12), "ana") == kept
    theirs = state.keep_result(paid(12), "ward", "bo", {"cost": 0})  # the same answer, for free
    assert state.result(paid(12), "bo") == theirs and state.result(paid(12), "ana") == kept
    shared = state.keep_result(paid(12), "ward", "bo", {"free": True})
    assert state.result(paid(12), "bo") == shared and state.result(paid(12), "ana") == kept
    assert state.result(paid(12)) == kept and state.result(paid(12), "cy") is None
    assert state.keep_result(paid(2**40), "ward", None, {}).analyst is None
    with raises(InvalidResult, field="document"):
        state.keep_result(paid(14), "ward", "ana", {"x": float("inf")})
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda n: state.keep_result(paid(15), "ward", "ana", {"n": n}), range(16))
    assert len({one.document["n"] for one in found}) == 1


def test_what_is_kept_is_known_without_its_document(state: ServerState) -> None:
    for number, letter, analyst in (
        *((3, "f", "ana"), (3, "f", "bo"), (5, "f", None), (5, "e", "cy"), (2**40, "f", "ana")),
    ):
        state.keep_result(paid(number, letter), "ward", analyst, {"rows": []})
    wanted = [
        (paid(number, letter), who)
        for number in (3, 4, 5, 2**40)
        for letter in "ef"
        for who in ("ana", "bo", "cy", None)
    ]
    found = state.kept_charges(wanted)
    assert found == {one for one in wanted if state.result(*one) is not None}
    assert len(found) == 8 and state.kept_charges([]) == set()
    assert all(state.kept_charges([one]) == found & {one} for one in wanted)


# --- heads of other ledgers ---


LEDGER, OTHER = "a" * 32, "b" * 32


def event(seq: int, letter: str = "c") -> Anchor:
    return Anchor(seq, letter * 64)


def test_a_head_is_recorded_if_it_still_is_what_was_seen(state: ServerState) -> None:
    assert state.witnessed(LEDGER, "far") is None
    assert state.record_head(LEDGER, event(1), event(9), "far") is None  # not what was seen
    assert state.witnessed(LEDGER, "far") is None
    assert state.record_head(LEDGER, event(1), None, "far") == event(1)
    assert state.record_head(LEDGER, event(1), None, "far") == event(1)  # sent twice
    assert state.record_head(LEDGER, event(3), None, "far") == event(1)
    assert state.record_head(LEDGER, event(3), event(2), "far") == event(1)
    assert state.record_head(LEDGER, event(3), event(1), "far") == event(3)
    assert state.witnessed(LEDGER, "far") == event(3)
    assert state.witnessed(OTHER, "far") is None
    assert state.forgotten_heads() == []


def test_a_head_never_goes_back(state: ServerState) -> None:
    state.record_head(LEDGER, event(5), None, "far")
    for earlier in (event(4), event(5, "d"), event(1, "e")):
        with raises(StateConflict, reason="earlier"):
            state.record_head(LEDGER, earlier, event(5), "far")
    assert state.witnessed(LEDGER, "far") == event(5)


def test_a_head_that_is_forgotten_can_be_recorded_anew(state: ServerState, clock: Clock) -> None:
    state.record_head(LEDGER, event(5), None, "far")
    gone = state.forget_head(LEDGER, "root")
    assert (gone.event, gone.owner, gone.by, gone.at) == (event(5), "far", "root", clock.time)
    assert state.witnessed_heads() == [] and state.forgotten_heads() == [gone]
    assert state.record_head(LEDGER, event(4, "d"), None, "near") == event(4, "d")
    assert state.witnessed_heads() == [WitnessedHead(LEDGER, event(4, "d"), "near", clock.time)]
    with raises(StateConflict, reason="unknown"):
        state.forget_head(OTHER, "root")


def test_only_who_began_a_record_goes_on(state: ServerState) -> None:
    state.record_head(LEDGER, event(5), None, "far")
    with raises(StateConflict, reason="another person"):
        state.witnessed(LEDGER, "near")
    with raises(StateConflict, reason="another person"):
        state.record_head(LEDGER, event(6), event(5), "near")
    assert state.witnessed(LEDGER, "far") == event(5)
    assert state.record_head(OTHER, event(6), None, "near") == event(6)


def test_of_many_heads_at_once_one_is_recorded_after_what_was_seen(
    state: ServerState, another: Opener
) -> None:
    state.record_head(LEDGER, event(1), None, "far")
    other = another()

    def record(number: int) -> Anchor | None:
        one = (state, other)[number % 2]
        return one.record_head(LEDGER, event(2 + number), event(1), "far")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(record, range(8)))
    now = state.witnessed(LEDGER, "far")
    assert now is not None and set(found) == {now} and now.seq >= 2
