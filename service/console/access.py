"""Who may use the console: sign in and out, and the check of each request.

A session is begun by the link of the log, by the token of the admin listener, or by a session of a user of the service
who has one of the roles. Pages send it as a cookie, programs as a bearer token.
"""

from __future__ import annotations

import hmac
import logging
import time

import orjson

from rowcall.core.errors.problems import Problem, unavailable
from rowcall.core.operations.console import ConsoleOptions
from rowcall.service.console.sessions import BY_TOKEN, Headers, Session, Sessions
from rowcall.service.console.sources import Sources
from rowcall.service.metrics.admin import MountRequest

log = logging.getLogger("rowcall.client")

HEADER = "x-rowcall-console"
API = "/console/api/"
SESSION = f"{API}session"
RECHECK = 60.0
"""Seconds after which the session of a user of the service is checked again; before an action it is always checked."""


class Gate:
    """Checks who may use the console, for all requests of the admin listener. Thread-safe: the sessions themselves are
    in `Sessions`; the gate stores only when the user of each session was last checked."""

    def __init__(self, options: ConsoleOptions, token: str | None, sessions: Sessions, sources: Sources) -> None:
        """token: bearer token of the admin listener, None if it has none."""
        self._options = options
        self._token = token
        self._sessions = sessions
        self._sources = sources
        self._checked: dict[str, float] = {}
        """When the user of a session was authenticated, by id of the session."""
        api_keys = sources.options.auth.api_keys
        self._credentials = ("authorization", "cookie", *(() if api_keys is None else (api_keys.header.lower(),)))
        self.cookie = "rowcall_console"

    def sign_in(self, request: MountRequest) -> tuple[bytes, Headers]:
        """Begin a session, and return the body and headers of the response.

        Raises `Problem`: 401 for an invalid token, 403 for a user without one of the roles, and for a cookie without
        the header that only pages of this origin can send, 503 if no worker can identify the caller.
        """
        token = _bearer(request)
        if self._is_admin_token(token):
            secret: str | None = self._sessions.new_session(BY_TOKEN, request.address)
        else:
            secret = self._sessions.sign_in(token, request.address)
        if secret is None and self._options.roles:
            secret = self._by_role(request)
        if secret is None:
            raise _unauthorized_problem("the token of this link was used or has expired; a restart logs another one")
        session = self._sessions.find(secret)
        seconds = self._options.session_expires if session is None else session.expires - session.began
        log.info("An operator has signed in to the console")
        cookie = f"{self.cookie}={secret}; Path=/console; HttpOnly; SameSite=Strict"
        return orjson.dumps({"token": secret, "expiresIn": seconds}), (("set-cookie", cookie),)

    def sign_out(self, request: MountRequest) -> Headers:
        """End the sessions of the bearer token and of the cookie, and return headers that remove the cookie. The user
        of the session is not checked.

        Raises `Problem`: 401 without a session, and 403 as `require_session` does.
        """
        self._session_of(request)
        for secret in (_bearer(request), self._cookie_of(request)):
            self._sessions.end(secret)
        return (("set-cookie", f"{self.cookie}=; Path=/console; HttpOnly; SameSite=Strict; Max-Age=0"),)

    def require_session(self, request: MountRequest) -> str:
        """Return the name of the operator who makes the request: of its session, by bearer token or cookie, or
        `BY_TOKEN` for the token of the admin listener, which needs no session.

        Raises `Problem`: 401 without a session, 503 if no worker can check the user of the session. With a cookie also
        403: for requests from pages of other origins, except navigations to pages of the console, and for changes
        without the header that only pages of this origin can send.
        """
        session = self._session_of(request)
        if session is None:
            return BY_TOKEN
        self._check_user(session, always=request.method != "GET")
        return session.operator

    def is_session_valid(self, request: MountRequest) -> bool:
        """Return whether the session of an open stream is still valid; False also if no worker can check its user. The
        user is checked each `RECHECK` seconds only, even if a POST opened the stream. request: the one that opened it.
        """
        try:
            session = self._session_of(request)
            if session is not None:
                self._check_user(session, always=False)
        except Problem:
            return False
        return True

    def _session_of(self, request: MountRequest) -> Session | None:
        """Return the session of the bearer token, or else that of the cookie; None for the token of the admin listener.
        Raises `Problem`: 401 without a session, and 403 as `require_session` does."""
        token = _bearer(request)
        if token and self._is_admin_token(token):
            return None
        session = self._sessions.find(token) if token else None
        return session or self._by_cookie(request)

    def _by_cookie(self, request: MountRequest) -> Session:
        """Return the session of the cookie. Raises `Problem`: 401 without one, 403 as `require_session` does."""
        session = self._sessions.find(self._cookie_of(request))
        if session is None:
            raise _unauthorized_problem(
                "the console requires a session: open the link in the log of the service, or send Authorization: "
                f"Bearer with a token from POST {SESSION}"
            )
        # A navigation from another site has no cookie (SameSite). Other ports of this host are the same site.
        site = request.headers.get("sec-fetch-site", "none")
        navigates = request.headers.get("sec-fetch-mode") == "navigate" and not request.path.startswith(API)
        if site not in ("none", "same-origin") and not navigates:
            raise Problem(403, "pages of other origins cannot use the console")
        if request.method != "GET":
            _require_header(request)
        return session

    def _by_role(self, request: MountRequest) -> str | None:
        """Begin a session for a user of the service and return its secret; None for an anonymous caller.

        Raises `Problem`: 403 for a user without one of the roles, and for a cookie without the header that pages of
        other origins cannot send; 503 if no worker answers.
        """
        credentials = tuple((name, request.headers[name]) for name in self._credentials if name in request.headers)
        if not credentials:
            return None
        if [name for name, _ in credentials] == ["cookie"]:
            _require_header(request)  # browsers send no other credentials by themselves
        caller = self._sources.run(self._sources.identify(credentials, request.address))
        if caller is None:
            raise unavailable("no worker has answered in time")
        if caller.name is None:
            return None
        if self._options.roles.isdisjoint(caller.roles):
            raise Problem(403, f"the console requires one of these roles: {', '.join(sorted(self._options.roles))}")
        longest = max(0.0, caller.expires - time.time())
        secret = self._sessions.new_session(caller.name, request.address, credentials, longest)
        session = self._sessions.find(secret)
        if session is not None:
            self._note_check(session)
        return secret

    def _check_user(self, session: Session, *, always: bool) -> None:
        """Check that the user of the service to whom the session belongs still has a session and a role there; if not,
        end this session. Sessions that belong to no such user are not checked.

        always: check now (before an action); otherwise only if the last check was `RECHECK` seconds ago. Raises
        `Problem`: 401 if the session is ended, 503 if no worker answers.
        """
        if not session.credentials:
            return
        if not always and time.monotonic() - self._checked.get(session.id, 0.0) < RECHECK:
            return
        caller = self._sources.run(self._sources.identify(session.credentials, session.address))
        if caller is None:
            raise unavailable("no worker has answered in time")
        if caller.name is None or self._options.roles.isdisjoint(caller.roles):
            self._sessions.end_named(session.id)
            raise _unauthorized_problem(
                "the session at the service has ended, or its user has no role of Console:Roles any more"
            )
        self._note_check(session)

    def _note_check(self, session: Session) -> None:
        """Record that the user of the session was checked now, and drop the times of sessions that have ended."""
        running = {item.id for item in self._sessions.list_sessions()}
        self._checked = {name: at for name, at in self._checked.copy().items() if name in running}
        self._checked[session.id] = time.monotonic()

    def _is_admin_token(self, token: str) -> bool:
        return self._token is not None and hmac.compare_digest(token.encode(), self._token.encode())

    def _cookie_of(self, request: MountRequest) -> str:
        pairs = (pair.strip().partition("=") for pair in request.headers.get("cookie", "").split(";"))
        return next((value for name, _, value in pairs if name == self.cookie), "")


def _require_header(request: MountRequest) -> None:
    """Raise `Problem` 403 without the header that pages of other origins cannot send."""
    if HEADER not in request.headers:
        raise Problem(403, f"requests that change something need the header {HEADER}, or a bearer token")


def _bearer(request: MountRequest) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""  # RFC 9110, 11.1


def _unauthorized_problem(detail: str) -> Problem:
    return Problem(401, detail, headers=(("www-authenticate", 'Bearer realm="rowcall console"'),))
