"""An application that uses every capability with a route of its own, and a walk over all of its routes.

`settings` and `SQL` make the application. `walk` sends one request to each route that `rowcall --audit` lists, as each
caller, and returns what differs from the rules below. These are written by hand: nothing is computed from the product.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import jwt

from rowcall.core.webhooks.signatures import signature_headers
from rowcall.service.installation.script import install_sql
from tests.docs.pages import FOLDER, read_page
from tests.harness.command import rowcall
from tests.harness.console import console_client, console_link
from tests.harness.events import EventStream
from tests.harness.identity_provider import IdentityProvider
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.upstream import Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.external import BROWSER, LINKING, issuer_settings, session_of, sign_in
from tests.http.external import SQL as EXTERNAL_SQL
from tests.http.members import SECRET, bearer

_GET = "returns text language sql stable as $$ select 'classified' $$"
_POST = "returns text language sql as $$ select 'classified' $$"
_PASSKEYS = read_page(FOLDER / "passkeys.md")
_OPERATOR = "the operators of this service"
_WEBHOOKS = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

JOB = "0b5cf2a6-6f4c-4ad2-9d5d-0d8c9e1f7a11"
"""A job of another user. Its queue is classified."""

ACCESS = {
    "open": "allow_anonymous",
    "signed": "authorize",
    "boss": "authorize boss",
    "single": "authorize user:41",
    "recent": "authorize within 5 minutes",
    "proved": "second_factor",
    "careful": "authorize\nrefuse_impersonation",
    "wary": "allow_anonymous\nrefuse_impersonation",
    "granted": "authorize\nrole_from_claim",
    "claimed": "allow_anonymous\nrole_from_claim",
    "basic": "basic_auth kim swordfish",
    "tenanted": "authorize\ntenant from claim tenant",
}
"""Annotations by the first word of the paths that have them; `_RULES` says who is let in."""

SQL = (
    install_sql()
    + _PASSKEYS.sql
    + EXTERNAL_SQL.replace("allow_anonymous", "authorize")
    + "".join(
        f"""
create function {name}_get() {_GET};
comment on function {name}_get() is E'HTTP GET\n{lines}';
create function {name}_post(_v int) {_POST};
comment on function {name}_post(int) is E'HTTP POST\n{lines}';
"""
        for name, lines in ACCESS.items()
    )
    + f"""
create function boss_rows() returns setof text language sql stable as $$ select 'classified' $$;
comment on function boss_rows() is E'HTTP GET\nauthorize boss';
create function boss_cached() {_GET};
comment on function boss_cached() is E'HTTP GET\nauthorize boss\ncached';
create procedure boss_call() language sql as '';
comment on procedure boss_call() is E'HTTP POST\nauthorize boss';
create function boss_passed() returns void language sql as '';
comment on function boss_passed() is E'HTTP GET\nauthorize boss\nproxy';
create function boss_sent() {_POST};
comment on function boss_sent() is E'HTTP POST\nauthorize boss\nproxy_out POST';
create function boss_tool() {_GET};
comment on function boss_tool() is E'HTTP GET\nauthorize boss\nmcp Says something classified.';
create function boss_upload(_meta json default null) returns json language sql as 'select _meta';
comment on function boss_upload(json) is
    E'HTTP POST\nauthorize boss\nupload for file_system\nparam _meta is upload metadata\nresumable';
create function boss_heard() returns void language sql as '';
comment on function boss_heard() is E'HTTP GET\nauthorize boss\nsse_listen news heard';
create function basic_heard() returns void language sql as '';
comment on function basic_heard() is E'HTTP GET\nbasic_auth kim swordfish\nsse_listen news heard';
create function boss_event() returns void language plpgsql as $$ begin raise info 'classified'; end $$;
comment on function boss_event() is E'HTTP POST\nauthorize boss\nsse stream\nsse_scope matching';
create function open_event() returns void language plpgsql as $$ begin raise info 'for all'; end $$;
comment on function open_event() is E'HTTP POST\nallow_anonymous\nsse_publish\nsse_scope all';
create function hidden() {_GET};
comment on function hidden() is E'HTTP GET\nallow_anonymous\ninternal';
create function hooked(_event json default null) {_POST};
comment on function hooked(json) is
    E'HTTP POST\nallow_anonymous\nbody_parameter_name _event\nverify_webhook standard';
insert into rowcall.job (id, endpoint, queue, owner)
    values ('{JOB}', 'POST /api/nothing', 'classified', 'another user');
