"""The section ``[server]`` of a project file: every setting of a server, declared once.

`ServerSettings` has the default of each setting and how it is read. The section stands beside what
it serves, so that one file says all of a project. Every command refuses a key of it that is
unknown, as it does in any other section.
"""

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from takifugu._core.exact import is_finite
from takifugu._core.toml import TomlSection

MAX_WORKERS = 256
MAX_REQUEST_BYTES = 64 * 2**20
MAX_SECONDS = 7 * 24 * 3_600.0


def network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """An address, or a network of addresses; a ValueError if it is neither."""
    return ipaddress.ip_network(text.strip())


def is_loopback(host: str) -> bool:
    """Whether an address is that of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_origin(text: str) -> bool:
    """Whether a text is the address of a site as browsers have it: scheme, host and port alone."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    plain = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in text
    return plain and text == f"{parts.scheme}://{parts.netloc}" and text == text.lower()


def _text(section: TomlSection, key: str) -> str:
    return section.text(key)


def _origin(section: TomlSection, key: str) -> str:
    text = section.text(key)
    if not is_origin(text):
        raise section.wrong(
            key,
            given=f"is {text!r:.80}",
            needed="be what browsers see, such as https://stats.example.org, and nothing after it",
            reason="address",
        )
    return text


def _proxies(section: TomlSection, key: str) -> tuple[str, ...]:
    proxies = section.items(key)
    for text in proxies:
        try:
            if not isinstance(text, str):
                raise ValueError
            network_of(text)
        except ValueError:
            raise section.wrong(
                key,
                given=f"holds {text!r:.80}",
                needed="list addresses or networks of proxies, as ['10.0.0.5', '10.1.0.0/24']",
                reason="address",
            ) from None
    return tuple(proxies)


def _whole(least: int, most: int) -> Callable[[TomlSection, str], int]:
    def read(section: TomlSection, key: str) -> int:
        value = section.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise section.wrong(
                key,
                given=f"is {value!r:.40}",
                needed=f"be a whole number from {least:,} to {most:,}",
                reason="range",
            )
        return value

    return read


def _seconds(least: float, *, zero: bool = False) -> Callable[[TomlSection, str], float]:
    def read(section: TomlSection, key: str) -> float:
        value = section.get(key)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not is_finite(value) or not ((value == 0 and zero) or least <= value):
            given = f"is {value!r:.40}"
        elif value > MAX_SECONDS:
            given = f"is {value!r:.40}, which is more than a week"
        else:
            return float(value)
        or_zero = "0, or " if zero else ""
        raise section.wrong(
            key,
            given=given,
            needed=f"be {or_zero}seconds from {least:g} to {MAX_SECONDS:g}",
            reason="range",
        )

    return read


FILE_SETTING = {"read": _text, "file": True}  # named from the folder of the project


def _setting(default: Any, read: Callable[[TomlSection, str], Any]) -> Any:
    return field(default=default, metadata={"read": read})


@dataclass(frozen=True)
class ServerSettings:
    """What can be set. Times are in seconds, sizes in bytes.

    Attributes:
        host: The address to listen on.
        port: The port; 0 for one that is free.
        certificate: The file of the TLS certificate; None where a proxy has it, or on loopback.
        key: The file of its key.
        proxies: The addresses of proxies whose ``X-Forwarded-*`` headers are trusted.
        origin: The address that browsers see, such as ``https://stats.example.org``; None for
            that of the request.
        workers: The most worker processes.
        worker_idle: After how long without work a worker ends.
        request_bytes: The largest body of a request.
        header_bytes: The largest head of a request: its line and its headers.
        request_time: How long a request may take to arrive, head and body.
        response_time: How long a client may take to read a part of a response.
        keep_alive: How long a connection without a request stays open.
        work_time: How long a task may run before it is cancelled.
        plan_time: How much processor time the plan of a query may take before it is ended.
        wait: How long a request waits for a task before it is answered with a job.
        rate: Requests a minute for each token.
        burst: Requests of a token at once.
        connections: The most connections at once.
        address_connections: The most of one address, or of one network of IPv6. Those of `proxies`
            have no such limit: behind them all addresses look alike.
        time_step: Counting and drawing of a release take multiples of this, so that how long they
            took says little about the rows; 0 for no such steps.
        stop_time: How long a stop waits for what is running.
        signing_key: The Ed25519 key that signs reports; None to sign elsewhere.
    """

    host: str = _setting("127.0.0.1", _text)
    port: int = _setting(8461, _whole(0, 65_535))
    certificate: Path | None = field(default=None, metadata=FILE_SETTING)
    key: Path | None = field(default=None, metadata=FILE_SETTING)
    proxies: tuple[str, ...] = _setting((), _proxies)
    origin: str | None = _setting(None, _origin)
    workers: int = _setting(2, _whole(1, MAX_WORKERS))
    worker_idle: float = _setting(300.0, _seconds(0.1))
    request_bytes: int = _setting(65_536, _whole(1_024, MAX_REQUEST_BYTES))
    header_bytes: int = _setting(16_384, _whole(1_024, 2**20))
    request_time: float = _setting(15.0, _seconds(0.1))
    response_time: float = _setting(30.0, _seconds(0.1))
    keep_alive: float = _setting(30.0, _seconds(0.1))
    work_time: float = _setting(3_600.0, _seconds(0.1))
    plan_time: float = _setting(120.0, _seconds(0.1))
    wait: float = _setting(10.0, _seconds(0.1, zero=True))
    rate: int = _setting(600, _whole(1, 1_000_000))
    burst: int = _setting(60, _whole(1, 100_000))
    connections: int = _setting(500, _whole(1, 100_000))
    address_connections: int = _setting(100, _whole(1, 100_000))
    time_step: float = _setting(0.05, _seconds(0.001, zero=True))
    stop_time: float = _setting(20.0, _seconds(0.1, zero=True))
    signing_key: Path | None = field(default=None, metadata=FILE_SETTING)

    @property
    def secure(self) -> bool:
        """Whether browsers reach it by TLS, so that cookies are sent over nothing else."""
        return self.certificate is not None or (self.origin or "").startswith("https://")


READERS = {field.name: field.metadata["read"] for field in fields(ServerSettings)}
FILES = tuple(field.name for field in fields(ServerSettings) if "file" in field.metadata)


def read_server_section(top: TomlSection) -> Mapping[str, Any]:
    """The values of ``[server]`` by key; empty if there is no such section."""
    if "server" not in top.content:
        return {}
    section = top.section("server", tuple(READERS))
    return {key: READERS[key](section, key) for key in section.content}
