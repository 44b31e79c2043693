"""Small datasets for the tests of the reproduction."""

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.papers.composition.experiments.measurements import Prepared
from takifugu.priors import MarkovChain

STICKY = np.array(
    [[0.7, 0.1, 0.1, 0.1], [0.2, 0.6, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1], [0.25, 0.25, 0.25, 0.25]]
)
FORGETFUL = np.array([[0.4, 0.3, 0.2, 0.1]] * 4)


def prepared(
    transition: Floats = STICKY, *, length: int = 20_000, fingerprint: str = "made up"
) -> Prepared:
    """Three groups of four labels, one of them empty; so long a chain is quickly translated."""
    return Prepared(
        key="small",
        title="A small world",
        family="foursquare",
        origin="simulated",
        chain=MarkovChain(transition, states=("bar", "gym", "home", "park"), length=length),
        group_by="country",
        groups=("AA", "BB", "CC"),
        counts=np.array([[60, 35, 20, 4], [12, 40, 30, 30], [0, 0, 0, 0]]),
        train=np.array([300, 200, 400, 10]),
        facts={},
        notes=(),
        fingerprint=fingerprint,
    )
