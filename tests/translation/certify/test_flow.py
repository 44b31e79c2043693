"""What flows prove: beside linear programs, beside many digits, and from hostile flows."""

from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from takifugu._core.numeric import Floats
from takifugu.translation.certify.flow import (
    Couplings,
    Flows,
    FlowWalk,
    Hold,
    RepeatedStep,
    Settle,
    Step,
    Stretch,
    Take,
    block_step,
    closed,
    mixture_step,
    off_diagonal,
    upper_tables,
)
from takifugu.translation.certify.laws import row_slack
from takifugu.translation.models.chain import Chain, upper
from takifugu.translation.search.couplings import solve_step
from takifugu.translation.search.fixed_point import fixed_point, fixed_rows
from takifugu.translation.search.recursion import chain_losses, search_side


def program(p: Floats, q: Floats, cost: Floats) -> float:
    """The step as a linear program: the largest E_p g with E_q g = 1."""
    size = len(p)
    rows = []
    for u in range(size):
        for v in range(size):
            if u != v:
                row = np.zeros(size)
                row[u], row[v] = 1.0, -np.exp(cost[u, v])
                rows.append(row)
    found = linprog(-p, np.array(rows), np.zeros(len(rows)), q[None, :], [1.0], bounds=(0, None))
    assert found.status == 0
    return float(np.log(-found.fun))


def matrices(seed: int, size: int = 4) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])), size=size) + 1e-6
    cost = rng.uniform(0.0, 2.0, (size, size))
    np.fill_diagonal(cost, 0.0)
    return rows / rows.sum(axis=1, keepdims=True), closed(cost)


def solved(step: Step) -> Couplings:
    couplings = solve_step(step, guess=np.full((len(step.numerator),) * 2, step.dearest / 2))
    assert couplings is not None
    return couplings


@pytest.mark.parametrize("seed", range(12))
def test_a_step_is_bounded_from_above_and_closely(seed: int) -> None:
    rows, cost = matrices(seed)
    step = Step(rows, rows, cost, 0.0)
    found = step.upper(solved(step))
    for x in range(4):
        for y in range(4):
            true = 0.0 if x == y else program(rows[x], rows[y], cost)
            assert true - 1e-9 <= found[x, y] <= true + 1e-7


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_two_kinds_are_coupled_also_with_their_namesakes(seed: int) -> None:
    left, cost = matrices(seed)
    right, _ = matrices(seed + 100)
    step = Step(left, right, cost, 0.0, crossed=True)
    found = step.upper(solved(step))
    for x in range(4):
        for y in range(4):
            true = program(left[x], right[y], cost)
            assert true - 1e-9 <= found[x, y] <= true + 1e-7


def spoilt(couplings: Couplings) -> list[Couplings]:
    """Flows that prove less, or nothing."""
    mass, parent = couplings.mass, couplings.parent
    nan, infinite = mass.copy(), mass.copy()
    nan[0, 1, :], infinite[0, 1, :] = np.nan, np.inf
    away, root = parent.copy(), parent.copy()
    away[:] = 99
    root[:] = -1
    return [
        replace(couplings, mass=nan),
        replace(couplings, mass=infinite),
        replace(couplings, mass=-mass),
        replace(couplings, mass=1e300 * mass),
        replace(couplings, mass=mass[:, :, :-1]),
        replace(couplings, mass=mass[:-1]),
        replace(couplings, mass=mass.astype(np.float32)),
        replace(couplings, parent=away),
        replace(couplings, parent=root),
        replace(couplings, parent=parent.astype(np.int64)),
        replace(couplings, leaves=~couplings.leaves),
        replace(couplings, mass=np.zeros_like(mass)),
    ]


@pytest.mark.parametrize("kind", range(12))
def test_spoilt_flows_never_prove_too_little(kind: int) -> None:
    rows, cost = matrices(3)
    step = Step(rows, rows, cost, 0.0)
    found = step.upper(spoilt(solved(step))[kind])
    assert not np.isnan(found).any()
    for x in range(4):
        for y in range(4):
            assert x == y or found[x, y] >= program(rows[x], rows[y], cost) - 1e-9


def test_flows_of_another_problem_prove_no_less_than_the_truth() -> None:
    rows, cost = matrices(5)
    other, dear = matrices(6)
    stranger = solved(Step(other, other, dear, 0.0))
    found = Step(rows, rows, cost, 0.0).upper(stranger)
    for x in range(4):
        for y in range(4):
            assert x == y or found[x, y] >= program(rows[x], rows[y], cost) - 1e-9