create function twin(_a int) {_GET};
comment on function twin(int) is E'HTTP GET /api/open-twin\nallow_anonymous';
create function twin(_a int, _b int) {_GET};
comment on function twin(int, int) is E'HTTP GET /api/open-twin\nauthorize boss';
create function pair(_a int) {_POST};
comment on function pair(int) is E'HTTP POST /api/signed-pair\nauthorize';
create function pair(_a int, _b int) {_POST};
comment on function pair(int, int) is E'HTTP POST /api/signed-pair\nauthorize boss';
create table boss_table (id int primary key, name text);
insert into boss_table values (1, 'classified');
comment on table boss_table is E'HTTP\nauthorize boss';
create function boss_saved() returns bytea language sql stable as $$ select 'classified'::bytea $$;
comment on function boss_saved() is E'HTTP GET\nauthorize boss\ndownload link 1 hour';
create function boss_brief() returns bytea language sql stable as $$ select 'classified'::bytea $$;
comment on function boss_brief() is E'HTTP GET\nauthorize boss\ndownload link 1 second';
create schema rest;
create table rest.mount (id int, name text);
insert into rest.mount values (1, 'classified');
grant usage on schema rest to pg_monitor;
grant select, insert on rest.mount to pg_monitor;
create function rest.mounted() returns text language sql stable as $$ select 'classified' $$;
create function enter(_id text, _scheme text) returns table (user_id text, scheme text) language sql as
    'select _id, _scheme';
comment on function enter(text, text) is E'HTTP POST /api/open-login\nlogin\nauthorize boss';
create function leave() returns setof text language sql as $$ select 'Cookies' $$;
comment on function leave() is E'HTTP POST /api/signed-logout\nlogout\nauthorize';
create function act_as() returns table (user_id text, scheme text) language sql as $$ select '42', 'Bearer' $$;
comment on function act_as() is E'HTTP POST\nimpersonate\nauthorize boss within 5 minutes';
create function act_as_any_user() returns table (user_id text, scheme text) language sql as $$ select '42', 'Bearer' $$;
comment on function act_as_any_user() is E'HTTP POST\nimpersonate\nauthorize';
create function be_oneself() returns table (user_id text, scheme text) language sql as $$ select '7', 'Bearer' $$;
comment on function be_oneself() is E'HTTP POST\nend_impersonation';
insert into member (id, name, handle) overriding system value values (41, 'kiri', '\\x29'), (42, 'mo', '\\x2a');
create function holds(_id text, _user text) returns boolean language sql as $$ select _id <> 'revoked' $$;
create table console_key (digest text);
create function find_key(_digest text) returns table (user_id int, user_roles text[]) language sql as
    $$ select 41, array['boss'] where _digest = encode(sha256('valid'), 'hex')
        or _digest in (select digest from console_key) $$;
create procedure open_key(_ended boolean) language sql as
    $$ delete from console_key; insert into console_key select encode(sha256('ending'), 'hex') where not _ended $$;
