"""The exact translation of per-entry privacy: the oracle for every faster bound."""

from takifugu.finite.translation_exact.exact_translation import (
    ExactTranslation,
    PairAndPrior,
    translation_exact,
)
from takifugu.finite.translation_exact.transport_problem import Allowance

__all__ = ["Allowance", "ExactTranslation", "PairAndPrior", "translation_exact"]
