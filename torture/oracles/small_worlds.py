"""Small worlds of every kind: all extreme mechanisms are listed, and losses are exact."""

from collections.abc import Iterator
from math import prod
from typing import Any

import mpmath
import numpy as np

from tests.oracles.all_vertices import Law, asked_pairs, known_laws, pair_loss
from torture.oracles.comparison import Allowance, Compared, Family, Instance, Rng
from torture.oracles.extreme_draws import epsilon, law, rows
from torture.oracles.small_laws import laws_of, sizes_of
from torture.oracles.small_priors import said_of
from torture.oracles.spending import draw_spending, matrices

ORACLE = "all extreme mechanisms, sums in whole numbers"
MOST = 9  # datasets that the oracle couples


def _instance(rng: Rng, world: Instance) -> Instance:
    """With losses and secrets; groups of values where that leaves few datasets."""
    sizes = sizes_of(world)
    groups: list[list[int]] | None = None
    if world["kind"] != "known" and min(sizes) > 2 and prod(sizes) <= MOST and rng.random() < 0.35:
        order, cut = rng.permutation(min(sizes)).tolist(), int(rng.integers(1, min(sizes)))
        end = int(rng.integers(cut + 1, min(sizes) + 1))
        groups = [sorted(order[:cut]), sorted(order[cut:end])]
    spent = draw_spending(rng, sizes)
    if spent["kind"] == "cost" and rng.random() < 0.2:
        spent["kind"] = "factor"
    return {"world": world, "groups": groups, "spent": spent, "unit": epsilon(rng)}


def compare(instance: Instance) -> Iterator[Compared | Allowance]:
    """The bound of all secrets, and those of each entry."""
    said = said_of(instance)
    yield from said.asked()
    if not said.unit:
        return
    sizes = sizes_of(instance["world"])
    spent = instance["spent"]
    if spent["kind"] == "factor":
        spent = {**spent, "kind": "cost"}
    costs = matrices(spent, sizes)
    worst: dict[int, Any] = dict.fromkeys(range(len(sizes)), mpmath.mpf(0))
    for whole in laws_of(instance["world"]):
        for entry, size in enumerate(sizes):
            for left, right in asked_pairs(size, instance["groups"]):
                for given in _known(instance, whole, entry):
                    loss = pair_loss(given, costs, said.unit, entry, left, right)
                    if loss is not None:
                        worst[entry] = max(worst[entry], loss)
    most = max(worst.values())
    yield Compared(_named(instance), said.upper, most, most, said.lower, said.exact)
    if said.by_entry is not None and len(said.by_entry) == len(sizes):
        for entry, bound in enumerate(said.by_entry.tolist()):
            truth = worst[entry]
            yield Compared(f"entry {entry}", bound, truth, truth, counted=False)


def _known(instance: Instance, whole: Law, entry: int) -> Iterator[Law]:
    if instance["world"]["kind"] == "known":
        yield from known_laws(whole, entry)
    else:
        yield whole


def _named(instance: Instance) -> str:
    return str(instance["spent"]["kind"])


def _table(rng: Rng) -> Instance:
    shape = ([2, 2], [3], [2, 2, 2], [3, 2], [3, 3], [4, 2], [2, 2, 2, 2])[int(rng.integers(7))]
    return {"kind": "table", "sizes": shape, "table": law(rng, prod(shape))}


def _chain(rng: Rng, *, size: int = 0) -> Instance:
    size = size or int(rng.choice([2, 3, 4], p=[0.5, 0.4, 0.1]))
    length = int(rng.integers(1, {2: 5, 3: 4, 4: 3}[size]))
    if length > 1 and rng.random() < 0.25:
        steps = [rows(rng, size) for _ in range(length - 1)]
        world = {"rows": steps, "varying": True, "start": law(rng, size)}
    elif rng.random() < 0.3:
        world = {"rows": rows(rng, size, zeros=rng.random() < 0.5), "start": "stationary"}
    else:
        world = {"rows": rows(rng, size), "start": law(rng, size)}
    return {"kind": "chain", "length": length, **world}


def _known_entries(rng: Rng) -> Instance:
    size = int(rng.choice([2, 3], p=[0.7, 0.3]))
    length = int(rng.integers(2, {2: 5, 3: 4}[size]))
    start: Any = law(rng, size) if rng.random() < 0.6 else "stationary"
    world = {"rows": rows(rng, size, zeros=rng.random() < 0.4), "start": start}
    return {"kind": "known", "length": length, **world}


