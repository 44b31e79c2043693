"""The order of the three releases of Tables 1 and 2: one of them is a weak reading of MQM."""

from math import log, sqrt

import numpy as np
import pytest

from takifugu.papers.composition.experiments.experiment import (
    CONTENDERS,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
)
from takifugu.papers.composition.experiments.metrics import scores

FALSE_ALARM = 1e-9


@pytest.mark.statistical
def test_one_histogram_beats_peeling_and_peeling_beats_the_split() -> None:
    """Theory.md, 3.8, on counts that fall like 1/rank over 78 categories, ε = .02."""
    rng = np.random.default_rng(22)
    counts = (3000 / np.arange(1, 79))[None, :].astype(np.int64)
    repetitions = 4_000

    def hit_rate(name: str) -> float:
        mechanism = CONTENDERS[name].release(0.02, 78, 1)
        drawn = mechanism.simulate(counts, repetitions, rng=rng)
        return float(scores(counts, drawn)["hit"].mean())

    # Hoeffding, for each mean of numbers in [0, 1]
    slack = 2 * sqrt(log(2 / FALSE_ALARM) / (2 * repetitions))
    histogram, peeled, split = (hit_rate(name) for name in (MQM_VECTOR, OURS_EXP, MQM_SPLIT))
    assert histogram > peeled + slack
    assert peeled > split + slack
