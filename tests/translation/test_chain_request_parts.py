"""What a chain's bound takes from its parts: tables, groups, entries with secrets, long walks."""

from typing import Any

import numpy as np
import pytest

from takifugu.numeric import Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation.chain import binary_closed_form as form
from takifugu.translation.chain import chain_transport as parts
from takifugu.translation.chain.chain_losses import ChainLosses, chain_losses
from takifugu.translation.chain.chain_transport import ChainTransport
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.group_step import PairLosses
from takifugu.translation.chain.stars import star_of
from takifugu.translation.chain.transport_steps import LARGE, off_diagonal

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.2, 0.55]])
LAW = np.array([0.2, 0.5, 0.3])
GROUPS = (((0,), (1, 2)),)
SPENT = np.array([0.1, 0.4, 0.3, 0.3, 0.2])


def chain(length: int | None = 5, *, begun: bool = False, **secrets: Any) -> ChainTransport:
    start: dict[str, Any] = {"start": LAW} if begun else {}
    return ChainTransport(MarkovChain(ROWS, length=length, **start), Secrets(**secrets))


def losses_of(one: ChainTransport, spent: Floats = SPENT) -> ChainLosses:
    return chain_losses(ROWS, spent, start=None if one._stationary else LAW)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("entries", [None, (0, 2), (4,)])
def test_every_entry_loses_what_its_own_table_says(
    begun: bool, groups: bool, given: bool, entries: tuple[int, ...] | None
) -> None:
    one = chain(begun=begun, entries=entries, pairs=GROUPS if groups else None)
    losses = losses_of(one)
    tables = [off_diagonal(3, 0.5 + 0.25 * k) for k in (3, 1, 0, 2, 4)] if given else None
    by_entry, entry, top = one._by_entry(losses, tables)
    true = []
    for i in range(5):
        table = losses.at(i) if tables is None else tables[i]
        true.append(one._secret.losses(table, losses.laws[losses.law_at[i]]).value)
    secret = range(5) if entries is None else entries
    assert by_entry.tolist() == [value if i in secret else 0.0 for i, value in enumerate(true)]
    assert entry == max(secret, key=lambda i: true[i])
    assert top.value == true[entry] and top.pair >= 0


def test_entries_with_secrets_beyond_a_profile_have_no_pair() -> None:
    for behind in (5, 9):
        one = chain(None, entries=(behind,))
        by_entry, entry, top = one._by_entry(losses_of(one), None)
        assert not by_entry.any() and entry == 0 and (top.value, top.pair) == (0.0, -1)
    edge = chain(None, entries=(4, 9))
    by_entry, entry, top = edge._by_entry(losses_of(edge), None)
    assert entry == 4 and np.flatnonzero(by_entry).tolist() == [4] and top.value == by_entry[4]


def test_equal_entries_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    one, asked = chain(400), list[Floats]()
    losses = losses_of(one, np.full(400, 0.2))
    found = one._secret.losses

    def counted(table: Floats, law: Any) -> Any:
        asked.append(table)
        return found(table, law)

    monkeypatch.setattr(type(one._secret), "losses", lambda _, *given: counted(*given))
    by_entry, _, _ = one._by_entry(losses, None)
    assert len(by_entry) == 400 and len(asked) < 200
    monkeypatch.undo()
    assert by_entry == pytest.approx(losses.by_entry)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("even", [False, True])
