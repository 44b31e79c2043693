"""A project whose numbers follow a Gaussian process: its distance is part of the policy."""

from fractions import Fraction
from pathlib import Path

import pytest

from takifugu.binding.prior_reading import terms_of
from takifugu.priors import AR1, Gaussian, Secrets, write_prior
from takifugu.project.policy import parse_policy
from takifugu.project.project_cache import keep_terms, kept_terms
from takifugu.translation.translation import Translation
from tests.cli.running import call
from tests.declared import declared

TABLE = "patient,hour,pressure\n" + "".join(
    f"{who},{hour},{value}\n"
    for who, values in (("ann", (118, 121.5, 131, 127)), ("bob", (99, 104, 101)))
    for hour, value in enumerate(values)
)
DECLARED = declared(
    "pressures.csv",
    "patient",
    "hour",
    {"pressure": {"bounds": [40, 240], "step": 0.5, "missing": "refuse"}},
    title="Pressures",
)


def test_a_project_releases_a_mean_under_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pressures.csv").write_text(TABLE)
    (tmp_path / "pressures.toml").write_text(DECLARED)
    write_prior(Gaussian(AR1(0.5), 24, mean=120, variance=100), tmp_path / "process.json")
    assert call(tmp_path, monkeypatch, "init").status == 0
    add = "dataset add pressures pressures.toml --prior process.json"
    refused = call(tmp_path, monkeypatch, *add.split())
    assert refused.status and "--secrets-within" in refused.err
    added = call(tmp_path, monkeypatch, *add.split(), "--secrets-within", "10")
    assert added.status == 0, added.err
    policy = parse_policy((tmp_path / "takifugu.toml").read_text())
    assert policy.datasets["pressures"].within == 10
    shown = call(tmp_path, monkeypatch, "dataset", "show", "pressures", "--json").json()
    assert shown["secrets_within"] == "10"
    for line in ("budget set pressures 2", "prior accept pressures --yes"):
        done = call(tmp_path, monkeypatch, *line.split())
        assert done.status == 0, done.err
    query = ("release", "pressures", "mean", "--epsilon", "1", "--json")
    released = call(tmp_path, monkeypatch, *query).json()
    assert len(released["rows"]) == 1
    assert released["saving"] and released["cost"]["alone"] <= 1
    report = call(tmp_path, monkeypatch, "budget", "show", "pressures")
    assert report.status == 0, report.err


def test_kept_terms_have_their_distance(tmp_path: Path) -> None:
    process = Gaussian(AR1(0.5), 24)
    before = Translation(process, Secrets(within=Fraction(1, 3)))
    after = Translation(process, Secrets(within=2))
    assert terms_of(before) != terms_of(after)
    keep_terms(tmp_path, before)
    found = kept_terms(tmp_path, "pressures", terms_of(before), after)
    assert found is not None and found.secrets == before.secrets and found == before
