"""From a routine and its comment to a method and a path (comments-1 to comments-29, routing-1 to routing-16, binding-1,
binding-2, rendering-9 to rendering-29)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer, problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema billing_eu;
create function list_open_orders() returns text language sql stable as $$select 'open'$$;
create function billing_eu.get_invoice() returns text language sql as $$select 'invoice'$$;
create function "Mixed Name"() returns text language sql stable as $$select 'mixed'$$;
create function _hidden() returns text language sql stable as $$select 'hidden'$$;
comment on function list_open_orders() is 'HTTP';
comment on function billing_eu.get_invoice() is 'HTTP';
comment on function "Mixed Name"() is 'HTTP';
comment on function _hidden() is 'HTTP';

create function get_volatile() returns text language sql volatile as $$select 'get_'$$;
create function then_get_it() returns text language sql volatile as $$select '_get_'$$;
create function last_get() returns text language sql volatile as $$select '_get'$$;
create function forget() returns text language sql volatile as $$select 'forget'$$;
create function fixed() returns text language sql immutable as $$select 'fixed'$$;
create procedure act() language sql as 'select 1';
comment on function get_volatile() is 'HTTP';
comment on function then_get_it() is 'HTTP';
comment on function last_get() is 'HTTP';
comment on function forget() is 'HTTP';
comment on function fixed() is 'HTTP';
comment on procedure act() is 'HTTP';

create function with_method() returns text language sql stable as $$select 'method'$$;
create function with_path() returns text language sql stable as $$select 'path'$$;
create function with_both() returns text language sql stable as $$select 'both'$$;
create function with_slash() returns text language sql stable as $$select 'slash'$$;
create function with_odd_word() returns text language sql stable as $$select 'odd'$$;
create function with_patch() returns text language sql stable as $$select 'patch'$$;
create function with_four() returns text language sql stable as $$select 'four'$$;
create function with_url() returns text language sql stable as $$select 'url'$$;
create function with_path_line() returns text language sql stable as $$select 'line'$$;
create function put_it() returns text language sql as $$select 'put'$$;
create function drop_it() returns text language sql as $$select 'deleted'$$;
create function lower_case() returns text language sql stable as $$select 'lower'$$;
create function prose_around() returns text language sql stable as $$select 'prose'$$;
create function at_sign() returns text language sql stable as $$select 'at'$$;
comment on function with_method() is 'HTTP POST';
comment on function with_path() is 'HTTP orders/open';
comment on function with_both() is 'http get /Orders/Both';
comment on function with_slash() is 'HTTP GET /orders/slash/';
comment on function with_odd_word() is 'HTTP foo /orders/odd';
comment on function with_patch() is 'HTTP PATCH';
comment on function with_four() is 'HTTP POST /orders/four extra';
comment on function with_url() is 'HTTP GET http://example.com/x';
comment on function with_path_line() is E'HTTP\\nPATH orders/line';
comment on function put_it() is 'HTTP PUT /it';
comment on function drop_it() is 'HTTP DELETE /it';
comment on function lower_case() is 'hTtP';
comment on function prose_around() is E'Gives prose.\\r\\n\\r\\n   HTTP   \\r\\nMore of it.';
comment on function at_sign() is '@http GET /orders/at';

create function only_modified() returns text language sql stable as $$select 1::text$$;
create function uncommented() returns text language sql stable as $$select 1::text$$;
create function switched_off() returns text language sql stable as $$select 1::text$$;
create function off_and_on() returns text language sql stable as $$select 'on'$$;
create function muted() returns text language sql stable as $$select 1::text$$;
create function for_functions() returns text language sql stable as $$select 'function'$$;
create function for_stable() returns text language sql stable as $$select 'stable'$$;
create function inside() returns text language sql stable as $$select 1::text$$;
comment on function only_modified() is E'allow_anonymous\\nPATH /only';
comment on function switched_off() is E'HTTP\\ndisabled';
comment on function off_and_on() is E'HTTP\\ndisabled\\nenabled';
comment on function muted() is E'for procedure\\nHTTP';
comment on function for_functions() is E'for function, procedure\\nHTTP';
comment on function for_stable() is E'HTTP\\nfor volatile\\nHTTP GET /wrong\\nfor stable\\nHTTP GET /right';
comment on function inside() is E'HTTP GET /inside\\ninternal';

create function with_headers(_file text default 'none') returns text language sql stable as $$select '<p>'$$;
comment on function with_headers(text) is
E'HTTP GET /headers\\nContent-Type: text/html; charset=utf-8\\nX-One: a\\nX-One: b\\nCache-Control: max-age=60';
create function with_placeholder(_file text default 'none') returns text language sql stable as $$select 'x'$$;
comment on function with_placeholder(text) is
E'HTTP GET /placeholder\\nContent-Disposition: attachment; filename={_file}\\nX-Unknown: {unknown}';
create function body_on_get(_n int) returns int language sql stable as 'select _n';
comment on function body_on_get(int) is E'HTTP GET\\nparam_type body';
create function query_on_post(_n int) returns int language sql as 'select _n';
comment on function query_on_post(int) is E'HTTP POST\\n@request_param_type query_string';
"""


