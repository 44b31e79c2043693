"""Every route of the server: requests that its OpenAPI document allows, and what is done to them.

A request is bytes, so that it can be anything. What differs from run to run is written as a mark:
``@ana@`` for a token, ``@host@``, ``@charge@``, ``@job@``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np

from takifugu.server.access_rules import RULES, Rule
from torture.inputs.case import Case
from torture.inputs.documents import json_text, spoiled_tree
from torture.inputs.hostile import NUMBERS, any_text, one_of
from torture.inputs.mutations import spoiled_bytes, wrapped
from torture.inputs.request_seeds import (
    ASKED,
    FORMS,
    FRAMES,
    GOOD_HEADERS,
    HEADERS,
    KNOWN,
    LARGE,
    METHODS,
    PEOPLE,
    QUERIES,
    TYPES,
)


@dataclass(frozen=True)
class Made:
    """The parts of a request."""

    method: str
    target: str
    headers: list[str]
    body: bytes
    framed: bool = True  # whether its end is told

    def encoded(self) -> bytes:
        """As bytes."""
        lines = [f"{self.method} {self.target} HTTP/1.1", *self.headers, "Connection: close"]
        if self.framed and (self.body or self.method in ("POST", "PUT")):
            lines.append(f"Content-Length: {len(self.body)}")
        head = "\r\n".join(lines).encode("utf-8", "surrogatepass")
        return head + b"\r\n\r\n" + self.body


@cache
def operations() -> dict[tuple[str, str], dict[str, Any]]:
    """What the OpenAPI document says about each route that it has."""
    document = _document()
    return {
        (method.upper(), path): operation
        for path, found in document["paths"].items()
        for method, operation in found.items()
    }


@cache
def _document() -> dict[str, Any]:
    from takifugu.server.app import documented_app

    found: dict[str, Any] = documented_app().openapi()
    return found


def route_case(rng: np.random.Generator, rule: Rule) -> Case:
    """A request of a route, good or spoiled."""
    route = f"{rule.method} {rule.path}"
    who = one_of(rng, [name for name, role in PEOPLE.items() if role in rule.roles] or ["ana"])
    if rng.random() < 0.15:
        who = one_of(rng, [*PEOPLE, ""])
    made = _good(rng, rule, who)
    while rng.random() < 0.55:
        made = _spoiled(rng, made)
    raw = made.encoded()
    if rng.random() < 0.03:
        raw = spoiled_bytes(rng, raw)
        made = Made("", "", [], b"", framed=False)
    whole = () if made.framed else ("partial",)
    return Case(f"route: {route}", whole, request=raw, route=route, who=who)


def _good(rng: np.random.Generator, rule: Rule, who: str) -> Made:
    """A request that the route may well accept."""
    target = rule.path
    for name, values in KNOWN.items():
        target = target.replace(
            f"{{{name}}}", one_of(rng, values[:2] if rng.random() < 0.6 else values)
        )
    operation = operations().get((rule.method, rule.path), {})
    asked = {
        one["name"]: example(rng, one.get("schema", {}))
        for one in operation.get("parameters", ())
        if one["in"] == "query" and rng.random() < 0.4
    }
    if rule.path.endswith("/ask") and rule.method == "GET":
        asked = {key: value for key, value in ASKED.items() if rng.random() < 0.7}
    if asked:
        target += "?" + urlencode(asked, doseq=True, errors="surrogatepass")
    headers = ["Host: @host@"] + ([f"Authorization: Bearer @{who}@"] if who else [])
    asked_by_header = [
        one["name"] for one in operation.get("parameters", ()) if one["in"] == "header"
    ]
    headers += ["Prefer: wait=5"] if "Prefer" in asked_by_header else []
    if "Idempotency-Key" in asked_by_header:
        headers.append(f"Idempotency-Key: {int(rng.integers(10**9))}")
    if rule.method in ("GET", "DELETE"):
        return Made(rule.method, target, headers, b"")
    if rule.path.startswith("/api/"):
        body = json_text(_body(rng, operation)).encode() if operation.get("requestBody") else b""
        kind = ["Content-Type: application/json"] if body else []
        return Made(rule.method, target, [*headers, *kind], body)
    form = one_of(rng, FORMS.get(rule.path, ({},)))
    body = urlencode(form).replace("%40", "@").encode()
    kind = ["Content-Type: application/x-www-form-urlencoded", "Origin: http://@host@"]
    return Made(rule.method, target, [*headers, *kind], body)


def _body(rng: np.random.Generator, operation: Mapping[str, Any]) -> Any:
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    made = example(rng, schema)
    if isinstance(made, dict) and "query" in made:
        made["query"] = dict(one_of(rng, QUERIES))
        made.pop("plan", None)
        made.pop("analyst", None)
        if "accept_noise" in made:
            made["accept_noise"] = True
    return made


def example(rng: np.random.Generator, schema: Mapping[str, Any], depth: int = 6) -> Any:
    """A value that a schema allows, from its examples where it has some."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return example(rng, _document()["components"]["schemas"][name], depth - 1)
    if schema.get("examples") and rng.random() < 0.8:
        return json.loads(json.dumps(one_of(rng, schema["examples"])))
    if "enum" in schema:
        return one_of(rng, schema["enum"])
    if "anyOf" in schema:
        return example(rng, one_of(rng, schema["anyOf"]), depth - 1)
    match schema.get("type"):
        case "object" if depth > 0:
            needed = set(schema.get("required", ()))
            return {
                name: example(rng, part, depth - 1)
                for name, part in schema.get("properties", {}).items()
                if name in needed or rng.random() < 0.3
            }
        case "array" if depth > 0:
            return [example(rng, schema.get("items", {}), depth - 1)]
        case "integer":
            return int(
                rng.integers(schema.get("minimum", 0), schema.get("maximum", 100) % 1000 + 2)
            )
        case "number":
            return float(rng.random())
        case "boolean":
            return bool(rng.integers(2))
        case "string" if "64" in schema.get("pattern", ""):
            return "0" * 64
        case "string":
            return one_of(rng, ("x", "stays", "ward", "ana", "2", "stays.toml", "a.json"))
    return None


