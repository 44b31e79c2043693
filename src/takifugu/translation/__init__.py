"""Per-entry DP loss to Pufferfish loss and back, by optimal transport with gains.

Names are imported when they are first used: to import this package compiles nothing, so that the
ledger and the mechanisms can use `LossTranslation` at no cost.
"""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.translation.accounting.allocation import Allocation as Allocation
    from takifugu.translation.accounting.allocation import allocate as allocate
    from takifugu.translation.accounting.composition import Composed as Composed
    from takifugu.translation.accounting.composition import Release as Release
    from takifugu.translation.accounting.composition import approximate as approximate
    from takifugu.translation.accounting.composition import compose as compose
    from takifugu.translation.accounting.composition import concentrated as concentrated
    from takifugu.translation.accounting.composition import zcdp_epsilon as zcdp_epsilon
    from takifugu.translation.accounting.tables import TabledTranslation as TabledTranslation
    from takifugu.translation.accounting.tables import TranslationTable as TranslationTable
    from takifugu.translation.accounting.tables import tabulate as tabulate
    from takifugu.translation.bounds import LooserTranslation as LooserTranslation
    from takifugu.translation.certify.linear import LinearQuery as LinearQuery
    from takifugu.translation.curve_translation import CurveTranslation as CurveTranslation
    from takifugu.translation.models.gaussian import GaussianNoiseLoss as GaussianNoiseLoss
    from takifugu.translation.models.gaussian import LinearLoss as LinearLoss
    from takifugu.translation.models.gaussian import LinearReleases as LinearReleases
    from takifugu.translation.models.interval_transport import interval_losses as interval_losses
    from takifugu.translation.models.networks import network_losses as network_losses
    from takifugu.translation.protocol import LossTranslation as LossTranslation
    from takifugu.translation.rows.row_translation import RowTranslation as RowTranslation
    from takifugu.translation.search.fixed_point import unbounded_losses as unbounded_losses
    from takifugu.translation.search.recursion import chain_losses as chain_losses
    from takifugu.translation.translation import TranslatedLoss as TranslatedLoss
    from takifugu.translation.translation import Translation as Translation
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
