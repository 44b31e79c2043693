"""Hostile inputs: what is told where nobody looks at first sight is found as well."""

import gzip
import io
import json
import logging
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

import takifugu.cli
from tests.torture.input_trials import OK, Main, answering, outcome, said
from torture.inputs import serving
from torture.inputs.canary_study import CANARIES, LABEL, NUMBER, PERSON
from torture.inputs.case import Case, Put
from torture.inputs.server_lives import ServerLives
from torture.part_report import Report

pytestmark = pytest.mark.nightly

SHOW = ("dataset", "show", "stays")


# --- packed files ---


def workbook() -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    assert book.active is not None
    book.active.append([f"{PERSON} 3", LABEL, NUMBER] * 40)
    book.save(file)
    return file.getvalue()


def parquet() -> bytes:
    file = io.BytesIO()
    table = pa.table({"score": [1.5, float(NUMBER)], "who": [f"{PERSON} 1", "x"]})
    pq.write_table(table, file, compression="zstd", write_statistics=False)
    return file.getvalue()


def drawn() -> bytes:
    figure, file = Figure(), io.BytesIO()
    figure.text(0.1, 0.5, f"AVA {LABEL} AVA")
    figure.savefig(file, format="pdf")
    return file.getvalue()


def picture(kind: bytes, text: bytes) -> bytes:
    chunk = len(text).to_bytes(4, "big") + kind + text + bytes(4)
    return b"\x89PNG\r\n\x1a\n" + chunk


PACKED: dict[str, Callable[[], bytes]] = {
    "a workbook": workbook,
    "Parquet": parquet,
    "gzip": lambda: gzip.compress(PERSON.encode() * 3),
    "gzip in two members": lambda: gzip.compress(b"x") + gzip.compress(PERSON.encode() * 3),
    "a drawing": drawn,
    "a stream of a PDF": lambda: b"%PDF-1.7 stream\r\n" + zlib.compress(LABEL.encode() * 9),
    "a picture": lambda: picture(b"zTXt", b"Title\0\0" + zlib.compress(LABEL.encode())),
    "another picture": lambda: picture(b"iTXt", b"Title\0\1\0\0\0" + zlib.compress(LABEL.encode())),
    "a number as processors have it": lambda: struct.pack("<d", float(NUMBER)),
}


@pytest.mark.parametrize("name", PACKED)
def test_a_canary_that_is_packed_is_found(scratch: Path, name: str) -> None:
    def main() -> None:
        Path("new.file").write_bytes(PACKED[name]())
        raise SystemExit(0)

    found = outcome(scratch, Case("command: x", SHOW), main)
    assert any("canary" in what and "new.file" in what for what in found.wrong), found


# --- logs and file descriptors ---


def logs(level: int, name: str = "takifugu.tables", *, passes_on: bool = True) -> None:
    logger = logging.getLogger(name)
    logger.propagate = passes_on
    logger.log(level, "the value %s", PERSON)
    raise SystemExit(0)


def writes_itself() -> None:
    os.write(2, f"value {PERSON}\n".encode())
    raise SystemExit(0)


def has_a_subprocess() -> None:
    subprocess.run(["echo", PERSON], check=True)  # noqa: S603, S607 - fixed words
    raise SystemExit(0)


def writes_to_the_first_stream() -> None:
    assert sys.__stdout__ is not None
    sys.__stdout__.write(PERSON)
    raise SystemExit(0)


def has_a_traceback_elsewhere() -> None:
    program = "raise ValueError"
    subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603 - our own
    raise SystemExit(0)


