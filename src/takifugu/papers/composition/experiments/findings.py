"""The findings of a run: the verdicts on the claims, and that uncertainty is a shift."""

from dataclasses import replace

from takifugu.papers.composition.experiments.allowances import EPSILONS
from takifugu.papers.composition.experiments.contenders import CONTENDERS
from takifugu.papers.composition.experiments.metrics import METRICS, K
from takifugu.papers.composition.experiments.verdicts import (
    AT_LEAST,
    SHIFT,
    STRICT_UP_TO,
    ClaimVerdict,
    against_majority,
    counted,
    verdicts,
)
from takifugu.papers.composition.results import Results

PRIORS = 2  # known exactly, and to 20 %
_OTHERS, _EPSILONS, _METRICS = len(CONTENDERS) - 1, len(EPSILONS), len(METRICS)
_SMALL = sum(epsilon <= STRICT_UP_TO for epsilon in EPSILONS)
MADE_OF = (
    f"Comparisons of a dataset: {_OTHERS * _EPSILONS * PRIORS * _METRICS} for the first claim"
    f" ({_OTHERS} other mechanisms × {_EPSILONS} ε × {PRIORS} priors, exact and 20 % uncertain, ×"
    f" {_METRICS} metrics), at most {_SMALL * PRIORS * K} for the second ({_SMALL} ε × {PRIORS}"
    f" priors × {K} Acc@k), {_EPSILONS * PRIORS * _METRICS} each for the third and the fourth"
    f" ({_EPSILONS} ε × {PRIORS} priors × {_METRICS} metrics), {len(CONTENDERS) * _EPSILONS} for"
    f" the fifth ({len(CONTENDERS)} mechanisms × {_EPSILONS} ε with uncertainty)."
)
JUDGED = """\
Every comparison is the mean difference of two mechanisms, repetition by repetition on the same
random numbers, in one metric at one ε. All comparisons of a claim in a dataset are judged together,
in both directions, by simultaneous 95 % intervals (Bonferroni). Shown: the interval is wholly above
0. The opposite shown: it is wholly below 0. Open: it holds 0. The same law: both mechanisms are the
same there, so that the difference is exactly 0. The first claim is not contradicted as long as no
interval is wholly below 0, which does not show it; it is shown only where takifugu is better. The
second is about each Acc@k that Ours-Exp gets right less than 99 % of the time. The fifth is one of
sameness, in which nothing is estimated: equal means that on the same random numbers both spend the
same per entry and measure the same in all metrics, to the last bit."""
NAMED = 3  # exceptions that are named; the others are counted


def findings(results: Results) -> tuple[ClaimVerdict, ...]:
    """Every claim about every dataset, those of one dataset together."""
    by_claim = verdicts(results.cells)
    found: list[ClaimVerdict] = []
    for one in results.about:
        found += [verdict for verdict in by_claim if verdict.data == one.key]
        if results.shifted_of(one.key):
            found.append(shift_verdict(one.key, results))
    return tuple(found)


def shift_verdict(key: str, results: Results) -> ClaimVerdict:
    """In how many uncertain cells the plain mechanism, run again, gave the same to the last bit."""
    shifted = results.shifted_of(key)
    other = [f"{one.mechanism} at ε = {one.epsilon:g}" for one in shifted if not one.equal]
    equal = len(shifted) - len(other)
    group = sum(one.by_group for one in shifted)
    verdict = ClaimVerdict(key, SHIFT, not other and equal > 0, 0, equal, 0, len(other), "")
    detail = f"{counted(verdict)}, to the last bit; {group} of all are by group DP"
    if other:
        more = f"; and {len(other) - NAMED} more" if len(other) > NAMED else ""
        detail += f"; not {'; '.join(other[:NAMED])}{more}"
    return replace(verdict, detail=detail)


def majority_line(key: str, results: Results) -> str:
    """Where Majority, which spends nothing, is better than takifugu; empty if it was not run."""
    judged = against_majority(results.of(key))
    if not judged:
        return ""
    outcomes = [one.outcome for one in judged]
    return (
        "Majority, which spends nothing and names the top labels of the fitted part, is better than"
        f" takifugu in {outcomes.count('contradicted')} of {len(judged)} comparisons, takifugu is"
        f" better in {outcomes.count('shown')} (joint 95 % intervals)"
    )


def word(verdict: ClaimVerdict) -> str:
    """A verdict in a word or two: what was shown, and what only was not contradicted.

    What the intervals leave open neither proves nor refutes, and mechanisms of the same law are no
    evidence either way.
    """
    if not verdict.compared:
        return "nothing to compare"
    if verdict.claim == SHIFT:
        return "not equal everywhere" if verdict.contradicted else "equal"
    if verdict.contradicted:
        if verdict.shown:
            return "not everywhere"
        clear = verdict.contradicted == verdict.compared
        return "the opposite" if clear else "the opposite where it is clear"
    if verdict.shown == verdict.compared:
        return "shown"
    if verdict.claim == AT_LEAST:
        return "not contradicted"
    return "shown where it is clear" if verdict.shown else "open"
