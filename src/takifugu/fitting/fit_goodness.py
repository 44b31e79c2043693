"""Which tests of goodness of fit belong to which kind of fitted prior."""

from takifugu.fitting.fit_kinds import Estimate, FitOptions
from takifugu.fitting.goodness import GoodnessOfFit, goodness, stationarity
from takifugu.fitting.network_goodness import network_goodness
from takifugu.priors.bayesian_network import BayesianNetwork
from takifugu.priors.higher_order import HigherOrderChain
from takifugu.tables.engine import Engine
from takifugu.tables.scope import Scope


def goodness_of(
    engine: Engine,
    columns: tuple[str, ...],
    train: Scope,
    options: FitOptions,
    estimate: Estimate,
) -> GoodnessOfFit:
    """Whether what was fitted describes the rows that it was fitted on.

    Of chains by hour of the day the order is not tested: hours that differ look like an order.
    """
    if estimate.goodness is not None:
        return estimate.goodness()
    if isinstance(estimate.prior, BayesianNetwork):
        return network_goodness(engine, estimate.prior, train)
    if options.by_hour:
        return GoodnessOfFit((stationarity(engine, columns, train, options.cuts),))
    chain = estimate.prior
    order = chain.order if isinstance(chain, HigherOrderChain) else 1
    return goodness(engine, columns, train, order=order, cuts=options.cuts)
