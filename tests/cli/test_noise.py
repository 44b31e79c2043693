"""``takifugu release`` of an answer that is mostly noise: refused, confirmed, or asked about."""

import sys
from pathlib import Path

import pytest

from takifugu.session.release_errors import MostlyNoise
from tests.cli.running import Call, call
from tests.session.study import write_data

ASKED = "stays histogram --by zone --epsilon 0.05"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that is ready for releases; to be copied, not changed."""
    folder = tmp_path_factory.mktemp("noise") / "study"
    folder.mkdir()
    write_data(folder, steps=4)  # 24 people: 48 rows in each zone
    with pytest.MonkeyPatch.context() as patch:
        for line in (
            "init",
            "prior new 0.8,0.2;0.3,0.7 --states home,ward -o prior.json",
            "dataset add stays stays.toml --prior prior.json",
            "budget set stays 20",
        ):
            assert call(folder, patch, *line.split()).status == 0
    return folder


def charges(do: Call) -> int:
    shown = do("ledger show --json").json()["events"]
    return sum(event["body"]["kind"] == "charge" for event in shown)


@pytest.mark.nightly
def test_noise_is_refused_and_nothing_is_charged(do: Call) -> None:
    before = charges(do)
    plan = do(f"plan {ASKED} --json").json()
    assert plan["usefulness"]["verdict"] == "mostly noise"
    assert do(f"plan {ASKED}").out.splitlines()[1] == plan["usefulness"]["words"]
    refused = do(f"release {ASKED}")
    assert refused.status == 2 and isinstance(refused.error, MostlyNoise)
    assert list(refused.error.range) == plan["usefulness"]["range"]
    assert str(refused.error.epsilon_needed) == plan["usefulness"]["epsilon_needed"]
    assert refused.error.rows_factor == plan["usefulness"]["rows_factor"]
    assert refused.err.count("\n") == 1 and "--yes" in refused.err and not refused.out
    assert charges(do) == before
    needed = refused.error.epsilon_needed
    advised = do(f"release stays histogram --by zone --epsilon {needed}")
    assert advised.status == 0 and not advised.err  # what is advised is released, without a word


def test_yes_confirms_it_and_a_repeat_is_free(do: Call) -> None:
    first = do(f"release {ASKED} --yes --json").json()
    assert not first["free"] and first["cost"]["marginal"] > 0
    again = do(f"release {ASKED} --json").json()
    assert again["free"] and again["rows"] == first["rows"]
    assert again["cost"]["marginal"] == 0 and again["cost"]["before"] == again["cost"]["after"]
    assert again["cost"]["after"] == first["cost"]["after"]
    assert do(f"plan {ASKED} --json").json()["cost"]["marginal"] == 0
    odds = first["cost"]["odds"]
    assert 0.5 < odds["alone"]["to_at_most"] < 0.52 and odds["budget"]["to_at_most"] > 0.999


@pytest.mark.nightly
def test_a_plan_file_is_confirmed_too(do: Call) -> None:
    assert do(f"plan {ASKED} --out plan.json").status == 0
    before = charges(do)
    refused = do("release plan.json")
    assert refused.status == 2 and isinstance(refused.error, MostlyNoise)
    assert charges(do) == before
    assert not do("release plan.json -y --json").json()["free"]


class Terminal:
    """A keyboard at which somebody types one line."""

    def __init__(self, typed: str) -> None:
        self.typed = typed

    def isatty(self) -> bool:
        """It is one."""
        return True

    def readline(self, *_: int) -> str:
        """What is typed."""
        return self.typed


@pytest.mark.parametrize("typed", ["y\n", "n\n", "\n"])
def test_at_a_terminal_it_asks(do: Call, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    before = charges(do)
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    ran = do(f"release {ASKED}")
    assert "mostly noise" in ran.err and "[y/N]" in ran.err
    if typed == "y\n":
        assert ran.status == 0 and charges(do) > before
    else:
        assert ran.status == 2 and not ran.out.strip() and charges(do) == before


def test_what_is_rough_is_said_before_it_is_charged(do: Call) -> None:
    plan = do("plan stays histogram --epsilon 0.3 --json").json()
    assert plan["usefulness"]["verdict"] == "rough"
    ran = do("release stays histogram --epsilon 0.3")
    assert ran.status == 0 and ran.err == f"takifugu: {plan['usefulness']['words']}\n"
