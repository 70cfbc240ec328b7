"""HEAD: the steps of GET run, and the body stays behind (RFC 9110 section 9.3.2)."""

from __future__ import annotations

from typing import Any


class HeadProtocol:
    """Stands in for the HTTP server's protocol: what GET would send is answered with its header section alone."""

    def __init__(self, protocol: Any) -> None:
        self.inner = protocol
        self.client_disconnect = protocol.client_disconnect

    def __call__(self) -> Any:
        """The body of the request: `request_param_type body` gives GET one too."""
        return self.inner()

    def __aiter__(self) -> Any:
        return self.inner.__aiter__()

    def response_empty(self, status: int, headers: list[tuple[str, str]]) -> None:
        self.inner.response_empty(status, headers)

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.inner.response_empty(status, [*headers, ("content-length", str(len(body)))])
