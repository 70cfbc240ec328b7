"""The paths of the Model Context Protocol: JSON-RPC over HTTP, and the metadata of the resource (mcp-5 to mcp-8).

A tool call is an internal subrequest to its endpoint, with the credentials of the caller. So a tool allows nothing that
the endpoint refuses.
"""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.auth.required_roles import RequiredRoles
from rowcall.core.documents.openapi import TypesOf
from rowcall.core.documents.options import OpenApiOptions
from rowcall.core.endpoint.access import ANYONE
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import CONTENT_TYPE, Problem
from rowcall.core.http.forwarded_headers import is_address
from rowcall.core.mcp.introduction import REFUSALS, challenge, introduction, resource_metadata
from rowcall.core.mcp.json_rpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PROTOCOL,
    RESOURCE_NOT_FOUND,
    RpcError,
    RpcRequest,
    rpc_error,
    rpc_request,
    rpc_result,
)
from rowcall.core.mcp.options import McpOptions
from rowcall.core.mcp.resources import RESOURCES, resource_contents
from rowcall.core.mcp.table_tools import TableTool, table_request, table_result, table_tools
from rowcall.core.mcp.tools import (
    ToolEntry,
    ToolRequest,
    content,
    select_tools,
    tool_entries,
    tool_request,
    tool_result,
)
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.service.database.replicas.positions import position_of_response, response_fields
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import HttpResponse
from rowcall.service.mcp.cancellation import CancelledCallError, cancel_call, until_cancelled
from rowcall.service.pipeline.fixed_route import FixedRoute, with_limit
from rowcall.service.pipeline.services import Services, SubrequestSender
from rowcall.service.request.body import read_body
from rowcall.service.request.subrequests import headers_for_caller
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step

log = logging.getLogger("rowcall")

Send = Callable[[str, str, list[tuple[str, str]], bytes | None, RequestContext], Awaitable[HttpResponse]]
"""Sends an internal subrequest for the caller: method, path with query, headers, body, and the outer request context →
the response."""

_JSON = ("content-type", "application/json")
_REPLY = [_JSON, ("MCP-Protocol-Version", PROTOCOL)]
_SCHEMES = {"ws": "http", "wss": "https"}


def mcp_routes(
    endpoints: Sequence[Endpoint],
    types_of: TypesOf,
    options: McpOptions,
    services: Services,
    send_subrequest: SubrequestSender,
    guards: Sequence[Step],
    refuse_foreign: Callable[[Any], None] | None,
    catalogue: PostgRestCatalogue | None,
    send_to_interface: Send,
) -> Iterator[FixedRoute]:
    """Yield the routes of the server: GET and POST of its path, and the metadata if authorization servers are
    configured.

    guards: steps for POST that authenticate, and refuse requests of other sites that use a session by cookie.
    refuse_foreign: called with the scope of a tool call for an endpoint with HTTP Basic; raises `Problem` if the
    request comes from another site. None: such requests are allowed. catalogue, send_to_interface: of PostgREST's
    interface, whose tables can be tools.
    """
    server = _Server(
        endpoints, types_of, options, services, send_subrequest, refuse_foreign, catalogue, send_to_interface
    )
    authenticate = (services.auth.sessions.authenticate,) if services.options.auth.schemes else ()
    reading = with_limit(services, options.rate_limiter, (server.refuse_strange_origins, *authenticate))
    yield FixedRoute("GET", options.path, options.access, (*reading, server.answer))
    checks = (server.refuse_strange_origins, server.refuse_other_types, *guards)
    calling = (*with_limit(services, options.rate_limiter, checks), server.answer)
    yield FixedRoute("POST", options.path, options.access, calling)
    if options.servers:
        yield FixedRoute("GET", options.metadata, ANYONE, (server.send_metadata,))


def announce_tools(endpoints: Sequence[Endpoint], options: McpOptions, catalogue: PostgRestCatalogue | None) -> None:
    """Log the tools, and warnings about endpoints and tables that cannot be tools. catalogue: of PostgREST's interface,
    whose tables can be tools; None: it is not served.
    """
    tools, warnings = select_tools(endpoints)
    tables, others = table_tools(catalogue, options.tables, options.table_actions, tools)
    for warning in (*warnings, *(f"Service:McpOptions:PostgRestTables: {text}" for text in others)):
        log.warning("%s", warning)
    log.info("MCP: %d tools: %s", len(tools) + len(tables), ", ".join((*tools, *tables)))


