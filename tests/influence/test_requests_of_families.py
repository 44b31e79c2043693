"""What each family's curve is asked, argument by argument, and what is done with the answer."""

from typing import Any

import numpy as np
import pytest

from takifugu.errors import UnsoundRequest
from takifugu.influence import families
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.families import has_curve, influence_curve
from takifugu.influence.network.network_curves import Progress
from takifugu.priors import Explicit, IndependentEntries, MarkovChain, Product, Secrets, Tables
from takifugu.priors.bayesian_network import BayesianNetwork
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.kernels import AR1
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.time_of_day import TimeOfDayChain
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from tests.raising import raises

pytestmark = pytest.mark.nightly

STEP = np.array([[0.8, 0.2], [0.3, 0.7]])
CHAIN = MarkovChain(STEP, length=4)
DAY = TimeOfDayChain(np.stack([STEP, STEP[::-1]]), length=4)
FIELD = MarkovRandomField.ising({"a": 0.1, "b": -0.2}, {("a", "b"): 0.5})
UNEVEN = MarkovRandomField.ising({"a": 0.1, "b": -0.2}, {("a", "b"): -0.5})
SOME = Secrets(entries=(0,))


def answer(entries: int = 9) -> InfluenceCurve:
    return InfluenceCurve(np.array([1, 2, 3]), np.array([[3.0, 2.0, 1.0]]), entries, ("p",))


class Asked:
    """A curve function that notes what it is given."""

    def __init__(self, patch: pytest.MonkeyPatch, home: str) -> None:
        self.given: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        patch.setattr(f"takifugu.influence.{home}", self)

    def __call__(self, *given: Any, **named: Any) -> InfluenceCurve:
        """The same answer to everybody."""
        self.given.append((given, named))
        return answer()


@pytest.mark.parametrize(
    ("prior", "home"),
    [
        (CHAIN, "chain.chain_curves.chain_curve"),
        (
            IntervalMarkovChain.around(CHAIN, relative=0.05),
            "chain.interval_curves.interval_chain_curve",
        ),
        (
            HigherOrderChain(np.stack([STEP, STEP[::-1]]), length=4),
            "chain.higher_order_curves.higher_order_curve",
        ),
        (DAY, "chain.time_of_day_curves.time_of_day_curve"),
    ],
)
def test_chains_are_asked_for_the_secrets_up_to_a_size(
    prior: Any, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch, home)
    assert influence_curve(prior, SOME, max_exposed=2).exposed.tolist() == [1, 2, 3]
    assert asked.given == [((prior, SOME), {"max_exposed": 2})]
    influence_curve(prior)
    assert asked.given[1] == ((prior, Secrets()), {"max_exposed": None})


def test_a_distance_between_labels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, "chain.chain_curves.chain_curve")
    with raises(UnsoundRequest, field="secrets", reason="within"):
        influence_curve(CHAIN, Secrets(within=1.0))
    assert not asked.given


def test_gaussians_are_cut_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Asked(monkeypatch, "gaussian_process_curves.gaussian_process_curve")
    secrets = Secrets(within=1.0)
    prior = Gaussian(AR1(0.5), length=9)
    assert influence_curve(prior, secrets, max_exposed=2).exposed.tolist() == [1, 2]
    assert influence_curve(prior, secrets).exposed.tolist() == [1, 2, 3]
    assert process.given == [((prior, secrets), {})] * 2
    truncated = Asked(monkeypatch, "gaussian_curves.gaussian_curve")
    bounded = TruncatedGaussian(np.eye(9), 3, 0.1)
    assert influence_curve(bounded, max_exposed=1).exposed.tolist() == [1]
    assert truncated.given == [((bounded,), {})]
    with raises(UnsoundRequest, field="secrets"):
        influence_curve(bounded, SOME)


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


def test_networks_are_searched_unless_two_states_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    general = Asked(monkeypatch, "network.network_curves.network_curve")
    special = Asked(monkeypatch, "network.attractive_curves.attractive_curve")
    some = Secrets(entries=("a",))
    influence_curve(FIELD, some, max_exposed=3)
    influence_curve(FIELD)
    assert special.given == [
        ((FIELD, some), {"largest": 3}),
        ((FIELD, Secrets()), {"largest": families.NETWORK_REACH}),
    ]
    assert families.NETWORK_REACH == 4 and not general.given
    heard: list[str] = []
    influence_curve(UNEVEN, some, max_exposed=2)
    influence_curve(UNEVEN, progress=heard.append)
    ((given, named), (told, last)) = general.given
    assert given == (UNEVEN, some) and named == {"largest": 2, "progress": None}
    assert told == (UNEVEN, Secrets()) and last["largest"] == 4
    assert last["progress"](Progress("b", 3, 17)) is None
    assert heard == ["b: b = 3"]
    assert len(special.given) == 2
    rain = BayesianNetwork(
        ("rain", "wet"),
        (("no", "yes"),) * 2,
        ((), ("rain",)),
        (np.array([0.75, 0.25]), np.array([[0.9, 0.1], [0.5, 0.5]])),
    )
    influence_curve(rain)
    assert special.given[2][0][0] is rain


def test_the_curve_of_independent_people_has_the_rows_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chains = Asked(monkeypatch, "chain.chain_curves.chain_curve")
    networks = Asked(monkeypatch, "network.network_curves.network_curve")
    secrets = Secrets(pairs=(((0,), (1,)),))
    both = Product({"ann": CHAIN, "bob": UNEVEN})
    heard: list[str] = []
    curve = influence_curve(both, secrets, max_exposed=2, progress=heard.append)
    assert curve.entries == both.size == 6 and curve.pairs == ("ann: p", "bob: p")
    assert curve.leak.tolist() == [[3.0, 2.0, 1.0]] * 2
    assert chains.given == [((CHAIN, secrets), {"max_exposed": 2})]
    ((given, named),) = networks.given
    assert given == (UNEVEN, secrets) and named["largest"] == 2
    named["progress"](Progress("a", 1, 0))
    assert heard == ["a: b = 1"]


def test_which_chains_stand_for_more_than_one_law() -> None:
    assert not has_curve(DAY) and has_curve(FIELD)
    assert not has_curve(Product({"a": CHAIN, "b": DAY}))
    with raises(UnsoundRequest, field="prior"):
        influence_curve("chain")  # type: ignore[arg-type]
