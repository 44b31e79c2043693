"""The laws of small worlds, written out in fractions: the oracle's side of an instance."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from tests.oracles.all_vertices import Law, Row, chain_law, exact_rows, factor_law, normalised
from tests.oracles.chains import stationary
from torture.oracles.comparison import Instance


def laws_of(world: Instance) -> Iterator[Law]:
    """Every law that a guarantee about this world is for."""
    match world["kind"]:
        case "table":
            cells = product(*map(range, world["sizes"]))
            weights = normalised(world["table"])
            yield {row: p for row, p in zip(cells, weights, strict=True) if p}
        case "chain" | "known":
            yield _chain(world)
        case "second order":
            yield _second_order(world["follow"], world["length"])
        case "hours":
            yield from _hours(world)
        case "network":
            yield factor_law(
                world["sizes"],
                [
                    ((*above, j), _tables(table))
                    for j, (above, table) in enumerate(
                        zip(world["parents"], world["tables"], strict=True)
                    )
                ],
            )
        case "field":
            alone = [((j,), weights) for j, weights in enumerate(world["unary"])]
            together = list(zip(world["edges"], world["weights"], strict=True))
            yield factor_law(world["sizes"], [*alone, *together])
        case "independent":
            yield _product([{(v,): p for v, p in enumerate(normalised(w))} for w in world["laws"]])
        case "people":
            yield _product([_chain(part) for part in world["parts"]])
        case "several":
            for part in world["parts"]:
                yield from laws_of(part)
        case kind:
            raise ValueError(kind)


def sizes_of(world: Instance) -> list[int]:
    """How many values each entry has."""
    match world["kind"]:
        case "chain" | "known" | "unknown" | "both":
            rows = world["rows"][0] if world.get("varying") else world["rows"]
            return [len(rows)] * world["length"]
        case "second order":
            return [len(world["follow"])] * world["length"]
        case "hours":
            return [len(world["rows"][0])] * world["length"]
        case "independent":
            return [len(law) for law in world["laws"]]
        case "people":
            return [size for part in world["parts"] for size in sizes_of(part)]
        case "several":
            return sizes_of(world["parts"][0])
        case _:
            return list(world["sizes"])


def _chain(world: Instance) -> Law:
    if world.get("varying"):
        steps = [exact_rows(rows) for rows in world["rows"]]
    else:
        steps = [exact_rows(world["rows"])] * (world["length"] - 1)
    if world["start"] == "stationary":
        return chain_law(stationary(exact_rows(world["rows"])), steps)
    return chain_law(normalised(world["start"]), steps)


def _hours(world: Instance) -> Iterator[Law]:
    matrices = [exact_rows(rows) for rows in world["rows"]]
    law = normalised(world["start"])
    for hour in range(len(matrices)):
        steps = [matrices[(hour + t) % len(matrices)] for t in range(world["length"] - 1)]
        yield chain_law(law, steps)
        law = [
            sum((p * row[y] for p, row in zip(law, matrices[hour], strict=True)), Fraction(0))
            for y in range(len(law))
        ]


def _second_order(follow: Any, length: int) -> Law:
    size = len(follow)
    exact = [exact_rows(rows) for rows in follow]
    windows = list(product(range(size), repeat=2))
    table = [[exact[a][b][d] if b == c else Fraction(0) for c, d in windows] for a, b in windows]
    found: dict[Row, Fraction] = {
        window: p for window, p in zip(windows, stationary(table), strict=True) if p
    }
    if length == 1:
        return {
            (x,): sum((p for w, p in found.items() if w[1] == x), Fraction(0)) for x in range(size)
        }
    for _ in range(length - 2):
        found = {
            (*row, y): p * q
            for row, p in found.items()
            for y, q in enumerate(exact[row[-2]][row[-1]])
            if q
        }
    return found


def _tables(table: Any) -> Any:
    """A table of laws, each divided by its exact sum."""
    if not isinstance(table[0], list):
        return normalised(table)
    return [_tables(part) for part in table]


def _product(laws: Sequence[Law]) -> Law:
    found: dict[Row, Fraction] = {(): Fraction(1)}
    for law in laws:
        found = {(*row, *more): p * q for row, p in found.items() for more, q in law.items()}
    return found
