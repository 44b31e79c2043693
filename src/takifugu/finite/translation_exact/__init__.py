"""The exact translation of per-entry privacy: the oracle for every faster bound."""

from takifugu.finite.translation_exact.coupling import Coupling
from takifugu.finite.translation_exact.problem import Allowance
from takifugu.finite.translation_exact.translate import (
    Binding,
    ExactTranslation,
    translation_exact,
)

__all__ = ["Allowance", "Binding", "Coupling", "ExactTranslation", "translation_exact"]
