"""GET and HEAD of files, in front of the endpoints: a file wins over a route at its path."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any
from urllib.parse import quote

from rowcall.core.errors.problems import unauthorized
from rowcall.core.http.files import DEFAULT_DOCUMENTS, UnsatisfiableError, accepts, byte_range, is_unchanged
from rowcall.core.text.globs import matches
from rowcall.service.identity.identity import Identity
from rowcall.service.options.capabilities.static_files import StaticFileOptions
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.static.folder import Folder, StaticFile
from rowcall.service.static.pages import Pages


class StaticFiles:
    """The files of one folder."""

    def __init__(self, options: StaticFileOptions, worker: WorkerOptions, identity: Identity) -> None:
        self._options = options
        self._worker = worker
        self._identity = identity
        self._folder = Folder(options.root)
        self._pages = None if options.pages is None else Pages(options, options.pages, identity.antiforgery)
        self._closed: dict[str, bool] = {}
        said = options.cache_control
        self._cached: Headers = [("cache-control", said)] if said else []
        # A proxy must not keep for everybody what is for who is signed in.
        keeps_apart = said and not {"private", "no-store"}.isdisjoint(re.split(r"[,\s]+", said.lower()))
        self._cached_apart: Headers = self._cached if keeps_apart else [("cache-control", "private, no-cache")]

    def find(self, scope: Any) -> StaticFile | str | None:
        """None: whoever stands behind answers."""
        return self._folder.find(scope.path) if scope.method in ("GET", "HEAD") else None

    def answer_at_once(self, scope: Any, protocol: Any, found: StaticFile | str) -> bool:
        """Sends what has been sent before, to somebody else who asked for it in the same way. False: `answer` does."""
        if type(found) is not StaticFile or found.known is None or scope.method != "GET":
            return False
        asked = scope.headers
        if "if-none-match" in asked or "range" in asked or "if-modified-since" in asked:
            return False
        protocol.response_bytes(200, found.known, found.body)
        return True

    def answer(self, context: RequestContext, found: StaticFile | str) -> Awaitable[None] | None:
        """Answers, perhaps later."""
        scope = context.scope
        if isinstance(found, str):
            query = f"?{scope.query_string}" if scope.query_string else ""
            location = _address(found) + query
            context.protocol.response_empty(301, [("location", location), ("content-length", "0")])
            return None
        page = self._pages is not None and self._pages.fills(found.url)
        closed = self._is_closed(scope.path) or self._is_closed(found.url)
        if (page or closed) and self._worker.auth.schemes:
            waiting = self._identity.sessions.authenticate(context)
            if waiting is not None:
                return self._answer_later(context, found, waiting, closed)
        self._answer(context, found, closed)
        return None

    async def _answer_later(
        self, context: RequestContext, found: StaticFile, waiting: Awaitable[None], closed: bool
    ) -> None:
        await waiting
        self._answer(context, found, closed)

    def _answer(self, context: RequestContext, found: StaticFile, closed: bool) -> None:
        if closed and context.user is None:
            self._refuse(context, found)
        elif self._pages is not None and context.scope.method == "GET" and self._pages.fills(found.url):
            headers, body = self._pages.fill(context.scope, found, context.user)
            context.protocol.response_bytes(200, headers, body)
        else:
            self._send(context.scope, context.protocol, found, private=closed)

    def _is_closed(self, path: str) -> bool:
        known = self._closed.get(path)
        if known is None:
            if len(self._closed) >= 4096:
                self._closed.clear()
            known = self._closed[path] = any(matches(path, pattern) for pattern in self._options.closed)
        return known

    def _refuse(self, context: RequestContext, found: StaticFile) -> None:
        protocol = context.protocol
        target = self._options.redirect
        if target is None:
            raise unauthorized(self._worker.auth.schemes.challenge, f"{context.scope.path} is for signed-in users")
        if self._options.return_to is not None:
            target += f"{'&' if '?' in target else '?'}{self._options.return_to}={_wanted(context.scope)}"
        protocol.response_empty(302, [("location", target), ("content-length", "0"), ("cache-control", "no-store")])

    def _send(self, scope: Any, protocol: Any, found: StaticFile, *, private: bool) -> None:
        asked = scope.headers
        cached = self._cached_apart if private else self._cached
        headers: Headers = [("etag", found.tag), ("last-modified", found.date), ("accept-ranges", "bytes"), *cached]
        if found.siblings:
            headers.append(("vary", "Accept-Encoding"))
        if is_unchanged(found.tag, found.modified, asked.get("if-none-match"), asked.get("if-modified-since")):
            protocol.response_empty(304, headers)
            return
        headers.append(("content-type", found.content_type))
        coding = None
        if asked.get("range") is None:
            coding = next((one for one in found.siblings if accepts(asked.get("accept-encoding"), one[0])), None)
        if coding is not None:
            self._send_sibling(scope, protocol, headers, coding)
            return
        try:
            part = byte_range(asked.get("range"), asked.get("if-range"), found.tag, found.date, found.size)
        except UnsatisfiableError:
            protocol.response_empty(416, [("content-range", f"bytes */{found.size}"), ("content-length", "0")])
            return
        if part is not None and scope.method == "GET":
            self._send_part(protocol, found, headers, *part)
        elif scope.method == "HEAD":
            protocol.response_empty(200, [*headers, ("content-length", str(found.size))])
        elif found.body is not None:
            if not private and not found.siblings:
                found.known = headers
            protocol.response_bytes(200, headers, found.body)
        else:
            protocol.response_file(200, [*headers, ("content-length", str(found.size))], found.path)

    def _send_part(self, protocol: Any, found: StaticFile, headers: Headers, first: int, end: int) -> None:
        headers = [*headers, ("content-range", f"bytes {first}-{end - 1}/{found.size}")]
        if found.body is not None:
            protocol.response_bytes(206, headers, found.body[first:end])
        else:
            protocol.response_file_range(206, [*headers, ("content-length", str(end - first))], found.path, first, end)

    def _send_sibling(self, scope: Any, protocol: Any, headers: Headers, sibling: tuple[str, str]) -> None:
        coding, path = sibling
        told = [*headers, ("content-encoding", coding)]
        told[0] = ("etag", f'{told[0][1][:-1]}-{coding}"')
        if scope.method == "HEAD":
            protocol.response_empty(200, told)
        else:
            protocol.response_file(200, told, path)


def _wanted(scope: Any) -> str:
    """What was asked for, as the value of a query; a default document is known by its folder."""
    folder, _, name = scope.path.rpartition("/")
    path = f"{folder}/" if name in DEFAULT_DOCUMENTS else scope.path
    return quote(_address(path) + (f"?{scope.query_string}" if scope.query_string else ""), safe="")


def _address(path: str) -> str:
    """Of a decoded path."""
    return quote(path, safe="/:@!$&'()*+,;=~")
