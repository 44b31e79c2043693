"""``takifugu serve --check``: everything that is misconfigured, told at once.

Nothing is written and nothing is served. What is "wrong" must be mended before others are let in;
a "warning" may be meant so.
"""

import importlib.util
import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from takifugu._atomic import read_bytes
from takifugu.engines import read_declaration
from takifugu.keys import beside, state_folder
from takifugu.ledger.storage.addresses import address_of
from takifugu.ledger.storage.store import WAIT, Store
from takifugu.ledger.witnesses.head_witness import LostWitness
from takifugu.project.project import Project, open_project
from takifugu.server.operation.disk_space import disk_findings
from takifugu.server.operation.file_checks import open_data, project_files, same_disk
from takifugu.server.operation.findings import Finding, gathered, ok, warning, wrong
from takifugu.server.operation.read_settings import faults, server_settings
from takifugu.server.settings import ServerSettings

REPORTS = {"weasyprint": "weasyprint", "cryptography": "cryptography"}  # of the extra `reports`
PACKAGES = {
    "uvicorn": "uvicorn",
    "httptools": "httptools",
    "fastapi": "fastapi",
    "jinja2": "jinja2",
    "prometheus_client": "prometheus-client",
    "python_multipart": "python-multipart",
}
STATE = "takifugu.server"
WORKER_BYTES = 400 * 2**20  # a worker with a dataset open, and what one query needs
OTHER_FILES = 256  # file descriptors beside connections
END = 2**63 - 1  # after every event
CLOCK = timedelta(minutes=2)
SOON = timedelta(days=14)


