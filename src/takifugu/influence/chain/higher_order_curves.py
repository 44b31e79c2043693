r"""Influence curves of higher-order chains, by their windows.

Let X have order k and windows :math:`Y_i = (X_{i-k+1}, \ldots, X_i)`. Expose the entries from
:math:`i - d_L + 1` to :math:`i + d_R - 1`: :math:`b = d_L + d_R - 1` of them. Seen are X up to
:math:`i - d_L` and from :math:`i + d_R` on. Given :math:`Y_{i-d_L}` the values before it are
independent of all later ones. Given :math:`Y_{i+d_R+k-1} = (X_{i+d_R}, \ldots, X_{i+d_R+k-1})` the
values after it are independent of all earlier ones. So with A and B the windows that end in the
two values of a secret pair, the leak is

.. math:: \max_{l,z} \log \frac{P(Y_{i-d_L}=l, Y_{i+d_R+k-1}=z \mid Y_i \in A)}
                               {P(Y_{i-d_L}=l, Y_{i+d_R+k-1}=z \mid Y_i \in B)},

that of a Markov chain and two groups of states (`takifugu.influence.chain.chain_groups`) whose
nearest seen state to the right is k − 1 steps further away. Near the ends of a finite sequence
less is seen than these two windows, since some of their values come before the first entry or
after the last one; the leak of what is seen is then at most as large. The curve is an upper bound
also because sets other than intervals are not tried.
"""

from dataclasses import replace

import numpy as np

from takifugu.errors import InvalidWorld
from takifugu.influence.chain.chain_walk import Walk
from takifugu.influence.chain.curve_request import WHOLE, Side, curve_request
from takifugu.influence.chain.splitting import assemble
from takifugu.influence.curve import InfluenceCurve
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.priors.secrets import Secrets

WORK = 2e9  # multiplications for the splits of a curve, by default


def higher_order_curve(
    prior: HigherOrderChain, secrets: Secrets = WHOLE, *, max_exposed: int | None = None
) -> InfluenceCurve:
    """The influence curve of a higher-order chain: an upper bound at every point.

    By default it goes as far as it is quick: fewer entries if there are many windows.

    >>> chain = HigherOrderChain(
    ...     [[[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.1, 0.9]]], length=1000
    ... )
    >>> higher_order_curve(chain).to_dp(1.0).round(4)
    np.float64(0.0227)
    """
    values = curve_request(
        prior.states,
        prior.length,
        secrets,
        max_exposed=max_exposed,
        symmetric=False,
        by_entry=None,
    )
    last = prior.windows[:, -1]

    def ending_in(side: Side) -> Side:
        return tuple(np.flatnonzero(np.isin(last, side)).tolist())

    sides = {side: ending_in(side) for pair in values.single + values.grouped for side in pair}
    pairs = tuple(
        (sides[a], sides[b]) for a, b in values.single + values.grouped if sides[a] and sides[b]
    )
    if not pairs:
        raise InvalidWorld(
            "secrets", given="name values that never happen", needed="name values that can"
        )
    most = values.most
    if max_exposed is None:
        each = len(pairs) * len(last) ** 2 * max(len(a) + len(b) for a, b in pairs)
        most = max(1, min(most, int(np.sqrt(2 * WORK / each))))
    request = replace(
        values,
        states=prior.window_chain.states,
        most=most,
        single=(),
        grouped=pairs,
        side_names={windows: values.side_name(side) for side, windows in sides.items()},
    )
    walk = Walk(prior.window_chain, request, shift=prior.order - 1)
    return assemble(request, walk.entry_leaks())
