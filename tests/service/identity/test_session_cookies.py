"""Cookies that are added to a response of whatever form."""

from __future__ import annotations

from typing import Any

from rowcall.service.identity.session_cookies import RenewingProtocol

HEADERS = [("content-type", "image/png"), ("cache-control", "public")]


class _Sink:
    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def response_file_range(self, *call: Any) -> None:
        self.sent.append(call)


def test_a_file_range_response_renews_the_cookie() -> None:
    sink = _Sink()
    RenewingProtocol(sink, ["session=new"]).response_file_range(206, HEADERS, "/x.png", 2, 6)
    status, headers, *part = sink.sent[0]
    assert (status, part) == (206, ["/x.png", 2, 6])
    assert ("set-cookie", "session=new") in headers
    assert dict(headers)["cache-control"] == "no-cache,no-store"
