"""HTTP errors: the exception `Problem`, and its problem document.

Errors are raised where they are noticed and become responses in one place (`service.handler.step_order`). Bodies are
`application/problem+json` (RFC 9457) with the members `type`, `title`, `status`, `detail`. They are never empty, and
must not contain secrets or SQL text (errors-5).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rowcall.core.errors.binding_error import BindingError

CONTENT_TYPE = "application/problem+json"

_RFC9110 = "https://tools.ietf.org/html/rfc9110#section-"

TYPES: Mapping[int, str] = {
    400: _RFC9110 + "15.5.1",
    401: _RFC9110 + "15.5.2",
    403: _RFC9110 + "15.5.4",
    404: _RFC9110 + "15.5.5",
    405: _RFC9110 + "15.5.6",
    406: _RFC9110 + "15.5.7",
    408: _RFC9110 + "15.5.9",
    409: _RFC9110 + "15.5.10",
    412: _RFC9110 + "15.5.13",
    413: _RFC9110 + "15.5.14",
    414: _RFC9110 + "15.5.15",
    415: _RFC9110 + "15.5.16",
    422: "https://tools.ietf.org/html/rfc4918#section-11.2",
    426: _RFC9110 + "15.5.22",
    431: "https://tools.ietf.org/html/rfc6585#section-5",
    500: _RFC9110 + "15.6.1",
    502: _RFC9110 + "15.6.3",
    503: _RFC9110 + "15.6.4",
    504: _RFC9110 + "15.6.5",
}

TITLES: Mapping[int, str] = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length Required",
    412: "Precondition Failed",
    413: "Content Too Large",
    414: "URI Too Long",
    415: "Unsupported Media Type",
    416: "Range Not Satisfiable",
    417: "Expectation Failed",
    422: "Unprocessable Content",
    424: "Failed Dependency",
    426: "Upgrade Required",
    428: "Precondition Required",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
    505: "HTTP Version Not Supported",
    507: "Insufficient Storage",
}


class Problem(Exception):
    """An error response, or another response that is not the result of the routine. Raised by steps.

    status: of the response. detail: what happened, for the client; None: the body has no such member. title: None: the
    reason phrase of the status. type_url: URL for the member `type`; None: that of the status. headers: further
    response headers, as (name, value). others: further members of the body (RFC 9457, 3.2).
    """

    def __init__(
        self,
        status: int,
        detail: str | None = None,
        *,
        title: str | None = None,
        type_url: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        others: Mapping[str, object] = MappingProxyType({}),
        code: str | None = None,
    ) -> None:
        super().__init__(status, title, detail)
        self.status = status
        self.title = title or TITLES.get(status, "Error")
        self.detail = detail
        self.type_url = type_url
        self.headers = headers
        self.others = others
        self.code = code
        """Value of `type` for programs, also if links in `type` are switched off (errors-3)."""
        self.logged = False
        """Whether the error is logged already, with more details than the response contains."""

    def members(self, *, with_type: bool = True) -> dict[str, object]:
        """Return the members of the body in their order, without absent ones (errors-1). with_type: `type` may be a
        URL; otherwise there is a `type` only if the problem has a code."""
        members: dict[str, object] = {}
        type_url = self.type_url or TYPES.get(self.status)
        if self.code is not None:
            members["type"] = self.code
        elif with_type and type_url:
            members["type"] = type_url
        members["title"] = self.title
        members["status"] = self.status
        if self.detail is not None:
            members["detail"] = self.detail
        members.update(self.others)
        return members


def binding_problem(error: BindingError) -> Problem:
    """Return the problem of a binding error. It lists all faults, so that the caller can correct them at once."""
    faults = [fault.members for fault in error.faults]
    return Problem(error.status, error.detail, others={"errors": faults} if faults else {})


def unauthorized_problem(challenge: str, detail: str) -> Problem:
    """Return the problem of a 401. challenge: value of the header `WWW-Authenticate`, which RFC 9110 section 11.6.1
    requires."""
    return Problem(401, detail, headers=(("www-authenticate", challenge),))


class UnavailableError(Problem):
    """A 503 for a temporary reason of the service or of its database, which the request has not caused."""


def unavailable(detail: str, retry_after: int = 1) -> UnavailableError:
    """Return the problem of a 503. retry_after: seconds for the header `Retry-After`."""
    return UnavailableError(503, detail, headers=(("retry-after", str(retry_after)),))
