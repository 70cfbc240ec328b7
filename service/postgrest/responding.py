"""Responses of PostgREST's interface: errors of every kind, CORS, and the headers that all of them share."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from rowcall.core.errors.problems import Problem
from rowcall.core.postgrest import errors
from rowcall.core.postgrest.cors import exposing_headers, preflight_headers
from rowcall.core.postgrest.database_errors import from_database
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.negotiation import Negotiated
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.request.preferences import preference_applied
from rowcall.core.postgrest.response_headers import (
    VARY,
    is_sendable,
    renamed_warning,
    set_by_sql,
    status_by_sql,
)
from rowcall.ext.driver.execution import Execution, Loss
from rowcall.service.database.pools.overload import ConnectionTimeoutError, UnreachableError
from rowcall.service.postgrest.authentication import TokenError
from rowcall.service.postgrest.planning.work import Headers, Response
from rowcall.service.postgrest.request import FUNCTION, ApiRequest
from rowcall.service.postgrest.result import Result
from rowcall.service.request_context.header_values import decode_header
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext

log = logging.getLogger("rowcall")

JSON_TYPE = "application/json; charset=utf-8"
RETRY_AFTER = ("retry-after", "1")
"""Of errors with status 503, those raised by SQL included. In seconds."""


class Responder:
    """Makes and sends responses with the options of one schema snapshot."""

    def __init__(self, options: PostgRestOptions) -> None:
        self._options = options
        self._trace = None if options.trace_header is None else options.trace_header.lower()

    # --- sending ------------------------------------------------------------------------------------------------------

    def send(self, context: RequestContext, response: Response) -> None:
        """Send a response, with the CORS and trace headers of every response; without its body for HEAD, 204
        and 304. The caller marks the request as answered.
        """
        scope, protocol = context.scope, context.protocol
        status, headers, body = response
        if self._trace is not None or scope.headers.get("origin") is not None:
            headers = [*headers, *self._shared_headers(scope)]
        if body is None or status in (204, 304) or scope.method == "HEAD":
            protocol.response_empty(status, headers)
        else:
            protocol.response_bytes(status, headers, body)

    def _shared_headers(self, scope: Any) -> Headers:
        """Return the CORS and trace headers of every response to a request."""
        headers: Headers = []
        origin = scope.headers.get("origin")
        if origin is not None and scope.method != "OPTIONS":
            headers += exposing_headers(origin, self._options.cors_allowed_origins)
        if self._trace is not None:
            with suppress(Problem):
                headers.append((self._trace, decode_header(scope.headers, self._trace) or ""))
        return headers

    def preflight(self, scope: Any) -> Response | None:
        """Return the response to a CORS preflight; None if the request is none."""
        headers = preflight_headers(
            scope.method,
            scope.headers.get("origin"),
            scope.headers.get("access-control-request-method"),
            scope.headers.get("access-control-request-headers"),
            self._options.cors_allowed_origins,
        )
        return None if headers is None else Response(200, headers, b"")

    # --- success ----------------------------------------------------------------------------------------------------

    def planned_headers(
        self,
        request: ApiRequest,
        negotiated: Negotiated | None,
        *,
        renamed: Iterable[str] = (),
        resolution: bool = False,
    ) -> Headers:
        """Return the headers of a successful response that do not depend on its result.

        negotiated: None if there is no body. renamed: embeds that have an alias, but are addressed by their name; the
        response warns of them. resolution: an upsert has a conflict target.
        """
        headers = renamed_warning(renamed)
        if negotiated is not None:
            headers += (("content-type", negotiated.content_type), *request.profile_headers)
        preferred = preference_applied(
            request.preferences,
            method=request.method,
            transaction=self._options.end_may_be_overridden,
            resolution=resolution,
            function=request.resource is FUNCTION,
        )
        if preferred is not None:
            headers.append(("preference-applied", preferred))
        headers.append(VARY)
        return headers

    def success(self, status: int, headers: Headers, result: Result, negotiated: Negotiated | None) -> Response:
        """Return the response to a request that succeeded. status, headers: used where SQL has set no others.
        negotiated: None if there is no body.

        Raises `ApiError` (`PGRST111`, `112`) for a status or headers set by SQL that cannot be read.
        """
        if result.headers is not None:
            headers = set_by_sql(headers, result.headers)
        if result.status is not None:
            status = status_by_sql(result.status)
        return Response(status, headers, None if negotiated is None else body_of(result.body, negotiated))

    def beyond_range(self, offset: int, headers: Headers, result: Result, negotiated: Negotiated) -> Response:
        """Return the response to a read whose offset (in rows) is beyond the total. It differs from that of a success
        only in status (416) and body (an error).

        Raises `ApiError` (`PGRST111`, `112`).
        """
        error = errors.offset_beyond(offset, result.total or 0)
        result = result._replace(body=error.body(minimal=self._options.minimal_errors))
        return self.success(error.status, headers, result, negotiated)

    # --- errors -------------------------------------------------------------------------------------------------------

    def error(self, error: Exception, scope: Any) -> Response:
        """Return the response to an `ApiError` or `Problem`, and log it from status 500 on; raise any other error."""
        if isinstance(error, Problem):
            error = problem_error(error)
        if not isinstance(error, ApiError):
            raise error
        if error.status >= 500:
            log.error("%s %s: %s: %s", scope.method, scope.path, error.code, error.message)
        headers: Headers = [
            ("content-type", JSON_TYPE),
            ("proxy-status", f"PostgREST; error={error.code}"),
            *error.headers.items(),
        ]
        if error.status == 503 and "retry-after" not in error.headers:
            headers.append(RETRY_AFTER)
        body = error.body(minimal=self._options.minimal_errors)
        # SQL can raise any number as a status (`PT999`).
        return Response(error.status if is_sendable(error.status) else 500, headers, body)

    @staticmethod
    def token_error(error: TokenError) -> ApiError:
        """Return the error of a request that cannot be authenticated."""
        if error.code == "PGRST300":
            return errors.no_jwt_secret()
        if error.code == "PGRST302":
            return errors.anonymous_disabled()
        if error.code == "PGRST303":
            return errors.invalid_claims(error.message)
        return errors.undecodable_token(error.message, error.details)

    def database_error(self, execution: Execution, request: ApiRequest) -> Exception:
        """Return the error of a failed execution."""
        error = execution.error
        if error is None or execution.failure is not None or execution.loss != Loss.NOT_LOST:
            return connection_error(execution)
        return from_database(
            error.sqlstate,
            error.message,
            error.detail,
            error.hint,
            anonymous=request.user.role == self._options.anonymous_role,
        )


def body_of(body: bytes, negotiated: Negotiated) -> bytes:
    """Return the body of a response from that of a result. Where the output is binary, the hexadecimal digits that
    PostgreSQL prints for a `bytea` are decoded.
    """
    return bytes.fromhex(body[2:].decode()) if negotiated.output.binary and body.startswith(b"\\x") else body


def problem_error(problem: Problem) -> ApiError:
    """Return the error for a problem of the service itself, with the headers of the problem except `Connection`.

    If no connection was free in time, it is `PGRST003`, without headers. If the database is unreachable, its details
    are the message of the driver, as in PostgREST.
    """
    headers = {name.lower(): value for name, value in problem.headers if name.lower() != "connection"}
    if isinstance(problem, ConnectionTimeoutError):
        return ApiError(504, "PGRST003", "Timed out acquiring connection from connection pool.")
    if problem.status == 503:
        cause = problem.cause if isinstance(problem, UnreachableError) else None
        return ApiError(503, "PGRST000", "Database connection error.", cause or problem.detail, headers=headers)
    # A refused body is PostgREST's PGRST102; other refusals have the code of a status that SQL raises.
    code = "PGRST102" if problem.status in (400, 413) else f"PT{problem.status}"
    return ApiError(problem.status, code, problem.detail or problem.title, headers=headers)


def connection_error(execution: Execution) -> Exception:
    """Return the error of an execution that was given up (a `Problem`, a disconnected client, or a timeout) or whose
    connection was lost.
    """
    failure = execution.failure
    if isinstance(failure, Problem | ClientDisconnectedError):
        return failure
    if failure is not None:
        return ApiError(500, "57014", "canceling statement due to statement timeout")
    unsure = "it is not known whether the request took effect" if execution.loss == Loss.IN_DOUBT else None
    message = "Database client error. Retrying the connection."
    return ApiError(503, "PGRST001", message, unsure)
