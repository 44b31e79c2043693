"""The paper's conceptual figures, drawn from computed values: likelihood vectors, a Markov quilt.

The paper draws both to explain. Here the likelihoods are those of three small mechanisms (the two
numbers that its text quotes come out: λ₁[2] = .2 and λ₃[1] = .7), and the quilt is the best one of
a chain, each entry at its place with its own influence below it.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from takifugu._core.numeric import Floats
from takifugu._core.rounding import up
from takifugu.errors import UnsoundRequest
from takifugu.finite import FiniteMechanism, World, leakage
from takifugu.finite.joint_runs import joint_leakage
from takifugu.finite.nfc import Condition, necessary_condition, prove_with_certificates
from takifugu.influence.rounded_ratios import LogProduct, largest_ratios, products, turned
from takifugu.papers.composition.baselines.chain_laws import stationary
from takifugu.papers.composition.baselines.quilts import QuiltNoise, mqm_exact
from takifugu.papers.composition.tables_and_figures.figure_writing import new_figure, open_axes
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import entry_pairs
from takifugu.priors.universe import Tables
from takifugu.reports.html_style import BLUE, GREY, ORANGE, RED
from takifugu.visible import four_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEPT, COUNTED = 0.7, 0.6  # how often an answer is the true one
PICKED = ((0, 0), (0, 2), (1, 1), (2, 3))  # (mechanism, output): λ₁ … λ₄, as in the paper
CAPTIONS = {
    "likelihood-vectors": "Likelihood vectors of three mechanisms with 3, 2 and 4 outputs on the"
    " four datasets of two bits; four of them are picked, as in the proof of Theorem 4."
    " The ε at which all compose is at least every loss of one run, and at least what the necessary"
    " condition (NfC) asks for; here it is the former.",
    "markov-quilt": "The best Markov quilt of a chain at the entry that needs the most noise: what"
    " is nearby, the quilt, and the rest, with the influence of every single entry below it.",
}
SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"


@dataclass(frozen=True)
class LikelihoodVectors:
    """Three mechanisms on the datasets of two bits, and which of their vectors are picked.

    Attributes:
        world: Two fair bits that agree with probability 3/4; the first of them is secret.
        mechanisms: They have 3, 2 and 4 outputs.
        picked: (mechanism, output) of λ₁, λ₂, …, by position.
    """

    world: World
    mechanisms: tuple[FiniteMechanism, ...]
    picked: tuple[tuple[int, int], ...] = PICKED

    def vector(self, place: int) -> Floats:
        """``[dataset]``: the picked vector λ at ``place``, from 0."""
        mechanism, output = self.picked[place]
        column: Floats = self.mechanisms[mechanism].likelihood[:, output]
        return column

    @cached_property
    def losses(self) -> tuple[float, ...]:
        """The Pufferfish loss of one run of each mechanism, rounded up."""
        return tuple(leakage(self.world, one).epsilon for one in self.mechanisms)

    @cached_property
    def in_the_long_run(self) -> float:
        """What many runs leak a run at least (NfC): at a lower ε no constant saves composition.

        A lower bound on ``composes_at``, and not more: one run alone may lose more than that.
        """
        return self._condition.lower

    @cached_property
    def composes_at(self) -> float:
        """The least ε such that any k runs of the three, mixed, lose at most kε; rounded up.

        The certificates of the NfC theorem prove that k runs lose at most kε' + κ, which is below
        k times the largest loss of one run for all but a few k. Those are computed one by one.
        """
        proofs = prove_with_certificates(self.world, self._condition)
        slope, once = max(p.per_run for p in proofs), max(p.once for p in proofs)
        largest = max(self.losses)
        if not slope < largest:
            raise UnsoundRequest(
                f"many runs may lose {four_digits(slope)} each and one run {four_digits(largest)};"
                " choose mechanisms of which one run loses more",
                reason="slope",
            )
        least = largest
        for runs in range(1, ceil(once / (largest - slope)) + 1):
            for many in product(range(runs + 1), repeat=len(self.mechanisms)):
                if sum(many) == runs:
                    listed = [(m, n) for m, n in zip(self.mechanisms, many, strict=True) if n]
                    loss = joint_leakage(self.world, listed).epsilon
                    least = max(least, float(up(loss / runs)))
        return least

    @cached_property
    def _condition(self) -> Condition:
        return necessary_condition(self.world, self.mechanisms)


def likelihood_vectors() -> LikelihoodVectors:
    """A noisy count of ones, randomized response on the first bit, and on both."""
    tables = Tables.of({"a": (0, 1), "b": (0, 1)})
    prior = Explicit(tables, np.array([3, 1, 1, 3]) / 8, "bits that agree three times in four")
    bits = tables.codes
    count = np.where(bits.sum(axis=1)[:, None] == np.arange(3), COUNTED, (1 - COUNTED) / 2)
    kept = np.where(bits[:, :, None] == np.arange(2), KEPT, 1 - KEPT)  # [dataset, bit, answer]
    both = np.stack([kept[:, 0, x] * kept[:, 1, y] for x, y in product((0, 1), repeat=2)], axis=1)
    mechanisms = (
        FiniteMechanism(tables, count, ("0 ones", "1 one", "2 ones"), "noisy count"),
        FiniteMechanism(tables, kept[:, 0, ::-1], ("a = 1", "a = 0"), "randomized response on a"),
        FiniteMechanism(
            tables, both / both.sum(axis=1, keepdims=True), ("00", "01", "10", "11"),
            "randomized response on a and b",
        ),
    )  # fmt: skip
    return LikelihoodVectors(
        World(tables, (prior,), entry_pairs(tables, entries=["a"])), mechanisms
    )


def likelihood_figure(shown: LikelihoodVectors) -> "Figure":
    """All vectors as rows of shaded cells, mechanism by mechanism, and the picked ones beside."""
    worst = int(np.argmax(shown.losses))
    title = "Likelihood vectors P(M(D) = ω): nine in all, of which four are picked"
    drawn = new_figure(10.5, 6.2, title)
    left, right = drawn.subplots(1, 2, width_ratios=(1.45, 1))
    datasets = ["".join(map(str, data)) for data in shown.world.universe.datasets]  # type: ignore[call-overload]
    top = 0.0
    for m, (mechanism, loss) in enumerate(zip(shown.mechanisms, shown.losses, strict=True)):
        left.text(
            -0.1, top + 0.62, f"M{SUBSCRIPTS[m + 1]}: {mechanism.name}, ε = {four_digits(loss)}",
            fontsize=9.5, weight="bold", va="center",
        )  # fmt: skip
        for o, output in enumerate(mechanism.outputs):
            row = top + 1 + o
            name = next((k for k, one in enumerate(shown.picked) if one == (m, o)), None)
            left.text(-0.2, row + 0.5, f"“{output}”", ha="right", va="center", fontsize=9)
            _cells(left, row, mechanism.likelihood[:, o], picked=name is not None)
            if name is not None:
                left.text(
                    4.15, row + 0.5, f"→ λ{SUBSCRIPTS[name + 1]}", va="center", color=ORANGE,
                    fontsize=11,
                )  # fmt: skip
        top += len(mechanism.outputs) + 1.25
    _headed(left, datasets, -1.6, 5.0, top)
    left.set_title("all outputs of all mechanisms", fontsize=10)
    for k in range(len(shown.picked)):
        _cells(right, k + 1, shown.vector(k), picked=True)
        right.text(
            -0.2, k + 1.5, f"λ{SUBSCRIPTS[k + 1]}", ha="right", va="center", color=ORANGE,
            fontsize=12,
        )  # fmt: skip
    right.text(
        0, 5.9,
        "Two fair bits a, b agree with probability ¾; a is secret.\n"
        "Each cell is a probability; the stronger its colour, the larger.\n"
        "ε: the Pufferfish loss of one run, in nats.\n"
        "Any k runs of the three, mixed, lose at most k times\n"
        f"{four_digits(shown.composes_at, 'up')}, what one run of M{SUBSCRIPTS[worst + 1]} loses:"
        " at this ε, and at\nno lower one, the three compose linearly. NfC\n"
        "(Theorem 4), which looks at very many runs, asks\n"
        f"only for {four_digits(shown.in_the_long_run, 'down')} or more a run.",
        va="top", fontsize=9,
    )  # fmt: skip
    _headed(right, datasets, -1.0, 4.6, top)
    right.set_title("the vectors that are picked", fontsize=10)
    return drawn


def _cells(axes: "Axes", row: float, values: Floats, *, picked: bool) -> None:
    from matplotlib.patches import Rectangle

    for d, value in enumerate(values.tolist()):
        axes.add_patch(Rectangle((d, row), 1, 1, fc=BLUE, alpha=0.06 + 0.55 * value, ec="none"))
        axes.text(d + 0.5, row + 0.5, four_digits(value), ha="center", va="center", fontsize=9.5)
    edge = ORANGE if picked else GREY
    axes.add_patch(
        Rectangle(
            (0.02, row + 0.06), len(values) - 0.04, 0.88, fc="none", ec=edge,
            lw=2.0 if picked else 0.6, zorder=3,
        )
    )  # fmt: skip


def _headed(axes: "Axes", datasets: list[str], left: float, right: float, bottom: float) -> None:
    for d, data in enumerate(datasets):
        axes.text(
            d + 0.5, 0.05, f"D{SUBSCRIPTS[d + 1]} = {data}", ha="center", va="center", fontsize=9
        )
    axes.set(xlim=(left, right), ylim=(bottom, -0.4))
    axes.axis("off")


@dataclass(frozen=True)
class QuiltOnChain:
    """The best quilt at the node of a stationary chain that needs the most noise.

    Attributes:
        transition: The matrix.
        length: How many entries the chain has.
        epsilon: The Pufferfish loss that is allowed.
        best: The quilt, its node and the noise it sets.
    """

    transition: Floats
    length: int
    epsilon: float
    best: QuiltNoise

    @cached_property
    def nearby(self) -> range:
        """X_N and the node itself: the entries between the quilt's."""
        first = 0 if self.best.left is None else self.best.node - self.best.left + 1
        last = self.length if self.best.right is None else self.best.node + self.best.right
        return range(first, last)

    @cached_property
    def quilt(self) -> tuple[int, ...]:
        """X_Q."""
        found = []
        if self.best.left is not None:
            found.append(self.best.node - self.best.left)
        if self.best.right is not None:
            found.append(self.best.node + self.best.right)
        return tuple(found)

    @cached_property
    def influence(self) -> float:
        """The max-influence of the quilt on its node; an upper bound."""
        pair = np.zeros((len(self.transition),) * 2)
        for node in self.quilt:
            pair = pair + self._ratios(node - self.best.node)
        return float(up(pair.max()))

    @cached_property
    def single(self) -> Floats:
        """``[entry]``: the max-influence of each entry alone on the node; 0 at the node itself."""
        here = self.best.node
        return np.array(
            [self._ratios(j - here).max() if j != here else 0.0 for j in range(self.length)]
        )

    def _ratios(self, steps: int) -> Floats:
        """``[x, y]``: what the entry so many steps ahead (behind: < 0) says of x against y."""
        power = self._powers[abs(steps) - 1]
        size = len(self.transition)
        x, y = (grid.ravel() for grid in np.indices((size, size)))
        if steps > 0:
            return largest_ratios(power, x, y).reshape(size, size)
        odds = np.log(stationary(self.transition))
        behind = largest_ratios(turned(power), x, y).reshape(size, size)
        return np.asarray(behind + (odds - odds[:, None]))

    @cached_property
    def _powers(self) -> list[LogProduct]:
        P = np.asarray(self.transition, dtype=np.float64)
        return list(products(P, 0.0, [P] * self.length, 0.0))


