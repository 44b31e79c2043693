"""Plan, charge, release: queries about a declared table, paid from a ledger.

For example::

    with Session(table, prior, ledger="visits.ledger", budget=2) as session:
        plan = session.plan.histogram(by="country", epsilon=0.5)   # nothing is spent
        print(session.release(plan))                                 # charged, then drawn
"""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.binding.entries import Entries as Entries
    from takifugu.session.query.sums import WeightedSum as WeightedSum
    from takifugu.session.query_options import QueryOptions as QueryOptions
    from takifugu.session.release_cost import ReleaseCost as ReleaseCost
    from takifugu.session.release_errors import BudgetConflict as BudgetConflict
    from takifugu.session.release_errors import OverBudget as OverBudget
    from takifugu.session.release_errors import ReleaseFailed as ReleaseFailed
    from takifugu.session.release_errors import SessionClosed as SessionClosed
    from takifugu.session.release_errors import StalePlan as StalePlan
    from takifugu.session.release_plan import Plan as Plan
    from takifugu.session.release_result import Result as Result
    from takifugu.session.session import Session as Session
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
