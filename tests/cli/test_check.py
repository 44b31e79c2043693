"""``takifugu check``: the numbers, the words, the JSON, and one line for everything wrong."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from takifugu.cli.commands.check_command import lower, upper
from takifugu.finite import leakage
from takifugu.finite.files import read_world
from tests.cli.running import call

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
Check = Callable[..., tuple[int, str, str]]
Facts = Callable[..., Any]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    def run(*arguments: str | Path) -> tuple[int, str, str]:
        ran = call(tmp_path, monkeypatch, "check", *map(str, arguments))
        return ran.status, ran.out, ran.err

    return run


@pytest.fixture
def as_json(check: Check) -> Facts:
    def found(*arguments: str | Path) -> Any:
        status, out, err = check(*arguments, "--json")
        assert (status, err) == (0, "")
        return json.loads(out, parse_constant=refuse)

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is not strict JSON")

    return found


def test_randomised_response_on_the_ward_composes(as_json: Facts) -> None:
    """By hand: reporting the truth with probability 3/4 costs log 3 a run, whatever the prior."""
    ask, count = as_json(EXAMPLES / "ward.toml", "--runs", "3")["mechanisms"]
    assert ask["one_run"]["epsilon"] == pytest.approx(math.log(3), abs=1e-12)
    assert ask["one_run"]["at_least"] <= math.log(3) <= ask["one_run"]["epsilon"]
    assert ask["claim"] == {"epsilon": 1.1, "kept": "yes"}
    assert ask["differential"]["entries"]["mon"] == pytest.approx(math.log(3), abs=1e-12)
    assert ask["differential"]["entries"]["tue"] == pytest.approx(0, abs=1e-12)
    assert ask["composition"]["linear"] == "yes"
    assert ask["composition"]["attack"] is None
    for k, step in enumerate(ask["growth"], start=1):
        assert step["runs"] == k
        assert step["at_least"] <= k * math.log(3) + 1e-12 <= step["epsilon"] + 2e-12
    assert count["differential"]["entry"] == pytest.approx(0.5, abs=1e-12)
    assert count["differential"]["record"] == pytest.approx(1.0, abs=1e-12)
    assert count["claim"] is None


def ward_count_loss(k: int) -> float:
    """By hand: "2 ward days" seen k times, for Monday on the ward against at home.

    The probability of a ward day on Tuesday is .7 after a ward day and .1 after a day at home.
    """
    a = math.exp(-0.5)
    two, one, none = (a**d / (1 + a) for d in (0, 1, 2))
    return math.log((0.7 * two**k + 0.3 * one**k) / (0.1 * one**k + 0.9 * none**k))


def test_a_dp_count_may_leak_more_than_linearly_and_stays_below_its_lines(
    as_json: Facts,
) -> None:
    _, count = as_json(EXAMPLES / "ward.toml")["mechanisms"]
    assert count["one_run"]["epsilon"] == pytest.approx(ward_count_loss(1), abs=1e-12)
    assert count["growth"][1]["epsilon"] == pytest.approx(ward_count_loss(2), abs=1e-12)
    assert ward_count_loss(2) > 2 * ward_count_loss(1) + 1e-3
    whole = count["composition"]
    assert whole["linear"] == "almost"
    assert whole["attack"]["counts"] == [[2, 2]] and whole["attack"]["fewest"]
    assert whole["attack"]["leaked"] == pytest.approx(ward_count_loss(2), abs=1e-12)
    slope, constant = whole["line"]
    for k in range(1, 40):
        assert ward_count_loss(k) <= k * whole["proven_at"]
        assert ward_count_loss(k) <= k * slope + constant
    assert whole["fails_below"] <= 0.5 <= whole["dp_style"] + 1e-12


def test_the_first_example_of_the_paper_leaks_nothing_and_then_everything(
    as_json: Facts,
) -> None:
    found = as_json(EXAMPLES / "swap.toml")
    assert found["claims_kept"] is True
    (swap,) = found["mechanisms"]
    assert 0 <= swap["one_run"]["epsilon"] < 1e-12
    assert swap["differential"] is None
    assert [step["epsilon"] for step in swap["growth"][1:]] == ["infinity"] * 3
    whole = swap["composition"]
    assert (whole["linear"], whole["fails_below"], whole["dp_style"]) == (
        "no",
        "infinity",
        "infinity",
    )
    (first, once), (second, again) = whole["attack"]["counts"]
    assert once == again == 1 and whole["attack"]["leaked"] == "infinity"
    # the half that two different answers share is the data
    assert len(set(first.split()) & set(second.split())) == 1


def test_knowledge_by_inequalities_gives_the_true_loss_of_the_third_example(
    as_json: Facts,
) -> None:
    """By hand: the largest |log| of U over L, with L_T, U_T = .35, .65 and L_F, U_F = .4, .6."""
    found = as_json(EXAMPLES / "bounds.json", "--runs", "2")
    assert found["priors"] == "knowledge"
    (cases,) = found["mechanisms"]
    t, f = (0.35, 0.65), (0.4, 0.6)
    sides = [(t, f), (t, tuple(1 - x for x in f)), (tuple(1 - x for x in t), f)]
    true = max(max(math.log(max(a) / min(b)), math.log(max(b) / min(a))) for a, b in sides)
    assert cases["one_run"]["epsilon"] == pytest.approx(true, abs=1e-12)
    assert cases["one_run"]["kind"] == "exact"
    assert cases["composition"]["linear"] == "no"
    assert cases["growth"][1]["epsilon"] == "infinity"


def test_the_command_says_what_the_library_says(as_json: Facts) -> None:
    file = read_world(EXAMPLES / "ward.toml")
    found = as_json(EXAMPLES / "ward.toml", "--runs", "1")
    assert found["fingerprint"] == file.fingerprint
    assert found["pairs"] == [[str(p.left), str(p.right)] for p in file.world.pairs]
    for mechanism, shown in zip(file.mechanisms, found["mechanisms"], strict=True):
        assert shown["one_run"]["epsilon"] == leakage(file.world, mechanism).epsilon
        assert len(shown["growth"]) == 1


def test_parities_that_compose_alone_are_said_not_to_compose_with_each_other(
    as_json: Facts, check: Check
) -> None:
    path = EXAMPLES / "parity.toml"
    found = as_json(path, "--runs", "1")
    assert [each["composition"]["linear"] for each in found["mechanisms"]] == ["yes", "yes"]
    together = found["together"]
    assert together["one_run_of_each"]["epsilon"] == "infinity"
    assert together["one_run_of_each"]["pair"] in (["c=0", "c=1"], ["c=1", "c=0"])
    assert [name for name, _ in together["one_run_of_each"]["outputs"]] == [
        "a xor b",
        "a xor b xor c",
    ]
    assert together["composition"]["linear"] == "no"
    counts = together["composition"]["attack"]["counts"]
    assert [(name, count) for name, _, count in counts] == [("a xor b", 1), ("a xor b xor c", 1)]
    status, out, err = check(path, "--runs", "1")
    assert (status, err) == (0, "")
    assert "compose linearly?     no: " in out
    assert "see 'even' of 'a xor b', 'even' of 'a xor b xor c' (2 runs" in out


def test_words_on_a_pipe_are_plain_and_say_the_verdict(check: Check) -> None:
    status, out, err = check(EXAMPLES / "swap.toml")
    assert (status, err) == (0, "")
    assert "\x1b" not in out and not any(line != line.rstrip() for line in out.splitlines())
    assert "composes linearly?    no: " in out
    assert "2 runs, no fewer suffice): a / b under 'known' is revealed" in out


def test_words_on_a_terminal_fit_it(monkeypatch: pytest.MonkeyPatch, check: Check) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.delenv("NO_COLOR", raising=False)
    status, out, _ = check(EXAMPLES / "ward.toml")
    assert status == 0 and "\x1b[" in out and "ask about Monday" in out


WORLD = """
datasets = ["x", "y"]
[[secret]]
name = "l"
datasets = ["x"]
[[secret]]
name = "r"
datasets = ["y"]
[[pair]]
left = "l"
right = "r"
[[prior]]
uniform = true
[[mechanism]]
name = "[bold]loud[/bold] :warning:"
claim = CLAIM
rows = ROWS
"""


def written(tmp_path: Path, claim: str, rows: str) -> Path:
    path = tmp_path / "w.toml"
    path.write_text(WORLD.replace("CLAIM", claim).replace("ROWS", rows))
    return path


def test_a_broken_claim_is_status_1(tmp_path: Path, check: Check) -> None:
    path = written(tmp_path, "1.0", "[[0.75, 0.25], [0.25, 0.75]]")
    status, out, err = check(path)
    assert status == 1 and "ε = 1 is BROKEN" in out and err == ""
    assert "[bold]loud[/bold] :warning:" in out
    kept = written(tmp_path, "1.1", "[[0.75, 0.25], [0.25, 0.75]]")
    assert check(kept)[0] == 0


def test_an_output_of_one_side_only_is_infinite_everywhere(tmp_path: Path, check: Check) -> None:
    path = written(tmp_path, "5", "[[1, 0], [0.5, 0.5]]")
    status, out, _ = check(path, "--json")
    (found,) = json.loads(out)["mechanisms"]
    assert status == 1
    assert found["one_run"]["epsilon"] == found["one_run"]["at_least"] == "infinity"
    assert found["claim"]["kept"] == "no" and found["composition"]["linear"] == "void"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"datasets = 1", "`{}: datasets` is an integer; it must be a list"),
        (b"\xff\xfe\x00", "`{}: file` is not UTF-8 text (byte 0); it must be saved as UTF-8"),
        (b"datasts = []", "the nearest to that is 'datasets'"),
        (WORLD.replace("CLAIM", "nan").replace("ROWS", "[[1], [1]]").encode(), "finite number"),
        (
            WORLD.replace("CLAIM", "1").replace("ROWS", "[[1, 0], [0.5, 0.4]]").encode(),
            "sums to 0.9",
        ),
    ],
)
def test_a_bad_file_is_one_line_and_status_2(
    content: bytes, says: str, tmp_path: Path, check: Check
) -> None:
    path = tmp_path / "w.toml"
    path.write_bytes(content)
    status, out, err = check(path)
    assert (status, out) == (2, "")
    assert err.startswith("takifugu: ") and err.count("\n") == 1 and says.format(path) in err


@pytest.mark.parametrize("runs", ["0", "-3", "51"])
def test_bad_options_and_missing_files_are_one_line(
    runs: str, tmp_path: Path, check: Check
) -> None:
    for arguments in ([EXAMPLES / "ward.toml", "--runs", runs], [tmp_path], [tmp_path / "no.json"]):
        status, out, err = check(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("value", [0.0, 1e-15, 0.5 + 1e-14, 0.50001, 1.0986122886681151, 7.0])
def test_shown_bounds_never_round_the_wrong_way(value: float) -> None:
    shown = upper(value)
    assert float(shown.rstrip("+")) + (1e-9 if shown.endswith("+") else 0) >= value
    assert float(lower(value)) <= value
    assert upper(math.inf) == lower(math.inf) == "infinite"
