"""``takifugu collapse``: what it prints, what it writes and what it refuses."""

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

import takifugu
from takifugu.cli import program
from takifugu.cli.command_reference import commands, section

SRC = str(Path(takifugu.__file__).parents[1])


def command(*arguments: str) -> str:
    result = CliRunner().invoke(program(), ["collapse", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def process(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a user runs it, through `main`."""
    return subprocess.run(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-m", "takifugu", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": SRC},
    )


@pytest.mark.parametrize("example", ["1", "2", "3"])
def test_the_page_says_what_one_run_leaks_and_two_reveal(example: str) -> None:
    page = command(example, "--repetitions", "200")
    first = "epsilon = 0.539:" if example == "3" else "epsilon = 0 (exact)"
    assert f"one run leaks        {first}" in page
    assert "two runs leak        epsilon = infinity" in page
    assert "expected (exact)" in page and "standard error" in page
    assert "200 attacks, seed 2025; 0 declared wrongly" in page
    assert "revealed\n" in page and "*" in page
    assert all(len(line) <= 80 and line == line.rstrip() for line in page.splitlines())


def test_the_true_secret_is_marked() -> None:
    page = command("1", "--repetitions", "2").splitlines()
    facts = json.loads(command("1", "--repetitions", "2", "--json"))
    true = next(name for name, holds in facts["truth"].items() if holds)
    assert any(f"P({true}) *" in line for line in page)
    bits = json.loads(command("2", "--repetitions", "2", "--json"))["truth"]
    truth = "".join(str(int(holds)) for holds in bits.values())
    assert any("* the truth" in line and truth in line for line in command("2").splitlines())


@pytest.mark.parametrize("example", ["1", "2", "3"])
@pytest.mark.parametrize("n", ["3", "4", "16"])
def test_json_stands_alone_and_holds_the_documented_keys(example: str, n: str) -> None:
    facts = json.loads(command(example, "--n", n, "--runs", "4", "--repetitions", "300", "--json"))
    assert set(facts) == {
        *("example", "title", "n", "seed", "one_run", "two_runs", "runs"),
        *("truth", "revealed_at", "posterior", "paper"),
    }
    assert set(facts["two_runs"]) == {"epsilon", "odds", "chance_revealed", "telling"}
    assert set(facts["runs"]) == {
        *("expected", "median", "p90", "p99", "simulated_mean", "standard_error"),
        *("repetitions", "wrong", "law"),
    }
    assert facts["two_runs"]["epsilon"] == "infinity" and len(facts["two_runs"]["telling"]) == 2
    assert (facts["one_run"]["epsilon"] == 0) == (example != "3")
    assert facts["runs"]["wrong"] == 0 and facts["runs"]["repetitions"] == 300
    if example != "1":
        assert facts["runs"]["expected"] == "3"
    assert [step["run"] for step in facts["posterior"]] == [0, 1, 2, 3, 4]
    for step in facts["posterior"]:
        assert set(step) == {"run", "output", "datasets_left", "revealed", "chances"}
        for probability in step["chances"].values():
            assert set(probability) == {"exact", "value", "low", "high"}
            assert (
                Fraction(probability["low"])
                <= Fraction(probability["exact"])
                <= Fraction(probability["high"])
            )
    last = facts["posterior"][-1]
    assert last["revealed"] == (facts["revealed_at"] is not None)
    if last["revealed"]:
        declared = {
            name: probability["exact"] == "1" for name, probability in last["chances"].items()
        }
        assert declared == facts["truth"]


def test_every_json_key_is_in_the_reference() -> None:
    words = section("collapse", dict(commands())["collapse"]).split()
    said = {word.strip("():;,.") for word in words}

    def keys(value: object) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(keys, value))
        if isinstance(value, dict):
            free = any("=" in name for name in value)  # statements, not keys
            return set().union(*map(keys, value.values()), () if free else value)
        return set()

    assert keys(json.loads(command("2", "--repetitions", "2", "--json"))) <= said


def test_the_seed_decides_the_simulation_and_nothing_else() -> None:
    one, again, other = (
        json.loads(command("2", "--seed", seed, "--repetitions", "500", "--json"))
        for seed in ("1", "1", "2")
    )
    assert one == again
    assert one["runs"]["simulated_mean"] != other["runs"]["simulated_mean"]
    assert one["runs"]["expected"] == other["runs"]["expected"]
    longer = json.loads(
        command("2", "--seed", "1", "--repetitions", "500", "--runs", "9", "--json")
    )
    assert longer["runs"] == one["runs"] and longer["posterior"][:7] == one["posterior"]


@pytest.mark.nightly
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_figure_is_written_beside_clean_json(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"collapse.{suffix}"
    done = process("collapse", "3", "--repetitions", "50", "--json", "--plot", str(target))
    assert done.returncode == 0 and json.loads(done.stdout)["example"] == 3
    assert done.stderr == f"figure written to {target}\n"
    assert target.stat().st_size > 1000 and list(tmp_path.iterdir()) == [target]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["4"], "`example` is 4; it must be 1, 2 or 3"),
        (["2", "--n", "2"], "`n` is 2; it must be from 3 to 16"),
        (["1", "--n", "17"], "`n` is 17; it must be from 3 to 16"),
        (["2", "--runs", "0"], "`--runs` is 0; it must be from 1 to 1000"),
        (["2", "--repetitions", "1"], "`--repetitions` is 1; it must be from 2 to 10000000"),
        (["2", "--seed", "-1"], "`--seed` is -1; it must be from 0 to"),
        (["2", "--plot", "missing/x.png"], "be in an existing folder"),
        (["2", "--plot", "x.gif", "--json"], "end in .pdf, .png, .svg"),
    ],
)
def test_a_bad_argument_is_one_line_and_status_2(
    arguments: list[str], says: str, tmp_path: Path
) -> None:
    done = process("collapse", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("takifugu: ") and done.stderr.count("\n") == 1
    assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_is_none_is_refused_too() -> None:
    assert process("collapse", "two").returncode == 2


def test_a_page_without_unicode_can_be_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "takifugu", "collapse", "3", "--repetitions", "9"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": SRC, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0 and done.stdout.decode("ascii")
