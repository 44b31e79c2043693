"""Plans as JSON documents, to be sent to somebody else, and made into plans again there.

`plan_to_document` writes all of a plan that is for whoever asked: what `Plan.describe` has, the
words that print, and what is needed to make the plan again. The owner's marks stay behind: that of
the data, the fingerprint of the declaration and what names its cells, the rules of the policy.
`plan_from_document` gives a `Plan` that equals, prints and describes as the first one, with
`ON_THE_SERVER` in place of those marks and a `DescribedMechanism` in place of the mechanism: noise
is drawn where the rows are, after they were paid for. It cannot be released here, because a session
refuses a plan whose charge is not the one it would make.
`public_form` is the same plan without the detour. In place of the mark of the data stands the
`digest` of all that would be released: whoever releases the plan where it was made can tell by it
whether that has changed since. The mark of the data is a keyed hash, and so is the digest.

Numbers are exact: `takifugu.documents.reading` says how they are written.

A plan *file* is a plan that is released later, perhaps by somebody else, where the rows are. It is
never trusted: its options are planned anew, and must come to the same price.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from takifugu._core.keys import DIGITS
from takifugu.costs.losses import Concentrated, Loss, Metric, Pure
from takifugu.documents.declared import parts_from
from takifugu.documents.reading import (
    DocumentPart,
    InvalidDocument,
    as_json,
    by_name,
    converted,
    json_object,
    listed,
    moment,
    name,
    predicted,
    refuse_unshown,
    text,
    whole,
)
from takifugu.errors import InvalidFile, UnsoundRequest
from takifugu.ledger import Cells, Charge, Groups, Window
from takifugu.ledger.canonical_text import check_name, sha256
from takifugu.ledger.charge_values import loss_body, loss_of
from takifugu.mechanisms import Error
from takifugu.priors.documents import read_json
from takifugu.session.cells import MAX_CHARGED_GROUPS, Rows
from takifugu.session.query.query import Query
from takifugu.session.query_kinds import KINDS, query_class
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_cost import ReleaseCost, value_cost
from takifugu.session.release_plan import Plan, RowsRead, UnpricedPlan
from takifugu.session.usefulness import Usefulness
from takifugu.tables import Scope

if TYPE_CHECKING:
    import numpy as np


ON_THE_SERVER = "on the server: "  # begins what stands for a mark that is the owner's
DECIDED_AT_RELEASE = ("key", "approval", "request", "resumable")  # parts of a charge
SENT_PLAN_FORM = "takifugu-plan-2"  # of what is sent; a plan file has another
OWNERS_PARTS = ("cells",)  # of a description: made from what is the owner's


@dataclass(frozen=True, eq=False)
class DescribedMechanism:
    """What a mechanism says of itself; equal to every mechanism that says the same.

    Attributes:
        document: What `Mechanism.describe` gave, as JSON.
    """

    document: Mapping[str, Any]

    def __eq__(self, other: object) -> bool:
        described = None if isinstance(other, type) else getattr(other, "describe", None)
        return callable(described) and _json_text(described()) == self._text

    __hash__ = None  # type: ignore[assignment]  # it equals values that are hashed in other ways

    @cached_property
    def _text(self) -> str:
        return _json_text(self.document)

    @property
    def kind(self) -> str:
        """What kind of mechanism it is."""
        return str(self.document["kind"])

    @cached_property
    def loss(self) -> Loss:
        """What one release costs every entry that it touches."""
        return loss_of(self.document["loss"])

    def describe(self) -> dict[str, Any]:
        """Kind, parameters and loss, as JSON."""
        return dict(self.document)

    def error(self) -> Error:
        """What to expect of its noise; a selection has none that is known without counts."""
        found = self.document.get("error")
        if not isinstance(found, Mapping):
            raise UnsoundRequest(
                f"the error of {self.kind} depends on what it selects from", field="mechanism"
            )
        return Error(float(found["deviation"]), float(found["interval"]))

    def release(self, values: Any) -> NoReturn:  # noqa: ARG002
        """Refused: it is where the rows are."""
        raise self._elsewhere()

    def simulate(
        self,
        values: Any,  # noqa: ARG002
        repetitions: int,  # noqa: ARG002
        *,
        rng: "np.random.Generator",  # noqa: ARG002
    ) -> NoReturn:
        """Refused: it is where the rows are."""
        raise self._elsewhere()

    def _elsewhere(self) -> UnsoundRequest:
        return UnsoundRequest(
            f"this {self.kind} is a description of one on a server; release the plan there, with"
            " the dataset that made it",
            field="mechanism",
            reason="on-a-server",
        )


def _json_text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True)


def digest(plan: UnpricedPlan) -> str:
    """What names all that would be released: equal for plans of which neither is stale.

    What a plan costs now is left out, as the next charge of anybody changes it.
    """
    if on_a_server(plan):
        return plan.charge.data.removeprefix(ON_THE_SERVER)
    body = {k: v for k, v in plan.charge.body().items() if k not in DECIDED_AT_RELEASE}
    made = {
        "charge": body,
        "query": _query_document(plan.query),
        "mechanism": plan.mechanism.describe(),
        "error": plan.error,
        "reason": plan.reason,
        "delta": plan.delta,
        "unit": plan.unit.document(),
        "otherwise": plan.otherwise,
    }
    return sha256(json.dumps(as_json(made), sort_keys=True))


def public_form(plan: Plan) -> Plan:
    """The plan as somebody sees it who is not the owner: without the marks of the data."""
    charge = replace(
        plan.charge,
        data=ON_THE_SERVER + digest(plan),
        cells=Cells.of({"kept": ON_THE_SERVER}),
        declared="",
        rules=None,
        sources=(),
    )
    return replace(plan, charge=charge)


def on_a_server(plan: UnpricedPlan) -> bool:
    """Whether a plan came from a server, and can be released by that server alone."""
    return plan.charge.data.startswith(ON_THE_SERVER)


def plan_to_document(plan: Plan) -> dict[str, Any]:
    """All of a plan that is for whoever asked, ready to be written as JSON."""
    charge = plan.charge
    described = {k: v for k, v in plan.describe().items() if k not in OWNERS_PARTS}
    found: dict[str, Any] = as_json(
        {
            "form": SENT_PLAN_FORM,
            **described,
            "digest": digest(plan),
            "options": plan.options.document(),
            "price": plan.price,
            "needs_confirmation": plan.needs_confirmation,
            "text": str(plan),
            "reads": plan.reads.details(),
            "analyst": charge.analyst,
            "made": {
                "query": _query_document(plan.query),
                "delta": plan.delta,
                "unit": plan.unit.document(),
                "otherwise": plan.otherwise,
                "loss": loss_body(charge.loss),
                "prior": charge.prior,
                "secrets": charge.secrets,
                "translation": charge.translation,
            },
        }
    )
    return found


def plan_from_document(document: Any, options: QueryOptions | None = None) -> Plan:
    """The plan that `plan_to_document` wrote.

    ``options`` are what was asked for, if that is known here: a document has a fraction and a day
    as text, which mean the same and are not the same value. Others than those of the document are
    refused.
    """

    def read(given: Any, _: str) -> Plan:
        plan = _plan(DocumentPart.of(given), options)
        refuse_unshown(lambda: (plan.describe(), str(plan)))
        return plan

    return converted(document, "document", read)


def _plan(found: DocumentPart, options: QueryOptions | None) -> Plan:
    if found.text("form") != SENT_PLAN_FORM:
        raise InvalidDocument(
            "form",
            given="is another one",
            needed=f"be {SENT_PLAN_FORM!r}: this version of takifugu reads no other",
            reason="form",
        )
    made = found.part("made")
    query = made.read("query", _query)
    mechanism = found.read("mechanism", _mechanism)
    charge = Charge(
        dataset=found.read("dataset", title),
        query=query.body(),
        mechanism=mechanism.describe(),
        loss=made.read("loss", _loss),
        data=ON_THE_SERVER + found.read("digest", _digest),
        prior=made.read("prior", title),
        secrets=made.read("secrets", title),
        translation=made.read("translation", title),
        cells=Cells.of({"kept": ON_THE_SERVER}),
        window=query.rows.window,
        groups=query.rows.groups,
        analyst=found.maybe("analyst", title),
    )
    reads = RowsRead.from_document(found)
    if reads is None:
        raise InvalidDocument("rows_read", given="is missing", needed="be given")
    return Plan(
        options=_options(found, options),
        query=query,
        mechanism=mechanism,
        error=found.read("error", predicted),
        reason=found.text("reason"),
        delta=made.fraction("delta"),
        unit=made.read("unit", value_cost),
        otherwise=made.maybe("otherwise", predicted),
        charge=charge,
        reads=reads,
        cost=found.read("cost", ReleaseCost.from_document),
        usefulness=found.read("usefulness", Usefulness.from_document),
        stored=found.truth("stored"),
        instead=found.maybe("instead", _instead),
        notes=found.texts("notes"),
    )


def _options(found: DocumentPart, known: QueryOptions | None) -> QueryOptions:
    given = found.read("options", json_object)
    read = found.read("options", lambda value, _: QueryOptions.from_document(value))
    if known is None:
        return read
    asked = as_json(known.exact_document())
    if given in (asked, as_json(known.document())):
        return known
    if _as_text(asked) != _as_text(given):
        raise InvalidDocument(
            "options",
            given="are not those that were asked for",
            needed="be the same: this is the plan of another query",
            reason="options",
        )
    return read  # with keys of columns in place of their text


def _as_text(value: Any) -> Any:
    """The same with every number as text: keys of whole numbers may be asked for as text."""
    if isinstance(value, Mapping):
        return {key: _as_text(part) for key, part in value.items()}
    return [_as_text(part) for part in value] if isinstance(value, list) else str(value)


def title(value: Any, path: str) -> str:
    """A name that a ledger could have: some letters, and not too many."""
    check_name(value, path)
    return text(value, path)


def _digest(value: Any, path: str) -> str:
    found = text(value, path)
    if len(found) != 64 or not set(found) <= DIGITS:
        raise InvalidDocument(path, given="is none", needed="be 64 hexadecimal digits")
    return found


def _instead(document: Any, path: str) -> dict[str, Any]:
    found = DocumentPart.of(document, path)
    found.decimal("epsilon")
    return {"epsilon": found.text("epsilon"), "error": found.read("error", predicted)}


def _mechanism(document: Any, path: str) -> DescribedMechanism:
    found = DescribedMechanism(json_object(document, path))
    part = DocumentPart.of(document, path)
    part.text("kind")
    if not isinstance(part.read("loss", _loss), Pure | Concentrated):
        raise InvalidDocument(f"{path}, loss", given="is another", needed="be in ε or in ρ")
    return found


def _loss(document: Any, path: str) -> Loss:
    part = DocumentPart.of(document, path)
    part.text("currency")
    for key in ("epsilon", "delta", "rho"):
        if key in part.given:
            part.fraction(key)
    found = loss_of(part.given)
    if isinstance(found, Metric):
        value_cost(document["cost"], f"{path}, cost")
    return found


# --- queries ---


def _query_document(query: Query) -> dict[str, Any]:
    scope = query.rows.scope
    if scope.entities is not None:
        raise UnsoundRequest(
            "a query about a share of the entities cannot be sent", field="entities"
        )
    own = {part.name: getattr(query, part.name) for part in fields(query) if part.name != "rows"}
    return {
        "kind": query.kind,
        **own,
        "rows": {
            "start": _moment_document(scope.start),
            "end": _moment_document(scope.end),
            "where": {column: list(keys) for column, keys in scope.where.items()},
        },
    }


def _query(document: Any, path: str) -> Query:
    found = DocumentPart.of(document, path)
    kind: Any = found.text("kind")
    if kind not in KINDS:
        raise InvalidDocument(
            found.named("kind"), given="is unknown", needed=f"be one of {', '.join(KINDS)}"
        )
    cls = query_class(kind)
    return cls(rows=found.read("rows", _rows), **parts_from(cls, found, without=("rows",)))


def _rows(document: Any, path: str) -> Rows:
    found = DocumentPart.of(document, path)
    start, end = found.maybe("start", _placed), found.maybe("end", _placed)
    where = found.read("where", by_name(listed(name)))
    kept = {column: where[column] for column in sorted(where)}
    if prod(map(len, kept.values())) > MAX_CHARGED_GROUPS:
        raise InvalidDocument(
            found.named("where"),
            given="names too many groups",
            needed=f"name up to {MAX_CHARGED_GROUPS}",
        )
    return Rows(
        Scope(start=start, end=end, where=kept),
        None if start is None and end is None else Window(start, end),
        Groups(kept, product(*kept.values())) if kept else None,
    )


def _moment_document(placed: Any) -> Any:
    """A bound: a whole step, or an instant."""
    return {"instant": placed.isoformat()} if isinstance(placed, datetime) else placed


def _placed(value: Any, path: str) -> int | datetime:
    if isinstance(value, Mapping):
        return DocumentPart.of(value, path).read("instant", moment)
    return whole(value, path)


PLAN_FORM = "takifugu-plan-1"
SAME_PLAN_PARTS = ("dataset", "query", "window", "groups", "mechanism", "cells")  # in a file
SAME_COST_PARTS = ("currency", "per_entry", "delta", "by_value")  # nor in its cost: the rest moves


@dataclass(frozen=True)
class PlanFile:
    """What a plan file holds.

    Attributes:
        dataset: The dataset of the project.
        options: The options of the query; a key of a column may be given as text.
        analyst: Who asks.
        document: The plan as the file has it.
    """

    dataset: str
    options: QueryOptions
    analyst: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def differences(self, made: Plan) -> tuple[str, ...]:
        """The parts in which the file is not the plan that was made from its options now."""
        now, cost = made.describe(), self.document.get("cost")
        then = cost if isinstance(cost, dict) else {}
        parts = [key for key in SAME_PLAN_PARTS if self.document.get(key) != now[key]]
        return (*parts, *(key for key in SAME_COST_PARTS if then.get(key) != now["cost"][key]))


def plan_document(dataset: str, analyst: str | None, plan: Plan, guarantee: str) -> dict[str, Any]:
    """A plan as JSON, ready to be released from later."""
    options = plan.options.document()
    query = {"dataset": dataset, "kind": options.pop("kind"), "analyst": analyst, "how": options}
    return {"form": PLAN_FORM, "asked": query, **plan.describe(), "guarantee": guarantee}


def read_plan(path: Path) -> PlanFile:
    """What a plan file holds."""
    document = read_json(path, needed="be a plan: `takifugu plan … --out FILE` writes one")
    if not isinstance(document, dict) or document.get("form") != PLAN_FORM:
        raise InvalidFile(
            str(path),
            given="is not a plan",
            needed="be one: `takifugu plan … --out FILE` writes it",
            reason="not-a-plan",
        )
    try:
        query = document["asked"]
        dataset, kind, analyst, how = (query[key] for key in ("dataset", "kind", "analyst", "how"))
        if not (isinstance(dataset, str) and isinstance(kind, str) and isinstance(how, dict)):
            raise TypeError
        if not isinstance(analyst, str | None) or "kind" in how:
            raise TypeError
    except (KeyError, TypeError):
        raise InvalidFile(
            str(path),
            given="was changed",
            needed="be as `takifugu plan` wrote it",
            reason="changed",
        ) from None
    return PlanFile(dataset, QueryOptions.from_document({"kind": kind} | how), analyst, document)