def test_several_entries_are_coupled_unless_stars_do(
    grouped: bool, even: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A star of every cost is attained for single values: nothing could be lower."""
    asked = list[int]()
    in_blocks = ChainTransport._in_blocks

    def counted(self: ChainTransport, losses: ChainLosses) -> Any:
        asked.append(len(losses.charged))
        return in_blocks(self, losses)

    monkeypatch.setattr(ChainTransport, "_in_blocks", counted)
    one = chain(pairs=GROUPS if grouped else None)
    cost = off_diagonal(3, 0.5)
    if not even:
        cost = np.array([[0.0, 0.1, 0.9], [0.8, 0.0, 0.2], [0.1, 0.7, 0.0]])
    attained = star_of(cost).attained
    assert attained == even
    found = one._one_by_one(CostLevels((cost,), np.zeros(5, dtype=np.int64)))
    assert bool(asked) == (grouped or not even) and found.by_entry is not None
    monkeypatch.setattr(parts, "LONGEST", 4)
    asked.clear()
    loose = one._one_by_one(CostLevels((cost,), np.zeros(5, dtype=np.int64)))
    assert not asked and loose.value >= found.value - 1e-12


def test_a_long_stretch_of_two_states_is_not_walked_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = list[int]()
    logarithm = form._log1p

    def counted(u: Any) -> float:
        calls.append(1)
        return logarithm(u)

    monkeypatch.setattr(form, "_log1p", counted)
    step = form.BinaryStep.of(np.array([[0.75, 0.25], [0.375, 0.625]]))
    for start in (None, np.array([0.25, 0.75])):
        calls.clear()
        found = form.binary_losses(step, np.full(4000, 0.5), start=start)
        assert len(calls) < 1500
        assert found.upper[:, 1000:3000] == pytest.approx(found.upper[:, [1000] * 2000], rel=1e-14)


def test_losses_too_large_for_floats_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither windows nor stars are asked beyond what is exponentiated."""
    asked = list[str]()

    def windows(_: Any, __: Any, ___: Any, known: Any, alike: bool) -> Any:
        asked.append(f"windows {alike}")
        return known

    def refined(bounds: Floats, *_: Any, **__: Any) -> Any:
        asked.append("stars")
        return bounds, int(np.argmax(bounds)), None

    monkeypatch.setattr(ChainTransport, "_in_windows", windows)
    monkeypatch.setattr(parts, "refined", refined)
    for grouped, name in ((True, "windows False"), (False, "stars")):
        one = chain(2, pairs=GROUPS if grouped else None)
        assert one.profile(np.array([0.25, LARGE])).value > LARGE and not asked
        assert one.profile(np.array([0.25, 0.5])).value < LARGE and asked == [name]
        asked.clear()
    chain(2, pairs=GROUPS).everywhere(off_diagonal(3, 0.5))
    chain(2, begun=True, pairs=GROUPS).everywhere(off_diagonal(3, 0.5))
    assert asked == ["windows True", "windows False"]
    asked.clear()
    endless = list[str]()

    def groups(*_: Any, **__: Any) -> Any:
        endless.append("groups")
        return PairLosses(np.inf, 0, off_diagonal(3))

    monkeypatch.setattr(parts, "unbounded_groups", groups)
    for cost, count in ((0.0, 0), (0.5, 1), (LARGE, 0)):
        one = chain(None, pairs=GROUPS)
        one._unbounded_bound(one._unbounded(off_diagonal(3, cost)))
        assert len(endless) == count
        endless.clear()


def test_windows_are_asked_for_all_steps_of_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[Any]()

    class Windows:
        def __init__(self, *given: Any) -> None:
            seen.append(given)

        def alike(self, entries: Any, known: Any) -> Any:
            return "alike", entries, known

        def each(self, known: Any) -> Any:
            return "each", known

    monkeypatch.setattr(parts, "GroupWindows", Windows)
    for begun in (False, True):
        one = chain(begun=begun, pairs=GROUPS, entries=(1, 3))
        losses, sides, known = losses_of(one), object(), object()
        given: Any = (losses, sides, known)
        windows: Any = one._in_windows
        assert windows(*given, False) == ("each", known)
        how, entries, same = windows(*given, True)
        assert how == "alike" and entries is one._secret_entries and same is known
        secret, of, both, stars, rows, back, slack = seen.pop()
        assert secret is one._secret and of is losses and both is sides
        ahead, behind = one._stars(losses.charged)
        assert (stars[0] is None, stars[1] is None) == (ahead is None, behind is None)
        expected = one._all_rows(4)
        assert len(rows) == len(back) == 4 and slack == expected[2]
        for found, true in zip((rows, back), expected[:2], strict=True):
            assert all((a == b).all() for a, b in zip(found, true, strict=True))
