"""The routes of the console: signing in, files of the page, and data as JSON and as server-sent events.

Every route requires a session (`service.console.access`), except the page to sign in at with its files, and the request
that begins a session.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files

import orjson

from rowcall.core.errors.problems import Problem
from rowcall.core.operations.console import OPEN_FILES, ConsoleOptions
from rowcall.service.console.access import API, SESSION, Gate
from rowcall.service.console.actions.accounts import account_actions, sign_ins
from rowcall.service.console.actions.action import Results
from rowcall.service.console.actions.actions import PATH as _ACTIONS
from rowcall.service.console.actions.actions import Actions
from rowcall.service.console.actions.cache import cache_actions
from rowcall.service.console.actions.events import event_actions
from rowcall.service.console.actions.queues import queue_actions
from rowcall.service.console.actions.send_request import request_actions
from rowcall.service.console.activity.events import Events
from rowcall.service.console.activity.traces import trace, traces
from rowcall.service.console.configuration import configuration
from rowcall.service.console.database import Database
from rowcall.service.console.diagnosis import diagnosis
from rowcall.service.console.endpoints import endpoint, endpoints, named_endpoint
from rowcall.service.console.hosts.hosts import Hosts
from rowcall.service.console.load import Load
from rowcall.service.console.plans import plan
from rowcall.service.console.records import Reloads, log_entries
from rowcall.service.console.sessions import Sessions
from rowcall.service.console.sources import Sources
from rowcall.service.console.traffic import traffic_page
from rowcall.service.metrics.admin import MountRequest, MountResponse
from rowcall.service.snapshot.schema_snapshot import Difference, SchemaSnapshot

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
_MOST_STREAMS = 8
"""Most event streams at a time; each has a thread of the admin listener, which has 16."""
_PREFIX = "/console/"
_LIVE = ("live", "events/live", "log/live")
"""Names of event streams."""

Query = Mapping[str, str]


class Console:
    """Serves the paths below `/console`. Requests (`__call__`) run in threads of the admin listener; the supervisor
    calls the other public methods in its event loop."""

    def __init__(self, options: ConsoleOptions, token: str | None, sources: Sources) -> None:
        """token: bearer token of the admin listener, None if it has none."""
        self._options = options
        self._sessions = Sessions(options.link_expires, options.session_expires)
        self._gate = Gate(options, token, self._sessions, sources)
        self._load = Load(sources)
        self.hosts = Hosts(options, sources)
        self._events = Events(sources)
        self._entries = sources.entries
        self._reloads = Reloads(sources)
        self._closing = threading.Event()
        self._streams: dict[object, MountRequest] = {}
        """The request of each stream that is being sent, by a mark."""
        self._files = {item.name: item.read_bytes() for item in files(__package__).joinpath("assets").iterdir()}
        if options.roles:
            self._files["sign-in.html"] = self._files["sign-in.html"].replace(b'id="own" hidden', b'id="own"')
        database = Database(sources)
        actions = (
            *cache_actions(sources),
            *queue_actions(sources, database),
            *event_actions(sources),
            *account_actions(self._sessions, database),
            *request_actions(sources),
        )
        self._actions = Actions(actions, sources, allowed=options.allow_actions)
        self._data: Mapping[str, Callable[[Query], object]] = {
            "overview": lambda _query: self._load.overview(),
            "hosts": lambda _query: self.hosts.report(),
            "endpoints": lambda query: endpoints(sources.snapshot(), self._load, query),
            "endpoint": lambda query: endpoint(sources, self._load, query, database),
            "plan": lambda query: plan(named_endpoint(sources.snapshot(), query)[0], sources),
            "traffic": lambda query: traffic_page(*self._load.last_hour(), query),
            "configuration": lambda query: configuration(sources.settings, query),
            "diagnosis": lambda _query: diagnosis(sources),
            "database": lambda _query: database.report(),
            "queues": lambda _query: database.queues(),
            "cache": lambda _query: self._load.cache(),
            "events": lambda _query: self._events.report(),
            "traces": lambda query: traces(sources, query),
            "trace": lambda query: trace(sources, query),
            "schema": lambda _query: self._reloads.report(),
            "log": lambda query: log_entries(self._entries, query),
            "sessions": lambda query: sign_ins(self._sessions, sources.keys(), database, query),
            "actions": lambda _query: self._actions.list_actions(),
        }

    def announce(self, url: str) -> None:
        """Log a link to sign in with, and name the session cookie after the port of `url`, because browsers send
        cookies to all ports of a host. url: of the admin listener."""
        port = url.rpartition(":")[2]
        self._gate.cookie = f"rowcall_console_{port}" if port.isdecimal() else "rowcall_console"
        log.info(
            "The console is at %s/console/sign-in#%s (for one sign-in, within %g minutes)",
            url,
            self._sessions.new_link(),
            self._options.link_expires / 60,
        )

    def close(self) -> None:
        """End all event streams, and stop asking other hosts for their state and answering their questions. Called in
        the event loop."""
        self._closing.set()
        self.hosts.close()

    def note_reload(self, before: SchemaSnapshot, after: SchemaSnapshot, difference: Difference) -> None:
        """Store what a reload has changed."""
        self._reloads.add(before, after, difference)

    def __call__(self, request: MountRequest) -> MountResponse:
        """Return the response to a request. Raises `Problem` for a request that is refused, with the security headers
        of the console added.
        """
        try:
            return self._respond(request)
        except Problem as problem:
            raise Problem(problem.status, problem.detail, headers=(*problem.headers, *_PROTECTION)) from None

    def _respond(self, request: MountRequest) -> MountResponse:
        """Return the response to a request: of the session, an action, an event stream, data or a file. Raises
        `Problem`.
        """
        name = request.path.removeprefix(_PREFIX)
        if request.path == SESSION and request.method == "POST":
            body, headers = self._gate.sign_in(request)
            return _response(200, body, headers=headers)
        if request.method == "GET" and name in OPEN_FILES:
            return self._file(name)
        if request.path == SESSION and request.method == "DELETE":
            return _response(200, b"{}", headers=self._gate.sign_out(request))
        operator = self._gate.require_session(request)
        if request.path.startswith(_ACTIONS) and request.method == "POST":
            name = request.path.removeprefix(_ACTIONS)
            values = {**request.query, **_members(request.body())}
            result = self._actions.run(name, values, operator, request.address)
            if isinstance(result, dict):
                return _response(200, orjson.dumps(result))
            return self._stream(request, self._results(request, result))
        if request.method != "GET":
            raise Problem(405, f"{request.path[:200]} answers GET and HEAD", headers=(("allow", "GET, HEAD"),))
        if request.path == API + "live":
            return self._stream(request, self._reports(request, self._overview_with_hosts))
        if request.path == API + "events/live":
            return self._stream(request, self._reports(request, self._events.report))
        if request.path == API + "log/live":
            return self._stream(request, self._log_events(request))
        source = self._data.get(request.path.removeprefix(API)) if request.path.startswith(API) else None
        if source is not None:
            return _response(200, orjson.dumps(source(request.query), default=str))
        return self._file(name or "index.html")

    # --- responses -------------------------------------------------------------------------------------------------

    def _file(self, name: str) -> MountResponse:
        """Return a file of the page. Raises `Problem` 404 if there is none with this name."""
        name = "sign-in.html" if name == "sign-in" else name
        body = self._files.get(name)
        if body is None:
            paths = ", ".join(API + known for known in (*self._data, *_LIVE))
            raise Problem(404, f"the console has {_PREFIX} and {paths}")
        return _response(200, body, _TYPES[name.rpartition(".")[2]])

    def _stream(self, request: MountRequest, events: Iterator[bytes]) -> MountResponse:
        """Return a response with server-sent events. Raises `Problem` 503 if there are too many streams; those whose
        clients are gone, but that have not ended yet, are not counted.
        """
        if sum(other.connected() for other in (*self._streams.values(),)) >= _MOST_STREAMS:
            raise Problem(503, f"there are {_MOST_STREAMS} event streams already", headers=(("retry-after", "5"),))
        return MountResponse(
            200, (("content-type", "text/event-stream"), *_PROTECTION), self._count_stream(request, events)
        )

    def _count_stream(self, request: MountRequest, events: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the parts of a stream, and count the stream as open from the first part to the end. The stream of a
        HEAD request never begins, and is not counted.
        """
        mark = object()
        self._streams[mark] = request
        try:
            yield b"retry: 2000\n\n"
            yield from events
        finally:
            del self._streams[mark]

    def _overview_with_hosts(self) -> dict[str, object]:
        self.hosts.latest()  # asks other hosts while the first rates are measured
        return {**self._load.overview(), "hosts": self.hosts.latest()}

    def _goes_on(self, request: MountRequest) -> bool:
        """Return whether a stream continues: the service is not stopping, the client is connected, and the session of
        the request is valid.
        """
        return not self._closing.is_set() and request.connected() and self._gate.is_session_valid(request)

    def _reports(self, request: MountRequest, report: Callable[[], object]) -> Iterator[bytes]:
        """Yield a report as an event each second."""
        while self._goes_on(request):
            yield _event(orjson.dumps(report()))
            self._closing.wait(1.0)

    def _results(self, request: MountRequest, results: Results) -> Iterator[bytes]:
        """Yield each result of an action as an event, and a comment for an empty one."""
        try:
            for result in results:
                if not self._goes_on(request):
                    return
                yield _event(orjson.dumps(result)) if result else b":\n\n"
        finally:
            close = getattr(results, "close", None)
            if close is not None:
                close()

    def _log_events(self, request: MountRequest) -> Iterator[bytes]:
        """Yield, each second, an event with the new log entries; without new ones a comment, so that sending it shows
        whether the client is still connected. Raises `Problem` 400 for an invalid query, when the first event is read.
        """
        report = log_entries(self._entries, request.query)
        while self._goes_on(request):
            yield _event(orjson.dumps(report)) if report["entries"] else b":\n\n"
            self._closing.wait(1.0)
            report = log_entries(self._entries, {**request.query, "after": str(report["last"])})


def _members(body: bytes) -> Mapping[str, str]:
    """Return the parameters that a request has in its body. Raises `Problem` 400 unless it is a JSON object
    of strings.
    """
    if not body:
        return {}
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Problem(400, f"the body is no JSON: {error}") from None
    if not isinstance(members, dict) or not all(isinstance(value, str) for value in members.values()):
        raise Problem(400, "the body is no JSON object whose members are strings")
    return members


def _response(status: int, body: bytes, content_type: str = _JSON, headers: Headers = ()) -> MountResponse:
    return MountResponse(status, (("content-type", content_type), *headers, *_PROTECTION), body)


def _event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"
