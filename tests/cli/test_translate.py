"""``takifugu translate``: what it prints, what it writes and what it refuses."""

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from takifugu.cli import program
from takifugu.cli.shared_options import InvalidOption
from takifugu.costs.losses import Approximate, Concentrated, Pure
from takifugu.errors import InvalidFile, TakifuguError
from takifugu.mechanisms.planner import price
from takifugu.priors import (
    BayesianNetwork,
    MarkovChain,
    MarkovRandomField,
    TruncatedGaussian,
    write_prior,
)

WARD = {
    "kind": "markov-chain",
    "states": ["home", "ward"],
    "transition": [[0.9, 0.1], [0.1, 0.9]],
    "length": 7,
}


@pytest.fixture
def ward(tmp_path: Path) -> Path:
    path = tmp_path / "ward.json"
    path.write_text(json.dumps(WARD))
    return path


def command(*arguments: object) -> Any:
    result = CliRunner().invoke(program(), ["translate", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def facts(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(command(*arguments, "--json").stdout)
    return found


def test_dp_to_pufferfish(ward: Path) -> None:
    found = facts(ward, "--dp", 0.2)
    assert found["pufferfish_epsilon"] == pytest.approx(0.97324, abs=6e-6)
    assert found["dp_epsilon"] == 0.2 and found["method"] == "transport"
    assert found["lower_bound"] == pytest.approx(found["pufferfish_epsilon"], abs=1e-7)
    assert set(found["by_method"]) == {"transport", "curve", "group"}
    assert found["binding"] == {"entry": 3, "left": "ward", "right": "home"}
    page = command(ward, "--dp", 0.2).stdout
    assert page.startswith("DP ε 0.2 per entry is Pufferfish ε 0.9733\n")


def test_a_bound_is_printed_as_the_same_number_wherever_it_stands(ward: Path) -> None:
    """A loss is rounded up and an allowance down, also in the list of methods."""
    given = ",".join(str(k / 20) for k in range(1, 41))
    headline = re.compile(r"^DP ε (\S+) per entry is Pufferfish ε (\S+)$", re.MULTILINE)
    by_method = re.compile(r"^  by (\w+) \((.*)\)$", re.MULTILINE)
    for option, place in (("--dp", 1), ("--pufferfish", 0)):
        page = command(ward, option, given).stdout
        methods = [dict(part.split(" ") for part in parts.split(", "))[name]
                   for name, parts in by_method.findall(page)]  # fmt: skip
        assert [found[place] for found in headline.findall(page)] == methods
        assert len(methods) == 40


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Pure("0.12341"), "ε = 0.1235"),
        (Approximate("0.12341", "0.0000123401"), "(ε, δ) = (0.1235, 1.235e-5)"),
        (Concentrated("0.12341"), "ρ = 0.1235"),
    ],
)
def test_a_loss_in_words_is_rounded_up(loss: Any, words: str) -> None:
    assert price(loss) == words


def test_pufferfish_to_dp_and_back(ward: Path) -> None:
    found = facts(ward, "--pufferfish", 1)
    assert found["pufferfish_epsilon"] == 1
    assert 0.142 < Fraction(found["by_method"]["group"]) <= Fraction(1, 7)
    assert found["by_method"]["transport"] == found["dp_epsilon"]
    assert facts(ward, "--dp", found["dp_epsilon"])["pufferfish_epsilon"] <= 1
    curve = facts(ward, "--pufferfish", 1, "--method", "curve")
    assert curve["dp_epsilon"] == found["by_method"]["curve"] and curve["method"] == "curve"


def test_several_numbers_make_lists(ward: Path) -> None:
    found = facts(ward, "--dp", "0.2,1")
    assert found["pufferfish_epsilon"] == pytest.approx([0.97324, 4.12131], abs=6e-6)
    assert len(found["by_method"]["group"]) == len(found["binding"]) == 2
    assert command(ward, "--dp", "0.2,1").stdout.count("some mechanism leaks") == 2


