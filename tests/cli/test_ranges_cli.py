"""A chain over ranges of a number, from its fit to a sum that is charged by range."""

from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import UnsoundRequest
from takifugu.priors import read_prior
from tests.cli.running import Ran, call
from tests.declared import declared

DECLARED = declared(
    "meter.csv", "home", "hour", {"kwh": {"bounds": [0, 2], "step": 0.25, "missing": "refuse"}}
)
NAMES = ("[0, 0.5)", "[0.5, 1.5)", "[1.5, 2]")


@pytest.mark.nightly
def test_a_sum_under_a_fitted_chain_over_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        (f"h{k}", hour, (k * 7 + hour * hour * 3) % 9 / 4) for k in range(20) for hour in range(6)
    ]
    lines = ["home,hour,kwh", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "meter.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "meter.toml").write_text(DECLARED)

    def do(line: str) -> Ran:
        ran = call(tmp_path, monkeypatch, *line.split())
        assert ran.status == 0, ran.err
        return ran

    for line in ("init", "dataset add meter meter.toml", "budget set meter 3"):
        do(line)
    do("prior fit meter --kind markov --cuts 0,0.5,1.5,2 --share 1/2 --length 6")
    (file,) = tmp_path.glob("meter.*.prior.json")
    prior: Any = read_prior(file)
    assert prior.states == NAMES
    planned = do("plan meter sum --epsilon 1 --json").json()
    ((_, shape),) = planned["cost"]["by_value"]
    assert shape[0] == "matrix" and set(shape[1]) == set(NAMES)
    assert "stand for ranges of `kwh`" in " ".join(planned["guarantee"].split())
    released = do("release meter sum --epsilon 1 --json").json()
    assert released["cost"]["alone"] <= 1 and len(released["rows"]) == 1
    other = DECLARED.replace("bounds = [0, 2]", "bounds = [0, 4]")
    (tmp_path / "meter.toml").write_text(other)
    refused = call(tmp_path, monkeypatch, "plan", "meter", "sum", "--epsilon", "1")
    error: Any = refused.error
    assert refused.status == 2 and isinstance(error, UnsoundRequest), refused.err
    assert error.reason == "other-bounds"
