"""Which entries a release used, and work that threads share: each row once."""

from threading import Lock

import pytest

from takifugu.errors import UnsoundRequest
from takifugu.losses import Pure
from takifugu.translation.accounting.composition import Release, _places
from takifugu.translation.chain.transport_steps import _share
from tests.raising import raises

LOSS = Pure(1)
NAMES = ("ann", 7, "bob")


@pytest.mark.parametrize(
    ("release", "names", "places"),
    [
        (Release(LOSS), NAMES, [0, 1, 2]),
        (Release(LOSS), None, [0, 1, 2]),
        (Release(LOSS, window=(1, 3)), NAMES, [1, 2]),
        (Release(LOSS, entries=("bob", "ann", "bob")), NAMES, [0, 2]),
        (Release(LOSS, entries=("7",)), NAMES, [1]),
        (Release(LOSS, entries=(2, "0")), None, [0, 2]),
        (Release(LOSS, entries=("2", 2)), ("2", 2, "3"), [0, 1]),
    ],
)
def test_the_places_of_a_release(
    release: Release, names: tuple[str | int, ...] | None, places: list[int]
) -> None:
    assert list(_places(release, names, 3)) == places


def test_places_that_are_not_there_are_refused() -> None:
    with raises(UnsoundRequest, field="window", given=4, needed=3):
        _places(Release(LOSS, window=(0, 4)), None, 3)
    assert list(_places(Release(LOSS, window=(0, 3)), None, 3)) == [0, 1, 2]
    for names in (NAMES, None):
        with raises(UnsoundRequest, field="entries", given="eve"):
            _places(Release(LOSS, entries=("eve",)), names, 3)


@pytest.mark.parametrize(("rows", "states"), [(1, 3), (5, 2), (100, 10), (333, 4)])
def test_threads_do_every_row_once(rows: int, states: int) -> None:
    done: list[int] = []
    lock = Lock()

    def work(begin: int, end: int) -> None:
        with lock:
            done.extend(range(begin, end))

    _share(work, rows, states)
    assert sorted(done) == list(range(rows))


def test_an_error_in_a_thread_is_raised() -> None:
    def work(begin: int, end: int) -> None:
        raise ZeroDivisionError(f"{begin} to {end}")

    with pytest.raises(ZeroDivisionError):
        _share(work, 100, 10)
