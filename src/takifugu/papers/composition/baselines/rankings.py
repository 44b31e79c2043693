"""What others would release of a Markov chain: top-k, for comparison and never by default.

A baseline is a way to turn a Pufferfish loss into a loss per entry (`Calibration`) and a way to
spend that on a ranking (`Release`). All are real mechanisms, with OpenDP's noise and its prices:
they keep their guarantee, with more noise than it takes.

The paper's MQM has two readings. Song, Wang and Chaudhuri's own code adds one Laplace of scale 2/ε
to every bar, as the L1-sensitivity of a histogram is 2; the printed tables fit a budget split over
the categories, scale m/ε for m of them. "Ours-Exp" is the paper's own mechanism: its curve, then k
rounds of the exponential mechanism.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.influence.curve import InfluenceCurve
from takifugu.mechanisms.mechanism_protocol import positive, whole
from takifugu.mechanisms.noise import IntegerLaplace
from takifugu.mechanisms.selection import Exponential, NoisyTopK
from takifugu.papers.composition.baselines.chain_laws import (
    group_to_dp,
)
from takifugu.papers.composition.baselines.quilts import (
    mqm_approx,
    mqm_exact,
)
from takifugu.papers.composition.baselines.temporal import (
    tpl_to_dp,
)
from takifugu.priors.markov import MarkovChain

Ranking = NoisyTopK | Exponential
Calibration = Callable[[MarkovChain, float], float]
Release = Callable[[float, int, int], Ranking]


@dataclass(frozen=True)
class Baseline:
    """One way to rank the states of a chain.

    Attributes:
        per_entry: A chain of known length and a Pufferfish ε to the ε per entry that is allowed.
        release: ε per entry, k and the number of categories to a mechanism.
    """

    per_entry: Calibration
    release: Release

    def top_k(self, chain: MarkovChain, epsilon: float, k: int) -> Ranking:
        """The mechanism for a Pufferfish loss of ``epsilon``."""
        allowed = self.per_entry(chain, positive(epsilon, "epsilon"))
        if not allowed > 0:
            raise UnsoundRequest(
                f"this baseline allows nothing at epsilon = {epsilon:g}",
                field="epsilon",
                given=epsilon,
            )
        return self.release(allowed, whole(k, "k"), len(chain.states))


def curve_of_the_paper(chain: MarkovChain) -> InfluenceCurve:
    """The curve a(b) as the paper has it: one split for both directions, one row for all pairs."""
    curve = chain_curve(chain, symmetric=True)
    return InfluenceCurve(curve.exposed, curve.pooled()[None, :], curve.entries)


def one_per_bar(epsilon: float, k: int, categories: int) -> NoisyTopK:
    """One Laplace of scale 2/ε on every bar, then sort; the number of bars does not matter."""
    del categories
    return NoisyTopK(IntegerLaplace.within(epsilon), k)


def split_over_bars(epsilon: float, k: int, categories: int) -> NoisyTopK:
    """One Laplace of scale m/ε on every one of m bars: ε/m for each, as if they added up."""
    return NoisyTopK(IntegerLaplace.within(2 * epsilon / categories), k)


def peeling(epsilon: float, k: int, categories: int) -> Exponential:
    """The exponential mechanism k times, with ε/k each and without the winners so far."""
    del categories
    return Exponential.within(epsilon, k=k)


def _length(chain: MarkovChain) -> int:
    chain.refuse_unless_one_law("a baseline")
    if chain.length is None:
        raise InvalidPrior("length", given="is not known", needed="be given for a baseline")
    if not chain.homogeneous:
        raise InvalidPrior(
            "transition", given="changes from step to step", needed="be one matrix for a baseline"
        )
    return chain.length


def _start(chain: MarkovChain) -> Floats | None:
    return None if chain.stationary_start else chain.start_law


def _group(chain: MarkovChain, epsilon: float) -> float:
    return group_to_dp(_length(chain), epsilon)


def _mqm_exact(chain: MarkovChain, epsilon: float) -> float:
    return mqm_exact(chain.kernel(), _length(chain), epsilon, start=_start(chain)).to_dp


def _mqm_approx(chain: MarkovChain, epsilon: float) -> float:
    return mqm_approx(chain.kernel(), _length(chain), epsilon).to_dp


def _tpl(chain: MarkovChain, epsilon: float) -> float:
    return tpl_to_dp(chain.kernel(), _length(chain), epsilon, start=_start(chain))


def _curve(chain: MarkovChain, epsilon: float) -> float:
    _length(chain)
    return float(curve_of_the_paper(chain).to_dp(epsilon))


BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {
        "group DP": Baseline(_group, one_per_bar),
        "MQMApprox, one Laplace per bar": Baseline(_mqm_approx, one_per_bar),
        "MQMApprox, budget split": Baseline(_mqm_approx, split_over_bars),
        "MQMExact, one Laplace per bar": Baseline(_mqm_exact, one_per_bar),
        "MQMExact, budget split": Baseline(_mqm_exact, split_over_bars),
        "scalar TPL": Baseline(_tpl, one_per_bar),
        "Ours-Exp": Baseline(_curve, peeling),
    }
)
