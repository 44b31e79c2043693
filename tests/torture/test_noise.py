"""Noise: a small seed of the part, and half of the noise, which it must find.

Each bound of a true charge is wrong with a probability that adds up to at most 1e-9 over the seed
(`torture.noise.audits.error_of`). With half of the noise a query as simple as a count is found by
4,000 runs of either side: its bound is then about 2.9, 1.4 times the charge; it would take a
deviation of more than 10 of its standard deviations to miss.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torture.noise.leakage
from takifugu.costs.losses import Concentrated
from takifugu.ledger import Charge
from takifugu.ledger.charge_values import loss_body
from takifugu.session import Session
from takifugu.session.query_kinds import KINDS
from tests.torture.planted import part_report
from torture.noise import ALL_CASES, audits, run
from torture.noise.cases import CASES, Case
from torture.noise.half_noise import half_noise
from torture.noise.leakage import Charged, leakage
from torture.noise.trials import run_trials, unexplained

pytestmark = pytest.mark.nightly

CHOSEN = {
    *("integer-laplace", "integer-gaussian", "laplace-top-k", "gaussian-top-k"),
    *("permute-and-flip", "exponential", "bounded-sum", "bounded-mean"),
}  # kinds of mechanism that queries of a session are answered by


def first_of(kind: str) -> Case:
    return next(case for case in CASES if case.kind == kind and not case.alone)


def test_every_kind_of_query_and_every_mechanism_that_answers_one_is_there() -> None:
    assert {case.kind for case in CASES} == set(KINDS)
    assert {case.mechanism for case in CASES} == CHOSEN
    assert len({(case.name, case.mechanism, str(case.query)) for case in ALL_CASES}) == len(
        ALL_CASES
    )


@pytest.mark.statistical
def test_no_kind_of_query_leaks_more_than_it_is_charged(tmp_path: Path) -> None:
    report = part_report("noise", tmp_path)
    run(report, np.random.default_rng(5), cases=[*map(first_of, KINDS)], runs=250, turns=1)
    assert report.findings == []
    assert report.counts["bounds"] == len(KINDS)
    assert report.counts["runs"] == 500 * len(KINDS)
    (table,) = report.tables.values()
    assert len(table.rows) == len(KINDS)
    audited = [row[1] for row in table.rows]
    assert audited == [first_of(kind).mechanism for kind in KINDS]


@pytest.mark.statistical
def test_half_of_the_noise_is_found(tmp_path: Path) -> None:
    report = part_report("noise", tmp_path)
    case = first_of("count")
    run(report, np.random.default_rng(6), cases=[case], runs=4_000, turns=1)
    assert report.findings == []
    assert report.counts["planted faults found"] == 1
    with half_noise():  # what would be told if the noise of the package were half of what it says
        run(report, np.random.default_rng(7), cases=[case], runs=4_000, turns=1)
    (finding,) = report.findings
    assert "count by integer-laplace leaks" in finding.what
    assert (tmp_path / "noise-count-integer-laplace.json").exists()


def test_half_of_the_noise_changes_no_plan_and_no_charge() -> None:
    for kind in KINDS:
        case = first_of(kind)
        datasets = case.datasets(2, np.random.default_rng(8))
        plain = run_trials(case.setting, case.query, datasets)
        with half_noise():
            weak = run_trials(case.setting, case.query, datasets)
        assert weak.plan.mechanism == plain.plan.mechanism
        assert weak.plan.charge.loss == plain.plan.charge.loss


def test_a_charge_that_is_dropped_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "spent", lambda _: 1.9)  # of 2
    report = part_report("noise", tmp_path)
    cases = [case for case in CASES if case.name == "count"]  # in ε and in ρ
    run(report, np.random.default_rng(9), cases=cases, runs=40, turns=1)
    (finding,) = report.findings
    assert "count by integer-laplace: 1 ledgers count less" in finding.what


def test_a_charge_that_is_written_too_small_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Charge.body

    def body(self: Charge) -> dict[str, Any]:
        written = original(self)
        if isinstance(self.loss, Concentrated):
            written = {**written, "loss": loss_body(Concentrated(self.loss.rho / 1_000))}
        return written

    cases = [case for case in CASES if case.name == "count" and not case.alone]  # in ε and in ρ
    report = part_report("noise", tmp_path)
    run(report, np.random.default_rng(9), cases=cases, runs=40, turns=1)
    assert report.findings == []
    monkeypatch.setattr(Charge, "body", body)
    run(report, np.random.default_rng(9), cases=cases, runs=40, turns=1)
    (finding,) = report.findings
    assert "count by integer-gaussian: 1 ledgers hold other losses" in finding.what


def test_an_auditor_that_finds_nothing_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torture.noise.leakage, "epsilon_below", lambda *_, **__: 0.0)
    report = part_report("noise", tmp_path)
    case = first_of("count")
    run(report, np.random.default_rng(9), cases=[case], runs=40, turns=1)
    assert report.findings == [] and "give it more minutes" in report.remarks[-1]
    monkeypatch.setattr(audits, "ENOUGH", 40)
    run(report, np.random.default_rng(9), cases=[case], runs=40, turns=1)
    (finding,) = report.findings
    assert "half of the noise was not found with 40 runs of either side" in finding.what


def test_a_group_after_another_is_a_release_each() -> None:
    case = first_of("count")
    trials = run_trials(
        case.setting, case.query, case.datasets(4, np.random.default_rng(9)), alone=True
    )
    assert len(trials.outputs) == 4 and not trials.underpaid
    assert all(len(one) == 1 for one in trials.outputs)


def test_what_is_shown_and_was_not_drawn_is_noticed() -> None:
    assert unexplained([(1,), (2,), (1,)], [(1, "a"), (2, "a"), (1, "a")]) == 0
    assert unexplained([(1,), (2,), (1,)], [(1, "a"), (2, "a"), (1, "b")]) == 1


def test_a_leak_is_bounded_in_the_currency_of_its_charge() -> None:
    """Two coins: heads with probability .9 and .1; ε is log 9, and ρ at least their KL."""
    rng = np.random.default_rng(10)
    first, second = ((rng.random(8_000) < p).tolist() for p in (0.9, 0.1))
    pure = leakage(first, second, Charged("epsilon", 2.0), error=1e-12)
    assert 1.8 < pure.lower < np.log(9) and not pure.too_much
    rho = leakage(first, second, Charged("rho", 1.0), error=1e-12)
    assert 1.3 < rho.lower < 0.8 * np.log(9) and rho.too_much
