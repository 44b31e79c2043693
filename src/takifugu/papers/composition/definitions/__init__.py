r"""The privacy definitions of the literature as instances of Pufferfish (the paper, appendix A).

Each function returns the `World` whose Pufferfish loss is the definition's ε, so that
``leakage(definition(…), mechanism)`` checks a mechanism against it.

Where a definition quantifies over infinitely many priors, a finite list is given that has the
same loss. The argument is always the same. Let a secret pair settle some entries at α against β,
and let the rest Z of the table have the same law under both sides. Then

.. math:: \frac{P(ω|α)}{P(ω|β)} = \frac{E_Z[P(ω|α,Z)]}{E_Z[P(ω|β,Z)]}
          \le \max_z \frac{P(ω|α,z)}{P(ω|β,z)},

so priors that know Z for sure are the worst, and one prior for each z is enough.

Partial knowledge DP (Desfontaines et al., 2020) is `bayesian_privacy` with a fixed ``known``.
"""

from takifugu.papers.composition.definitions.blowfish import blowfish_privacy
from takifugu.papers.composition.definitions.likelihood import (
    dependent_privacy,
    differential_privacy,
    group_privacy,
    per_entry_privacy,
)
from takifugu.papers.composition.definitions.posterior import (
    ABSENT,
    bayesian_privacy,
    conditional_inference_privacy,
    distributional_privacy,
    inferential_privacy,
    noiseless_privacy,
)

__all__ = [
    "ABSENT",
    "bayesian_privacy",
    "blowfish_privacy",
    "conditional_inference_privacy",
    "dependent_privacy",
    "differential_privacy",
    "distributional_privacy",
    "group_privacy",
    "inferential_privacy",
    "noiseless_privacy",
    "per_entry_privacy",
]