def _second_order(rng: Rng) -> Instance:
    follow = [rows(rng, 2, zeros=rng.random() < 0.3) for _ in range(2)]
    return {"kind": "second order", "follow": follow, "length": int(rng.integers(1, 5))}


def _hours(rng: Rng) -> Instance:
    size = int(rng.choice([2, 3], p=[0.7, 0.3]))
    matrices_ = [rows(rng, size) for _ in range(int(rng.integers(2, 4)))]
    length = int(rng.integers(1, {2: 5, 3: 4}[size]))
    return {"kind": "hours", "rows": matrices_, "start": law(rng, size), "length": length}


def _network(rng: Rng) -> Instance:
    sizes = ([2, 2], [2, 2, 2], [3, 2], [2, 3, 2], [2, 2, 2, 2])[int(rng.integers(5))]
    parents, tables = [], []
    for j, size in enumerate(sizes):
        above = sorted(rng.permutation(j)[: rng.integers(0, 3)].tolist())
        parents.append(above)
        tables.append(_conditional(rng, [sizes[k] for k in above], size))
    return {"kind": "network", "sizes": sizes, "parents": parents, "tables": tables}


def _conditional(rng: Rng, above: list[int], size: int) -> Any:
    if not above:
        return law(rng, size)
    return [_conditional(rng, above[1:], size) for _ in range(above[0])]


def _weights(rng: Rng, shape: tuple[int, ...]) -> Any:
    """From 1e-150 to 1e150, most of them ordinary, some 0."""
    table = np.exp(rng.normal(size=shape))
    if rng.random() < 0.3:
        wild = 10.0 ** rng.choice([-150, -100, -30, -16, 16, 30, 100, 150], size=shape)
        table = np.where(rng.random(shape) < 0.4, wild, table)
    if rng.random() < 0.2 and len(shape) > 1:
        table = np.where(rng.random(shape) < 0.2, 0.0, table)
    if not table.any():
        table.flat[0] = 1.0
    return table.tolist()


def _field(rng: Rng) -> Instance:
    sizes = ([2, 2], [2, 2, 2], [3, 2], [2, 3, 2], [2, 2, 2, 2])[int(rng.integers(5))]
    pairs = [(i, j) for j in range(len(sizes)) for i in range(j)]
    edges = [list(pair) for pair in pairs if rng.random() < 0.7] or [[0, 1]]
    return {
        "kind": "field",
        "sizes": sizes,
        "unary": [_weights(rng, (n,)) for n in sizes],
        "edges": edges,
        "weights": [_weights(rng, (sizes[i], sizes[j])) for i, j in edges],
    }


def _independent(rng: Rng) -> Instance:
    sizes = ([2, 2], [3, 2], [4], [2, 2, 2])[int(rng.integers(4))]
    return {"kind": "independent", "laws": [law(rng, n) for n in sizes]}


def _people(rng: Rng) -> Instance:
    parts = [_chain(rng, size=2) for _ in range(2)]
    for part in parts:
        part["length"] = min(part["length"], 2)
        if part.get("varying"):
            part["rows"] = part["rows"][: part["length"] - 1]
            if not part["rows"]:
                part |= {"rows": rows(rng, 2), "varying": False}
    return {"kind": "people", "parts": parts}


def _several(rng: Rng) -> Instance:
    first = _chain(rng)
    parts = [first]
    for _ in range(int(rng.integers(1, 3))):
        size = sizes_of(first)[0]
        more = {"rows": rows(rng, size), "start": law(rng, size)}
        parts.append({"kind": "chain", "length": first["length"], **more})
    return {"kind": "several", "parts": parts}


WORLDS = {
    "table": _table,
    "chain": _chain,
    "chain, any other entries known": _known_entries,
    "chain of order 2": _second_order,
    "chain by hour": _hours,
    "network": _network,
    "field": _field,
    "independent entries": _independent,
    "independent people": _people,
    "one of several priors": _several,
}


def _family(name: str) -> Family:
    draw = WORLDS[name]
    return Family(name, ORACLE, lambda rng: _instance(rng, draw(rng)), compare)


FAMILIES = tuple(_family(name) for name in WORLDS)
