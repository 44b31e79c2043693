"""BIF files: all of pgmpy's, round trips, and what is wrong in bad ones."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from takifugu.cli import program
from takifugu.errors import InvalidFile, TakifuguError
from takifugu.priors import read_prior
from takifugu.priors.bif import parse_bif, read_bif, to_bif
from takifugu.priors.networks import BayesianNetwork
from tests.influence.strategies import networks
from tests.priors.files import example, examples
from tests.raising import raises

COIN = """network coin {
  property "made by hand";
}
// a comment
variable a { type discrete [ 2 ] { heads, tails }; }
variable b { type discrete [ 2 ] { heads, "long tails" }; }
probability ( a ) { table 0.25, 0.75; }
probability ( b | a ) {
  (heads) 1.0, 0.0;
  default 0.5, 0.5;
}
"""


def test_a_small_file_reads_as_it_says() -> None:
    net = parse_bif(COIN)
    assert net.name == "coin" and net.entries == ("a", "b") and net.parents == ((), ("a",))
    assert net.states[1] == ("heads", "long tails")
    assert net.tables[1].tolist() == [[1.0, 0.0], [0.5, 0.5]]


@settings(max_examples=40)
@given(net=networks())
def test_what_is_written_reads_back_the_same(net: BayesianNetwork) -> None:
    again = parse_bif(to_bif(net))
    assert again == net and again.rescaled_rows == 0


@pytest.mark.nightly
@pytest.mark.parametrize("path", examples() or [None], ids=lambda p: p.name if p else "absent")
def test_every_network_of_pgmpy_is_read(path: Path | None) -> None:
    if path is None:
        pytest.skip("pgmpy, which brings the files, is not installed")
    if path.stat().st_size > 100_000 and not os.environ.get("DEEP"):
        pytest.skip("more than 100 kB packed: read in the nightly run, DEEP=1")
    net = read_bif(path)
    assert net == read_prior(path)  # what the commands read
    assert len(net.entries) >= 5
    for table in net.tables:
        assert np.abs(table.sum(axis=-1) - 1).max() <= 1e-9


def test_alarm_has_five_zeros_all_in_one_table() -> None:
    with raises(InvalidFile, field="alarm.bif.gz, line 158", reason="sum"):
        read_bif(example("alarm"), renormalise=False)
    net = read_bif(example("alarm"))
    zeros = {e: int((t == 0).sum()) for e, t in zip(net.entries, net.tables, strict=True)}
    assert {e: n for e, n in zeros.items() if n} == {"PVSAT": 5}
    assert len(net.entries) == 37 and sum(map(len, net.parents)) == 46 and net.rescaled_rows == 6


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("table 0.25, 0.75", "table 0.25, 0.70", 7, "sum"),
        ("table 0.25, 0.75", "table 0.25", 7, "count"),
        ("table 0.25, 0.75", "table 0.25, x", 7, "number"),
        ("table 0.25, 0.75", "table -0.25, 1.25", 7, "number"),
        ("table 0.25, 0.75", "table nan, 1", 7, "number"),
        ("table 0.25, 0.75;", "table 0.25 0.75;", 7, "list"),
        ("[ 2 ] { heads, tails }", "[ 3 ] { heads, tails }", 5, "values"),
        ("( b | a )", "( b | c )", 8, "variable"),
        ("( b | a )", "( b | b )", 8, "parents"),
        ("(heads) 1.0", "(edge) 1.0", 9, "state"),
        ("default 0.5, 0.5;", "", 11, "row"),
        ("default", "table", 10, "table"),
        ("variable b", "variable a", 6, "twice"),
        ("probability ( a )", "improbability ( a )", 7, "block"),
        ('"long tails"', '"long tails', 6, "quote"),
        ("probability ( a ) { table 0.25, 0.75; }", "", 12, "law"),
    ],
)
def test_bad_files_get_one_line_that_names_theirs(
    old: str, new: str, line: int, reason: str
) -> None:
    with raises(InvalidFile, field=f"coin.bif, line {line}", reason=reason) as caught:
        parse_bif(COIN.replace(old, new, 1), source="coin.bif")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["alarm", "sachs", "hepar2", "insurance"])
def test_python_and_the_commands_read_rounded_rows_alike(name: str) -> None:
    path = example(name)
    shown = CliRunner().invoke(program(), ["prior", "show", str(path), "--json"])
    assert shown.exit_code == 0, shown.output
    printed = json.loads(shown.stdout)["rescaled_rows"]
    read = read_prior(path)
    assert isinstance(read, BayesianNetwork)
    assert read_bif(path).rescaled_rows == read.rescaled_rows == printed > 0


@pytest.mark.parametrize("word", ["1e-400", "0.0001e-330", "1_0", "0x1p-1", "１", "1e9999999999"])
def test_what_is_no_number_or_would_read_0_is_refused(word: str) -> None:
    with raises(InvalidFile, field="bif, line 7", reason="number") as caught:
        parse_bif(COIN.replace("0.25, 0.75", f"{word}, 1.0", 1))
    assert "\n" not in str(caught.value)


def test_rows_are_rescaled_within_print_only_and_can_be_refused() -> None:
    text = COIN.replace("0.25, 0.75", "0.333, 0.666")
    with raises(InvalidFile, field="bif, line 7", reason="sum"):
        parse_bif(text, renormalise=False)
    net = parse_bif(text)
    assert net.rescaled_rows == 1 and net.tables[0].sum() == pytest.approx(1, abs=1e-15)
    with raises(InvalidFile, field="bif, line 7", reason="sum"):
        parse_bif(COIN.replace("0.25, 0.75", "0.250, 0.700"))


@settings(max_examples=150)
@given(data=st.data())
def test_damaged_text_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(COIN)))
    cut = data.draw(st.integers(0, 12))
    put = data.draw(st.text(alphabet='{}()[],;|" \n\\/*01.e-ab', max_size=4))
    complaint = ""
    try:
        net = parse_bif(COIN[:at] + put + COIN[at + cut :])
    except TakifuguError as error:
        complaint = str(error)
    else:
        assert net.entries
    assert "\n" not in complaint


def test_files_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    with raises(InvalidFile, field="absent.bif"):
        read_bif(tmp_path / "absent.bif")
    broken = tmp_path / "broken.bif.gz"
    broken.write_bytes(gzip.compress(COIN.encode())[:-9])
    with raises(InvalidFile, field="broken.bif.gz"):
        read_bif(broken)
    whole = tmp_path / "whole.bif.gz"
    whole.write_bytes(gzip.compress(COIN.encode()))
    assert read_bif(whole) == parse_bif(COIN)
