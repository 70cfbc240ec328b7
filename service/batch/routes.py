"""`POST /batch`: an array of requests, answered by an array of responses in the same order.

In one transaction, all of them take effect or none: the first response whose status is not between 200 and 399 is the
response of the batch, with the number of its request. With `?transaction=false` each is a request of its own, and all
are answered.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any

import orjson

from rowcall.core.batch.options import BatchOptions
from rowcall.core.batch.requests import KEY, BatchError, BatchRequest, MissingResultError, Result, read_batch
from rowcall.core.endpoint.access import ANYONE
from rowcall.core.endpoint.capabilities import ValuePlace
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import CONTENT_TYPE, Problem
from rowcall.core.text import exact_json, json_text
from rowcall.service.database.replicas.positions import (
    current_position,
    position_of_response,
    response_fields,
    with_position,
)
from rowcall.service.database.replicas.replicas import Replicas
from rowcall.service.database.transactions.joint_transaction import JointTransaction
from rowcall.service.http_client.errors import OutboundError, TooLargeError
from rowcall.service.http_client.messages import Headers, HttpResponse
from rowcall.service.identity.session_cookies import cookie_headers
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request.deadlines import set_requested_deadline
from rowcall.service.request.subrequests import Subrequests, headers_for_caller
from rowcall.service.request_context.header_values import read_header
from rowcall.service.request_context.request_context import RequestContext

_JSON = "application/json"
_KEYS = "post it to ?transaction=false, and give each request the header Idempotency-Key"
_COOKIE = "set-cookie"
_NOT_RETURNED = frozenset(
    ("connection", "content-length", "date", "keep-alive", "server", "transfer-encoding", _COOKIE)
)
"""Headers that the response of one request does not have in the body. Cookies are headers of the whole response: in a
body, scripts would read also those that are `HttpOnly`, and the browser would store none.
"""
_OF_FAILURE = ("retry-after", "www-authenticate", _COOKIE)
"""Headers of a failed response that the response of its batch has too."""


def batch_routes(
    options: BatchOptions,
    services: Services,
    joint: Subrequests,
    independent: Subrequests,
    endpoints: Iterable[Endpoint],
) -> Iterator[FixedRoute]:
    """Yield the route of batches. joint: calls endpoints whose steps run in the transaction of the batch. independent:
    calls them as usual. Each request is authorized by itself. endpoints: which they call.
    """
    deadline = set_requested_deadline(services.options.deadlines)
    api_keys = services.options.auth.api_keys
    refused = options.refused_headers | _tenant_headers(endpoints) | ({api_keys.header} if api_keys else set())
    batches = _Batches(options, services, joint, independent, refused)
    yield FixedRoute("POST", options.path, ANYONE, (*((deadline,) if deadline else ()), batches.answer))


def _tenant_headers(endpoints: Iterable[Endpoint]) -> frozenset[str]:
    """Return the headers that name the tenant of a request, in lower case. A gateway sets them for the whole batch."""
    tenants = (endpoint.options.tenant for endpoint in endpoints)
    return frozenset(
        tenant.name.lower() for tenant in tenants if tenant is not None and tenant.place is ValuePlace.HEADER
    )


class _Batches:
    """The step that responds to batches. refused: headers that single requests cannot set, in lower case."""

    def __init__(
        self,
        options: BatchOptions,
        services: Services,
        joint: Subrequests,
        independent: Subrequests,
        refused: frozenset[str],
    ) -> None:
        self._options = options
        self._refused = refused
        self._session_cookies = frozenset(scheme.cookie for scheme in services.options.auth.schemes.cookies)
        self._database = services.main_database
        self._replicas = services.replicas
        self._limit = services.options.http.limits.body_size
        self._joint = joint
        self._independent = independent

    async def answer(self, context: RequestContext) -> None:
        """Respond to a batch. Raises `Problem`: 400 for an invalid batch, 413 if its responses together are too large,
        415 for another content type than JSON, 504 after `Batch:Timeout`, and the errors of `read_body` and of the
        commit."""
        in_transaction = _in_transaction(context.scope.query_string)
        if KEY in context.scope.headers:
            raise Problem(400, f"a batch as a whole cannot be repeated by its key: {_KEYS}")
        content_type = (read_header(context.scope.headers, "content-type") or _JSON).partition(";")[0].strip().lower()
        if content_type != _JSON:
            raise Problem(415, f"a batch has the content type {_JSON}, not {content_type[:100]}")
        body = await read_body(context.scope, context.protocol, self._limit)
        try:
            requests = read_batch(body, self._options.most_requests, self._refused)
        except BatchError as error:
            raise Problem(400, str(error), others={} if error.item is None else {"item": error.item}) from None
        if in_transaction:
            for request in requests:
                if any(name == KEY for name, _ in request.headers):
                    detail = f"request {request.number}: keys are recorded in transactions of their own: {_KEYS}"
                    raise Problem(400, detail, others={"item": request.number})
        written = _WritePosition(self._replicas)
        responses = _Responses(self._options.most_bytes)
        run = self._run_in_one_transaction if in_transaction else self._run_each
        try:
            async with asyncio.timeout(self._options.seconds):
                succeeded = await run(requests, context, responses, written)
        except TimeoutError:
            number = len(responses.results) + 1
            detail = f"the batch has not ended within {self._options.seconds:g} s (Batch:Timeout)"
            if not in_transaction:
                detail += f"; request {number} was interrupted, and those before it keep their effects"
            raise Problem(504, detail, others={"item": number} if number <= len(requests) else {}) from None
        if succeeded:
            # The position is the last one: of cookies of one name, the last one holds.
            position = written.fields(secure=context.scope.scheme == "https")
            cookies = cookie_headers(responses.cookies) if responses.cookies else []
            headers = [("content-type", _JSON), *cookies, *position]
            context.protocol.response_bytes(200, headers, responses.to_json())

    async def _run_in_one_transaction(
        self, requests: Sequence[BatchRequest], context: RequestContext, responses: _Responses, written: _WritePosition
    ) -> bool:
        """Run all requests in one transaction, and add their responses. Return whether it was committed; if not, a
        request has failed, and its response was sent. Raises `Problem`: 400 if a request refers to a result that
        does not exist, the error of the commit, and the errors of `_run_request`.
        """
        async with self._database.joint_transaction(context) as transaction:
            for request in requests:
                try:
                    status = await self._run_request(request, context, responses, self._joint, transaction, written)
                except MissingResultError as error:
                    raise Problem(400, f"request {request.number}: {error}", others={"item": request.number}) from None
                if not 200 <= status < 400 or transaction.failed:
                    self._fail(context, request.number, responses)
                    return False
            await transaction.finish()
        if transaction.may_have_written:
            await written.record_commit()
        return True

    async def _run_each(
        self, requests: Sequence[BatchRequest], context: RequestContext, responses: _Responses, written: _WritePosition
    ) -> bool:
        """Run the requests one after the other, each by itself, and add their responses: 424 for one that refers to a
        result which does not exist. Return True. Raises `Problem` as `_run_request` does.
        """
        for request in requests:
            try:
                await self._run_request(request, context, responses, self._independent, None, written)
            except MissingResultError as error:
                problem = Problem(424, str(error))
                responses.add(424, [("content-type", CONTENT_TYPE)], orjson.dumps(problem.members()))
        return True

    async def _run_request(
        self,
        request: BatchRequest,
        context: RequestContext,
        responses: _Responses,
        calls: Subrequests,
        transaction: JointTransaction | None,
        written: _WritePosition,
    ) -> int:
        """Run one request, add its response, and return the status. Raises `MissingResultError` if it refers to a
        result that does not exist, and `Problem` 413 if all responses together are too large. transaction: in which it
        runs; None: by itself. written: WAL position of the earlier requests, which this request sees; updated from its
        response."""
        body = request.filled_body(responses.results)
        own = request.filled_headers(responses.results)
        if body is not None and not any(name == "content-type" for name, _ in own):
            own.append(("content-type", _JSON))
        headers = written.with_position(headers_for_caller(context, own))
        response: HttpResponse = await calls.call_for_caller(
            request.method,
            request.target(responses.results),
            headers,
            body,
            context,
            transaction=transaction,
            # Otherwise the renewed session of the batch would replace that of a sign-in, or survive a sign-out.
            renews_sessions=not responses.have_cookie(self._session_cookies),
        )
        status, fields = response.status, response.headers
        try:
            received = await response.read(self._options.most_bytes)
        except TooLargeError:
            raise responses.too_large() from None
        except OutboundError as error:
            # A routine that fails while its result is streamed.
            status, fields = 500, [("content-type", CONTENT_TYPE)]
            received = orjson.dumps(Problem(status, str(error)).members())
        written.record(fields)
        responses.add(status, fields, received)
        return status

    @staticmethod
    def _fail(context: RequestContext, number: int, responses: _Responses) -> None:
        """Send the response of the request that has failed, the last one, with its number; a status below 400 becomes
        409, also in the body.
        """
        result = responses.results[-1]
        status = result.status if result.status >= 400 else 409
        members = dict(result.body) if isinstance(result.body, dict) else {"status": status}
        if status != result.status:
            members["status"] = status
        own = [(name, value) for name, value in responses.last_headers if name.lower() in _OF_FAILURE]
        whole = orjson.dumps({**members, "item": number})
        context.protocol.response_bytes(status, [("content-type", CONTENT_TYPE), *own], whole)


class _WritePosition:
    """The WAL position of the writes of a batch so far. Later requests of the batch carry it, and the response sends it
    to the client, so that reads on a replica see these writes. replicas: None: there are none."""

    def __init__(self, replicas: Replicas | None) -> None:
        options = None if replicas is None else replicas.options
        is_sent = options is not None and (options.cookie is not None or options.header is not None)
        self._replicas = replicas if is_sent else None
        self._text: str | None = None

    def with_position(self, headers: Headers) -> Headers:
        """Return the headers of a request with the position."""
        if self._replicas is None or self._text is None:
            return headers
        return with_position(self._replicas.options, headers, self._text)

    def record(self, fields: Headers) -> None:
        """Record the position in the response to a request, if it has one."""
        if self._replicas is not None:
            self._text = position_of_response(self._replicas.options, fields) or self._text

    async def record_commit(self) -> None:
        """Record the position of the primary, behind the commit of the batch."""
        if self._replicas is not None:
            self._text = await current_position(self._replicas.primary)

    def fields(self, *, secure: bool) -> Headers:
        """Return the response headers that send the position. secure: the client uses https."""
        if self._replicas is None or self._text is None:
            return []
        return response_fields(self._replicas.options, self._text, secure=secure)


class _Responses:
    """The responses of one batch so far. most: limit of the bytes of all bodies together. results: to which later
    requests may refer. last_headers: of the last response.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._written: list[bytes] = []
        self.results: list[Result] = []
        self._cookies: dict[tuple[str, ...], str] = {}
        self.last_headers: Headers = []

    def add(self, status: int, headers: Headers, body: bytes) -> None:
        """Add a response. Raises `Problem` 413 if all of them together are too large."""
        self._size += len(body)
        if self._size > self._most:
            raise self.too_large()
        self.last_headers = headers
        for name, cookie in headers:
            if name.lower() == _COOKIE:
                self._cookies[_identity_of(cookie)] = cookie
        shown = _join_headers(headers)
        value, encoding = _body_as_json(shown.get("content-type", ""), body)
        self.results.append(Result(status, shown, value))
        self._written.append(orjson.dumps({"status": status, "headers": shown, "body": value} | encoding))

    @property
    def cookies(self) -> list[str]:
        """Values of `Set-Cookie` of all responses; of cookies that replace each other, the last one."""
        return list(self._cookies.values())

    def have_cookie(self, names: Set[str]) -> bool:
        """Return whether a response has set a cookie with one of these names."""
        return any(name in names for name, *_ in self._cookies)

    def too_large(self) -> Problem:
        """Return the error of the request whose response is the first one that has no room."""
        detail = f"the responses of the batch have more than {self._most} bytes (Batch:MaxResponseBytes)"
        return Problem(413, detail, others={"item": len(self.results) + 1})

    def to_json(self) -> bytes:
        return b"[" + b",".join(self._written) + b"]"


