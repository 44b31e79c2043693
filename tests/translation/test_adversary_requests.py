"""What stronger adversaries are asked about: every argument that reaches a part of the bound."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import UNIT
from takifugu.costs import Cost
from takifugu.errors import InvalidPrior
from takifugu.numeric import Floats
from takifugu.priors import MarkovChain, Secrets
from takifugu.translation.bounds import Bound
from takifugu.translation.chain import adversary_transport as module
from takifugu.translation.chain.adversary_transport import AdversaryTransport
from takifugu.translation.chain.chain_losses import chain_losses
from takifugu.translation.chain.cost_levels import CostLevels
from takifugu.translation.chain.entry_laws import row_slack
from takifugu.translation.chain.known_entries import KnownSide
from takifugu.translation.chain.transport_steps import off_diagonal
from takifugu.translation.chain.unknown_start import unknown_start
from takifugu.translation.entry_costs import EntryCosts

pytestmark = pytest.mark.nightly

ROWS = np.array([[0.5, 0.375, 0.125], [0.125, 0.625, 0.25], [0.25, 0.25, 0.5]])
OTHER = np.array([[0.25, 0.25, 0.5], [0.375, 0.5, 0.125], [0.125, 0.25, 0.625]])
COST = np.array([[0.0, 0.5, 0.9], [0.4, 0.0, 0.6], [0.8, 0.7, 0.0]])
EQUAL = off_diagonal(3, 0.5)


def against(length: int | None = 6, rows: Floats = ROWS, **adversary: Any) -> AdversaryTransport:
    chain = MarkovChain(rows, length=length, **adversary)
    return AdversaryTransport(chain, Secrets(), tolerance=0.0625)


def test_a_witness_is_searched_with_the_worst_start_of_its_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, starts = list[Any](), list[Any]()

    def strongest(*given: Any, **more: Any) -> str:
        asked.append((given, more))
        return "found"

    def worst(_: Any, cost: Floats | None, bound: Bound) -> str:
        starts.append((None if cost is None else cost.tolist(), bound))
        return "start"

    monkeypatch.setattr(module, "strongest_witness", strongest)
    monkeypatch.setattr(AdversaryTransport, "_worst_start", worst)
    one, bound = against(start="unknown"), Bound(1.5)
    profile = np.full(6, 0.5)
    everywhere = EntryCosts(anywhere=(Cost.any(0.5),))
    each = EntryCosts(by_entry=tuple(Cost.any(0.5) for _ in range(6)))
    results: list[Any] = [
        one.witness(0.5, bound),
        one.witness(profile, bound),
        one.valued_witness(everywhere, bound),
        one.valued_witness(each, bound),
    ]
    assert results == ["found"] * 4
    states = (one._chain.states, one._chain.columns)
    rounded = everywhere.matrix(*states).tolist()
    assert [cost for cost, _ in starts] == [EQUAL.tolist(), None, rounded, None]
    assert all(given is bound for _, given in starts)
    for (given, more), costs in zip(asked, (0.5, profile, everywhere, each), strict=True):
        assert given[0] is one._chain and given[1] is one._secrets
        assert given[2] is costs or given[2] == costs
        assert given[3] is bound and more == {"start": "start"}


@pytest.mark.parametrize("begins", ["unknown", "stationary"])
def test_both_directions_without_end_are_asked_for_as_they_are(
    begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = dict[str, Any]()

    def stub(name: str, answer: Any) -> Any:
        def answered(*given: Any, **more: Any) -> Any:
            asked[name] = (given, more)
            return answer

        return answered

    ahead, behind = off_diagonal(3, 0.25), off_diagonal(3, 0.125)
    both = SimpleNamespace(
        forward=SimpleNamespace(upper=ahead), backward=SimpleNamespace(upper=behind)
    )
    monkeypatch.setattr(module, "fixed_point", stub("ahead", SimpleNamespace(upper=ahead)))
    monkeypatch.setattr(module, "unbounded_start", stub("behind", behind))
    monkeypatch.setattr(module, "unbounded_losses", stub("both", both))
    monkeypatch.setattr(AdversaryTransport, "_solved_sides", lambda *_: None)
    one = against(None, start=begins, known="none")
    rounded = one._at_any_entry(0.0 * COST).value - 0.375
    found = one._at_any_entry(COST)
    assert found.value == pytest.approx(0.9 + 0.375) and found.value >= 0.9 + 0.375
    assert 16 * UNIT < rounded < 40 * UNIT  # both sums are rounded up
    if begins == "stationary":
        (kernel, cost), more = asked.pop("both")
        assert kernel.tolist() == ROWS.tolist() and cost is COST
        assert more == {"tolerance": 0.0625, "with_lower": False}
    else:
        (rows, cost), more = asked.pop("ahead")
        assert rows(COST)[0].tolist() == ROWS.tolist() and cost is COST
        assert more == {"slack": row_slack(3), "tolerance": 0.0625, "with_lower": False}
        (kernel, cost), more = asked.pop("behind")
        assert kernel.tolist() == ROWS.tolist() and cost is COST
        assert more == {"tolerance": 0.0625}
    assert not asked


START = np.array([0.2, 0.5, 0.3])
ADVERSARIES: list[dict[str, Any]] = [
    {"start": "unknown"},
    {"start": "unknown", "known": "any"},
    {"known": "any"},
    {"start": START, "known": "any"},
]


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("changing", [False, True])
def test_each_entry_is_told_by_its_own_steps_and_costs(
    adversary: dict[str, Any], changing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if changing and adversary.get("start") is None:
        adversary = {**adversary, "start": START}
    rows = np.stack([ROWS, OTHER, ROWS, OTHER]) if changing else ROWS
    one = against(None if changing else 5, rows, **adversary)
    charged = CostLevels((COST, EQUAL), np.array([0, 1, 1, 0, 1]))
    costs = [charged.cost(i) for i in range(5)]
    kernels = [*one._kernels] if changing else [one._kernels[0]] * 4
    given = list[Any]()

    def plain(*asked: Any, **more: Any) -> Any:
        given.append((asked, more))
        return CHAIN_LOSSES(*asked, **more)

    monkeypatch.setattr(module, "chain_losses", plain)
    losses = one._entry_losses(charged)
    ((_, levels), more) = given[0]
    assert levels is charged
    begin = adversary.get("start")
    known_losses = CHAIN_LOSSES(
        kernels, charged, start=np.full(3, 1 / 3) if isinstance(begin, str) else begin
    ) if changing or begin is not None else CHAIN_LOSSES(ROWS, charged)  # fmt: skip
    free = unknown_start(kernels, costs) if isinstance(begin, str) else None
    near = adversary.get("known") == "any"
    after, before = KnownSide.after(kernels, costs).tables(), KnownSide.before(kernels, costs)
    back = before.tables()
    for i in range(5):
        ahead = known_losses.forward[known_losses.forward_at[i]]
        behind = known_losses.backward[known_losses.backward_at[i]]
        if free is not None:
            behind = free.before.table(i)
        if near:
            ahead = np.maximum(ahead, after.table(i))
            behind = np.maximum(behind, back.table(i))
        table = losses.tables[losses.at[i]]
        apart = ~np.eye(3, dtype=np.bool_)
        assert table[apart] == pytest.approx((costs[i] + ahead + behind)[apart], rel=1e-9)
        assert not np.diag(table).any()
        if i == 4:
            assert losses.behind == pytest.approx(behind, rel=1e-9)
    assert losses.hulls == (None,) * len(losses.tables)
    if begin is None:
        assert more["start"] is None


CHAIN_LOSSES = chain_losses


def test_groups_are_told_the_laws_of_their_entry() -> None:
    secrets = Secrets(pairs=(((0, 1), (2,)),))
    chain = MarkovChain(ROWS, length=4, start="unknown")
    one = AdversaryTransport(chain, secrets)
    losses = one._entry_losses(CostLevels((COST,), np.zeros(4, dtype=np.int64)))
    power = np.eye(3)
    for i in range(4):
        hull = losses.hulls[losses.at[i]]
        assert hull is not None and hull.laws == pytest.approx(power)
        power = power @ ROWS


def test_secrets_just_behind_what_is_walked_bind_nowhere() -> None:
    """After a profile of three numbers 16 more entries are told one by one."""
    chain = MarkovChain(ROWS, start="unknown")
    spent = np.array([0.5, 0.2, 0.4])
    for entry in (18, 19, 20):
        found = AdversaryTransport(chain, Secrets(entries=(entry,))).profile(spent)
        assert found.by_entry is not None and found.by_entry[:3].tolist() == [0.0] * 3
        assert found.by_values is not None and found.by_values.shape == (3, 3)
        assert (found.binding is None) == (entry > 18)
        assert found.value == found.by_entry[3] > 0


def test_a_chain_that_never_comes_to_rest_is_refused_at_once() -> None:
    with pytest.raises(InvalidPrior):
        against(5, np.eye(3), known="any")
    assert against(5, np.eye(3), start="unknown").size == 5


def test_what_is_allowed_where_steps_change() -> None:
    two = np.array([[0.7, 0.3], [0.2, 0.8]])
    one = against(None, np.stack([two, two[::-1]]), start="unknown")
    allowed = one.largest(0.5)
    assert one.uniform(allowed).value <= 0.5 < one.uniform(allowed * 1.01).value
