"""Requests and their answers, one a line, as the tables of `tests/http/test_field_*.py` write them.

A routine is `(head, body, comment)`, a request `METHOD target`, an answer `200 text 42`: status, kind of content and
the exact body; for an error the status and words that its title or detail must have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from tests.harness.expect import BYTES, JSON, TEXT, problem
from tests.harness.service import Service

Routine = tuple[str, str, str]
Case = tuple[str, Any, str]
"""A request, its body (text, bytes, or what JSON is made of; None: none) and the answer."""

_KINDS = {JSON: "json", TEXT: "text", BYTES: "bytes", None: "none"}


def routines(rows: Iterable[Routine]) -> str:
    """SQL that makes and comments functions and procedures; `head` is all between `create` and `as`."""
    return "".join(_routine(*row) for row in rows)


def _routine(head: str, body: str, comment: str) -> str:
    language = "" if " language " in head else " language sql"
    kind = "" if head.startswith(("procedure ", "function ")) else "function "
    quoted = comment.replace("'", "''")
    # What was made last has the highest oid, so overloads need no second writing of their types.
    return (
        f"create {kind}{head}{language} as $body${body}$body$;\n"
        "do $do$ begin execute format('comment on routine %s is %L',"
        f" (select oid::regprocedure from pg_proc order by oid desc limit 1), '{quoted}'); end $do$;\n"
    )


def names(cases: Iterable[Case]) -> list[str]:
    """What the cases are called in reports."""
    return [f"{request} {body!r}"[:90] if body is not None else request[:90] for request, body, _ in cases]


def ask(service: Service, request: str, body: Any = None, headers: Mapping[str, str] | None = None) -> httpx.Response:
    method, _, target = request.partition(" ")
    if body is None:
        return service.request(method, target, headers=headers)
    if isinstance(body, str | bytes):
        return service.request(method, target, content=body, headers=headers)
    return service.request(method, target, json=body, headers=headers)


def check(service: Service, request: str, body: Any, expected: str) -> None:
    response = ask(service, request, body)
    got = told(response, expected)
    assert got == expected, got


def told(response: httpx.Response, expected: str) -> str:
    """The answer in the form of the tables; of an error the words that `expected` asks for, if it has them."""
    status, _, words = expected.partition(" ")
    if status >= "400" and response.status_code == int(status):
        members = problem(response, int(status))
        text = f"{members['title']}|{members.get('detail', '')}"
        return expected if words in text else f"{status} {text}"
    content_type = response.headers.get("content-type")
    if not response.content and content_type is None:
        return str(response.status_code)
    return f"{response.status_code} {_KINDS.get(content_type, content_type)} {response.content.decode()}"
