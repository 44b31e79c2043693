"""The section ``[server]`` of a project file: strictly read here, used by `takifugu.server`.

It stands beside what it serves, so that one file says all of a project. Every command refuses a key
of it that is unknown, as it does in any other section.
"""

import ipaddress
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from takifugu._exact import is_finite
from takifugu._toml import TomlSection

MOST_WORKERS = 256
MOST_BYTES = 64 * 2**20
MOST_SECONDS = 7 * 24 * 3_600.0


def read_server_section(top: TomlSection) -> Mapping[str, Any]:
    """The values of ``[server]`` by key; empty if there is no such section."""
    if "server" not in top.content:
        return {}
    section = top.section("server", tuple(READERS))
    return {key: READERS[key](section, key) for key in section.content}


def network_of(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """An address, or a network of addresses; a ValueError if it is neither."""
    return ipaddress.ip_network(text.strip())


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
        elif value > MOST_SECONDS:
            given = f"is {value!r:.40}, which is more than a week"
        else:
            return float(value)
        or_zero = "0, or " if zero else ""
        raise section.wrong(
            key,
            given=given,
            needed=f"be {or_zero}seconds from {least:g} to {MOST_SECONDS:g}",
            reason="range",
        )

    return read


READERS: dict[str, Callable[[TomlSection, str], Any]] = {
    "host": _text,
    "port": _whole(0, 65_535),
    "certificate": _text,
    "key": _text,
    "proxies": _proxies,
    "origin": _origin,
    "workers": _whole(1, MOST_WORKERS),
    "worker_idle": _seconds(0.1),
    "request_bytes": _whole(1_024, MOST_BYTES),
    "header_bytes": _whole(1_024, 2**20),
    "request_time": _seconds(0.1),
    "response_time": _seconds(0.1),
    "keep_alive": _seconds(0.1),
    "work_time": _seconds(0.1),
    "plan_time": _seconds(0.1),
    "wait": _seconds(0.1, zero=True),
    "rate": _whole(1, 1_000_000),
    "burst": _whole(1, 100_000),
    "connections": _whole(1, 100_000),
    "address_connections": _whole(1, 100_000),
    "time_step": _seconds(0.001, zero=True),
    "stop_time": _seconds(0.1, zero=True),
    "signing_key": _text,
}
