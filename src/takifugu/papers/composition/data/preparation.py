r"""The paper's preparation of a table of entries: a prior from one part, counts of the other.

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
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Literal, Self

from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.errors import InvalidFile
from takifugu.fitting import FirstDays, fit
from takifugu.papers.composition.data.raw_rows import text
from takifugu.papers.composition.experiments.measurements import Family, Prepared, PrintedColumn
from takifugu.priors import MarkovChain
from takifugu.priors.fitting import TAU
from takifugu.priors.labels import foursquare_labels
from takifugu.tables import Engine, Scope, open_engine

DAYS, FIT_DAYS = 500, 400  # the paper's: the first 500 days, of which 400 are fitted on
OTHER = "other"
MEMORY = "2GB"
MOST_NOWHERE = 100  # at most one row in so many may be in no group

Facts = Mapping[str, int | str]


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
    origin: Literal["paper", "real", "simulated"]
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
    about = about.checked(facts)
    return Prepared(
        key=about.key,
        title=about.title,
        family=about.family,
        origin=about.origin,
        chain=replace(parts.chain, length=released.longest),
        group_by=about.group_by,
        groups=groups,
        counts=counts,
        train=train.counts,
        facts=facts,
        notes=(*about.notes, *parts.notes, *(() if some.all() else empty)),
        fingerprint=identity,
        calibrated=about.calibrated,
    )


def _astray(about: DatasetInfo, rows: int, of: int) -> InvalidFile:
    return InvalidFile(
        about.key,
        given=f"has {rows:,} of {of:,} rows in no group",
        needed="have almost all in one: see that all files are whole and belong together",
    )
