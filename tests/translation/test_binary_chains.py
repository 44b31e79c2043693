"""Two states: what is called exact is the worst loss of all mechanisms, to a share of 1e-6."""

import os
import subprocess
import sys
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.priors import MarkovChain, Secrets
from takifugu.translation import Translation
from tests.oracles import binary_chains as oracle
from tests.oracles.transport import written_out_chain_loss
from tests.translation.transports import transport_of

CHAINS = 10_000 if os.environ.get("DEEP") else 160
SHARE = 1e-6  # what "exact" guarantees
Matrix = list[list[float]]
PAIRS = ((1, 0), (0, 1))  # as the closed form numbers them


def sticky(p: float, q: float) -> Matrix:
    return [[p, 1 - p], [1 - q, q]]


def rows_of(rng: np.random.Generator) -> Matrix:
    """Two rows: ordinary, near 0 or 1, with zeros, or nearly alike."""
    kind = rng.integers(6)
    if kind == 0:
        share = 10 ** -rng.uniform(0, 150, 2)
    elif kind == 1:
        share = 10 ** -rng.uniform(0, 8, 2)
    elif kind == 2:
        share = np.clip(rng.random() + rng.normal(0, 1e-9, 2), 0, 1)
    else:
        share = rng.random(2)
    if rng.random() < 0.15:
        share[rng.integers(2)] = 0.0
    rows = [[1 - s, s] for s in share.tolist()]
    if rng.random() < 0.5:
        rows[1].reverse()
    if rng.random() < 0.5:
        rows[0].reverse()
    return rows


def losses_of(
    rng: np.random.Generator, length: int
) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """ε of each entry: all alike or not, tiny or huge, some 0."""
    size = 10 ** rng.choice([rng.uniform(-300, 3), rng.uniform(-3, 1), rng.uniform(-1, 0.5)])
    spent = np.full(length, size)
    if rng.random() < 0.5:
        spent *= 10 ** rng.uniform(-2, 0, length)
    if rng.random() < 0.3:
        spent *= rng.random(length) < 0.5
    return spent


def close(found: float, true: float) -> bool:
    return found == pytest.approx(true, rel=SHARE, abs=1e-315)


@pytest.mark.parametrize(
    ("rows", "length", "epsilon", "loss"),
    [
        ([[0.0, 1.0], [0.9, 0.1]], None, 0.01, 0.1901911),
        ([[0.1, 0.9], [1.0, 0.0]], None, 0.01, 0.1901911),
        ([[0.0, 1.0], [0.99, 0.01]], None, 0.001, 0.1987228),
        (sticky(0.9995, 0.9995), 200, 0.071, 9.692591),
        ([[0.0, 1.0], [1e-16, 1.0]], 5, 0.1, 0.1),
        (sticky(0.9, 0.9), 7, 0.2, 0.9732375),
        (sticky(0.9, 0.9), 7, 1.0, 4.1213120),
        (sticky(0.6, 0.8), 7, 0.5, 1.1584628),
        (sticky(0.1, 0.3), 7, 1.0, 3.1458719),
    ],
)
def test_known_losses(rows: Matrix, length: int | None, epsilon: float, loss: float) -> None:
    translation = Translation(MarkovChain(np.array(rows), length=length))
    answer = translation.explain(epsilon)
    assert answer.method == "transport" and answer.exact
    assert answer.pufferfish == pytest.approx(loss, rel=SHARE)
    assert answer.lower == pytest.approx(loss, rel=SHARE)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("rows", "start", "length", "epsilon"),
    [
        ([[0.5, 0.5], [0.0, 1.0]], [1.0, 0.0], 2000, 0.001),
        ([[0.1, 0.9], [0.0, 1.0]], [1.0, 0.0], 700, 0.005),
        ([[1.0, 0.0], [1 - 3e-16, 3e-16]], [0.0, 1.0], 30, 1.1127),
        ([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], 300, 20.0),
        ([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], 301, 20.0),
    ],
)
def test_states_that_become_ever_less_likely_stay_possible(
    rows: Matrix, start: list[float], length: int, epsilon: float
) -> None:
    chain = MarkovChain(np.array(rows), start=np.array(start), length=length)
    found = Translation(chain).explain(epsilon)
    assert found.by_entry is not None
    true = oracle.counting_losses([np.array(rows)] * (length - 1), start, [epsilon] * length)
    for entry in range(length):
        worst = max(true[entry].values(), default=0.0)
        assert close(float(found.by_entry[entry]), worst)
        assert found.by_entry[entry] >= worst


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(8))
def test_random_chains_lose_what_transfer_matrices_say(block: int) -> None:
    rng = np.random.default_rng([20261115, block])
    for k in range(CHAINS // 8):
        length = int(rng.integers(100, 1001)) if k % 30 == 29 else int(rng.integers(1, 40))
        same = rng.random() < 0.5
        matrices = [np.array(rows_of(rng)) for _ in range(1 if same else length - 1)]
        spent = losses_of(rng, length)
        start = [[1.0, 0.0], [0.0, 1.0], None][rng.choice(3, p=[0.15, 0.15, 0.7])]
        if start is None:
            share = float(10 ** -rng.choice([rng.uniform(0, 1), rng.uniform(0, 150)]))
            start = [share, 1 - share]
        rows = matrices[0] if same else np.array(matrices).reshape(-1, 2, 2)
        if length == 1:
            rows = np.array(rows_of(rng))
        chain = MarkovChain(rows, start=np.array(start), length=length)
        steps = matrices * (length - 1) if same else matrices
        true = oracle.counting_losses(steps[: length - 1], start, spent.tolist())
        answer = Translation(chain).transport
        assert answer is not None
        worst = max((v for one in true for v in one.values()), default=0.0)
        bound = answer.profile(spent)
        assert bound.by_entry is not None
        for found, losses in zip(bound.by_entry.tolist(), true, strict=True):
            entry = max(losses.values(), default=0.0)
            assert close(found, entry) and found >= entry * (1 - 1e-15)
        assert close(bound.value, worst)
        assert close(answer.witness(spent, bound).leak, worst)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(8))
