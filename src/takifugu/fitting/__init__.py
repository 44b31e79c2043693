"""Priors fitted where the rows are, and tests of whether they fit."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.fitting.chain_fitting import fit, fit_markov
    from takifugu.fitting.fit_kinds import Estimate, Fitted, fit_prior
    from takifugu.fitting.fit_options import ByEntity, FirstDays, FitOptions
    from takifugu.fitting.moment_fitting import fit_gaussian
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "chain_fitting": (
                "fit",
                "fit_markov",
            ),
            "fit_kinds": (
                "Estimate",
                "Fitted",
                "fit_prior",
            ),
            "fit_options": (
                "ByEntity",
                "FirstDays",
                "FitOptions",
            ),
            "moment_fitting": ("fit_gaussian",),
        },
    )

__all__ = [
    "ByEntity",
    "Estimate",
    "FirstDays",
    "FitOptions",
    "Fitted",
    "fit",
    "fit_gaussian",
    "fit_markov",
    "fit_prior",
]
