"""``takifugu plan --file`` and ``takifugu release --file``: several queries from one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.cli.output_files import Undelivered
from takifugu.cli.shared_options import (
    InvalidOption,
    Spinner,
    echo,
    plain,
    print_json,
    show_warnings,
    the_project,
)
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from takifugu.project.batches import BatchPlan
    from takifugu.session.release_result import Result


def refuse_beside(file: Path | None, name: str | None, others: dict[str, Any]) -> None:
    """Refuse a file beside a query, or neither: one of them says what is asked."""
    given = [f"--{key.replace('_', '-')}" for key, value in others.items() if value]
    if file is not None and (name is not None or given):
        beside = "NAME" if name is not None else given[0]
        raise InvalidOption(
            "--file", given=f"stands beside {beside}", needed="be alone: the file has the queries"
        )
    if file is None and name is None:
        raise InvalidOption(
            "NAME", given="is missing", needed="be a dataset; or give --file PLANS.toml"
        )


def plan_batch(
    file: Path, *, folder: Path | None, backend: Any, table: bool, as_json: bool
) -> None:
    """Print what every release of a file costs, one after another. Nothing is spent."""
    from takifugu.project.batches import Batch, read_batch

    items, project = read_batch(file), the_project(folder)
    with (
        show_warnings(),
        Spinner("planning") as spinner,
        Batch(project, items, backend=backend, table=table, progress=spinner) as batch,
    ):
        plans = batch.plans()
    if as_json:
        print_json(plain({"releases": [part.describe() for part in plans]}))
        return
    for part in plans:
        echo(f"{part.item.name}: {part.plan.query.kind} of {part.plan.query.title}")
        if not part.plan.stored:
            echo(f"  {part.plan.usefulness.words}")
        echo(f"  {_price(part)}")


def release_batch(
    file: Path, *, folder: Path | None, backend: Any, table: bool, as_json: bool, yes: bool
) -> None:
    """Release all of a file, one by one; what was released before is free."""
    from dataclasses import replace

    from takifugu.project.batches import Batch, read_batch

    items, project = read_batch(file), the_project(folder)
    if yes:
        items = tuple(replace(item, accept_noise=True) for item in items)
    documents = []
    with (
        show_warnings(),
        Spinner("releasing") as spinner,
        Batch(project, items, backend=backend, table=table, progress=spinner) as batch,
    ):
        try:
            for part, result, out in batch.release():
                spinner(part.item.name)
                document = plain(result.document())
                documents.append(
                    {"name": part.item.name} | document | {"out": None if out is None else str(out)}
                )
                if not as_json:
                    echo(_line(part, result, out))
        except OSError as error:
            reason = (error.strerror or "cannot be written").lower()
            named = (
                error.filename2 or error.filename or "a file"
            )  # of a link the second is the name
            raise Undelivered(str(named), reason) from None
    if as_json:
        print_json({"releases": documents})


def _line(part: "BatchPlan", result: "Result", out: Path | None) -> str:
    rows = f"{len(result.rows):,} rows"
    where = f", written to {out}" if out is not None else ""
    if out is None and part.item.out is not None:
        where = f"; {part.item.out} is there from an earlier run"
    return f"{part.item.name}: {rows}, {result.price}{where}"


def _price(part: "BatchPlan") -> str:
    if part.met is None:
        return "free: it was answered before"
    cost = part.plan.cost
    spent = four_digits(part.met.spent, "up")
    of = four_digits(cost.budget, "down")
    if not part.met.admitted:
        return f"{cost.words} alone: too much after those before it ({spent} of {of} spent)"
    return f"{cost.words} alone; {spent} of {of} spent with it and those before it"
