r"""The paper's preparation of a dataset: a prior from one part, counts of the other.

Appendix "Dataset and Preprocessing" and section "Prior Distribution Construction": labels are
merged, transitions are counted person by person with staying included, the frequencies are smoothed
with τ = 1e-5, and a state that nothing followed is followed by every other state alike, as the
paper's "others".

**How long the chain is.** The prior of a person is one stationary chain over everything they ever
did; released from are the entries of a window of it (the test days), and the secrets are those
entries. `Prepared.chain` is as long as the longest such window. That is enough:

* A window of a stationary chain is a stationary chain with the same matrix.
* A person with a shorter window is covered: what is released from n entries is also something
  released from N ≥ n entries that ignores the rest, so its loss is at most that for N.
* A secret outside the window loses no more than one inside. Let the window begin at time s, let
  j < s, and let :math:`h(u) = P(\omega \mid X_s = u)`. Given :math:`X_s` the output does not
  depend on :math:`X_j`, so :math:`P(\omega \mid X_j = x) = \sum_u P(X_s = u \mid X_j = x)\,h(u)` is
  an average of h. Two averages of h differ at most by the factor
  :math:`\max_u h(u) / \min_v h(v)`, which is the loss of a pair (u, v) of secrets at time s, inside
  the window. The same holds after its end, with the chain reversed.

Prepared data is kept as a JSON file, so that an experiment can go on without preparing again.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any, Self

from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.documents.declared import from_document, to_document
from takifugu.errors import InvalidFile, Malformed, UnsoundRequest
from takifugu.fitting import FirstDays, fit
from takifugu.papers.composition.data.raw_tables import (
    EntryTable,
    FoundFiles,
    Progress,
    RequiredFile,
    text,
)
from takifugu.papers.composition.experiments.measurements import (
    Facts,
    Family,
    Origin,
    Prepared,
    PrintedColumn,
)
from takifugu.priors import MarkovChain
from takifugu.priors.documents import read_json, write_json
from takifugu.priors.fitting import TAU
from takifugu.priors.labels import foursquare_labels
from takifugu.tables import Engine, Scope, open_engine

DAYS, FIT_DAYS = 500, 400  # the paper's: the first 500 days, of which 400 are fitted on
OTHER = "other"
MEMORY = "2GB"
MOST_NOWHERE = 100  # at most one row in so many may be in no group


@dataclass(frozen=True)
class DatasetInfo:
    """What a dataset is, beside its rows.

    Attributes:
        key: Its short name.
        title: What it is, for people.
        family: The experiment that it is for.
        origin: Whose data it is.
        group_by: What the groups are, in words.
        notes: What differs from the paper's preparation, a sentence each.
        calibrated: The printed columns that a simulated world was calibrated to.
        known_facts: What is published of the paper's data: files that are named like it and
            differ in one of them hold other data.
    """

    key: str
    title: str
    family: Family
    origin: Origin
    group_by: str
    notes: tuple[str, ...] = ()
    calibrated: tuple[PrintedColumn, ...] = ()
    known_facts: Facts = field(default_factory=dict)

    def checked(self, facts: Facts) -> Self:
        """The same of data with these facts: it is the paper's only if it has what is published."""
        other = [
            f"{name} {facts[name]:,}, not {known:,}"
            for name, known in self.known_facts.items()
            if facts[name] != known
        ]
        if not other:
            return self
        note = f"The files are named like the paper's data and hold other data: {'; '.join(other)}."
        title = f"Other data in the form of: {self.title}"
        return replace(self, origin="real", title=title, notes=(*self.notes, note))

    def shared(self, *notes: str) -> dict[str, Any]:
        """The fields of `Prepared` that do not depend on rows, with further ``notes``."""
        every = {**vars(self), "notes": (*self.notes, *notes)}
        return {name: value for name, value in every.items() if name != "known_facts"}


@dataclass(frozen=True)
class Parts:
    """The prior, the rows it was fitted on, the rows to release from, and what to say of them."""

    chain: MarkovChain
    train: Scope
    test: Scope
    facts: Facts
    notes: tuple[str, ...] = ()


