"""Methods of invalidation paths: only unsafe ones, unless the configuration selects the method of the cached
endpoint."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

SQL = """
create sequence runs;
create function ran() returns bigint language sql volatile as $$ select nextval('runs') $$;
create function price(_sku text) returns text language sql as $$ select _sku || ran() $$;
comment on function price(text) is E'HTTP GET /price\ncached\ncache_expires 1 hour';
create function page(_id int, _sku text) returns text language sql as $$ select _sku || ran() $$;
comment on function page(int, text) is E'HTTP GET /page/{_id}\ncached';
create function bodied(_sku text) returns text language sql as $$ select _sku || ran() $$;
comment on function bodied(text) is E'HTTP GET /bodied\ncached\nparam_type body';
create function searched(_sku text) returns text language sql as $$ select _sku || ran() $$;
comment on function searched(text) is E'HTTP QUERY /searched\ncached';
create function posted(_sku text) returns text language sql as $$ select _sku || ran() $$;
comment on function posted(text) is E'HTTP POST /posted\ncached';
create function put(_sku text) returns text language sql as $$ select _sku || ran() $$;
comment on function put(text) is E'HTTP PUT /put\ncached';
create function strict(_sku text) returns text language sql strict as $$ select _sku || ran() $$;
comment on function strict(text) is E'HTTP GET /strict\ncached\nparam_type body\nsse';
create function taken(_sku text) returns text language sql as $$ select _sku || ran() $$;
comment on function taken(text) is E'HTTP GET /taken\ncached';
create function taken_purge(_sku text) returns text language sql as $$ select 'the routine' $$;
comment on function taken_purge(text) is E'HTTP POST /taken/purge';
create function both_get(_sku text) returns text language sql as $$ select _sku || ran() $$;
comment on function both_get(text) is E'HTTP GET /both\ncached';
create function both_post(_sku text, _more int) returns text language sql as $$ select _sku || ran() $$;
comment on function both_post(text, int) is E'HTTP POST /both\ncached';
"""
CACHE = "CacheOptions:"
SETTINGS = {
    CACHE + "Enabled": "true",
    CACHE + "InvalidateCacheSuffix": "purge",
    "Service:OpenApiOptions:Enabled": "true",
    "Service:HttpFileOptions:Enabled": "true",
    "Service:HttpFileOptions:Option": "Endpoint",
    "Service:HttpFileOptions:Name": "calls",
}
REMOVED = {"invalidated": True}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


@pytest.fixture(scope="module")
def by_own_method(service: Service, serve: Serve, database: Database) -> Service:
    return serve(database, "", {**SETTINGS, CACHE + "InvalidateCacheUseEndpointMethod": "true"})


@pytest.mark.parametrize("path", ["/price/purge?sku=a", "/page/1/purge?sku=a"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
def test_other_methods_get_405_and_invalidate_nothing(service: Service, path: str, method: str) -> None:
    cached = service.get(path.replace("/purge", "")).text
    response = service.request(method, path)
    assert (response.status_code, response.headers["allow"]) == (405, "OPTIONS, POST")
    assert service.get(path.replace("/purge", "")).text == cached


@pytest.mark.parametrize(
    ("method", "path", "purged_by"),
    [
        ("GET", "/price?sku=b", "POST"),
        ("GET", "/page/2?sku=b", "POST"),
        ("QUERY", "/searched", "POST"),
        ("GET", "/bodied", "POST"),
        ("POST", "/posted", "POST"),
        ("PUT", "/put", "PUT"),
    ],
)
def test_invalidation_reads_parameters_where_the_endpoint_does(
    service: Service, method: str, path: str, purged_by: str
) -> None:
    path, _, query = path.partition("?")
    options = {"params": query} if query else {"json": {"sku": "b"}}
    first = service.request(method, path, **options).text
    assert service.request(method, path, **options).text == first
    assert service.request(purged_by, f"{path}/purge", **options).json() == REMOVED
    assert service.request(purged_by, f"{path}/purge", **options).json() == {"invalidated": False}
    assert service.request(method, path, **options).text != first


def test_invalidation_for_a_null_of_a_strict_routine_removes_nothing(service: Service) -> None:
    response = service.post("/strict/purge", json={"sku": None})
    assert (response.status_code, response.json()) == (200, {"invalidated": False})


def test_invalidation_path_has_no_event_stream(service: Service) -> None:
    problem(service.get("/strict/purge/info"), 404)


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "application/json", "text/plain"])
def test_body_is_ignored_if_parameters_are_in_the_query(service: Service, content_type: str) -> None:
    service.get("/price?sku=c")
    purged = service.post("/price/purge?sku=c", content=b"sku=other", headers={"content-type": content_type})
    assert purged.json() == REMOVED


def test_setting_restores_invalidation_by_the_method_of_the_endpoint(by_own_method: Service) -> None:
    service = by_own_method
    first = service.get("/price?sku=d").text
    refused = service.post("/price/purge?sku=d")
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert service.get("/price/purge?sku=d").json() == REMOVED
    assert service.get("/price?sku=d").text != first
    service.request("QUERY", "/searched", json={"sku": "d"})
    assert service.request("QUERY", "/searched/purge", json={"sku": "d"}).json() == REMOVED
    service.get("/both?sku=d")
    assert service.get("/both/purge?sku=d").json() == REMOVED
    assert "is left out" not in service.log


def test_routine_on_the_same_route_takes_precedence_over_invalidation(service: Service) -> None:
    first = service.get("/taken?sku=e").text
    assert service.post("/taken/purge", json={"sku": "e"}).text == "the routine"
    assert service.get("/taken?sku=e").text == first
    service.wait_for_log(
        "POST /taken/purge, which invalidates the cached responses of GET, is left out, as another endpoint has this "
        "route; give one of them another path or set CacheOptions:InvalidateCacheUseEndpointMethod"
    )


def test_invalidation_route_removes_responses_of_one_method(service: Service) -> None:
    first = service.get("/both?sku=f").text
    service.post("/both", json={"sku": "f", "more": 1})
    assert service.post("/both/purge", json={"sku": "f", "more": 1}).json() == REMOVED
    problem(service.post("/both/purge?sku=f"), 404)
    assert service.get("/both?sku=f").text == first
    service.wait_for_log("is left out, as the invalidation path of POST has this route")


def test_openapi_shows_the_invalidation_method(service: Service, by_own_method: Service) -> None:
    for served, method in ((service, "post"), (by_own_method, "get")):
        paths = served.get("/openapi.json").json()["paths"]
        assert list(paths["/price/purge"]) == [method]
        operation = paths["/price/purge"][method]
        assert [item["name"] for item in operation["parameters"]] == ["sku"]
        assert "requestBody" not in operation
        assert operation["operationId"] != paths["/price"]["get"]["operationId"]
        assert f"{method.upper()} {{{{host}}}}/price/purge?sku=" in served.get("/calls_public.http").text
