"""The responses to requests that fail: each error becomes a problem document here, and nowhere else (errors-1)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import orjson

from rowcall.core.errors.binding_error import BindingError
from rowcall.core.errors.problems import CONTENT_TYPE, Problem, binding_problem
from rowcall.core.http.router import MalformedPathError
from rowcall.ext.base.response_guard import InvalidResponseError
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.log.request_log import logging_protocol_of, trace_id
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.request.body import REFUSED_BEFORE_BODY, may_be_closed_behind_body
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext
from rowcall.service.request_context.trace import log_extra
from rowcall.service.response.headers import Headers, problem_headers

log = logging.getLogger("rowcall")


class FailureResponses:
    """Converts errors into responses.

    path_for_log: returns the path of a scope as logs show it, without secrets.
    """

    def __init__(self, options: WorkerOptions, path_for_log: Callable[[Any], str]) -> None:
        self._options = options
        self._path_for_log = path_for_log

    def respond(self, context: RequestContext, error: Exception) -> None:
        """Convert an error into a response, and log one that the service itself has caused; this is the only place that
        does so. If the client has disconnected, there is no response.
        """
        scope = context.scope
        if isinstance(error, ClientDisconnectedError):
            if (request := logging_protocol_of(context.protocol)) is not None:
                request.log_disconnect()
            return
        if isinstance(error, Problem):
            problem = error
        elif isinstance(error, BindingError):
            problem = binding_problem(error)
        elif isinstance(error, MalformedPathError):
            problem = Problem(400, str(error))
            if (request := logging_protocol_of(context.protocol)) is not None:
                request.path = self._path_for_log(scope)
        elif isinstance(error, InvalidResponseError):
            self._log(context, "%s: the response was rejected: %s", error)
            problem = Problem(500, "an unexpected error; the log of the service has the reason")
            problem.logged = True
        else:
            self._log(context, "%s failed", exc_info=error)
            problem = Problem(500, "an unexpected error; the log of the service has the reason")
            problem.logged = True
        if problem.status == 500 and not problem.logged:
            # The log must contain such an error, whatever the settings of the request log are.
            self._log(context, "%s: %s", problem.detail or problem.title)
        headers = problem_headers(context, problem)
        if problem.status in REFUSED_BEFORE_BODY and context.body is None and may_be_closed_behind_body(scope):
            headers = [*(item for item in headers if item[0].lower() != "connection"), ("connection", "close")]
        self._send(context.protocol, scope, problem, headers)

    def _send(self, protocol: Any, scope: Any, problem: Problem, others: Headers) -> None:
        """Respond with a problem document, with the members that the options allow. others: headers besides the content
        type.
        """
        headers = [("content-type", CONTENT_TYPE), *others]
        members = problem.members(with_type=self._options.problem_types)
        if problem.status == 401 and not self._options.explains_unauthorized:
            # Anonymous callers learn neither how an endpoint can be accessed nor what was wrong with a token.
            log.info("%s: 401: %s", self._format_request(scope), problem.detail)
            members.pop("detail", None)
        if self._options.problem_traces:
            members["traceId"] = trace_id(scope, protocol)
        body = orjson.dumps(members)
        if problem.status in (204, 205, 304):
            protocol.response_empty(problem.status, others)
        elif scope.method == "HEAD":
            protocol.response_empty(problem.status, [*headers, ("content-length", str(len(body)))])
        else:
            protocol.response_bytes(problem.status, headers, body)

    def _log(self, context: RequestContext, text: str, *values: object, exc_info: BaseException | None = None) -> None:
        """Log an error of the service in a request. text: has a place for method and path, and then for the values."""
        request, extra = self._format_request(context.scope), log_extra(context.protocol)
        log.error(text, request, *values, exc_info=exc_info, extra=extra)

    def _format_request(self, scope: Any) -> str:
        """Return method and path of a request for the log."""
        return f"{escape_unprintable(scope.method)} {escape_unprintable(self._path_for_log(scope))}"


def status_of(error: Exception) -> int:
    """Return the status of the response to an error."""
    if isinstance(error, Problem):
        return error.status
    return 400 if isinstance(error, BindingError | MalformedPathError) else 500
