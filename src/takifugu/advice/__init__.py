"""Whether a prior suits a budget, what makes it expensive, and which changes would help."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.advice.prior_advice import FitEvidence as FitEvidence
    from takifugu.advice.prior_advice import PriorAdvice as PriorAdvice
    from takifugu.advice.prior_advice import advise as advise
    from takifugu.advice.prior_advice import why_nothing as why_nothing
    from takifugu.advice.remedies import Remedy as Remedy
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