comment on procedure open_key(boolean) is E'HTTP POST\nallow_anonymous';
"""
)
_FILE = "-- HTTP GET /api/boss-file\n-- authorize boss\nselect 'classified';\n"


def settings(folder: Path, upstream: Upstream, provider: IdentityProvider) -> dict[str, str | None]:
    """Return the configuration of the application. folder: for its files."""
    upstream.on("*", answer("classified"))
    write_files(folder / "www", {"private/page.txt": "classified", "open.txt": "for all"})
    auth = "Service:AuthenticationOptions:"
    return {
        **_PASSKEYS.settings,
        "Service:RequiresAuthorization": None,
        "Auth:CookieAuth": "true",
        "Auth:BearerTokenAuth": "true",
        "Auth:JwtAuth": "true",
        "Auth:JwtSecret": SECRET,
        "Auth:JwtClockSkew": "0 seconds",
        "Auth:Schemes:BriefCookie:Type": "Cookies",
        "Auth:Schemes:BriefCookie:CookieValid": "1 second",
        "Auth:Schemes:BriefToken:Type": "BearerToken",
        "Auth:Schemes:BriefToken:BearerTokenExpire": "1 second",
        "Auth:SessionCheckCommand": "select holds($1, $2)",
        "Auth:ApiKey:Enabled": "true",
        "Auth:ApiKey:Command": "select * from find_key($1)",
        "Auth:ApiKey:CacheDuration": "0",
        "Auth:SecondFactor:Enabled": "true",
        "Auth:External:Enabled": "true",
        "Auth:External:LoginCommand": LINKING,
        "Auth:External:BackChannelLogoutCommand": "select 1",
        **issuer_settings("Id", provider, KeepTokens="true", BackChannelLogout="true"),
        auth + "NoteSignInTime": "true",
        auth + "DatabaseRoles:0": "pg_monitor",
        auth + "BasicAuth:SslRequirement": "Ignore",
        auth + "BasicAuth:UseDefaultPasswordHasher": "false",
        "Antiforgery:Enabled": "true",
        "Antiforgery:TokenPath": "/token",
        "CacheOptions:Enabled": "true",
        "CacheOptions:TagsPath": "/forget",
        "CacheOptions:TagsRoles:0": "boss",
        "CacheOptions:InvalidateCacheSuffix": "purge",
        "HealthChecks:Enabled": "true",
        "HealthChecks:RequireAuthorization": "true",
        "Stats:Enabled": "true",
        "Stats:AuthorizedRoles:0": "boss",
        "Admin:Url": f"http://127.0.0.1:{free_port()}",
        "Admin:BearerToken": _OPERATOR,
        "Metrics:Enabled": "true",
        "Console:Enabled": "true",
        "Console:AllowActions": "true",
        "Console:Roles:0": "boss",
        "Batch:Enabled": "true",
        "Docs:Enabled": "true",
        "Docs:RequireAuthorization": "true",
        "Jobs:Enabled": "true",
        "Jobs:Roles:0": "boss",
        "PostgRest:Enabled": "true",
        "PostgRest:Path": "/rest",
        "PostgRest:Schemas": "rest",
        "PostgRest:JwtSecret": SECRET,
        "PostgRest:JwtRoleClaimKey": "$.mount_role",
        "Webhooks:Secrets:standard": _WEBHOOKS,
        "Service:CrudSource:Enabled": "true",
        "Service:UploadOptions:Enabled": "true",
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": upstream.url,
        "Service:OpenApiOptions:Enabled": "true",
        "Service:OpenApiOptions:FileName": "",
        "Service:HttpFileOptions:Enabled": "true",
        "Service:HttpFileOptions:Option": "Endpoint",
        "Service:HttpFileOptions:Name": "requests",
        "Service:McpOptions:Enabled": "true",
        "Service:McpOptions:Authorization:RequireAuthorization": "true",
        "Service:McpOptions:Authorization:FilterToolsByRole": "true",
        "Service:McpOptions:Authorization:AuthorizationServers:0": provider.url,
        "Service:McpOptions:ToolSchemas:Enabled": "true",
        "Service:McpOptions:ToolSchemas:OpenAiFileName": "",
        "Service:McpOptions:ToolSchemas:AnthropicFileName": "",
        "Service:McpOptions:ToolSchemas:LlmsTxtFileName": "",
        "StaticFiles:Enabled": "true",
        "StaticFiles:RootPath": str(folder / "www"),
        "StaticFiles:AuthorizePaths:0": "/private/*",
        "StaticFiles:UnauthorizedRedirectPath": "",
        **file_settings(write_files(folder / "sql", {"boss_file.sql": _FILE})),
    }


# --- rules -----------------------------------------------------------------------------------------------------------

_UNKNOWN = frozenset(
    (
        "anonymous",
        "expired JWT",
        "expired cookie",
        "expired token",
        "forged JWT",
        "refresh JWT",
        "revoked session",
        "revoked key",
    )
)
"""Callers whose credentials are missing or not valid (any more)."""
_WITHOUT_SESSION = _UNKNOWN | {"HTTP Basic", "wrong HTTP Basic", "operator"}
"""Callers who are anonymous wherever HTTP Basic and the token of the admin listener are not taken."""
_WITHOUT_TOKEN = _WITHOUT_SESSION - {"refresh JWT", "revoked session", "revoked key"} | {"boss by key"}
"""Callers who have no valid token for PostgREST's interface."""
_USERS = frozenset(("plain", "stale", "one factor", "acting", "boss", "boss by key"))
CALLERS = _WITHOUT_SESSION | _USERS

Rule = Mapping[str, int]
"""Statuses by caller; callers who are missing are let in."""


def _rule(*forbidden: str, unauthorized: str | None = None) -> Rule:
    """Return the rule of a route for users. forbidden: users who get 403. unauthorized: a user who gets 401."""
    result = dict.fromkeys(_WITHOUT_SESSION, 401) | dict.fromkeys(forbidden, 403)
    return result if unauthorized is None else {**result, unauthorized: 401}


