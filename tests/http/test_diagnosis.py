"""Mistakes in comments: their messages in the log, how often they are logged, and which of them stop the start
(comments-7, comments-8)."""

from __future__ import annotations

import re

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function orders(_id int, _text text default '') returns int language sql stable as 'select _id';
comment on function orders(int, text) is E'HTTP GET /orders/{_idd}
timeout soon
cached missing
dartclient = perhaps
dartclient = perhaps
mcp Lists orders
basic_auth joe s3cret
basic_auth s3cret
X-Who: {whom}
nested = true
note = {when}';
create function letters(_body text) returns text language sql as 'select _body';
comment on function letters(text) is E'HTTP POST /letters\\nbody_parameter_name text';
create function by_x(_x int) returns int language sql stable as 'select _x';
create function by_y(_y int) returns int language sql stable as 'select _y';
comment on function by_x(int) is 'HTTP GET /a/{_x}';
comment on function by_y(int) is 'HTTP GET /a/{_y}';
create function twin(_a int) returns text language sql stable as $$select 'int'$$;
create function twin(_a text) returns text language sql stable as $$select 'text'$$;
comment on function twin(int) is 'HTTP GET /twin';
comment on function twin(text) is 'HTTP GET /twin';
create function off() returns int language sql stable as 'select 1';
comment on function off() is E'HTTP\\ndisabled';
create function inner_one() returns int language sql stable as 'select 1';
comment on function inner_one() is E'HTTP GET /inner\\ninternal';
create function sent(_a text) returns void language sql as '';
comment on function sent(text) is E'HTTP GET /sent\\nproxy http://127.0.0.1:1/{_a}\\nencrypt _a';
create function bosses() returns int language sql stable as 'select 1';
comment on function bosses() is E'HTTP GET /bosses\\nauthorize "boss" gate';
create function realms() returns int language sql stable as 'select 1';
comment on function realms() is E'HTTP GET /realms\\nrealm Depot North';
create function asked() returns int language sql stable as 'select 1';
comment on function asked() is E'HTTP GET /asked\\nbasic_auth_command = select missing($1, $3)';
create procedure noted(text, text) language sql as '';
create function in_and_out() returns table (user_id int) language sql as 'select 1';
comment on function in_and_out() is E'HTTP POST /in-and-out\\nlogin\\nlogout\\nauthorize gate';
create function in_elsewhere() returns table (user_id int) language sql as 'select 1';
comment on function in_elsewhere() is E'HTTP POST /in-elsewhere\\nlogin\\nproxy http://127.0.0.1:1';
create function good() returns int language sql stable as 'select 1';
comment on function good() is E'Ein Wort.\\nHTTP GET /good\\n@allow_anonymous';
"""

DEBUG = {"Log:MinimalLevels:rowcall": "Verbose", "Service:ProxyOptions:Enabled": "true"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    """Two workers: only the supervisor reads comments."""
    options = "Service:AuthenticationOptions:"
    settings = {
        options + "LoginPath": "/nowhere",
        options + "PasswordVerificationFailedCommand": "call noted($2, $3)",
        options + "PasswordVerificationSucceededCommand": "call renewed($2, $4)",
    }
    return serve(database, SQL, {**DEBUG, **settings}, workers=2)


def lines(service: Service, level: str, text: str) -> list[str]:
    return [line for line in service.log.splitlines() if f" {level}] " in line and text in line]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("orders(integer, text): 'soon' is not an interval; the global timeout applies", "timeout soon"),
        ("{_idd} in /orders/{_idd} names no parameter", "HTTP GET /orders/{_idd}"),
        ("the routine has no parameter missing; it is no part of the cache key", "cached missing"),
        ("'perhaps' is neither true nor false", "dartclient = perhaps"),
        ("name and password are missing", "basic_auth ***"),
        ("the realm is Depot, without the rest", "realm Depot North"),
        ("GET /realms requires HTTP Basic, which is accepted over https only", None),
        ("the value of basic_auth for joe is not a hash", None),
        ('the quotation marks are part of the role\'s name "boss"; write roles without them', 'authorize "boss" gate'),
        ("1 endpoint is for signed-in callers, and no way to sign in is on", None),
        ("Service:AuthenticationOptions:LoginPath: no endpoint is at /nowhere", None),
        ("PasswordVerificationSucceededCommand cannot run: 42883: procedure renewed(text, text) does not exist", None),
        ("public.asked(): basic_auth_command cannot run: 42883: function missing(text, boolean) does not exist", None),
        ("encrypt applies only to the routine: proxy forwards the request", "encrypt _a"),
        ("logout has no effect beside login", "logout"),
        ("authorize has no effect: any caller may sign in", "authorize gate"),
        ("login has no effect: another service sends the response", "login"),
        ("{whom} names no parameter and is left unchanged", "X-Who: {whom}"),
        ("{when} names no parameter and is left unchanged", "note = {when}"),
        ("nested = … is a custom parameter and no annotation; write `nested`", "nested = true"),
        ("text is no parameter of the routine; the body is read as usual", "body_parameter_name text"),
        ("GET /a/{_y} matches the same paths as GET /a/{_x} of public.by_x(integer) and is left out; give", None),
        ("is never called", None),
        ("sent(text): {…} in the URL of proxy is not a placeholder and is sent unchanged", None),
    ],
)
def test_each_mistake_is_logged_once_with_object_and_line(service: Service, text: str, line: str | None) -> None:
    (result,) = lines(service, "WRN", text)
    assert line is None or result.endswith(f"(comment line: {line}) [rowcall]")


def test_commands_that_can_run_are_not_logged(service: Service) -> None:
    assert service.log.count("cannot run") == 2


def test_unreachable_overload_is_logged(service: Service) -> None:
    (result,) = lines(service, "WRN", "is never called")
    assert "twin(integer)" in result
    assert "twin(text)" in result
    assert answer(service.get("/twin?a=1")) == (200, TEXT, "text")


def test_secrets_in_comments_are_not_logged(service: Service) -> None:
    assert "s3cret" not in service.log


def test_valid_comments_log_no_warning(service: Service) -> None:
    assert lines(service, "WRN", "good()") == []
    assert answer(service.get("/good")) == (200, TEXT, "1")


def test_debug_lines_show_each_endpoint_with_its_annotations(service: Service) -> None:
    assert lines(service, "DBG", "Created endpoint GET /good")
    assert lines(service, "DBG", "good() mapped to GET /good annotations: [HTTP GET /good, @allow_anonymous]")
    assert lines(service, "VRB", "good() annotation: @allow_anonymous")
    assert lines(service, "VRB", "off() is disabled by its comment")
    assert lines(service, "INF", "Created internal endpoint GET /inner")


@pytest.mark.parametrize(
    ("switch", "hidden", "shown"),
    [
        ("Service:DebugLogEndpointCreateEvents", r"Created endpoint", r"mapped to .* annotations:"),
        ("Service:DebugLogCommentAnnotationEvents", r"mapped to|annotation: ", r"Created endpoint"),
    ],
)
def test_debug_lines_have_switches(
    own_database: Database, serve_once: Serve, switch: str, hidden: str, shown: str
) -> None:
    service = serve_once(own_database, SQL, {**DEBUG, switch: "false"})
    assert re.search(shown, service.log)
    assert not re.search(hidden, service.log)


def test_mistakes_are_not_logged_again_at_a_reload(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL)
    own_database.execute("comment on function good() is E'HTTP GET /good\\ntimeout nil'; notify rowcall, 'reload'")
    service.wait_for_log("schema snapshot 2 is served")
    assert len(lines(service, "WRN", "'soon' is not an interval")) == 1
    assert len(lines(service, "WRN", "'nil' is not an interval")) == 1


OUTGOING = """
create type answer as (body text, status_code int);
create type crate as (width int);
create function ask(_a answer) returns int language sql stable as 'select 1';
comment on function ask(answer) is 'HTTP GET /ask';
create function fill(_c crate) returns int language sql stable as 'select 1';
comment on function fill(crate) is 'HTTP GET /fill';
comment on type answer is E'timeout soon\\nGET http://127.0.0.1:1/';
comment on type crate is 'A crate.';
"""


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_http_types_are_checked_only_if_enabled(own_database: Database, serve_once: Serve, enabled: str) -> None:
    service = serve_once(own_database, OUTGOING, {"Service:HttpClientOptions:Enabled": enabled})
    message = lines(service, "WRN", "'soon' is not an interval; 30 s are taken")
    assert len(message) == (1 if enabled == "true" else 0)
    assert not lines(service, "WRN", "type crate")
    assert answer(service.get("/ask")) == (200, TEXT, "1")


TOO_LONG = f"""
create function long_one() returns int language sql stable as 'select 1';
create function long_two() returns int language sql stable as 'select 1';
comment on function long_one() is 'HTTP GET /{"a" * 3000}';
comment on function long_two() is 'HTTP GET /{"b" * 3000}';
"""


def test_invalid_endpoint_is_left_out_and_others_are_served(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL + TOO_LONG)
    assert lines(service, "WRN", "long_one(): a path has 1 to 2048 characters, not 3001")
    assert lines(
        service, "WRN", "left out: public.by_y(integer), public.long_one(), public.long_two(), public.twin(integer)"
    )
    assert answer(service.get("/good")) == (200, TEXT, "1")


PROFILES = """
create function fast() returns int language sql stable as 'select 1';
create function slow() returns int language sql stable as 'select 1';
create function fine() returns int language sql stable as 'select 1';
comment on function fast() is E'HTTP GET /fast\\ncache_profile fats';
comment on function slow() is E'HTTP GET /slow\\ncache_profile fast\\ncache_profile off\\nrate_limiter missing';
comment on function fine() is E'HTTP GET /fine\\ncache_profile fast';
"""
CACHE = {
    "CacheOptions:Profiles:fast:Enabled": "true",
    "CacheOptions:Profiles:fast:Type": "Memory",
    "CacheOptions:Profiles:off:Enabled": "false",
}


def test_unknown_cache_profiles_stop_the_start(own_database: Database, serve_once: Serve) -> None:
    """Spec 2.3: one error that lists every unresolved name with the endpoints that use it."""
    with pytest.raises(AssertionError) as failure:
        serve_once(own_database, PROFILES, {**CACHE, "CacheOptions:Enabled": "true"})
    message = str(failure.value)
    assert (
        "public.fast(): GET /fast: cache_profile 'fats' is none of fast (comment line: cache_profile fats)" in message
    )
    assert "GET /slow: cache_profile 'off' is none of fast (comment line: cache_profile off)" in message
    assert "fine()" not in message.partition("cannot be served:")[2]


def test_cache_profiles_are_ignored_if_caching_is_off(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, PROFILES, {**CACHE, "RateLimiterOptions:Enabled": "true"})
    assert answer(service.get("/fast")) == (200, TEXT, "1")
    (result,) = lines(
        service, "WRN", "rate_limiter 'missing' is none of the configured ones (none); the endpoint is left out"
    )
    assert result.endswith("(comment line: rate_limiter missing) [rowcall]")


def test_unknown_cache_profile_at_a_reload_leaves_endpoints_out(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, "", CACHE | {"CacheOptions:Enabled": "true"})
    own_database.execute(TOO_LONG + PROFILES + "notify rowcall, 'reload'")
    service.wait_for_log("schema snapshot 2 is served: 1 endpoints, 4 left out")
    service.wait_for_log("4 left out: public.fast(), public.long_one(), public.long_two(), public.slow();")
    assert answer(service.get("/fine")) == (200, TEXT, "1")
    assert "added GET /fast" not in service.log