def check_ins(path: Path, *, order: Order, groups: tuple[str, ...] | None = None) -> Declaration:
    """A table of check-ins, its raw categories merged into the paper's 78 labels.

    The map is applied to every category that occurs, so that accents, case and repeated blanks do
    not matter: it writes "Cafe" and "Ramen / Noodle House", the data "Café" and "Ramen /  Noodle
    House". A category that it does not know, or none, is "other".
    """
    merged = foursquare_labels()
    labels = tuple((raw, merged.common(raw, other=OTHER)) for raw in _raw_labels(path))
    return Declaration(
        Source("parquet", path=path.name),
        "entity",
        order,
        (Category("label", merged.labels, "other", OTHER, labels),),
        (Category("group", groups, "refuse" if groups else "drop"),),
        folder=path.parent,
    )


def activities(path: Path, *, order: Order, states: tuple[str, ...]) -> Declaration:
    """A table of activities, each of them one of ``states``, with people in two parts."""
    return Declaration(
        Source("parquet", path=path.name),
        "entity",
        order,
        (Category("label", states, "refuse"),),
        (Category("group", None, "refuse"), Category("part", ("fit", "release"), "refuse")),
        folder=path.parent,
    )


def _raw_labels(path: Path) -> list[str]:
    import duckdb

    sql = f"SELECT DISTINCT label FROM read_parquet({text(str(path))}) WHERE label IS NOT NULL"  # noqa: S608 - quoted
    with duckdb.connect(":memory:") as connection:
        return sorted(str(label) for (label,) in connection.execute(sql).fetchall())


def by_days(engine: Engine) -> Parts:
    """Fit on the first 400 of the first 500 days, release from the others; 4 in 5 of fewer."""
    first, last = engine.span()
    facts: dict[str, int | str] = {}
    end: datetime | float
    if isinstance(first, datetime) and isinstance(last, datetime):
        facts["first day"] = first.date().isoformat()
        spanned = (last.date() - first.date()).days + 1
        end = datetime.combine(first.date(), time()) + timedelta(days=DAYS)
    else:
        spanned = int(float(last) - float(first)) + 1  # type: ignore[arg-type]
        end = float(first) + DAYS  # type: ignore[arg-type]
    days = min(spanned, DAYS)
    fit_days = days * FIT_DAYS // DAYS
    if not 0 < fit_days < days:
        raise InvalidFile(
            "days", given=f"are {spanned} in all", needed="be 2 or more, to fit on 4 in 5 of them"
        )
    split = FirstDays(fit_days)
    fitted = fit(engine, "label", split=split, scope=Scope(end=end), unseen="uniform", tau=TAU)
    assert fitted.test is not None  # noqa: S101 - there is a split
    facts |= {"days fitted on": fit_days, "days released from": days - fit_days}
    shorter = (
        f"The data spans {days} days, not {DAYS}: the first {fit_days} are fitted on and the other"
        f" {days - fit_days} released from, 4 : 1 as in the paper.",
    )
    notes = () if days == DAYS else shorter
    return Parts(fitted.chain, fitted.train, fitted.test, facts, notes)


def by_people(engine: Engine) -> Parts:
    """Fit on the people of one part, release from those of the other."""
    train, test = Scope(where={"part": ("fit",)}), Scope(where={"part": ("release",)})
    fitted = fit(engine, "label", scope=train, unseen="uniform", tau=TAU)
    return Parts(fitted.chain, train, test, {})