_SIGNED, _BOSS, _CAREFUL = _rule(), _rule("plain"), _rule("acting")
_ROLE = _rule("plain", "boss by key")
_CREDENTIALS = _rule("acting", "boss by key")
"""For changes of the credentials of a user."""
_RULES: Mapping[str, Rule] = {
    "open": {},
    "signed": _SIGNED,
    "boss": _BOSS,
    "single": _BOSS,
    "recent": {**_rule(), "stale": 401, "boss by key": 401},
    "proved": {**_rule(), "one factor": 401, "boss by key": 401},
    "careful": _CAREFUL,
    "wary": {"acting": 403},
    "granted": _ROLE,
    "tenanted": _ROLE,
    "claimed": _ROLE,
    "basic": {name: 401 for name in CALLERS if name != "HTTP Basic"},
}
"""Rules by the first word of the path of an endpoint."""
_NO_USER = _rule(*_USERS)
_CONSOLE_USERS = frozenset(("operator", "stale", "one factor", "boss", "boss by key"))
_JOB = dict.fromkeys(_WITHOUT_SESSION | {"plain"}, 404)
_OPERATORS = {name: 401 for name in CALLERS if name != "operator"}
_SINGLE: Mapping[str, Rule] = {
    "GET /api/open-twin public.twin(integer, integer)": _BOSS,
    "POST /api/signed-pair public.pair(integer, integer)": _BOSS,
    "POST /api/act-as": {**_rule("plain", "acting"), "stale": 401, "boss by key": 401},
    "POST /api/act-as-any-user": _NO_USER,
    "POST /api/be-oneself": _rule(*(_USERS - {"acting"})),
    "GET /api/me": _SIGNED,
    "GET /api/second-factor": _CAREFUL,
    "POST /api/second-factor/verify": {},
    "POST /api/sign-out": _SIGNED,
    "GET /who": _SIGNED,
    "* /api/boss-event/stream": {},
    "GET /private/*": _SIGNED,
    "POST /forget": _BOSS,
    "POST /batch": _BOSS,
    "POST /api/hooked": dict.fromkeys(CALLERS, 403),
    # Who may not see a job does not learn that it exists.
    "GET /jobs/{id}": _JOB,
    "DELETE /jobs/{id}": _JOB,
    "GET /jobs": _SIGNED,
    "GET /mcp": _SIGNED,
    "POST /mcp": _SIGNED,
    "tool boss_tool": _BOSS,
    # It describes what the role may use.
    "GET /rest/": dict.fromkeys(_WITHOUT_TOKEN, 401),
    "GET /metrics": _OPERATORS,
    "POST /profile": _OPERATORS,
    # Users have to begin a session of the console, which only those with its role can.
    "POST /console/api/session": {**dict.fromkeys(CALLERS - _CONSOLE_USERS, 401), "plain": 403},
}
_BELOW: Mapping[str, Rule] = {
    "/docs": _SIGNED,
    "/health": _SIGNED,
    "/stats/": _BOSS,
    "/api/passkey/add": _CREDENTIALS,
    "/api/second-factor": _CREDENTIALS,
    "/console/": _OPERATORS,
    # PostgREST's interface knows tokens and their role in the database, and neither sessions nor API keys.
    "/rest/": {**dict.fromkeys(_WITHOUT_TOKEN, 401), "plain": 403},
}

OPEN: Mapping[str, int] = {
    "GET /api/open-get": 200,
    "POST /api/open-post": 200,
    "POST /api/open-event": 204,
    "POST /api/open-key": 204,
    "GET /api/open-twin public.twin(integer)": 200,
    "GET /api/wary-get": 200,
    "POST /api/wary-post": 200,
    # Sign-in: the credentials are in the body.
    "POST /api/open-login": 200,
    "POST /api/second-factor/verify": 400,
    "POST /api/jwt/refresh": 401,
    "POST /api/token/refresh": 401,
    "POST /api/passkey/login": 400,
    "POST /api/passkey/login/options": 200,
    "POST /api/passkey/register": 400,
    "POST /api/passkey/register/options": 200,
    "GET /signin-id": 200,
    "POST /signin-id": 400,
    "POST /signin-id/backchannel-logout": 400,
    "POST /signin-id/logout": 303,
    "POST /signin-id/refresh": 401,
    "GET /token": 200,
    # Each request of a batch is authorized by itself, each job by its owner, and a webhook by its signature.
    "POST /batch": 401,
    "GET /jobs/{id}": 404,
    "DELETE /jobs/{id}": 404,
    "POST /api/hooked": 403,
    # Every caller may connect; the recipients are determined per event.
    "* /api/boss-event/stream": 200,
    # Documents about the service.
    "GET /.well-known/oauth-protected-resource/mcp": 200,
    "GET /llms.txt": 200,
    "GET /openapi.json": 200,
    "GET /requests_public.http": 200,
    "GET /requests_sql.http": 200,
    "GET /tools/anthropic.json": 200,
    "GET /tools/openai.json": 200,
    # The page to sign in to the console at, without data.
    **{f"GET /console/{name}": 200 for name in ("sign-in", "sign-in.js", "style.css", "icon.svg")},
    "GET *": 200,
}
"""The routes that are meant to be open, and the status that anonymous callers get there."""