ELSEWHERE: dict[str, tuple[Main, str]] = {
    "INFO": (lambda: logs(logging.INFO), "canary"),
    "DEBUG": (lambda: logs(logging.DEBUG), "canary"),
    "a logger that passes nothing on": (lambda: logs(logging.INFO, passes_on=False), "canary"),
    "descriptor 2": (writes_itself, "canary"),
    "a subprocess": (has_a_subprocess, "canary"),
    "the first stream": (writes_to_the_first_stream, "canary"),
    "a traceback of a subprocess": (has_a_traceback_elsewhere, "a warning of Python"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_said_elsewhere_is_found(scratch: Path, name: str) -> None:
    logging.getLogger("takifugu.tables").propagate = name != "a logger that passes nothing on"
    main, told = ELSEWHERE[name]
    try:
        found = outcome(scratch, Case("command: x", SHOW), main)
    finally:
        logging.getLogger("takifugu.tables").propagate = True
    assert any(told in what for what in found.wrong), found


# --- the server ---


def record(**more: Any) -> str:
    return json.dumps({"level": "error", "logger": "takifugu.server", "message": "x"} | more)


REQUEST = b"GET /api/v1/me HTTP/1.1\r\nHost: @host@\r\n\r\n"
ASKED = Case("route: x", request=REQUEST, route="GET /api/v1/me", who="ana")
FAULTS = {
    "a thread": record(message="a thread ended", error="KeyError", places=["x:1 y"]),
    "a loop": record(message="the event loop met an error"),
    "a worker": record(message="a thread of a worker ended: KeyError at x:1"),
    "an error of a request that was answered": record(places=["x:1 y"], request="aa"),
    "an unforeseen error of a job": record(
        message="KeyError (reference aa): takifugu.server.work.pool.run:12 < x.y:3"
    ),
    "the end": record(level="critical"),
    "no JSON": "Segmentation fault",
}


def found_in_log(folder: Path, text: str) -> list[str]:
    (folder / "log").write_text(f"{text}\n", encoding="utf-8")
    failed = b"HTTP/1.1 500 x\r\nX-Request-Id: bb\r\n\r\n{}"
    with answering(failed, folder / "log") as server:
        return [what for what in server.run(ASKED).wrong if "the log tells" in what]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_log_is_found(tmp_path: Path, name: str) -> None:
    assert found_in_log(tmp_path, FAULTS[name])


def test_every_leak_is_excused_by_itself(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    for body, leak in (
        (b'{"engine": "duckdb", "where": "/tmp/study/takifugu.ledger"}', "'/tmp'"),
        (b'{"given": "/api/v1/me", "engine": "duckdb", "by": "SELECT x"}', "'SELECT '"),
    ):
        with answering(OK + b"\r\n" + body, tmp_path / "log") as server:
            found = server.run(ASKED).wrong
        assert f"{leak} is told to ana" in found and not any("duckdb" in what for what in found)


def test_what_a_server_writes_is_searched(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def writing(file: Path, **_: Any) -> Iterator[Any]:
        (tmp_path / "log").touch()
        with answering(OK + b"\r\n{}", tmp_path / "log") as fake:
            fake.server.stop = lambda: 0  # type: ignore[method-assign]
            (file.parent / "cache.json.gz").write_bytes(gzip.compress(f"{PERSON} 3".encode()))
            yield fake.server

    monkeypatch.setattr(serving, "running_server", writing)
    monkeypatch.setattr(serving, "new_token", lambda *_: "tf_secretsecret")
    report = Report("inputs", tmp_path, 10.0, 1)
    with ServerLives(scratch / "template", scratch, report) as lives:
        assert not lives.run(ASKED).wrong
    (found,) = report.findings
    assert found.what == f"server: the canary {PERSON} is in the file cache.json.gz"


# --- what is published, what is ignored, what is tried again ---


def tells_all() -> None:
    said(" ".join(CANARIES))


FITS = {
    "prior fit spare --kind network --structure edges.txt --share 1/2": set(CANARIES),
    "prior fit stays.csv --state state --entity person -o new.json": set(CANARIES),
    "prior fit stays.csv --state illness --entity person -o new.json": {PERSON, NUMBER},
    "prior fit wards --first-days 6 --replace --at-least 1": {PERSON, NUMBER},
    "prior fit wards --first-days 6 --replace --at-least 5": set(CANARIES),
}


@pytest.mark.parametrize("line", FITS)
def test_a_fit_publishes_its_labels_alone(scratch: Path, line: str) -> None:
    case = Case("file: x", tuple(line.split()), {"edges.txt": Put("bytes", b"x")})
    found = outcome(scratch, case, tells_all)
    assert {canary for canary in CANARIES if any(canary in one for one in found.wrong)} == FITS[
        line
    ]


def test_a_fit_publishes_labels_that_a_spoiled_file_has(scratch: Path) -> None:
    words = [
        "prior",
        "fit",
        "stays.csv",
        "--state",
        "state",
        "--entity",
        "person",
        "-o",
        "new.json",
    ]
    rows = f"person,state\n1,home\n2,{LABEL}\n".encode()
    case = Case("file: x", tuple(words), {"stays.csv": Put("bytes", rows)})
    found = outcome(scratch, case, tells_all)
    assert {what.split()[2] for what in found.wrong} == {PERSON, NUMBER}


def drops_an_option() -> None:
    sys.argv = [word for word in sys.argv if not word.startswith("--gone")]
    takifugu.cli.main()


def test_an_option_that_a_release_drops_is_found(scratch: Path) -> None:
    base = ("release", "stays", "histogram", "--epsilon", "1", "--yes", "--out", "new.xlsx")
    case = Case("command: x", (*base, "--gone=%%%"), ignored="--gone", base=base)
    found = outcome(scratch, case, drops_an_option)
    assert any("ignored" in what for what in found.wrong), found
