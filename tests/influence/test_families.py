"""Every prior has a curve, and it is the right family's."""

import numpy as np
import pytest

from takifugu.errors import TakifuguError, UnsoundRequest
from takifugu.influence import chain_curve, families, influence_curve
from takifugu.influence.families import has_curve
from takifugu.priors import (
    Explicit,
    IndependentEntries,
    MarkovChain,
    Product,
    Secrets,
    Tables,
    TruncatedGaussian,
)
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField
from takifugu.priors.time_of_day import TimeOfDayChain
from tests.raising import raises

CHAIN = MarkovChain(np.array([[0.8, 0.2], [0.3, 0.7]]), ("home", "ward"), length=5)
LOOP = BayesianNetwork(
    entries=("rain", "wet"),
    states=(("no", "yes"), ("no", "yes")),
    parents=((), ("rain",)),
    tables=(np.array([0.75, 0.25]), np.array([[0.9, 0.1], [0.5, 0.5]])),
)
FIELD = MarkovRandomField.ising({"a": 0.1, "b": -0.2, "c": 0.0}, {("a", "b"): 0.5, ("b", "c"): 0.3})
UNEVEN = MarkovRandomField.ising({"a": 0.1, "b": -0.2}, {("a", "b"): -0.5})


@pytest.mark.parametrize("prior", [CHAIN, LOOP, FIELD, UNEVEN])
@pytest.mark.parametrize("secrets", [None, "some"])
def test_a_family_agrees_with_its_written_out_law(
    prior: MarkovChain | BayesianNetwork | MarkovRandomField, secrets: str | None
) -> None:
    explicit = prior.explicit()
    entry = explicit.tables.entries[0]
    chosen = Secrets() if secrets is None else Secrets(entries=(entry,))
    own = influence_curve(prior, chosen, max_exposed=len(explicit.tables.shape))
    slow = influence_curve(explicit, chosen)
    for b in own.exposed:
        assert own.pooled()[own.exposed == b] == pytest.approx(
            slow.pooled()[slow.exposed == b], abs=1e-9
        )


def test_families_that_have_no_written_out_law() -> None:
    assert (
        influence_curve(IndependentEntries({"a": {"x": 0.5, "y": 0.5}})).to_pufferfish(0.3) < 0.31
    )
    gaussian = TruncatedGaussian.process(5, length=1, bound=3, width=0.1)
    cut = influence_curve(gaussian, max_exposed=2)
    assert cut.exposed.tolist() == [1, 2, 5] and cut.points()[1].split["exposed"]
    assert influence_curve(FIELD, max_exposed=1).exposed.tolist() == [1, 3]
    interval = IntervalMarkovChain.around(CHAIN, relative=0.05)
    wide = influence_curve(interval, max_exposed=3)
    assert (wide.pooled()[:3] >= chain_curve(CHAIN, max_exposed=3).pooled()[:3]).all()


def test_independent_people_do_not_add_up() -> None:
    alone = influence_curve(CHAIN)
    both = influence_curve(Product({"ann": CHAIN, "bob": CHAIN}))
    assert both.entries == 10
    for epsilon in (0.05, 0.5, 2.0):
        assert both.to_pufferfish(epsilon) == pytest.approx(float(alone.to_pufferfish(epsilon)))


@pytest.mark.parametrize(
    ("prior", "options"),
    [
        (3, {}),
        (TruncatedGaussian(np.eye(2), 3, 0.1), {"secrets": Secrets(entries=(0,))}),
        (TruncatedGaussian(np.eye(2), 3, 0.1), {"max_exposed": 0}),
        (FIELD, {"max_exposed": 0}),
        (UNEVEN, {"max_exposed": 0}),
        (CHAIN, {"secrets": Secrets(pairs=((("home",), ("nowhere",)),))}),
    ],
)
def test_what_has_no_curve_is_refused(prior: object, options: dict[str, object]) -> None:
    with pytest.raises(TakifuguError):
        influence_curve(prior, **options)  # type: ignore[arg-type]


STEP = np.array([[0.8, 0.2], [0.3, 0.7]])


@pytest.mark.nightly
def test_which_priors_have_a_curve() -> None:
    chain = MarkovChain(STEP, length=4)
    unknown = MarkovChain(STEP, start="unknown", length=4)
    assert families.has_curve(chain) and not families.has_curve(unknown)
    assert families.has_curve(Product({"a": chain, "b": chain}))
    assert not families.has_curve(Product({"a": chain, "b": unknown}))


SHORT = MarkovChain(STEP, length=4)


DAY = TimeOfDayChain(np.stack([STEP, STEP[::-1]]), length=4)


PAIR = MarkovRandomField.ising({"a": 0.1, "b": -0.2}, {("a", "b"): 0.5})


SOME = Secrets(entries=(0,))


@pytest.mark.nightly
def test_independent_and_written_out_priors() -> None:
    coins = IndependentEntries({"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.25, "y": 0.75}})
    curve = influence_curve(coins, max_exposed=1)
    assert curve.entries == 2 and curve.exposed.tolist() == [1] and not curve.leak.any()
    tables = Tables.bits(3)
    weight = np.array([0.3, 0.05, 0.1, 0.05, 0.02, 0.08, 0.1, 0.3])
    prior = Explicit(tables, weight)
    whole, some = influence_curve(prior), influence_curve(prior, SOME, max_exposed=1)
    assert whole.exposed.tolist() == [1, 2, 3] and len(whole.pairs) == 6
    assert some.exposed.tolist() == [1, 3] and some.pairs == ("0=0 / 0=1", "0=1 / 0=0")
    rows = [whole.pairs.index(pair) for pair in some.pairs]
    assert some.leak.tolist() == whole.leak[rows][:, [0, 2]].tolist()


@pytest.mark.nightly
def test_which_chains_stand_for_more_than_one_law() -> None:
    assert not has_curve(DAY) and has_curve(PAIR)
    assert not has_curve(Product({"a": SHORT, "b": DAY}))
    with raises(UnsoundRequest, field="prior"):
        influence_curve("chain")  # type: ignore[arg-type]
