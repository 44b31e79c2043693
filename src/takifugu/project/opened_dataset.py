"""A dataset of a project that is opened once, for the sessions of many analysts.

Opening reads the declaration and the priors, opens the table and the ledger, compares the priors
with the data, and reads or makes the translation table: tenths of a second, or minutes. None of it
depends on who asks. So a process that serves many keeps the dataset open, and gives each analyst a
session that shares all of it; what depends on them, and on what was spent or decided meanwhile, is
read from the ledger for every plan and every release.

What was read from files holds for as long as the files do: `stale` compares what the file system
says of each of them with what it said before they were read, so that a file that was replaced in
between is noticed too.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu._core.closing import Closing
from takifugu._core.toml import parse_toml
from takifugu.errors import TakifuguError
from takifugu.ledger import Ledger
from takifugu.project.loaded_dataset import LoadedDataset
from takifugu.project.policy import read_policy
from takifugu.project.project_cache import Progress, budgets_of
from takifugu.tables import Engine
from takifugu.tables.backends.opened_files import PATTERN, source_files
from takifugu.tables.opening import BackendName
from takifugu.translation.accounting.tables import TabledTranslation, TranslationTable
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation

if TYPE_CHECKING:
    from takifugu.project.project import Project
    from takifugu.session.session import Session

Identity = tuple[int, ...] | None


def identity(path: Path) -> Identity:
    """What the file system says of a file, times included; None if there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def _inode(path: Path | None) -> Identity:
    """Which file this is, whatever was written to it since; None if there is none."""
    known = None if path is None else identity(path)
    return None if known is None else known[:2]


@dataclass(frozen=True)
class _Noted:
    """What was true of the outside before a dataset was opened.

    Attributes:
        files: By path what the file system said of the project file, the declaration, its
            codebooks, and the priors.
        rows: The same of the files of the table.
        ledger: Which file the ledger is; None for one on a server.
        budgets: The budgets that a translation table was confirmed for; None without a table.
    """

    files: dict[Path, Identity]
    rows: dict[Path, Identity]
    ledger: Identity
    budgets: frozenset[Fraction] | None


@dataclass(eq=False)
class OpenedDataset(Closing):
    """A dataset with its table, its ledger and its translation; a context manager that closes it.

    Made by `open_dataset`. One thread uses it at a time.

    Attributes:
        project: The project, as its file was when the dataset was opened.
        loaded: The policy with the contents of its files.
        engine: The table: only the entities that may be released from.
        ledger: The ledger of the project.
    """

    project: "Project"
    loaded: LoadedDataset
    engine: Engine
    ledger: Ledger
    _shared: "Session"
    _table: TranslationTable | None
    _noted: _Noted
    _opened: ExitStack = field(repr=False)

    @property
    def name(self) -> str:
        """What the project calls the dataset."""
        return self.loaded.name

    @property
    def view(self) -> LossTranslation:
        """What losses mean in Pufferfish privacy, from the table where there is one."""
        translation = self.loaded.translation
        if self._table is None or not isinstance(translation, Translation):
            return translation
        return TabledTranslation(translation, self._table, least=0)

    @property
    def shared(self) -> "Session":
        """The session that all others are copies of: for what does not depend on who asks."""
        return self._shared

    def session(self, analyst: str | None = None, *, actor: str | None = None) -> "Session":
        """The queries of one analyst, paid from the ledger of the project: takes one read of it.

        Args:
            analyst: Who runs them; a budget of their own counts beside the dataset's.
            actor: Who events of the ledger name; by default the user of this process.
        """
        self.project.refuse_unlisted(self.name, analyst)
        ledger = self.ledger if actor is None else self.ledger.acting(actor)
        return self._shared.for_analyst(analyst, ledger)

    def stale(self) -> bool:
        """Whether something changed that was read when the dataset was opened: open it again.

        These are the project file, the declaration and its codebooks, the priors, the files of the
        table, and for a translation table the budgets that it was confirmed for. A file of the
        ledger that is another one than was opened counts too: what is written to one that was
        removed would be lost. What the ledger holds is read anew anyway.
        """
        noted = self._noted
        if any(identity(path) != known for path, known in (noted.files | noted.rows).items()):
            return True
        if _inode(_ledger_file(self.ledger)) != noted.ledger:
            return True
        if tuple(noted.rows) != _rows(self.loaded, self.engine):
            return True
        return noted.budgets is not None and budgets_of(self.ledger, self.name) != noted.budgets

    def close(self) -> None:
        """Let go of the table and the ledger."""
        self._opened.close()


