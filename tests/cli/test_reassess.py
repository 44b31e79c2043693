"""``takifugu reassess``: what was released, added up and translated once."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from takifugu.cli import program
from takifugu.errors import TakifuguError


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    path = tmp_path / "ward.json"
    document = {"kind": "markov-chain", "transition": [[0.9, 0.1], [0.1, 0.9]], "length": 7}
    path.write_text(json.dumps(document))
    return path


def command(*arguments: object) -> str:
    result = CliRunner().invoke(program(), ["reassess", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def facts(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(command(*arguments, "--json"))
    return found


def test_releases_add_up_before_they_are_translated(ward: Path) -> None:
    found = facts(ward, "--released", "0.1", "--released", "0.1")
    assert found["pufferfish_epsilon"] == pytest.approx(0.97324, abs=6e-6)
    assert found["releases"] == 2 and found["pufferfish_delta"] == 0
    assert found["theorem_7"] == pytest.approx(1.4)
    page = command(ward, "--released", "0.1", "--released", "0.1")
    assert page.startswith("2 releases, together DP ε 0.2 on the entry most used\n")
    assert "Theorem 7 of the paper gives 1.4" in page


def test_windows_currencies_and_files(ward: Path, tmp_path: Path) -> None:
    path = tmp_path / "released.json"
    path.write_text('["0.1", "0.2,1e-7@2:5", "rho=0.001"]')
    found = facts(ward, "--released", path, "--delta", 1e-5)
    assert found["releases"] == 3 and len(found["dp_epsilon"]) == 7
    assert 0 < found["pufferfish_delta"] <= 1e-5 and found["theorem_7"] is None
    assert found["dp_epsilon"][3] - found["dp_epsilon"][0] == pytest.approx(0.2)
    assert found["lower_bound"] < found["pufferfish_epsilon"]
    assert "δ =" in command(ward, "--released", path, "--delta", 1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--released", "none.json"),
        ("--released", "lots"),
        ("--released", "0.1@5:99"),
        ("--released", "rho=0.1"),
        ("--released", "0.1", "--method", "exact"),
    ],
)
def test_a_slip_is_refused(ward: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(TakifuguError):
        command(ward, *arguments)