class _Server:
    """The server for the endpoints of one schema snapshot."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        types_of: TypesOf,
        options: McpOptions,
        services: Services,
        send_subrequest: SubrequestSender,
        refuse_foreign: Callable[[Any], None] | None,
        catalogue: PostgRestCatalogue | None,
        send_to_interface: Send,
    ) -> None:
        self._endpoints = endpoints
        self._types_of = types_of
        self._tools = tool_entries(endpoints, types_of, options.tools)
        self._tables = table_tools(catalogue, options.tables, options.table_actions, self._tools)[0]
        self._options = options
        self._inside = send_subrequest
        self._catalogue = catalogue
        self._interface = send_to_interface
        self._refuse_foreign = refuse_foreign
        self._host = services.host
        self._replicas = services.replicas
        self._limit = services.options.http.limits.body_size
        self._client = client_reader(services.options.forwarding)
        self._knows_hosts = bool(services.options.http.server.allowed_hosts)
        self._matching = services.options.auth.login.roles_match_users

    def refuse_strange_origins(self, context: RequestContext) -> None:
        """Raise `Problem` 403 for pages of other origins (DNS rebinding), and 400 for other protocol versions."""
        headers = context.scope.headers
        origin, version = headers.get("origin"), headers.get("mcp-protocol-version")
        if origin is not None and origin.lower() not in self._options.origins and not self._is_own(origin, context):
            raise Problem(403, f"the origin {origin[:200]} is not among those of Service:McpOptions:AllowedOrigins")
        if version is not None and version != PROTOCOL:
            raise Problem(400, f"MCP-Protocol-Version: {version[:50]} is not supported, only {PROTOCOL}")

    def refuse_other_types(self, context: RequestContext) -> None:
        """Raise `Problem` 415 unless the body is JSON.

        A page can send a form or plain text to any site without a CORS preflight, but not JSON.
        """
        kind = (context.scope.headers.get("content-type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Problem(415, f"the body of a request to {self._options.path} must be of type application/json")

    def _is_own(self, origin: str, context: RequestContext) -> bool:
        """Return whether the origin is that of this service. A host name counts only if allowed hosts are configured,
        since DNS may have been manipulated; an IP address always counts.
        """
        base = self._base(context)
        return origin.lower() == base.lower() and (self._knows_hosts or is_address(base.partition("://")[2]))

    async def answer(self, context: RequestContext) -> None:
        """Respond to a JSON-RPC request or notification, and with 401 to a caller who has to authenticate. Raises
        `Problem` 405 for methods other than POST, and the errors of `read_body`.
        """
        if self._must_authenticate(context):
            self._challenge(context, 401)
            return
        if context.scope.method != "POST":
            raise Problem(405, f"{self._options.path} answers POST", headers=(("allow", "POST"),))
        body = await read_body(context.scope, context.protocol, self._limit)
        try:
            request = rpc_request(body)
        except RpcError as error:
            self._send(context, 200, _REPLY, rpc_error(None, error))
            return
        if request.method.startswith("notifications/"):
            if request.method == "notifications/cancelled":
                cancel_call(context, request.params.get("requestId"), self._host)
            self._accept(context)
            return
        try:
            result = await self._result(context, request)
        except RpcError as error:
            self._send(context, 200, _REPLY, rpc_error(request.id, error))
            return
        except CancelledCallError:
            # A cancelled request has no response (MCP 2025-11-25, Cancellation).
            self._accept(context)
            return
        headers = _REPLY
        if request.method == "initialize":
            headers = [*_REPLY, ("Mcp-Session-Id", secrets.token_hex(16))]
        self._send(context, 200, headers, rpc_result(request.id, result))

    def _accept(self, context: RequestContext) -> None:
        """Respond 202 to a notification or a cancelled request, which have no result."""
        context.protocol.response_empty(202, [])
        context.answered = True

    def _must_authenticate(self, context: RequestContext) -> bool:
        """Return whether the caller has to authenticate: it is anonymous and that is not allowed, or its token is for
        another audience."""
        user, audience = context.user, self._options.audience
        if user is None:
            return not self._options.access.anonymous
        return audience is not None and ("aud", audience) not in user.claims

    async def _result(self, context: RequestContext, request: RpcRequest) -> dict[str, Any]:
        """Return the result of a request. Raises `RpcError`, `CancelledCallError`."""
        match request.method:
            case "initialize":
                return introduction(self._options)
            case "ping":
                return {}
            case "tools/list":
                visible = (tool for tool in self._tools.values() if self._shows(tool.endpoint, context.user))
                listed = [tool.described for tool in visible]
                return {"tools": listed + [tool.described for tool in self._tables.values()]}
            case "tools/call":
                return await self._call(context, request)
            case "resources/list" if self._options.catalogue is not None:
                return {"resources": list(RESOURCES)}
            case "resources/templates/list" if self._options.catalogue is not None:
                return {"resourceTemplates": []}
            case "resources/read" if self._options.catalogue is not None:
                return self._read(self._options.catalogue, context.user, request.params.get("uri"))
        raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")

    def _shows(self, endpoint: Endpoint, user: User | None) -> bool:
        """Return whether the endpoint is listed for this user."""
        return not self._options.by_role or self._refusal_status(endpoint, user) is None

    def _refusal_status(self, endpoint: Endpoint, user: User | None) -> int | None:
        """Return the status, 401 or 403, with which the endpoint would refuse the user by claims, or None if it would
        not.
        """
        access = endpoint.access
        if access.anonymous:
            return None
        if user is None:
            return 401
        required = access.required
        return 403 if required and not RequiredRoles(required, roles_match_users=self._matching).admits(user) else None

    def _read(self, described: OpenApiOptions, user: User | None, uri: object) -> dict[str, Any]:
        """Return the contents of a resource for this user. described: options of the OpenAPI document. uri: of the
        resource, as the client has sent it. Raises `RpcError` for an unknown one.
        """
        visible = [endpoint for endpoint in self._endpoints if self._shows(endpoint, user)]
        contents = resource_contents(str(uri), visible, self._types_of, described, self._catalogue)
        if contents is None:
            raise RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {uri}")
        return contents

    async def _call(self, context: RequestContext, request: RpcRequest) -> dict[str, Any]:
        """Call a tool. A refusal by the endpoint, including 401 and 403, is a failed result.

        Raises `RpcError`, `CancelledCallError`.
        """
        name, arguments = request.params.get("name"), request.params.get("arguments")
        entry = self._tools.get(name) if isinstance(name, str) else None
        table = self._tables.get(name) if isinstance(name, str) else None
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, f"arguments of {name} have to be an object")
        try:
            if entry is not None:
                return await self._call_endpoint(context, request, entry, arguments or {})
            if table is not None:
                return await self._call_table(context, request, table, arguments or {})
        except OutboundError as error:  # a routine that fails while its result is streamed
            return content(str(error), failed=True)
        raise RpcError(INVALID_PARAMS, f"Unknown tool: {name if isinstance(name, str) else ''}")

    async def _call_table(
        self, context: RequestContext, request: RpcRequest, table: TableTool, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Call a tool of a table. Raises `CancelledCallError`, `OutboundError`."""
        try:
            subrequest = table_request(table, arguments)
        except Problem as problem:
            return content(orjson.dumps(problem.members()).decode(), failed=True)
        answer, body = await self._send_subrequest(context, request, subrequest, [], self._interface)
        return table_result(answer.status, answer.header("content-range"), body, table)

    async def _call_endpoint(
        self, context: RequestContext, request: RpcRequest, entry: ToolEntry, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        """Call a tool of an endpoint. Raises `CancelledCallError`, `OutboundError`."""
        try:
            if entry.endpoint.access.basic is not None and self._refuse_foreign is not None:
                self._refuse_foreign(context.scope)
            subrequest = tool_request(entry.endpoint, arguments)
        except Problem as problem:
            # A caller who may not call the endpoint learns only that.
            status = self._refusal_status(entry.endpoint, context.user)
            reported = problem if status is None else Problem(status, REFUSALS[status]["error_description"])
            return tool_result(entry, reported.status, CONTENT_TYPE, orjson.dumps(reported.members()))
        own: list[tuple[str, str]] = []
        idempotency = entry.endpoint.options.idempotency
        if idempotency is not None and idempotency.required:
            # Each call of a tool is a request of its own.
            own.append(("idempotency-key", str(uuid.uuid4())))
        answer, body = await self._send_subrequest(context, request, subrequest, own, self._inside)
        return tool_result(entry, answer.status, answer.header("content-type") or "", body)

    async def _send_subrequest(
        self,
        context: RequestContext,
        request: RpcRequest,
        subrequest: ToolRequest,
        own: list[tuple[str, str]],
        send: Send,
    ) -> tuple[HttpResponse, bytes]:
        """Return the response to a subrequest with the caller's credentials, and its whole body.

        request: the tool call, which the client may cancel. own: further headers. send: sends the subrequest. Raises
        `CancelledCallError`, and `OutboundError` for an incomplete response.
        """
        headers = headers_for_caller(context, [*own, *subrequest.headers])

        async def call(outer: RequestContext) -> tuple[HttpResponse, bytes]:
            answer = await send(subrequest.method, subrequest.target, headers, subrequest.body, outer)
            return answer, await answer.read(None)

        answer, body = await until_cancelled(context, request.id, self._host, call)
        self._send_position(context, answer)
        return answer, body

    def _send_position(self, context: RequestContext, answer: HttpResponse) -> None:
        """Add the WAL position, if the response to a subrequest has one, to the response to the tool call, so that the
        client reads from replicas what it has written."""
        replicas = self._replicas
        text = None if replicas is None else position_of_response(replicas.options, answer.headers)
        if replicas is not None and text is not None:
            fields = response_fields(replicas.options, text, secure=context.scope.scheme == "https")
            context.protocol = HeadersProtocol(context.protocol, fields)

    def send_metadata(self, context: RequestContext) -> None:
        """Respond with the metadata of the resource."""
        body = orjson.dumps(resource_metadata(self._options, self._base(context)))
        self._send(context, 200, [_JSON], body)

    def _base(self, context: RequestContext) -> str:
        """Return scheme and host of this service as the client sees them, such as `https://shop.example`."""
        client = self._client(context.scope)
        host = client.host or context.scope.authority or context.scope.headers.get("host") or ""
        return f"{_SCHEMES.get(client.scheme, client.scheme)}://{host}"

    def _challenge(self, context: RequestContext, status: int) -> None:
        """Respond with this status and the header that says how to authenticate."""
        text = challenge(self._options, status, self._base(context))
        self._send(context, status, [_JSON, ("www-authenticate", text)], orjson.dumps(REFUSALS[status]))

    def _send(self, context: RequestContext, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        context.protocol.response_bytes(status, list(headers), body)
        context.answered = True
