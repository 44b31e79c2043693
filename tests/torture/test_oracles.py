"""Oracle fuzzing: a seed of it finds nothing, and each planted fault is found."""

import dataclasses
import json
import re
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.errors import TakifuguError
from takifugu.influence import InfluenceCurve
from takifugu.influence import curve as influence_curve
from takifugu.priors.documents import KINDS
from takifugu.translation import bounds, transport_bound
from takifugu.translation import translation as translations
from tests.extremes import chain_points
from tests.oracles.all_vertices import TooManyMechanisms
from tests.torture.planted import part_report
from torture.oracles import again, curves, finite_worlds, wider_worlds
from torture.oracles.comparison import EXACT, Allowance, Compared, Family, Instance
from torture.oracles.families import BY_NAME, FAMILIES
from torture.oracles.runner import (
    MOST_FINDINGS,
    _TooSlow,
    compared,
    one_instance,
    run_families,
)
from torture.oracles.tally import ENOUGH, Tally
from torture.part_report import Report

pytestmark = pytest.mark.nightly


def ran(folder: Path, names: list[str], limit: int, seed: int = 1) -> Report:
    report = Report("oracles", folder, 60.0, seed)
    families = [BY_NAME[name] for name in names]
    run_families(report, np.random.default_rng(seed), families, limit=limit)
    return report


def found(folder: Path, name: str, most: int) -> Report:
    """The same until something is found, for planted faults."""
    report, rng = Report("oracles", folder, 60.0, 1), np.random.default_rng(1)
    tally = Tally(BY_NAME[name])
    while not report.findings and tally.instances < most:
        one_instance(report, rng, tally)
    return report


def test_a_few_instances_of_every_family_agree(tmp_path: Path) -> None:
    report = ran(tmp_path, [family.name for family in FAMILIES], 1)
    assert report.counts["instances"] == len(FAMILIES)
    assert report.counts["statements compared"] > len(FAMILIES) // 2
    assert not report.findings
    (table,) = report.tables.values()
    assert [row[0] for row in table.rows] == [family.name for family in FAMILIES]


def altered(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """`Translation.explain` with its result changed."""
    original = translations.Translation.explain

    def explain(self: Any, *given: Any, **named: Any) -> Any:
        return change(original(self, *given, **named))

    return explain


def lowered(found: Any) -> Any:
    """A bound that is a millionth too small."""
    return dataclasses.replace(found, pufferfish=found.pufferfish * (1 - 1e-6))


def raised_witness(found: Any) -> Any:
    """A witness that leaks more than it does."""
    leak = dataclasses.replace(found.witness, leak=found.pufferfish * (1 - 1e-9))
    return dataclasses.replace(found, witness=leak)


def nothing(found: Any) -> Any:
    """No loss at all."""
    return dataclasses.replace(found, pufferfish=0.0)


def not_a_number(found: Any) -> Any:
    """A bound that compares with nothing."""
    return dataclasses.replace(found, pufferfish=float("nan"))


@pytest.mark.parametrize("fault", [lowered, nothing, not_a_number])
def test_a_wrong_bound_is_found(
    fault: Callable[[Any], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translations.Translation, "explain", altered(fault))
    report = found(tmp_path, "chain", 40)
    assert report.findings
    assert report.counts["violations"] >= len(report.findings)


def test_a_wrong_witness_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translations.Translation, "explain", altered(raised_witness))
    assert found(tmp_path, "chain of order 2", 100).findings


def test_a_loose_bound_called_exact_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translations, "EXACT", 1.0)
    report = found(tmp_path, "chain of order 2", 100)
    assert "called exact" in report.findings[0].what


def test_too_large_an_allowance_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = translations.Translation.to_dp

    def to_dp(self: Any, *given: Any) -> Any:
        return original(self, *given) * (1 + 1e-6)

    monkeypatch.setattr(translations.Translation, "to_dp", to_dp)
    assert found(tmp_path, "chain", 80).findings


def test_an_error_of_no_kind_of_ours_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_given: Any, **_named: Any) -> Any:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(translations.Translation, "explain", broken)
    report = found(tmp_path, "table", 10)
    assert any("ZeroDivisionError" in finding.what for finding in report.findings)


