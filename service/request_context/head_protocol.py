"""HEAD requests: the steps of GET run, and the body is not sent (RFC 9110 section 9.3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Change = Callable[[int, list[tuple[str, str]], bytes], tuple[int, list[tuple[str, str]]]]
"""Status, headers and body → status and headers."""


class HeadProtocol:
    """Wraps the HTTP server's protocol: a response of GET is sent with its header section only."""

    def __init__(self, protocol: Any) -> None:
        self.inner = protocol
        self.change: Change | None = None
        """Changes status and headers because of the body."""
        self.client_disconnect = protocol.client_disconnect

    def __call__(self) -> Any:
        """Return the body of the request: with `request_param_type body`, GET has one too."""
        return self.inner()

    def __aiter__(self) -> Any:
        return self.inner.__aiter__()

    def response_empty(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.inner.response_empty(status, headers)

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        if self.change is not None:
            status, headers = self.change(status, headers, body)
            if status == 304:
                self.inner.response_empty(status, headers)
                return
        self.inner.response_empty(status, [*headers, ("content-length", str(len(body)))])
