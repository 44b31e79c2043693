"""What pages show of a dataset, made of the documents that the API answers with."""

from collections.abc import Mapping, Sequence
from typing import Any

from takifugu.server.pages.page_templates import number, up

LONGEST_LIST = 400  # keys that a page writes out


def dataset_view(document: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset: a line of words, facts, and its columns."""
    return {
        "name": document["dataset"],
        "words": _words(document),
        "facts": list(_facts(document).items()),
        "protected": [_protected(one, document["about"]) for one in document["protected"]],
        "public": [_public(one) for one in document["public"]],
        "asked": [one for one in document["protected"] if one["column"] in document["about"]],
    }


def _words(document: Mapping[str, Any]) -> str:
    text = f"{document['rows']:,} rows"
    if document["entity"] and document["entities"] is not None:
        text += f" of {document['entities']:,} entities (“{document['entity']}”)"
    order = document["order"]
    if order is not None and order["first"] is not None:
        text += f", from {moment(order['first'])} to {moment(order['last'])}"
    title = document["title"]
    return f"{title}: {text}" if title and title != document["dataset"] else text


def _facts(document: Mapping[str, Any]) -> dict[str, str]:
    facts = {"rows": f"{document['rows']:,}"}
    if document["entity"]:
        facts["whose rows"] = f"those of each “{document['entity']}” belong together"
    if document["entities"] is not None:
        facts[f"number of “{document['entity']}”"] = f"{document['entities']:,}"
    if document["rows_of_an_entity"] is not None:
        facts["rows of each"] = f"up to {document['rows_of_an_entity']:,}"
    order = document["order"]
    if order is not None:
        zone = f" ({order['zone']})" if order.get("zone") else ""
        facts["order"] = f"by “{order['column']}”{zone}"
    if document["released_from"] is not None:
        facts["released from"] = f"{moment(document['released_from'])}: earlier rows made the prior"
    return facts


def moment(value: Any) -> str:
    """A day or a time in a few letters; a step as it is.

    >>> moment("2026-01-01T00:00:00+00:00"), moment("2026-01-01T10:30:00+00:00"), moment(3)
    ('2026-01-01', '2026-01-01 10:30', '3')
    """
    if not isinstance(value, str):
        return str(value)
    day, _, time = value.partition("T")
    return day if not time or time.startswith("00:00:00") else f"{day} {time[:5]}"


def _protected(column: Mapping[str, Any], about: Sequence[str]) -> dict[str, Any]:
    aside = "" if column["column"] in about else "; not asked about here: it is in no prior"
    if column["kind"] == "number":
        words = f"a number from {number(column['lower'])} to {number(column['upper'])}"
        words += f", in steps of {number(column['step'])}"
        return {"name": column["column"], "words": words + aside, "labels": ()}
    labels = column["labels"]
    return {
        "name": column["column"],
        "words": f"one of {len(labels):,} labels{aside}",
        "labels": labels[:LONGEST_LIST],
    }


def _public(column: Mapping[str, Any]) -> dict[str, Any]:
    keys = column["keys"]
    words = "one key" if len(keys) == 1 else f"one of {len(keys):,} keys"
    return {"name": column["column"], "words": words, "labels": keys[:LONGEST_LIST]}


NO_BUDGET: Mapping[str, Any] = {
    "epsilon": None,
    "delta": "0",
    "spent": None,
    "left": None,
    "most": None,
    "history": [],
    "analysts": [],
}


def budget_view(document: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The budget of a dataset, with those of analysts; None stands for none."""
    budgets = [] if document is None else document["budgets"]
    whole = next((one for one in budgets if one["analyst"] is None), None)
    if whole is None:
        return NO_BUDGET
    return {
        **whole,
        "analysts": [
            one for one in budgets if one["analyst"] is not None and one["epsilon"] is not None
        ],
    }


def askers(analysts: Sequence[str], role: str) -> str:
    """Who may ask, in words; an analyst does not learn who else there is.

    >>> askers((), "analyst"), askers(("ana", "bo"), "analyst"), askers(("ana",), "owner")
    ('Any analyst may ask.', 'You are one of those who may ask.', 'Only ana may ask.')
    >>> askers(("ana", "bo", "cy", "di"), "owner")
    'Only ana, bo and 2 more may ask.'
    """
    if not analysts:
        return "Any analyst may ask."
    if role == "analyst":
        return "You are one of those who may ask."
    shown = list(analysts[:3])
    if len(analysts) > 3:
        shown = [*analysts[:2], f"{len(analysts) - 2} more"]
    words = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"Only {words} may ask."


WAITING = ("NotAccepted",)  # kinds of problems that an owner ends by deciding


def waiting_view(kind: str, role: str) -> dict[str, str]:
    """Why nobody can ask of a dataset now, for those who look at it.

    >>> waiting_view("NotAccepted", "analyst")["title"]
    'It waits for its owner'
    """
    if kind not in WAITING:
        raise ValueError(f"{kind!r} is no kind of waiting")
    why, then = "The policy of this dataset was changed", "an owner has yet to accept the change"
    title = "It waits for its owner"
    if role == "owner":
        title, then = "It waits for an owner", "its page has what is to be compared and accepted"
    words = f"{why}, and {then}. Until then nothing can be planned or released."
    return {"title": title, "words": f"{words} What was released before stays."}


def change_view(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What waits for the owner to accept it: another policy, another declaration."""
    policy, declaration = document["policy"], document["declaration"]
    found = []
    if policy["needed"]:
        found.append(
            {
                "accept": "policy",
                "title": "The policy is not the one that was accepted",
                "lines": policy["words"],
                "spent": _spent(policy),
                "shown": policy["shown"],
            }
        )
    if declaration["needed"]:
        found.append(
            {
                "accept": "declaration",
                "title": "The declaration is not the one that was charged under",
                "lines": declaration["changes"],
                "spent": _spent(declaration),
                "shown": declaration["shown"],
            }
        )
    return found


def _spent(change: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = (("spent until now", "spent_before"), ("spent once accepted", "spent_after"))
    return [(words, f"ε = {up(change[name])}") for words, name in pairs if change[name] is not None]
