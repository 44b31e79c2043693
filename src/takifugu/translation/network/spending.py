"""How much differential privacy was spent on each entry of a model."""

from collections.abc import Mapping, Sequence

import numpy as np

from takifugu.errors import Malformed
from takifugu.numeric import Floats, frozen
from takifugu.priors.universe import Name

Spending = float | Mapping[Name, float] | Sequence[float] | Floats


def spent_per_entry(entries: Sequence[Name], epsilon: Spending) -> Floats:
    """``[entry]``: the total ε of every entry, from one number, a mapping by name, or a list.

    0 means that no mechanism used the entry.
    """
    listed: object = epsilon
    if isinstance(epsilon, Mapping):
        unknown = [name for name in epsilon if name not in entries]
        missing = [name for name in entries if name not in epsilon]
        if unknown or missing:
            what = f"names {unknown[0]!r}" if unknown else f"leaves out entry {missing[0]!r}"
            raise Malformed(
                "epsilon", given=what, needed="give each entry its ε; write 0 for one never touched"
            )
        listed = [epsilon[name] for name in entries]
    try:
        given = frozen(listed)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise Malformed(
            "epsilon", given="holds something that is not a number", needed="hold numbers only"
        ) from error
    if given.ndim == 0:
        given = frozen(np.full(len(entries), float(given)))
    if given.shape != (len(entries),):
        raise Malformed(
            "epsilon",
            given=f"has shape {given.shape}",
            needed=f"be one number, or one for each of the {len(entries)} entries",
        )
    if not ((given >= 0) & (given < np.inf)).all():  # also false for NaN
        raise Malformed(
            "epsilon",
            given="holds a number that is negative, infinite or none",
            needed="be finite and 0 or more: without a finite ε an entry may be revealed outright",
        )
    return given
