"""``takifugu serve``: the project for owners, analysts and auditors, over HTTP."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from takifugu.cli.shared_options import AsJson, InProject, echo, print_json, the_project
from takifugu.cli.shell_completion import FILE, nearest_project


def run_serve(
    host: Annotated[
        str | None, typer.Option(help="The address to listen on; by default 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port, by default 8461; 0 for one that is free.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(help="The TLS certificate with its chain, as PEM.")
    ] = None,
    key: Annotated[Path | None, typer.Option(help="Its private key, as PEM.")] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            help="An address or network of a proxy in front, whose X-Forwarded headers are"
            " trusted; may be repeated."
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(help="The address that browsers see, such as https://stats.example.org."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="The most worker processes; by default 2.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Tell everything that is misconfigured; serve nothing.")
    ] = False,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Serve the project: owners decide, analysts ask, auditors check.

    Options stand in the section [server] of the project file too; those of the command come first.
    The address is printed once requests are answered; logs go to stderr, a JSON object each. Tokens
    are made by `takifugu token create`.

    SIGTERM or Ctrl-C stops it gracefully: running requests end first. A second one stops it
    immediately.

    With --check the status is 1 if anything is wrong; a warning may be meant so.

    JSON: url, project, pid; with --check: ok, project, checks (name, level: ok, warning or wrong,
    found, advice).
    """
    options = {
        "host": host,
        "port": port,
        "certificate": certificate,
        "key": key,
        "proxies": None if not proxy else tuple(proxy),
        "origin": origin,
        "workers": workers,
    }
    if check:
        _check(folder, options, as_json=as_json)
        return
    project = the_project(folder)

    from takifugu.server.settings import server_settings

    settings = server_settings(project, options)

    from takifugu.server.operation.server_process import run_server

    def announce(url: str) -> None:
        import os

        facts = {"url": url, "project": str(project.file), "pid": os.getpid()}
        echo(json.dumps(facts, ensure_ascii=False) if as_json else url)

    run_server(project.file, settings, announce=announce)


def _check(folder: Path | None, options: dict[str, Any], *, as_json: bool) -> None:
    """Print what is misconfigured; an exit status of 1 if something is wrong."""
    from takifugu.server.operation.preflight import check_server

    folder_or_file = folder or nearest_project(Path())
    if folder_or_file is None:
        folder_or_file = the_project(folder).file  # which says what is missing
    file = folder_or_file / FILE if folder_or_file.is_dir() else folder_or_file
    findings = check_server(file, options)
    well = all(one.level != "wrong" for one in findings)
    if as_json:
        checks = [vars(one) for one in findings]
        print_json({"ok": well, "project": str(file), "checks": checks})
    else:
        for one in findings:
            echo(f"{one.level:<8} {one.name:<9} {one.found}")
            if one.advice:
                echo(f"{'':<18} → {one.advice}")
    if not well:
        raise typer.Exit(1)
