"""The policy of a project, read from its ``takifugu.toml``: strictly, and without the data.

What is protected, against whom and where it is paid for stands in one file that people edit. An
unknown key is refused: a policy must be understood in full. The format is documented in
docs/how-to/projects.md.

The rule of a policy that makes releases wait for a second person.

``[dataset.NAME.approval]`` names what waits for an owner's approval: releases whose Pufferfish ε
alone is above a number (``above = "0.5"``), the first release on the dataset (``first = true``), or
both. Answers that are stored cost nothing and need none. Every session of the project keeps the
rule: those of a server, of commands, batches and schedules, and of Python. What allows a release is
an event of the ledger by another person, which the charge names and the ledger checks
(`takifugu.ledger.events.decisions`).

Whoever can edit the project file can remove the rule, as they can change the budget: it binds those
who ask, not those who have the files.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import parse_qsl, urlsplit

from takifugu._core.atomic import read_whole
from takifugu._core.exact import exactly
from takifugu._core.toml import TomlSection, is_name, parse_toml
from takifugu.binding.entries import KINDS as OVER
from takifugu.binding.entries import canonical
from takifugu.declarations import InvalidQuery
from takifugu.errors import InvalidFile, Malformed, UnsoundRequest, one_of
from takifugu.fitting.fit_options import parse_share
from takifugu.priors import Name
from takifugu.priors.adversaries import KNOWN, STARTS
from takifugu.priors.universe import State
from takifugu.session.release_errors import ApprovalRule

if TYPE_CHECKING:
    from takifugu.project.schedules import Schedule
    from takifugu.session.query.sums import WeightedSum


FILE = "takifugu.toml"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")  # of a dataset: also a part of file names
Side = tuple[State, ...]
Pairs = tuple[tuple[Side, Side], ...]
FittedOn = Literal["first-days", "share", "all-rows"]
Reader = Callable[[TomlSection, str], Any]  # of the value of a key that is given


class InvalidProject(Malformed):
    """A project file cannot be understood, or what it names does not fit together."""


class TwoBudgets(InvalidProject):
    """Another dataset is about the same column of the same rows: two budgets would add up."""


# --- how the values of a section are read ---


def _choice(*choices: str, otherwise: str = "") -> Reader:
    def read(given: TomlSection, key: str) -> str:
        value = given.text(key)
        value = canonical(value) if key == "over" else value
        if value not in choices:
            needed = f"be one of {', '.join(choices)}{otherwise}"
            raise given.wrong(key, given=f"is {value!r:.80}", needed=needed, reason="choice")
        return value

    return read


def _at_least(given: TomlSection, key: str) -> int:
    least = given.content[key]
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise given.wrong(
            key,
            given=f"is {least!r:.40}",
            needed="be a whole number, ≥ 1: how many entities a label needs that is found on the"
            " fitted rows",
            reason="kind",
        )
    return least


def _place(given: TomlSection, key: str) -> datetime | int:
    value = given.content[key]
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole or (isinstance(value, datetime) and value.tzinfo is None):
        return value  # type: ignore[no-any-return]
    needed = "be a local time without quotes, as 2012-05-08T00:00:00, or a whole number"
    raise given.wrong(key, given="is neither", needed=needed, reason="kind")


def _uncertainty(given: TomlSection, key: str) -> float:
    value = given.content[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        needed = "be at least 0 and below 1"
        raise given.wrong(key, given=f"is {value!r:.40}", needed=needed, reason="range")
    return float(value)


def _within(given: TomlSection, key: str) -> Fraction:
    """A distance, as a number or as text that is one exactly: "0.1"."""
    try:
        within = exactly(given.content[key], key)
    except UnsoundRequest as error:
        given_words, needed = "is not a number", "be a distance"
        raise given.wrong(key, given=given_words, needed=needed, reason="kind") from error
    if not within > 0:
        raise given.wrong(key, given="is not above 0", needed="be a distance", reason="range")
    return within


def _analysts(given: TomlSection, key: str) -> tuple[str, ...]:
    listed = given.names(key) or ()
    if any(not isinstance(who, str) for who in listed):
        raise given.wrong(key, given="holds a number", needed="hold names", reason="kind")
    return tuple(map(str, listed))


def _pairs(given: TomlSection, key: str) -> Pairs | Mapping[str, Pairs]:
    listed = given.content[key]
    if isinstance(listed, dict) and listed:
        return {column: _listed_pairs(given, column, pairs) for column, pairs in listed.items()}
    return _listed_pairs(given, None, listed)


def _listed_pairs(given: TomlSection, column: str | None, listed: Any) -> Pairs:
    if not isinstance(listed, list) or not listed or not all(map(_is_pair, listed)):
        raise InvalidProject(
            given.at("pairs") if column is None else f"{given.at('pairs')}, {column}",
            given="is not a list of pairs",
            needed="look like [['hospital', 'home'], ['ward', ['home', 'work']]], or, by column,"
            " { place = [['hospital', 'home']] }",
            reason="kind",
        )
    return tuple((_side(left), _side(right)) for left, right in listed)


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(map(_side, pair))


def _side(given: Any) -> Side:
    """A value or several; nothing if it is neither."""
    side = tuple(given) if isinstance(given, list) else (given,)
    return side if all(map(is_name, side)) else ()


def _linear(given: TomlSection, key: str) -> dict[str, "WeightedSum"]:
    """The sections ``[dataset.NAME.linear.QUERY]``."""
    from takifugu.session.query.sums import WeightedSum

    named, sums = given.section(key, None), {}
    for name in named.content:
        section = named.section(name, ("column", "by", "weights"))
        weights = section.section("weights", None).content
        try:
            sums[name] = WeightedSum(section.text("column"), section.text("by"), weights)
        except (InvalidQuery, UnsoundRequest) as error:
            raise section.wrong(
                "weights",
                given="are not a number for each key",
                needed="be numbers, one of them not 0, as { 18 = 1, 19 = '1/2' }",
                reason="kind",
            ) from error
    return sums


def _priors(given: TomlSection, key: str) -> "tuple[PriorPolicy, ...]":
    header = ".".join((*given.place.split(", "), key))
    listed = given.content[key]
    file = json.dumps(listed if isinstance(listed, str) else "FILE.json")
    needed = (
        f"be a section at the end of the file: the line [[{header}]], and below it the line"
        f" file = {file}"
    )
    return tuple(map(_prior, given.sections(key, section_keys(PriorPolicy), needed=needed)))


def _read(read: Reader, key: str = "") -> dict[str, Any]:
    """How a part of a policy is read, which a section has under its own name or under ``key``."""
    return {"read": read, "key": key}


def section_keys(kind: type) -> tuple[str, ...]:
    """The keys that a section of this kind may have, in order."""
    declared = (part for part in fields(kind) if "read" in part.metadata)
    return tuple(part.metadata["key"] or part.name for part in declared)


def _read_section(kind: type, given: TomlSection) -> dict[str, Any]:
    """The values of a section by the names of the parts; those that are left out are missing."""
    values = {}
    for part in fields(kind):
        if "read" not in part.metadata:
            continue
        key = part.metadata["key"] or part.name
        required = part.default is part.default_factory  # neither is there
        if key in given.content or required:
            values[part.name] = part.metadata["read"](given, key)
    return values


@dataclass(frozen=True)
class PriorPolicy:
    """One prior of a dataset, and what it was fitted on, if it was.

    Attributes:
        file: The prior, from the folder of the project.
        fingerprint: What the prior must be; None if it was not fitted here.
        fitted: The rows it was fitted on; None if none of these.
        released_from: With ``first-days``: the first place in the order that it has not seen.
        share: With ``share``: how large a share of the entities it has seen.
        salt: With ``share``: what deals the entities out.
        statement: How the prior was fitted, for readers of the policy.
        over: What its entries are, one of `takifugu.binding.entries.KINDS`; None where only one
            is possible.
        positions: With ``sequence``: its entries in order, unless they are called 0, 1, 2, …
        household: With ``household``: the public column that groups entities.
        member: With ``household``: the public column whose keys are the members of the prior.
        at_least: How many entities a label needs that is found on the fitted rows, also when this
            prior is replaced by a fitted one; None for no rule.
        start: Of a Markov chain: ``unknown`` or ``stationary``; None: as its file says.
        known: Of a Markov chain: ``any`` or ``none``, which entries are known; None: as its file.
    """

    file: str = field(metadata=_read(TomlSection.text))
    over: str | None = field(default=None, metadata=_read(_choice(*OVER)))
    positions: tuple[Name, ...] | None = field(default=None, metadata=_read(TomlSection.names))
    fingerprint: str | None = field(default=None, metadata=_read(TomlSection.text))
    fitted: FittedOn | None = field(
        default=None, metadata=_read(_choice(*get_args(FittedOn), otherwise=", or left out"))
    )
    released_from: datetime | int | None = field(default=None, metadata=_read(_place))
    share: Fraction | None = field(
        default=None,
        metadata=_read(
            lambda given, key: parse_share(given.text(key), given.at(key), InvalidProject)
        ),
    )
    salt: str | None = field(default=None, metadata=_read(TomlSection.text))
    statement: str | None = field(default=None, metadata=_read(TomlSection.text))
    start: str | None = field(default=None, metadata=_read(_choice(*STARTS)))
    known: str | None = field(default=None, metadata=_read(_choice(*KNOWN)))
    household: str | None = field(default=None, metadata=_read(TomlSection.text))
    member: str | None = field(default=None, metadata=_read(TomlSection.text))
    at_least: int | None = field(default=None, metadata=_read(_at_least))


@dataclass(frozen=True)
class DatasetPolicy:
    """What is guaranteed about one dataset.

    Attributes:
        name: What it is called, in the ledger too.
        declaration: The declaration, from the folder of the project.
        about: The protected column that the priors are about; None if there is only one, or if
            they are about all of them.
        priors: What an adversary may believe; the guarantee holds for each.
        pairs: The secret pairs; None for all pairs of values. By column where the priors are about
            several: all pairs of a column that is not named.
        entries: The entries that have secrets; None for all.
        within: For numbers: how far apart two of them are at most that are a secret pair.
        uncertainty: How far every joint probability may be off.
        analysts: Who may run queries; empty for anybody.
        release_fitted_rows: Whether rows that a prior was fitted on may be released from.
        table: Whether to cache the translation as a table; None: only for priors of many states.
        linear: The linear queries that may be asked, by name.
        approval: Which releases wait for an owner; None for none.
    """

    name: str
    declaration: str = field(metadata=_read(TomlSection.text))
    about: str | None = field(default=None, metadata=_read(TomlSection.text))
    priors: tuple[PriorPolicy, ...] = field(default=(), metadata=_read(_priors, "prior"))
    pairs: Pairs | Mapping[str, Pairs] | None = field(default=None, metadata=_read(_pairs))
    entries: tuple[Name, ...] | None = field(default=None, metadata=_read(TomlSection.names))
    within: Fraction | None = field(default=None, metadata=_read(_within, "secrets_within"))
    uncertainty: float = field(default=0.0, metadata=_read(_uncertainty))
    analysts: tuple[str, ...] = field(default=(), metadata=_read(_analysts))
    release_fitted_rows: bool = field(default=False, metadata=_read(TomlSection.flag))
    table: bool | None = field(default=None, metadata=_read(TomlSection.flag))
    linear: Mapping[str, "WeightedSum"] = field(default_factory=dict, metadata=_read(_linear))
    approval: ApprovalRule | None = field(
        default=None, metadata=_read(lambda given, _: read_rule(given))
    )


@dataclass(frozen=True)
class Policy:
    """All of a project file.

    Attributes:
        ledger: A path from the folder of the project, or an address without a password.
        ledger_id: The hash of the first event of that ledger; no other ledger is accepted.
        witness: Where its head is recorded, a path or an address; None: each user's state folder.
        datasets: The datasets by name.
        schedules: Rolling releases, by name.
        server: The section ``[server]``, by key, as `takifugu.project.server_section` reads it.
    """

    ledger: str
    ledger_id: str
    datasets: Mapping[str, DatasetPolicy]
    witness: str | None = None
    schedules: Mapping[str, "Schedule"] = field(default_factory=dict)
    server: Mapping[str, Any] = field(default_factory=dict)


def read_policy(path: Path) -> Policy:
    """Read and check a project file."""
    text = read_text(path)
    try:
        return parse_policy(text)
    except Malformed as error:
        raise InvalidProject(
            f"{path}: {error.field}", given=error.given, needed=error.needed, reason=error.reason
        ) from None


def read_text(path: Path) -> str:
    """The text of a project file."""
    return read_whole(path, needed="be a project file; `takifugu init` makes one")


def parse_policy(text: str) -> Policy:
    """The policy that ``text`` holds, in TOML."""
    try:
        document = parse_toml(text)
    except InvalidFile as error:
        raise InvalidProject(
            "file", given=error.given, needed=error.needed, reason="syntax"
        ) from None
    top = TomlSection(document, error=InvalidProject)
    top.only(("ledger", "dataset", "schedule", "server"))
    ledger = top.section("ledger", ("place", "id", "witness"))
    place, witness = ledger.text("place"), ledger.optional("witness")
    refuse_password(place, "ledger, place")
    refuse_password(witness or "", "ledger, witness")
    named = top.section("dataset", None) if "dataset" in document else TomlSection({})
    datasets = {name: _dataset(named, name) for name in named.content}
    schedules, server = _schedules(top, datasets), _server(top)
    return Policy(place, ledger.text("id"), datasets, witness, schedules, server)


def _server(top: TomlSection) -> Mapping[str, Any]:
    if "server" not in top.content:
        return {}
    from takifugu.project.server_section import read_server_section

    return read_server_section(top)


def _schedules(top: TomlSection, datasets: Mapping[str, DatasetPolicy]) -> dict[str, "Schedule"]:
    """The sections ``[schedule.NAME]``, each about a dataset of the policy."""
    if "schedule" not in top.content:
        return {}
    from takifugu.project.schedules import read_schedules

    schedules = read_schedules(top)
    named = top.section("schedule", None)
    for name, schedule in schedules.items():
        checked_name(name)
        if schedule.dataset not in datasets:
            raise InvalidProject(
                named.section(name, None).at("dataset"),
                given=f"is {schedule.dataset!r:.80}",
                needed=one_of(datasets, schedule.dataset)
                if datasets
                else "be added first: there are no datasets",
                reason="unknown",
            )
    return schedules


def refuse_password(place: str, field: str) -> None:
    """Refuse an address that holds a password: this file is read by many."""
    if "://" not in place:
        return
    try:
        parts = urlsplit(place)
        has_password = parts.password is not None or "password" in dict(parse_qsl(parts.query))
    except ValueError:
        raise InvalidProject(
            field, given="is not an address", needed="be a path or a URL", reason="address"
        ) from None
    if has_password:
        raise InvalidProject(
            field,
            given="holds a password",
            needed="leave it out; PGPASSWORD or a password file supplies it",
            reason="password",
        )


def checked_name(name: str) -> str:
    """The name of a dataset, if it can be one."""
    if not NAME.fullmatch(name):
        raise InvalidProject(
            "dataset",
            given=f"is called {name!r:.80}",
            needed="have a name of letters a-z, digits, - and _",
            reason="name",
        )
    return name


def _dataset(named: TomlSection, name: str) -> DatasetPolicy:
    checked_name(name)
    given = named.section(name, section_keys(DatasetPolicy))
    return DatasetPolicy(name, **_read_section(DatasetPolicy, given))


def _prior(given: TomlSection) -> PriorPolicy:
    prior = PriorPolicy(**_read_section(PriorPolicy, given))
    belongs = {"positions": "sequence", "household": "household", "member": "household"}
    for key, over in belongs.items():
        if prior.over != over and key in given.content:
            needed = f"go with over = {over!r}"
            raise given.wrong(key, given="is given", needed=needed, reason="superfluous")
    if prior.over == "household" and prior.household is None:
        raise given.wrong(
            "household",
            given="is missing",
            needed="name the public column that groups entities",
            reason="missing",
        )
    fitted = prior.fitted
    keys = {"released_from": fitted == "first-days", "share": fitted == "share"}
    keys |= {"salt": fitted == "share", "fingerprint": fitted is not None}
    for key, due in keys.items():
        if due and key not in given.content:
            needed = f"be given with fitted = {fitted!r}"
            raise given.wrong(key, given="is missing", needed=needed, reason="missing")
        if not due and key in given.content and key != "fingerprint":
            needed = f"go with another `fitted` than {fitted!r}"
            raise given.wrong(key, given="is given", needed=needed, reason="superfluous")
    return prior


def read_rule(given: TomlSection) -> ApprovalRule | None:
    """The section ``approval`` of a dataset; None if it has none."""
    if "approval" not in given.content:
        return None
    section = given.section("approval", ("above", "first"))
    first, above = section.flag("first") or False, None
    if "above" in section.content:
        try:
            above = exactly(section.content["above"], "above")
        except UnsoundRequest:
            above = Fraction(-1)
        if above < 0:
            raise section.wrong(
                "above",
                given=f"is {section.content['above']!r:.40}",
                needed='be an epsilon of 0 or more, as "0.5"',
                reason="range",
            )
    if above is None and not first:
        raise section.wrong(
            "above",
            given="is missing",
            needed='be given, as above = "0.5", or first = true; or leave the section out',
            reason="missing",
        )
    return ApprovalRule(above, first)
