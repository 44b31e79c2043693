"""The mechanisms that Tables 1 and 2 compare, each calibrated by what its proof allows per entry.

* ``Ours-Exp``: the paper's own. Its curve, then three rounds of the exponential mechanism with a
  third of the budget each: Gumbel noise of scale 6/ε.
* ``MQM, split budget``: MQMExact, then one Laplace of scale m/ε on each of the m bars: a budget
  split over the categories, which the printed columns fit.
* ``MQM, vector Laplace``: MQMExact, then one Laplace of scale 2/ε on each bar, as in Song, Wang
  and Chaudhuri's own code: a histogram has the L1-sensitivity 2.
* ``Group DP``: all entries of a person at once. The paper does not say with which mechanism; here
  with the same three rounds as Ours-Exp, so that the two differ by their proofs alone.
* ``takifugu``: the exact translation, and the mechanism that the planner picks for what it allows.
  The planner is given no counts, only how many labels there are and how many are named.

All are real mechanisms of `takifugu.mechanisms`, whose Laplace noise is a whole number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from takifugu.costs.losses import Pure
from takifugu.mechanisms import plan_top_k
from takifugu.mechanisms.candidates import Selection
from takifugu.mechanisms.planner import noise_of
from takifugu.papers.composition.baselines.rankings import one_per_bar, peeling, split_over_bars
from takifugu.papers.composition.experiments.allowances import Allowances
from takifugu.papers.composition.experiments.measurements import Prepared
from takifugu.papers.composition.experiments.metrics import K

TAKIFUGU = "takifugu"
OURS_EXP = "Ours-Exp"
MQM_SPLIT = "MQM, split budget"
MQM_VECTOR = "MQM, vector Laplace"
GROUP_DP = "Group DP"
MAJORITY = "Majority"

Release = Callable[[float, int, int], Selection]


@dataclass(frozen=True)
class Contender:
    """A proof of what may be spent, and a way to spend it.

    Attributes:
        proof: One of `takifugu.papers.composition.experiments.allowances.PROOFS`.
        release: ε per entry, how many labels there are and how many groups, to a mechanism.
    """

    proof: str
    release: Release


@dataclass(frozen=True)
class CalibratedContender:
    """A contender at one ε: what it may spend, its mechanism and the noise of that."""

    epsilon_dp: float
    mechanism: Selection

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on one count."""
        return noise_of(self.mechanism)[2]


def planned(epsilon: float, labels: int, groups: int) -> Selection:
    """What the planner picks, knowing the size of the query and nothing of the counts."""
    return plan_top_k(labels, K, groups, loss=Pure(epsilon)).mechanism


def _peeled(epsilon: float, labels: int, groups: int) -> Selection:
    del groups
    return peeling(epsilon, K, labels)


def _split(epsilon: float, labels: int, groups: int) -> Selection:
    del groups
    return split_over_bars(epsilon, K, labels)


def _vector(epsilon: float, labels: int, groups: int) -> Selection:
    del groups
    return one_per_bar(epsilon, K, labels)


CONTENDERS: Mapping[str, Contender] = MappingProxyType(
    {
        TAKIFUGU: Contender("exact", planned),
        OURS_EXP: Contender("curve", _peeled),
        MQM_VECTOR: Contender("quilts", _vector),
        MQM_SPLIT: Contender("quilts", _split),
        GROUP_DP: Contender("group", _peeled),
    }
)


def calibrated(name: str, prepared: Prepared, epsilon_dp: float) -> CalibratedContender:
    """A contender by name that spends ``epsilon_dp`` on every entry."""
    groups, labels = prepared.counts.shape
    return CalibratedContender(epsilon_dp, CONTENDERS[name].release(epsilon_dp, labels, groups))


def calibrated_at(
    name: str, prepared: Prepared, allowed: Allowances, epsilon: float, *, uncertain: bool
) -> CalibratedContender:
    """A contender by name that keeps to a Pufferfish ``epsilon``."""
    spent = allowed.at(CONTENDERS[name].proof, epsilon, uncertain=uncertain)
    return calibrated(name, prepared, spent)
