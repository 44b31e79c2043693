"""Priors fitted where the rows are, and tests of whether they fit."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.fitting.chain_fitting import fit as fit
    from takifugu.fitting.chain_fitting import fit_markov as fit_markov
    from takifugu.fitting.fit_kinds import Estimate as Estimate
    from takifugu.fitting.fit_kinds import Fitted as Fitted
    from takifugu.fitting.fit_kinds import fit_prior as fit_prior
    from takifugu.fitting.fit_options import ByEntity as ByEntity
    from takifugu.fitting.fit_options import FirstDays as FirstDays
    from takifugu.fitting.fit_options import FitOptions as FitOptions
    from takifugu.fitting.moment_fitting import fit_gaussian as fit_gaussian
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
