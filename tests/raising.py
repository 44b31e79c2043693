"""`pytest.raises` that compares the fields of the error instead of the words of its message."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

E = TypeVar("E", bound=Exception)


@contextmanager
def raises(
    kind: type[E] | tuple[type[E], ...], **fields: object
) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error of this kind whose named fields have these values.

    with raises(NoBudget, dataset="clinic"):
        ledger.spent("clinic", translation)
    """
    with pytest.raises(kind) as caught:
        yield caught
    found = {name: getattr(caught.value, name) for name in fields}
    assert found == fields, str(caught.value)
