"""Requests and expected responses, in pairs of lines as in tables of tests.

A request is `METHOD /path body`, where the body is optional; a body that begins with `{` is sent as JSON. A response is
a status with further text:

- `200 [1,2]`: JSON, exactly this body; `200T text` for plain text, `200B` for bytes, `200E` for an empty body;
- `204`: no body;
- from 400 on: a problem document whose title and detail contain each of the parts that `|` separates; `401J` for other
  JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import httpx
import pytest

from tests.harness.expect import BYTES, JSON, TEXT, answer, problem
from tests.harness.service import Service

RequestContext = tuple[str, str] | tuple[str, str, Mapping[str, str | None]]
"""Request, response, and the headers that the response must have."""

_TYPES = {"": JSON, "J": JSON, "T": TEXT, "B": BYTES}


def cases(rows: Iterable[RequestContext]) -> Iterable[object]:
    """Return the rows for `parametrize`, with the requests as names."""
    return [pytest.param(row, id=f"{number}-{row[0][:60]}") for number, row in enumerate(rows)]


def ask(service: Service, request: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """Send the request; surrogates in its body are bytes that are not UTF-8."""
    method, target, *body = request.split(" ", 2)
    content = body[0].encode(errors="surrogateescape") if body else b""
    sent = {"Content-Type": "application/json"} if content.startswith(b"{") else {}
    return service.request(method, target, content=content, headers={**sent, **(headers or {})})


def check(service: Service, context: RequestContext, headers: Mapping[str, str] | None = None) -> None:
    """Send the request and compare the response."""
    compare(ask(service, context[0], headers), context[1], dict(context[2]) if len(context) == 3 else {})


def compare(
    response: httpx.Response,
    answered: str,
    wanted_headers: Mapping[str, str | None] | None = None,
    masked: Callable[[str], str] = str,
) -> None:
    """Compare a response. masked: replaces the varying parts of the received body by marks."""
    wanted_headers = wanted_headers or {}
    status, _, expected_body = answered.partition(" ")
    number, kind = int(status[:3]), status[3:]
    if number >= 400 and not kind:
        members = problem(response, number)
        text = f"{members['title']} | {members.get('detail', '')}"
        missing = [part for part in expected_body.split("|") if part not in text]
        assert not missing, f"{text!r} lacks {missing}"
    else:
        actual_status, media_type, body = answer(response)
        _same((actual_status, masked(body)), (number, expected_body))
        if expected_body:
            _same(media_type, wanted_headers.get("content-type", _TYPES[kind]))
    _same({name: response.headers.get(name) for name in wanted_headers}, wanted_headers)


def check_in_order(service: Service, contexts: Iterable[RequestContext]) -> None:
    """Check requests that depend on earlier ones. As separate tests they might run in several processes."""
    failed = []
    for context in contexts:
        try:
            check(service, context)
        except AssertionError as error:
            failed.append(f"{context[0]}: {error}")
    assert not failed, "\n".join(failed)


def _same(actual: object, expected: object) -> None:
    assert actual == expected, f"\nfound  {actual!r}\nwanted {expected!r}"
