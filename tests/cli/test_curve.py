"""The commands curve and prior."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from takifugu.cli import program
from takifugu.errors import InvalidFile, TakifuguError
from takifugu.influence.chain.chain_curves import chain_curve
from takifugu.priors import MarkovChain, read_prior


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(program(), [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    path = tmp_path / "ward.json"
    run("prior", "new", "0.9,0.1;0.2,0.8", "-o", path, "--states", "home,ward", "--length", "30")
    return path


def test_curve_writes_json_alone_on_stdout(ward: Path) -> None:
    found = json.loads(run("curve", ward, "--max-b", "3", "--epsilon", "1", "--json"))
    chain = read_prior(ward)
    assert isinstance(chain, MarkovChain)
    expected = chain_curve(chain, max_exposed=3)
    assert [p["b"] for p in found["points"]] == [1, 2, 3, 30]
    assert [p["a"] for p in found["points"]] == expected.pooled().tolist()
    assert all(p["exact"] and p["secret"] for p in found["points"])
    assert found["entries"] == 30 and found["fingerprint"] == chain.fingerprint
    assert found["dp_epsilon"] == float(chain_curve(chain).to_dp(1.0)) > 1.3 * expected.to_dp(1.0)


def test_infinite_points_uncertainty_and_chosen_pairs(tmp_path: Path, ward: Path) -> None:
    stuck = tmp_path / "stuck.json"
    run("prior", "new", "0.5,0.5;0,1", "-o", stuck, "--start", "0.5,0.5", "--length", "4")
    points = json.loads(run("curve", stuck, "--json"))["points"]
    assert points[0]["a"] == "infinity" and points[-1]["a"] == 0
    plain = json.loads(run("curve", ward, "--max-b", "1", "--pairs", "ward/home", "--json"))
    unsure = json.loads(run("curve", ward, "--max-b", "1", "--uncertainty", "0.2", "--json"))
    assert unsure["points"][0]["a"] - plain["points"][0]["a"] == pytest.approx(0.405465, abs=1e-6)
    pairs = tmp_path / "pairs.json"
    pairs.write_text('[["ward", ["home"]]]')
    assert json.loads(run("curve", ward, "--max-b", "1", "--pairs", pairs, "--json")) == plain


@pytest.mark.parametrize(
    ("given", "states"),
    [
        ("1,2", (1, 2)),
        ('["1", "2"]', ("1", "2")),
        ("[1, 2]", (1, 2)),
        ("01,02", ("01", "02")),
        ("home,1", ("home", "1")),
        ('["a, b", "c"]', ("a, b", "c")),
    ],
)
def test_states_are_numbers_if_they_are_written_so(
    tmp_path: Path, given: str, states: tuple[str | int, ...]
) -> None:
    path = tmp_path / "two.json"
    run("prior", "new", "0.9,0.1;0.2,0.8", "-o", path, "--states", given)
    chain = read_prior(path)
    assert isinstance(chain, MarkovChain) and chain.states == states
    assert [type(name) for name in chain.states] == [type(name) for name in states]


def test_curve_is_readable_and_drawn(tmp_path: Path, ward: Path) -> None:
    figure = tmp_path / "curve.png"
    text = run("curve", ward, "--max-b", "4", "--epsilon", "0.5", "--plot", figure)
    assert "30 entries" in text and "ward / home" in text and "per entry" in text
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_fit_smooth_and_show(tmp_path: Path) -> None:
    data, fitted = tmp_path / "visits.csv.gz", tmp_path / "fitted.json"
    rows = [
        "who,when,where",
        *(f"{w},{t},{'ab'[(w + t) % 3 == 0]}" for w in (1, 2) for t in range(9)),
    ]
    with gzip.open(data, "wt") as lines:
        lines.write("\n".join(reversed(rows[1:])).join([rows[0] + "\n", "\n"]))
    options = ("--entity", "who", "--order", "when", "--state", "where", "-o", fitted)
    run("prior", "fit", data, *options)
    chain = read_prior(fitted)
    assert (
        isinstance(chain, MarkovChain)
        and chain.states == ("a", "b")
        and chain.transition[1, 0] == 1
    )
    smooth = tmp_path / "smooth.json"
    run("prior", "smooth", fitted, "-o", smooth, "--other", "elsewhere")
    shown = json.loads(run("prior", "show", smooth, "--json"))
    assert shown["states"] == 3 and shown["zeros"] == 0
    (fitted_on,) = read_prior(smooth).fitted_on
    assert fitted_on.everything and (fitted_on.source, fitted_on.entity) == (
        "csv visits.csv.gz",
        "who",
    )
    run("prior", "fit", data, *options, "--confidence", "0.95")
    assert read_prior(fitted).kind == "interval-markov-chain"
    assert "kind" in run("prior", "show", fitted)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("curve", "{ward}", "--pairs", "ward"), "--pairs"),
        (("curve", "{ward}", "--pairs", "ward/moon"), "secrets"),
        (("curve", "{ward}", "--pairs", "missing.json"), "--pairs"),
        (("curve", "{ward}", "--max-b", "0"), "--max-b"),
        (("curve", "{ward}", "--uncertainty", "1.5"), None),
        (("curve", "{ward}", "--plot", "curve.gif"), "plot"),
        (("curve", "nothing.json"), "nothing.json"),
        (("prior", "new", "0.9,x", "-o", "p.json"), "TRANSITION"),
        (("prior", "new", "0.9,0.2;0.2,0.8", "-o", "p.json"), "transition"),
        (
            ("prior", "new", "0.9,0.1;0.2,0.8", "-o", "no/such/folder/p.json"),
            "no/such/folder/p.json",
        ),
        (
            ("prior", "fit", "nothing.csv", "--entity", "a", "--state", "b", "-o", "p"),
            "nothing.csv",
        ),
        (("prior", "smooth", "nothing.json", "-o", "p.json"), "nothing.json"),
    ],
)
def test_mistakes_are_one_clear_line(
    arguments: tuple[str, ...], field: str | None, ward: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ward.parent)
    words = [str(ward) if a == "{ward}" else a for a in arguments]
    result = CliRunner().invoke(program(), words)
    assert isinstance(result.exception, TakifuguError)
    assert field is None or result.exception.field == field
    assert "\n" not in str(result.exception)
    assert sorted(p.name for p in ward.parent.iterdir()) == ["ward.json"]


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    data = tmp_path / "visits.csv"
    data.write_text("who,where\n1,a\n1,b\n")
    words = ["prior", "fit", str(data), "--entity", "whom", "--state", "where", "-o", "x.json"]
    result = CliRunner().invoke(program(), words)
    assert isinstance(result.exception, InvalidFile) and "'whom'" in result.exception.given


def test_priors_keep_their_content_through_files(ward: Path) -> None:
    chain = read_prior(ward)
    assert isinstance(chain, MarkovChain) and chain.length == 30
