"""The section ``[server]`` and the options of `serve`: strict, and never tokens in clear."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from takifugu.project.policy import InvalidProject
from takifugu.project.project import open_project
from takifugu.project.server_section import READERS, ServerSettings, is_loopback, is_origin
from takifugu.server.settings import exposed, server_settings
from tests.raising import raises
from tests.server.running import write_settings

BEHIND: dict[str, Any] = {"proxies": ["10.0.0.5"], "origin": "https://stats.example.org"}


def settings_of(project: Path, options: dict[str, Any] | None = None, **keys: Any) -> Any:
    write_settings(project, **keys)
    return server_settings(open_project(project), options)


def test_every_setting_can_stand_in_the_file_and_only_those() -> None:
    assert set(READERS) == {field.name for field in fields(ServerSettings)}


@pytest.mark.nightly
def test_nothing_said_is_the_defaults(study: Path) -> None:
    assert server_settings(open_project(study)) == ServerSettings()


@pytest.mark.nightly
def test_the_file_is_read_and_options_come_first(study: Path) -> None:
    keys: dict[str, Any] = {"port": 9000, "workers": 3, "certificate": "tls/c.pem", "key": "k.pem"}
    found = settings_of(study, {"port": 0, "workers": None}, **keys, request_time=1)
    assert (found.port, found.workers, found.request_time) == (0, 3, 1.0)
    assert found.certificate == study.parent / "tls" / "c.pem"
    assert found.key == study.parent / "k.pem"


@pytest.mark.nightly
def test_an_unknown_key_is_refused_with_its_place_and_the_nearest(study: Path) -> None:
    write_settings(study, prot=9000)
    line = study.read_text(encoding="utf-8").splitlines().index("prot = 9000") + 1
    with raises(InvalidProject, reason="unknown key") as caught:
        open_project(study)
    assert f"line {line}, column 1" in str(caught.value) and "'port'" in str(caught.value)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("port", -1),
        ("port", 65_536),
        ("port", True),
        ("port", "8461"),
        ("workers", 0),
        ("request_time", 0),
        ("request_time", True),
        ("request_time", "15"),
        ("stop_time", -1),
        ("work_time", 1e12),
        ("request_bytes", 10),
        ("header_bytes", 2**40),
        ("host", ""),
        ("host", 7),
        ("proxies", "10.0.0.5"),
        ("proxies", ["*"]),
        ("proxies", ["proxy.example.org"]),
        ("proxies", ["10.0.0.5/8"]),
        ("proxies", [10]),
        ("origin", "stats.example.org"),
        ("origin", "https://stats.example.org/"),
        ("origin", "https://stats.example.org/path"),
        ("origin", "https://user@stats.example.org"),
        ("origin", "ftp://stats.example.org"),
        ("origin", "https://stats.example.org:port"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(study: Path, key: str, value: Any) -> None:
    write_settings(study, **{key: value})
    with raises(InvalidProject) as caught:
        open_project(study)
    assert caught.value.field.endswith(f"server, {key}") and "line" in caught.value.given


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("key", "value", "flag"),
    [
        ("port", 70_000, "--port"),
        ("workers", 0, "--workers"),
        ("proxies", ("*",), "--proxy"),
        ("origin", "stats", "--origin"),
        ("host", "", "--host"),
    ],
)
def test_options_are_held_to_the_same(study: Path, key: str, value: Any, flag: str) -> None:
    with raises(InvalidProject, field=flag):
        server_settings(open_project(study), {key: value})


@pytest.mark.nightly
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "stats.example.org"])  # noqa: S104
def test_others_are_not_listened_to_in_clear(study: Path, host: str) -> None:
    with raises(InvalidProject, reason="exposed") as caught:
        settings_of(study, host=host)
    assert caught.value.field.endswith("server, host") and "line" in caught.value.given
    with raises(InvalidProject, reason="exposed", field="--host"):
        settings_of(study, {"host": host})
    half = {key: value for key, value in BEHIND.items() if key != "origin"}
    with raises(InvalidProject, reason="exposed"):
        settings_of(study, host=host, **half)
    with raises(InvalidProject, reason="exposed"):
        settings_of(study, host=host, **half, origin="http://stats.example.org")
    assert settings_of(study, host=host, **BEHIND).host == host
    assert settings_of(study, host=host, certificate="c.pem", key="k.pem").secure


def test_loopback_needs_no_tls() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example.org")))  # noqa: S104
    assert not exposed(ServerSettings())


def test_a_step_of_time_fits_into_the_time_of_a_task(study: Path) -> None:
    assert settings_of(study, time_step=9.9, work_time=10).time_step == 9.9
    with raises(InvalidProject, reason="work-time") as caught:
        settings_of(study, time_step=10, work_time=10)
    assert caught.value.field.endswith("server, time_step")


def test_half_of_a_pair_and_a_wrong_scheme_are_refused(study: Path) -> None:
    with raises(InvalidProject, reason="alone", field="--key"):
        settings_of(study, {"key": Path("k.pem")})
    with raises(InvalidProject, reason="alone"):
        settings_of(study, certificate="c.pem")
    with raises(InvalidProject, reason="scheme"):
        settings_of(study, certificate="c.pem", key="k.pem", origin="http://stats.example.org")


def test_what_is_an_origin() -> None:
    good = ("http://localhost:8461", "https://a.example", "http://[::1]:80")
    assert all(map(is_origin, good))
    assert not any(map(is_origin, ("https://", "https://A.example", "https://a.example?x", "a")))
