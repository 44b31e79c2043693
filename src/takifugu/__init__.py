"""Pufferfish privacy for correlated data.

    import takifugu as tf

    visits = tf.table("visits.parquet", entity="user", order="at",
                      protected={"place": labels}, public=["country"])
    prior = tf.fit_markov(visits, "place", first_days=400)
    # one ledger for everything that is ever released about these people
    with tf.Session(visits, prior, budget=1, ledger="visits.ledger") as session:
        result = session.release(session.plan.top_k(3, by="country", epsilon=0.5))

The names below are imported when they are first used, so that ``import takifugu`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from takifugu import errors, priors
    from takifugu.client import connect
    from takifugu.drafting import table
    from takifugu.errors import TakifuguError
    from takifugu.fitting import fit_gaussian, fit_markov
    from takifugu.ledger import open_ledger
    from takifugu.priors import MarkovChain, Secrets, read_prior
    from takifugu.project import Project, open_project
    from takifugu.session import QueryOptions, Session
    from takifugu.translation.translation import Translation

__all__ = [
    "MarkovChain",
    "Project",
    "QueryOptions",
    "Secrets",
    "Session",
    "TakifuguError",
    "Translation",
    "__version__",
    "connect",
    "errors",
    "fit_gaussian",
    "fit_markov",
    "open_ledger",
    "open_project",
    "priors",
    "read_prior",
    "table",
]

__version__ = "0.1.0"

_HOMES = {
    "MarkovChain": "takifugu.priors",
    "Project": "takifugu.project",
    "QueryOptions": "takifugu.session",
    "Secrets": "takifugu.priors",
    "Session": "takifugu.session",
    "TakifuguError": "takifugu.errors",
    "Translation": "takifugu.translation.translation",
    "connect": "takifugu.client",
    "fit_gaussian": "takifugu.fitting",
    "fit_markov": "takifugu.fitting",
    "open_ledger": "takifugu.ledger",
    "open_project": "takifugu.project",
    "read_prior": "takifugu.priors",
    "table": "takifugu.drafting",
}


def __getattr__(name: str) -> Any:
    """A name of the front door, from the package that has it (PEP 562)."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in __all__:
        value = import_module(f"takifugu.{name}")
    else:
        raise AttributeError(f"module 'takifugu' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