@pytest.fixture(scope="module")
def service(every_database: Database, serve: Serve) -> Service:
    return serve(every_database, SQL)


ROUTES = [
    ("GET", "/api/list-open-orders", "open"),
    ("GET", "/api/list-open-orders/", "open"),
    ("GET", "/API/List-Open-Orders", "open"),
    ("GET", "/api/billing-eu/get-invoice", "invoice"),
    ("GET", "/api/mixed-name", "mixed"),
    ("GET", "/api/-hidden", "hidden"),
    ("GET", "/api/get-volatile", "get_"),
    ("GET", "/api/then-get-it", "_get_"),
    ("GET", "/api/last-get", "_get"),
    ("POST", "/api/forget", "forget"),
    ("GET", "/api/fixed", "fixed"),
    ("POST", "/api/with-method", "method"),
    ("GET", "/orders/open", "path"),
    ("GET", "/orders/both", "both"),
    ("GET", "/orders/slash", "slash"),
    ("GET", "/orders/slash/", "slash"),
    ("GET", "/orders/odd", "odd"),
    ("PATCH", "/api/with-patch", "patch"),
    ("GET", "/api/with-four", "four"),
    ("GET", "/api/with-url", "url"),
    ("GET", "/orders/line", "line"),
    ("PUT", "/it", "put"),
    ("DELETE", "/it", "deleted"),
    ("GET", "/api/lower-case", "lower"),
    ("GET", "/api/prose-around", "prose"),
    ("GET", "/orders/at", "at"),
    ("GET", "/api/off-and-on", "on"),
    ("GET", "/api/for-functions", "function"),
    ("GET", "/right", "stable"),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
def test_routine_is_served_at(service: Service, method: str, path: str, body: str) -> None:
    assert answer(service.request(method, path)) == (200, TEXT, body)


def test_procedure_is_served_at_post(service: Service) -> None:
    assert answer(service.post("/api/act")) == (204, None, "")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/api"),
        ("GET", "/api/only-modified"),
        ("GET", "/only"),
        ("GET", "/api/uncommented"),
        ("GET", "/api/switched-off"),
        ("GET", "/api/muted"),
        ("GET", "/wrong"),
        ("GET", "/patch"),
        ("GET", "/inside"),
        ("GET", "/api/inside"),
        ("POST", "/api/nowhere"),
        ("GET", "/api//list-open-orders"),
        ("GET", "/orders/open/more"),
    ],
)
def test_other_paths_and_methods_are_not_found(service: Service, method: str, path: str) -> None:
    problem(service.request(method, path), 404)


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/api/list-open-orders", {"GET"}),
        ("GET", "/api/forget", {"POST"}),
        ("GET", "/it", {"PUT", "DELETE"}),
        ("PATCH", "/it", {"PUT", "DELETE"}),
        ("TRACE", "/api/forget", {"POST"}),
    ],
)
def test_wrong_method_gets_405_with_allowed_methods(
    service: Service, method: str, path: str, allowed: set[str]
) -> None:
    response = service.request(method, path)
    problem(response, 405)
    assert _allowed(response.headers["allow"]) == allowed


def _allowed(header: str) -> set[str]:
    """Return the listed methods without HEAD and OPTIONS, which are always available and may be listed or not."""
    return {method.strip() for method in header.split(",")} - {"HEAD", "OPTIONS"}