UNSEEN = frozenset({("GET /jobs", "plain"), ("GET /rest/", "plain")})
"""Routes and callers who are let in, but see nothing that is classified."""


def rule_of(name: str) -> Rule:
    """Return the rule of a route."""
    _, _, path = name.partition(" ")
    if name in _SINGLE:
        return _SINGLE[name]
    if name in OPEN and OPEN[name] == 401:  # the refused credentials are those in the body
        return dict.fromkeys(CALLERS, 401)
    if name in OPEN and path.startswith("/console/"):
        return {}
    if (below := next((rule for start, rule in _BELOW.items() if path.startswith(start)), None)) is not None:
        return below
    if path.startswith("/api/") and (rule := _RULES.get(path.removeprefix("/api/").partition("-")[0])) is not None:
        return rule
    assert name in OPEN, f"{name} has no rule"
    return {}


# --- callers ---------------------------------------------------------------------------------------------------------

Headers = Mapping[str, str]


def _token(secret: str = SECRET, actor: Mapping[str, str] | None = None, **claims: object) -> dict[str, str]:
    now = int(time.time())
    content = {
        "user_id": "41",
        "user_roles": ["boss"],
        "session_id": "holds",
        "auth_time": str(now),
        "amr": ["pwd", "mfa"],
        "database_role": "pg_monitor",
        "mount_role": "pg_monitor",
        "tenant": "north",
        "nbf": now - 100,
        "iat": now - 100,
        "exp": now + 3600,
    }
    headers = None if actor is None else {"actor": actor}
    return bearer(jwt.encode({**content, **claims}, secret, algorithm="HS256", headers=headers))


class Callers:
    """The callers of a running service, and their headers."""

    def __init__(self, service: Service, provider: IdentityProvider | None = None) -> None:
        """provider: at which another user signs in, whose tokens each caller sends to `/signin-id/refresh`."""
        brief = self._sign_in(service, "41", "BriefToken").json()["accessToken"]
        cookie = self._sign_in(service, "41", "BriefCookie").headers["set-cookie"].partition(";")[0]
        self.links = [self._link(service, path) for path in ("/api/boss-brief", "/api/boss-saved")]
        """Links to downloads of the boss: one that expires within a second, and one that lasts."""
        self._signed_in = time.time()
        now = int(self._signed_in)
        self.headers: dict[str, Headers] = {
            "anonymous": {},
            "expired JWT": _token(exp=now - 60),
            "forged JWT": _token(secret=SECRET[::-1]),
            "refresh JWT": _token(token_type="refresh"),
            "revoked session": _token(session_id="revoked"),
            "revoked key": {"X-Api-Key": "revoked", **_token()},
            "HTTP Basic": {"Authorization": "Basic a2ltOnN3b3JkZmlzaA=="},
            "wrong HTTP Basic": {"Authorization": "Basic a2ltOnN3b3JkZmlzaGVz"},
            "operator": bearer(_OPERATOR),
            "plain": _token(
                user_id="42", user_roles=[], database_role="postgres", mount_role="pg_signal_backend", tenant=[]
            ),
            "stale": _token(auth_time=str(now - 301)),
            "one factor": _token(amr=["pwd"]),
            "acting": _token(actor={"impersonator_id": "7", "impersonation_ends_at": str(now + 600)}),
            "boss": _token(),
            "boss by key": {"X-Api-Key": "valid"},
            "expired token": bearer(brief),
            "expired cookie": {"Cookie": cookie},
        }
        assert self.headers.keys() == CALLERS
        # Refresh tokens of another user, and one that is no longer valid.
        self.refresh = self._sign_in(service, "99", "BearerToken").json()["refreshToken"]
        payload = {"user_id": "99", "token_type": "refresh", "nbf": now - 100, "iat": now - 100, "exp": now - 1}
        self.expired_refresh = jwt.encode(payload, SECRET, algorithm="HS256")
        self.stored_tokens = "" if provider is None else self._stored_tokens(service, provider)
        """The cookie with the tokens of the provider."""

    def wait_for_expiry(self) -> None:
        """Wait until the sessions that last for one second have ended."""
        wait_until(lambda: time.time() > self._signed_in + 1, "a second has passed")

    def _sign_in(self, service: Service, id: str, scheme: str) -> httpx.Response:
        with service.new_client() as client:
            response = client.post("/api/open-login", json={"id": id, "scheme": scheme})
        assert response.status_code == 200, response.text
        return response

    def _link(self, service: Service, path: str) -> str:
        """Return the link; the path itself if none is issued, at which the walk finds that it is not open."""
        response = service.get(path, params={"link": ""}, headers=_token())
        return str(response.json()["url"]) if response.status_code == 200 else path

    def _stored_tokens(self, service: Service, provider: IdentityProvider) -> str:
        provider.client.redirect_uris.add(f"{service.url}/signin-id")
        cookies = session_of(sign_in(service, "/signin-id"))["Cookie"].split("; ")
        return "; ".join(cookie for cookie in cookies if "tokens" in cookie)