def _identity_of(cookie: str) -> tuple[str, ...]:
    """Return name, domain and path of a cookie, by which it replaces another one (RFC 6265, 5.3). cookie: a value of
    `Set-Cookie`."""
    pair, *attributes = cookie.split(";")
    places = (attribute.strip() for attribute in attributes)
    return (
        pair.partition("=")[0].strip(),
        *sorted(place for place in places if place.lower().startswith(("domain=", "path="))),
    )


def _join_headers(headers: Headers) -> dict[str, str]:
    """Return the headers that the body of a batch contains, by their names in lower case. The values of a repeated one
    are joined to one list (RFC 9110, 5.3).
    """
    joined: dict[str, str] = {}
    for name, value in headers:
        lowered = name.lower()
        if lowered not in _NOT_RETURNED:
            joined[lowered] = f"{joined[lowered]}, {value}" if lowered in joined else value
    return joined


def _in_transaction(query: str) -> bool:
    """Return whether all requests run in one transaction. Raises `Problem` for other query parameters."""
    match query:
        case "" | "transaction=true":
            return True
        case "transaction=false":
            return False
    raise Problem(400, "the parameters of a batch are transaction=true, which is the default, and transaction=false")


def _body_as_json(content_type: str, body: bytes) -> tuple[Any, dict[str, str]]:
    """Return a body as a JSON value, and the member that names its encoding, if it has one. An empty body is None. JSON
    that is invalid or nested too deeply to be a part of the response is a text; bytes that are no text are base64."""
    if not body:
        return None, {}
    if json_text.is_json(content_type):
        with contextlib.suppress(ValueError):
            return exact_json.parse(body), {}
    try:
        return body.decode(), {}
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), {"encoding": "base64"}
