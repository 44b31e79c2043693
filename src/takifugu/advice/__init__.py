"""Whether a prior suits a budget, what makes it expensive, and which changes would help."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.advice.prior_advice import FitEvidence, PriorAdvice, advise, why_nothing
    from takifugu.advice.remedies import Remedy
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "prior_advice": ("FitEvidence", "PriorAdvice", "advise", "why_nothing"),
            "remedies": ("Remedy",),
        },
    )

__all__ = ["FitEvidence", "PriorAdvice", "Remedy", "advise", "why_nothing"]
