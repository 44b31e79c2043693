"""A project: a folder with a policy, a ledger and the priors, for commands and for Python alike.

with open_project("study").session("visits") as session:
    plan = session.plan.histogram(by="country", epsilon=0.5)   # nothing is spent
    print(session.release(plan))                                # charged, then drawn
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from os.path import abspath, lexists, relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from takifugu._core.atomic import real_path, whole_file
from takifugu._core.exact import Number, exactly
from takifugu.binding.entries import Entries
from takifugu.binding.prior_reading import PriorTranslation, protected_column, terms_of
from takifugu.declarations import Category, Declaration, read_declaration
from takifugu.errors import Malformed, NotALedger, TakifuguError, UnsoundRequest, one_of
from takifugu.ledger import Event, Ledger, Terms, open_ledger
from takifugu.priors import Name, read_prior
from takifugu.project import entering_priors
from takifugu.project import policy_writing as write
from takifugu.project.loaded_dataset import LoadedDataset
from takifugu.project.owner_changes import (
    CellChange,
    PolicyChange,
    cell_change,
    places,
)
from takifugu.project.policy import (
    FILE,
    DatasetPolicy,
    InvalidProject,
    Policy,
    Side,
    TwoBudgets,
    checked_name,
    parse_policy,
    read_policy,
    refuse_password,
)
from takifugu.project.project_cache import (
    CachedTable,
    Progress,
    budgets_of,
    keep_terms,
    kept_terms,
    pays,
    project_table,
    reach,
    table_path,
)
from takifugu.session.activity import Activity, in_notebook, screen
from takifugu.tables import Engine, open_engine
from takifugu.tables.label_lookup import refuse_many_labels
from takifugu.tables.opening import BackendName
from takifugu.translation.accounting.tables import TranslationTable
from takifugu.translation.rows.row_translation import RowTranslation

if TYPE_CHECKING:
    from takifugu.session.session import Session

LEDGER = "takifugu.ledger"


def open_project(path: str | Path = ".") -> "Project":
    """The project in a folder, or that of a project file."""
    path = Path(path)
    file = path / FILE if path.is_dir() else path
    return Project(file, read_policy(file))


def init_project(folder: str | Path = ".", *, ledger: str = LEDGER) -> "Project":
    """Make a project file in ``folder``, and its ledger where there is none yet."""
    folder = Path(folder)
    file = folder / FILE
    if file.exists():
        raise InvalidProject(str(file), given="exists", needed="not exist yet", reason="exists")
    refuse_password(ledger, "ledger")
    if "://" not in ledger and abspath(folder / ledger) == abspath(file):
        raise InvalidProject(
            "ledger", given=f"is {ledger!r:.80}, the project file", needed="be another file"
        )
    parse_policy(write.head(ledger, "0" * 64))  # refuse first what cannot be written
    made = [one for one in (folder, *folder.parents) if not lexists(one)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _take_away(made)
        reason = (error.strerror or "cannot be made").lower()
        raise InvalidProject(
            str(folder), given=f"is not a folder ({reason})", needed="be one, or a new one"
        ) from None
    try:
        with whole_file(file, field="project", fsync=True, refuse_existing=True) as part:
            with open_ledger(_ledger_place(folder, ledger)) as opened:
                identity = opened.origin.hash
                opened.mark()  # makes the key now, so that no query makes it later
            part.write_text(write.head(ledger, identity), encoding="utf-8")
            read_policy(part)
    except BaseException:
        _take_away(made)
        raise
    return open_project(file)


def _take_away(folders: Sequence[Path]) -> None:
    """Remove new folders, the innermost first, that nothing is in: a new ledger stays."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def _ledger_place(folder: Path, place: str) -> str | Path:
    return place if "://" in place else folder / place


def _rows_at(declaration: Declaration) -> tuple[str, str, str, str]:
    """Where the rows of a dataset are, so that the same ones can be recognised."""
    source = declaration.source
    path = "" if source.path is None else str(real_path(declaration.folder / source.path))
    return source.kind, path, source.table or "", source.url or ""