def test_unbounded_chains_lose_what_transfer_matrices_say(block: int) -> None:
    rng = np.random.default_rng([11152026, block])
    for _ in range(CHAINS // 8):
        rows = rows_of(rng)
        while not (rows[0][1] > 0 and rows[1][0] > 0 and (rows[0][0] > 0 or rows[1][1] > 0)):
            rows = rows_of(rng)
        epsilon = float(10 ** rng.choice([rng.uniform(-300, 2.9), rng.uniform(-4, 1)]))
        true = oracle.unbounded_counting_losses(np.array(rows), epsilon)
        transport = Translation(MarkovChain(np.array(rows))).transport
        assert transport is not None
        bound = transport.uniform(epsilon)
        assert bound.by_values is not None
        for pair, loss in true.items():
            assert close(float(bound.by_values[pair]), loss)
            assert bound.by_values[pair] >= loss
        leak = transport.witness(epsilon, bound).leak
        assert close(leak, max(true.values())) and leak <= max(true.values()) * (1 + 1e-15)


@pytest.mark.nightly
@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_no_mechanism_at_all_loses_more(seed: int) -> None:
    rng = np.random.default_rng(seed)
    length = int(rng.integers(2, 6))
    matrices = [np.array(sticky(*rng.random(2))) for _ in range(length - 1)]
    if seed % 3 == 0:
        matrices[0] = np.array([[1.0, 0.0], [1 - (x := float(rng.random())), x]])
    spent = rng.choice([0.0, 0.1, 0.7, 2.0], length)
    start = rng.dirichlet([1, 1])
    chain = MarkovChain(np.array(matrices), start=start)
    transport = transport_of(chain, Secrets())
    by_entry = transport.profile(spent).by_entry
    assert by_entry is not None
    entry = int(rng.integers(length))
    every = [written_out_chain_loss(matrices, start, spent, entry, *pair) for pair in PAIRS]
    assert by_entry[entry] == pytest.approx(max(every), abs=2e-6)
    listed = [
        oracle.best_product_loss(matrices, start.tolist(), spent.tolist(), entry, x) for x in (0, 1)
    ]
    assert by_entry[entry] == pytest.approx(max(listed), rel=1e-12, abs=1e-300)
    solved = Translation(chain.explicit()).bound(spent, "transport").by_entry
    assert solved is not None and (by_entry <= solved * (1 + 1e-9) + 1e-12).all()
    assert (solved <= by_entry + 2e-6).all()


@pytest.mark.nightly
@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_an_allowance_is_the_largest_that_fits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.array(
        sticky(*rng.random(2)) if seed % 2 else sticky(*(1 - 10 ** -rng.uniform(0, 6, 2)))
    )
    length = [None, 1, 40, 10**7][seed % 4]
    start = "stationary" if seed % 4 != 2 else rng.dirichlet([1, 1])
    chain = MarkovChain(rows, length=length, start=start)  # type: ignore[arg-type]
    translation = Translation(chain)
    target = float(10 ** rng.uniform(-4, 1.5))
    allowed = float(translation.to_dp(target, "transport"))
    assert translation.to_pufferfish(allowed, "transport") <= target
    assert translation.to_pufferfish(allowed * (1 + 1e-8), "transport") > target
    if length == 40:
        assert translation.to_pufferfish(translation.to_dp(target)) <= target


@pytest.mark.parametrize("length", [None, 5])
def test_chosen_entries_are_exact_too(length: int | None) -> None:
    rows = np.array(sticky(0.2, 0.3))
    chain = MarkovChain(rows, length=length)
    secrets = Secrets(entries=(1, 4))
    bound = transport_of(chain, secrets).uniform(0.4)
    rest = chain.stationary.tolist()
    true = oracle.counting_losses([rows] * ((length or 200) - 1), rest, [0.4] * (length or 200))
    worst = max(loss for entry in (1, 4) for loss in true[entry].values())
    assert bound.value == pytest.approx(worst, rel=SHARE)
    assert bound.binding is not None and bound.binding.entry in (1, 4)


def test_entries_after_a_window_of_an_unbounded_chain_are_covered() -> None:
    rows = np.array(sticky(0.1, 0.05))
    chain = MarkovChain(rows)
    spent = [0.0, 0.0, 0.5, 0.0]
    by_entry = transport_of(chain, Secrets()).profile(np.array(spent)).by_entry
    assert by_entry is not None and len(by_entry) == 5
    true = oracle.counting_losses([rows] * 19, chain.stationary.tolist(), spent + [0.0] * 16)
    assert by_entry[:4] == pytest.approx([max(one.values()) for one in true[:4]], rel=SHARE)
    assert by_entry[4] == pytest.approx(max(v for one in true[4:] for v in one.values()), rel=SHARE)
    far = transport_of(chain, Secrets(entries=(9,))).profile(np.array(spent))
    assert far.value == pytest.approx(max(true[9].values()), rel=SHARE)


def test_the_witness_counts_and_renames() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        length = int(rng.integers(2, 7))
        matrices = [np.array(sticky(*rng.random(2))) for _ in range(length - 1)]
        chain = MarkovChain(np.array(matrices), start=rng.dirichlet([1, 1]))
        spent = rng.choice([0.0, 0.2, 1.5], length)
        answer = Translation(chain).explain(spent)
        witness = answer.witness
        assert witness.factors is not None and witness.binding is not None
        entry, x = int(str(witness.binding.entry)), int(witness.binding.left)
        leaked, mass = [0.0, 0.0], [0.0, 0.0]
        for data in product((0, 1), repeat=length):
            weight = float(chain.start_law[data[0]])
            for j, step in enumerate(matrices):
                weight *= step[data[j], data[j + 1]]
            mass[data[entry]] += weight
            leaked[data[entry]] += weight * float(np.prod(witness.factors[np.arange(length), data]))
        true = np.log(leaked[x] / mass[x] / (leaked[1 - x] / mass[1 - x]))
        assert witness.leak == pytest.approx(true, abs=1e-12)
        assert answer.exact


def test_it_diverges_only_where_one_state_tells_all() -> None:
    swap = Translation(MarkovChain(np.array([[0.0, 1.0], [1.0, 0.0]])))
    answer = swap.explain(0.1)
    assert answer.by_method["transport"] == np.inf and not answer.exact
    assert 1000 < answer.lower < np.inf
    assert swap.to_pufferfish(0.0) == 0
    nearly = Translation(MarkovChain(np.array([[1e-12, 1.0], [1.0, 0.0]]))).explain(0.1)
    assert nearly.exact and nearly.pufferfish < 70


def test_what_exceeds_all_decimals_is_bounded_all_the_same() -> None:
    for length in (None, 4, 10**8):
        transport = transport_of(MarkovChain(np.array(sticky(0.9, 0.8)), length=length), Secrets())
        bound = transport.uniform(1e300)
        assert 1e300 * (1 - 1e-12) <= transport.witness(1e300, bound).leak <= bound.value
    assert Translation(MarkovChain(np.array(sticky(0.9, 0.8)), length=4)).to_dp(1e300) > 0


def test_a_total_that_is_not_exponentiated_is_group_privacy_rounded_up() -> None:
    chain = MarkovChain(np.array([[0.9, 0.1], [0.2, 0.8]]), length=100_003)
    transport = transport_of(chain, Secrets())
    for epsilon in np.random.default_rng(5).uniform(1e11, 1e12, 20).tolist():
        found, group = transport.uniform(epsilon).value, 100_003 * Fraction(epsilon)
        assert group <= Fraction(found) <= group * (1 + Fraction(1, 2**48))


def test_values_that_cannot_happen_are_no_secrets() -> None:
    stuck = MarkovChain(np.array([[1.0, 0.0], [0.5, 0.5]]), start=np.array([1.0, 0.0]), length=9)
    transport = transport_of(stuck, Secrets())
    bound = transport.uniform(0.5)
    assert bound.by_entry is not None and not bound.by_entry.any()
    assert bound.value == 0 and bound.binding is None
    assert transport.witness(0.5, bound).leak == 0


@pytest.mark.nightly
def test_two_states_need_no_compiler() -> None:
    script = (
        "import sys, numpy as np\n"
        "from takifugu.priors import MarkovChain\n"
        "from takifugu.translation.translation import Translation\n"
        "for length in (None, 50):\n"
        "    chain = MarkovChain(np.array([[.9, .1], [.2, .8]]), length=length)\n"
        "    bound = Translation(chain).transport\n"
        "    bound.witness(.1, bound.uniform(bound.largest(1.0)))\n"
        "sys.exit('numba' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603
