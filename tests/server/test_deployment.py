"""What the page on deployment shows is right: the unit, the proxy's file, settings and metrics."""

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from takifugu.project.policy import parse_policy
from takifugu.project.server_section import ServerSettings
from takifugu.server.access_rules import BY_ROUTE, ROLES
from takifugu.server.operation.health import CHECKS, ServerMetrics
from takifugu.server.operation.middleware import WITH_ADDRESS
from tests.test_docs import blocks

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "deploy.md"
TEXT = PAGE.read_text(encoding="utf-8")
MARKED = {block.mark: block.text for block in blocks(TEXT) if block.mark}
DEFAULT = ServerSettings()

KEYS = {  # those of systemd 240 and later that a unit of ours may use
    "Unit": "Description Documentation Wants After Requires",
    "Service": "Type User Group StateDirectory StateDirectoryMode CacheDirectory"
    " CacheDirectoryMode WorkingDirectory Environment ExecStartPre ExecStart ExecReload Restart"
    " RestartSec TimeoutStartSec TimeoutStopSec KillMode LimitNOFILE UMask ReadWritePaths"
    " LoadCredential NoNewPrivileges ProtectSystem ProtectHome PrivateTmp PrivateDevices"
    " ProtectClock ProtectControlGroups ProtectHostname ProtectKernelLogs ProtectKernelModules"
    " ProtectKernelTunables ProtectProc RestrictAddressFamilies RestrictNamespaces"
    " RestrictRealtime RestrictSUIDSGID LockPersonality CapabilityBoundingSet"
    " AmbientCapabilities SystemCallArchitectures SystemCallFilter SystemCallErrorNumber",
    "Install": "WantedBy",
}
LISTS = ("Environment", "ExecStartPre", "After", "Wants")  # may be given more than once


class NotAUnit(Exception):
    """A unit file has a line that systemd would ignore or refuse."""


def parse_unit(text: str) -> dict[str, dict[str, list[str]]]:
    """A unit file, read more strictly than systemd does: what it does not know is an error."""
    found: dict[str, dict[str, list[str]]] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if header := re.fullmatch(r"\[(\w+)\]", line):
            section = header[1]
            if section not in KEYS or section in found:
                raise NotAUnit(number, line)
            found[section] = {}
            continue
        key, equals, value = line.partition("=")
        known = KEYS.get(section, "").split()
        if not equals or key not in known or value != value.strip() or value.endswith("\\"):
            raise NotAUnit(number, line)
        if key in found[section] and key not in LISTS:
            raise NotAUnit(number, line)
        found[section].setdefault(key, []).append(value)
    return found


UNIT = MARKED["takifugu.service"]


def test_systemd_reads_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    here = shutil.which("true")
    assert here is not None
    path = tmp_path / "takifugu.service"  # in a folder without blanks: systemd splits its arguments
    path.write_text(UNIT.replace("/opt/takifugu/bin/takifugu", here), encoding="utf-8")
    ran = subprocess.run(  # noqa: S603 - our own file
        ["systemd-analyze", "verify", str(path)],  # noqa: S607 - found above
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in ran.stderr.splitlines() if "takifugu" in line]
    assert (ran.returncode, ours) == (0, []), ran.stderr


def test_the_unit_is_what_it_should_be() -> None:
    unit = parse_unit(UNIT)
    service = unit["Service"]
    assert service["ExecStart"] == ["/opt/takifugu/bin/takifugu serve"]
    assert service["ExecStartPre"] == ["/opt/takifugu/bin/takifugu serve --check"]
    assert service["Type"] == ["notify"] and service["User"] != ["root"]
    for key in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"):
        assert service[key] == ["yes"]
    assert service["ProtectSystem"] == ["strict"] and service["CapabilityBoundingSet"] == [""]
    assert service["StateDirectoryMode"] == ["0700"] and service["UMask"] == ["0077"]
    assert float(service["TimeoutStopSec"][0]) > DEFAULT.stop_time + 10
    assert int(service["LimitNOFILE"][0]) > DEFAULT.connections + 256
    assert unit["Install"] == {"WantedBy": ["multi-user.target"]}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[Service]", "[Servise]"),
        ("NoNewPrivileges=yes", "NoNewPriviledges=yes"),
        ("NoNewPrivileges=yes", "NoNewPrivileges yes"),
        ("NoNewPrivileges=yes", "NoNewPrivileges = yes"),
        ("UMask=0077", "UMask=0077\nUMask=0000"),
        ("[Install]", "[Service]"),
    ],
)
def test_the_parser_sees_a_unit_that_is_wrong(right: str, wrong: str) -> None:
    with pytest.raises(NotAUnit):
        parse_unit(UNIT.replace(right, wrong, 1))


