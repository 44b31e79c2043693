"""Parts of good requests, and of bad ones."""

import json
from collections.abc import Mapping
from typing import Any

PEOPLE = {"ana": "analyst", "olga": "owner", "udo": "auditor", "wim": "witness"}
KNOWN: Mapping[str, tuple[str, ...]] = {
    "dataset": ("stays", "stays", "stays", "wards", "meters", "nothing", "stays.toml"),
    "charge": ("@charge@", "@charge@", "1", "999", "-1", "0"),
    "request": ("1", "2", "999"),
    "job": ("@job@", "nothing"),
    "token": ("0" * 16, "beef"),
    "ledger": ("0" * 32, "a" * 32, "A" * 32),
    "name": ("report.html", "report.html.sig", "ask.js", "pages.css", "icon.svg", "takifugu.toml"),
}
QUERIES: tuple[dict[str, Any], ...] = (
    {"kind": "histogram", "by": ["zone"], "epsilon": "0.5"},
    {"kind": "count", "values": ["ward"], "epsilon": 0.25},
    {"kind": "top_k", "k": 1, "epsilon": "1"},
    {"kind": "histogram", "window": [9, None], "where": {"floor": [1]}, "epsilon": "1/3"},
    {"kind": "mean", "epsilon": "1"},
    {"kind": "quantile", "level": 0.5, "epsilon": "1"},
    {"kind": "linear", "query": "weighted", "epsilon": "1"},
    {"kind": "proportions", "epsilon": "1", "sum_to_one": True},
    {"kind": "counts", "values": ["home", "ward"], "within": 200, "confidence": 0.9},
)
FORMS: Mapping[str, tuple[dict[str, str], ...]] = {
    "/sign-in": ({"token": "@ana@", "next": "/"}, {"token": "tf_x", "next": "//evil.example"}),
    "/datasets/{dataset}/budget": ({"epsilon": "1000", "delta": "0", "analyst": ""},),
    "/datasets/{dataset}/policy-change": ({"accept": "policy", "shown": "0" * 64},),
    "/datasets/{dataset}/ask": (
        {"options": json.dumps(QUERIES[0]), "accept_noise": "yes", "key": "k1", "asked": "[]"},
        {"options": json.dumps(QUERIES[1]), "plan": "0" * 64, "key": "k2", "asked": '[["a","b"]]'},
    ),
    "/approvals/{request}": ({"decision": "approved", "note": "fine"},),
    "/tokens": ({"name": "bo", "role": "analyst", "expires": "90d"},),
}
ASKED = {"kind": "histogram", "epsilon": "1", "by": "zone", "price": "yes", "values": "ward"}
METHODS = (
    "PATCH",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "get",
    "PUT",
    "DELETE",
    "POST",
    "GET",
    "G\xc9T",
    "X" * 50,
)
TYPES = (
    "text/plain",
    "application/xml",
    "application/json; charset=utf-16",
    "",
    "multipart/form-data",
)
HEADERS = (
    *(
        "Accept",
        "Prefer",
        "Idempotency-Key",
        "If-None-Match",
        "Range",
        "Cookie",
        "Origin",
        "Referer",
    ),
    *("X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "X-Request-Id", "User-Agent", "Expect"),
    *(
        "Content-Encoding",
        "Upgrade",
        "X-HTTP-Method-Override",
        "Accept-Encoding",
        "TE",
        "Authorization",
    ),
)
GOOD_HEADERS = (
    *(
        "Prefer: wait=0",
        "Prefer: wait=5",
        "Accept: text/html",
        "Accept: application/json",
        "Accept: */*",
    ),
    *("Accept: text/csv", "If-None-Match: *", "Idempotency-Key: k", "X-Forwarded-For: 192.0.2.1"),
)
FRAMES = (
    *(
        "Content-Length: 5",
        "Content-Length: +5",
        "Content-Length: 99999999999",
        "Content-Length: -1",
    ),
    *("Transfer-Encoding: chunked", "Transfer-Encoding: xchunked", "Transfer-Encoding : chunked"),
    *("no colon at all", " folded: yes", "X: a\x00b", "X-Injected: a\rb", "Host: evil.example"),
)
LARGE = 80_000  # bytes: above what the server takes
