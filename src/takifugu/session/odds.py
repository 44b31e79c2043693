r"""What a Pufferfish loss means for one entry: how far it can move somebody's opinion.

Somebody who holds one of the priors, and for whom two values of a secret are as likely as each
other, sees a release. Their odds change by the ratio of the probabilities of what they saw under
the two values. A loss of :math:`\varepsilon` bounds that ratio by :math:`e^\varepsilon`, whatever
they saw: from 50 : 50 they come to at most :math:`e^\varepsilon : 1`.

*With a δ* the ratio may be larger, and "except with probability δ" is not what
:math:`(\varepsilon, \delta)` says: for Gaussian noise the ratio is above :math:`e^\varepsilon` with
a probability that is larger than δ. What follows is this. Let S hold the outcomes whose ratio
P/Q is above :math:`e^\varepsilon / (1 - 1/c)`, for a :math:`c > 1`. Then
:math:`P(S) \le e^\varepsilon Q(S) + \delta \le (1 - 1/c)\,P(S) + \delta`, and so
:math:`P(S) \le c\,\delta`. That is one side. An opinion may also be moved the other way, to the
value that is false: let S′ hold the outcomes whose ratio Q/P is as large. The guarantee holds in
both directions, so that :math:`Q(S') \le c\,\delta` too, and
:math:`P(S') \le (1 - 1/c)\,e^{-\varepsilon} Q(S') \le (c - 1)\,\delta`. Both sides together,
whichever value is true: :math:`P(S \cup S') \le (2c - 1)\,\delta`. With c = 10: the odds are at
most :math:`\tfrac{10}{9} e^\varepsilon : 1` either way, except with probability at most 20 δ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from math import exp, floor, isnan, log, log10
from typing import Any

from takifugu._core.rounding import float_up
from takifugu.errors import UnsoundRequest
from takifugu.visible import four_digits

TAIL = 10  # c: odds hold except with c times δ on either side
MARGIN = 1e-12  # more than the rounding of an exponential and a division, in parts
CERTAIN = 1e-6  # a smaller side below this is not written out
MOST_DECIMALS = 6  # of a percentage


@dataclass(frozen=True)
class PosteriorOdds:
    """How far a loss can move somebody who thought two values of a secret equally likely.

    Attributes:
        epsilon: The Pufferfish ε.
        delta: The Pufferfish δ.
        against: The least probability that can be left to the value that seems less likely, be it
            the true one or the other, rounded down.
        beyond: The probability, at most, with which it is less than that, whichever value is
            true; 0 without a δ.
    """

    epsilon: float
    delta: Fraction
    against: float
    beyond: float

    @property
    def ratio(self) -> str:
        """The odds as ``"73 : 27"``, in percent, the larger side rounded up."""
        if not self.against > CERTAIN:
            return "100 : 0"
        small = self._percent
        return f"{_plain(100 - small)} : {_plain(small)}"

    @property
    def _percent(self) -> Decimal:
        """The smaller side in percent: two digits of it, and two of how far it is from 50."""
        exact = Decimal(self.against * 100)
        first = [floor(log10(x)) for x in (self.against * 100, 50 - self.against * 100) if x > 0]
        decimals = min(max(0, 1 - min(first)), MOST_DECIMALS)
        return exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_FLOOR)

    @property
    def outcome(self) -> str:
        """Where they can come to."""
        if not self.against > CERTAIN:
            return "can become certain"
        text = f"can come to at most {self.ratio}"
        if self.beyond > 0:
            text += f", except with probability at most {four_digits(self.beyond, 'up')}"
        return text

    @property
    def words(self) -> str:
        """One sentence, without its full stop."""
        return f"someone who thought 50 : 50 {self.outcome}"

    def describe(self) -> Mapping[str, Any]:
        """Ready to be written as JSON; null for an ε that is infinite."""
        return {
            "epsilon": or_null(self.epsilon),
            "delta": str(self.delta),
            "from": 0.5,
            "to_at_most": float_up(1 - Fraction(self.against)),
            "except_with_probability": self.beyond,
            "words": self.words,
        }


def or_null(loss: float | None) -> float | None:
    """A loss as JSON: null for what is infinite."""
    return None if loss is None or loss == float("inf") else loss


def odds(epsilon: float | Fraction | Decimal, delta: float | Fraction = 0) -> PosteriorOdds:
    """How far a Pufferfish loss can move somebody; the odds rounded up.

    >>> odds(1).ratio, odds(0.1).ratio, odds(5).ratio
    ('74 : 26', '52.5 : 47.5', '99.34 : 0.66')
    """
    loss = float_up(Fraction(epsilon)) if float(epsilon) < float("inf") else float(epsilon)
    room = Fraction(delta)
    if isnan(loss) or not loss >= 0 or not 0 <= room <= 1:
        raise UnsoundRequest(
            f"odds are for an epsilon of 0 or more and a delta from 0 to 1, not {loss!r} and"
            f" {float(room)!r}",
            field="epsilon",
        )
    beyond = float_up(2 * TAIL * room)
    if beyond >= 1:  # any outcome may be one that is excepted
        return PosteriorOdds(loss, room, 0.0, beyond)
    widened = loss + (log(TAIL / (TAIL - 1)) * (1 + MARGIN) if room else 0.0)
    against = 1 / (1 + exp(widened)) * (1 - MARGIN) if widened < 700 else 0.0
    if widened == 0:
        against = 0.5  # exactly: nothing moves
    return PosteriorOdds(loss, room, against, beyond)


def odds_words(epsilon: float | Fraction | Decimal, delta: float | Fraction = 0) -> str:
    """The sentence for plans, results, budgets and pages.

    >>> odds_words(0.99)
    'someone who thought 50 : 50 can come to at most 73 : 27'
    >>> odds_words(1, Fraction(1, 10**6))
    'someone who thought 50 : 50 can come to at most 76 : 24, except with probability at most 2e-5'
    """
    return odds(epsilon, delta).words


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
