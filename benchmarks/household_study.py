"""A study of households: what each row may lose at a Pufferfish loss of 1, and what that takes.

``python -m benchmarks household_study``. People of a household infect each other (SIS: background
0.02, infection 0.2 and recovery 0.3 a day), for fourteen days and for any number of them. Printed
for households of 2 to 5: the loss per row that is allowed, by group DP (all rows of a household)
and for one person with the same law as if people were independent; what some mechanism with the
allowed loss leaks, at a bound of 1; what one leaks that independence would allow; and seconds of
processor time.
"""

from time import process_time

from takifugu.costs.cost import Cost
from takifugu.priors import MarkovChain, Secrets, household_contagion
from takifugu.translation.rows.household import Household

DAYS = 14


def run() -> None:
    """Print a line for each size and length."""
    print("people  days   allowed  group DP  independent  leaks  independence leaks  seconds")
    for days in (DAYS, None):
        for people in (2, 3, 4, 5):
            _line(people, days)


def _line(people: int, days: int | None) -> None:
    prior = household_contagion(people, background=0.02, infection=0.2, recovery=0.3, length=days)
    study = Household({"sis": prior}, {"health": Secrets()})
    began = process_time()
    allowed = study.to_dp(1.0)
    seconds = process_time() - began
    leaks = study.explain(study.members[0], Cost.any(allowed)).lower
    alone = Household({"alone": _alone(prior, days)}, {"health": Secrets()}).to_dp(1.0)
    really = study.explain(study.members[0], Cost.any(alone)).lower
    group = "" if days is None else f"{1 / (days * people):.4f}"
    print(
        f"{people:6d} {days or 'any':>5}  {allowed:8.4f}  {group:>8}  {alone:11.4f}  {leaks:5.3f}"
        f"  {really:18.3f}  {seconds:7.2f}"
    )


def _alone(prior: MarkovChain, days: int | None) -> MarkovChain:
    """One person who falls ill as often as in the household, whatever the others are."""
    ill = [k for k, state in enumerate(prior.states) if str(state[0]) == "ill"]  # type: ignore[index]
    well = [k for k in range(len(prior.states)) if k not in ill]
    falls = prior.transition[:, ill].sum(axis=1)
    law = prior.stationary[well]
    catches = float(law @ falls[well] / law.sum())
    return household_contagion(1, background=catches, infection=0.0, recovery=0.3, length=days)
