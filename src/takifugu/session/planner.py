"""``session.plan``: one method for each kind of query, with the options that it has.

The methods follow from `takifugu.session.query_options`, so that a kind or an option is written in
one place. Type checkers and editors read them in ``planner.pyi``, which
``python -m takifugu.session.planner_stub`` writes.
"""

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from takifugu.session.query_kinds import KINDS
from takifugu.session.query_options import KIND_OPTIONS, OPTIONS, READERS, QueryOptions
from takifugu.session.release_plan import Plan


class Planner:
    """How a query would be answered, how well, and for how much. Nothing is spent.

    Every method takes these options:

    {shared}
    """

    def __init__(self, plan: Callable[[QueryOptions], Plan]) -> None:
        self._plan = plan

    def __call__(self, options: QueryOptions) -> Plan:
        """The plan for a query that is given as one value, for programs."""
        return self._plan(options)


def parameters_of(kind: str) -> list[Parameter]:
    """The options of a kind of query as parameters, those that it needs first."""
    mine = KIND_OPTIONS[kind]
    first = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in mine.required]
    others = [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD if name == "column" else Parameter.KEYWORD_ONLY,
            default=READERS[OPTIONS[name].type][1],
        )
        for name in (*mine.shared, *mine.optional)
    ]
    return [*first, *others]


def words_of(kind: str) -> str:
    """What a method of `Planner` says of itself: its query, and its own options."""
    mine = KIND_OPTIONS[kind]
    own = [f"* ``{name}``: {OPTIONS[name].help}" for name in (*mine.required, *mine.optional)]
    return "\n".join([f"{KINDS[kind].title}: {KINDS[kind].answers}.", *([""] if own else []), *own])


def _method(kind: str) -> Callable[..., Plan]:
    signature = Signature(
        [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD), *parameters_of(kind)],
        return_annotation=Plan,
    )

    def plan(*arguments: Any, **options: Any) -> Plan:
        given = signature.bind(*arguments, **options).arguments
        planner: Planner = given.pop("self")
        return planner(QueryOptions(kind, **given))

    plan.__name__, plan.__qualname__ = kind, f"Planner.{kind}"
    plan.__doc__, plan.__signature__ = words_of(kind), signature  # type: ignore[attr-defined]
    return plan


Planner.__doc__ = str(Planner.__doc__).replace(
    "{shared}",
    "\n    ".join(f"* ``{n}``: {o.help}" for n, o in OPTIONS.items() if not o.kinds),
)
for _kind in KINDS:
    setattr(Planner, _kind, _method(_kind))
