"""The differential privacy of a finite mechanism: how far one changed cell moves an output."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Floats, frozen
from takifugu._core.rounding import added_by, loss_up
from takifugu.errors import InvalidMechanism, InvalidWorld
from takifugu.finite.mechanism import FiniteMechanism
from takifugu.priors.universe import Name, Tables


@dataclass(frozen=True, eq=False)
class DpLoss:
    """The DP loss of a mechanism over some relation of neighbours, by replacement.

    Attributes:
        epsilon: The loss: an upper bound, above the exact value by at most ``slack``.
        slack: How far rounding may have raised ``epsilon``; 0 when it is infinite.
        left: The dataset that gives ``output`` with more probability.
        right: Its neighbour that gives it with less.
        output: The output that distinguishes the two best.
    """

    epsilon: float
    slack: float
    left: Hashable
    right: Hashable
    output: Hashable


def per_entry(mechanism: FiniteMechanism, *, entry: Name | None = None) -> DpLoss:
    """The loss when the content of one cell is replaced (the paper, Definition "Per-Entry DP").

    With ``entry``, of that cell alone.
    """
    tables = _tables(mechanism)
    columns = range(len(tables.entries)) if entry is None else [tables.entry(entry)]
    return _worst_of(mechanism, [[column] for column in columns])


def by_entry(mechanism: FiniteMechanism) -> Floats:
    """``[entry]``: the per-entry loss of every entry on its own, rounded up."""
    entries = _tables(mechanism).entries
    return frozen([per_entry(mechanism, entry=entry).epsilon for entry in entries])


def per_record(mechanism: FiniteMechanism, *, record: Name | None = None) -> DpLoss:
    """The loss when all cells of one record are replaced (the paper, Definition 1).

    With ``record``, of that record alone.
    """
    tables = _tables(mechanism)
    names = tuple(dict.fromkeys(tables.records)) if record is None else (record,)
    if record is not None and record not in tables.records:
        raise InvalidWorld(
            "record", given=f"{record!r} is unknown", needed="be a record of the tables"
        )
    cells = [[c for c, owner in enumerate(tables.records) if owner == name] for name in names]
    return _worst_of(mechanism, cells)


def group(mechanism: FiniteMechanism, size: int) -> DpLoss:
    """The loss when any ``size`` cells or fewer are replaced (the paper, Definition "Group DP").

    The most likely dataset within distance k is the most likely one, one cell away from
    distance k − 1: ``size`` sweeps over the entries, instead of one for every set of cells.
    """
    tables = _tables(mechanism)
    if not (isinstance(size, int) and size >= 1):
        raise InvalidWorld("size", given=f"is {size!r}", needed="be a whole number of cells, 1 up")
    reach = mechanism.likelihood.reshape(*tables.shape, -1)
    for _ in range(min(size, len(tables.entries))):
        wider = reach
        for column in range(len(tables.entries)):
            wider = np.maximum(wider, reach.max(axis=column, keepdims=True))
        reach = wider
    most = reach.reshape(mechanism.likelihood.shape)
    right, output = _steepest(most, mechanism.likelihood)
    near = np.flatnonzero(tables.distances([right], range(len(tables)))[0] <= size)
    left = int(near[np.argmax(mechanism.likelihood[near, output])])
    return _loss(mechanism, left, right, output)


def between(mechanism: FiniteMechanism, neighbours: Iterable[tuple[Hashable, Hashable]]) -> DpLoss:
    """The loss over a relation given as pairs of datasets, each pair taken both ways."""
    position = mechanism.universe.position
    pairs = [(position(a), position(b)) for a, b in neighbours]
    if not pairs:
        raise InvalidWorld("neighbours", given="is empty", needed="hold at least one pair")
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    left, right = np.concatenate([left, right]), np.concatenate([right, left])
    step = max(1, 2**24 // len(mechanism.outputs))
    losses = []
    for start in range(0, len(left), step):
        a, b = left[start : start + step], right[start : start + step]
        k, output = _steepest(mechanism.likelihood[a], mechanism.likelihood[b])
        losses.append(_loss(mechanism, int(a[k]), int(b[k]), output))
    return max(losses, key=lambda loss: loss.epsilon)


def _worst_of(mechanism: FiniteMechanism, groups: Sequence[Sequence[int]]) -> DpLoss:
    """The worst over sets of columns, all of whose cells may be replaced at once.

    With the other cells held, the largest ratio is the largest likelihood over the smallest.
    """
    tables = _tables(mechanism)
    order = np.arange(len(tables)).reshape(tables.shape)
    losses = []
    for columns in groups:
        size = int(np.prod([tables.shape[c] for c in columns]))
        last = range(len(tables.shape) - len(columns), len(tables.shape))
        lines = np.moveaxis(order, columns, last).reshape(-1, size)  # [line, filling]
        block = mechanism.likelihood[lines]  # [line, filling, output]
        line, output = _steepest(block.max(axis=1), block.min(axis=1))
        left = int(lines[line, np.argmax(block[line, :, output])])
        right = int(lines[line, np.argmin(block[line, :, output])])
        losses.append(_loss(mechanism, left, right, output))
    return max(losses, key=lambda loss: loss.epsilon)


def _steepest(most: Floats, least: Floats) -> tuple[int, int]:
    """Where ``most``/``least`` is largest; 0/0 does not count.

    The quotient is rounded once, so a place whose exact quotient is larger than that of the
    place found is larger by a factor of at most 1 + 4u, which `_loss` adds.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(most > 0, most / least, 0.0)
    row, output = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    return int(row), int(output)


def _loss(mechanism: FiniteMechanism, left: int, right: int, output: int) -> DpLoss:
    more, less = (float(mechanism.likelihood[row, output]) for row in (left, right))
    loss = loss_up(more, less, error=2.0**-51)
    names = mechanism.universe.datasets
    return DpLoss(
        max(loss, 0.0),
        added_by(loss, more, less),
        names[left],
        names[right],
        mechanism.outputs[output],
    )


def _tables(mechanism: FiniteMechanism) -> Tables:
    if not isinstance(mechanism.universe, Tables):
        raise InvalidMechanism(
            "universe",
            given="holds datasets that are not tables, so that cells and records have no meaning",
            needed="be Tables, or give the pairs of neighbours to `between`",
        )
    return mechanism.universe
