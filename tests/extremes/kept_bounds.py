"""``python -m tests.extremes.kept_bounds``: renew what `test_kept_bounds` compares with.

A bound that becomes looser is sound, and no oracle objects. So `kept_bounds.json.gz` has, for
priors of every family, what takifugu answered to questions about them, and where an oracle says it,
the truth. A line is a prior: its document, the secrets, and questions with answers. Only what is
public is asked, so that whatever proves a bound may be replaced.

An answer holds numbers by name. ``lower`` is what something attains, ``exact`` whether that is the
upper bound, ``allowed`` what may be lost; every other one is an upper bound. None may become worse.

After a change that makes bounds tighter run the command: it asks all questions again, refuses to
write what is worse or contradicts a truth (``--worse`` writes what is worse all the same), and says
how much changed. ``--draw`` draws other priors (`kept_draws`).
"""

import argparse
import gzip
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.advice import advise
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Total
from takifugu.influence import influence_curve
from takifugu.priors import Secrets, from_document
from takifugu.translation import (
    LinearQuery,
    LinearReleases,
    LooserTranslation,
    Release,
    RowTranslation,
    TranslatedLoss,
    Translation,
    allocate,
    approximate,
    compose,
    concentrated,
    tabulate,
)

KEPT = Path(__file__).with_name("kept_bounds.json.gz")
EVERY = 30  # of the priors of a family, one in so many is checked each time
LOOSER = 1e-12  # relative: a bound that rose by less is as tight
FALLEN = 1e-6  # relative: a lower bound that fell by less is as good
SEARCHED = 2e-6  # relative: what a search for an allowance may leave
NOTHING = 1e-14  # nats: rounding, where nothing is lost
FOREVER = 1e9  # seconds: nothing ends by the clock
DIGITS = {"lower": 11, "allowed": 12}  # significant ones that are kept; 15 of an upper bound
READINGS = {  # what a row is, by `over`
    "row": ("columns_of_row", "ColumnsOfRow"),
    "sequence": ("columns_of_row", "JointColumns"),
    "household": ("household", "Household"),
}
Ask = list[Any]
Answer = dict[str, Any]


@dataclass
class Kept:
    """One prior, with secrets, and what is asked about it.

    Attributes:
        family: What kind of prior it is.
        prior: Its document; of several priors a list of them.
        secrets: As `secrets_document` writes them; of rows, by column.
        off: The uncertainty.
        over: What a row is, if rows have lost something; else None.
        asked: Questions with answers.
    """

    family: str
    prior: Any
    secrets: dict[str, Any] = field(default_factory=dict)
    off: float = 0.0
    over: str | None = None
    asked: list[tuple[Ask, Answer]] = field(default_factory=list)

    def translation(self) -> Translation | RowTranslation:
        """The translation that is asked."""
        if self.over is not None:
            module, name = READINGS[self.over]
            made = getattr(import_module(f"takifugu.translation.rows.{module}"), name)
            kept = {column: secrets_of(of) for column, of in self.secrets.items()}
            found = made({"prior": from_document(self.prior)}, kept, self.off)
            assert isinstance(found, RowTranslation)
            return found
        several = isinstance(self.prior, list)
        prior = [from_document(one) for one in (self.prior if several else [self.prior])]
        return Translation(prior if several else prior[0], secrets_of(self.secrets), self.off)

    def faults(self) -> Iterator[str]:
        """What is worse than it was, or contradicts a truth."""
        translation = self.translation()
        for ask, answer in self.asked:
            for fault in worse(answer, answered(translation, ask)):
                yield f"{self.family}: {str(ask)[:200]}: {fault}"


def secrets_document(secrets: Secrets) -> dict[str, Any]:
    """Secrets as JSON has them."""
    found = {"entries": secrets.entries, "pairs": secrets.pairs}
    document = {name: value for name, value in found.items() if value is not None}
    return document if secrets.within is None else {**document, "within": str(secrets.within)}


def secrets_of(document: Mapping[str, Any]) -> Secrets:
    """What `secrets_document` wrote."""
    within = document.get("within")
    return Secrets(
        document.get("entries"),
        document.get("pairs"),
        within=None if within is None else Fraction(within),
    )


