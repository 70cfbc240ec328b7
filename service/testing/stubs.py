"""Stands where the client for other services stands: answers what a test file has declared.

A file without stubs calls the real services. One with stubs calls none: what no stub answers is the test's error.
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
    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options)
        self.stubs: Sequence[Stub] = ()
        self.unexpected: list[str] = []
        """What was asked of nobody since this was emptied."""

    async def send(self, request: OutgoingRequest, *, named: bool, trace: Trace | None = None) -> HttpResponse:
        if not self.stubs:
            return await super().send(request, named=named)
        # What was declared last is about what comes next.
        stub = next((one for one in reversed(self.stubs) if one.fits(request.method, request.address.url)), None)
        if stub is None:
            self.unexpected.append(f"{request.method} {request.address.shown}")
            raise OutboundError("no stub of the test answers this request")
        return _answer(stub, request)


class _Silent:
    def resume_reading(self) -> None:
        """Everything is there."""

    def abort(self) -> None:
        """Nothing more would come."""


def _answer(stub: Stub, request: OutgoingRequest) -> HttpResponse:
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
