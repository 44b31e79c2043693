"""A planted fault: every mechanism draws with half of its noise, and charges as before."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from takifugu.mechanisms.noise import _IntegerNoise
from takifugu.mechanisms.selection import _Peeling

SHARE = 0.5  # of the noise scale that is left


@contextmanager
def half_noise(share: float = SHARE) -> Iterator[None]:
    """Inside, what is drawn has this share of the noise scale that is planned, stated and paid."""
    with (
        mock.patch.object(_IntegerNoise, "release", _weaker(_IntegerNoise.release, share)),
        mock.patch.object(_Peeling, "release", _weaker(_Peeling.release, share)),
    ):
        yield


def _weaker(release: Callable[[Any, Any], Any], share: float) -> Callable[[Any, Any], Any]:
    def drawn(mechanism: Any, values: Any) -> Any:
        return release(replace(mechanism, scale=mechanism.scale * share), values)

    return drawn