def answered(translation: Translation | RowTranslation, ask: Ask) -> Answer:
    """What takifugu answers now."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LooserTranslation)
        found = _on_rows(translation, ask) if isinstance(translation, RowTranslation) else None
        return _short(found or _answered(translation, ask))  # type: ignore[arg-type]


def _on_rows(translation: RowTranslation, ask: Ask) -> Answer | None:
    if ask[0] != "cost":
        return None
    found = translation.losses(*map(Cost.of_document, ask[1:]))
    return {"upper": max(found.values()), **{f"of {name}": v for name, v in found.items()}}


def _answered(asked: Translation, ask: Ask) -> Answer:
    match ask:
        case ["loss", dp]:
            return _told(asked.explain(dp))
        case ["loss", dp, method]:
            return {"upper": asked.bound(dp if np.ndim(dp) == 0 else np.array(dp), method).value}
        case ["cost", one]:
            return _told(asked.explain_cost(Cost.of_document(one)))
        case ["cost", *several]:
            return {"upper": asked.cost_to_pufferfish(*map(Cost.of_document, several))}
        case ["costs", listed, places]:
            costs = [Cost.of_document(one) for one in listed]
            return _told(asked.explain_cost([costs[k] for k in places]))
        case ["allowed", target]:
            return {"allowed": asked.to_dp(target)}
        case ["allowed", target, method]:
            return {"allowed": asked.to_dp(target, method)}
        case ["factor", unit, target, *spent]:
            before = {"spent": [Cost.of_document(one) for one in spent]} if spent else {}
            return {"allowed": asked.to_cost(Cost.of_document(unit), target, **before)}
        case ["total", epsilon, delta, rho, at]:
            total = Total(Fraction(epsilon), Fraction(delta), Fraction(rho))
            return {"upper": asked.total_to_pufferfish(total, Fraction(at))}
        case ["curve", most]:
            return _curve(asked, most)
        case ["composed", texts, delta]:
            both = compose(asked, [Release.read(text) for text in texts], delta=delta)
            return {"upper": both.epsilon, "lower": both.lower, "delta": both.delta}
        case ["approximate", epsilon, delta]:
            found = approximate(asked, epsilon, delta)
            return {"upper": found.epsilon, "delta": found.delta}
        case ["concentrated", rho, delta]:
            return {"upper": concentrated(asked, rho, delta).epsilon}
        case ["levelled", target]:
            return {"allowed": allocate(asked, target).constant}
        case ["advised", target]:
            return {"allowed": advise(asked, target, seconds=FOREVER).allowed}
        case ["table", first, last]:
            table = tabulate(asked, losses=(first, last), share=0.3)
            return {"allowed": float(table.epsilon[-1])}
        case ["linear", queries, scales]:
            return _linear(asked, queries, scales)
    raise ValueError(ask)


def _told(found: TranslatedLoss) -> Answer:
    answer = {"upper": found.pufferfish, "lower": found.lower, "exact": found.exact}
    answer |= {
        method: value
        for method, value in found.by_method.items()
        if value is not None and value != found.pufferfish
    }
    if found.by_entry is not None:
        answer["entry"] = np.max(found.by_entry, initial=0.0)
    return answer


def _curve(asked: Translation, most: int) -> Answer:
    answer = {}
    for k, prior in enumerate(asked.priors.values()):
        curve = influence_curve(prior, asked.secrets, max_exposed=most)
        for b, leak in zip(curve.exposed.tolist()[:6], curve.leak.max(axis=0), strict=False):
            answer[f"{k}, {b} exposed"] = leak
        answer[f"{k}, at 0.5"] = curve.to_pufferfish(0.5)
    return answer


def _linear(asked: Translation, queries: list[list[float]], scales: list[str]) -> Answer:
    (prior,) = asked.priors.values()
    releases = LinearReleases(prior, asked.secrets)  # type: ignore[arg-type]
    listed = [(LinearQuery(q), Fraction(s)) for q, s in zip(queries, scales, strict=True)]
    laplace, normal = releases.laplace(listed), releases.gaussian(listed)
    return {
        "upper": laplace.pufferfish,
        "lower": laplace.lower,
        "exact": laplace.exact,
        "mu": normal.mu,
        "epsilon": normal.epsilon(1e-6),
        "mixed": releases.mixed(listed[:1], listed[1:], delta=1e-6),
    }


def _short(answer: Answer) -> Answer:
    return {
        name: value
        if isinstance(value, bool) or value is None
        else float(f"{float(value):.{DIGITS.get(name, 15)}g}")
        for name, value in answer.items()
    }


def worse(kept: Answer, now: Answer) -> Iterator[str]:
    """What is worse than it was, and what the truth contradicts."""
    for name, was in kept.items():
        if name == "truth":
            yield from _unsound(now, *was)
        elif name == "exact":
            if was and not now.get("exact"):
                yield "it was exact"
        elif was is None:
            continue
        elif (found := now.get(name, now["upper"] if name == "transport" else None)) is None:
            yield f"{name}: nothing is answered any more"
        elif name == "lower":
            if found < was * (1 - FALLEN) - NOTHING:
                yield f"lower: it fell from {was!r} to {found!r}"
        elif name == "allowed":
            if found < was * (1 - SEARCHED):
                yield f"allowed: it fell from {was!r} to {found!r}"
        elif found > was * (1 + LOOSER) + NOTHING * min(kept.get("upper", 1.0), 1.0):
            if name in ("transport", "curve", "group") and found <= kept["upper"]:
                continue
            yield f"{name}: it rose from {was!r} to {found!r}"


def _unsound(now: Answer, least: float, most: float | None) -> Iterator[str]:
    """The truth is between ``least`` and ``most``, or anything above ``least``."""
    if now["upper"] < least:
        yield f"the upper bound {now['upper']!r} is below the truth {least!r}"
    if most is not None and now.get("lower", 0.0) > most * (1 + 1e-10):
        yield f"the lower bound {now['lower']!r} is above the truth {most!r}"
    if most is not None and now.get("exact") and now["upper"] > most * (1 + 2e-6):
        yield f"{now['upper']!r} is called exact, and the truth is {most!r}"


def read(path: Path = KEPT) -> list[Kept]:
    """The file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [Kept(**json.loads(line)) for line in lines]


