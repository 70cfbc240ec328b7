"""GET and HEAD of static files, before routing: a file has precedence over a route with its path."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any
from urllib.parse import quote

from rowcall.core.endpoint.access import Access
from rowcall.core.errors.problems import unauthorized_problem
from rowcall.core.http.files import DEFAULT_DOCUMENTS, UnsatisfiableError, accepts, byte_range, is_unchanged
from rowcall.core.operations.static_files import StaticFileOptions
from rowcall.service.identity.identity import Identity
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.header_values import read_validator
from rowcall.service.request_context.protocols import Headers, leave_uncompressed
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.static.folder import Folder, StaticFile, without_compression_suffix
from rowcall.service.static.pages import Pages


class StaticFiles:
    """The static files of one folder."""

    def __init__(self, options: StaticFileOptions, worker: WorkerOptions, identity: Identity) -> None:
        self._options = options
        self._worker = worker
        self._identity = identity
        self._folder = Folder(options.root)
        self._pages = None if options.pages is None else Pages(options, options.pages, identity.antiforgery)
        self._accesses: dict[str, Access] = {}
        cache_control = options.cache_control
        self._cached: Headers = [("cache-control", cache_control)] if cache_control else []
        # A shared cache must not store files for signed-in users.
        keeps_apart = cache_control and not {"private", "no-store"}.isdisjoint(
            re.split(r"[,\s]+", cache_control.lower())
        )
        self._cached_apart: Headers = self._cached if keeps_apart else [("cache-control", "private, no-cache")]

    def find(self, scope: Any) -> StaticFile | str | None:
        """Return the file or redirect of the request, or None: then routing follows."""
        return self._folder.find(scope.path) if scope.method in ("GET", "HEAD") else None

    def answer_at_once(self, scope: Any, protocol: Any, match: StaticFile | str) -> bool:
        """Respond with the cached headers and content of the file if the request allows that, and return True. If it
        returns False, nothing was sent, and `answer` has to be called.
        """
        if type(match) is not StaticFile or match.known is None or scope.method != "GET":
            return False
        headers = scope.headers
        if "if-none-match" in headers or "range" in headers or "if-modified-since" in headers:
            return False
        protocol.response_bytes(200, match.known, match.body)
        return True

    def answer(self, context: RequestContext, match: StaticFile | str) -> Awaitable[None] | None:
        """Respond with the file or redirect; first authenticate the request, if access to the file or its content
        depends on the user. If the file is for signed-in users, an anonymous caller is redirected to the sign-in page;
        without such a page, raises `Problem` 401. Returns None after the response, or an awaitable that responds."""
        scope = context.scope
        if scope.method == "HEAD":
            context.protocol = HeadProtocol(context.protocol)
        if isinstance(match, str):
            query = f"?{scope.query_string}" if scope.query_string else ""
            location = _address(match) + query
            context.protocol.response_empty(301, [("location", location), ("content-length", "0")])
            return None
        page = self._pages is not None and self._pages.fills(match.url)
        closed = not all(
            self._access(path).anonymous for path in (scope.path, match.url, without_compression_suffix(match.url))
        )
        if (page or closed) and self._worker.auth.schemes:
            waiting = self._identity.sessions.authenticate(context)
            if waiting is not None:
                return self._answer_later(context, match, waiting, closed)
        self._answer(context, match, closed)
        return None

    async def _answer_later(
        self, context: RequestContext, file: StaticFile, waiting: Awaitable[None], closed: bool
    ) -> None:
        """Respond when `waiting`, the authentication, has ended. closed: as for `_answer`."""
        await waiting
        self._answer(context, file, closed)

    def _answer(self, context: RequestContext, file: StaticFile, closed: bool) -> None:
        """Respond with the file or the filled page. closed: only signed-in callers may read it; for an anonymous one,
        do what `_refuse` does, which may raise `Problem` 401."""
        if closed and context.user is None:
            self._refuse(context, file)
        elif self._pages is not None and self._pages.fills(file.url):
            headers, body = self._pages.fill(context.scope, file, context.user)
            context.protocol.response_bytes(200, headers, body)
        else:
            self._send(context.scope, context.protocol, file, private=closed)

    def _access(self, path: str) -> Access:
        """Return who may read the file at a path."""
        cached = self._accesses.get(path)
        if cached is None:
            if len(self._accesses) >= 4096:
                self._accesses.clear()
            cached = self._accesses[path] = self._options.access(path)
        return cached

    def _refuse(self, context: RequestContext, file: StaticFile) -> None:
        """Respond to an anonymous caller: redirect to the sign-in page, else raise `Problem` 401."""
        protocol = context.protocol
        target = self._options.redirect
        if target is None:
            raise unauthorized_problem(
                self._worker.auth.schemes.challenge, f"{context.scope.path} is for signed-in users"
            )
        if self._options.return_to is not None:
            target += f"{'&' if '?' in target else '?'}{self._options.return_to}={_return_path(context.scope)}"
        protocol.response_empty(302, [("location", target), ("content-length", "0"), ("cache-control", "no-store")])

    def _send(self, scope: Any, protocol: Any, file: StaticFile, *, private: bool) -> None:
        """Send the file, a part of it, a compressed sibling, 304, or 416 for a range that the file does not have.
        private: the file is for signed-in users, so that shared caches must not store it.
        """
        request = scope.headers
        # Only GET has ranges (RFC 9110, 14.2).
        requested = request.get("range") if scope.method == "GET" else None
        sibling = None
        if requested is None:
            accepted = request.get("accept-encoding")
            accepted_siblings = (sibling for sibling in file.siblings if accepts(accepted, sibling.coding))
            sibling = next((sibling for sibling in accepted_siblings if sibling.is_unchanged), None)
        tag = file.tag if sibling is None else f'{file.tag[:-1]}-{sibling.coding}"'
        if file.body is None:
            leave_uncompressed(protocol)
        cached = self._cached_apart if private else self._cached
        headers: Headers = [("etag", tag), ("last-modified", file.date), ("accept-ranges", "bytes"), *cached]
        if file.siblings:
            headers.append(("vary", "Accept-Encoding"))
        if is_unchanged(tag, file.modified, read_validator(request, "if-none-match"), request.get("if-modified-since")):
            protocol.response_empty(304, headers)
            return
        headers.append(("content-type", file.content_type))
        if sibling is not None:
            protocol.response_file(200, [*headers, ("content-encoding", sibling.coding)], sibling.path)
            return
        try:
            part = byte_range(requested, read_validator(request, "if-range"), file.tag, file.date, file.size)
        except UnsatisfiableError:
            protocol.response_empty(416, [("content-range", f"bytes */{file.size}"), ("content-length", "0")])
            return
        if part is not None:
            self._send_part(protocol, file, headers, *part)
        elif file.body is not None:
            if not private and not file.siblings:
                file.known = headers
            protocol.response_bytes(200, headers, file.body)
        else:
            protocol.response_file(200, [*headers, ("content-length", str(file.size))], file.path)

    def _send_part(self, protocol: Any, file: StaticFile, headers: Headers, first: int, end: int) -> None:
        headers = [*headers, ("content-range", f"bytes {first}-{end - 1}/{file.size}")]
        if file.body is not None:
            protocol.response_bytes(206, headers, file.body[first:end])
        else:
            protocol.response_file_range(206, [*headers, ("content-length", str(end - first))], file.path, first, end)


def _return_path(scope: Any) -> str:
    """Return path and query of the request, quoted as a query value. A default document is replaced by its folder."""
    folder, _, name = scope.path.rpartition("/")
    path = f"{folder}/" if name in DEFAULT_DOCUMENTS else scope.path
    return quote(_address(path) + (f"?{scope.query_string}" if scope.query_string else ""), safe="")


def _address(path: str) -> str:
    """Percent-encode a decoded path."""
    return quote(path, safe="/:@!$&'()*+,;=~")
