"""Roles, who is calling, and who may call what: one table.

A route that is not in the table is refused to everybody. `authorize` looks every request up here; a
test compares the table with the routes of the app and calls each of them in every role.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from takifugu.project.policy import DatasetPolicy

Role = Literal["owner", "analyst", "auditor", "witness"]
ROLES: tuple[Role, ...] = get_args(Role)
Method = Literal["GET", "POST", "PUT", "DELETE"]
API = "/api/v1"
OWNER: tuple[Role, ...] = ("owner",)
ANALYST: tuple[Role, ...] = ("analyst",)
ASKING: tuple[Role, ...] = ("owner", "analyst")
CHECKING: tuple[Role, ...] = ("owner", "auditor")
PEOPLE: tuple[Role, ...] = ("owner", "analyst", "auditor")
WITNESS: tuple[Role, ...] = ("witness",)


@dataclass(frozen=True)
class Actor:
    """Who is calling, as a token says.

    Attributes:
        name: The name of the token's holder: events of the ledger carry it, and the budget of an
            analyst has it.
        role: What they may do.
        token: The public identity of the token, which is not the token.
        by_page: Whether a browser session calls, and not the token itself.
    """

    name: str
    role: Role
    token: str
    by_page: bool = False


@dataclass(frozen=True)
class Rule:
    """One route, and the roles that may call it.

    Attributes:
        method: The method. HEAD is not served.
        path: The path as the route declares it.
        roles: The roles that may call it. What they see of it may still differ: an analyst sees
            their own history.
        anybody: Whether it needs no token at all.
    """

    method: Method
    path: str
    roles: tuple[Role, ...] = ()
    anybody: bool = False


def _rules(method: Method, roles: tuple[Role, ...], *paths: str) -> Iterable[Rule]:
    return (Rule(method, path, roles) for path in paths)


def _open(*paths: str) -> Iterable[Rule]:
    return (Rule("GET", path, anybody=True) for path in paths)


RULES: tuple[Rule, ...] = (
    # operation
    *_open("/healthz", "/readyz", "/openapi.json", "/static/{name}", "/favicon.ico"),
    *_rules("GET", CHECKING, "/metrics"),
    # every signed-in person
    *_rules(
        *("GET", PEOPLE),
        *(f"{API}/me", f"{API}/datasets", f"{API}/datasets/{{dataset}}"),
        *(f"{API}/datasets/{{dataset}}/guarantee", f"{API}/datasets/{{dataset}}/budget"),
        *(f"{API}/releases", f"{API}/releases/{{charge}}", f"{API}/releases/{{charge}}/result"),
        *(f"{API}/releases/{{charge}}/figure", f"{API}/approvals", f"{API}/approvals/{{request}}"),
        *(f"{API}/jobs/{{job}}", f"{API}/jobs/{{job}}/events"),
    ),
    *_rules("DELETE", PEOPLE, f"{API}/jobs/{{job}}"),
    # asking
    *_rules("POST", ASKING, f"{API}/datasets/{{dataset}}/plans"),
    *_rules("POST", ANALYST, f"{API}/datasets/{{dataset}}/releases"),
    *_rules("DELETE", ANALYST, f"{API}/approvals/{{request}}"),
    # owning
    *_rules("POST", OWNER, f"{API}/datasets", f"{API}/datasets/{{dataset}}/prior-fits"),
    *_rules("PUT", OWNER, f"{API}/datasets/{{dataset}}/budget"),
    *_rules("GET", OWNER, f"{API}/datasets/{{dataset}}/policy"),
    *_rules("GET", OWNER, f"{API}/datasets/{{dataset}}/policy-change"),
    *_rules("POST", OWNER, f"{API}/datasets/{{dataset}}/policy-change"),
    *_rules("POST", OWNER, f"{API}/approvals/{{request}}/decision"),
    *_rules("GET", OWNER, f"{API}/tokens"),
    *_rules("POST", OWNER, f"{API}/tokens"),
    *_rules("DELETE", OWNER, f"{API}/tokens/{{token}}"),
    # checking
    *_rules(
        *("GET", CHECKING),
        *(f"{API}/ledger", f"{API}/ledger/events", f"{API}/ledger/export"),
        f"{API}/reports/{{name}}",
    ),
    *_rules("POST", CHECKING, f"{API}/ledger/verification"),
    # remembering the head of another server's ledger
    *_rules("GET", WITNESS, f"{API}/witness/{{ledger}}"),
    *_rules("PUT", WITNESS, f"{API}/witness/{{ledger}}"),
    # pages
    *_open("/sign-in"),
    Rule("POST", "/sign-in", anybody=True),
    *_rules("POST", PEOPLE, "/sign-out"),
    *_rules("GET", PEOPLE, "/", "/datasets/{dataset}", "/releases", "/releases/{charge}"),
    *_rules("GET", PEOPLE, "/approvals", "/datasets/{dataset}/budget.svg"),
    *_rules("GET", ASKING, "/datasets/{dataset}/ask"),
    *_rules("POST", ANALYST, "/datasets/{dataset}/ask"),
    *_rules("POST", ANALYST, "/approvals/{request}/withdrawal"),
    *_rules("POST", OWNER, "/approvals/{request}", "/datasets/{dataset}/budget", "/tokens"),
    *_rules("POST", OWNER, "/tokens/{token}/revoke", "/datasets/{dataset}/policy-change"),
    *_rules("GET", OWNER, "/tokens"),
    *_rules("GET", CHECKING, "/ledger", "/reports"),
    *_rules("POST", CHECKING, "/ledger"),
)
BY_ROUTE: dict[tuple[str, str], Rule] = {(rule.method, rule.path): rule for rule in RULES}


def may_see(actor: Actor, policy: "DatasetPolicy") -> bool:
    """Whether a dataset exists for the caller: a policy may list its analysts."""
    return actor.role != "analyst" or not policy.analysts or actor.name in policy.analysts


def rule_of(method: str, path: str) -> Rule | None:
    """The rule of a route, by its path as the route declares it; None if there is none."""
    return BY_ROUTE.get((method, path))


def allowed(rule: Rule | None, role: Role | None) -> bool:
    """Whether a role, or nobody, may call a route; nobody may call one without a rule."""
    if rule is None:
        return False
    return rule.anybody or (role in ROLES and role in rule.roles)
