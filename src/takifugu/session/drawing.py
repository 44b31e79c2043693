"""Drawing an answer that is paid for, out of reach of every error and interrupt."""

from typing import Any

from takifugu.engines import Engine
from takifugu.engines.isolation import run_isolated
from takifugu.mechanisms import Mechanism
from takifugu.session.query.query import Query
from takifugu.session.release_errors import ReleaseFailed


def draw(query: Query, mechanism: Mechanism, engine: Engine) -> list[Any]:
    """The protected answer as a list of JSON numbers. It is drawn here, once: pay first.

    An error or an interrupt says nothing of what was read: exact counts live and end in a thread
    of their own.
    """
    return run_isolated(lambda: query.draw(mechanism, engine), ReleaseFailed, stop=engine.interrupt)
