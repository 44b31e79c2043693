"""`make serve-demo`: the demonstration's project, three tokens, a server, and the page."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import urllib.request
from fractions import Fraction
from pathlib import Path

import pytest

from takifugu.cli.demo import serve_demo as demo
from takifugu.project.project import open_project
from takifugu.server.state.server_state import open_state
from tests.cli.running import SOURCE
from tests.server.projects import small_project
from tests.server.running import PATIENCE

ROOT = Path(__file__).parents[2]
MODULE = ("-m", "takifugu.cli.demo.serve_demo")


def start(folder: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - our own interpreter and code
        [sys.executable, *MODULE, "--out", str(folder), "--port", "0", *options],
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    """What it prints until it serves."""
    assert process.stdout is not None
    found = ""
    for line in process.stdout:
        found += line
        if "Ctrl-C" in line:
            return found
    assert process.stderr is not None
    raise AssertionError(found + process.stderr.read())


def whoami(url: str, token: str) -> dict[str, str]:
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{url}/api/v1/me", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
        found: dict[str, str] = json.load(answer)
    return found


def check(process: subprocess.Popen[str], opened: Path | None = None) -> str:
    """That it serves with three tokens, opens the page, and stops at Ctrl-C; what it said."""
    try:
        text = said(process)
        (url,) = re.findall(r"http://127\.0\.0\.1:\d+", text)
        tokens = dict(re.findall(r"^  (\w+) +\w+ +(tf_\S+)", text, re.MULTILINE))
        assert set(tokens) == {"owner", "analyst", "auditor"}
        for role, token in tokens.items():
            seen = whoami(url, token)
            assert (seen["role"], seen["name"]) == (role, demo.PEOPLE[role])
        if opened is not None:
            for _ in range(10 * PATIENCE):
                if opened.exists() and opened.read_text():
                    break
                time.sleep(0.1)
            assert opened.read_text() == url
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors
        assert all(token not in errors for token in tokens.values())
        return text
    finally:
        process.kill()
        process.communicate()


@pytest.mark.nightly
def test_the_demonstration_is_made_served_and_served_again(tmp_path: Path) -> None:
    folder = tmp_path / "the demo"
    assert "revoked" not in check(start(folder, "--rows", "20000", "--no-browser"))
    ledger = (folder / "takifugu.ledger").stat().st_ino
    project = open_project(folder)
    with project.session("check-ins") as session:
        small = session.plan.top_k(3, by="country", epsilon="0.2").cost
        assert small.fits and small.alone > 0.12 and (small.marginal or 0) < 0.3
        assert session.approval_needed(session.plan.top_k(3, by="country", epsilon="0.9"))
        assert small.after is not None and small.budget - Fraction(small.after) > 1
    again = check(start(folder, "--no-browser"))  # the same project again, with new tokens
    assert "project of before" in again and "revoked" in again
    assert (folder / "takifugu.ledger").stat().st_ino == ledger
    with open_state(project) as state:
        assert sum(record.live(state.now()) for record in state.tokens()) == len(demo.PEOPLE)


@pytest.mark.nightly
def test_the_page_is_opened_in_a_browser_where_there_is_a_window(tmp_path: Path) -> None:
    folder = small_project(tmp_path / "study").parent
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" >"{seen}"\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    wanted = {"BROWSER": f"{browser} %s", "DISPLAY": ":99"}
    check(start(folder, **wanted), seen)
    seen.unlink()
    check(start(folder, **(wanted | {"DISPLAY": "", "WAYLAND_DISPLAY": ""})))
    check(start(folder, "--no-browser", **wanted))
    assert not seen.exists()


def test_a_port_that_is_taken_gives_way_to_a_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from takifugu.errors import Malformed
    from takifugu.server.operation import listening

    def taken(_: object) -> object:
        raise Malformed("--port", given="is in use", needed="be free")

    monkeypatch.setattr(listening, "listening_socket", taken)
    assert demo.free_port() == 0


def test_make_has_it() -> None:
    if shutil.which("make") is None:
        pytest.skip("needs make")
    ran = subprocess.run(
        ["make", "--dry-run", "serve-demo"],  # noqa: S607 - found above
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0 and "takifugu.cli.demo.serve_demo" in ran.stdout, ran.stderr
