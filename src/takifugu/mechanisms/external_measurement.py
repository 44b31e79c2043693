"""External mechanisms, which the caller supplies: an OpenDP measurement, or a finite channel."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf, lcm, log, log1p
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu.costs.cost import Cost, Matrix
from takifugu.costs.losses import Loss, Metric, Pure
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.mechanism_protocol import loss_document, probability, whole
from takifugu.mechanisms.opendp_measurements import pick
from takifugu.priors.universe import Name, Tables

if TYPE_CHECKING:
    from takifugu.finite.mechanism import FiniteMechanism

Law = Callable[[Any, int, "np.random.Generator"], Any]


@dataclass(frozen=True)
class ExternalMeasurement:
    """Any OpenDP measurement; its loss is read from its own map.

    Attributes:
        measurement: What OpenDP built.
        d_in: How far one replaced entry moves its input, in its own metric. Where the input is a
            table the metric says how far, at least: 2 under symmetric and insert-delete distance
            (one row out, one in), else 1. Where it is numbers, this is the user's claim.
        name: What to call it; its identity, as a measurement has none.
        delta: Where to read a privacy profile, or a concentrated loss as (ε, δ).
        law: ``law(values, repetitions, rng)`` draws from the same law with numpy, if known.
        deviation: The standard deviation of its error, if known.
        cost: What it tells of an entry, value by value, if that is less than its map proves
            between some values. This is the user's claim, as ``d_in`` is; for a pure loss alone.
    """

    kind: ClassVar[str] = "opendp"

    measurement: Any = field(metadata={"identity": False}, compare=False)
    d_in: Any
    name: str
    delta: float | None = None
    law: Law | None = field(default=None, metadata={"identity": False}, compare=False)
    deviation: float | None = None
    cost: Cost | None = None

    def __post_init__(self) -> None:
        if not all(
            hasattr(self.measurement, part) for part in ("map", "input_metric", "output_measure")
        ):
            raise InvalidMechanism(
                "measurement",
                given=f"is a {type(self.measurement).__name__}",
                needed="be an OpenDP measurement",
            )
        if self.delta is not None:
            object.__setattr__(self, "delta", probability(self.delta, "delta"))
        if not self.name:
            raise InvalidMechanism("name", given="is empty", needed="name the measurement")
        loss = measurements.loss_of(self.measurement, self.d_in, delta=self.delta)
        if self.cost is not None:
            if not isinstance(self.cost, Cost) or not self.cost:
                raise InvalidMechanism(
                    "cost", given="is empty, or something else", needed="be made by `Cost.of`"
                )
            if not isinstance(loss, Pure):
                raise InvalidMechanism(
                    "cost",
                    given="is beside a loss with a delta or in rho",
                    needed="be left out: only pure losses are counted value by value",
                )
            loss = Metric(self.cost)
        object.__setattr__(self, "_loss", loss)

    @property
    def loss(self) -> Loss:
        """What its own map proves for one replaced entry; the stated cost, if there is one."""
        loss: Loss = self.__dict__["_loss"]
        return loss

    def release(self, values: Any) -> Any:
        """One draw."""
        return measurements.release(self.measurement, values)

    def simulate(self, values: Any, repetitions: int, *, rng: "np.random.Generator") -> Any:
        """From the given ``law``; refused without one, as nothing here knows the law."""
        if self.law is None:
            raise UnsoundRequest(
                f"the law of {self.name!r} is not known; give `law` to simulate it", field="law"
            )
        return self.law(values, whole(repetitions, "repetitions"), rng)

    def error(self) -> float:
        """The standard deviation that was given; refused without one."""
        if self.deviation is None:
            raise UnsoundRequest(
                f"the error of {self.name!r} is not known; give `deviation`", field="deviation"
            )
        return self.deviation

    def describe(self) -> dict[str, Any]:
        """Kind, name, distance and loss."""
        return {
            "kind": self.kind,
            "query": self.name,
            "d_in": repr(self.d_in),
            "loss": loss_document(self.loss),
        }


@dataclass(frozen=True)
class FiniteChannel:
    """A table of probabilities over a finite world of tables, priced and drawn exactly.

    Every row is read as exact rationals and divided by its exact sum. The loss is the
    largest log-ratio between rows of datasets that differ in one entry; draws use the same
    rationals and OpenDP's random bits, so that what is drawn is what was priced.

    Attributes:
        channel: ``likelihood[dataset, output]`` over a universe of tables.
    """

    kind: ClassVar[str] = "finite-channel"

    channel: "FiniteMechanism"

    def __post_init__(self) -> None:
        _tables(self.channel)

    @cached_property
    def loss(self) -> Pure:
        """ε per entry: exact, then rounded up to a float."""
        universe = _tables(self.channel)
        worst, ties = -inf, set[tuple[int, int, int]]()
        probabilities = self.channel.likelihood
        probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
        for column in range(len(universe.entries)):
            pairs = universe.neighbours(column)
            if not len(pairs):
                continue
            p, q = probabilities[pairs[:, 0]], probabilities[pairs[:, 1]]
            if ((p > 0) & (q == 0)).any():
                raise infinite_loss(self.channel.name)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(p > 0, np.log(p) - np.log(q), -np.inf)
            top = float(ratios.max())
            if top > worst + 1e-9:
                worst, ties = top, set()
            for pair, output in np.argwhere(ratios >= worst - 1e-9).tolist():
                ties.add((int(pairs[pair, 0]), int(pairs[pair, 1]), output))
        exact = max((self._ratio(*tie) for tie in ties), default=Fraction(1))
        return Pure(log_up(max(exact, Fraction(1))))

    def cost(self, entry: Name) -> Cost:
        r"""What it tells of ``entry``, value by value, whatever the other entries are.

        For u and v it is the largest :math:`\log P(o | D) / P(o | D')` over outputs o and datasets
        D and D′ that have u and v there and are alike elsewhere: of exact rationals, rounded up.
        """
        universe = _tables(self.channel)
        if entry not in universe.entries:
            raise InvalidMechanism(
                "entry",
                given=f"is {entry!r:.80}",
                needed=f"be one of {', '.join(map(str, universe.entries[:12]))}",
            )
        place = universe.entries.index(entry)
        names = universe.values[place]
        if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in names):
            raise InvalidMechanism(
                "channel", given="is over other values", needed="be over text or whole numbers"
            )
        at = {name: k for k, name in enumerate(names)}
        costs = [[0.0] * len(names) for _ in names]
        likelihood, datasets = self.channel.likelihood.tolist(), universe.datasets
        for left, right in universe.neighbours(place).tolist():
            u, v = at[datasets[left][place]], at[datasets[right][place]]
            ratio = log_ratio(likelihood[left], likelihood[right], name=self.channel.name)
            costs[u][v] = max(costs[u][v], ratio)
        return Cost.of({Matrix(names, costs): 1})  # type: ignore[arg-type]

    def _ratio(self, left: int, right: int, output: int) -> Fraction:
        p, q = (Fraction(self.channel.likelihood[i, output].item()) for i in (left, right))
        return (p * self._sums[right]) / (q * self._sums[left])

    @cached_property
    def _sums(self) -> tuple[Fraction, ...]:
        rows = self.channel.likelihood.tolist()
        return tuple(sum((Fraction(x) for x in row), Fraction(0)) for row in rows)

    def probabilities(self, dataset: Hashable) -> Floats:
        """``[output]``: the probabilities for one dataset, which must not be the protected one."""
        row = self.channel.likelihood[self.channel.universe.position(dataset)]
        return np.asarray(row / row.sum())

    def release(self, values: Hashable) -> Hashable:
        """One output, drawn exactly; ``values`` is the dataset."""
        universe = self.channel.universe
        if values not in universe.datasets:
            raise InvalidMechanism(
                "values", given="is not a dataset of the world", needed="be one of its datasets"
            )
        row = [Fraction(x) for x in self.channel.likelihood[universe.position(values)].tolist()]
        common = lcm(*(x.denominator for x in row))
        return self.channel.outputs[pick([int(x * common) for x in row])]

    def simulate(
        self, values: Hashable, repetitions: int, *, rng: "np.random.Generator"
    ) -> list[Hashable]:
        """``[repetition]``: outputs from the same law, from numpy."""
        times = whole(repetitions, "repetitions")
        drawn = rng.choice(len(self.channel.outputs), size=times, p=self.probabilities(values))
        return [self.channel.outputs[i] for i in drawn.tolist()]

    def error(self, values: Hashable | None = None) -> Floats:
        """As `probabilities`: what its outputs mean is the user's."""
        if values is None:
            raise UnsoundRequest(
                "the error of a channel depends on the dataset; give a public one", field="values"
            )
        return self.probabilities(values)

    def describe(self) -> dict[str, Any]:
        """Kind, name, size and loss."""
        return {
            "kind": self.kind,
            "query": self.channel.name,
            "outputs": len(self.channel.outputs),
            "loss": loss_document(self.loss),
        }