WRONG, RIGHT = Compared("a", 1.0, 2.0, 2.0), Compared("b", 2.0, 2.0, 2.0)


def made_up(*steps: Compared | Allowance | Exception) -> Family:
    """A family whose instances are told like this, one after the other."""

    def compare(_instance: Instance) -> Any:
        for step in steps:
            if isinstance(step, Exception):
                raise step
            yield step

    return Family("made up", "nothing", lambda _rng: {"any": 1}, compare)


def ran_made_up(folder: Path, limit: int, *steps: Compared | Allowance | Exception) -> Report:
    report = part_report("oracles", folder)
    run_families(report, np.random.default_rng(1), [made_up(*steps)], limit=limit)
    return report


def test_one_instance_with_many_faults_is_told_of_and_kept(tmp_path: Path) -> None:
    many = 2 * MOST_FINDINGS
    report = ran_made_up(tmp_path, 1, *[WRONG] * many)
    (finding,) = report.findings
    assert "made up, a: the upper bound 1.0 is below" in finding.what
    assert f"the first of {many} faults" in finding.what
    assert report.counts["violations"] == many
    assert Path(finding.again.split(maxsplit=3)[-1]).exists()


@pytest.mark.parametrize("end", [TakifuguError("not today"), TooManyMechanisms(), _TooSlow()])
def test_what_was_wrong_before_a_refusal_is_found(end: Exception, tmp_path: Path) -> None:
    report = ran_made_up(tmp_path, 1, WRONG, end)
    (finding,) = report.findings
    assert "the upper bound 1.0 is below" in finding.what
    assert report.counts["violations"] == report.counts["statements compared"] == 1


def test_a_family_that_is_refused_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: Any, **_named: Any) -> Any:
        raise TakifuguError("not today")

    for name in ("explain", "explain_cost", "to_dp", "to_cost"):
        monkeypatch.setattr(translations.Translation, name, refuse)
    assert ran(tmp_path, ["independent entries"], ENOUGH - 1).findings == []
    told = [one.what for one in ran(tmp_path, ["independent entries"], ENOUGH).findings]
    assert told == [
        f"independent entries: {ENOUGH} of {ENOUGH} instances were refused",
        f"independent entries: nothing was compared in {ENOUGH} instances",
    ]


def test_a_family_with_nothing_to_compare_is_found(tmp_path: Path) -> None:
    (finding,) = ran_made_up(tmp_path, ENOUGH).findings
    assert finding.what == f"made up: nothing was compared in {ENOUGH} instances"


def test_allowances_of_nothing_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translations.Translation, "to_dp", lambda *_: 0.0)
    monkeypatch.setattr(translations.Translation, "to_cost", lambda *_: Fraction(0))
    report = ran(tmp_path, ["independent entries"], 220)
    (finding,) = report.findings
    assert re.fullmatch(r"independent entries: (\d+) of \1 allowances were 0", finding.what)
    (table,) = report.tables.values()
    assert table.rows[0][table.columns.index("nothing allowed")] >= ENOUGH  # type: ignore[operator]


def test_what_exact_means_is_not_takifugus_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of a millionth, and the leaks of which a curve may say it, are written twice."""
    assert EXACT == 1e-6 and curves.LEAST_EXACT == 5e-4
    loose = Compared("a", 1.0 + 2e-6, 1.0, 1.0, exact=True)
    monkeypatch.setattr(bounds, "EXACT", 0.5)
    assert "called exact" in "".join(loose.faults(0.0))


def test_a_tiny_leak_that_is_called_exact_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A curve says "exact" of none below its limit; where that is lowered, what it says counts."""
    truth = mpmath.mpf("1e-5")
    curve = InfluenceCurve(
        exposed=np.array([1]), leak=np.array([[1.1e-5]]), entries=3, exact=np.array([[True]])
    )
    (one,) = curves._points(curve, 0, [truth])
    assert one.exact is None and not list(one.faults(0.0))
    monkeypatch.setattr(influence_curve, "LEAST_EXACT", 0.0)
    (one,) = curves._points(curve, 0, [truth])
    assert one.exact and "called exact" in "".join(one.faults(0.0))


def least(bounds: Any) -> Any:
    """The smallest of several bounds, where the largest counts."""
    name = min(bounds, key=lambda key: bounds[key].value)
    return bounds[name].named(name)


