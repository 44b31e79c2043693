"""``takifugu dataset show`` and ``check``: public facts, one-line errors, no protected value."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from takifugu.cli.commands.dataset_command import app
from takifugu.errors import Malformed

DECLARATION = """
title = "A ward"
[source]
kind = "csv"
path = "ward.csv"
[entity]
column = "patient"
[order]
column = "hour"
kind = "number"
ties = "refuse"
[protected.place]
values = ["bed", "theatre"]
outside = "refuse"
[protected.pulse]
bounds = [30, 220]
missing = "drop"
[public.ward]
values = "from the data"
"""
ROWS = """patient,hour,place,pulse,ward,name
1,0,bed,70,A,Ann
1,1,theatre,,A,Ann
2,0,bed,300,B,Bob
"""


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    (tmp_path / "ward.csv").write_text(ROWS)
    path = tmp_path / "ward.toml"
    path.write_text(DECLARATION)
    return path


def test_show_tells_the_guarantee_without_the_data(declared: Path) -> None:
    (declared.parent / "ward.csv").unlink()
    found = CliRunner().invoke(app, ["show", str(declared)])
    assert found.exit_code == 0
    assert found.stdout.startswith("A ward\n\nprotected  place  2 keys\n")
    assert "Not protected" in found.stdout
    facts = json.loads(CliRunner().invoke(app, ["show", str(declared), "--json"]).stdout)
    assert facts["protected"] == ["place", "pulse"] and facts["public"] == ["ward"]


def test_check_tells_public_facts(declared: Path) -> None:
    found = CliRunner().invoke(app, ["check", str(declared), "--json"])
    facts = json.loads(found.stdout)
    assert (facts["rows"], facts["entities"], facts["longest"]) == (3, 2, 2)
    assert facts["keys"] == {"place": 2, "ward": 2}
    shown = CliRunner().invoke(app, ["check", str(declared)]).stdout
    assert shown.startswith("rows      3\nentities  2, the longest of 2 rows\n")
    assert shown.endswith("The data fits its declaration.\n")


@pytest.mark.parametrize("command", ["show", "check"])
def test_columns_that_settle_ties_are_said_to_be_public(declared: Path, command: str) -> None:
    assert "note:" not in CliRunner().invoke(app, [command, str(declared)]).stdout
    declared.write_text(
        DECLARATION.replace('"refuse"\n[protected.place]', '["name"]\n[protected.place]')
    )
    assert "is public (name)" in CliRunner().invoke(app, [command, str(declared)]).stdout


def test_check_refuses_without_telling_the_value(declared: Path) -> None:
    (declared.parent / "ward.csv").write_text(ROWS.replace("theatre", "chapel"))
    found = CliRunner().invoke(app, ["check", str(declared)])
    assert isinstance(found.exception, Malformed) and found.exception.field == "place"
    assert "chapel" not in str(found.exception) and found.stdout == ""