def _tables(channel: "FiniteMechanism") -> Tables:
    if not isinstance(channel.universe, Tables):
        raise InvalidMechanism(
            "channel",
            given="is over datasets without entries",
            needed="be over tables, or one replaced entry has no meaning",
        )
    return channel.universe


# --- what a channel tells of the value that it is given ---


def channel_cost(values: Sequence[Name], channel: ArrayLike) -> Cost:
    r"""The cost of publishing a value through ``channel[value, output]``, each entry on its own.

    For u and v it is :math:`\max_o \log W(o|u)/W(o|v)`, exactly what one entry's output tells. Rows
    are read as exact rationals and divided by their sums; logarithms are rounded up.

    >>> channel_cost(["yes", "no"], [[3, 1], [1, 3]]).scalar >= 1.0986
    True
    """
    rows = np.asarray(channel, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(values) or not len(values) >= 2:
        raise InvalidMechanism(
            "channel",
            given=f"has shape {rows.shape}",
            needed=f"have a row for each of the {len(values)} values, two or more",
        )
    if not (np.isfinite(rows).all() and (rows >= 0).all() and (rows.sum(axis=1) > 0).all()):
        raise InvalidMechanism(
            "channel",
            given="has a row that is not a law",
            needed="hold numbers of 0 or more, some of them positive in each row",
        )
    table = rows.tolist()
    return Cost.of({Matrix(values, [[log_ratio(p, q) for q in table] for p in table]): 1})


def log_ratio(p: Sequence[float], q: Sequence[float], *, name: str = "the channel") -> float:
    """The largest log(p/q) over outputs, of rows divided by their sums; rounded up, 0 or more."""
    if any(x > 0 and y == 0 for x, y in zip(p, q, strict=True)):
        raise infinite_loss(name)
    totals = [sum(map(Fraction, row), Fraction(0)) for row in (p, q)]
    best = max(Fraction(x) / Fraction(y) for x, y in zip(p, q, strict=True) if x > 0)
    return log_up(max(best * totals[1] / totals[0], Fraction(1)))


def infinite_loss(name: str) -> UnsoundRequest:
    """The error for an output that tells two values apart for certain."""
    return UnsoundRequest(
        f"{name!r} has an output that one value of an entry allows and another forbids: its"
        " per-entry loss is infinite",
        field="channel",
        reason="infinite",
    )


def log_up(ratio: Fraction) -> float:
    """A float at or above log(ratio), for a ratio of at least 1."""
    if ratio == 1:
        return 0.0
    if ratio < 2:
        near = log1p(float(ratio - 1))
    else:
        near = log(ratio.numerator) - log(ratio.denominator)
        near += 2.0**-51 * (log(ratio.numerator) + log(ratio.denominator))
    return near * (1 + 2.0**-50)