def exact_proof(p: Floats, q: Floats, cost: Floats, couplings: Couplings, x: int, y: int) -> Any:
    """What the flow of one pair proves, with 60 digits."""
    size = len(p)
    remaining = [mpmath.mpf(float(v)) for v in p]
    for v in range(size):
        mass = mpmath.mpf(float(couplings.mass[x, y, v]))
        if mass > 0:
            above = int(couplings.parent[x, y, v])
            source, sink = (v, above) if couplings.leaves[x, y, v] else (above, v)
            remaining[source] -= mass
            remaining[sink] += mass * mpmath.exp(mpmath.mpf(float(cost[source, sink])))
    ratios = [r / mpmath.mpf(float(m)) for r, m in zip(remaining, q, strict=True) if m > 0]
    return mpmath.log(max([mpmath.mpf(1), *ratios]))


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 30.0, 140.0])
def test_rounding_is_upwards(scale: float) -> None:
    with mpmath.workdps(60):
        for seed in range(8):
            rows, cost = matrices(seed)
            cost = closed(cost * scale)
            rows = np.maximum(rows, 1e-200)
            step = Step(rows, rows, cost, 0.0)
            couplings = solved(step)
            found = step.upper(couplings)
            for x in range(4):
                for y in range(4):
                    if x != y and found[x, y] < step.dearest:
                        true = exact_proof(rows[x], rows[y], cost, couplings, x, y)
                        assert mpmath.mpf(float(found[x, y])) >= true


def side(seed: int, counts: tuple[int, ...] = (3, 60, 2)) -> list[Stretch]:
    return [Stretch(*matrices(seed + k, 3), row_slack(3), count) for k, count in enumerate(counts)]


def by_program(stretches: list[Stretch]) -> list[Floats]:
    """The recursion, every step by a linear program."""
    size = len(stretches[0].rows)
    tables = [np.zeros((size, size))]
    for stretch in stretches:
        for _ in range(stretch.count):
            cost, rows = closed(stretch.cost + tables[-1]), stretch.rows
            tables.append(
                np.array(
                    [
                        [0.0 if x == y else program(rows[x], rows[y], cost) for y in range(size)]
                        for x in range(size)
                    ]
                )
            )
    return tables


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(3))
def test_a_proof_is_checked_without_the_search(seed: int) -> None:
    stretches = side(seed)
    walk = search_side(stretches, 3, recorded=True)
    assert walk.moves is not None
    proof = Flows.from_document(Flows(tuple(walk.moves)).to_document())
    tables, at = upper_tables(stretches, 3, proof)
    assert np.array_equal(at, walk.at)
    assert all(np.array_equal(a, b) for a, b in zip(tables, walk.tables, strict=True))
    for step, true in enumerate(by_program(stretches)):
        assert (tables[at[step]] >= true - 1e-9).all()
        assert (tables[at[step]] <= true + 1e-5).all()


