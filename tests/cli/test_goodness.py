"""``takifugu prior fit`` of numbers from the command line: what it says, draws and refuses."""

from pathlib import Path

import numpy as np
import pytest

from takifugu.priors import AR1, Gaussian, read_prior
from takifugu.synthetic import Meters, write_meter_readings
from tests.cli.running import Ran, call

FIT = "prior fit meters --kind gaussian --first-days 4 --profile hour_of_day --kernel ar1"


@pytest.fixture
def meters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with 30 meters that were read for 8 days."""
    made = Meters(homes=30, hours=192)
    write_meter_readings(tmp_path / "meters.parquet", made, rng=np.random.default_rng(3))
    for line in ("init", "dataset add meters meters.toml --secrets-within 1"):
        assert call(tmp_path, monkeypatch, *line.split()).status == 0
    return tmp_path


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> Ran:
    return call(folder, monkeypatch, *line.split())


@pytest.mark.nightly
def test_a_fit_is_told_drawn_and_released_from(
    meters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    fitted = run(meters, monkeypatch, f"{FIT} --plot fit.svg --json").json()
    prior = read_prior(meters / fitted["out"])
    assert isinstance(prior, Gaussian) and isinstance(prior.kernel, AR1)
    facts = fitted["rests_on"]
    assert facts["rows"] == 30 * 96 and facts["estimate"] == prior.kernel.rho
    assert abs(prior.kernel.rho - 0.8) < 5 * facts["standard_error"]
    assert fitted["goodness"]["fits"] is True
    about = [test["about"] for test in fitted["goodness"]["tests"]]
    assert about == ["residuals", "normality", "stationarity"]
    assert (meters / "fit.svg").read_text().count("<svg") == 1
    assert run(meters, monkeypatch, "budget set meters 1").status == 0
    plan = run(meters, monkeypatch, "plan meters mean --by hour_of_day --epsilon 1 --json").json()
    rho = prior.kernel.rho
    assert plan["cost"]["alone"] <= 1
    smooth = (1 + rho) / (1 - rho)  # kWh; rounding to steps adds one step or so
    assert smooth <= plan["mechanism"]["scale"] / 1000 <= smooth + 0.003
    released = run(meters, monkeypatch, "release meters mean --by hour_of_day --epsilon 1 --json")
    assert len(released.json()["rows"]) == 24
    means = [row[1] for row in released.json()["rows"]]
    # Half of 24 errors of scale 0.08 kWh beyond 0.4: less often than once in 1e14 releases.
    assert np.median(np.abs(np.array(means) - Meters().profile)) < 0.4


def test_words_and_what_is_left_out(meters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(meters, monkeypatch, f"{FIT} --margin 2")
    assert told.status == 0 and "raised by 2 standard errors" in told.out
    assert told.out.count("\nfits: ") == 3 or "differs little: " in told.out
    silent = run(meters, monkeypatch, f"{FIT} --no-goodness --replace")
    assert silent.status == 0 and "fits: " not in silent.out
    assert (
        run(meters, monkeypatch, f"{FIT} --no-goodness --replace --json").json()["goodness"] is None
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"{FIT} --no-goodness --plot fit.png", "--plot"),
        (f"{FIT} --plot fit.gif", "plot"),
        (FIT.replace("ar1", "periodic"), "squared-exponential"),
        (FIT.replace("hour_of_day", "kwh"), "public column"),
        (f"{FIT} --lags 1000", "lags"),
        (f"{FIT} --margin -1", "margin"),
        (f"{FIT} --tau 0.1", "gaussian"),
        ("prior fit meters --kind markov --first-days 4 --profile hour_of_day", "profile"),
        ("prior fit meters --kind gaussian --first-days 4 --columns kwh,hour_of_day", "protected"),
    ],
)
def test_bad_input_is_one_clear_line(
    meters: Path, monkeypatch: pytest.MonkeyPatch, line: str, told: str
) -> None:
    refused = run(meters, monkeypatch, line)
    assert refused.status == 2 and refused.err.count("\n") == 1
    assert told in refused.err
    assert not list(meters.glob("*.prior.json")) and not list(meters.glob("fit.*"))


def test_a_column_that_never_changes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{home},{hour},7" for home in range(5) for hour in range(40)]
    (tmp_path / "flat.csv").write_text("\n".join(["home,hour,kwh", *rows]) + "\n")
    (tmp_path / "flat.toml").write_text(
        '[source]\nkind = "csv"\npath = "flat.csv"\n[entity]\ncolumn = "home"\n[order]\n'
        'column = "hour"\nkind = "number"\nties = "refuse"\n[protected.kwh]\nbounds = [0, 10]\n'
        'step = 1\nmissing = "refuse"\n'
    )
    assert run(tmp_path, monkeypatch, "init").status == 0
    added = run(tmp_path, monkeypatch, "dataset add flat flat.toml --secrets-within 1")
    assert added.status == 0, added.err
    refused = run(tmp_path, monkeypatch, "prior fit flat --kind gaussian --first-steps 30")
    assert refused.status == 2 and "hardly varies" in refused.err and "7" not in refused.err
