"""Which entries a release used, and work that threads share: each row once."""

from threading import Lock
from typing import Any

import pytest

from takifugu.errors import UnsoundRequest
from takifugu.losses import Pure
from takifugu.translation.accounting.composition import Release, _places
from takifugu.translation.chain import coalescing, transport_steps
from takifugu.translation.network import coupling_steps
from tests.raising import raises

pytestmark = pytest.mark.nightly

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


SHARES: list[Any] = [transport_steps._share, coalescing._share, coupling_steps._share]
MUCH = 10**9  # states of each row: enough for threads


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("states", [2, MUCH])
@pytest.mark.parametrize("processors", [None, 1, 2, 3])
def test_every_row_is_done_once(
    share: Any, states: int, processors: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many rows there are for however many processors."""
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    lock = Lock()
    for rows in (1, 2, 3, 5, 16, 17, 100):
        done: list[int] = []

        def work(begin: int, end: int, done: list[int] = done) -> None:
            with lock:
                done.extend(range(begin, end))

        share(work, rows, states)
        assert sorted(done) == list(range(rows))


@pytest.mark.parametrize("share", SHARES)
def test_an_error_in_a_thread_is_raised(share: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)

    def work(begin: int, end: int) -> None:
        raise ZeroDivisionError(f"{begin} to {end}")

    with pytest.raises(ZeroDivisionError):
        share(work, 100, MUCH)