def hostile(walk: FlowWalk, seed: int) -> list[Flows]:
    """Proofs that skip, repeat, hold where nothing is known, and settle where nothing settles."""
    assert walk.moves is not None
    moves = walk.moves
    rng = np.random.default_rng(seed)
    tables: list[Any] = [np.zeros((3, 3)), np.full((3, 3), np.nan), np.zeros((2, 2))]
    first = next(m.couplings for m in moves if isinstance(m, Take) and m.couplings is not None)
    shuffled = [moves[k] for k in rng.permutation(len(moves))]
    return [
        Flows(()),
        Flows(tuple(moves[:2])),
        Flows(tuple(moves[1:])),
        Flows(tuple(shuffled)),
        Flows((Hold(10**9),) * 9),
        Flows((moves[0], Hold(10**9, 10**6), Hold(-5, -3), Hold(0))),
        Flows((moves[0], Hold(1), Hold(1), Hold(40))),
        *(Flows((moves[0], Settle(table, first))) for table in tables),
        *(Flows((Settle(table, first),)) for table in tables),
        Flows(tuple(Take(first) for _ in range(500))),
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", range(14))
def test_hostile_proofs_never_prove_too_little(kind: int) -> None:
    stretches = side(7, (3, 20, 2))
    walk = search_side(stretches, 3, recorded=True)
    proofs = hostile(walk, kind)
    tables, at = upper_tables(stretches, 3, proofs[kind])
    for step, true in enumerate(by_program(stretches)):
        assert (tables[at[step]] >= true - 1e-9).all()


@pytest.mark.parametrize("seed", range(4))
def test_only_super_solutions_bound_every_length(seed: int) -> None:
    rows, cost = matrices(seed, 3)
    cost = 0.05 * cost
    found = fixed_point(fixed_rows(rows), cost, slack=row_slack(3))
    assert found.couplings is not None
    step = RepeatedStep(fixed_rows(rows), cost, row_slack(3))
    assert step.proves(found.upper, step.upper(found.upper, found.couplings))
    for table in (0.9 * found.upper, np.zeros((3, 3)), -found.upper, found.upper * np.nan):
        assert not step.proves(table, step.upper(np.nan_to_num(table), found.couplings))
    assert not step.proves(found.upper, step.upper(found.upper, found.couplings), found.upper + 1)
    true = by_program([Stretch(rows, cost, 0.0, 30)])[-1]
    assert (found.upper >= true - 1e-9).all()


def all_paths(chain: Chain, entry: int) -> float:
    """The largest loss of a pair at one entry: a linear program over all sequences."""
    size, length = chain.size, len(chain.charged)
    paths = np.array(list(np.ndindex(*(size,) * length)))
    law = np.ones(len(paths)) if chain.start is None else chain.start[paths[:, 0]]
    for time in range(length - 1):
        law = law * chain.matrices[time][paths[:, time], paths[:, time + 1]]
    number = {tuple(path): k for k, path in enumerate(paths.tolist())}
    rows = []
    for k, path in enumerate(paths.tolist()):
        for time in range(length):
            for value in range(size):
                if value != path[time]:
                    other = number[(*path[:time], value, *path[time + 1 :])]
                    row = np.zeros(len(paths))
                    row[k] = 1.0
                    row[other] = -np.exp(chain.charged.cost(time)[path[time], value])
                    rows.append(row)
    constraints = np.array(rows)
    worst = 0.0
    for x in range(size):
        for y in range(size):
            if x != y:
                left, right = (law * (paths[:, entry] == value) for value in (x, y))
                left, right = left / left.sum(), right / right.sum()
                found = linprog(
                    -left, constraints, np.zeros(len(rows)), right[None, :], [1.0], bounds=(0, None)
                )
                worst = max(worst, float(np.log(-found.fun)))
    return worst


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_is_never_below_the_program_over_all_sequences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, _ = matrices(seed, 3)
    chain = Chain.from_priors(rows, np.array([0.3, 1.0, 0.0, 0.7]), rng.dirichlet(np.ones(3)))
    sides = [
        search_side(part, 3, recorded=True).moves or [] for part in (chain.ahead, chain.behind)
    ]
    proven = upper(chain, *(Flows(tuple(moves)) for moves in sides))
    unproven = upper(chain, Flows(()), Flows(()))
    assert np.array_equal(
        proven.by_entry, chain_losses(rows, chain.charged, start=chain.start).by_entry
    )
    for entry in range(4):
        true = all_paths(chain, entry)
        assert true - 1e-9 <= proven.by_entry[entry] <= unproven.by_entry[entry]


@pytest.mark.parametrize("seed", range(4))
def test_blocks_and_mixtures_beside_programs(seed: int) -> None:
    rows, cost = matrices(seed, 2)
    after = off_diagonal(2, 0.4)
    block = block_step([rows, rows], [cost, 0.3], after, slack=row_slack(2))
    found = block.upper(solved(block))
    assert found[0, 1] >= program(block.numerator[0], block.numerator[1], block.cost) - 1e-9
    single = Stretch(rows, off_diagonal(2, 0.3), row_slack(2), 1).step(after)
    twice = Stretch(rows, cost, row_slack(2), 1).step(single.upper(solved(single)))
    assert (found <= twice.upper(solved(twice)) + 1e-7).all()
    laws = np.array([[1.0, 0.0], [0.25, 0.75]])
    mixture = mixture_step(laws, closed(cost), slack=0.0)
    assert mixture.upper(solved(mixture))[0, 1] >= program(laws[0], laws[1], mixture.cost) - 1e-9


def no_flows(rows: int, states: int) -> Couplings:
    shape = rows, rows, states
    parent = np.zeros(shape, dtype=np.int16)
    return Couplings(parent, np.zeros(shape, dtype=np.bool_), parent, np.zeros(shape))


@pytest.mark.parametrize("bad", [-np.inf, np.nan, -1.0])
def test_a_table_that_bounds_nothing_makes_a_step_infinite(bad: float) -> None:
    laws = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    table = np.array([[0.0, 1.0, bad], [1.0, 0.0, bad], [bad, bad, bad]])
    for step in (
        mixture_step(laws, table, slack=0.0),
        Stretch(laws, np.zeros((3, 3)), 0.0, 1).step(table),
        Step(laws, laws, table, 0.0),
    ):
        assert np.isinf(step.upper(None)[0, 1])
        assert np.isinf(step.upper(no_flows(2, 3))[0, 1])


@pytest.mark.parametrize("bad", [-np.inf, np.nan, -1.0])
def test_no_value_below_zero_settles_a_chain_without_end(bad: float) -> None:
    rows, cost = matrices(3, 3)
    step = RepeatedStep(fixed_rows(rows), cost, row_slack(3))
    value = off_diagonal(3, bad)
    shown = step.upper(value, no_flows(3, 3))
    assert np.isinf(shown[0, 1])
    assert not step.proves(value, shown)
    assert not step.proves(np.array([[9.0]]), np.zeros((3, 3)))