def write(listed: Sequence[Kept], path: Path = KEPT) -> None:
    """The file: a line for each prior, and the same bytes for the same answers."""
    lines = []
    for one in sorted(listed, key=lambda one: one.family):
        given = {name: value for name, value in vars(one).items() if value}
        lines.append(json.dumps(given, ensure_ascii=False, separators=(",", ":")) + "\n")
    path.write_bytes(gzip.compress("".join(lines).encode(), 9, mtime=0))


def by_family(listed: Sequence[Kept]) -> dict[str, list[Kept]]:
    """The priors of each family, in their order."""
    found: dict[str, list[Kept]] = {}
    for one in listed:
        found.setdefault(one.family, []).append(one)
    return found


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Renew the file, or draw another."""
    options = argparse.ArgumentParser(prog="python -m tests.extremes.kept_bounds")
    options.add_argument("--draw", action="store_true", help="draw other priors")
    options.add_argument("--worse", action="store_true", help="also write what is worse")
    options.add_argument("--only", default="", help="families whose name has this in it")
    given = options.parse_args()
    if given.draw:
        from tests.extremes.kept_draws import drawn

        there = [one for one in read() if given.only not in one.family] if KEPT.exists() else []
        for new in drawn(given.only):
            write(there := [*there, *new])
        return 0
    listed = read()
    changed, wrong = 0, []
    for one in listed:
        if given.only not in one.family:
            continue
        translation = one.translation()
        for k, (ask, was) in enumerate(one.asked):
            now = answered(translation, ask)
            wrong += [f"{one.family}: {str(ask)[:200]}: {fault}" for fault in worse(was, now)]
            if "truth" in was:
                now["truth"] = was["truth"]
            changed += now != was
            one.asked[k] = ask, now
    for fault in wrong:
        say(fault)
    say(f"{changed} answers changed, {len(wrong)} faults")
    if wrong and not given.worse:
        return 1
    write(listed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
