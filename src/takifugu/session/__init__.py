"""Plan, charge, release: queries about a declared table, paid from a ledger.

For example::

    with Session(table, prior, ledger="visits.ledger", budget=2) as session:
        plan = session.plan.histogram(by="country", epsilon=0.5)   # nothing is spent
        print(session.release(plan))                                 # charged, then drawn
"""

from takifugu.session.entries import Entries
from takifugu.session.query.linear import WeightedSum
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_cost import ReleaseCost
from takifugu.session.release_errors import (
    BudgetConflict,
    OverBudget,
    ReleaseFailed,
    SessionClosed,
    StalePlan,
)
from takifugu.session.release_plan import Plan
from takifugu.session.release_result import Result
from takifugu.session.session import Session

__all__ = [
    "BudgetConflict",
    "Entries",
    "OverBudget",
    "Plan",
    "QueryOptions",
    "ReleaseCost",
    "ReleaseFailed",
    "Result",
    "Session",
    "SessionClosed",
    "StalePlan",
    "WeightedSum",
]
