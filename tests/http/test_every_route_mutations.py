"""The walk over all routes notices if any single access check is removed: each test starts a service without one.

`make thorough` takes all of them, which needs minutes; CI takes some, chosen by the content of the commit.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.identity_provider import IdentityProvider
from tests.harness.launcher import NAMESPACE
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.upstream import Upstream
from tests.http import access_walk
from tests.http.conftest import Serve

IN_CI = 8


class Mutation(NamedTuple):
    """A check that is removed: `before` becomes `after` in a module. noticed: part of a difference that is found.
    read_only: of a service whose console is read-only."""

    module: str
    before: str
    after: str
    noticed: str
    read_only: bool = False


_ACCESS = "service/auth/access.py"
_ADMISSION = "service/pipeline/fixed_route.py"
_BUILDING = "core/building/access.py"
_REFUSED_ANONYMOUS = "        if context.user is None:\n            raise anonymous_refusal(auth, context, detail)\n"

MUTATIONS = {
    # Who has access, computed for each endpoint.
    "every endpoint open": Mutation(_BUILDING, "        anonymous=anonymous,", "        anonymous=True,", "boss-get"),
    "signed-in users": Mutation(
        _BUILDING, "(signed_in or bool(values) or", "(bool(values) or", "signed-get, anonymous: 200"
    ),
    "roles": Mutation(
        _BUILDING, "(value for value in values if not is_user(value))", "()", "GET /api/boss-get, plain: 200"
    ),
    "users": Mutation(
        _BUILDING, "(value for value in values if is_user(value))", "()", "GET /api/single-get, plain: 200"
    ),
    "time since the sign-in": Mutation(
        _BUILDING, "None if open_login else freshness,", "None,", "GET /api/recent-get, stale: 200"
    ),
    "impersonation": Mutation(
        _BUILDING, "impersonation=impersonation,", "impersonation=None,", "careful-get, acting: 200"
    ),
    "HTTP Basic": Mutation(_BUILDING, "        basic=basic,", "        basic=None,", "basic-get, boss: 200"),
    "database role": Mutation(
        _BUILDING, "database_role=database_role,", "database_role=False,", "granted-get, plain: 200"
    ),
    "database role for anonymous callers": Mutation(
        _BUILDING,
        "and (anonymous_database_role or not database_role)",
        "",
        "GET /api/claimed-get is listed as open",
    ),
    # Steps of endpoints.
    "no step authorizes": Mutation(
        "service/handler/step_order.py",
        "    authorize,\n    refuse_without_role,",
        "    refuse_without_role,",
        "signed-get",
    ),
    "no step authenticates": Mutation(
        "service/handler/step_order.py",
        "    authenticate,\n    open_link,",
        "    open_link,",
        "boss-get, boss: 401",
    ),
    "no step requires a database role": Mutation(
        "service/handler/step_order.py", "    refuse_without_role,\n", "", "granted-get, plain: 200"
    ),
    "anonymous callers": Mutation(
        _ACCESS,
        f"    def require_user(context: RequestContext) -> None:\n{_REFUSED_ANONYMOUS}",
        "    def require_user(context: RequestContext) -> None:\n        return\n",
        "GET /api/signed-get, anonymous: 200",
    ),
    "anonymous callers where a role is needed": Mutation(
        _ACCESS,
        f"{_REFUSED_ANONYMOUS}        if not roles.admits(context.user):",
        "        if context.user is not None and not roles.admits(context.user):",
        "GET /api/boss-get, anonymous: 200",
    ),
    "wrong roles": Mutation(
        _ACCESS, "if not roles.admits(context.user):", "if False:", "GET /api/boss-get, plain: 200"
    ),
    "old sign-ins": Mutation(
        _ACCESS, "time.time() - signed_in_at(user) <= seconds", "True", "GET /api/recent-get, stale: 200"
    ),
    "a single factor": Mutation(
        _ACCESS, "if not has_second_factor(context.user.claims):", "if False:", "GET /api/proved-get, one factor: 200"
    ),
    "a second factor of endpoints": Mutation(
        _BUILDING,
        "second_factor=second_factor and not open_login,",
        "second_factor=False,",
        "GET /api/proved-get, one factor: 200",
    ),
    "others before the time of the sign-in": Mutation(
        _ACCESS,
        "        step(context)\n        user: User = context.user\n",
        "        user: User = context.user\n",
        "/api/recent-get, anonymous: 500",
    ),
    "impersonation without roles": Mutation(
        _ACCESS, "if not endpoint.access.required:", "if False:", "act-as-any-user, boss: 200"
    ),
    "impersonation by those who impersonate": Mutation(
        _ACCESS,
        'list them in authorize")\n        _refuse_impersonation(context)\n',
        'list them in authorize")\n',
        "/api/act-as, acting: 200",
    ),
    "end of an impersonation that is none": Mutation(
        _ACCESS, "if not context.user.impersonates:", "if False:", "/api/be-oneself, boss:"
    ),
    "refused impersonation": Mutation(
        _ACCESS,
        "        step(context)\n        _refuse_impersonation(context)\n\n    if",
        "        step(context)\n\n    if",
        "careful-get, acting: 200",
    ),
    "refused impersonation where all are let in": Mutation(
        _ACCESS,
        "return _refuse_impersonation if endpoint.access.impersonation is Impersonation.REFUSED else None",
        "return None",
        "wary-get, acting: 200",
    ),
    "wrong passwords": Mutation(
        "service/auth/basic.py",
        "if not await self._is_valid(credentials):",
        "if False:",
        "basic-get, wrong HTTP Basic: 200",
    ),
    "sessions where HTTP Basic is required": Mutation(
        "service/auth/access.py",
        "    if endpoint.access.basic is not None:\n        return basic_step(endpoint, services)\n    limited_by",
        "    limited_by",
        "basic-get, boss: 200",
    ),
    "users without a database role": Mutation(
        "service/auth/database_role.py",
        "        if role_of(context.user, roles) is not None:\n            return\n",
        "        if context.user is not None:\n            return\n",
        "granted-get, plain:",
    ),
    "internal endpoints": Mutation(
        "core/http/routing.py", "if internal or not endpoint.options.internal]", "]", "/api/hidden, anonymous: 200"
    ),
    "users without a tenant": Mutation(
        "service/tenancy/tenants.py",
        "if value is None and tenant.place is ValuePlace.CLAIM:",
        "if value is None and tenant.place is ValuePlace.CLAIM:\n            return\n        if False:",
        "GET /api/tenanted-get, plain: 200",
    ),
    "signatures of webhooks": Mutation(
        "service/webhooks/receiving.py",
        "            raise Problem(403, str(error)) from None\n",
        "            return\n",
        "POST /api/hooked, anonymous: 200",
    ),
    "webhooks without a signature": Mutation(
        "service/webhooks/receiving.py",
        "            raise Problem(400, str(error)) from None\n",
        "            return\n",
        "an unsigned webhook, anonymous:",
    ),
    "wrong signatures of webhooks": Mutation(
        "core/webhooks/signatures.py",
        "if not any(_matches(scheme, secret, delivery) for secret in secrets):",
        "if False:",
        "POST /api/hooked, anonymous: 200",
    ),
    "the age of webhooks": Mutation(
        "core/webhooks/signatures.py",
        "if delivery.timestamp is not None and abs(now - delivery.timestamp) > tolerance:",
        "if False:",
        "an old webhook, anonymous: 200",
    ),
    "the expiry of links to downloads": Mutation(
        "service/downloads/links.py", " or expires < time.time():", ":", "an expired link, anonymous: 200"
    ),
    "the file of links to downloads": Mutation(
        "service/downloads/links.py",
        "if (of, path, query) != (name, scope.path, rest) or",
        "if",
        "a link to another file, anonymous: 200",
    ),
    "tokens of the provider of another user": Mutation(
        "service/auth/external/refresh_and_logout.py",
        " or stored.user != digest_of(user):",
        ":",
        "POST /signin-id/refresh, plain: 200",
    ),
    # Routes of the service.
    "anonymous callers of routes of the service": Mutation(
        _ADMISSION,
        "        if context.user is None:\n"
        '            raise unauthorized_problem(challenge, f"{what} for signed-in users")\n',
        "        if context.user is None:\n            return\n",
        "GET /health, anonymous: 200",
    ),
    "wrong roles for routes of the service": Mutation(
        _ADMISSION, "if roles and roles.isdisjoint(context.user.roles):", "if False:", "GET /stats/tables, plain: 200"
    ),
    "health and statistics": Mutation(
        "service/operations/guard.py",
        '        *admission(f"{what} is", options.access, services.options.auth.schemes.challenge),\n',
        "",
        "GET /stats/tables, anonymous: 200",
    ),
    "the API reference": Mutation(
        "service/codegen/reference_page.py",
        "if page.closed else ()\n    antiforgery",
        "if False else ()\n    antiforgery",
        "GET /docs, anonymous: 200",
    ),
    "the list of jobs": Mutation(
        "service/jobs/routes.py",
        "(authenticate, *admitted, jobs.list)",
        "(authenticate, jobs.list)",
        "GET /jobs, anonymous:",
    ),
    "jobs of others that are listed": Mutation(
        "service/jobs/routes.py",
        "if self._roles.isdisjoint(user.roles):",
        "if False:",
        "GET /jobs, plain: 200 with",
    ),
    "jobs of others": Mutation(
        "service/jobs/routes.py",
        "if owner not in allowed and self._roles.isdisjoint(roles):",
        "if False:",
        "GET /jobs/{id}, anonymous: 200",
    ),
    "jobs of others that are cancelled": Mutation(
        "service/jobs/routes.py",
        "members = await self._read(context)\n        async with self._database.transaction(self._cancel, context)",
        'members = {"id": context.scope.path.rpartition("/")[2]}\n'
        "        async with self._database.transaction(self._cancel, context)",
        "DELETE /jobs/{id}, anonymous: 200",
    ),
    "internal endpoints in a batch": Mutation(
        "service/worker/table_building.py",
        "self._batch_routes(services, routing)",
        "self._batch_routes(services, Routing(snapshot.endpoints, internal=True))",
        "/api/hidden in a batch, anonymous: 200",
    ),
    "the credentials of a batch": Mutation(
        "service/request/subrequests.py",
        "for name, _ in own} | _OF_MESSAGE",
        'for name, _ in own} | _OF_MESSAGE | {"authorization"}',
        "POST /batch, boss: 401",
    ),
    "the second factor of anonymous callers": Mutation(
        "service/auth/second_factor/routes.py",
        'raise unauthorized_problem(self._challenge, "the second factor is for signed-in users")',
        'return "41"',
        "GET /api/second-factor, anonymous: 200",
    ),
    "the second factor while impersonating": Mutation(
        "service/auth/second_factor/routes.py",
        "if user.impersonates:",
        "if False:",
        "GET /api/second-factor, acting: 200",
    ),
    "invalidation by tags": Mutation(
        "service/cache/tag_invalidation.py", "(*guards, *admitting, ", "(*guards, ", "/forget, anonymous:"
    ),
    "passkeys of users": Mutation(
        "service/auth/passkeys/routes.py",
        "() if access.anonymous else (_only_users(services),)",
        "()",
        "POST /api/passkey/add/options, anonymous:",
    ),
    "passkeys while impersonating": Mutation(
        "service/auth/passkeys/routes.py",
        "if context.user.impersonates:",
        "if False:",
        "passkey/add/options, acting: 200",
    ),
    "MCP": Mutation(
        "service/mcp/server.py",
        "return not self._options.access.anonymous",
        "return False",
        "POST /mcp, anonymous: 200",
    ),
    "tools that are listed": Mutation(
        "service/mcp/server.py",
        "return not self._options.by_role or self._refusal_status(endpoint, user) is None",
        "return True",
        "tool boss_tool, plain: 403 with",
    ),
    "tools without credentials of the caller": Mutation(
        "service/request/subrequests.py",
        "for name, _ in own} | _OF_MESSAGE",
        'for name, _ in own} | _OF_MESSAGE | {"authorization"}',
        "tool boss_tool, boss: 401",
    ),
    "streams of channels": Mutation(
        "service/handler/streams.py",
        "admission = (authorize, refuse_without_role, require_tenant) if closed else (require_tenant,)",
        "admission = (require_tenant,)",
        "/api/boss-heard/heard, anonymous: 200",
    ),
    "static files": Mutation(
        "service/static/serving.py", "if closed and context.user is None:", "if False:", "/private/*, anonymous: 200"
    ),
    "access to static files": Mutation(
        "core/operations/static_files.py",
        "return SIGNED_IN if any(matches(path, pattern) for pattern in self.closed) else ANYONE",
        "return ANYONE",
        "/private/*, anonymous: 200",
    ),
    "the admin listener": Mutation(
        "service/metrics/admin.py", "if not options.access.anonymous:", "if False:", "GET /metrics, anonymous: 200"
    ),
    "the token of the admin listener": Mutation(
        "service/metrics/admin.py", "if not matches or scheme", "if scheme", "GET /metrics, boss: 200"
    ),
    "the session of the console": Mutation(
        "service/console/console.py",
        "operator = self._gate.require_session(request)",
        'operator = ""',
        "GET /console/api/overview, anonymous: 200",
    ),
    "the roles of the console": Mutation(
        "service/console/access.py",
        "        if self._options.roles.isdisjoint(caller.roles):",
        "        if False:",
        "POST /console/api/session, plain: 200",
    ),
    "impersonation in the console": Mutation(
        "service/worker/operator.py",
        "if user is None or user.impersonates:",
        "if user is None:",
        "POST /console/api/session, acting: 200",
    ),
    "operators whose session at the service has ended": Mutation(
        "service/console/access.py",
        '        self._check_user(session, always=request.method != "GET")\n',
        "",
        "an operator without a session at the service: 404",
    ),
    "actions of a console that is read-only": Mutation(
        "service/console/actions/actions.py",
        "        if not self._allowed:",
        "        if False:",
        "an action of a console that is read-only: 404",
        read_only=True,
    ),
    # PostgREST's interface.
    "anonymous callers of PostgREST's interface": Mutation(
        "service/postgrest/authentication.py",
        "if caller is None:\n        raise",
        "if False:\n        raise",
        "GET /rest/mount, anonymous: 500",
    ),
    "signatures of tokens for PostgREST's interface": Mutation(
        "service/postgrest/authentication.py",
        "        if not readable or not any(",
        "        if False and not any(",
        "GET /rest/mount, forged JWT: 200",
    ),
    "expired tokens for PostgREST's interface": Mutation(
        "service/postgrest/authentication.py",
        "if expires is not None and now - TOLERANCE > expires:",
        "if False:",
        "GET /rest/mount, expired JWT: 200",
    ),
    "claims of tokens for PostgREST's interface": Mutation(
        "service/postgrest/authentication.py",
        "        self._check(known[0])\n",
        "",
        "GET /rest/mount, expired JWT: 200",
    ),
    "roles in PostgREST's interface": Mutation(
        "service/postgrest/settings.py",
        'result += (b"role", role.encode(), ',
        "result += (",
        "GET /rest/mount, plain: 200",
    ),
    # Credentials.
    "signatures": Mutation(
        "service/identity/signed_tokens.py",
        '"require": ["exp"],',
        '"require": ["exp"], "verify_signature": False,',
        "GET /api/boss-get, forged JWT: 200",
    ),
    "expired JWTs": Mutation(
        "service/identity/signed_tokens.py", '"verify_exp": lifetime,', '"verify_exp": False,', "expired JWT: 200"
    ),
    "refresh tokens as access tokens": Mutation(
        "service/identity/signed_tokens.py",
        "        if payload.get(TOKEN_TYPE) == _REFRESH:\n            raise",
        "        if False:\n            raise",
        "GET /api/boss-get, refresh JWT: 200",
    ),
    "expired sessions": Mutation(
        "service/identity/encrypted_sessions.py",
        "if not session.begins <= now < session.expires:",
        "if not session.begins <= now:",
        "GET /api/signed-get, expired cookie: 200",
    ),
    "revoked sessions": Mutation(
        "service/identity/introspected_sessions.py",
        "self._check_session(context, self._check_asked)\n            if waiting is None\n"
        "            else self._wait_and_check(context, waiting)",
        "waiting",
        "GET /api/boss-get, revoked session: 200",
    ),
    "sessions that are known to be revoked": Mutation(
        "service/identity/introspected_sessions.py",
        "        if cached[0] is None:\n            self._drop(context)\n",
        "",
        "revoked session: 200",
    ),
    "revoked API keys": Mutation(
        "service/identity/introspected_sessions.py",
        "        context.user = None\n        if not 0 < len(key) <= LONGEST_KEY:",
        "        return super().authenticate(context)\n        if not 0 < len(key) <= LONGEST_KEY:",
        "GET /api/boss-get, revoked key: 200",
    ),
    "the session of a refresh token": Mutation(
        "service/auth/token_refresh.py",
        "if user.scheme != scheme.name or user.subject != sessions.user(session.claims, scheme.name).subject:",
        "if False:",
        "POST /api/token/refresh, plain: 200",
    ),
    "expired refresh tokens": Mutation(
        "service/identity/signed_tokens.py",
        "_decode_token(token, own_key, algorithms, self.scheme, lifetime=True)",
        "_decode_token(token, own_key, algorithms, self.scheme, lifetime=False)",
        "POST /api/jwt/refresh, anonymous: 200",
    ),
    # Events.
    "recipients of events": Mutation(
        "core/events/event.py",
        "        if self.roles:\n            return Event(message",
        "        if False:\n            return Event(message",
        "plain: ['classified', ",
    ),
}


@pytest.fixture(scope="module")
def settings(
    database: Database, upstream: Upstream, provider: IdentityProvider, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str | None]:
    return access_walk.settings(tmp_path_factory.mktemp("files"), upstream, provider)


@pytest.fixture(scope="module")
def routes(database: Database, serve: Serve, settings: dict[str, str | None]) -> list[access_walk.Route]:
    """The routes of the service with all checks."""
    return access_walk.routes_of(serve(database, access_walk.SQL, settings))


def _selected_mutations() -> list[str]:
    seed = os.environ.get("ROWCALL_RANDOM_SEED")
    return [*MUTATIONS] if seed is None else random.Random(seed).sample([*MUTATIONS], IN_CI)


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_mutation_matches_its_source_once(name: str) -> None:
    mutation = MUTATIONS[name]
    text = (NAMESPACE / "rowcall" / mutation.module).read_text(encoding="utf-8")
    assert text.count(mutation.before) == 1, f"{mutation.module} has changed: the mutation has to be changed, too"


@pytest.mark.slow
@pytest.mark.parametrize("name", _selected_mutations())
def test_removed_access_check_is_detected(
    name: str,
    database: Database,
    settings: dict[str, str | None],
    routes: list[access_walk.Route],
    provider: IdentityProvider,
    tmp_path: Path,
) -> None:
    mutation = MUTATIONS[name]
    chosen = {"ConnectionStrings:Default": database.conninfo, "HttpServer:Workers": "1", **settings}
    if mutation.read_only:
        chosen |= access_walk.READ_ONLY
    admin = chosen["Admin:Url"] = f"http://127.0.0.1:{free_port()}"
    namespace = _mutated(tmp_path, mutation)
    folder = tmp_path / "service"
    service = Service(folder, {key: text for key, text in chosen.items() if text is not None}, namespace=namespace)
    others: list[str] = []
    try:
        service.wait_until_ready()
        if mutation.module == _BUILDING:  # what is listed depends on it
            listed = access_walk.routes_of(service, PYTHONPATH=str(namespace))
        else:
            listed = [
                replace(route, path=admin + httpx.URL(route.path).path) if route.path.startswith("http:") else route
                for route in routes
            ]
        for line in _differences(service, listed, provider, mutation):
            if mutation.noticed in line:
                return
            others.append(line)
    finally:
        service.stop()
    pytest.fail("not noticed; found are:\n" + "\n".join(others))


def _differences(
    service: Service, routes: list[access_walk.Route], provider: IdentityProvider, mutation: Mutation
) -> Iterator[str]:
    if mutation.read_only:
        yield from access_walk.read_only_console(service)
        return
    if mutation.module.startswith("core/events/"):
        heard = access_walk.heard(service)
        yield from (f"{caller}: {got}" for caller, got in heard.items() if caller != "boss")
    yield from access_walk.walk(service, routes, provider, http2=False)


def _mutated(folder: Path, mutation: Mutation) -> Path:
    """Return a folder with a package `rowcall` that has one changed module; the other files are those of this clone."""
    package = folder / "namespace" / "rowcall"
    shutil.copytree((NAMESPACE / "rowcall").resolve(), package, copy_function=_link, ignore=_IGNORED)
    module = package / mutation.module
    text = module.read_text(encoding="utf-8")
    module.unlink()
    module.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")
    return package.parent


_IGNORED = shutil.ignore_patterns("__pycache__", "*.c", "*.pyx")


def _link(source: str, target: str) -> str:
    Path(target).symlink_to(Path(source).resolve())
    return target
