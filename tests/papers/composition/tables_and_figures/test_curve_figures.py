"""The figure of influence curves: what is printed differs from what is right where we say so."""

import numpy as np
import pytest

from takifugu.papers.composition.tables_and_figures import curve_figures as figures


def test_printed_binary_curves_are_never_below_and_sometimes_above() -> None:
    printed, right = figures.binary_curves()
    above = []
    for name, curve in printed.items():
        shown = slice(0, figures.CHAIN_MOST)
        assert (curve.pooled()[shown] >= right[name].pooled()[shown] - 1e-9).all()
        above.append((curve.pooled()[shown] > right[name].pooled()[shown] + 1e-6).any())
    assert any(above) and not all(above)


def test_alarm_has_an_infinite_first_point() -> None:
    path = figures.alarm_file()
    if path is None:
        pytest.skip("ALARM comes with the package pgmpy, which is not installed")
    from takifugu.influence.network.network_curves import network_curve
    from takifugu.priors import Secrets
    from takifugu.priors.bif import read_bif

    alarm = read_bif(path)
    zeros = {e: int((t == 0).sum()) for e, t in zip(alarm.entries, alarm.tables, strict=True)}
    assert {entry: count for entry, count in zeros.items() if count} == {"PVSAT": 5}
    curve = network_curve(alarm, Secrets(entries=("PVSAT", "FIO2", "VENTALV")), largest=2)
    assert np.isinf(curve.pooled()[0])
