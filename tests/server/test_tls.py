"""TLS by certificate files, reloaded by a signal."""

import os
import signal
import socket
import ssl
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import InvalidFile
from takifugu.server.operation.listening import tls_context
from tests.raising import raises
from tests.server.certificates import new_certificate
from tests.server.projects import small_project
from tests.server.raw_requests import read_all, status_of
from tests.server.running import PATIENCE, RunningServer, running_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with a certificate, at which a request must arrive within a second."""
    study = small_project(tmp_path_factory.mktemp("tls") / "a study")
    made = new_certificate(study.parent)
    files: dict[str, Any] = {"certificate": made.certificate.name, "key": made.key.name}
    with running_server(study, trust=made.trust, request_time=1.0, **files) as running:
        yield running
        assert running.get("/healthz").status == 200  # whatever was done to it
        assert running.stop() == 0


@pytest.mark.nightly
def test_a_server_with_a_certificate_speaks_tls_alone(server: RunningServer) -> None:
    assert server.url.startswith("https://")
    assert server.get("/healthz").status == server.get("/readyz").status == 200
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" not in read_all(raw)


@pytest.mark.nightly
def test_old_versions_of_tls_are_refused(server: RunningServer) -> None:
    assert _version(server, ssl.TLSVersion.TLSv1_2) == "TLSv1.2"
    assert _version(server, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
    with pytest.raises((ssl.SSLError, OSError)):
        _version(server, ssl.TLSVersion.TLSv1_1)


def _version(server: RunningServer, version: ssl.TLSVersion) -> str | None:
    trusted = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusted.check_hostname, trusted.verify_mode = False, ssl.CERT_NONE
    trusted.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        trusted.minimum_version = trusted.maximum_version = version
    with (
        socket.create_connection((server.host, server.port), timeout=PATIENCE) as raw,
        trusted.wrap_socket(raw) as wrapped,
    ):
        return wrapped.version()


@pytest.mark.nightly
def test_a_signal_reloads_the_certificate_and_keeps_a_good_one(study: Path) -> None:
    first = new_certificate(study.parent)
    second = new_certificate(study.parent, "second")
    with running_server(
        study, trust=first.trust, certificate=first.certificate, key=first.key
    ) as server:
        kept = server.connection()
        kept.request("GET", "/healthz")
        assert kept.getresponse().read()
        first.certificate.write_text("no certificate")
        server.send_signal(signal.SIGHUP)
        _until_logged(server, "was not reloaded")
        assert server.get("/healthz").status == 200  # still the first one
        second.certificate.replace(first.certificate)
        second.key.replace(first.key)
        trust = ssl.create_default_context(cafile=str(first.certificate))
        server.send_signal(signal.SIGHUP)
        _until_logged(server, "was reloaded")
        with pytest.raises(ssl.SSLCertVerificationError):
            server.get("/healthz")
        renewed = RunningServer(server.project, server.url, server.process, server.output, trust)
        assert renewed.get("/healthz").status == 200
        kept.request("GET", "/healthz")  # connections that were open stay
        assert kept.getresponse().status == 200
        kept.close()


def _until_logged(server: RunningServer, words: str) -> None:
    for _ in range(10 * PATIENCE):
        if words in server.log_text():
            return
        time.sleep(0.1)
    raise AssertionError(server.log_text())


@pytest.mark.nightly
def test_a_handshake_that_never_ends_is_let_go(server: RunningServer) -> None:
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as raw:
        raw.sendall(b"\x16\x03\x01")
        assert b"HTTP" not in read_all(raw)
    assert server.get("/healthz").status == 200


@pytest.mark.nightly
def test_slow_requests_are_refused_under_tls_too(server: RunningServer) -> None:
    connection = server.connection()
    connection.connect()
    connection.sock.sendall(b"GET /hea")
    assert status_of(read_all(connection.sock)) == 408
    connection.close()


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    one, other = new_certificate(tmp_path, "one"), new_certificate(tmp_path, "other")
    hidden = new_certificate(tmp_path, "hidden", passphrase="open sesame")  # noqa: S106
    tls_context(*one)
    with raises(InvalidFile, field="key", reason="misfit"):
        tls_context(one.certificate, other.key)
    with raises(InvalidFile, field="key", reason="encrypted"):
        tls_context(*hidden)
    with raises(InvalidFile, field="certificate", reason="unreadable"):
        tls_context(tmp_path / "none.pem", one.key)
    with raises(InvalidFile, field="key", reason="unreadable"):
        tls_context(one.certificate, tmp_path / "none.key")
    os.mkfifo(tmp_path / "pipe")  # nobody writes to it: it would be read for ever
    with raises(InvalidFile, field="certificate", reason="unreadable"):
        tls_context(tmp_path / "pipe", one.key)
    with raises(InvalidFile, field="certificate", reason="content"):
        tls_context(one.key, one.key)
