"""Whether a prior that was just fitted suits: `Fitted.advice`."""

from collections.abc import Callable

import numpy as np

from takifugu.advice.prior_advice import FitEvidence, PriorAdvice, advise
from takifugu.fitting.fit_kinds import Fitted
from takifugu.priors import MarkovChain
from takifugu.priors.chain_changes import ChainSteps
from takifugu.priors.prior import state_text
from takifugu.translation.protocol import LossTranslation


def advice_of(
    fitted: Fitted,
    epsilon: float = 1.0,
    *,
    translation: LossTranslation | None = None,
    progress: Callable[[str], None] | None = None,
) -> PriorAdvice:
    """What a fit rests on, what ``epsilon`` allows under it, and what would allow more.

    Changed chains are those that a fit on changed labels would give, by the counts of this one.
    """
    estimate, size = fitted.estimate, fitted.size
    steps, chain = None, estimate.prior
    if isinstance(chain, MarkovChain) and chain.homogeneous and estimate.counts is not None:
        steps = ChainSteps.of(chain, estimate.counts, estimate.tau)
    return advise(
        fitted.prior if translation is None else translation,
        epsilon,
        steps=steps,
        evidence=evidence_of(fitted),
        lengths=() if size is None else size.lengths,
        progress=progress,
    )


def evidence_of(fitted: Fitted) -> FitEvidence:
    """What a fit rests on: how much, of how many people, and which states on hardly anything."""
    estimate, size, never = fitted.estimate, fitted.size, tuple[str, ...]()
    chain = estimate.prior
    if isinstance(chain, MarkovChain) and chain.homogeneous and estimate.counts is not None:
        stays = np.diag(estimate.counts)
        away = estimate.counts.sum(axis=1) - stays
        never = tuple(
            state_text(chain.states[k]) for k in np.flatnonzero((away == 0) & (stays > 0))
        )
    return FitEvidence(
        estimate.counted,
        estimate.unit,
        None if size is None else size.people,
        None if size is None else size.rows,
        estimate.rare,
        never,
        estimate.few,
        max((each.at_least for each in fitted.labels), default=None),
    )