def prepare_table(
    about: DatasetInfo,
    declaration: Declaration,
    split: Callable[[Engine], Parts],
    *,
    identity: str,
) -> Prepared:
    """Fit the prior and count: the last step of every preparation.

    Args:
        about: What the data is.
        declaration: The table of entries.
        split: `by_days` or `by_people`.
        identity: The identity of the files that the table was made of.
    """
    with open_engine(declaration, memory=MEMORY) as engine:
        if not engine.keys("group"):
            raise _astray(about, engine.count(), engine.count())
        parts = split(engine)
        table = engine.histogram(["group", "label"], parts.test)
        train = engine.histogram(["label"], parts.train)
        every, fitted, released = (
            engine.lengths(scope) for scope in (Scope(), parts.train, parts.test)
        )
    if not released.rows or not fitted.rows:
        raise InvalidFile(
            about.key,
            given="has no rows to fit on" if not fitted.rows else "has no rows to release from",
            needed="have some of both kinds",
        )
    nowhere = released.rows - int(table.counts.sum())
    if nowhere * MOST_NOWHERE > released.rows:
        raise _astray(about, nowhere, released.rows)
    some = table.counts.sum(axis=1) > 0
    groups = tuple(str(name) for name, kept in zip(table.keys[0], some, strict=True) if kept)
    empty = (
        f"{int((~some).sum())} groups without a row to release from are left out (how many rows a"
        " group has is public).",
    )
    counts = table.counts[some]
    counts.setflags(write=False)
    facts = {
        "rows": every.rows,
        "entities": int(every.entities.sum()),
        **parts.facts,
        "rows fitted on": fitted.rows,
        "entities fitted on": int(fitted.entities.sum()),
        "rows released from": released.rows,
        "entities released from": int(released.entities.sum()),
        "longest sequence released from": released.longest,
        "groups": len(groups),
        "states": len(parts.chain.states),
    }
    if nowhere:
        facts["rows released from no group"] = nowhere
    return Prepared(
        **about.checked(facts).shared(*parts.notes, *(() if some.all() else empty)),
        chain=replace(parts.chain, length=released.longest),
        groups=groups,
        counts=counts,
        train=train.counts,
        facts=facts,
        fingerprint=identity,
    )


def _astray(about: DatasetInfo, rows: int, of: int) -> InvalidFile:
    return InvalidFile(
        about.key,
        given=f"has {rows:,} of {of:,} rows in no group",
        needed="have almost all in one: see that all files are whole and belong together",
    )


FORMAT = "takifugu prepared data 2"


def write_prepared(prepared: Prepared, path: Path | str) -> None:
    """Write it whole or not at all, with a digest of everything in it."""
    content = to_document(prepared)
    write_json({"format": FORMAT, "digest": _digest(content), **content}, Path(path))


def read_prepared(path: Path | str, *, of: str | None = None) -> Prepared:
    """Read it; an error if it was changed, or is about other data than ``of``."""
    path = Path(path)
    document = read_json(path, needed="be prepared data, as `prepare` writes it")
    try:
        found = _prepared(document)
    except Malformed as error:
        raise InvalidFile(
            f"{path}: {error.field}", given=error.given, needed=error.needed
        ) from None
    if of is not None and found.fingerprint != of:
        raise InvalidFile(
            str(path), given="was made of other data", needed="be prepared again from the files"
        )
    return found


def _prepared(document: Any) -> Prepared:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidFile("format", given="is another one", needed=f"be {FORMAT!r}")
    content = {name: part for name, part in document.items() if name not in ("format", "digest")}
    if document.get("digest") != _digest(content):
        raise InvalidFile(
            "digest", given="does not fit the content", needed="be prepared again: it was changed"
        )
    return from_document(Prepared, content)


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Entries:
    """How files become entries, in two parts.

    Attributes:
        table: How they become a table of entries.
        declare: What that table is.
        split: Which entries are fitted on and which are released from.
    """

    table: Callable[[str, FoundFiles, Path, Progress], EntryTable]
    declare: Callable[[Path], Declaration]
    split: Callable[[Engine], Parts]


@dataclass(frozen=True)
class DrawnCounts:
    """A simulated world of which only counts are drawn, for any number of rows.

    Attributes:
        rows: How many there are unless others are requested.
        described: What the dataset is with so many rows.
        identity: Of the configuration with so many rows: equal on every machine.
        draw: Draws the prepared data.
    """

    rows: int
    described: Callable[[DatasetInfo, int], DatasetInfo]
    identity: Callable[[int], str]
    draw: Callable[[DatasetInfo, int], Prepared]


