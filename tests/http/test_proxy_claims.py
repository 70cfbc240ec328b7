"""What a proxy says about its caller (proxies-5 to proxies-8; proxies-4 to proxies-8)."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.upstream import Upstream, echo
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens


def passing(name: str, comment: str, parameters: str = "") -> str:
    return (
        f"create function {name}({parameters}) returns void language sql as '';\n"
        f"comment on function {name} is E'HTTP {comment}\\nproxy';\n"
    )


SQL = (
    passing("context", "GET /context\\nuser_context\\nallow_anonymous")
    + passing("without", "GET /without\\nauthorize")
    + passing("parameters", "GET /parameters\\nauthorize\\nuser_parameters", "_user_id text, _user_roles text[]")
    + passing("off", "GET /off\\nauthorize", "_user_id text default null")
    + passing("posted", "POST /posted\\nauthorize\\nuser_parameters", "_user_id text, _ip_address text")
    + "create function transformed(_user_id text, _proxy_body json) returns text language sql stable as\n"
    + "$$ select concat_ws('|', _user_id, _proxy_body ->> 'target') $$;\n"
    + "comment on function transformed is E'HTTP GET /transformed\\nauthorize\\nuser_parameters\\nproxy';\n"
    + passing("inner_context", "GET /to-inner\\nauthorize\\nuser_context").replace("nproxy'", "nproxy /inner'")
    + "create function inner_one(_headers json default null) returns json language sql stable as "
    + "$$ select json_build_object('id', _headers -> 'Request.user_id', 'auth', _headers -> 'Authorization') $$;\n"
    + "comment on function inner_one is E'HTTP GET /inner\\nallow_anonymous\\ninternal';\n"
)
MAPPING = "Service:AuthenticationOptions:"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    upstream.on("*", echo)
    settings = {
        **EVERY_SCHEME,
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": upstream.url,
        MAPPING + "ClaimsJsonContextKey": "request.claims",
        MAPPING + "ParameterNameClaimsMapping:_user_id": "user_id",
        MAPPING + "ParameterNameClaimsMapping:_user_roles": "user_roles",
        MAPPING + "ContextKeyClaimsMapping:request.user_id": "user_id",
        MAPPING + "ContextKeyClaimsMapping:request.user_name": "user_name",
        MAPPING + "ContextKeyClaimsMapping:request.user_roles": "user_roles",
    }
    return serve(database, member_sql() + SQL, settings)


@pytest.fixture(scope="module")
def kiri(service: Service) -> dict[str, str]:
    return bearer(tokens(service, "BearerToken")["accessToken"])


def headers_of(response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 200, response.text
    body: dict[str, str] = response.json()["headers"]
    return {name: value for name, value in body.items() if name.startswith("request.")}


def test_claims_are_headers(service: Service, kiri: dict[str, str]) -> None:
    response = headers_of(service.get("/context", headers=kiri))
    assert json.loads(response.pop("request.claims"))["user_id"] == "41"
    assert response == {
        "request.user_id": "41",
        "request.user_name": "kiri",
        "request.user_roles": '{"boss","gate"}',
        "request.ip_address": "127.0.0.1",
    }


def test_only_the_address_of_anonymous_callers_is_forwarded(service: Service) -> None:
    assert headers_of(service.get("/context")) == {"request.ip_address": "127.0.0.1"}


@pytest.mark.parametrize("path", ["/context", "/without"])
def test_headers_of_a_client_cannot_forge_claims(service: Service, kiri: dict[str, str], path: str) -> None:
    lie = {"request.user_id": "1", "Request.User_Roles": "{admin}", "request.claims": "{}"}
    # Servers that make variables of headers read these as the same names.
    lie |= {"request_user_id": "1", "Request-User-Roles": "{admin}", "request.ip-address": "203.0.113.9"}
    plain = headers_of(service.get(path, headers=kiri))
    assert headers_of(service.get(path, headers={**kiri, **lie})) == plain


def test_claims_are_parameters_of_the_query(service: Service, kiri: dict[str, str]) -> None:
    response = service.get("/parameters?a=1&userId=7&userRoles=admin", headers=kiri)
    assert response.json()["target"] == "/parameters?a=1&userId=41&userRoles=%7B%22boss%22%2C%22gate%22%7D"


def test_claims_are_members_of_a_body(service: Service, kiri: dict[str, str]) -> None:
    received = service.post("/posted", headers=kiri, json={"userId": "7", "a": 1}).json()
    assert json.loads(received["body"]) == {"userId": "41", "a": 1, "ipAddress": "127.0.0.1"}
    assert received["target"] == "/posted"


def test_without_the_annotation_nothing_is_added(service: Service, kiri: dict[str, str]) -> None:
    assert service.get("/off?userId=7", headers=kiri).json()["target"] == "/off?userId=7"


def test_a_routine_that_transforms_responses_receives_claims(service: Service, kiri: dict[str, str]) -> None:
    assert service.get("/transformed", headers=kiri).text == "41|/transformed?userId=41"


def test_an_endpoint_of_this_service_is_called_anonymously(service: Service, kiri: dict[str, str]) -> None:
    assert service.get("/to-inner", headers=kiri).json() == {"id": "41", "auth": None}


def test_the_trace_is_forwarded(service: Service) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    response = service.get("/context", headers={"traceparent": trace, "tracestate": "a=b"})
    assert response.json()["headers"]["traceparent"] == trace