def _spoiled(rng: np.random.Generator, made: Made) -> Made:
    method, target, headers, body = made.method, made.target, list(made.headers), made.body
    framed = made.framed
    match int(rng.integers(12)):
        case 0:
            method = one_of(rng, METHODS)
        case 1 | 2:
            target = _other_target(rng, target)
        case 3:
            headers.append(f"{one_of(rng, HEADERS)}: {_header(rng)}")
        case 4:
            headers.append(one_of(rng, GOOD_HEADERS))
        case 5 if headers:
            del headers[int(rng.integers(len(headers)))]
        case 6:
            headers = [one for one in headers if not one.startswith("Content-Type")]
            headers.append(f"Content-Type: {one_of(rng, TYPES)}")
        case 7 if rng.random() < 0.4:
            headers.append(one_of(rng, FRAMES))
            framed = False
        case 8 if body:
            body = wrapped(rng, body.decode("utf-8", "replace"))
        case 9:
            body = one_of(
                rng, (b"", b"null", b"[]", b"{", b"x" * LARGE, b"[" * 9000, b"\xff\xfe", b"a=b&a=c")
            )
        case _ if body[:1] == b"{":
            try:
                body = json_text(spoiled_tree(rng, json.loads(body))).encode("utf-8", "replace")
            except (ValueError, RecursionError):  # no JSON any more, or too deep to be written
                body = spoiled_bytes(rng, body)
        case _:
            body = _other_form(rng, body)
    return Made(method, target, headers, body, framed)


def _header(rng: np.random.Generator) -> str:
    text = any_text(rng)[: 20_000 if rng.random() < 0.02 else 300]
    if rng.random() < 0.9:
        text = "".join(letter for letter in text if letter >= " ")
    return text


def _other_target(rng: np.random.Generator, target: str) -> str:
    word = any_text(rng)[:5000]
    text = quote(word, safe="" if rng.random() < 0.7 else "/.%?#&=;", errors="surrogatepass")
    parts, mark = target.split("/"), "&" if "?" in target else "?"
    match int(rng.integers(5)):
        case 0:
            parts[int(rng.integers(len(parts)))] = text or "%"
            return "/".join(parts) or "/"
        case 1:
            name = one_of(rng, ("limit", "cursor", "x", "format", "dataset", "kind", "state"))
            return f"{target}{mark}{name}={text}"
        case 2:
            return f"{target}/{text}"
        case 3:
            return f"{target}{mark}limit={quote(one_of(rng, NUMBERS)[:300])}"
        case _:
            return one_of(
                rng,
                (
                    f"/{text}",
                    "*",
                    "/%",
                    "//evil.example/",
                    "http://evil.example/api/v1/me",
                    f"{target}%00",
                ),
            )


def _other_form(rng: np.random.Generator, body: bytes) -> bytes:
    text = quote(any_text(rng)[:3000], errors="surrogatepass").encode()
    fields = body.split(b"&")
    at = int(rng.integers(len(fields)))
    name = fields[at].partition(b"=")[0]
    fields[at] = one_of(
        rng, (name + b"=" + text, text, name, b"", name + b"=" + text + b"&" + name)
    )
    return b"&".join(fields)


def rules() -> tuple[Rule, ...]:
    """Every route of the server."""
    return RULES
