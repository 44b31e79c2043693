"""``takifugu serve``: the project for owners, analysts and auditors, over HTTP."""

import json
from pathlib import Path
from typing import Annotated

import typer

from takifugu.cli.shared_options import AsJson, InProject, echo, the_project


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
            " believed; may be repeated."
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(help="The address that browsers see, such as https://stats.example.org."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="The most worker processes; by default 2.")
    ] = None,
    folder: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Serve the project: owners decide, analysts ask, auditors check.

    Options stand in the section [server] of the project file too; those of the command come first.
    The address is printed once requests are answered; logs go to stderr, a JSON object each. Tokens
    are made by `takifugu token create`.

    SIGTERM or Ctrl-C stops it in order: running requests end first. A second one stops it at once.

    Keys of the JSON object: url, project, pid.
    """
    from takifugu.server.operation.read_settings import server_settings

    options = {
        "host": host,
        "port": port,
        "certificate": certificate,
        "key": key,
        "proxies": None if not proxy else tuple(proxy),
        "origin": origin,
        "workers": workers,
    }
    project = the_project(folder)
    settings = server_settings(project, options)

    from takifugu.server.operation.server_process import run_server

    def announce(url: str) -> None:
        import os

        found = {"url": url, "project": str(project.file), "pid": os.getpid()}
        echo(json.dumps(found, ensure_ascii=False) if as_json else url)

    run_server(project.file, settings, announce=announce)
