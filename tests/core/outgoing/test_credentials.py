"""Credentials of callers are not forwarded."""

from __future__ import annotations

import pytest

from rowcall.core.outgoing.address import has_dot_segment
from rowcall.core.outgoing.credentials import OwnCredentials
from rowcall.core.outgoing.forwarding import forwarded_headers, request_headers

OWN = OwnCredentials(frozenset({"x-api-key"}), frozenset({"bearer"}), ("session",))


@pytest.mark.parametrize(
    ("sent", "left"),
    [
        (("cookie", "session=a; other=b"), ("cookie", "other=b")),
        (("cookie", "a=1;session=b;c=2"), ("cookie", "a=1; c=2")),
        (("cookie", "session=chunks-2; sessionC1=a; sessionC2=b"), None),
        (("cookie", " session =a"), None),
        (("cookie", "sessionCookie=a; my-session=b"), ("cookie", "sessionCookie=a; my-session=b")),
        (("cookie", "rowcall.tokens.x=a; __Host-rowcall.signin.y=b"), None),
        (("authorization", "Bearer abc"), None),
        (("authorization", "bEARER\tabc"), None),
        (("authorization", "  Bearer abc"), None),
        (("authorization", "Basic abc"), ("authorization", "Basic abc")),
        (("authorization", ""), ("authorization", "")),
        (("X-Api-Key", "k"), None),
        (("x-other", "k"), ("x-other", "k")),
    ],
)
def test_credentials_for_this_service_are_removed(sent: tuple[str, str], left: tuple[str, str] | None) -> None:
    assert OWN.remove_from([sent]) == ([] if left is None else [left])


@pytest.mark.parametrize(
    "name",
    [
        "X-Forwarded-For",
        "x-forwarded-prefix",
        "Forwarded",
        "x-real-ip",
        "X-Original-Host",
        "X_Forwarded_For",
        "x.real-ip",
    ],
)
def test_claims_about_the_client_are_not_forwarded(name: str) -> None:
    assert request_headers([(name, "1"), ("a", "b")], (), with_body=False) == [("a", "b")]


def test_forwarding_headers_name_the_client() -> None:
    assert forwarded_headers("::1", "https", "a.example:1") == [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-for", "::1"),
        ("x-forwarded-host", "a.example:1"),
        ("forwarded", 'for="[::1]";host="a.example:1";proto=https'),
    ]
    assert forwarded_headers(None, "http", 'a"b') == [("x-forwarded-proto", "http"), ("forwarded", "proto=http")]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/a/../b", True), ("/..", True), ("/.", True), ("/a/./b", True), ("/%2e%2e/", True), ("/%2E.", True),
        ("/..;x=1/a", True), ("/a\\..\\b", True), ("/a%5c..%5cb", True), ("/a%2f..", True),
        ("/a.b/c..d/...", False), ("/.well-known/x", False), ("/a", False), ("/..a", False), ("/%41", False),
    ],
)  # fmt: skip
def test_dot_segments_are_found(path: str, found: bool) -> None:
    assert has_dot_segment(path) is found
