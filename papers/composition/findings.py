"""What the results show, in sentences with counts: the claims of the issue, dataset by dataset."""

from dataclasses import dataclass

from papers.composition.results import Results
from papers.composition.verdicts import AT_LEAST, BETTER, ORDER, REVERSAL, Verdict, verdicts

SHIFT = "shift"
SENTENCES = {
    AT_LEAST: "takifugu is at least as good as every other mechanism, within its 95 % interval",
    BETTER: "takifugu is strictly better than Ours-Exp at ε ≤ 1 wherever that is below 99 %",
    ORDER: "Ours-Exp is above MQM with a split budget: the paper's order",
    REVERSAL: "MQM with one Laplace a bar is above Ours-Exp: the order reversed",
    SHIFT: "20 % uncertainty is ε less 0.405, or group DP: the same run, to the last bit",
}
NAMED = 3  # exceptions that are named; the rest is counted


@dataclass(frozen=True)
class Finding:
    """How often a claim about a dataset holds, fails and is left open by its intervals."""

    data: str
    claim: str
    holds: int
    fails: int
    open: int
    exceptions: tuple[str, ...] = ()

    @property
    def asked(self) -> int:
        """In how many comparisons."""
        return self.holds + self.fails + self.open

    @property
    def verdict(self) -> str:
        """A word or three: an interval that leaves a comparison open neither proves nor refutes."""
        if not self.asked:
            return "not asked"
        if self.fails:
            return "no" if self.fails > self.holds else "not everywhere"
        if self.open:
            return "where it is clear" if self.holds else "open"
        return "yes"

    @property
    def sentence(self) -> str:
        """The claim in words."""
        return SENTENCES[self.claim]

    @property
    def detail(self) -> str:
        """The counts, and the first exceptions."""
        if not self.asked:
            return "no comparison meets its condition"
        text = f"holds in {self.holds} of {self.asked} comparisons"
        text += f", open in {self.open}" if self.open else ""
        text += f", fails in {self.fails}" if self.fails else ""
        more = len(self.exceptions) - NAMED
        named = "; ".join(self.exceptions[:NAMED]) + (f"; and {more} more" if more > 0 else "")
        return f"{text} ({named})" if named else text


def findings(results: Results) -> tuple[Finding, ...]:
    """Every claim about every dataset."""
    said = verdicts(results.cells)
    found = []
    for one in results.about:
        own = [verdict for verdict in said if verdict.data == one.key]
        found += [_counted(one.key, claim, own) for claim in SENTENCES if claim != SHIFT]
        shifted = results.shifted_of(one.key)
        if shifted:
            equal = sum(shift.equal for shift in shifted)
            exceptions = tuple(f"{s.mechanism} at ε {s.epsilon:g}" for s in shifted if not s.equal)
            found.append(Finding(one.key, SHIFT, equal, len(shifted) - equal, 0, exceptions))
    return tuple(found)


def _counted(data: str, claim: str, own: list[Verdict]) -> Finding:
    about = [verdict for verdict in own if verdict.claim == claim]
    said = [verdict.holds for verdict in about]
    exceptions = tuple(
        f"{v.metric} against {v.worse} at ε {v.epsilon:g}{' with uncertainty' * v.uncertain}"
        for v in about
        if v.holds is False
    )
    return Finding(data, claim, said.count(True), said.count(False), said.count(None), exceptions)
