"""Requests and the answers they must have, one pair of lines each, as tables of tests write them.

A request is `METHOD /path body`, where the body may be left out; one that begins with `{` is sent as
JSON. An answer is a status with what belongs to it:

- `200 [1,2]`: JSON, exactly this body; `200T text` for plain text, `200B` for bytes, `200E` for an empty body;
- `204`: nothing at all;
- from 400 on: a problem, whose title and detail hold each of the parts that `|` separates; `401J` for another JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import httpx
import pytest

from tests.harness.expect import BYTES, JSON, TEXT, answer, problem
from tests.harness.service import Service

RequestContext = tuple[str, str] | tuple[str, str, Mapping[str, str | None]]
"""Request, answer, and the headers that the answer must have."""

_TYPES = {"": JSON, "J": JSON, "T": TEXT, "B": BYTES}


def cases(rows: Iterable[RequestContext]) -> Iterable[object]:
    """For `parametrize`: each has its request as its name."""
    return [pytest.param(row, id=f"{number}-{row[0][:60]}") for number, row in enumerate(rows)]


def ask(service: Service, request: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """Send the request; surrogates in its body stand for bytes that are no UTF-8."""
    method, target, *body = request.split(" ", 2)
    content = body[0].encode(errors="surrogateescape") if body else b""
    sent = {"Content-Type": "application/json"} if content.startswith(b"{") else {}
    return service.request(method, target, content=content, headers={**sent, **(headers or {})})


def check(service: Service, context: RequestContext, headers: Mapping[str, str] | None = None) -> None:
    """Send the request, and compare."""
    compare(ask(service, context[0], headers), context[1], dict(context[2]) if len(context) == 3 else {})


def compare(
    response: httpx.Response,
    answered: str,
    wanted_headers: Mapping[str, str | None] | None = None,
    masked: Callable[[str], str] = str,
) -> None:
    """masked: puts marks in place of what differs each time, in the body that has come."""
    wanted_headers = wanted_headers or {}
    status, _, wanted = answered.partition(" ")
    number, kind = int(status[:3]), status[3:]
    if number >= 400 and not kind:
        members = problem(response, number)
        said = f"{members['title']} | {members.get('detail', '')}"
        missing = [part for part in wanted.split("|") if part not in said]
        assert not missing, f"{said!r} lacks {missing}"
    else:
        found, media_type, body = answer(response)
        _same((found, masked(body)), (number, wanted))
        if wanted:
            _same(media_type, wanted_headers.get("content-type", _TYPES[kind]))
    _same({name: response.headers.get(name) for name in wanted_headers}, wanted_headers)


def check_in_order(service: Service, contexts: Iterable[RequestContext]) -> None:
    """For requests that see what earlier ones have done: as tests of their own they might run in several processes."""
    failed = []
    for context in contexts:
        try:
            check(service, context)
        except AssertionError as error:
            failed.append(f"{context[0]}: {error}")
    assert not failed, "\n".join(failed)


def _same(found: object, wanted: object) -> None:
    assert found == wanted, f"\nfound  {found!r}\nwanted {wanted!r}"