def best_quilt(transition: Floats, length: int, epsilon: float) -> QuiltOnChain:
    """MQMExact's quilt on a stationary chain, at the node where it allows the least."""
    return QuiltOnChain(transition, length, epsilon, mqm_exact(transition, length, epsilon))


def quilt_figure(shown: QuiltOnChain) -> "Figure":
    """The entries of the chain in a row, coloured by their part; each one's influence below."""
    best = shown.best
    stay = " or ".join(dict.fromkeys(four_digits(p) for p in np.diag(shown.transition).tolist()))
    title = (
        f"The best Markov quilt of entry {best.node} of {shown.length}: a chain that stays with"
        f" probability {stay}, ε = {four_digits(shown.epsilon)}"
    )
    drawn = new_figure(10.5, 4.9, title, size=11.5)
    above, below = drawn.subplots(2, 1, sharex=True, height_ratios=(1, 1.5))
    colours = [
        RED
        if j == best.node
        else ORANGE
        if j in shown.quilt
        else BLUE
        if j in shown.nearby
        else GREY
        for j in range(shown.length)
    ]
    places = np.arange(shown.length)
    above.plot(places, np.zeros(shown.length), color=GREY, lw=0.8, zorder=1)
    sizes = [90 if j == best.node or j in shown.quilt else 34 for j in range(shown.length)]
    above.scatter(places, np.zeros(shown.length), s=sizes, c=colours, zorder=2)
    _braces(above, shown)
    above.set(ylim=(-0.75, 1.25), yticks=[])
    above.spines[["left", "right", "top", "bottom"]].set_visible(False)
    above.tick_params(bottom=False)
    below.bar(places, shown.single, color=colours, width=0.7)
    below.set(
        xlabel="entry (time, from 0)",
        ylabel="max-influence of this\nentry alone on the secret, nats",
    )
    open_axes(below)
    below.text(
        0.995, 0.95,
        f"the quilt: max-influence e = {four_digits(shown.influence)} nats\n"
        f"{len(shown.nearby)} entries within the quilt ($X_N$ and the secret)\n"
        f"per-entry ε = (ε − e)/{len(shown.nearby)} = {four_digits(best.to_dp)}",
        transform=below.transAxes, ha="right", va="top", fontsize=9.5,
    )  # fmt: skip
    return drawn


