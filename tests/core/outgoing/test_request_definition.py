"""Comments of composite types that describe outgoing requests (outbound-4 to outbound-13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.outgoing.request_definition import (
    METHODS,
    Reading,
    RequestDefinition,
    read_definition,
    type_diagnostics,
)
from tests.core.routines import TYPES


def test_a_complete_definition_is_read() -> None:
    comment = (
        "# where an address is\r\n  timeout 2s\r\n@retry_delay 200ms, 1s on 429, 503\r\n\r\n"
        "  post https://geo.example.net/v1/{_ip}?a=b HTTP/1.1\r\nX-Key: {GEO_KEY}\r\n# cache = 5 minutes\r\n"
        "Cache-Control: no-store\r\ncontent-type: text/plain\r\nno header\r\n\r\n  first {_ip}\r\nsecond\r\n"
    )
    reading = read_definition(comment)
    assert reading.definition == RequestDefinition(
        "POST",
        "https://geo.example.net/v1/{_ip}?a=b",
        headers=(("X-Key", "{GEO_KEY}"), ("Cache-Control", "no-store")),
        content_type="text/plain",
        body="  first {_ip}\r\nsecond\r\n",
        timeout=2.0,
        retry_delays=(0.2, 1.0),
        retry_codes=(429, 503),
    )
    assert reading.problems == (
        "'no header' is no header and is left out; an empty line stands in front of a body",
        "only responses to GET are cached, not those to POST",
    )


@pytest.mark.parametrize(
    ("comment", "definition"),
    [
        ("GET /inside", RequestDefinition("GET", "/inside")),
        ("get\t/x", None),
        ("GET  https://a  ", RequestDefinition("GET", "https://a")),
        ("GET https://a\n\n \n\t", RequestDefinition("GET", "https://a")),
        ("GET https://a\n\n{}", RequestDefinition("GET", "https://a", content_type="application/json", body="{}")),
        ("GET https://a\nContent-Type: x/y", RequestDefinition("GET", "https://a")),
        ("GET https://a\nX: 1\nx: 2\n# Note: it", RequestDefinition("GET", "https://a", headers=(("x", "2"),))),
        ("GET https://a\ntimeout: 00:00:30", RequestDefinition("GET", "https://a", timeout=30.0)),
        ("timeout=1\ntimeout 2 minutes\nGET https://a", RequestDefinition("GET", "https://a", timeout=120.0)),
        ("GET https://a\nTimeout-Policy: x", RequestDefinition("GET", "https://a", headers=(("Timeout-Policy", "x"),))),
        ("@cache 5m\nGET https://a", RequestDefinition("GET", "https://a", cached=True, cache_seconds=300.0)),
        ("retry_delay 1,2\nGET https://a", RequestDefinition("GET", "https://a", retry_delays=(1.0, 2.0))),
        ("A box of things", None),
        ("Get the box of things", None),
        ("Delete marker", None),
        ("Get e.g. the newest", None),
        ("See https://a/b", None),
        ("GET", None),
        ("", None),
        ("timeout 5s", None),
    ],
)
def test_comments_are_read_as_definitions(comment: str, definition: RequestDefinition | None) -> None:
    assert read_definition(comment) == Reading(definition)


@pytest.mark.parametrize("line", ["HEAD https://a", "options /x"])
def test_a_method_that_no_type_can_have_is_reported(line: str) -> None:
    method = line.partition(" ")[0]
    assert read_definition(line) == Reading(None, (f"'{method}' is none of {', '.join(METHODS)}",))


@pytest.mark.parametrize(
    ("directive", "problem", "expected"),
    [
        ("timeout soon", "'soon' is not an interval; 30 s are taken", {"timeout": 30.0}),
        ("retry_delay 1s, x on y, 503", "'x' is not an interval; 30 s are taken", {"retry_delays": (1.0, 30.0)}),
        ("retry_delay 1s on 99999, abc", "'99999' is no status code", {"retry_codes": ()}),
        ("retry_delay 1s on 01001234", "'01001234' is no status code", {"retry_codes": ()}),
        ("retry_delay 1s on 05039", "'05039' is no status code", {"retry_codes": ()}),
        ("cache", "cache has no duration: responses are cached until the service stops", {"cached": True}),
        ("cache now", "'now' is not an interval; nothing is cached", {"cached": False}),
    ],
)
def test_a_bad_directive_is_reported_and_the_rest_applies(
    directive: str, problem: str, expected: dict[str, object]
) -> None:
    reading = read_definition(f"{directive}\nGET https://a")
    assert problem in reading.problems
    for name, value in expected.items():
        assert getattr(reading.definition, name) == value


NOT_SENT = "is not sent: the service sets it itself if a request needs it"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Bad Name: x", "'Bad Name: x' is no header and is left out; an empty line stands in front of a body"),
        ("Expires: 0", f"the header Expires {NOT_SENT}"),
        ("Content-Length: 5", f"the header Content-Length {NOT_SENT}"),
        ("TRANSFER-encoding: chunked", f"the header TRANSFER-encoding {NOT_SENT}"),
    ],
)
def test_invalid_header_lines_are_reported_and_not_sent(line: str, problem: str) -> None:
    reading = read_definition(f"POST https://a\n{line}\nX: 1\n\nbody")
    assert reading.problems == (problem,)
    assert reading.definition is not None
    assert reading.definition.headers == (("X", "1"),)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://a/{x}", "the scheme ftp is neither http nor https"),
        ("https://", "the URL has no usable host"),
        ("a/b", "the URL is not absolute"),
    ],
)
def test_a_url_that_can_never_be_called_is_reported(url: str, why: str) -> None:
    (problem,) = read_definition(f"GET {url}").problems
    assert problem.startswith(f"{url} cannot be called: {why}")


@pytest.mark.parametrize("url", ["/api/{x}", "{host}/a", "https://{host}/a", "https://a:1/{x}?{y}"])
def test_a_url_with_placeholders_is_checked_at_the_call(url: str) -> None:
    assert read_definition(f"GET {url}").problems == ()


def test_only_composites_with_a_comment_are_parsed() -> None:
    assert list(type_diagnostics(TYPES.values())) == []


LINES = st.sampled_from(
    [*METHODS, "GET https://a", "timeout", "timeout 5s", "@cache", "retry_delay 1 on", "on", "X: y", ":", "#", "", "{"]
)


@given(st.one_of(st.text(), st.lists(st.one_of(LINES, st.text(max_size=8))).map("\n".join)))
def test_any_comment_is_parsed(comment: str) -> None:
    reading = read_definition(comment)
    if reading.definition is not None:
        assert reading.definition.method in METHODS
        assert reading.definition.url
