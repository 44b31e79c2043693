"""Influence curves of Markov chains: exact for every number of exposed entries, rounded up."""

from collections.abc import Sequence

from takifugu.errors import InvalidWorld
from takifugu.influence.chain.chain_walk import Walk
from takifugu.influence.chain.curve_request import WHOLE, curve_request
from takifugu.influence.chain.splitting import assemble, highest
from takifugu.influence.curve import InfluenceCurve
from takifugu.priors.markov import MarkovChain
from takifugu.priors.secrets import Secrets


def chain_curve(
    chain: MarkovChain,
    secrets: Secrets = WHOLE,
    *,
    max_exposed: int | None = None,
    symmetric: bool = False,
    by_entry: bool | None = None,
) -> InfluenceCurve:
    r"""The influence curve of a Markov chain, for each ordered pair of values (or groups).

    With the nearest seen entries at distances dL and dR (see `splitting` for why the best H is
    an interval), what is seen right and left is independent given X_i, so that two terms add:

    .. math:: \max_z \log\frac{P^{d_R}(x,z)}{P^{d_R}(y,z)}
            + \max_l \log\frac{P^{d_L}(l,x)}{P^{d_L}(l,y)} + \log\frac{\pi_i(y)}{\pi_i(x)},

    the maxima over what x can lead to and come from. The position i enters only through its law
    and through which l are possible. An entry near an end has the splits of one further inside
    and others that show less at the same price: where (dL, dR) would reach past the end, exposing
    all of that side leaks only one of two terms that are both 0 or more. So in a stationary chain
    one class of entries stands for all when ``max_exposed`` ≤ (length − 1)/2. Otherwise, and near a
    given start, entries have rows of their own. Later entries of a chain with a given start are
    bounded together: for j ≥ D the law of entry j is a mixture of rows of :math:`P^D`, hence
    :math:`\pi_j(y)/\pi_j(x) \le \max_l P^D(l,y)/P^D(l,x)`.

    For an ordered pair the ratio in its own direction is enough: the proof of Theorem 6 bounds
    P(ω|s)/P(ω|s′) by the group loss times max P(x_L|s)/P(x_L|s′), and uses no other. The paper's
    a† takes the absolute value, that is one split for both directions: ``symmetric=True``. It is
    never smaller, and larger where the two directions have different best splits.

    Every leak is at least the exact value for the chain as given (rows divided by their exact
    sums); ``exact`` says where it is above it by rounding only. Values that are impossible at an
    entry are left out there. Groups are maximised jointly over both sides, not bounded by values.

    >>> curve = chain_curve(MarkovChain([[0.8, 0.2], [0.2, 0.8]], length=1000))
    >>> curve.to_dp(1.0).round(4)
    np.float64(0.0765)

    Args:
        chain: The prior.
        secrets: Which values, groups of values and entries (numbered from 0) are secret.
        max_exposed: The largest b, besides all entries; by default all of a chain of up
            to 40, else 100 or half the chain.
        symmetric: The paper's reading: one split for both directions of a pair.
        by_entry: Keep the rows of different entries apart, or take their maximum; by default
            they are kept apart, which is never worse, while there is room.
    """
    request = curve_request(
        chain.states,
        chain.length,
        secrets,
        max_exposed=max_exposed,
        symmetric=symmetric,
        by_entry=by_entry,
    )
    return assemble(request, Walk(chain, request).entry_leaks())


def chains_curve(
    chains: Sequence[MarkovChain], secrets: Secrets = WHOLE, *, max_exposed: int | None = None
) -> InfluenceCurve:
    """The curve of a set of chains: for each pair and b the largest leak over the chains.

    Pufferfish asks for each prior separately, so each chain may use its own best split.
    """
    if not chains or len({(chain.states, chain.length) for chain in chains}) > 1:
        raise InvalidWorld(
            "chains", given="are none, or differ in states or length", needed="share both"
        )
    return highest(
        [chain_curve(c, secrets, max_exposed=max_exposed, by_entry=False) for c in chains]
    )