# --- requests --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Route:
    """A route as `rowcall --audit --json` lists it."""

    method: str
    path: str
    part: str
    anonymous: bool

    @property
    def name(self) -> str:
        """Method and path, and of overloads also the routine. Paths of the admin listener are without its address."""
        path = httpx.URL(self.path).path if self.path.startswith("http:") else self.path
        overload = f" {self.part}" if self.part.startswith(("public.twin", "public.pair")) else ""
        return f"{self.method} {path}{overload}"


_CONSOLE_ENDPOINT = {"method": "GET", "path": "/api/open-get"}
TOOL = Route("tool", "boss_tool", "", anonymous=False)
"""A tool call has the status of its refusal, as if it had a route."""
_MOUNTED = (("GET", ""), ("GET", "mount"), ("POST", "mount"), ("GET", "rpc/mounted"), ("POST", "rpc/mounted"))


def routes_of(service: Service, **environment: str) -> list[Route]:
    """Return every route of a running service. environment: of the command that lists them."""
    done = rowcall(service.folder, "--audit", "--json", *service.arguments(), **environment)
    listed = json.loads(done.stdout)["routes"]
    routes = [Route(item["method"], item["path"], item["part"], item["anonymous"]) for item in listed]
    return [*(single for route in routes for single in _single_routes(route)), TOOL]


_CONSOLE = "/console/*"


def _single_routes(route: Route) -> Iterator[Route]:
    """Yield the route, but in place of all routes of the console each one that the console itself lists, and in place
    of PostgREST's interface some requests to it."""
    if route.path == "/rest/*":
        yield from (replace(route, method=method, path=f"/rest/{name}") for method, name in _MOUNTED)
        return
    if not route.path.endswith(_CONSOLE):
        yield route
        return
    address = route.path.removesuffix(_CONSOLE)
    with httpx.Client(base_url=address, headers=bearer(_OPERATOR), trust_env=False) as client:
        paths = re.findall(r"/console/[a-z/-]*", client.get("/console/nothing").json()["detail"])
        actions = [item["name"] for item in client.get("/console/api/actions").json()["actions"]]
    assert len(paths) > 10
    assert len(actions) > 3
    yield from (replace(route, method="GET", path=address + path) for path in paths)
    yield from (replace(route, method="POST", path=f"{address}/console/api/actions/{name}") for name in actions)
    yield replace(route, method="DELETE", path=f"{address}/console/api/session")


_TUS = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}


def _signed(body: bytes, age: float = 0.0) -> dict[str, str]:
    """Return the headers of a webhook that was signed some seconds ago."""
    return dict(signature_headers([_WEBHOOKS], "1", int(time.time() - age), body))


