"""Several releases at once, from one file: priced together, then charged one by one.

A batch opens each dataset once and is judged as a whole before the first charge: whether the budget
admits all of it, whether every file can be written, whether an answer would be mostly noise. Then
each release is charged, drawn and written in order. A run that was interrupted is run again: what
was released is free and the same, and the rest goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takifugu._core.atomic import read_whole, real_path
from takifugu._core.closing import Closing
from takifugu._core.toml import TomlSection, parse_toml
from takifugu.errors import InvalidFile, Malformed, TakifuguError
from takifugu.ledger.events.replay import Rehearsed
from takifugu.project.project import Project
from takifugu.project.schedules import query_from
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_errors import MostlyNoise
from takifugu.session.release_plan import Plan
from takifugu.session.release_result import Result
from takifugu.session.result_files import ResultFile, files_of
from takifugu.session.session import Session
from takifugu.tables.opening import BackendName

OWN_KEYS = ("name", "dataset", "analyst", "accept_noise", "out", "approval")


@dataclass(frozen=True)
class BatchItem:
    """One release of a batch.

    Attributes:
        name: What it is called; no other one of the batch is.
        dataset: The dataset of the project.
        options: The query; keys of columns may be given as text.
        analyst: Who asks.
        accept_noise: Whether it is released even if it is mostly noise.
        out: The file for its result; None for none.
        approval: The number of the event that allows it, where the policy wants a second person.
    """

    name: str
    dataset: str
    options: QueryOptions
    analyst: str | None = None
    accept_noise: bool = False
    out: Path | None = None
    approval: int | None = None


@dataclass(frozen=True)
class BatchPlan:
    """A release of a batch, and what it would meet after those before it.

    Attributes:
        item: What is to be released.
        plan: What it would be and cost alone.
        met: What its charge meets after those before it; None if it is stored, and so free.
    """

    item: BatchItem
    plan: Plan
    met: Rehearsed | None

    def describe(self) -> dict[str, Any]:
        """Ready to be written as JSON."""
        return {
            "name": self.item.name,
            "dataset": self.item.dataset,
            "plan": self.plan.describe(),
            "free": self.met is None,
            "admitted": self.met is None or self.met.admitted,
            "spent_with_it": None if self.met is None else self.met.spent,
            "out": None if self.item.out is None else str(self.item.out),
        }


class BatchRefused(TakifuguError):
    """The budget does not admit all of a batch; nothing was charged.

    Attributes:
        name: The first release that it does not admit after those before it.
        dataset: Its dataset.
        admitted: How many releases before it would be admitted or are free.
    """

    def __init__(self, name: str, dataset: str, admitted: int, of: int) -> None:
        self.name, self.dataset, self.admitted = name, dataset, admitted
        before = f"after the {admitted} before it " if admitted else ""
        super().__init__(
            f"{name!r} of {of} releases does not fit the budget of dataset {dataset!r}"
            f" {before}".rstrip()
            + "; nothing was charged. Ask for a smaller epsilon, leave some out, or have the owner"
            " raise the budget",
            field="epsilon",
        )


def read_batch(path: Path) -> tuple[BatchItem, ...]:
    """The releases that a file lists under ``[[release]]``, in order."""
    text = read_whole(path, needed="be a TOML file with a section [[release]] for each release")
    try:
        top = TomlSection(parse_toml(text))
        top.only(("release",))
        listed = top.sections("release", _known())
        if not listed:
            raise top.wrong("release", given="is missing", needed="be given: [[release]]")
        items = [_item(section, place, path.parent) for place, section in enumerate(listed, 1)]
        _refuse_twice(items, [section.at("name") for section in listed])
    except Malformed as error:
        raise InvalidFile(
            f"{path}: {error.field}", given=error.given, needed=error.needed, reason=error.reason
        ) from None
    return tuple(items)


def _known() -> tuple[str, ...]:
    return (*OWN_KEYS, *QueryOptions.__dataclass_fields__)


def _item(section: TomlSection, place: int, folder: Path) -> BatchItem:
    out = section.optional("out")
    return BatchItem(
        section.optional("name") or f"release {place}",
        section.text("dataset"),
        query_from(section, OWN_KEYS),
        section.optional("analyst"),
        section.flag("accept_noise") or False,
        None if out is None else folder / out,
        _approval(section),
    )


def _approval(section: TomlSection) -> int | None:
    number = section.content.get("approval")
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 2**63:
        raise section.wrong(
            "approval", given=f"is {number!r:.40}", needed="be the number of an event of the ledger"
        )
    return number


def _refuse_twice(items: Sequence[BatchItem], places: Sequence[str]) -> None:
    names, files = set[str](), set[Path]()
    for item, place in zip(items, places, strict=True):
        if item.name in names:
            raise InvalidFile(place, given="is another release's", needed="be one of its own")
        written = set() if item.out is None else set(map(real_path, files_of(item.out)))
        if written & files:  # however it is spelled: it would be taken for that of an earlier run
            raise InvalidFile(
                place,
                given="has the file of another release",
                needed="have one of its own",
                reason="same file",
            )
        names.add(item.name)
        files |= written


class Batch(Closing):
    """Releases of a project, their sessions open; `plans` spends nothing, `release` does.

    Args:
        project: The project.
        items: The releases, in order.
        backend: What reads the data; by default what its source needs.
        table: Whether to use cached translation tables.
        progress: Called with what is being done.
    """

    def __init__(
        self,
        project: Project,
        items: Sequence[BatchItem],
        *,
        backend: BackendName | None = None,
        table: bool = True,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.items = tuple(items)
        self._sessions: dict[tuple[str, str | None], Session] = {}
        self._opened = ExitStack()
        self._plans: tuple[BatchPlan, ...] | None = None
        try:
            for item in self.items:
                key = item.dataset, item.analyst
                if key not in self._sessions:
                    self._sessions[key] = self._opened.enter_context(
                        project.session(*key, backend=backend, table=table, progress=progress)
                    )
        except BaseException:
            self._opened.close()
            raise

    def close(self) -> None:
        """End every session."""
        self._opened.close()

    def session(self, item: BatchItem) -> Session:
        """The session that a release is made in."""
        return self._sessions[item.dataset, item.analyst]

    def plans(self, *, advice: bool = True) -> tuple[BatchPlan, ...]:
        """Every plan, and what it meets after those before it. Nothing is spent.

        ``advice``: whether plans say what would make noisy answers useful (`Session.planned`).
        """
        if self._plans is None:
            made = []
            for item in self.items:
                session = self.session(item)
                try:
                    options = session.resolved(item.options)
                    made.append(session.planned(options, advice=advice))
                except Malformed as error:
                    raise InvalidFile(
                        f"{item.name}: {error.field}",
                        given=error.given,
                        needed=error.needed,
                        reason=error.reason,
                    ) from None
            self._plans = self._rehearsed(made)
        return self._plans

    def _rehearsed(self, made: Sequence[Plan]) -> tuple[BatchPlan, ...]:
        met: dict[int, Rehearsed] = {}
        for dataset in {item.dataset for item in self.items}:
            places = [
                place
                for place, (item, plan) in enumerate(zip(self.items, made, strict=True))
                if item.dataset == dataset and not plan.stored
            ]
            rehearsed = self.session(
                next(item for item in self.items if item.dataset == dataset)
            ).rehearse(
                [self.session(self.items[place]).chargeable(made[place]) for place in places]
            )
            met |= dict(zip(places, rehearsed, strict=True))
        return tuple(
            BatchPlan(item, plan, met.get(place))
            for place, (item, plan) in enumerate(zip(self.items, made, strict=True))
        )

    def refuse(self) -> None:
        """Raise unless the budget admits all of it, and nothing waits for an owner or is noise."""
        for part in self.plans(advice=False):
            if part.met is not None and not part.met.admitted:
                place = self.items.index(part.item)
                raise BatchRefused(part.item.name, part.item.dataset, place, len(self.items))
        charged = set[str]()
        for part in self.plans():
            if part.met is not None:
                if part.item.approval is None:
                    session, after = self.session(part.item), part.item.dataset in charged
                    session.refuse_unapproved(part.plan, after=after, name=part.item.name)
                charged.add(part.item.dataset)
        for part in self.plans():
            if part.met is not None and not part.item.accept_noise:
                try:
                    self.session(part.item).refuse_noise(part.plan)
                except MostlyNoise as error:
                    raise error.of(part.item.name) from None

    def release(self) -> Iterator[tuple[BatchPlan, Result, Path | None]]:
        """Release everything in order; what was released before is free and the same.

        Gives each plan, its result, and the file that was written: None if there is none, or if
        the file of an earlier run is there.
        """
        self.refuse()
        with ExitStack() as files:
            targets = {
                part.item.name: files.enter_context(ResultFile(part.item.out, field="out"))
                for part in self.plans()
                if part.item.out is not None and not (part.met is None and part.item.out.exists())
            }
            for part in self.plans():
                accepted, approval = part.item.accept_noise, part.item.approval
                result = self.session(part.item).release(
                    part.plan, accept_noise=accepted, approval=approval
                )
                target = targets.get(part.item.name)
                if target is not None:
                    target.write(result)
                yield part, result, None if target is None else target.path
