"""The section of a project file for a prior that was fitted on a dataset."""

from typing import Any

from takifugu.engines import ByEntity, Declaration, FirstDays, Fitted
from takifugu.priors.prior import Prior
from takifugu.session.held_out import first_releasable


def policy_of(file: str, prior: Prior, found: Fitted, declaration: Declaration) -> dict[str, Any]:
    """The section of a project file for a fitted prior."""
    section: dict[str, Any] = {"file": file, "fingerprint": prior.fingerprint}
    match found.split:
        case None:
            section["fitted"] = "all-rows"
        case FirstDays():
            section |= {"fitted": "first-days"}
            section["released_from"] = first_releasable(found.train.end, declaration)
        case ByEntity(share, salt):
            section |= {"fitted": "share", "share": str(share), "salt": salt}
    return section | {"statement": found.statement}
