"""``takifugu serve --check``: everything that is misconfigured, told at once.

Nothing is written and nothing is served. What is "wrong" must be mended before others are let in;
a "warning" may be meant so.

Who else on this machine could read or change a file is told by mode bits alone: access lists, other
mounts of the same disk, backups and root are beyond what a look at a file tells. Of data that a
declaration names, files are looked at; who may read a database is decided there.
"""

import importlib.util
import os
import resource
import shutil
import ssl
import stat
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from takifugu._core.atomic import read_bytes, real_path
from takifugu._core.keys import beside, state_folder
from takifugu.declarations import read_declaration
from takifugu.errors import Malformed, TakifuguError
from takifugu.ledger.storage.database import LOCK_WAIT_SECONDS, Store, address_of
from takifugu.ledger.witnesses.head_witness import LostWitness
from takifugu.project.project import Project, open_project
from takifugu.project.server_section import ServerSettings
from takifugu.server.operation.listening import listening_socket, tls_context
from takifugu.server.settings import faults, server_settings

Level = Literal["ok", "warning", "wrong"]
REPORTS = {"weasyprint": "weasyprint", "cryptography": "cryptography"}  # of the extra `reports`
PACKAGES = {
    "uvicorn": "uvicorn",
    "httptools": "httptools",
    "fastapi": "fastapi",
    "jinja2": "jinja2",
    "prometheus_client": "prometheus-client",
}
STATE_FILE = "takifugu.server"
WORKER_BYTES = 400 * 2**20  # a worker with a dataset open, and what one query needs
OTHER_FILES = 256  # file descriptors beside connections
AFTER_EVERY_EVENT = 2**63 - 1  # after every event
CLOCK_TOLERANCE = timedelta(minutes=2)
RENEWAL_NOTICE = timedelta(days=14)
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
FULL_DISK_BYTES = 32 * 2**20  # bytes that a server needs to go on
LOW_DISK_BYTES = 2**30  # bytes, or a tenth of the disk if that is less: time to make room
EXPIRED, NOT_YET, NAME = (10,), (9,), (62, 64)  # numbers of OpenSSL's verification


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What was looked at: a short name that does not change.
        level: "ok"; "warning", which may be meant so; or "wrong", which must be mended.
        found: What is there.
        advice: What to do; empty if nothing.
    """

    name: str
    level: Level
    found: str
    advice: str = ""


def ok(found: str, name: str = "") -> Finding:
    """Nothing is to be done. Without a name, a finding gets that of the check it comes from."""
    return Finding(name, "ok", found)


def warning(found: str, advice: str, name: str = "") -> Finding:
    """Look at it: it may be meant so."""
    return Finding(name, "warning", found, advice)


def wrong(found: str, advice: str, name: str = "") -> Finding:
    """It must be mended."""
    return Finding(name, "wrong", found, advice)


def findings_of(name: str, check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """What one check finds; an error is a finding too, and does not end the others."""
    try:
        findings = list(check())
    except (TakifuguError, OSError) as error:
        findings = [_failure(error)]
    return [replace(finding, name=finding.name or name) for finding in findings]


def _failure(error: TakifuguError | OSError, name: str = "") -> Finding:
    if isinstance(error, Malformed):
        return wrong(f"`{error.field}` {error.given}", f"it must {error.needed}", name)
    if isinstance(error, OSError):
        reason = (error.strerror or type(error).__name__).lower()
        where = "" if error.filename is None else f"{str(error.filename)!r}: "
        return wrong(f"{where}{reason}", "let this user read it, or name another", name)
    return wrong(str(error), "mend it, and check again", name)


def check_server(file: Path, options: Mapping[str, Any]) -> list[Finding]:
    """All findings, in the order in which they matter."""
    given = {key: value for key, value in options.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LostWitness)  # which is a finding
        findings = findings_of("packages", _packages)
        try:
            project = open_project(file)
        except (TakifuguError, OSError) as error:
            return [*findings, _failure(error, "project")]
        many = len(project.policy.datasets)
        findings.append(ok(f"{project.file}: {many} dataset{'' if many == 1 else 's'}", "project"))
        settings = None
        try:
            settings = server_settings(project, given, check=False)
        except (TakifuguError, OSError) as error:
            findings.append(_failure(error, "settings"))
        else:
            findings += findings_of("settings", partial(_settings, project, settings, given))
        for name, check in PROJECT_CHECKS.items():
            findings += findings_of(name, partial(check, project))
        if settings is not None:
            for name, look in SETTINGS_CHECKS.items():
                findings += findings_of(name, partial(look, project, settings))
    return findings


def _packages() -> Iterator[Finding]:
    missing = [name for module, name in PACKAGES.items() if not importlib.util.find_spec(module)]
    if missing:
        state = f"not installed: {', '.join(missing)}"
        yield wrong(state, "pip install 'takifugu[server]'")
    elif not importlib.util.find_spec("uvloop"):
        yield warning("uvloop is not installed", "pip install uvloop, which is faster")
    else:
        yield ok("all of the extra `server` are installed")
    without = [name for module, name in REPORTS.items() if not importlib.util.find_spec(module)]
    if without:
        yield warning(
            f"not installed: {', '.join(without)}: no reports as PDF, or none that are signed",
            "pip install 'takifugu[server,reports]', if you want them",
        )


def _settings(
    project: Project, settings: ServerSettings, given: Mapping[str, Any]
) -> Iterator[Finding]:
    contradictions = faults(project, settings, given)
    yield from map(_failure, contradictions)
    if settings.proxies and settings.origin is None:
        yield warning(
            "proxies are trusted, and no `origin` says what browsers see",
            "set origin = 'https://…', so that cookies are sent over TLS alone",
        )
    if settings.time_step == 0:
        yield warning(
            "`time_step` is 0: how long a release takes may tell something of the rows",
            "leave it at 0.05, unless all analysts may see the rows",
        )
    if not contradictions:
        where = f"{settings.host}:{settings.port}"
        by = "TLS" if settings.certificate else "a proxy" if settings.proxies else "this machine"
        yield ok(f"listens on {where}, for {by}")


def _ledger(project: Project) -> Iterator[Finding]:
    now = datetime.now(UTC)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LostWitness)
        with project.ledger(read_only=True) as ledger:
            last = max(
                (event.at for event in ledger.events(limit=1, before=AFTER_EVERY_EVENT)),
                default=now,
            )
    lost = [
        str(caught_warning.message)
        for caught_warning in caught
        if issubclass(caught_warning.category, LostWitness)
    ]
    if lost:  # opened to be written, it would have a new witness already
        yield warning(lost[0], "compare the head with what auditors have noted", "witness")
    else:
        with project.ledger() as ledger:
            ledger.check_writable()
            yield ok(f"{ledger.name} can be read and written")
    if last - now > CLOCK_TOLERANCE:
        yield wrong(
            f"it is {now:%Y-%m-%d %H:%M} UTC here, and the last event of the ledger is later",
            "set the clock; tokens end and windows are counted by it",
            "clock",
        )
    else:
        yield ok(f"{now:%Y-%m-%d %H:%M} UTC, not before the last event of the ledger", "clock")


def _witness(project: Project) -> Iterator[Finding]:
    witness, ledger = project.witness, address_of(project.ledger_place)
    text = str(witness)
    if isinstance(witness, str) and "://" in text:
        yield ok("kept by another server")
        return
    path = state_folder() / "heads" if witness is True else Path(text)
    if ledger.sqlite and same_disk(Path(ledger.name), path):
        yield warning(
            f"{path} is on the same disk as the ledger: who puts back an old copy of the disk"
            " renews the budget unnoticed",
            "name another mount or another server as `witness` in [ledger]",
        )
    else:
        yield ok(f"{path}, on another disk than the ledger")


def _tokens(project: Project) -> Iterator[Finding]:
    from takifugu.server.access.tokens import doubtful_tokens
    from takifugu.server.state.server_state import open_state

    create = "takifugu token create --role owner --name NAME"
    with open_state(project, create=False) as state, project.ledger(read_only=True) as ledger:
        now, tokens = state.now(), state.tokens()
        doubtful = doubtful_tokens(state, ledger)
    for token in doubtful:
        yield warning(
            f"{token.words}; the server refuses it",
            "find out whether an old copy of the server's state was put back, or who changed it",
        )
    ids = {token.record.id for token in doubtful}
    tokens = [token for token in tokens if token.id not in ids]
    owners = [token for token in tokens if token.role == "owner" and token.live(now)]
    if not owners:
        ended = any(token.role == "owner" for token in tokens)
        trouble = "every token of an owner has ended" if ended else "no owner has a token"
        yield wrong(trouble, f"`{create}`")
        return
    ends = [token.expires for token in owners]
    last = max((end for end in ends if end is not None), default=now)
    if None not in ends and last - now < RENEWAL_NOTICE:
        yield warning(f"the last owner's token ends on {last:%Y-%m-%d}", f"`{create}`")
    unlimited = sorted(
        {token.name for token in tokens if token.live(now) and token.expires is None}
    )
    if unlimited:
        yield warning(
            f"tokens that never end: of {', '.join(unlimited[:5])}{' …' if unlimited[5:] else ''}",
            "make new ones with --expires, and revoke these",
        )
    names = len({token.name for token in owners})
    live = sum(token.live(now) for token in tokens)
    yield ok(f"{live} can be used, of {names} owner{'' if names == 1 else 's'} and others")


def _datasets(project: Project) -> Iterator[Finding]:
    with project.ledger(read_only=True) as ledger:
        budgets = {
            position.dataset for position in ledger.positions() if position.epsilon is not None
        }
    for name in project.policy.datasets:
        loaded = project.load(name)
        if not loaded.policy.priors:
            yield wrong(f"{name!r} has no prior", f"`takifugu prior fit {name}`")
        elif name not in budgets:
            yield warning(f"{name!r} has no budget", f"`takifugu budget set {name} EPSILON`")
        elif project.needs_acceptance(name):
            yield warning(
                f"{name!r} has a policy that its owner has not accepted; nothing is released",
                f"`takifugu prior accept {name}`",
            )
        else:
            yield ok(f"{name!r} can be asked about")
    if not project.policy.datasets:
        yield warning("there are none", "`takifugu dataset add` adds one")


def _user(_: Project) -> Iterator[Finding]:
    if os.geteuid() == 0:
        yield warning(
            "the server would run as root, to whom every file is open",
            "run it as a user of its own: see docs/how-to/deploy.md",
        )
    else:
        yield ok(f"runs as user number {os.geteuid()}")


def _files(project: Project, settings: ServerSettings) -> Iterator[Finding]:
    private = [project.folder / STATE_FILE, *_logs(project.folder / STATE_FILE)]
    ledger = address_of(project.ledger_place)
    if ledger.sqlite:
        ledger_file = Path(ledger.name)
        private += [ledger_file, *_logs(ledger_file), beside(ledger_file)]
    if isinstance(project.witness, Path):
        private.append(project.witness)
    if settings.signing_key is not None:
        private.append(settings.signing_key)
    shared = () if settings.key is None else (settings.key,)
    yield from project_files(project.file, private, group_may_read=shared)


def _data(project: Project, _: ServerSettings) -> Iterator[Finding]:
    findings: list[Finding] = []
    for name, policy in project.policy.datasets.items():
        declaration = read_declaration(project.folder / policy.declaration)
        path = declaration.source.path
        if path is not None and (declaration.folder / path).exists():
            findings += open_data(name, declaration.folder / path)
    yield from findings or [ok("not everybody here can read its files")]


def _database(project: Project) -> Iterator[Finding]:
    """Schemas of PostgreSQL that everybody may write to, and tables that run the code of others."""
    address = project.ledger_place
    if not address_of(address).sqlite:
        from takifugu._core.postgresql import anybody_creates, foreign_code

        with (
            closing(Store(address, read_only=True, wait=LOCK_WAIT_SECONDS)) as store,
            store.unguarded() as opened,
        ):
            foreign = foreign_code(opened.raw, opened.schema, "takifugu_")
            yield from _schema(
                "the ledger", opened.schema, anybody_creates(opened.raw, opened.schema)
            )
        for kind, name, table in foreign:
            yield wrong(
                f"{opened.schema}.{table}: {kind} {name!r} was added: code of others would run"
                " with its rights, or hide its rows",
                "remove it, and find out who made it",
            )
    for name, policy in project.policy.datasets.items():
        declaration = read_declaration(project.folder / policy.declaration)
        if declaration.source.kind == "postgres":
            from takifugu.tables.backends.postgres import PostgresBackend

            with closing(PostgresBackend(declaration)) as backend:
                yield from _schema(f"dataset {name!r}", backend.schema, backend.anybody_creates())


def _schema(whose: str, schema: str, anybody: bool) -> Iterator[Finding]:
    """What a schema of PostgreSQL is to a ledger or a dataset whose connection was made."""
    if anybody:
        yield warning(
            f"every role may create objects in schema {schema}, which has {whose}",
            f"REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC, or move the tables to another",
        )
    else:
        yield ok(f"{whose} is in schema {schema}; no other code can take its names")


def _logs(database: Path) -> list[Path]:
    return [Path(f"{database}{suffix}") for suffix in ("-wal", "-shm")]


def _address(_: Project, settings: ServerSettings) -> Iterator[Finding]:
    listening_socket(replace(settings, port=0)).close()
    yield ok(f"{settings.host} is an address of this machine")


def _tls(_: Project, settings: ServerSettings) -> Iterator[Finding]:
    if settings.certificate is not None and settings.key is not None:
        now = datetime.now(UTC)
        yield from certificate_findings(settings.certificate, settings.key, settings.origin, now)


def _signing(_: Project, settings: ServerSettings) -> Iterator[Finding]:
    if settings.signing_key is not None:
        from takifugu.reports.report_signature import read_private_key

        read_private_key(read_bytes(settings.signing_key, field="signing_key", needed="be a key"))
        yield ok(f"{settings.signing_key} can sign reports")


def _machine(_: Project, settings: ServerSettings) -> Iterator[Finding]:
    memory, needed = free_memory(), settings.workers * WORKER_BYTES
    findings = []
    if memory is not None and needed > memory:
        needs = f"{settings.workers} workers may need {_gigabytes(needed)} of memory"
        free = f"{_gigabytes(memory)} are free"
        findings.append(warning(f"{needs}, and {free}", "have fewer `workers`, or more memory"))
    processors = os.cpu_count() or 1
    if settings.workers > 4 * processors:
        many = f"{settings.workers} workers on {processors} processors"
        findings.append(warning(many, "have fewer `workers`: they would wait for one another"))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and settings.connections + OTHER_FILES > most:
        needs = f"{settings.connections} connections need more open files than the {most} allowed"
        enough = settings.connections + 4 * OTHER_FILES
        findings.append(wrong(needs, f"set LimitNOFILE={enough}, or fewer `connections`"))
    yield from findings or [ok("memory, processors and open files are enough")]


def free_memory() -> int | None:
    """Bytes that are free: of the machine, or what a control group leaves; None if unknown."""
    if not sys.platform.startswith("linux"):
        return None
    limits = []
    with suppress(OSError, ValueError, IndexError):
        _, _, rest = Path("/proc/meminfo").read_text().partition("MemAvailable:")
        limits.append(int(rest.split()[0]) * 1024)
    with suppress(OSError, ValueError):  # "max" is no number, and no limit
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        limits.append(max(0, limit - int((group / "memory.current").read_text())))
    return min(limits, default=None)


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:.1f} GB"


def private_file(path: Path, *, group_may_read: bool = False) -> Iterator[Finding]:
    """Whether a file with secrets is for its owner alone."""
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    command = f"chmod 600 {path}"
    if mode & (stat.S_IRWXO | OTHERS_WRITE | stat.S_IXGRP):
        yield wrong(f"{path} is open to others (mode {mode:03o})", command)
    elif mode & stat.S_IRGRP and not group_may_read:
        yield wrong(f"{path} can be read by its group (mode {mode:03o})", command)
    elif mode & stat.S_IRGRP:
        yield warning(f"{path} can be read by its group (mode {mode:03o})", command)
    yield from _foreign(path, status)


def unwritable_by_others(path: Path) -> Iterator[Finding]:
    """Whether nobody else can change a file, or replace it in any of the folders above it."""
    status = path.stat()
    mode = stat.S_IMODE(status.st_mode)
    if mode & OTHERS_WRITE and not (path.is_dir() and status.st_mode & stat.S_ISVTX):
        yield wrong(f"{path} can be changed by others (mode {mode:03o})", f"chmod go-w {path}")
    yield from _foreign(path, status)
    for folder in real_path(path).parents:
        above = folder.stat()
        if above.st_mode & OTHERS_WRITE and not above.st_mode & stat.S_ISVTX:
            mode = stat.S_IMODE(above.st_mode)
            yield wrong(
                f"others can replace what is in {folder} (mode {mode:03o})", f"chmod go-w {folder}"
            )


def _foreign(path: Path, status: os.stat_result) -> Iterator[Finding]:
    if status.st_uid not in (os.geteuid(), 0):
        yield warning(
            f"{path} belongs to another user (number {status.st_uid})",
            f"chown it to the user of the server (number {os.geteuid()}), or run as that user",
        )


def project_files(
    file: Path, private: Iterable[Path], *, group_may_read: Iterable[Path] = ()
) -> Iterator[Finding]:
    """The folder of a project, its file, and those of its files that are private."""
    findings = [*unwritable_by_others(file.parent), *unwritable_by_others(file)]
    for path in private:
        if path.exists():
            findings += private_file(path)
    for path in group_may_read:
        if path.exists():
            findings += private_file(path, group_may_read=True)
    seen = dict.fromkeys(findings)
    yield from seen or [
        ok("others can change none of them, and not read those of the ledger and the server")
    ]


def open_data(name: str, path: Path) -> Iterator[Finding]:
    """Whether everybody on this machine can read a file of data, past the server and its ledger."""
    real = real_path(path)
    files = [real, *real.rglob("*")] if real.is_dir() else [real]
    reached = all(above.stat().st_mode & stat.S_IXOTH for above in real.parents)
    if reached and any(file.is_file() and file.stat().st_mode & stat.S_IROTH for file in files):
        mode = stat.S_IMODE(real.stat().st_mode)
        yield warning(
            f"{path}, the rows of dataset {name}, can be read by everybody here (mode {mode:03o})",
            f"chmod o-rwx {path}, if they are not public",
        )


def same_disk(path: Path, other: Path) -> bool:
    """Whether two paths are on one file system, so that one accident or backup takes both."""
    return existing(path).stat().st_dev == existing(other).stat().st_dev


def existing(path: Path) -> Path:
    """A path, or the nearest folder above it that is there."""
    nearest = real_path(path)
    while not nearest.exists():
        nearest = nearest.parent
    return nearest


def written_places(project: Project) -> dict[str, Path]:
    """By name, what a server of a project writes to on disks of this machine.

    A ledger and a witness on other machines are left out: their disks are for others to watch.
    """
    places = {"project": project.folder}
    ledger = address_of(project.ledger_place)
    if ledger.sqlite:
        places["ledger"] = Path(ledger.name)
        places["state"] = project.folder
    witness = project.witness
    if witness is True:
        places["witness"] = state_folder() / "heads"
    elif witness and "://" not in str(witness):
        places["witness"] = Path(str(witness))
    return places


def room(path: Path) -> tuple[int, int]:
    """Bytes that are free for this user where a path is or would be made, and of how many."""
    usage = shutil.disk_usage(existing(path))
    return usage.free, usage.total


def is_full(project: Project) -> bool:
    """Whether a disk has no room to go on."""
    return any(room(path)[0] < FULL_DISK_BYTES for path in written_places(project).values())


def _disk(project: Project) -> Iterator[Finding]:
    """What `takifugu serve --check` says of each disk, once."""
    findings: dict[int, Finding] = {}
    for name, path in written_places(project).items():
        disk = existing(path).stat().st_dev
        free, total = room(path)
        words = f"{_megabytes(free)} are free where the {name} is ({existing(path)})"
        advice = "make room, or move it to a larger disk"
        if disk in findings:
            continue
        if free < FULL_DISK_BYTES:
            findings[disk] = wrong(f"{words}: nothing can be written soon", advice)
        elif free < min(LOW_DISK_BYTES, total // 10):
            findings[disk] = warning(words, advice)
    yield from findings.values() or [ok("there is room for the ledger and the state")]


def _megabytes(size: int) -> str:
    return f"{size // 2**20:,} MB"


def certificate_findings(
    certificate: Path, key: Path, origin: str | None, now: datetime
) -> Iterator[Finding]:
    """Whether the files fit, for how long, and whether browsers find the right name in them."""
    context = tls_context(certificate, key)
    host = urlsplit(origin or "").hostname
    try:
        seen = _shake_hands(context, certificate, host)
    except ssl.SSLCertVerificationError as error:
        yield _refused(certificate, error, host)
        return
    except ssl.SSLError:
        yield wrong(f"no connection can be made with {certificate}", "make a new one")
        return
    end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(seen["notAfter"])), UTC)
    if end - now < RENEWAL_NOTICE:
        yield warning(
            f"{certificate} ends on {end:%Y-%m-%d}",
            "renew it; `kill -HUP` then has the server read it again",
        )
    else:
        yield ok(f"{certificate} fits its key and holds until {end:%Y-%m-%d}")


def _refused(certificate: Path, error: ssl.SSLCertVerificationError, host: str | None) -> Finding:
    if error.verify_code in EXPIRED:
        return wrong(f"{certificate} has expired", "renew it")
    if error.verify_code in NOT_YET:
        return wrong(f"{certificate} is not valid yet", "look at the clock, or wait")
    if error.verify_code in NAME:
        return wrong(f"{certificate} is not for {host}", "have one made for the name of `origin`")
    return wrong(f"{certificate} is refused ({error.verify_message})", "have a new one made")


def _shake_hands(
    server_context: ssl.SSLContext, certificate: Path, host: str | None
) -> dict[str, object]:
    """The certificate as a client sees it that trusts it, and looks for the host in it."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(certificate)
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.check_hostname = host is not None
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(10):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        seen = client.getpeercert() if client.version() else None
        if seen:
            return dict(seen)
    raise ssl.SSLError("the handshake does not end")


PROJECT_CHECKS: dict[str, Callable[[Project], Iterable[Finding]]] = {
    "ledger": _ledger,
    "witness": _witness,
    "tokens": _tokens,
    "datasets": _datasets,
    "database": _database,
    "disk": _disk,
    "user": _user,
}
SETTINGS_CHECKS: dict[str, Callable[[Project, ServerSettings], Iterable[Finding]]] = {
    "files": _files,
    "data": _data,
    "address": _address,
    "tls": _tls,
    "signing": _signing,
    "machine": _machine,
}