@dataclass(frozen=True)
class PaperDataset:
    """A dataset that someone may have.

    Attributes:
        about: What it is.
        files: What is needed of it, by the name that its recipe has for it.
        published: Where its authors publish it.
        cite: The work to cite.
        made_by: How its files become entries, or how its counts are drawn.
        derived: Whether its file was made from what they publish, and is not published itself.
    """

    about: DatasetInfo
    files: Mapping[str, RequiredFile]
    published: str
    cite: str
    made_by: Entries | DrawnCounts
    derived: bool = False

    @property
    def key(self) -> str:
        """Its short name."""
        return self.about.key

    @property
    def title(self) -> str:
        """What it is, for people."""
        return self.about.title

    def missing(self, needed: RequiredFile, folder: Path | None) -> InvalidFile:
        """The error for a file that is not there: its name, its columns, where it is published."""
        where = "it is made from what its authors" if self.derived else "its authors"
        return InvalidFile(
            needed.name,
            given="is missing" if folder is None else f"is missing from {folder}",
            needed=f"be there with the columns {needed.shape}; {where} publish"
            f"{'' if self.derived else ' it'} at {self.published}",
        )

    def within(self, folder: Path | None) -> FoundFiles:
        """Its files in ``folder``; an error that names the first one that is not there."""
        found: dict[str, tuple[RequiredFile, tuple[Path, ...]]] = {}
        for name, needed in self.files.items():
            paths = () if folder is None else needed.within(folder)
            if not paths:
                raise self.missing(needed, folder)
            found[name] = needed, paths
        return found


def prepare(
    source: PaperDataset,
    data_dir: Path | str | None,
    work_dir: Path | str,
    progress: Progress,
    *,
    rows: int | None = None,
) -> Prepared:
    """Read, check, fit and count; what was made before and is still right is not made again.

    Args:
        source: The dataset.
        data_dir: Where its files are; None for a simulated dataset.
        work_dir: Where tables are put, for this run and the next.
        progress: Called with what is being done, the steps done and the steps in all.
        rows: How many rows a world has whose counts are drawn; refused for every other dataset.
    """
    made = source.made_by
    if rows is not None and not isinstance(made, DrawnCounts):
        raise UnsoundRequest(
            f"{source.key} has the rows that it has; only the number of rows of simulated check-ins"
            " can be chosen",
            field="rows",
            given=rows,
        )
    work = Path(work_dir)
    found = source.within(None if data_dir is None else Path(data_dir))
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise InvalidFile(
            str(work), given="cannot be made", needed="be a folder that can be written to"
        ) from None
    kept = work / f"{source.key}.prepared.json"
    if isinstance(made, DrawnCounts):
        size = made.rows if rows is None else rows
        about = made.described(source.about, size)
        prepared = _kept(kept, about, made.identity(size))
        if prepared is None:
            progress(f"{source.key}: drawing the counts of {size:,} rows", 0, 1)
            prepared = made.draw(about, size)
            write_prepared(prepared, kept)
        return prepared
    table = made.table(source.key, found, work, progress)
    if not table.rows:
        names = ", ".join(needed.name for needed in source.files.values())
        raise InvalidFile(names, given="hold no rows", needed="hold some")
    prepared = _kept(kept, source.about, table.identity)
    if prepared is None:
        progress(f"{source.key}: fitting and counting", 0, 1)
        declaration = made.declare(table.path)
        prepared = prepare_table(source.about, declaration, made.split, identity=table.identity)
        write_prepared(prepared, kept)
    return prepared


def _kept(path: Path, about: DatasetInfo, identity: str) -> Prepared | None:
    """What was prepared before, if it is of this data and says the same of it."""
    try:
        prepared = read_prepared(path, of=identity)
    except InvalidFile:
        return None  # none yet, or one of other data
    about = about.checked(prepared.facts)
    same = prepared.notes[: len(about.notes)] == about.notes
    said = prepared.title, prepared.calibrated
    return prepared if same and said == (about.title, about.calibrated) else None
