"""A client for other services that returns the responses of stubs.

A file without stubs calls the real services. A file with stubs calls none: a request without a stub is an error of the
test.
"""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.core.outgoing.options import ClientOptions
from rowcall.core.testing.request import Stub
from rowcall.service.http_client.client import Client
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import HttpResponse, OutgoingRequest
from rowcall.service.request_context.trace import Trace


class StubbedClient(Client):
    """A client whose responses come from `stubs`, which the test sets. While `stubs` is empty, it sends requests to the
    real services; otherwise to none."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options)
        self.stubs: Sequence[Stub] = ()
        self.unexpected: list[str] = []
        """Requests without a matching stub since the list was cleared."""

    async def send(self, request: OutgoingRequest, *, named: bool, trace: Trace | None = None) -> HttpResponse:
        """Return the response of the latest stub that fits; without any stubs, send the request. named, trace: as for
        `Client.send`. Raises `OutboundError` if there are stubs and none fits, which `unexpected` records.
        """
        if not self.stubs:
            return await super().send(request, named=named, trace=trace)
        # The latest declaration takes precedence.
        stub = next(
            (candidate for candidate in reversed(self.stubs) if candidate.fits(request.method, request.address.url)),
            None,
        )
        if stub is None:
            self.unexpected.append(f"{request.method} {request.address.shown}")
            raise OutboundError("no stub of the test responds to this request")
        return _answer(stub, request)


class _Silent:
    """The source of a response from a stub, which is complete at once."""

    def resume_reading(self) -> None:
        """Do nothing: the response is complete."""

    def abort(self) -> None:
        """Do nothing: no more data would follow."""


def _answer(stub: Stub, request: OutgoingRequest) -> HttpResponse:
    """Return the complete response of a stub. A body without a content type is JSON or plain text, by its first
    character.
    """
    body = (stub.answer.body or "").encode()
    answer = HttpResponse(_Silent())
    answer.status = stub.answer.status
    answer.headers = list(stub.answer.headers)
    answer.address = request.address
    if body and answer.header("content-type") is None:
        answer.headers.append(("Content-Type", "application/json" if body[:1] in b'{["' else "text/plain"))
    answer.length = len(body)
    if body:
        answer.add(body)
    answer.end()
    return answer
