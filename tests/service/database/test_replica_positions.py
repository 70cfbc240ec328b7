"""How the WAL position of a response gets into the requests that follow it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rowcall.service.database.replicas.options import ReplicaOptions
from rowcall.service.database.replicas.positions import (
    PRIMARY,
    position_of_request,
    position_of_response,
    response_fields,
    with_position,
)
from rowcall.service.request.subrequests import SubrequestScope


def headers_of(pairs: Iterable[tuple[str, str]]) -> Any:
    """Return headers with the interface of those of a request."""
    return SubrequestScope("GET", "/", "", [*pairs], 1).headers


def options(cookie: str | None, header: str | None) -> ReplicaOptions:
    return ReplicaOptions(cookie=cookie, header=header)


@pytest.mark.parametrize(("cookie", "header"), [("place", "read-after"), ("place", None), (None, "read-after")])
def test_a_replica_position_is_passed_to_the_next_request(cookie: str | None, header: str | None) -> None:
    chosen = options(cookie, header)
    fields = [("content-type", "text/plain"), *response_fields(chosen, "2/A", secure=True)]
    text = position_of_response(chosen, fields)
    assert text == "2/A"
    headers = [("Cookie", "place=1/0; theme=dark"), ("Read-After", "1/0"), ("accept", "*/*")]
    sent = {name.lower(): value for name, value in with_position(chosen, headers, text)}
    assert position_of_request(chosen, headers_of(sent.items())) == 0x2_0000000A
    assert "theme=dark" in sent["cookie"]
    assert sent["accept"] == "*/*"


def test_a_response_without_a_position_has_none() -> None:
    assert position_of_response(options("place", "read-after"), [("set-cookie", "places=1/0")]) is None
    assert position_of_request(options("place", "read-after"), headers_of([("read-after", PRIMARY)])) is None


def test_the_position_may_be_in_any_line_of_cookies() -> None:
    """Clients of HTTP/2 may send each cookie in a line of its own."""
    sent = headers_of([("cookie", "theme=dark"), ("cookie", "place=2/A")])
    assert position_of_request(options("place", None), sent) == 0x2_0000000A
