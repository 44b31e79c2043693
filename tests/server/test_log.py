"""The log: a JSON object a line, with who did what, and never a value, an address or a token."""

import asyncio
import io
import json
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.server.operation import server_log
from takifugu.server.operation.server_log import JsonLines, handle_loop_errors, places_of
from tests.server.running import running_server

SECRET = "diagnosis of somebody"  # noqa: S105 - no password, but a value that must not be seen


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What is logged in this process, as the server writes it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail(value: str) -> None:
    local = value  # which a careless log would show
    raise ValueError(local)


def test_an_error_is_its_kind_and_its_places(written: io.StringIO) -> None:
    try:
        fail(SECRET)
    except ValueError:
        logging.getLogger("takifugu.server").exception("it failed")
    (line,) = lines(written)
    assert line["error"] == "ValueError" and line["message"] == "it failed"
    assert line["places"][0].endswith(" fail") and SECRET not in written.getvalue()
    assert places_of(None) == []


def test_words_of_others_are_not_filled_in(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("uvicorn", "uvicorn.error", "psycopg", "py4j"):
        # an earlier test may have started a server, or Spark, in this process
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
        monkeypatch.setattr(logging.getLogger(name), "disabled", False)
        monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
    for name in ("uvicorn.error", "psycopg", "py4j"):
        logging.getLogger(name).warning("the row %s is wrong", SECRET)
        logging.getLogger(name).warning("%s", SECRET)
        logging.getLogger(name).warning(f"Task exception\nfuture: <Task {SECRET}>")
    assert SECRET not in written.getvalue()
    assert len(lines(written)) == 9
    logging.getLogger("takifugu.server").warning("task %r", "plan")
    assert lines(written)[-1]["message"] == "task 'plan'"


def test_a_line_is_a_line_whatever_is_in_it(written: io.StringIO) -> None:
    logging.getLogger("takifugu.x").warning("a\nb\r\n\x1b[2J\u2028 %s", "\u202e")
    logging.getLogger("takifugu.x").warning("x" * 100_000)
    assert len(lines(written)) == 2 and len(written.getvalue()) < 10_000
    assert written.getvalue().isascii()
    record = logging.LogRecord("takifugu.x", 30, "", 0, "%d", ("not a number",), None)
    assert json.loads(JsonLines().format(record))["message"]
    half = logging.LogRecord("takifugu.x", 30, "", 0, "half of a character: \ud800", (), None)
    assert JsonLines().format(half).isascii()  # not by a logger: pytest could not pass it on


def test_what_nobody_caught_is_logged_without_values(
    written: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # put back afterwards, as those below
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    server_log.report_errors("the server ended by an error", "a thread ended")
    sys.excepthook(ValueError, ValueError(SECRET), None)

    async def lose_an_error() -> None:
        handle_loop_errors(asyncio.get_running_loop())
        asyncio.get_running_loop().call_soon(fail, SECRET)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(lose_an_error())
    found = lines(written)
    assert [line["error"] for line in found] == ["ValueError"] * 2
    assert SECRET not in written.getvalue()


def test_all_of_it_is_in_place_once_it_is_set_up() -> None:
    """In a process of its own: hooks, warnings and levels are of the whole process."""
    code = f"""
import threading, warnings, logging
from takifugu.server.operation.server_log import log_to_stderr
log_to_stderr()
def fail(): raise ValueError({SECRET!r})
thread = threading.Thread(target=fail); thread.start(); thread.join()
warnings.warn({SECRET!r})
class Lost:
    def __del__(self): fail()
Lost()
logging.getLogger("uvicorn.error").info("chatter")
logging.getLogger("uvicorn.error").warning("of note")
fail()
"""
    ran = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    found = [json.loads(line) for line in ran.stderr.splitlines()]
    assert SECRET not in ran.stderr and ran.stdout == ""
    errors = [line.get("error") for line in found]
    assert errors == ["ValueError", None, "ValueError", None, "ValueError"]
    assert found[1]["message"] == "UserWarning" and found[3]["message"] == "of note"


def test_a_warning_of_takifugu_is_told(written: io.StringIO) -> None:
    class LooksOdd(UserWarning):
        __module__ = "takifugu.somewhere"

    server_log._warned("the prior is old", LooksOdd)
    server_log._warned(SECRET, UserWarning)
    first, second = lines(written)
    assert first["message"] == "LooksOdd: the prior is old" and second["message"] == "UserWarning"


@pytest.mark.nightly
def test_every_request_but_probes_is_a_line_with_its_number(study: Path) -> None:
    with running_server(study) as server:
        analyst, owner = server.token("analyst", "ana"), server.token("owner", "olga")
        for probe in ("/healthz", "/readyz", "/metrics"):  # not logged when all is well
            assert server.get(probe, token=owner).status == 200
        query = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}
        path = "/api/v1/datasets/stays/plans"
        answers = [
            server.post(path, {"query": query}, token=analyst),
            server.get(f"/api/v1/datasets/stays?q={SECRET.replace(' ', '+')}", token=owner),
            server.post(path, {"query": {"kind": SECRET}}, token=analyst),
            server.get(f"/{SECRET.replace(' ', '-')}"),
            server.get("/api/v1/me", token="tf_" + "y" * 43),
            server.get(f"/api/v1/me?token={analyst}"),
        ]
        found = server.request_lines(answers)
        assert sum(line["message"] == "request" for line in server.log()) == len(answers)
        text = server.log_text()
    assert [line["status"] for line in found] == [answer.status for answer in answers]
    assert [line["bytes"] for line in found] == [len(answer.body) for answer in answers]
    who = [(line["actor"], line["role"]) for line in found]
    assert who[:3] == [("ana", "analyst"), ("olga", "owner"), ("ana", "analyst")]
    assert all(line == ("", "nobody") for line in who[3:])
    assert [line["route"] for line in found[:4]] == [
        "/api/v1/datasets/{dataset}/plans",
        "/api/v1/datasets/{dataset}",
        "/api/v1/datasets/{dataset}/plans",
        "other",
    ]
    assert found[4]["client"] == "127.0.0.1" and "client" not in found[0]
    assert {"time", "level", "method", "ms"} <= set(found[0])
    for hidden in (SECRET, SECRET.replace(" ", "-"), SECRET.replace(" ", "+"), "stays"):
        assert hidden not in text
    for token in (analyst, owner, "tf_"):
        assert token not in text


@pytest.mark.nightly
def test_nothing_but_json_is_printed_by_a_server_that_loses_its_data(study: Path) -> None:
    """What drivers say about a file that cannot be read stays out of the log."""
    rows = (study.parent / "stays.csv").read_text(encoding="utf-8")
    broken = rows.replace("home", SECRET, 1).replace("2026-01-02", "no day at all", 1)
    with running_server(study) as server:
        token = server.token("analyst", "ana")
        (study.parent / "stays.csv").write_text(broken, encoding="utf-8")
        query = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}
        headers = {"Idempotency-Key": "x"}
        for path in ("plans", "releases"):
            answer = server.post(
                f"/api/v1/datasets/stays/{path}", {"query": query}, token=token, headers=headers
            )
            assert SECRET not in answer.body.decode() and "no day" not in answer.body.decode()
        assert server.stop() == 0
        assert (
            server.log() and SECRET not in server.log_text() and "no day" not in server.log_text()
        )