def _call(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _request(route: Route, callers: Callers) -> tuple[str, str, dict[str, Any]]:
    """Return method, path and options of a request that the route answers if its caller is let in."""
    name, path = route.name, route.path
    options: dict[str, Any] = {} if route.method in ("GET", "HEAD", "OPTIONS", "*") else {"json": {}}
    if "_post(" in route.part:
        options["json"] = {"v": 1}
    if "{upload}" in path:
        options = {"headers": _TUS}
    elif "/api/boss-table" in path:
        options = {"params": {"id": "2"}} if route.method == "DELETE" else {"json": {"id": 1, "name": "classified"}}
        options = {} if route.method == "GET" else options
    special: Mapping[str, dict[str, Any]] = {
        "GET /api/open-twin public.twin(integer)": {"params": {"a": "1"}},
        "GET /api/open-twin public.twin(integer, integer)": {"params": {"a": "1", "b": "2"}},
        "POST /api/signed-pair public.pair(integer)": {"json": {"a": 1}},
        "POST /api/signed-pair public.pair(integer, integer)": {"json": {"a": 1, "b": 2}},
        "POST /api/open-login": {"json": {"id": "41", "scheme": "Bearer"}},
        "POST /api/token/refresh": {"json": {"refresh": callers.refresh}},
        "POST /api/jwt/refresh": {"json": {"refreshToken": callers.expired_refresh}},
        "POST /api/passkey/register/options": {"json": {"name": "new user"}},
        "POST /signin-id": {"json": {"code": "x", "state": "x"}, "headers": {"Sec-Fetch-Site": "same-origin"}},
        "POST /signin-id/refresh": {"headers": {**BROWSER, "Cookie": callers.stored_tokens}},
        "POST /rest/mount": {"json": {"id": 2, "name": "a name"}},
        "POST /api/hooked": {"json": {}, "headers": _signed(b"another body")},
        "POST /api/open-key": {"json": {"ended": True}},
        "POST /api/boss-upload": {"files": [("file", b"x")]},
        "POST /mcp": {"json": _call("ping")},
        "POST /batch": {"json": [{"method": "GET", "path": "/api/boss-get"}]},
        "POST /profile": {"params": {"seconds": "0"}},
        "POST /console/api/session": {"headers": {"X-Rowcall-Console": "1"}},
        **{f"GET /console/api/{name}": {"params": _CONSOLE_ENDPOINT} for name in ("endpoint", "plan")},
    }
    path = path.replace("{id}", JOB).replace("{upload}", "0" * 32).replace("/private/*", "/private/page.txt")
    method = "GET" if route.method == "*" else route.method
    return method, "/open.txt" if path == "*" else path, special.get(name, options)


LET_IN: Mapping[str, int] = {
    "GET /mcp": 405,
    **{f"{method} /api/boss-upload/resumable/{{upload}}": 404 for method in ("DELETE", "HEAD", "PATCH")},
    "POST /api/boss-upload/resumable/{upload}": 405,
}
"""Statuses of callers who are let in, where they are those of errors of the server or of a wrong request."""


def _status(client: httpx.Client, route: Route, callers: Callers, headers: Headers) -> tuple[int, str]:
    """Send a request. Return status and body; of an event stream that is open, no body."""
    if route == TOOL:
        return _tool_status(client, headers)
    method, path, options = _request(route, callers)
    added = options.pop("headers", {})
    cookies = [cookie for item in (headers, added) if (cookie := item.get("Cookie"))]
    headers = {**headers, **added, **({"Cookie": "; ".join(cookies)} if cookies else {})}
    with client.stream(method, path, headers=headers, **options) as response:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            return response.status_code, ""
        response.read()
    for cookie in [item for item in client.cookies.jar if item.path == "/console"]:
        # The session of the console is not that of the caller, whose other requests have only their own credentials.
        client.cookies.jar.clear(cookie.domain, cookie.path, cookie.name)
    return response.status_code, response.text


def _tool_status(client: httpx.Client, headers: Headers) -> tuple[int, str]:
    listed = client.post("/mcp", json=_call("tools/list"), headers=headers)
    called = client.post("/mcp", json=_call("tools/call", name=TOOL.path, arguments={}), headers=headers)
    if called.status_code != 200:
        return called.status_code, listed.text
    result = called.json()["result"]
    text = result["content"][0]["text"]
    return json.loads(text)["status"] if result["isError"] else 200, listed.text + text


# --- the walk --------------------------------------------------------------------------------------------------------


def walk(service: Service, routes: list[Route], provider: IdentityProvider, *, http2: bool) -> Iterator[str]:
    """Yield what differs from the rules: a line for each route and caller."""
    listed = {route.name for route in routes if route.anonymous}
    yield from (f"{name} is listed as open" for name in sorted(listed - OPEN.keys()))
    yield from (f"{name} is not listed as open" for name in sorted(OPEN.keys() - listed))
    callers = Callers(service, provider)
    if http2:  # the admin listener speaks HTTP/1.1 only
        routes = [route for route in routes if not route.path.startswith("http:")]
    for caller, headers in callers.headers.items():
        if caller.startswith("expired"):
            callers.wait_for_expiry()
        with service.new_client(http1=not http2, http2=http2) as client:
            for route in routes:
                name, expected = route.name, rule_of(route.name).get(caller)
                if caller == "anonymous" and route.method == "GET":
                    yield from _head(client, route, callers, OPEN.get(name, expected))
                status, text = _status(client, route, callers, headers)
                if caller == "anonymous" and name in OPEN and status != OPEN[name]:
                    yield f"{name}, {caller}: {status} instead of {OPEN[name]}"
                elif expected is not None and status != expected:
                    yield f"{name}, {caller}: {status} instead of {expected}"
                elif (expected is not None or (name, caller) in UNSEEN) and (
                    "classified" in text or "boss_tool" in text
                ):
                    yield f"{name}, {caller}: {status} with {text[:100]}"
                elif expected is None and status != LET_IN.get(name, status):
                    yield f"{name}, {caller}: {status} instead of {LET_IN[name]}"
                elif expected is None and name not in LET_IN and (status in (401, 403, 404, 405) or status >= 500):
                    yield f"{name}, {caller}: {status}: {text[:200]}"
            yield from _refused(client, callers, caller)
    yield from _ended_operator(service, routes)


def _refused(client: httpx.Client, callers: Callers, caller: str) -> Iterator[str]:
    """Yield the requests with a wrong status that no caller may send. None of them is the only one to its route."""
    callers.wait_for_expiry()
    brief, saved = callers.links
    hidden = {"method": "GET", "path": "/api/hidden"}
    unsigned: dict[str, str] = {}
    refused: dict[str, tuple[int, str, str, dict[str, Any]]] = {
        "/api/hidden": (404, "GET", "/api/hidden", {}),
        "/api/hidden in a batch": (404, "POST", "/batch", {"json": [hidden]}),
        "an expired link": (403, "GET", brief, {}),
        "a link to another file": (403, "GET", saved.replace("/api/boss-saved", "/api/boss-brief"), {}),
        "an unsigned webhook": (400, "POST", "/api/hooked", {"content": b"{}", "headers": unsigned}),
        "an old webhook": (403, "POST", "/api/hooked", {"content": b"{}", "headers": _signed(b"{}", age=86_400)}),
    }
    for name, (expected, method, path, options) in refused.items():
        headers = {**options.pop("headers", {}), **callers.headers[caller]}
        status = client.request(method, path, headers=headers, **options).status_code
        if status != expected:
            yield f"{name}, {caller}: {status}"


def _ended_operator(service: Service, routes: list[Route]) -> Iterator[str]:
    """Yield whether a user of the service runs an action of the console after the end of the session at the service."""
    address = next((route.path.partition("/console/")[0] for route in routes if "/console/" in route.path), None)
    if address is None:
        return
    key = {"X-Api-Key": "ending"}
    with httpx.Client(base_url=address, trust_env=False) as client:
        assert service.post("/api/open-key", json={"ended": False}).status_code == 204
        session = client.post("/console/api/session", headers=key)
        assert session.status_code == 200, session.text
        assert service.post("/api/open-key", json={"ended": True}).status_code == 204
        client.cookies.clear()
        status = client.post(f"{_ACTION}?id=none", headers=bearer(session.json()["token"])).status_code
    if status != 401:
        yield f"an operator without a session at the service: {status}"


_ACTION = "/console/api/actions/end-session"


READ_ONLY = {"Console:AllowActions": "false"}


def read_only_console(service: Service) -> Iterator[str]:
    """Yield whether an operator runs an action without `Console:AllowActions`."""
    with console_client(console_link(service)[0], _OPERATOR) as client:
        status = client.post(f"{_ACTION}?id=none").status_code
    if status != 403:
        yield f"an action of a console that is read-only: {status}"


def _head(client: httpx.Client, route: Route, callers: Callers, expected: int | None) -> Iterator[str]:
    """Yield whether HEAD of a route with GET has another status than expected."""
    _, path, options = _request(route, callers)
    status = client.head(path, **options).status_code
    if status != expected:
        yield f"HEAD of {route.name}, anonymous: {status} instead of {expected}"


def heard(service: Service) -> dict[str, list[str]]:
    """Return the events that callers receive on an open stream, one of which is for bosses."""
    headers = Callers(service).headers
    names = ("anonymous", "plain", "revoked session", "boss")
    with ExitStack() as stack:
        streams = {
            name: stack.enter_context(EventStream(service, "/api/boss-event/stream", headers[name])) for name in names
        }
        client = stack.enter_context(service.new_client())
        for path in ("/api/boss-event", "/api/open-event"):
            assert client.post(path, headers=headers["boss"]).status_code == 204
        for stream in streams.values():
            stream.wait(partial(_has_last, stream), "the second event")
        return {name: stream.messages for name, stream in streams.items()}


def _has_last(stream: EventStream) -> bool:
    return "for all" in stream.messages