def _braces(axes: "Axes", shown: QuiltOnChain) -> None:
    """The names of the parts above the entries that they stand for."""
    node = shown.best.node
    near = [j for j in shown.nearby if j != node]
    axes.text(node, -0.32, f"$X_{{{node}}}$, the secret", ha="center", va="top", color=RED)
    for j in shown.quilt:
        axes.text(j, -0.32, "$X_Q$, the quilt", ha="center", va="top", color=ORANGE)
    parts = [(near, "$X_N$, nearby", BLUE)]
    parts += [
        ([j for j in range(shown.length) if j < shown.nearby.start and j not in shown.quilt],
         "$X_R$, the rest", GREY),
        ([j for j in range(shown.length) if j >= shown.nearby.stop and j not in shown.quilt],
         "$X_R$, the rest", GREY),
    ]  # fmt: skip
    for entries, name, colour in parts:
        if entries:
            first, last = min(entries), max(entries)
            axes.annotate(
                "", (first - 0.4, 0.75), (last + 0.4, 0.75),
                arrowprops={"arrowstyle": "|-|", "color": colour, "mutation_scale": 4},
            )  # fmt: skip
            axes.text((first + last) / 2, 0.85, name, ha="center", va="bottom", color=colour)


def concept_figures() -> "dict[str, Figure]":
    """Both figures, by their names among files."""
    chain = np.array([[0.8, 0.2], [0.2, 0.8]])
    return {
        "likelihood-vectors": likelihood_figure(likelihood_vectors()),
        "markov-quilt": quilt_figure(best_quilt(chain, 25, 1.0)),
    }
