r"""The model behind the synthetic check-ins: how one place follows another, country by country.

A user of country c who is at a place of label x goes next to y with probability

.. math:: P_c(x, y) = s_x [x = y] + (1 - s_x) \Big( (1 - h)\, q_c(y) + h\, K(\kappa(x), \kappa(y))
            \frac{q_c(y)}{\sum_{z: \kappa(z) = \kappa(y)} q_c(z)} \Big)

* :math:`s_x`, how sticky a label is, is uniform between two numbers: people check in at the same
  kind of place again. This sets how fast a user's places forget one another, and so how much a
  Pufferfish loss allows per entry.
* :math:`q_c(y) \propto w(r_y)\, e^{g_{cy}}`: a preference w that all share, of Zipf's shape
  :math:`r^{-z}` (the ranking r takes the first label of each of `KINDS`, then the second of each,
  …), tilted by the country's own taste g of mean 0. So the most popular labels differ between
  countries, and the common ones are a poor guess. The first labels of the ranking may form a head:
  as common as one another, and so many times as common as the last of them would be.
* h = 0.35 of the moves follow the kind of place κ: K is `AFFINITY`, from work to food, from a bar
  to a bar or home; within a kind the country's preference chooses.

Users live in one country. A country's share of them falls by a fixed part from each one to the next
(in `DEMONSTRATION` from 6.5 % for the largest to 0.04 %). How active a user is follows a log-normal
law of deviation 1.2 (a few write most of the rows), 125 rows on average. Each sequence begins in
the stationary law. Times are uniform over the 500 days: there is no rhythm of days and weeks.

Why the numbers of `DEMONSTRATION`. The paper's Table 1 ranges from 79 % (ε = 0.5) to 97 % (ε = 5)
of countries whose top label is found. With noise of the same size everywhere, that is a matter of
how the gaps between the top labels, in rows, are spread over countries: sizes over two orders of
magnitude, and gaps of some per cent. docs/tutorial/demonstration.md has the figures of this world
beside the paper's. The reproduction has numbers of its own, calibrated to that table at the paper's
number of rows; with them six labels fill the top of every country, which half a million rows would
hardly tell apart.

One chain fitted to all countries together is not this model: it is what an adversary may believe
who does not know the countries' tastes.

The labels of places are the paper's. The kinds and all numbers are invented.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import zip_longest
from typing import Literal

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.priors.labels import foursquare_labels
from takifugu.priors.markov import stationary_law

INVENTED = json.loads((files("takifugu.synthetic") / "habits.json").read_text(encoding="utf-8"))
KINDS: Mapping[str, tuple[str, ...]] = {k: tuple(v) for k, v in INVENTED["kinds"].items()}
"""Every label, by kind of place, the most popular of each kind first."""
AFFINITY: Mapping[str, tuple[float, ...]] = {k: tuple(v) for k, v in INVENTED["affinity"].items()}
"""The weight with which one kind of place follows another, in the order of `KINDS`."""
COUNTRIES = tuple(INVENTED["countries"])
"""77 countries by ISO code, the largest first; their order of size is invented."""
MODEL = 1  # a new number when the same parameters and generator may give other rows


@dataclass(frozen=True)
class HabitParameters:
    """The numbers of the model.

    Attributes:
        sticky: Between which numbers the probability of staying at a label is uniform.
        zipf: The exponent of the common preference.
        head: How many labels at the top of the ranking are equally preferred by all.
        boost: How many times as much as the ranking has for the last of them.
        taste: The deviation of the countries' tastes.
        taste_law: Their law: normal, or Laplace, under which near ties and clear favourites are
            both more frequent.
        by_kind: What part of the moves follows the kind of place.
        decline: By how much the share of users falls from one country to the next.
        activity: The deviation of the logarithm of a user's activity.
        rows_per_user: On average.
    """

    sticky: tuple[float, float] = (0.02, 0.3)
    zipf: float = 0.75
    head: int = 1
    boost: float = 1.0
    taste: float = 1.0
    taste_law: Literal["normal", "laplace"] = "normal"
    by_kind: float = 0.35
    decline: float = 0.065
    activity: float = 1.2
    rows_per_user: int = 125


DEMONSTRATION = HabitParameters()


def configuration(parameters: HabitParameters) -> tuple[object, ...]:
    """All that a draw is made from beside its generator, as written: nothing that is computed."""
    return MODEL, parameters, dict(KINDS), dict(AFFINITY), COUNTRIES


@dataclass(frozen=True)
class Habits:
    """One draw of the model: everything but the users.

    Attributes:
        parameters: The numbers that it was drawn with.
        countries: ``[country]``: ISO codes, the largest first.
        labels: ``[label]``: the paper's 78 labels.
        shares: ``[country]``: what part of the users lives there.
        sticky: ``[label]``: the probability of staying.
        taste: ``[country, label]``: where a move goes that is not led by the kind of place.
        transition: ``[country, label, label]``: P(second label | first label).
        rest: ``[country, label]``: the law of the first label, which is that of all others.
    """

    parameters: HabitParameters
    countries: tuple[str, ...]
    labels: tuple[str, ...]
    shares: Floats
    sticky: Floats
    taste: Floats
    transition: Floats
    rest: Floats


def draw_habits(*, rng: np.random.Generator, parameters: HabitParameters = DEMONSTRATION) -> Habits:
    """Draw the stickiness of the labels and each country's taste."""
    labels = foursquare_labels().labels
    sticky = rng.uniform(*parameters.sticky, size=len(labels))
    ranking = [label for tier in zip_longest(*KINDS.values()) for label in tier if label]
    rank = np.array([1.0 + ranking.index(label) for label in labels])
    common = np.maximum(rank, parameters.head) ** -parameters.zipf
    common[rank <= parameters.head] *= parameters.boost
    shape = len(COUNTRIES), len(labels)
    if parameters.taste_law == "normal":
        tilt = rng.normal(0.0, parameters.taste, size=shape)
    else:
        tilt = rng.laplace(0.0, parameters.taste / np.sqrt(2), size=shape)
    taste = common * np.exp(tilt)
    taste /= taste.sum(axis=1, keepdims=True)
    transition = sticky[:, None] * np.eye(len(labels)) + (1 - sticky)[:, None] * (
        (1 - parameters.by_kind) * taste[:, None, :]
        + parameters.by_kind * _led_by_kind(taste, labels)
    )
    transition /= transition.sum(axis=2, keepdims=True)
    rest = np.stack([stationary_law(matrix, entry_error=0.0)[0] for matrix in transition])
    shares = (1 - parameters.decline) ** np.arange(len(COUNTRIES))
    return Habits(
        parameters,
        COUNTRIES,
        labels,
        frozen(shares / shares.sum()),
        frozen(sticky),
        frozen(taste),
        frozen(transition),
        frozen(rest),
    )


def _led_by_kind(taste: Floats, labels: tuple[str, ...]) -> Floats:
    """``[country, x, y]``: to a kind as `AFFINITY` says, within it as the taste says."""
    kinds: Mapping[str, int] = {
        label: kind for kind, members in enumerate(KINDS.values()) for label in members
    }
    kind: Integers = np.array([kinds[label] for label in labels])
    within = np.zeros_like(taste)
    for k in range(len(KINDS)):
        of_kind = kind == k
        within[:, of_kind] = taste[:, of_kind] / taste[:, of_kind].sum(axis=1, keepdims=True)
    affinity = np.array(list(AFFINITY.values()))
    led: Floats = affinity[kind][:, kind][None] * within[:, None, :]
    return led
