"""How much work is taken on is counted as the limits say, and what was found is found once."""

from collections.abc import Mapping
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from takifugu.costs import ANY, Column, Cost, Jointly
from takifugu.numeric import Floats
from takifugu.priors import BayesianNetwork, HigherOrderChain, Secrets
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.translation.chain import coalescing, higher_order_transport, transport_steps
from takifugu.translation.chain.higher_order_transport import HigherOrderTransport
from takifugu.translation.chain.start_hull import StartHull, _Search
from takifugu.translation.network import coupling_steps, junction_losses, network_witness
from takifugu.translation.network.network_witness import ProductWitness
from takifugu.translation.rows import charged_columns, columns_of_row, row_translation
from takifugu.translation.rows.charged_columns import ChargedColumns
from takifugu.translation.rows.columns_of_row import ColumnsOfRow
from takifugu.translation.rows.row_spending import RowSpending
from takifugu.translation.rows.row_translation import RowTranslation

pytestmark = pytest.mark.nightly

COST = np.array([[0.0, 0.8, 0.5], [0.3, 0.0, 0.6], [0.7, 0.75, 0.0]])
ROWS = np.array([[0.5, 0.375, 0.125], [0.125, 0.625, 0.25], [0.3, 0.2, 0.5]])
THREE = BayesianNetwork(
    ("a", "b", "c"),
    (("0", "1"), ("0", "1", "2"), ("0", "1")),
    ((), ("a",), ("b",)),
    (
        np.array([0.7, 0.3]),
        np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]),
        np.array([[0.9, 0.1], [0.25, 0.75], [0.5, 0.5]]),
    ),
)


@pytest.mark.parametrize(("limit", "improved"), [(2999, False), (3000, True)])
def test_factors_are_improved_if_three_sums_for_each_entry_fit(
    limit: int, improved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def found(_: object, one: SecretPair, sweeps: int) -> ProductWitness:
        asked.append(sweeps)
        return ProductWitness(one, 0.5, ())

    monkeypatch.setattr(network_witness, "_found", found)
    monkeypatch.setattr(network_witness, "WORK", limit)
    searches: Any = SimpleNamespace(
        model=SimpleNamespace(entries=tuple(range(10))), cells=100, work=0
    )
    network_witness._best(searches, [SecretPair(EntryIs(0, (0,)), EntryIs(0, (1,)))], [1.0])
    assert asked == ([0, 1] if improved else [0])


@pytest.mark.parametrize(("limit", "walked"), [(79, False), (80, True)])
def test_windows_are_walked_if_the_squares_of_all_entries_fit(
    limit: int, walked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five entries of four windows each."""
    table = np.array([[[0.75, 0.25], [0.5, 0.5]], [[0.375, 0.625], [0.25, 0.75]]])
    transport = HigherOrderTransport(HigherOrderChain(table, length=5), Secrets())
    monkeypatch.setattr(higher_order_transport, "WALKED", limit)
    assert (transport.uniform(0.5).by_entry is not None) is walked


@pytest.mark.parametrize(("limit", "fits"), [(647, False), (648, True)])
def test_columns_are_coupled_if_the_costs_of_all_their_pairs_fit(
    limit: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three columns, six ordered pairs of values in the largest, 6² costs between joint states."""
    monkeypatch.setattr(charged_columns, "MOST_CELLS", limit)
    both = RowSpending.of(Cost.of({Column(name, ANY): "0.5" for name in ("a", "b")}))
    found = ChargedColumns(THREE).losses(both, "c", (((0,), (1,)),))
    assert (found is not None) is fits


class _Hull:
    """A search over the edges of a triangle, and how often one was split."""

    def __init__(self, affordable: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.splits = 0
        split = _Search._split

        def counted(search: _Search, *given: Any) -> Any:
            self.splits += 1
            assert self.splits < 50, "this does not end"
            return split(search, *given)

        monkeypatch.setattr(_Search, "_split", counted)
        self.search = _Search(StartHull.whole(3).after(ROWS), ROWS.T.copy(), COST, None)
        self.search.affordable = affordable


def test_cells_are_split_until_all_laws_that_are_affordable_were_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The three corners first, each once, although two edges meet there."""
    hull = _Hull(8, monkeypatch)
    hull.search.cells(np.full((3, 3), inf), 0.0)
    assert hull.splits == 5


def test_no_cell_is_split_where_nothing_is_to_be_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    hull = _Hull(20, monkeypatch)
    hull.search.cells(np.zeros((3, 3)), 1e-3)
    assert hull.splits == 0


@pytest.mark.parametrize("module", [transport_steps, coalescing, coupling_steps])
def test_there_are_no_more_threads_than_processors_or_rows(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    class Pool:
        """Does all at once, and keeps how many threads it was asked for."""

        def __init__(self, workers: int) -> None:
            asked.append(workers)

        def __enter__(self) -> "Pool":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def map(self, work: Any, *given: Any) -> Any:
            """One after the other."""
            return map(work, *given)

    monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor", Pool)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    for rows in (3, 4, 1000):
        module._share(lambda *_: None, rows, 10**9)
    assert asked == [3, 4, 4]


# ---- what is remembered


class _Noted(RowTranslation):
    """Keeps what it was asked."""

    over = "row"

    def __init__(self) -> None:
        super().__init__({"prior": THREE}, {"a": Secrets()})
        self.asked: list[Any] = []

    @property
    def names_columns(self) -> bool:
        return False

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """As many as were asked."""
        self.asked.append(costs)
        return {"a": float(len(self.asked))}


def test_few_translated_costs_are_remembered_each_of_which_is_translated_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_translation, "KEPT", 2)
    noted = _Noted()
    one, two, three = (Cost.any(k) for k in (1, 2, 3))
    for cost in (one, two, one, two):
        noted.losses(cost)
    assert noted.asked == [(one,), (two,)]
    noted.losses(three)
    assert len(noted._known) == 1 and noted.losses(three) == {"a": 3.0}


def test_laws_of_columns_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charged_columns, "KEPT", 2)
    laws = ChargedColumns(THREE)
    first, second = laws._given((0,)), laws._given((1,))
    assert laws._given((0,)) is first and laws._given((1,)) is second
    laws._given((2,))
    assert list(laws._laws) == [(2,)]


def test_bounds_of_cross_tabulations_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def losses(*_: Any, together: Mapping[tuple[int, ...], float]) -> Any:
        asked.append(together)
        by_entry: Floats = np.full(3, 0.25)
        return SimpleNamespace(by_entry=by_entry)

    monkeypatch.setattr(junction_losses, "network_losses", losses)
    monkeypatch.setattr(columns_of_row, "KEPT", 2)
    rows = ColumnsOfRow({"prior": THREE}, {name: Secrets() for name in "abc"})
    spent = [RowSpending.of(Cost.of({Jointly(["a", "b"]): k})) for k in (1, 2, 3)]
    for k in (0, 1, 0, 1):
        assert rows._by_terms("prior", "c", spent[k]) >= 0.25
    assert [list(one.values()) for one in asked] == [[1.0], [2.0]]
    rows._by_terms("prior", "c", spent[2])
    assert len(asked) == 3 and len(rows._by_entry) == 1
