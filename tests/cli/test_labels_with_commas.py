"""A label that holds a comma is given in double quotes, wherever labels are listed."""

from pathlib import Path

import pytest

from takifugu.cli.declared_flags import requested
from takifugu.cli.shared_options import InvalidOption, listed, read_secrets
from takifugu.priors import read_prior
from tests.cli.running import run
from tests.declared import declared
from tests.raising import raises

WARD = "clinic, ward"
DECLARATION = declared("stays.csv", "person", "day", {"place": ["home", "clinic, ward"]})


@pytest.mark.nightly
def test_a_count_of_such_a_label_is_planned_under_a_prior_that_was_made_with_it(
    tmp_path: Path,
) -> None:
    places = (f'"{WARD}"', "home")
    lines = [f"{person},{day},{places[day % 2]}" for person in range(9) for day in (1, 2)]
    (tmp_path / "stays.csv").write_text("\n".join(["person,day,place", *lines]) + "\n")
    (tmp_path / "stays.toml").write_text(DECLARATION)
    states = f'home,"{WARD}"'

    def do(*arguments: str) -> str:
        done = run(tmp_path, *arguments)
        assert done.status == 0, done.err
        return done.out

    new = ("prior", "new", "0.8,0.2;0.3,0.7", "--length", "2", "--states", states)
    do(*new, "--out", "chain.json")
    assert read_prior(tmp_path / "chain.json").states == ("home", WARD)  # type: ignore[attr-defined]
    do("init")
    pairs = ("--pairs", f'"home/{WARD}"')
    do("dataset", "add", "stays", "stays.toml", "--prior", "chain.json", *pairs)
    do("budget", "set", "stays", "4")
    planned = do("plan", "stays", "count", "--values", f'"{WARD}"', "--epsilon", "1")
    assert WARD in planned


def test_lists_are_read_as_a_line_of_csv() -> None:
    assert listed("north, south") == ["north", "south"]
    assert listed('a, "b, c","say ""d"""') == ["a", "b, c", 'say "d"']
    assert listed('["b, c", "d"]') == ["b, c", "d"]
    assert read_secrets('"a, b/c|d",c/d', None).pairs == ((("a, b",), ("c", "d")), (("c",), ("d",)))
    flags = {"where": ['zone="b, c",d'], "leave_out": ['"e, f"'], "k": 1, "epsilon": "1"}
    options = requested("stays", "top_k", flags).options
    assert options.where == {"zone": ("b, c", "d")} and options.leave_out == ("e, f",)


@pytest.mark.parametrize("text", ["", "a,", ",a", '"a', '"a"b', "a,,b", '"",a'])
def test_what_is_no_list_is_refused(text: str) -> None:
    with raises(InvalidOption, field="--values"):
        listed(text, "--values")
