"""What a network leaves out of a table, against sums over all its rows."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.fitting.network_fitting import left_out_test, network_goodness, pair_law
from takifugu.priors.networks import BayesianNetwork

NAMES = ("a", "b", "c", "d", "e")


def networks() -> st.SearchStrategy[BayesianNetwork]:
    """Five columns of two or three values, each with up to three of the earlier ones as parents."""

    @st.composite
    def build(draw: st.DrawFn) -> BayesianNetwork:
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        sizes = [int(rng.integers(2, 4)) for _ in NAMES]
        parents, tables = [], []
        for i, _ in enumerate(NAMES):
            above = sorted(rng.choice(i, size=rng.integers(0, min(i, 3) + 1), replace=False))
            law = rng.random([*(sizes[p] for p in above), sizes[i]]) + 0.05
            parents.append(tuple(NAMES[p] for p in above))
            tables.append(law / law.sum(axis=-1, keepdims=True))
        states = tuple(tuple(f"v{k}" for k in range(size)) for size in sizes)
        return BayesianNetwork(NAMES, states, tuple(parents), tuple(tables))

    return build()


def joint(network: BayesianNetwork) -> Floats:
    """``[value, …]`` of all columns: the product of the tables, row by row."""
    sizes = [len(states) for states in network.states]
    law = np.ones(sizes)
    for row in product(*map(range, sizes)):
        for i, above in enumerate(network.parents):
            law[row] *= network.tables[i][tuple(row[NAMES.index(str(p))] for p in above)][row[i]]
    return law


@given(network=networks())
def test_the_law_of_a_pair_is_a_sum_over_all_rows(network: BayesianNetwork) -> None:
    law = joint(network)
    for first, second in combinations(NAMES, 2):
        others = tuple(i for i, name in enumerate(NAMES) if name not in (first, second))
        assert pair_law(network, first, second) == pytest.approx(law.sum(axis=others))
        assert pair_law(network, second, first) == pytest.approx(law.sum(axis=others).T)


TREE = BayesianNetwork(
    ("a", "b", "c"),
    (("no", "yes"),) * 3,
    ((), ("a",), ("a",)),
    (
        np.array([0.6, 0.4]),
        np.array([[0.9, 0.1], [0.2, 0.8]]),
        np.array([[0.7, 0.3], [0.4, 0.6]]),
    ),
)


def test_rows_of_the_network_itself_leave_nothing_out() -> None:
    law = pair_law(TREE, "b", "c")
    assert law is not None
    rng = np.random.default_rng(1)
    found = left_out_test(TREE, {("b", "c"): rng.multinomial(20_000, law.ravel()).reshape(2, 2)})
    assert found.verdict == "fits"
    exact = left_out_test(TREE, {("b", "c"): np.rint(1e9 * law).astype(np.int64)})
    assert exact.verdict == "fits" and exact.numbers["pairs"][0]["gain"] == 0


def test_an_edge_that_is_missing_is_named() -> None:
    counts = {("b", "c"): np.array([[4_000, 1_000], [1_000, 4_000]])}
    found = left_out_test(TREE, counts)
    assert found.verdict == "does not fit"
    assert found.panel is not None and found.panel.names == ("b – c",)
    law = pair_law(TREE, "b", "c")
    assert law is not None
    seen = counts["b", "c"] / 10_000
    truth = float(np.sum(seen * np.log(seen / law)))  # nats, before chance is taken off
    assert found.numbers["pairs"][0]["statistic"] == pytest.approx(2 * 10_000 * truth)


def test_a_network_of_a_table_is_held_to_its_rows() -> None:
    pa = pytest.importorskip("pyarrow", reason="tables in memory need PyArrow")
    import takifugu as tf

    rng = np.random.default_rng(2)
    a = rng.random(4_000) < 0.5
    b = np.where(rng.random(4_000) < 0.9, a, ~a)
    c = np.where(rng.random(4_000) < 0.9, b, ~b)  # hangs on b, and not on a as TREE says
    words = {
        name: np.where(values, "yes", "no") for name, values in zip("abc", (a, b, c), strict=True)
    }
    table = tf.table(
        pa.table({"who": np.arange(4_000), "at": np.zeros(4_000, dtype=np.int64), **words}),
        name="answers",
        entity="who",
        order="at",
        order_kind="number",
        protected={name: ["no", "yes"] for name in "abc"},
    )
    with table.open() as engine:
        found = network_goodness(engine, TREE)
    assert not found.fits and found.tests[0].numbers["pairs"][0]["pair"] == ["b", "c"]
    whole = BayesianNetwork(
        ("a", "b"), (("no", "yes"),) * 2, ((), ("a",)), (np.full(2, 0.5), np.full((2, 2), 0.5))
    )
    with table.open() as engine:
        assert network_goodness(engine, whole).fits
