"""Content of a response, in the form in which the tables of the tests write it."""

from __future__ import annotations

from typing import Any

import httpx

JSON = "application/json"
TEXT = "text/plain"
BYTES = "application/octet-stream"
PROBLEM = "application/problem+json"

PROBLEM_TYPES = {
    400: "https://tools.ietf.org/html/rfc9110#section-15.5.1",
    401: "https://tools.ietf.org/html/rfc9110#section-15.5.2",
    403: "https://tools.ietf.org/html/rfc9110#section-15.5.4",
    404: "https://tools.ietf.org/html/rfc9110#section-15.5.5",
    405: "https://tools.ietf.org/html/rfc9110#section-15.5.6",
    406: "https://tools.ietf.org/html/rfc9110#section-15.5.7",
    408: "https://tools.ietf.org/html/rfc9110#section-15.5.9",
    409: "https://tools.ietf.org/html/rfc9110#section-15.5.10",
    412: "https://tools.ietf.org/html/rfc9110#section-15.5.13",
    413: "https://tools.ietf.org/html/rfc9110#section-15.5.14",
    414: "https://tools.ietf.org/html/rfc9110#section-15.5.15",
    415: "https://tools.ietf.org/html/rfc9110#section-15.5.16",
    422: "https://tools.ietf.org/html/rfc4918#section-11.2",
    426: "https://tools.ietf.org/html/rfc9110#section-15.5.22",
    431: "https://tools.ietf.org/html/rfc6585#section-5",
    500: "https://tools.ietf.org/html/rfc9110#section-15.6.1",
    502: "https://tools.ietf.org/html/rfc9110#section-15.6.3",
    503: "https://tools.ietf.org/html/rfc9110#section-15.6.4",
    504: "https://tools.ietf.org/html/rfc9110#section-15.6.5",
}
"""Reference 01, 11.1."""


MEMBERS = ("type", "title", "status", "detail", "hint", "sqlstate", "constraint", "table", "column", "errors", "item")
"""In their order; only some are always present."""


def answer(response: httpx.Response) -> tuple[int, str | None, str]:
    """Return status, content type and the exact body."""
    return response.status_code, response.headers.get("content-type"), response.content.decode()


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return the members of a problem document, after checks of the rules for all of them (errors-5, errors-1 to
    errors-12)."""
    assert response.status_code == status, f"{response.status_code}: {response.text}"
    assert response.headers["content-type"] == PROBLEM
    members: dict[str, Any] = response.json()
    assert list(members) == [name for name in MEMBERS if name in members]
    assert members["status"] == status
    assert members.get("type") == PROBLEM_TYPES.get(status)
    assert members["title"]
    return members
