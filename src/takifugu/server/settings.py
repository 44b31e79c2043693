"""How a server is set up: the section ``[server]`` of a project file, and options of `serve`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from takifugu._core.toml import TomlSection, parse_toml
from takifugu.project.policy import InvalidProject, read_text
from takifugu.project.project import Project
from takifugu.project.server_section import FILES, READERS, ServerSettings, is_loopback

FLAGS = {"proxies": "--proxy"}  # options that are called otherwise than their key


class OptionSection(TomlSection):
    """Options of a command, read as the section is, whose errors name the option."""

    def at(self, key: str) -> str:
        """The option of a key."""
        return FLAGS.get(key, f"--{key}")


def server_settings(
    project: Project, options: Mapping[str, Any] | None = None, *, check: bool = True
) -> ServerSettings:
    """The settings of a project's server.

    Args:
        project: The project, whose file may have a section ``[server]``.
        options: By key, what a command gives instead; None is not given. Files are from here.
        check: Whether to refuse settings that contradict one another, or that would send tokens in
            clear over a network.
    """
    values = dict(project.policy.server)
    for key in FILES:
        if key in values:
            values[key] = project.folder / values[key]
    given = {key: value for key, value in (options or {}).items() if value is not None}
    _check_options(given)
    settings = replace(ServerSettings(), **(values | given))
    if check:
        for error in faults(project, settings, given):
            raise error
    return settings


def _check_options(given: Mapping[str, Any]) -> None:
    plain = {"proxies": list, **dict.fromkeys(FILES, str)}
    content = {key: plain[key](value) if key in plain else value for key, value in given.items()}
    section = OptionSection(content, error=InvalidProject)
    for key in content:
        READERS[key](section, key)


def faults(
    project: Project, settings: ServerSettings, options: Mapping[str, Any]
) -> list[InvalidProject]:
    """Every contradiction in the settings, as the error that says what to do."""
    errors = []

    def contradicts(key: str, given: str, needed: str, reason: str) -> None:
        field, line = _where(project, key, options)
        errors.append(InvalidProject(field, given=given + line, needed=needed, reason=reason))

    for key, other in (("certificate", "key"), ("key", "certificate")):
        if getattr(settings, key) is not None and getattr(settings, other) is None:
            needed = f"go with `{other}`, the file of the other half"
            contradicts(key, "is alone", needed, "alone")
    if settings.certificate is not None and (settings.origin or "").startswith("http://"):
        given = f"is {settings.origin!r}, though there is a certificate"
        contradicts("origin", given, "begin with https://", "scheme")
    if settings.time_step >= settings.work_time:
        given = f"is {settings.time_step:g} s, and a task is ended after {settings.work_time:g}"
        contradicts("time_step", given, "be less than `work_time`", "work-time")
    if exposed(settings):
        contradicts(
            "host",
            f"is {settings.host!r:.80}, which others can reach, without TLS",
            "be 127.0.0.1; or give `certificate` and `key`; or, behind a proxy that has TLS, give"
            " its addresses as `proxies` and what browsers see as `origin` = 'https://…'",
            "exposed",
        )
    return errors


def exposed(settings: ServerSettings) -> bool:
    """Whether tokens would cross a network in clear: no TLS here, and none declared in front."""
    behind = bool(settings.proxies) and (settings.origin or "").startswith("https://")
    return settings.certificate is None and not behind and not is_loopback(settings.host)


def _where(project: Project, key: str, options: Mapping[str, Any]) -> tuple[str, str]:
    """Where a setting stands: its option, or its key in the project file, and on which line."""
    if key in options:
        return FLAGS.get(key, f"--{key}"), ""
    top = TomlSection(parse_toml(read_text(Path(project.file))))
    field = top.section("server", None).at(key) if "server" in top.content else f"server, {key}"
    position = getattr(field, "position", "")
    return f"{project.file}: {field}", f" ({position})" if position else ""
