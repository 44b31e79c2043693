"""Influence curves of Gaussian processes that are not truncated: all or nothing.

Given X_i = x against y, entries that vary with X_i have Gaussian densities with different means,
whose ratio has no bound. So whatever is not exposed must be independent of X_i: the curve is
infinite until all entries with K_ji ≠ 0 are exposed, and 0 from there on. What makes Gaussian
processes translate well is the distance between values, which a curve does not see: see
`takifugu.translation.gaussian`.
"""

import numpy as np

from takifugu.influence.chain.curve_request import entry_time
from takifugu.influence.curve import InfluenceCurve
from takifugu.numeric import distinct
from takifugu.priors.gaussian import Gaussian
from takifugu.priors.kernels import Covariance
from takifugu.priors.secrets import Secrets


def gaussian_process_curve(prior: Gaussian, secrets: Secrets) -> InfluenceCurve:
    """The curve of a Gaussian process: exact, and infinite where anything correlated is left."""
    kernel, size = prior.kernel, prior.length
    last = len(kernel.rows) if isinstance(kernel, Covariance) else size
    named = None
    if secrets.entries is not None:
        named = [entry_time(entry, last) for entry in secrets.entries]
    if isinstance(kernel, Covariance):
        entries = list(range(len(kernel.rows))) if named is None else named
        together = (kernel.rows[entries] != 0).sum(axis=1)
        exposed = distinct([*together, len(kernel.rows)])
        leak = np.where(exposed >= together[:, None], 0.0, np.inf)
        pairs = tuple(f"{i}=x / {i}=y" for i in entries)
        return InfluenceCurve(exposed, leak, size, pairs)
    alone = kernel.signs(np.array([1]))[0] == 0
    if alone or size is not None:
        count = 1 if alone else size
        return InfluenceCurve(np.array([count]), np.zeros((1, 1)), size, ("x / y",))
    return InfluenceCurve(np.array([1]), np.full((1, 1), np.inf), None, ("x / y",))
