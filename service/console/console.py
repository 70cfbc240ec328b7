"""The routes of the console: signing in, files of the page, and data as JSON and as server-sent events.

Every route but the page to sign in at requires a session: the cookie of the page, or the same secret as a bearer
token. The token of the admin listener is accepted as well, if there is one.
"""

from __future__ import annotations

import hmac
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files

import orjson

from rowcall.core.errors.problems import Problem
from rowcall.service.console.actions.accounts import account_actions, sign_ins
from rowcall.service.console.actions.actions import PATH as _ACTIONS
from rowcall.service.console.actions.actions import Actions
from rowcall.service.console.actions.cache import cache_actions
from rowcall.service.console.actions.queues import queue_actions
from rowcall.service.console.configuration import configuration
from rowcall.service.console.database import Database
from rowcall.service.console.diagnosis import diagnosis
from rowcall.service.console.endpoints import endpoint, endpoints
from rowcall.service.console.load import Load
from rowcall.service.console.records import Reloads, log_entries
from rowcall.service.console.sessions import BY_TOKEN, Sessions
from rowcall.service.console.sources import Sources
from rowcall.service.metrics.admin import MountRequest, MountResponse
from rowcall.service.options.server.metrics import OPEN_FILES, ConsoleOptions
from rowcall.service.snapshot.schema_snapshot import Difference

log = logging.getLogger("rowcall.client")

Headers = tuple[tuple[str, str], ...]