def _written(pairs: Sequence[tuple[Side, Side]]) -> list[list[list[Any]]]:
    """Secret pairs as a project file has them."""
    return [[list(left), list(right)] for left, right in pairs]


def _details(dataset: LoadedDataset) -> dict[str, Any]:
    """The policy as an event of the ledger records it, beside its terms."""
    return {"uncertainty": str(dataset.policy.uncertainty), "rules": dataset.rules}


@dataclass(frozen=True)
class Project:
    """A project file and its policy. Nothing is kept open: every call reads what it needs.

    Attributes:
        file: The project file.
        policy: The policy when the file was opened.
        actor: Who acts, as events of the ledger name them; None for the user of this process.
    """

    file: Path
    policy: Policy
    actor: str | None = None

    def acting(self, actor: str) -> Self:
        """The same project, in which somebody else acts: their name is written in events."""
        return replace(self, actor=actor)

    def under(self, policy: Policy) -> Self:
        """The same project under another policy."""
        return replace(self, policy=policy)

    @property
    def folder(self) -> Path:
        """What relative paths start from."""
        return self.file.parent

    def dataset(self, name: str) -> DatasetPolicy:
        """The policy of a dataset."""
        if name in self.policy.datasets:
            return self.policy.datasets[name]
        known = self.policy.datasets
        needed = one_of(known, name) if known else "be added first: there are no datasets yet"
        if not known:
            needed += " (`takifugu dataset add`)"
        raise InvalidProject(
            "dataset",
            given=f"{name!r:.80} is not in {self.file}",
            needed=needed,
            reason="unknown",
        )

    # --- what the policy names ---

    @property
    def ledger_place(self) -> str | Path:
        """Where the ledger is kept: a path, or an address."""
        return _ledger_place(self.folder, self.policy.ledger)

    @property
    def witness(self) -> str | Path | bool:
        """Where the head of the ledger is recorded: by the policy, or in the state folder."""
        place = self.policy.witness
        return True if place is None else _ledger_place(self.folder, place)

    @contextmanager
    def ledger(self, *, read_only: bool = False, inspect: bool = False) -> Iterator[Ledger]:
        """The ledger of the project: the one it began with, never a new one.

        With ``inspect`` an older copy of it can be opened too, read-only.
        """
        with open_ledger(
            self.ledger_place,
            create=False,
            read_only=read_only,
            inspect=inspect,
            witness=self.witness,
            actor=self.actor,
        ) as ledger:
            if ledger.origin.hash != self.policy.ledger_id:
                raise NotALedger(
                    f"{ledger.name!r} is not the ledger that {self.file} began with; put that one"
                    " back: what was spent is written there",
                    reason="other-ledger",
                )
            yield ledger

    def translation_under(self, name: str, terms: Terms) -> PriorTranslation | None:
        """The translation of a dataset under some terms; None if its prior is not at hand."""
        with suppress(TakifuguError):
            return kept_terms(self.folder, name, terms, self.load(name).translation)
        return None

    def load(self, name: str) -> LoadedDataset:
        """A dataset with the contents of its files, each read once."""
        policy = self.dataset(name)
        declaration = read_declaration(self.folder / policy.declaration)
        return LoadedDataset(name, policy, self.file, declaration).with_fitted_labels()

    @contextmanager
    def engine(
        self, dataset: str | LoadedDataset, *, backend: BackendName | None = None
    ) -> Iterator[Engine]:
        """The table of a dataset: only the entities that may be released from."""
        from takifugu.session.held_out import HeldOutEngine

        loaded = self.load(dataset) if isinstance(dataset, str) else dataset
        entities = loaded.releasable.entities
        with open_engine(loaded.declaration, backend=backend) as engine:
            yield HeldOutEngine.of(engine, entities)

    def table(
        self,
        name: str,
        translation: PriorTranslation,
        ledger: Ledger,
        *,
        progress: Progress | None = None,
    ) -> TranslationTable | None:
        """The translation as a table, computed here or confirmed for the budgets of the ledger.

        A new table has points that differ by ``share``. None if the translation is computed each
        time: by policy, because it is fast, for budgets beyond the table, or because the prior is
        about more than a column: a table knows one number for all of a row.
        """
        cached = self.cached_table(name, translation, ledger, progress)
        return None if cached is None else cached.table

    def tabulates(self, name: str, translation: PriorTranslation) -> bool:
        """Whether the translation of a dataset is cached as a table: by policy, or if it pays."""
        if isinstance(translation, RowTranslation):
            return False
        by_policy = self.dataset(name).table
        return pays(translation) if by_policy is None else by_policy

    def cached_table(
        self, name: str, translation: PriorTranslation, ledger: Ledger, progress: Progress | None
    ) -> CachedTable | None:
        """The table of `table`, and whether it was computed here."""
        if isinstance(translation, RowTranslation) or not self.tabulates(name, translation):
            return None
        budgets = budgets_of(ledger, name)
        most = reach(budgets)
        if most is None:
            return None
        path = table_path(self.folder, name, translation, most)
        return project_table(
            path,
            translation,
            sorted(budgets),
            most=most,
            mark=ledger.mark,
            progress=progress,
        )

    def refuse_unlisted(self, name: str, analyst: str | None) -> None:
        """Raise if the policy lists analysts and ``analyst`` is not one of them.

        A misspelt name would have a budget of its own, so names are listed.
        """
        listed = self.dataset(name).analysts
        if listed and analyst not in listed:
            given = "nobody is named" if analyst is None else f"{analyst!r:.80} is not listed"
            raise InvalidProject(
                "analyst", given=given, needed=one_of(listed, analyst), reason="unlisted"
            )

    def refuse_taken_name(self, name: str) -> None:
        """Raise unless a new dataset can have this name."""
        if checked_name(name) in self.policy.datasets:
            raise InvalidProject(
                "dataset",
                given=f"{name!r} is in {self.file} already",
                needed="have another name",
                reason="taken",
            )

    # --- sessions, datasets and fits ---

    @contextmanager
    def session(
        self,
        name: str,
        analyst: str | None = None,
        *,
        backend: BackendName | None = None,
        table: bool = True,
        progress: Progress | None = None,
    ) -> Iterator["Session"]:
        """Queries about a dataset, paid from the ledger of the project.

        Args:
            name: The dataset.
            analyst: Who runs the queries; a budget of their own counts beside the dataset's.
            backend: What reads the data; by default what its source needs.
            table: Whether to use the cached translation table, which is made if there is none.
            progress: Called with what is being done; by default a notebook shows it.
        """
        self.refuse_unlisted(name, analyst)
        with ExitStack() as opened, ExitStack() as opening:
            if progress is None and in_notebook():
                progress = opening.enter_context(Activity(f"opening {name}", screen(None)))
            loaded = self.load(name)
            _ = loaded.translation  # refused before anything is opened
            engine = opened.enter_context(self.engine(loaded, backend=backend))
            ledger = opened.enter_context(self.ledger())
            session, _ = loaded.session(
                self, engine, ledger, analyst, table=table, progress=progress
            )
            opening.close()
            yield session

    def add_dataset(
        self,
        name: str,
        declaration: str | Path,
        *,
        about: str | None = None,
        priors: Sequence[str | Path] = (),
        over: str | None = None,
        household: str | None = None,
        member: str | None = None,
        pairs: Sequence[tuple[Side, Side]]
        | Mapping[str, Sequence[tuple[Side, Side]]]
        | None = None,
        entries: Sequence[Name] | None = None,
        within: Number | None = None,
        uncertainty: float = 0.0,
        analysts: Sequence[str] = (),
        engine: Engine | None = None,
        backend: BackendName | None = None,
    ) -> "Project":
        """Enter a dataset into the project file if it fits; the project with it.

        Its data must be as declared, and its priors and secrets must fit the data: what `dataset
        check` refuses is not entered.

        Args:
            name: What to call it.
            declaration: The declaration of its table.
            about: The protected column that the priors are about, if there are several and they
                are about one of them.
            priors: Files of priors; the guarantee holds for each.
            over: What the entries of the priors are; None where only one reading is possible.
            household: With ``over = "household"``: the public column that groups entities.
            member: With that: the public column whose keys are the members that the prior names.
            pairs: The secret pairs, by column if the priors are about several; None for all.
            entries: The entries that have secrets; None for all.
            within: For numbers: how far apart two of them are at most that are a secret pair.
            uncertainty: How far every joint probability may be off.
            analysts: Who may run queries; empty for anybody.
            engine: The table, if it is open and checked; otherwise it is opened and checked here.
            backend: What reads the data then.
        """
        self.refuse_taken_name(name)
        declared = read_declaration(declaration)
        columns = tuple(column.column for column in declared.protected)
        if about is not None:
            columns = (protected_column(declared, about),)
        for column in declared.protected:
            if column.column in columns and isinstance(column, Category):
                many = len(column.values or ())
                refuse_many_labels(column.column, many, every_pair=pairs is None)
        for known in self.policy.datasets:
            try:
                other = self.load(known)
                _ = other.columns
            except TakifuguError:  # broken: the ledger compares rows when it is charged
                continue
            same = set(other.columns) & set(columns)
            here = _rows_at(other.declaration) == _rows_at(declared)
            files = places(other.declaration, other.columns) & places(declared, columns)
            if same and (here or files):
                raise TwoBudgets(
                    "dataset",
                    given=f"{known!r} is about the same column of the same rows",
                    needed="be the only one: two budgets for the same cells would add up to more",
                    reason="same-rows",
                )
        for prior in priors:
            read_prior(prior)
        entries_of: dict[str, Any] = {}
        if over is None and (household or member):
            field = "household" if household else "member"
            raise InvalidProject(
                field, given="is given", needed="go with over = 'household'", reason="superfluous"
            )
        if over is not None:
            stated = Entries(over, household=household, member=member)  # type: ignore[arg-type]
            given = {"over": stated.over, "household": household, "member": member}
            entries_of = {key: value for key, value in given.items() if value is not None}
        values: dict[str, Any] = {"declaration": self._relative(declaration)}
        if len(columns) == 1:
            values["about"] = columns[0]
        if isinstance(pairs, Mapping):
            values["pairs"] = {
                column: _written(column_pairs) for column, column_pairs in pairs.items()
            }
        elif pairs is not None:
            values["pairs"] = _written(pairs)
        if entries is not None:
            values["entries"] = list(entries)
        if within is not None:
            values["secrets_within"] = str(exactly(within, "within"))
        if uncertainty:
            values["uncertainty"] = uncertainty
        if analysts:
            values["analysts"] = list(analysts)
        if priors:
            values["prior"] = [{"file": self._relative(prior)} | entries_of for prior in priors]
        with ExitStack() as stack:
            if engine is None:
                engine = stack.enter_context(open_engine(declared, backend=backend))
                from takifugu.tables import check

                check(engine)
            ledger = stack.enter_context(self.ledger()) if priors else None

            def fits(policy: Policy) -> None:
                if priors:
                    self.under(policy).load(name).refuse_unfit(engine)

            write.add_dataset(self.file, name, values, check=fits)
            made = self.under(read_policy(self.file))
            if ledger is not None:
                made.record_policy(
                    ledger, name, how="entered", files=[p["file"] for p in values["prior"]]
                )
        return made

    fit = entering_priors.fit
    advice = entering_priors.advice
    enter_prior = entering_priors.enter_prior

    # --- what the owner accepts ---

    def record_policy(self, ledger: Ledger, name: str, **details: Any) -> None:
        """Record in the ledger what a command entered into the policy of a dataset."""
        loaded = self.load(name)
        keep_terms(self.folder, loaded.translation)
        ledger.enter_policy(name, terms_of(loaded.translation), _details(loaded) | details)

    def change(self, name: str) -> PolicyChange:
        """What is spent under the prior and secrets in force, and under those of the policy."""
        loaded = self.load(name)
        translation, rules = loaded.translation, loaded.rules
        terms = terms_of(translation)
        with self.ledger() as ledger:
            snapshot = ledger.snapshot(name)
            known = snapshot.terms
            old = None
            if known is not None:
                old = kept_terms(self.folder, name, known, translation)
            seen = ledger.review(name, translation, old, cells=loaded.protected_cells)
            analysts = {
                position.analyst: (
                    position.epsilon,
                    ledger.spent(
                        name, translation, analyst=position.analyst, cells=loaded.protected_cells
                    ),
                )
                for position in ledger.positions(name)
                if position.analyst and position.epsilon is not None
            }
            needed = known != terms or "rules" in snapshot.changed(terms, rules)
        return PolicyChange(terms, rules, seen, analysts, needed)

    def needs_acceptance(self, name: str) -> bool:
        """Whether the owner must accept the policy before anything is released."""
        loaded = self.load(name)
        with self.ledger(read_only=True) as ledger:
            snapshot = ledger.snapshot(name)
            return bool(snapshot.changed(terms_of(loaded.translation), loaded.rules))

    def accept_prior(self, name: str, change: PolicyChange) -> Event:
        """Put the prior and the secrets of the policy in force, as they were shown."""
        loaded = self.load(name)
        if (terms_of(loaded.translation), loaded.rules) != (change.terms, change.rules):
            raise InvalidProject(
                str(self.file),
                given="was changed meanwhile",
                needed="be as it was shown; look again",
                reason="changed",
            )
        with self.ledger() as ledger:
            keep_terms(self.folder, loaded.translation)
            return ledger.accept(change.terms, change.seen, **_details(loaded))

    @contextmanager
    def recording_prior(self, file: Path) -> Iterator[None]:
        """Record in the ledger that ``file``, written inside, is a prior of some datasets."""
        written = real_path(file)
        names = [
            name
            for name, policy in self.policy.datasets.items()
            if any(real_path(self.folder / prior.file) == written for prior in policy.priors)
        ]
        if not names:
            yield
            return
        with self.ledger() as ledger:
            yield
            for name in names:
                with suppress(Malformed, UnsoundRequest):  # then nothing can be released under it
                    self.record_policy(ledger, name, how="written", files=[self._relative(file)])

    def set_budget(
        self, name: str, epsilon: str, *, analyst: str | None = None, delta: str = "0"
    ) -> Event:
        """Set the budget of a dataset, or of one analyst on it."""
        self.dataset(name)
        if analyst is not None:
            self.refuse_unlisted(name, analyst)
        with self.ledger() as ledger:
            return ledger.set_budget(name, epsilon, analyst=analyst, delta=delta)

    def pending(self, name: str, *, backend: BackendName | None = None) -> CellChange:
        """How the declaration of a dataset differs from the one that was charged under."""
        from takifugu.session.cells import cells_of

        loaded = self.load(name)
        translation = loaded.translation if loaded.policy.priors else None
        with self.engine(loaded, backend=backend) as engine, self.ledger() as ledger:
            cells = cells_of(engine, loaded.columns, self.folder, loaded.values)
            return cell_change(ledger, name, cells, translation)

    def accept(self, change: CellChange, *, unchanged: bool = False) -> Event:
        """Accept the present declaration: all earlier releases then count on every row.

        With ``unchanged`` the owner states that it is the one used before. Either is an event of
        the ledger that names who decided.
        """
        with self.ledger() as ledger:
            return ledger.accept_cells(change.dataset, change.cells, unchanged=unchanged)

    def count_separately(self, name: str, other: str) -> Event:
        """Let two datasets have a budget each although they have the same rows."""
        self.dataset(name)
        with self.ledger() as ledger:
            return ledger.count_separately(name, other)

    def budget(self, name: str, analyst: str | None = None) -> Fraction | None:
        """The Pufferfish ε that the ledger allows now; None if nobody has set one."""
        self.dataset(name)
        with self.ledger(read_only=True) as ledger:
            position = ledger.position(name, analyst)
        return None if position is None else position.epsilon

    def _relative(self, path: str | Path) -> str:
        """A path as the project file has it: from its folder where that leads there."""
        absolute = real_path(path)
        folder = real_path(self.folder)
        if absolute.is_relative_to(folder):
            return Path(relpath(absolute, folder)).as_posix()
        return str(absolute)
