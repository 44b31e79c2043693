"""Per-entry DP loss to Pufferfish loss and back, by optimal transport with gains.

Names are imported when they are first used: to import this package compiles nothing, so that the
ledger and the mechanisms can use `LossTranslation` at no cost.
"""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.translation.accounting.allocation import Allocation, allocate
    from takifugu.translation.accounting.composition import (
        Composed,
        Release,
        approximate,
        compose,
        concentrated,
        zcdp_epsilon,
    )
    from takifugu.translation.accounting.tables import (
        TabledTranslation,
        TranslationTable,
        tabulate,
    )
    from takifugu.translation.bounds import LooserTranslation
    from takifugu.translation.certify.linear import LinearQuery
    from takifugu.translation.curve_translation import CurveTranslation
    from takifugu.translation.models.gaussian import (
        GaussianNoiseLoss,
        LinearLoss,
        LinearReleases,
    )
    from takifugu.translation.models.interval_transport import interval_losses
    from takifugu.translation.models.networks import network_losses
    from takifugu.translation.protocol import LossTranslation
    from takifugu.translation.rows.row_translation import RowTranslation
    from takifugu.translation.search.recursion import chain_losses
    from takifugu.translation.search.unbounded_losses import unbounded_losses
    from takifugu.translation.translation import TranslatedLoss, Translation
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "accounting.allocation": ("Allocation", "allocate"),
            "accounting.composition": (
                "Composed",
                "Release",
                "approximate",
                "compose",
                "concentrated",
                "zcdp_epsilon",
            ),
            "accounting.tables": ("TabledTranslation", "TranslationTable", "tabulate"),
            "bounds": ("LooserTranslation",),
            "models.interval_transport": ("interval_losses",),
            "search.recursion": ("chain_losses",),
            "search.unbounded_losses": ("unbounded_losses",),
            "curve_translation": ("CurveTranslation",),
            "certify.linear": ("LinearQuery",),
            "models.gaussian": (
                "GaussianNoiseLoss",
                "LinearLoss",
                "LinearReleases",
            ),
            "models.networks": ("network_losses",),
            "protocol": ("LossTranslation",),
            "rows.row_translation": ("RowTranslation",),
            "translation": ("TranslatedLoss", "Translation"),
        },
    )

__all__ = [
    "Allocation",
    "Composed",
    "CurveTranslation",
    "GaussianNoiseLoss",
    "LinearLoss",
    "LinearQuery",
    "LinearReleases",
    "LooserTranslation",
    "LossTranslation",
    "Release",
    "RowTranslation",
    "TabledTranslation",
    "TranslatedLoss",
    "Translation",
    "TranslationTable",
    "allocate",
    "approximate",
    "chain_losses",
    "compose",
    "concentrated",
    "interval_losses",
    "network_losses",
    "tabulate",
    "unbounded_losses",
    "zcdp_epsilon",
]
