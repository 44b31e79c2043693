"""Every family of priors works from its file alone, in the commands and in a project."""

from pathlib import Path

import numpy as np
import pytest

from takifugu.priors import Gaussian, HigherOrderChain, Prior, write_prior
from tests.cli.running import call
from tests.priors.families import PRIORS
from tests.session.study import STATES, STEPS, write_data


@pytest.mark.parametrize("prior", PRIORS, ids=lambda prior: prior.kind)
def test_commands_read_every_family(
    prior: Prior, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_prior(prior, tmp_path / "prior.json")
    shown = call(tmp_path, monkeypatch, "prior", "show", "prior.json", "--json").json()
    assert shown["kind"] == prior.kind and shown["fingerprint"] == prior.fingerprint
    near = ("--secrets-within", "1") if isinstance(prior, Gaussian) else ()
    options = ("--max-b", "2", "--json", *near)
    curve = call(tmp_path, monkeypatch, "curve", "prior.json", *options).json()
    assert curve["entries"] == prior.size
    options = ("--dp", "0.1", "--json", *near)
    found = call(tmp_path, monkeypatch, "translate", "prior.json", *options).json()
    assert 0 < found["pufferfish_epsilon"] <= 0.1 * (prior.size or 0) + 1e-9


@pytest.mark.nightly
def test_a_project_releases_under_a_higher_order_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.array([[[0.7, 0.3], [0.4, 0.6]], [[0.6, 0.4], [0.3, 0.7]]])
    write_prior(HigherOrderChain(table, STATES, STEPS), tmp_path / "windows.json")
    write_data(tmp_path)
    for line in ("init", "dataset add stays stays.toml"):
        assert call(tmp_path, monkeypatch, *line.split()).status == 0
    policy = tmp_path / "takifugu.toml"
    policy.write_text(policy.read_text() + '\n[[dataset.stays.prior]]\nfile = "windows.json"\n')
    for line in ("budget set stays 2", "prior accept stays --yes"):
        done = call(tmp_path, monkeypatch, *line.split())
        assert done.status == 0, done.err
    query = ("stays", "histogram", "--epsilon", "1", "--json")
    released = call(tmp_path, monkeypatch, "release", *query).json()
    assert len(released["rows"]) == len(STATES)
    assert call(tmp_path, monkeypatch, "release", "stays", "histogram", "--epsilon", "2").status