def open_dataset(
    project: "Project",
    name: str,
    *,
    backend: BackendName | None = None,
    table: bool = True,
    progress: Progress | None = None,
) -> OpenedDataset:
    """Open a dataset of a project for whoever will ask, if its terms are accepted.

    Args:
        project: The project, as its file is now.
        name: The dataset.
        backend: What reads the data; by default what its source needs.
        table: Whether to use the cached translation table, which is made if there is none.
        progress: Called with what is being done.
    """
    files = {path: identity(path) for path in _policy_files(project, name)}
    loaded = project.load(name)
    translation = loaded.translation
    with ExitStack() as opened:
        before = {path: identity(path) for path in _source_files(loaded)}
        engine = opened.enter_context(project.engine(loaded, backend=backend))
        ledger = opened.enter_context(project.ledger())
        inode = _inode(_ledger_file(ledger))
        budgets = (
            budgets_of(ledger, name) if table and project.tabulates(name, translation) else None
        )
        session, made = loaded.session(
            project, engine, ledger, _first(ledger, name), table=table, progress=progress
        )
        rows = {path: before.get(path, identity(path)) for path in _rows(loaded, engine)}
        if not _is_current(project):
            files[project.file] = None  # it was replaced between being read and being noted
        noted = _Noted(files, rows, inode, budgets)
        return OpenedDataset(
            *(project, loaded, engine, ledger, session, made, noted), _opened=opened.pop_all()
        )
    raise AssertionError("unreachable")


def _first(ledger: Ledger, name: str) -> str | None:
    """Who the shared session is for: anybody who may ask.

    Where analysts have budgets of their own, a session is one of theirs. The shared one spends
    nothing: what is asked of it does not depend on who asks.
    """
    return next(iter(ledger.snapshot(name).analysts), None)


def _is_current(project: "Project") -> bool:
    """Whether the policy of a project is what its file holds."""
    try:
        return read_policy(project.file) == project.policy
    except TakifuguError:
        return False


def _ledger_file(ledger: Ledger) -> Path | None:
    return None if ledger.folder is None else Path(ledger.name)


def _policy_files(project: "Project", name: str) -> Iterator[Path]:
    """The project file, and the files that its part on a dataset names."""
    policy = project.dataset(name)
    declaration = project.folder / policy.declaration
    yield project.file
    yield declaration
    yield from _codebooks(declaration)
    for prior in policy.priors:
        yield project.folder / prior.file


def _codebooks(declaration: Path) -> Iterable[Path]:
    """The codebooks that a declaration names."""
    try:
        document = parse_toml(declaration.read_text(encoding="utf-8"))
    except (OSError, ValueError, TakifuguError):
        return ()  # loading it says what is wrong
    return [declaration.parent / name for name in _named(document)]


def _named(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "codebook" and isinstance(value, str):
                yield value
            else:
                yield from _named(value)


def _source_files(found: LoadedDataset) -> tuple[Path, ...]:
    """The files that the table is read from; none for a table of a server."""
    source = found.declaration.source
    if source.path is None:
        return ()
    try:
        return source_files(found.declaration)
    except TakifuguError:
        return ()  # opening it says what is wrong


def _rows(found: LoadedDataset, engine: Engine) -> tuple[Path, ...]:
    """The files of an open table; found anew where a pattern names them, since one may be added."""
    path = str(found.declaration.source.path or "")
    if any(mark in path for mark in PATTERN):
        return _source_files(found)
    return engine.files
