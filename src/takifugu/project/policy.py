"""The policy of a project, read from its ``takifugu.toml``: strictly, and without the data.

What is protected, against whom and where it is paid for stands in one file that people edit. An
unknown key is refused: a policy must be understood in full. The format is documented in
docs/how-to/projects.md.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from takifugu.project.approval_rule import ApprovalRule, read_rule

if TYPE_CHECKING:
    from takifugu.session.query.linear import WeightedSum

if TYPE_CHECKING:
    from takifugu.project.schedules import Schedule

FILE = "takifugu.toml"
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")  # of a dataset: also a part of file names
Side = tuple[State, ...]
Pairs = tuple[tuple[Side, Side], ...]
FittedOn = Literal["first-days", "share", "all-rows"]


class InvalidProject(Malformed):
    """A project file cannot be understood, or what it names does not fit together."""


class TwoBudgets(InvalidProject):
    """Another dataset is about the same column of the same rows: two budgets would add up."""


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

    file: str
    fingerprint: str | None = None
    fitted: FittedOn | None = None
    released_from: datetime | int | None = None
    share: Fraction | None = None
    salt: str | None = None
    statement: str | None = None
    over: str | None = None
    positions: tuple[Name, ...] | None = None
    start: str | None = None
    known: str | None = None
    household: str | None = None
    member: str | None = None
    at_least: int | None = None


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
    declaration: str
    about: str | None = None
    priors: tuple[PriorPolicy, ...] = ()
    pairs: Pairs | Mapping[str, Pairs] | None = None
    entries: tuple[Name, ...] | None = None
    within: Fraction | None = None
    uncertainty: float = 0.0
    analysts: tuple[str, ...] = ()
    release_fitted_rows: bool = False
    table: bool | None = None
    linear: Mapping[str, "WeightedSum"] = field(default_factory=dict)
    approval: ApprovalRule | None = None


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

    found = read_schedules(top)
    named = top.section("schedule", None)
    for name, schedule in found.items():
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
    return found


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
    known = ("declaration", "about", "prior", "pairs", "entries", "secrets_within", "uncertainty")
    given = named.section(
        name, (*known, "analysts", "release_fitted_rows", "table", "linear", "approval")
    )
    analysts = given.names("analysts")
    if any(not isinstance(who, str) for who in analysts or ()):
        raise InvalidProject(
            given.at("analysts"), given="holds a number", needed="hold names", reason="kind"
        )
    return DatasetPolicy(
        name,
        given.text("declaration"),
        about=given.optional("about"),
        priors=_priors(given),
        pairs=_pairs(given),
        entries=given.names("entries"),
        within=_within(given),
        uncertainty=_uncertainty(given),
        analysts=tuple(str(who) for who in analysts or ()),
        release_fitted_rows=given.flag("release_fitted_rows") or False,
        table=given.flag("table"),
        linear=_linear(given),
        approval=read_rule(given),
    )


def _linear(given: TomlSection) -> dict[str, "WeightedSum"]:
    """The sections ``[dataset.NAME.linear.QUERY]``."""
    if "linear" not in given.content:
        return {}
    from takifugu.session.query.linear import WeightedSum

    named, found = given.section("linear", None), {}
    for name in named.content:
        section = named.section(name, ("column", "by", "weights"))
        weights = section.section("weights", None).content
        try:
            found[name] = WeightedSum(section.text("column"), section.text("by"), weights)
        except (InvalidQuery, UnsoundRequest) as error:
            raise InvalidProject(
                section.at("weights"),
                given="are not a number for each key",
                needed="be numbers, one of them not 0, as { 18 = 1, 19 = '1/2' }",
                reason="kind",
            ) from error
    return found


_PRIOR_KEYS = (
    "file", "over", "positions", "fingerprint", "fitted", "released_from", "share", "salt",
    "statement", "start", "known", "household", "member", "at_least",
)  # fmt: skip


def _priors(given: TomlSection) -> tuple[PriorPolicy, ...]:
    listed = given.content.get("prior")
    header = ".".join((*given.place.split(", "), "prior"))
    file = json.dumps(listed if isinstance(listed, str) else "FILE.json")
    needed = (
        f"be a section at the end of the file: the line [[{header}]], and below it the line"
        f" file = {file}"
    )
    return tuple(_prior(part) for part in given.sections("prior", _PRIOR_KEYS, needed=needed))


def _prior(given: TomlSection) -> PriorPolicy:
    fitted, over = given.optional("fitted"), given.optional("over")
    over = None if over is None else canonical(over)
    if over not in (None, *OVER):
        raise InvalidProject(
            given.at("over"),
            given=f"is {over!r:.80}",
            needed=f"be one of {', '.join(OVER)}",
            reason="choice",
        )
    if over != "sequence" and "positions" in given.content:
        raise InvalidProject(
            given.at("positions"),
            given="is given",
            needed="go with over = 'sequence'",
            reason="superfluous",
        )
    for key in ("household", "member"):
        if over != "household" and key in given.content:
            raise InvalidProject(
                given.at(key),
                given="is given",
                needed="go with over = 'household'",
                reason="superfluous",
            )
    if over == "household" and "household" not in given.content:
        raise InvalidProject(
            given.at("household"),
            given="is missing",
            needed="name the public column that groups entities",
            reason="missing",
        )
    if fitted not in (None, *get_args(FittedOn)):
        raise InvalidProject(
            given.at("fitted"),
            given=f"is {fitted!r}",
            needed=f"be one of {', '.join(get_args(FittedOn))}, or left out",
            reason="choice",
        )
    keys = {"released_from": fitted == "first-days", "share": fitted == "share"}
    keys |= {"salt": fitted == "share", "fingerprint": fitted is not None}
    for key, needed in keys.items():
        if needed and key not in given.content:
            raise InvalidProject(
                given.at(key),
                given="is missing",
                needed=f"be given with fitted = {fitted!r}",
                reason="missing",
            )
        if not needed and key in given.content and key != "fingerprint":
            raise InvalidProject(
                given.at(key),
                given="is given",
                needed=f"go with another `fitted` than {fitted!r}",
                reason="superfluous",
            )
    share = given.optional("share")
    return PriorPolicy(
        given.text("file"),
        fingerprint=given.optional("fingerprint"),
        fitted=fitted,  # type: ignore[arg-type]
        released_from=_place(given),
        share=None if share is None else parse_share(share, given.at("share"), InvalidProject),
        salt=given.optional("salt"),
        statement=given.optional("statement"),
        over=over,
        positions=given.names("positions"),
        start=_choice(given, "start", STARTS),
        known=_choice(given, "known", KNOWN),
        household=given.optional("household"),
        member=given.optional("member"),
        at_least=_at_least(given),
    )


def _at_least(given: TomlSection) -> int | None:
    least = given.content.get("at_least")
    if least is None:
        return None
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise InvalidProject(
            given.at("at_least"),
            given=f"is {least!r:.40}",
            needed="be a whole number, ≥ 1: how many entities a label needs that is found on the"
            " fitted rows",
            reason="kind",
        )
    return least


def _choice(given: TomlSection, key: str, choices: tuple[str, ...]) -> str | None:
    value = given.optional(key)
    if value not in (None, *choices):
        raise InvalidProject(
            given.at(key),
            given=f"is {value!r:.80}",
            needed=f"be one of {', '.join(choices)}",
            reason="choice",
        )
    return value


def _place(given: TomlSection) -> datetime | int | None:
    value = given.content.get("released_from")
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is None or whole or (isinstance(value, datetime) and value.tzinfo is None):
        return value
    raise InvalidProject(
        given.at("released_from"),
        given="is neither",
        needed="be a local time without quotes, as 2012-05-08T00:00:00, or a whole number",
        reason="kind",
    )


def _uncertainty(given: TomlSection) -> float:
    value = given.content.get("uncertainty", 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise InvalidProject(
            given.at("uncertainty"),
            given=f"is {value!r:.40}",
            needed="be at least 0 and below 1",
            reason="range",
        )
    return float(value)


def _within(given: TomlSection) -> Fraction | None:
    """A distance, as a number or as text that is one exactly: "0.1"."""
    value = given.content.get("secrets_within")
    if value is None:
        return None
    place = given.at("secrets_within")
    try:
        within = exactly(value, "secrets_within")
    except UnsoundRequest as error:
        raise InvalidProject(
            place, given="is not a number", needed="be a distance", reason="kind"
        ) from error
    if not within > 0:
        raise InvalidProject(place, given="is not above 0", needed="be a distance", reason="range")
    return within


def _pairs(given: TomlSection) -> Pairs | Mapping[str, Pairs] | None:
    listed = given.content.get("pairs")
    if listed is None:
        return None
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