def test_a_profile_is_told_entry_by_entry(ward: Path, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text("[0.1, 0.1, 0.1, 0, 0, 0.3, 0.3]")
    found = facts(ward, "--profile", profile)
    assert len(found["by_entry"]) == len(found["dp_epsilon"]) == 7
    assert max(found["by_entry"]) == found["pufferfish_epsilon"]
    assert "a profile of 7 ε up to 0.3" in command(ward, "--profile", profile).stdout


def test_delta_uncertainty_and_secrets(ward: Path) -> None:
    spare = facts(ward, "--dp", 0.2, "--delta", 1e-6)
    assert spare["pufferfish_delta"] == pytest.approx(7.44e-6, rel=1e-2)
    sure, unsure = (facts(ward, "--dp", 0.5, "--uncertainty", r) for r in (0, 0.2))
    assert unsure["by_method"]["transport"] - sure["by_method"]["transport"] == pytest.approx(
        0.405465, abs=1e-6
    )
    end = facts(ward, "--dp", 0.2, "--entries", "0", "--pairs", "ward/home")
    assert end["pufferfish_epsilon"] < 0.97 and end["binding"]["entry"] == 0


def test_infinity_is_a_word_and_what_does_not_apply_is_null(tmp_path: Path) -> None:
    unbounded = tmp_path / "unbounded.json"
    unbounded.write_text(json.dumps({**WARD, "length": None}))
    assert facts(unbounded, "--dp", 0.1)["by_method"]["group"] == "infinity"
    smooth = tmp_path / "gaussian.json"
    write_prior(TruncatedGaussian.process(3, length=0.5, bound=5.0, width=0.1), smooth)
    assert facts(smooth, "--dp", 0.1)["by_method"]["transport"] is None


def test_a_looser_answer_says_why_on_stderr(tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "begins.json"
    write_prior(MarkovChain(np.array(WARD["transition"]), start=np.array([1.0, 0.0])), path)
    result = command(path, "--dp", 0.1, "--json")
    assert "takifugu: translated by the influence curve" in result.stderr
    assert json.loads(result.stdout)["method"] == "curve"


def test_a_table_is_made_once_and_a_stale_one_is_refused(ward: Path, tmp_path: Path) -> None:
    first = facts(ward, "--dp", 0.2, "--table")
    assert 0.97323 <= first["pufferfish_epsilon"] <= 0.97324 * 1.021
    table = tmp_path / first["table"]
    stamp = table.stat().st_mtime_ns
    again = facts(ward, "--pufferfish", 1, "--table")
    assert again["dp_epsilon"] == pytest.approx(0.2055, rel=0.022)
    assert table.stat().st_mtime_ns == stamp
    ward.write_text(json.dumps({**WARD, "length": 8}))
    with pytest.raises(InvalidFile):
        command(ward, "--dp", 0.2, "--table")


def test_a_figure_is_drawn(ward: Path, tmp_path: Path) -> None:
    command(ward, "--dp", 0.2, "--plot", tmp_path / "t.svg")
    assert "<svg" in (tmp_path / "t.svg").read_text()


@pytest.mark.parametrize(
    "asked",
    [("--dp", "0.2"), ("--dp", "0.01,5"), ("--dp", "0"), ("--pufferfish", "0.3,30"), "profile"],
)
def test_a_figure_reaches_everything_that_was_asked(
    asked: Any, ward: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("takifugu.reports.save", lambda figure, _: drawn.append(figure))
    if asked == "profile":
        (tmp_path / "profile.json").write_text("[3, 0, 0, 0, 0, 0, 4]")
        asked = ("--profile", tmp_path / "profile.json")
    told = facts(ward, *asked, "--plot", tmp_path / "t.svg")
    (right, high) = (drawn[0].axes[0].get_xlim()[1], drawn[0].axes[0].get_ylim()[1])
    assert np.max(told["dp_epsilon"]) <= right and np.max(told["pufferfish_epsilon"]) <= high
    (marks,) = [line for line in drawn[0].axes[0].lines if line.get_label() == "translated"]
    assert set(marks.get_ydata()) == set(np.ravel(told["pufferfish_epsilon"]))
    best = max(line.get_xdata()[-1] for line in drawn[0].axes[0].lines)
    assert best == right  # the lines end where the axis does


EXTREMES: dict[str, Any] = {
    "weights": MarkovRandomField(
        ("a", "b", "c", "d"),
        ((0, 1),) * 4,
        (np.ones(2),) * 4,
        (("a", "b"), ("a", "c"), ("a", "d")),
        (np.array([[1e150, 1e-150], [1e-150, 1e150]]),) * 3,
    ),
    "couplings": MarkovRandomField.ising(
        dict.fromkeys("abcd", -300.0), dict.fromkeys([("a", "b"), ("b", "c"), ("a", "c")], 300.0)
    ),
    "gaussian": TruncatedGaussian.process(3, length=1e-310, bound=5, width=1e-12),
    "wide": TruncatedGaussian(np.eye(2) * 1e-280, 1e150, 1e-150),
    "network": BayesianNetwork(
        ("a", "b"),
        ((0, 1),) * 2,
        ((), ("a",)),
        (np.array([1, 1e-150]), np.array([[1, 1e-150], [1e-150, 1]])),
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("asked", [("--dp", "0.1,1e3,1e300"), ("--pufferfish", "1e-300,1")])
def test_extreme_priors_are_answered_or_refused_without_a_warning(
    name: str, asked: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "prior.json"
    write_prior(EXTREMES[name], path)  # a warning is an error here
    result = CliRunner().invoke(program(), ["translate", str(path), *asked, "--json"])
    if result.exit_code:
        assert isinstance(result.exception, TakifuguError)
        return
    told = json.loads(result.stdout)
    for dp, loss in zip(told["dp_epsilon"], told["pufferfish_epsilon"], strict=True):
        assert loss == "infinity" or loss >= dp


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--dp", "0.1", "--pufferfish", "1"),
        ("--dp", "much"),
        ("--dp", "-1"),
        ("--dp", "inf"),
        ("--dp", "0.1", "--method", "exact"),
        ("--pufferfish", "1", "--delta", "0.1"),
        ("--profile", "none.json"),
        ("--dp", "0.1", "--uncertainty", "1"),
        ("--dp", "0.1", "--pairs", "ward/moon"),
        ("--dp", "0.1", "--plot", "t.xyz"),
    ],
)
def test_a_slip_is_refused(ward: Path, arguments: tuple[str, ...]) -> None:
    with pytest.raises(TakifuguError):
        command(ward, *arguments)


PLACES = {
    "kind": "markov-chain",
    "states": ["home", "ward", "clinic"],
    "transition": [[0.62, 0.28, 0.10], [0.05, 0.75, 0.20], [0.33, 0.07, 0.60]],
    "start": [0.5, 0.2, 0.3],
    "length": 5,
}
SUM = [["3/10", ["member", ["home"]]], ["3/10", ["member", ["ward"]]], ["1/10", ["any"]]]


@pytest.fixture
def places(tmp_path: Path) -> Path:
    path = tmp_path / "places.json"
    path.write_text(json.dumps(PLACES))
    return path


def test_a_count_of_labels_is_translated_by_value(places: Path) -> None:
    found = facts(places, "--dp", 0.5, "--values", "home")
    assert (
        1.22045 <= found["pufferfish_epsilon"] <= 1.2431
    )  # the program over all datasets: 1.22046
    assert 1.47057 <= found["without_values"] <= 1.4987
    assert found["cost"] == [["1/2", ["member", ["home"]]]]
    assert found["gap"] == found["pufferfish_epsilon"] - found["lower_bound"] >= 0
    assert found["lower_bound"] > 1.1
    page = command(places, "--dp", 0.5, "--values", "home").stdout
    assert page.startswith("a count of home at ε 0.5 per entry is Pufferfish ε 1.2")
    assert "without values 1.4" in page
    several = facts(places, "--dp", "0.2,0.5", "--values", "home,ward")
    assert len(several["pufferfish_epsilon"]) == 2 and several["dp_epsilon"] == [0.2, 0.5]
    assert (
        command(places, "--dp", "0.2,0.5", "--values", "home").stdout.count("a count of home") == 2
    )


def test_a_pufferfish_loss_allows_a_count_more(places: Path) -> None:
    found = facts(places, "--pufferfish", 1, "--values", "home")
    assert found["dp_epsilon"] > 1.15 * found["dp_epsilon_without_values"]
    assert found["pufferfish_epsilon"] == 1
    back = facts(places, "--dp", repr(found["dp_epsilon"]), "--values", "home")
    assert 0.99 < back["pufferfish_epsilon"] <= 1
    assert "times the noise" in command(places, "--pufferfish", 1, "--values", "home").stdout


@pytest.mark.nightly
def test_a_cost_and_a_profile_of_costs_are_read_from_a_file(places: Path, tmp_path: Path) -> None:
    path = tmp_path / "cost.json"
    path.write_text(json.dumps(SUM))
    found = facts(places, "--cost", path)
    assert 1.71511 <= found["pufferfish_epsilon"] <= 1.7812
    assert 2.0382 <= found["without_values"] <= 2.04
    half, none = [["1/2", ["member", ["home"]]]], [["1/2", ["member", ["ward"]]]]
    both = [["1/2", ["member", ["home"]]], ["1/2", ["member", ["ward"]]]]
    path.write_text(json.dumps({"profile": [half, half, both, none, none]}))
    found = facts(places, "--cost", path)
    assert 1.54466 <= found["pufferfish_epsilon"] <= 1.62525
    assert len(found["dp_epsilon"]) == len(found["cost"]) == 5
    assert "a profile of 5 costs" in command(places, "--cost", path).stdout


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("--dp", "0.1", "--values", "elsewhere"), "--values"),
        (("--values", "home"), "--dp"),
        (("--dp", "0.1", "--values", "home", "--delta", "1e-6"), "--delta"),
        (("--dp", "0.1", "--values", "home", "--table"), "--table"),
        (("--cost", "@{}"), "--cost"),
        (("--cost", "@[]"), "--cost"),
        (("--cost", '@{"profile": 3}'), "--cost"),
        (("--cost", '@[["1", ["nothing"]]]'), "--cost"),
        (("--cost", '@[["-1", ["any"]]]'), "--cost"),
        (("--cost", "@[1]", "--dp", "1"), "--dp"),
    ],
)
def test_what_is_not_a_cost_is_refused(
    places: Path, tmp_path: Path, arguments: tuple[str, ...], field: str
) -> None:
    given = []
    for argument in arguments:
        if argument.startswith("@"):
            (tmp_path / "cost.json").write_text(argument[1:])
            argument = str(tmp_path / "cost.json")
        given.append(argument)
    result = CliRunner().invoke(program(), ["translate", str(places), *given])
    assert isinstance(result.exception, InvalidOption) and result.exception.field == field


@pytest.mark.nightly
def test_adversaries_who_know_more_stand_beside_the_plain_number(ward: Path) -> None:
    found = facts(ward, "--dp", 1, "--start", "unknown")
    losses = found["by_adversary"]
    assert list(losses) == ["plain", "unknown_start", "known_entries", "both"]
    assert losses["plain"] == pytest.approx(4.12131, abs=1e-5)
    assert found["pufferfish_epsilon"] == losses["unknown_start"] > losses["plain"]
    assert found["by_method"]["curve"] is None and found["against"].startswith("entry 0 is")
    allowed = facts(ward, "--pufferfish", "1,2", "--known", "any")
    assert allowed["by_adversary"]["known_entries"] == allowed["dp_epsilon"]
    page = command(ward, "--dp", 1, "--known", "any").stdout
    assert "  by what is known: plain 4.122, unknown start 4.347, " in page
    by_value = facts(ward, "--dp", 1, "--values", "ward", "--known", "any")
    assert by_value["by_adversary"]["known_entries"] == by_value["pufferfish_epsilon"]
