"""Changing a project file: whole or not at all, and keeping the comments in it.

Sections are added to the end of the text, or cut out of it, line by line. The
result is read again and must hold exactly the new values; otherwise the file is left as it was.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu._core.atomic import whole_file
from takifugu._core.toml import parse_toml
from takifugu.declarations import Declaration
from takifugu.errors import InvalidFile
from takifugu.fitting import ByEntity, FirstDays
from takifugu.priors.prior import Prior
from takifugu.project.policy import InvalidProject, Policy, parse_policy, read_text
from takifugu.session.held_out import first_releasable

if TYPE_CHECKING:
    from takifugu.fitting import Fitted

Check = Callable[[Policy], None]  # raises if a policy is not to be written

HEAD = """\
# A takifugu project: what is protected, against whom, and where it is paid for.
# Edit it as you like; every command reads it anew and refuses what it does not understand.
# Another prior or other secrets count once `takifugu prior accept NAME` has shown their price.
# docs/how-to/projects.md explains each key. Never write a password here.

[ledger]
place = {place}  # a file, from this folder, or postgresql://user@host/database
# witness = "/srv/witness/study"       # where its head is recorded; by default in the state folder
id = {id}  # its first event: no other ledger will do

# `takifugu dataset add NAME DECLARATION.toml` adds a section for each dataset:
#
# [dataset.visits]
# declaration = "visits.toml"
# about = "state"                      # the protected column that the priors are about; left out:
#                                      # the only one, or all of them
# pairs = [["ward", ["home", "work"]]] # secret pairs; left out: all pairs of values; of several
#                                      # columns by column: {{ state = [["ward", "home"]] }}
# entries = [3, 4]                     # entries that have secrets; left out: all
# secrets_within = 10                  # of numbers: which of two at most this far apart it is
# uncertainty = 0.2                    # how far every joint probability may be off
# analysts = ["ana"]                   # who may run queries; left out: anybody
# release_fitted_rows = true           # also release from rows that a prior was fitted on
# table = true                         # cache the translation as a table
#
# [dataset.visits.approval]            # which releases wait for a second person; left out: none
# above = "0.5"                        # those that cost more than this epsilon
# first = true                         # the first one on the dataset
#
# [[dataset.visits.prior]]             # what an adversary may believe; the guarantee holds for each
# file = "visits.prior.json"
# over = "entities"                    # of a network: "entities", one row each, "sequence", "row"
#                                      # (its nodes are columns) or "entities × sequence"; of a
#                                      # chain with columns: "sequence" or "household"
# household = "home"                   # of "household": the public column that groups entities
# member = "role"                      # of "household": the public column with the members
# start = "unknown"                    # of a chain: whatever the first entry is thought to be
# known = "any"                        # of a chain: against somebody who knows any other entries
# at_least = 5                         # entities that a label needs which a fit finds
#
# [dataset.visits.linear.evening]      # a weighted sum that may be asked: `linear --query evening`
# column = "kwh"                       # the protected numbers, each times the weight of its row
# by = "hour"                          # the public column whose keys have weights
# weights = {{ 18 = 1, 19 = "1/2" }}     # exact; a key that is left out has the weight 0
"""


def head(place: str, identity: str) -> str:
    """The text of a new project file."""
    return HEAD.format(place=_value(place), id=_value(identity))


def add_dataset(
    path: Path, name: str, values: Mapping[str, Any], *, check: Check | None = None
) -> None:
    """Add the section of a dataset, and one for each prior, if ``check`` accepts them."""
    text = read_text(path)
    document = parse_toml(text)
    document.setdefault("dataset", {})[name] = dict(deepcopy(values))
    plain = {key: value for key, value in values.items() if key != "prior"}
    added = [_section(f"[dataset.{name}]", plain)]
    added += [_section(f"[[dataset.{name}.prior]]", prior) for prior in values.get("prior", ())]
    _write(path, text, "\n".join([_ended(text), *added]), document, check)


def add_prior(
    path: Path,
    name: str,
    prior: Mapping[str, Any],
    *,
    replace: bool,
    check: Check | None = None,
) -> None:
    """Add a prior to a dataset, in place of the ones that are there if ``replace``."""
    before = text = read_text(path)
    document = parse_toml(text)
    dataset = document["dataset"][name]
    dataset["prior"] = [*([] if replace else dataset.get("prior", [])), dict(prior)]
    if replace:
        text = _without(text, f"[[dataset.{name}.prior]]")
    added = _section(f"[[dataset.{name}.prior]]", prior)
    _write(path, before, f"{_ended(text)}\n{added}", document, check)


def _write(
    path: Path, before: str, text: str, document: Mapping[str, Any], check: Check | None
) -> None:
    try:
        right = parse_toml(text) == document
    except InvalidFile:
        right = False
    if not right:
        raise InvalidProject(
            str(path),
            given="is written in a way that cannot be added to here",
            needed="have [dataset.NAME] and [[dataset.NAME.prior]] sections, or be edited by hand",
            reason="layout",
        )
    policy = parse_policy(text)
    if check is not None:
        check(policy)
    with whole_file(path, field="project", fsync=True) as part:
        part.write_text(text, encoding="utf-8")
        if read_text(path) != before:
            raise InvalidProject(
                str(path), given="was changed by another process", needed="not change meanwhile;"
                " try again", reason="changed-meanwhile",
            )  # fmt: skip


def _ended(text: str) -> str:
    return text if text.endswith("\n") or not text else f"{text}\n"


def _without(text: str, header: str) -> str:
    """The text without the sections under ``header``; comments after their last key stay."""
    remaining: list[str] = []
    cut: list[str] | None = None
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if stripped.startswith("["):
            remaining += _after_last_key(cut or [])
            cut = [] if stripped.split("#")[0].replace(" ", "") == header else None
        if cut is None:
            remaining.append(line)
        else:
            cut.append(line)
    return "".join([*remaining, *_after_last_key(cut or [])])


def _after_last_key(lines: Sequence[str]) -> Sequence[str]:
    last = -1
    for place, line in enumerate(lines):
        if line.strip() and not line.strip().startswith("#"):
            last = place
    return lines[last + 1 :]


def _section(header: str, values: Mapping[str, Any]) -> str:
    lines = [header, *(f"{key} = {_value(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A value as TOML; all but times and tables are written as JSON writes them."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        parts = (f"{json.dumps(key, ensure_ascii=False)} = {_value(v)}" for key, v in value.items())
        return f"{{ {', '.join(parts)} }}"
    return json.dumps(value, ensure_ascii=False)


def policy_of(file: str, prior: Prior, found: "Fitted", declaration: Declaration) -> dict[str, Any]:
    """The section of a project file for a fitted prior."""
    section: dict[str, Any] = {"file": file, "fingerprint": prior.fingerprint}
    match found.split:
        case None:
            section["fitted"] = "all-rows"
        case FirstDays():
            section |= {"fitted": "first-days"}
            section["released_from"] = first_releasable(found.train.end, declaration)
        case ByEntity(share, salt):
            section |= {"fitted": "share", "share": str(share), "salt": salt}
    over = {} if found.estimate.over is None else {"over": found.estimate.over}
    least = {"at_least": max(each.at_least for each in found.labels)} if found.labels else {}
    stated = dict(found.estimate.stated) | {"statement": found.statement}
    return section | over | least | stated
