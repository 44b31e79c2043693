"""Why a Pufferfish loss leaves nothing for a release, and what would leave something: computed."""

from math import inf

from takifugu.errors import TakifuguError
from takifugu.translation.accounting.tabled_translation import TabledTranslation
from takifugu.translation.prior_advice import PriorAdvice, advise, shown
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import uncertainty_shift
from takifugu.visible import four_digits, visible

SECONDS = 3.0  # that are spent on remedies before an error
ANY = "ask for a larger epsilon or a weaker prior"


def why_nothing(
    translation: LossTranslation, epsilon: float
) -> tuple[str, float | PriorAdvice | None]:
    """What to do if ``epsilon`` allows nothing, in words; and for programs.

    For programs: the ε that must be exceeded, or the advice with its remedies; None if neither is
    known.
    """
    if isinstance(translation, TabledTranslation):
        translation = translation.computed
    uncertainty = float(getattr(translation, "uncertainty", 0.0))
    least = uncertainty_shift(uncertainty) if uncertainty else 0.0
    if uncertainty and epsilon <= least:
        told = four_digits(least, "up")
        return (
            f"an uncertainty of {four_digits(uncertainty)} alone counts {told}: ask for an epsilon"
            " well above that, or lower the uncertainty",
            least,
        )
    if not 0 < epsilon < inf:
        return ANY, None
    try:
        advice = advise(translation, epsilon, seconds=SECONDS)
    except TakifuguError:  # nothing can be computed of such a prior
        return ANY, None
    said = []
    for name, p in advice.slow[:3]:
        often = f"is left with probability {four_digits(p)} per step" if p else "is never left"
        said.append(f"state {visible(repr(name))} {often}")
    if advice.remedies:
        listed = "; or ".join(remedy.words for remedy in shown(advice.remedies))
        said.append(f"what would leave some, computed: {listed}")
    return ("; ".join(said) or ANY), advice if said else None
