"""Plan, charge, release: queries about a declared table, paid from a ledger.

with open_engine("visits.toml") as engine, open_ledger("visits.ledger") as ledger:
    session = Session(engine, ledger, Translation(prior), dataset="visits")
    plan = session.plan("histogram", by="country", epsilon=0.5)   # nothing is spent
    print(session.release(plan))                                    # charged, then drawn
"""

from takifugu.session.binding import Entries
from takifugu.session.cost import Cost
from takifugu.session.problems import OverBudget, ReleaseFailed, StalePlan
from takifugu.session.session import Session
from takifugu.session.values import Plan, Result

__all__ = [
    "Cost",
    "Entries",
    "OverBudget",
    "Plan",
    "ReleaseFailed",
    "Result",
    "Session",
    "StalePlan",
]