def test_the_file_for_nginx_agrees_with_the_defaults() -> None:
    text = MARKED["takifugu.conf"]
    directives = re.findall(r"^\s*([a-z_]+)\s+([^;{}]*);$", text, re.MULTILINE)
    opened = re.findall(r"^\s*(server|location /) \{$", text, re.MULTILINE)
    lines = [line for line in text.splitlines() if line.strip() and line.strip() != "}"]
    assert len(directives) + len(opened) == len(lines) and opened == ["server", "location /"]
    assert text.count("{") == text.count("}") == 2
    values = dict(directives)
    assert values["client_max_body_size"] == f"{DEFAULT.request_bytes // 1024}k"
    assert values["client_header_timeout"] == f"{DEFAULT.request_time:g}s"
    assert values["proxy_pass"] == f"http://{DEFAULT.host}:{DEFAULT.port}"
    assert float(values["proxy_read_timeout"].rstrip("s")) > DEFAULT.wait
    assert values["proxy_buffering"] == "off" and "TLSv1.1" not in values["ssl_protocols"]
    sent = [value for name, value in directives if name == "proxy_set_header"]
    assert "Host $host" in sent and "X-Forwarded-For $proxy_add_x_forwarded_for" in sent


def test_the_sections_of_the_page_can_be_read() -> None:
    shown = [b.text for b in blocks(TEXT) if b.language == "toml" and b.text.startswith("[server]")]
    assert len(shown) == 2
    for text in shown:
        policy = parse_policy(f'[ledger]\nplace = "l"\nid = "{"0" * 64}"\n{text}')
        assert policy.server["origin"].startswith("https://")


def test_every_setting_is_on_the_page_with_its_default() -> None:
    _, _, table = TEXT.partition("## Settings")
    listed: dict[str, str] = {}
    for line in re.findall(r"^\| `.*\|$", table, re.MULTILINE):
        keys, defaults, words = line.strip("|").split("|")
        names = re.findall(r"`(\w+)`", keys)
        values = re.findall(r"`([^`]*)`", defaults) or [""] * len(names)
        assert len(names) == len(values) and words.strip()
        listed |= dict(zip(names, values, strict=True))
    assert set(listed) == {field.name for field in fields(ServerSettings)}
    for name, shown in listed.items():
        default = getattr(DEFAULT, name)
        if default is None:
            assert shown == ""
        elif isinstance(default, tuple):
            assert shown == "[]"
        else:
            assert shown.strip('"') == (
                f"{default:g}" if isinstance(default, float) else f"{default}"
            )


def test_metrics_and_checks_are_on_the_page() -> None:
    names = re.findall(rb"^# TYPE (\w+)", ServerMetrics().text(), re.MULTILINE)
    for name in {one.decode() for one in names if one.startswith(b"takifugu_")}:
        assert f"`{name}`" in TEXT or name.endswith("_created")
    for name in ("takifugu_connections", "takifugu_workers", "takifugu_tasks", "takifugu_jobs"):
        assert f"`{name}`" in TEXT
    assert all(f"`{name}`" in TEXT for name in CHECKS)
    assert all(str(status) in TEXT for status in WITH_ADDRESS)


ROWS = {  # of the table on who can do what, and a route that each is about
    "sees declaration, guarantee, budget": ("GET", "/api/v1/datasets/{dataset}"),
    "plans": ("POST", "/api/v1/datasets/{dataset}/plans"),
    "releases": ("POST", "/api/v1/datasets/{dataset}/releases"),
    "sets budgets, accepts priors, adds datasets, decides requests": (
        "PUT",
        "/api/v1/datasets/{dataset}/budget",
    ),
    "makes and revokes tokens": ("POST", "/api/v1/tokens"),
    "reads and verifies the ledger, reports": ("POST", "/api/v1/ledger/verification"),
    "records the head of another ledger": ("PUT", "/api/v1/witness/{ledger}"),
}


def test_the_table_of_roles_is_that_of_the_rules() -> None:
    text = (PAGE.parents[1] / "threat-model.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    heading = next(line for line in lines if line[-1] == "witness")
    roles = heading[-len(ROLES) :]
    assert set(roles) == set(ROLES)
    cells = {line[0]: line[1:] for line in lines}
    for words, route in ROWS.items():
        allowed = {role for role, cell in zip(roles, cells[words], strict=True) if cell != "no"}
        assert allowed == set(BY_ROUTE[route].roles), words