_PROTECTION: Headers = (
    ("content-security-policy", "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
)
_TYPES = {
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
}
_JSON = "application/json"
_HEADER = "x-rowcall-console"
_MOST_STREAMS = 8
"""Most event streams at a time; each has a thread of the admin listener, which has 16."""
_PREFIX = "/console/"
_API = "/console/api/"
_SESSION = "/console/api/session"

Query = Mapping[str, str]


class Console:
    """Serves the paths below `/console`. Its methods are called in threads of the admin listener."""

    def __init__(self, options: ConsoleOptions, token: str | None, sources: Sources) -> None:
        """token: bearer token of the admin listener, None if it has none."""
        self._options = options
        self._token = token
        self._sessions = Sessions(options.link_expires, options.session_expires)
        self._load = Load(sources)
        self._entries = sources.entries
        self._reloads = Reloads()
        self._closing = threading.Event()
        self._streams: set[object] = set()
        """A mark for each stream that is being sent."""
        self._cookie = "rowcall_console"
        self._files = {item.name: item.read_bytes() for item in files(__package__).joinpath("assets").iterdir()}
        database = Database(sources)
        actions = (
            *cache_actions(sources),
            *queue_actions(sources, database),
            *account_actions(self._sessions, database),
        )
        self._actions = Actions(actions, sources, allowed=options.allow_actions)
        self._data: Mapping[str, Callable[[Query], object]] = {
            "overview": lambda _query: self._load.overview(),
            "endpoints": lambda query: endpoints(sources.snapshot(), self._load.traffic(), query),
            "endpoint": lambda query: endpoint(sources.snapshot(), self._load.traffic(), query, database),
            "configuration": lambda query: configuration(sources.settings, query),
            "diagnosis": lambda _query: diagnosis(sources),
            "database": lambda _query: database.report(),
            "queues": lambda _query: database.queues(),
            "cache": lambda _query: self._load.cache(),
            "schema": lambda _query: self._reloads.report(sources.snapshot()),
            "log": lambda query: log_entries(self._entries, query),
            "sessions": lambda query: sign_ins(self._sessions, sources.keys(), database, query),
            "actions": lambda _query: self._actions.listed(),
        }

    def announce(self, url: str) -> None:
        """Log a link to sign in with. url: of the admin listener. The cookie is named after its port, because browsers
        send cookies to all ports of a host."""
        port = url.rpartition(":")[2]
        self._cookie = f"rowcall_console_{port}" if port.isdecimal() else "rowcall_console"
        log.info(
            "The console is at %s/console/sign-in#%s (for one sign-in, within %g minutes)",
            url,
            self._sessions.new_link(),
            self._options.link_expires / 60,
        )

    def close(self) -> None:
        """End all event streams."""
        self._closing.set()

    def note_reload(self, number: int, difference: Difference) -> None:
        self._reloads.add(number, difference)

    def __call__(self, request: MountRequest) -> MountResponse:
        """Raises `Problem`."""
        try:
            return self._respond(request)
        except Problem as problem:
            raise Problem(problem.status, problem.detail, headers=(*problem.headers, *_PROTECTION)) from None

    def _respond(self, request: MountRequest) -> MountResponse:
        name = request.path.removeprefix(_PREFIX)
        if request.path == _SESSION and request.method == "POST":
            return self._sign_in(request)
        if request.method == "GET" and name in OPEN_FILES:
            return self._file(name)
        operator = self._require_session(request)
        if request.path == _SESSION and request.method == "DELETE":
            return self._sign_out(request)
        if request.path.startswith(_ACTIONS) and request.method == "POST":
            name = request.path.removeprefix(_ACTIONS)
            return _response(200, orjson.dumps(self._actions.run(name, request.query, operator, request.address)))
        if request.method != "GET":
            raise Problem(405, f"{request.path[:200]} answers GET and HEAD", headers=(("allow", "GET, HEAD"),))
        if request.path == _API + "live":
            return self._stream(self._overviews())
        if request.path == _API + "log/live":
            return self._stream(self._log_events(request.query))
        source = self._data.get(request.path.removeprefix(_API)) if request.path.startswith(_API) else None
        if source is not None:
            return _response(200, orjson.dumps(source(request.query), default=str))
        return self._file(name or "index.html")

    # --- access ----------------------------------------------------------------------------------------------------

    def _sign_in(self, request: MountRequest) -> MountResponse:
        """Begin a session with the token of the link, or with that of the admin listener."""
        token = _bearer(request)
        if self._is_admin_token(token):
            session: str | None = self._sessions.new_session(BY_TOKEN, request.address)
        else:
            session = self._sessions.sign_in(token, request.address)
        if session is None:
            raise _unauthorized("the token of this link was used or has expired; a restart logs another one")
        log.info("An operator has signed in to the console")
        cookie = f"{self._cookie}={session}; Path=/console; HttpOnly; SameSite=Strict"
        members = {"token": session, "expiresIn": self._options.session_expires}
        return _response(200, orjson.dumps(members), headers=(("set-cookie", cookie),))

    def _sign_out(self, request: MountRequest) -> MountResponse:
        self._sessions.end(_bearer(request) or self._cookie_of(request))
        cookie = f"{self._cookie}=; Path=/console; HttpOnly; SameSite=Strict; Max-Age=0"
        return _response(200, b"{}", headers=(("set-cookie", cookie),))

    def _require_session(self, request: MountRequest) -> str:
        """Return the name of the operator. Raises `Problem`: 401 without a session, 403 for pages of other
        origins and for changes without the header that only pages of this origin can send."""
        token = _bearer(request)
        if token and self._is_admin_token(token):
            return BY_TOKEN
        if token and (session := self._sessions.find(token)) is not None:
            return session.operator
        session = self._sessions.find(self._cookie_of(request))
        if session is None:
            raise _unauthorized(
                "the console requires a session: open the link in the log of the service, or send Authorization: "
                f"Bearer with a token from POST {_SESSION}"
            )
        # A navigation from another site has no cookie (SameSite). Other ports of this host are the same site.
        site = request.headers.get("sec-fetch-site", "none")
        navigates = request.headers.get("sec-fetch-mode") == "navigate" and not request.path.startswith(_API)
        if site not in ("none", "same-origin") and not navigates:
            raise Problem(403, "pages of other origins cannot use the console")
        if request.method != "GET" and _HEADER not in request.headers:
            raise Problem(403, f"requests that change something need the header {_HEADER}, or a bearer token")
        return session.operator

    def _is_admin_token(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(token.encode(), self._token.encode())

    def _cookie_of(self, request: MountRequest) -> str:
        pairs = (pair.strip().partition("=") for pair in request.headers.get("cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self._cookie), "")

    # --- responses -------------------------------------------------------------------------------------------------

    def _file(self, name: str) -> MountResponse:
        """Return a file of the page. Raises `Problem` 404."""
        name = "sign-in.html" if name == "sign-in" else name
        body = self._files.get(name)
        if body is None:
            paths = ", ".join(_API + known for known in (*self._data, "live", "log/live"))
            raise Problem(404, f"the console has {_PREFIX} and {paths}")
        return _response(200, body, _TYPES[name.rpartition(".")[2]])

    def _stream(self, events: Iterator[bytes]) -> MountResponse:
        """Return a response with server-sent events. Raises `Problem` 503 if there are too many streams."""
        if len(self._streams) >= _MOST_STREAMS:
            raise Problem(503, f"there are {_MOST_STREAMS} event streams already", headers=(("retry-after", "5"),))
        return MountResponse(200, (("content-type", "text/event-stream"), *_PROTECTION), self._counted(events))

    def _counted(self, events: Iterator[bytes]) -> Iterator[bytes]:
        """Count the stream from its first part on: that of a HEAD request never begins."""
        mark = object()
        self._streams.add(mark)
        try:
            yield b"retry: 2000\n\n"
            yield from events
        finally:
            self._streams.discard(mark)

    def _overviews(self) -> Iterator[bytes]:
        while not self._closing.is_set():
            yield _event(orjson.dumps(self._load.overview()))
            self._closing.wait(1.0)

    def _log_events(self, query: Query) -> Iterator[bytes]:
        """Yield an event for each second with new entries, else a comment, which notices a client that is gone."""
        report = log_entries(self._entries, query)
        while not self._closing.is_set():
            yield _event(orjson.dumps(report)) if report["entries"] else b":\n\n"
            self._closing.wait(1.0)
            report = log_entries(self._entries, {**query, "after": str(report["last"])})


def _response(status: int, body: bytes, content_type: str = _JSON, headers: Headers = ()) -> MountResponse:
    return MountResponse(status, (("content-type", content_type), *headers, *_PROTECTION), body)


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


def _bearer(request: MountRequest) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""  # RFC 9110, 11.1


def _unauthorized(detail: str) -> Problem:
    return Problem(401, detail, headers=(("www-authenticate", 'Bearer realm="rowcall console"'),))