def test_a_minimum_in_place_of_a_maximum_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_bound, "worst", least)
    assert found(tmp_path, "one of several priors", 40).findings


def scaled(original: Callable[..., Any], field: str) -> Callable[..., Any]:
    """The same function, with a number of its result a millionth too small."""

    def changed(*given: Any, **named: Any) -> Any:
        found = original(*given, **named)
        return dataclasses.replace(found, **{field: getattr(found, field) * (1 - 1e-6)})

    return changed


@pytest.mark.parametrize(
    ("module", "function", "field", "family"),
    [
        (chain_points, "chain_curve", "leak", "curve: short chains, groups"),
        (curves, "network_curve", "leak", "curve: networks and fields"),
        (finite_worlds, "joint_leakage", "epsilon", "finite mechanisms"),
    ],
)
def test_a_wrong_curve_or_leakage_is_found(
    module: Any,
    function: str,
    field: str,
    family: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, function, scaled(getattr(module, function), field))
    assert found(tmp_path, family, 20).findings


def test_every_kind_of_prior_is_drawn() -> None:
    drawn = {
        "markov-chain": "chain",
        "interval-markov-chain": "chain within intervals",
        "higher-order-chain": "chain of order 2",
        "time-of-day-chain": "chain by hour",
        "gaussian": "curve: truncated Gaussian",
        "gaussian-process": "Gaussian process, noisy sum",
        "bayesian-network": "network",
        "markov-random-field": "field",
        "independent-entries": "independent entries",
        "explicit": "table",
        "product": "independent people",
    }
    assert set(drawn) == set(KINDS)
    assert set(drawn.values()) <= set(BY_NAME)


def test_a_finding_is_compared_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(translations.Translation, "explain", altered(lowered))
        report = found(tmp_path, "chain", 40)
        path = report.findings[0].again.split(maxsplit=3)[-1]
        assert json.loads(Path(path).read_text(encoding="utf-8"))["family"] == "chain"
        patched.setattr(sys, "argv", ["again", path])
        assert again.main() == 1
    assert "WRONG" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["again", path])
    assert again.main() == 0  # mended


ROWS = (
    (0.3918557651537354, 0.011486519702477655, 0.007571883691674438, 0.5890858314521126),
    (0.11045660323125739, 0.3976256334917963, 0.053205049625691093, 0.43871271365125525),
    (0.25, 0.25, 0.25, 0.25),
    (0.5495082308649486, 0.11299778200474238, 0.337493987130309, 0.0),
)
FOUND: dict[str, Instance] = {  # a factor beyond float64 in a search; a truth of 5e-300
    "chain": {
        "world": {"kind": "chain", "length": 2, "rows": ROWS, "start": "stationary"},
        "groups": None,
        "spent": {"kind": "cost", "terms": [["distance", 1, 3, 1], ["any", 1]]},
        "unit": 1000.0,
    },
    "Gaussian process, noisy sum": {
        "kernel": ["5/2", 0.8911377854900417],
        "length": 2,
        "wide": False,
        "steep": 1e-300,
        "deviation": 0.0019133458755311275,
        "width": 4.8697227827682275,
        "within": 3.5451789529116313,
    },
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_once_holds(name: str) -> None:
    family = BY_NAME[name]
    statements = list(compared(family, FOUND[name]))
    assert statements and not [fault for one in statements for fault in one.faults(family.off)]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([0.25, 0.5], [0.5, 0.75]),
        ([0.9, 0.1], [0.9, 0.1]),  # as floats these are 1 and a little more
        ([1.526030657661781e-16, 0.9999999999999999], [1.2e-15, 1.0]),
        ([0.1, 0.2, 0.3], [0.3, 0.3, 0.4]),
    ],
)
def test_a_law_within_bounds_is_one(low: list[float], high: list[float]) -> None:
    """It was not where the sum of the lower bounds is above 1: what was too much was taken off."""
    for order in ([0, 1, 2][: len(low)], [2, 1, 0][-len(low) :]):
        row = wider_worlds._filled(low, high, order)
        assert sum(row) == 1
        for least, value, most in zip(low, row, high, strict=True):
            near = Fraction(least) * (1 - Fraction(1, 2**52)), Fraction(most)
            assert near[0] <= value <= near[1]