def test_head_returns_headers_of_get_without_the_body(service: Service) -> None:
    got = service.get("/api/list-open-orders")
    head = service.request("HEAD", "/api/list-open-orders")
    assert (head.status_code, head.headers["content-type"], head.content) == (200, got.headers["content-type"], b"")


def test_head_leaves_the_connection_usable(service: Service) -> None:
    request = b"HEAD /api/list-open-orders HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    response = service.raw(request)
    assert response is not None
    assert (response.status, response.rest) == (200, b"")


def test_head_of_a_post_endpoint_gets_405(service: Service) -> None:
    response = service.request("HEAD", "/api/forget")
    assert response.status_code == 405
    assert response.content == b""


def test_options_lists_allowed_methods(service: Service) -> None:
    response = service.request("OPTIONS", "/it")
    assert response.status_code == 204
    assert _allowed(response.headers["allow"]) == {"PUT", "DELETE"}


def test_options_of_an_unknown_path_gets_404(service: Service) -> None:
    problem(service.request("OPTIONS", "/api/nowhere"), 404)


def test_absolute_url_as_a_path_logs_a_warning(service: Service) -> None:
    service.wait_for_log("http://example.com/x")


def test_header_lines_become_response_headers(service: Service) -> None:
    response = service.get("/headers")
    assert answer(response) == (200, "text/html; charset=utf-8", "<p>")
    assert response.headers.get_list("x-one") == ["a", "b"]
    assert response.headers["cache-control"] == "max-age=60"


def test_header_placeholders_are_filled_from_parameters(service: Service) -> None:
    response = service.get("/placeholder?file=report.txt")
    assert response.headers["content-disposition"] == "attachment; filename=report.txt"
    assert response.headers["x-unknown"] == "{unknown}"


def test_header_placeholder_value_cannot_inject_headers(service: Service) -> None:
    response = service.get("/placeholder?file=a%0d%0aX-Forged:%20yes")
    assert "x-forged" not in response.headers


def test_get_may_take_its_parameters_from_the_body(service: Service) -> None:
    assert answer(service.request("GET", "/api/body-on-get", json={"n": 3})) == (200, TEXT, "3")


def test_post_may_take_its_parameters_from_the_query(service: Service) -> None:
    assert answer(service.post("/api/query-on-post?n=3")) == (200, TEXT, "3")


PREFIXED = """
create schema shop;
create function shop.list_items(_max_price int) returns table(item_name text) language sql stable
  as $$select 'cup'$$;
comment on function shop.list_items(int) is 'HTTP';
"""


@pytest.mark.parametrize(
    ("settings", "path", "body"),
    [
        ({"Service:UrlPathPrefix": "v1/Data"}, "/v1/data/shop/list-items?maxPrice=1", '[{"itemName":"cup"}]'),
        ({"Service:UrlPathPrefix": ""}, "/shop/list-items?maxPrice=1", '[{"itemName":"cup"}]'),
        ({"Service:KebabCaseUrls": "false"}, "/api/shop/list_items/?maxPrice=1", '[{"itemName":"cup"}]'),
        ({"Service:CamelCaseNames": "false"}, "/api/shop/list-items?_max_price=1", '[{"item_name":"cup"}]'),
    ],
)
def test_configuration_determines_names_and_paths(
    own_database: Database, serve_once: Serve, settings: dict[str, str], path: str, body: str
) -> None:
    assert answer(serve_once(own_database, PREFIXED, settings).get(path)) == (200, JSON, body)


def test_head_of_a_large_set_leaves_no_running_query(own_database: Database, serve_once: Serve) -> None:
    sql = """
    create function many() returns table (n int, t text) language sql stable
      as $$select n, repeat('x', 100) from generate_series(1, 1000000) n$$;
    comment on function many() is 'HTTP GET';
    """
    service = serve_once(own_database, sql)
    response = service.request("HEAD", "/api/many")
    assert (response.status_code, response.content, response.headers["content-type"]) == (200, b"", "application/json")
    running = """select count(*) from pg_stat_activity
                  where datname = current_database() and state = 'active' and query like '%many%'
                    and pid <> pg_backend_pid()"""
    wait_until(lambda: own_database.value(running) == 0, "the query is cancelled")