def check_server(file: Path, options: Mapping[str, Any]) -> list[Finding]:
    """All findings, in the order in which they matter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostWitness)  # which is a finding
        return _found(file, options)


def _found(file: Path, options: Mapping[str, Any]) -> list[Finding]:
    found = gathered("packages", _packages)
    projects: list[Project] = []
    found += gathered("project", lambda: _project(file, projects))
    if not projects:
        return found
    project = projects[0]
    settings: list[ServerSettings] = []
    found += gathered("settings", lambda: _settings(project, options, settings))
    found += gathered("ledger", lambda: _ledger(project))
    found += gathered("witness", lambda: _witness(project))
    found += gathered("tokens", lambda: _tokens(project))
    found += gathered("datasets", lambda: _datasets(project))
    found += gathered("database", lambda: _database(project))
    found += gathered("disk", lambda: disk_findings(project))
    found += gathered("user", _user)
    if settings:
        looks: tuple[tuple[str, Callable[[Project, ServerSettings], Iterable[Finding]]], ...] = (
            ("files", _files),
            ("data", lambda project, _: _data(project)),
            ("address", lambda _, given: _address(given)),
            ("tls", lambda _, given: _tls(given)),
            ("signing", lambda _, given: _signing(given)),
            ("machine", lambda _, given: _machine(given)),
        )
        for name, look in looks:
            found += gathered(name, partial(look, project, settings[0]))
    return found


def _packages() -> Iterator[Finding]:
    missing = [name for module, name in PACKAGES.items() if not importlib.util.find_spec(module)]
    if missing:
        found = f"not installed: {', '.join(missing)}"
        yield wrong("packages", found, "pip install 'takifugu[server]'")
    elif not importlib.util.find_spec("uvloop"):
        yield warning("packages", "uvloop is not installed", "pip install uvloop, which is faster")
    else:
        yield ok("packages", "all of the extra `server` are installed")
    without = [name for module, name in REPORTS.items() if not importlib.util.find_spec(module)]
    if without:
        yield warning(
            "packages",
            f"not installed: {', '.join(without)}: no reports as PDF, or none that are signed",
            "pip install 'takifugu[server,reports]', if you want them",
        )


def _project(file: Path, made: list[Project]) -> Iterator[Finding]:
    made.append(open_project(file))
    many = len(made[0].policy.datasets)
    yield ok("project", f"{made[0].file}: {many} dataset{'' if many == 1 else 's'}")


def _settings(
    project: Project, options: Mapping[str, Any], made: list[ServerSettings]
) -> Iterator[Finding]:
    settings = server_settings(project, options, check=False)
    made.append(settings)
    given = {key: value for key, value in options.items() if value is not None}
    contradictions = faults(project, settings, given)
    for error in contradictions:
        yield wrong("settings", f"`{error.field}` {error.given}", f"it must {error.needed}")
    if settings.proxies and settings.origin is None:
        yield warning(
            "settings",
            "proxies are trusted, and no `origin` says what browsers see",
            "set origin = 'https://…', so that cookies are sent over TLS alone",
        )
    if settings.time_step == 0:
        yield warning(
            "settings",
            "`time_step` is 0: how long a release takes may tell something of the rows",
            "leave it at 0.05, unless all analysts may see the rows",
        )
    if not contradictions:
        where = f"{settings.host}:{settings.port}"
        by = "TLS" if settings.certificate else "a proxy" if settings.proxies else "this machine"
        yield ok("settings", f"listens on {where}, for {by}")


def _ledger(project: Project) -> Iterator[Finding]:
    now = datetime.now(UTC)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LostWitness)
        with project.ledger(read_only=True) as ledger:
            last = max((event.at for event in ledger.events(limit=1, before=END)), default=now)
    lost = [str(one.message) for one in caught if issubclass(one.category, LostWitness)]
    if lost:  # opened to be written, it would have a new witness already
        yield warning("witness", lost[0], "compare the head with what auditors have noted")
    else:
        with project.ledger() as ledger:
            ledger.check_writable()
            yield ok("ledger", f"{ledger.name} can be read and written")
    if last - now > CLOCK:
        yield wrong(
            "clock",
            f"it is {now:%Y-%m-%d %H:%M} UTC here, and the last event of the ledger is later",
            "set the clock; tokens end and windows are counted by it",
        )
    else:
        yield ok("clock", f"{now:%Y-%m-%d %H:%M} UTC, not before the last event of the ledger")


def _witness(project: Project) -> Iterator[Finding]:
    place, ledger = project.witness, address_of(project.ledger_place)
    text = str(place)
    if isinstance(place, str) and "://" in text:
        yield ok("witness", "kept by another server")
        return
    path = state_folder() / "heads" if place is True else Path(text)
    if ledger.sqlite and same_disk(Path(ledger.name), path):
        yield warning(
            "witness",
            f"{path} is on the same disk as the ledger: who puts back an old copy of the disk"
            " renews the budget unnoticed",
            "name another mount or another server as `witness` in [ledger]",
        )
    else:
        yield ok("witness", f"{path}, on another disk than the ledger")


def _tokens(project: Project) -> Iterator[Finding]:
    from takifugu.server.access.token_history import doubtful_tokens
    from takifugu.server.state.server_state import open_state

    create = "takifugu token create --role owner --name NAME"
    with (
        open_state(project, create=False) as state,
        project.ledger(read_only=True) as ledger,
    ):
        now, tokens = state.now(), state.tokens()
        doubtful = doubtful_tokens(state, ledger)
    for one in doubtful:
        yield warning(
            *("tokens", f"{one.words}; the server refuses it"),
            "find out whether an old copy of the server's state was put back, or who changed it",
        )
    ids = {one.record.id for one in doubtful}
    tokens = [one for one in tokens if one.id not in ids]
    owners = [one for one in tokens if one.role == "owner" and one.live(now)]
    if not owners:
        ended = any(one.role == "owner" for one in tokens)
        found = "every token of an owner has ended" if ended else "no owner has a token"
        yield wrong("tokens", found, f"`{create}`")
        return
    ends = [one.expires for one in owners]
    last = max((end for end in ends if end is not None), default=now)
    if None not in ends and last - now < SOON:
        yield warning("tokens", f"the last owner's token ends on {last:%Y-%m-%d}", f"`{create}`")
    unlimited = sorted({one.name for one in tokens if one.live(now) and one.expires is None})
    if unlimited:
        yield warning(
            "tokens",
            f"tokens that never end: of {', '.join(unlimited[:5])}{' …' if unlimited[5:] else ''}",
            "make new ones with --expires, and revoke these",
        )
    names = len({one.name for one in owners})
    live = sum(one.live(now) for one in tokens)
    yield ok(
        "tokens", f"{live} can be used, of {names} owner{'' if names == 1 else 's'} and others"
    )


def _datasets(project: Project) -> Iterator[Finding]:
    with project.ledger(read_only=True) as ledger:
        budgets = {one.dataset for one in ledger.positions() if one.epsilon is not None}
    for name in project.policy.datasets:
        found = project.load(name)
        if not found.policy.priors:
            yield wrong("datasets", f"{name!r} has no prior", f"`takifugu prior fit {name}`")
        elif name not in budgets:
            yield warning(
                "datasets", f"{name!r} has no budget", f"`takifugu budget set {name} EPSILON`"
            )
        elif project.needs_acceptance(name):
            yield warning(
                "datasets",
                f"{name!r} has a policy that its owner has not accepted; nothing is released",
                f"`takifugu prior accept {name}`",
            )
        else:
            yield ok("datasets", f"{name!r} can be asked about")
    if not project.policy.datasets:
        yield warning("datasets", "there are none", "`takifugu dataset add` adds one")


def _user() -> Iterator[Finding]:
    if os.geteuid() == 0:
        yield warning(
            "user",
            "the server would run as root, to whom every file is open",
            "run it as a user of its own: see docs/how-to/deploy.md",
        )
    else:
        yield ok("user", f"runs as user number {os.geteuid()}")


def _files(project: Project, settings: ServerSettings) -> Iterator[Finding]:
    private = [project.folder / STATE, *_logs(project.folder / STATE)]
    ledger = address_of(project.ledger_place)
    if ledger.sqlite:
        place = Path(ledger.name)
        private += [place, *_logs(place), beside(place)]
    if isinstance(project.witness, Path):
        private.append(project.witness)
    if settings.signing_key is not None:
        private.append(settings.signing_key)
    shared = () if settings.key is None else (settings.key,)
    yield from project_files(project.file, private, group_may_read=shared)


def _data(project: Project) -> Iterator[Finding]:
    seen: list[Finding] = []
    for name, policy in project.policy.datasets.items():
        declaration = read_declaration(project.folder / policy.declaration)
        path = declaration.source.path
        if path is not None and (declaration.folder / path).exists():
            seen += list(open_data(name, declaration.folder / path))
    yield from seen or [ok("data", "not everybody here can read its files")]


def _database(project: Project) -> Iterator[Finding]:
    """Schemas of PostgreSQL that everybody may write to, and tables that run the code of others."""
    place = project.ledger_place
    if not address_of(place).sqlite:
        from takifugu._postgresql import anybody_creates, foreign_code

        with closing(Store(place, read_only=True, wait=WAIT)) as store, store.unguarded() as opened:
            foreign = foreign_code(opened.raw, opened.schema, "takifugu_")
            yield from _schema(
                "the ledger", opened.schema, anybody_creates(opened.raw, opened.schema)
            )
        for kind, name, table in foreign:
            yield wrong(
                "database",
                f"{opened.schema}.{table}: {kind} {name!r} was added: code of others would run"
                " with its rights, or hide its rows",
                "remove it, and find out who made it",
            )
    for name, policy in project.policy.datasets.items():
        declaration = read_declaration(project.folder / policy.declaration)
        if declaration.source.kind == "postgres":
            from takifugu.engines.backends.postgres import PostgresBackend

            with closing(PostgresBackend(declaration)) as backend:
                yield from _schema(f"dataset {name!r}", backend.schema, backend.anybody_creates())


def _schema(whose: str, schema: str, anybody: bool) -> Iterator[Finding]:
    """What a schema of PostgreSQL is to a ledger or a dataset whose connection was made."""
    if anybody:
        yield warning(
            "database",
            f"every role may create objects in schema {schema}, which has {whose}",
            f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, or move the tables to another",
        )
    else:
        yield ok("database", f"{whose} is in schema {schema}; no other code can take its names")


def _logs(place: Path) -> list[Path]:
    return [Path(f"{place}{suffix}") for suffix in ("-wal", "-shm")]


def _address(settings: ServerSettings) -> Iterator[Finding]:
    from dataclasses import replace

    from takifugu.server.operation.listening import listening_socket

    listening_socket(replace(settings, port=0)).close()
    yield ok("address", f"{settings.host} is an address of this machine")


def _tls(settings: ServerSettings) -> Iterator[Finding]:
    from takifugu.server.operation.tls_checks import certificate_findings

    if settings.certificate is not None and settings.key is not None:
        now = datetime.now(UTC)
        yield from certificate_findings(settings.certificate, settings.key, settings.origin, now)


def _signing(settings: ServerSettings) -> Iterator[Finding]:
    if settings.signing_key is not None:
        from takifugu.reports.report_signature import read_private_key

        read_private_key(read_bytes(settings.signing_key, field="signing_key", needed="be a key"))
        yield ok("signing", f"{settings.signing_key} can sign reports")


def _machine(settings: ServerSettings) -> Iterator[Finding]:
    memory, needed = free_memory(), settings.workers * WORKER_BYTES
    findings = []
    if memory is not None and needed > memory:
        findings.append(
            warning(
                "machine",
                f"{settings.workers} workers may need {_gigabytes(needed)} of memory, and"
                f" {_gigabytes(memory)} are free",
                "have fewer `workers`, or more memory",
            )
        )
    processors = os.cpu_count() or 1
    if settings.workers > 4 * processors:
        findings.append(
            warning(
                "machine",
                f"{settings.workers} workers on {processors} processors",
                "have fewer `workers`: they would wait for one another",
            )
        )
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and settings.connections + OTHER_FILES > most:
        findings.append(
            wrong(
                "machine",
                f"{settings.connections} connections need more open files than the {most} allowed",
                f"set LimitNOFILE={settings.connections + 4 * OTHER_FILES}, or fewer `connections`",
            )
        )
    yield from findings or [ok("machine", "memory, processors and open files are enough")]


def free_memory() -> int | None:
    """Bytes that are free: of the machine, or what a control group leaves; None if unknown."""
    if not sys.platform.startswith("linux"):
        return None
    found = []
    with suppress(OSError, ValueError, IndexError):
        _, _, rest = Path("/proc/meminfo").read_text().partition("MemAvailable:")
        found.append(int(rest.split()[0]) * 1024)
    with suppress(OSError, ValueError):  # "max" is no number, and no limit
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        found.append(max(0, limit - int((group / "memory.current").read_text())))
    return min(found, default=None)


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GB"
