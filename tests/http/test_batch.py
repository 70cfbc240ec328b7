"""Several requests in one: in one transaction, or independent of each other."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table orders (id int generated always as identity primary key, customer text not null, owner text);
create table order_line (id int generated always as identity primary key, order_id int not null references orders
  deferrable initially deferred, product text not null unique, price numeric);
create function add_order(_customer text) returns orders language sql as
$$ insert into orders (customer) values (_customer) returning * $$;
comment on function add_order(text) is 'HTTP POST /orders
status 201';
create function add_line(_order_id int, _product text, _price numeric default 1.50) returns order_line language sql as
$$ insert into order_line (order_id, product, price) values (_order_id, _product, _price) returning * $$;
comment on function add_line(int, text, numeric) is 'HTTP POST /orders/{_order_id}/lines';
create function order_lines(_order_id int) returns setof order_line language sql stable as
$$ select * from order_line where order_id = _order_id order by id $$;
comment on function order_lines(int) is 'HTTP GET /orders/{_order_id}/lines
cached';
create function located() returns text language plpgsql as $$
begin
  perform set_config('response.status', '201', true);
  perform set_config('response.headers', '{"Location": "/orders/1/lines"}', true);
  return 'made';
end $$;
comment on function located() is 'HTTP POST /located';
create function decorated(_n int) returns text language plpgsql as $$
begin
  perform set_config('response.headers', json_build_object(
    'Set-Cookie', json_build_array(
      format('a=%s; HttpOnly', _n), format('b=%s; Path=/%s', _n, case _n when 1 then 'B' else 'b' end)),
    'Link', json_build_array(format('</%s>; rel=prev', _n), format('</%s>; rel=next', _n + 2)))::text, true);
  if _n < 0 then
    perform set_config('response.status', '409', true);
  end if;
  return 'x';
end $$;
comment on function decorated(int) is 'HTTP POST /decorated/{_n}';
create function plain() returns text language plpgsql as $$ begin
  perform current_setting('response.status', true);
  return coalesce(current_setting('response.status', true), '') || 'x';
end $$;
comment on function plain() is 'HTTP POST /plain
response_settings';
create function find(_id int) returns setof orders language sql stable as $$ select * from orders where id = _id $$;
comment on function find(int) is 'HTTP GET /orders/{_id}
single
null_handling not_found';
create function echo(_value jsonb) returns jsonb language sql stable as $$ select _value $$;
comment on function echo(jsonb) is 'HTTP POST /echo';
create function who() returns text language sql stable as
$$ select concat_ws('|', current_user, current_setting('request.user_id', true)) $$;
comment on function who() is 'HTTP GET /who
authorize
user_context';
create function who_openly() returns text language sql stable as
$$ select concat_ws('|', session_user = current_user, current_setting('request.user_id', true)) $$;
comment on function who_openly() is 'HTTP GET /who-openly';
create function for_boss() returns int language sql as $$ insert into orders (customer) values ('boss') returning 1 $$;
comment on function for_boss() is 'HTTP POST /for-boss
authorize boss';
create function limited() returns int language sql as
$$ insert into orders (customer) values ('limited') returning 1 $$;
comment on function limited() is 'HTTP POST /limited
rate_limiter three';
create function enter(_name text) returns table (status int, user_id text, user_roles text[]) language sql as
$$ select 200, _name, array[_name] $$;
comment on function enter(text) is 'HTTP POST /enter
login';
create procedure commits() language plpgsql as $$ begin insert into orders (customer) values ('p'); commit; end $$;
comment on procedure commits() is 'HTTP POST /commits';
create procedure stays() language plpgsql as $$ begin insert into orders (customer) values ('stays'); end $$;
comment on procedure stays() is 'HTTP POST /stays';
create function hidden() returns int language sql stable as 'select 1';
comment on function hidden() is 'HTTP GET /hidden
internal';
create function slow(_seconds float) returns void language sql as $$
  insert into orders (customer) values ('slow'); select pg_sleep(_seconds) $$;
comment on function slow(float) is 'HTTP POST /slow';
create function large(_n int) returns text language sql stable as $$ select repeat('x', _n) $$;
comment on function large(int) is 'HTTP GET /large';
create function picture() returns bytea language sql stable as $$ select '\\xff00fe'::bytea $$;
comment on function picture() is 'HTTP GET /picture';
create function nothing() returns void language sql as '';
comment on function nothing() is 'HTTP POST /nothing';
create function whole(_body text) returns text language sql as $$ select _body $$;
comment on function whole(text) is 'HTTP POST /whole
body_parameter_name _body';
create function of_tenant() returns text language sql stable as $$ select current_setting('request.tenant') $$;
comment on function of_tenant() is 'HTTP GET /of-tenant
tenant from header X-Tenant';
create table paid (amount int);
create function pay(_amount int) returns bigint language sql as
$$ insert into paid values (_amount); select count(*) from paid $$;
comment on function pay(int) is 'HTTP POST /pay
idempotent required';
create function pay_or_not(_amount int) returns bigint language sql as $$ select count(*) from paid $$;
comment on function pay_or_not(int) is 'HTTP POST /pay-or-not
idempotent';
create function hook(_event text) returns text language sql as $$ select _event $$;
comment on function hook(text) is 'HTTP POST /hook
body_parameter_name _event
verify_webhook github';
create function headers(_headers json default null) returns json language sql stable as $$ select _headers $$;
comment on function headers(json) is 'HTTP POST /headers
request_headers parameter
request_headers_parameter_name _headers';
create function many(_n int) returns table (n int) language sql stable as $$ select generate_series(1, _n) $$;
comment on function many(int) is 'HTTP GET /many';
create function sees() returns bigint language sql volatile as $$ select count(*) from orders $$;
comment on function sees() is 'HTTP GET /sees';
create function as_json(_text text, _status text default '200', _type text default 'application/json') returns text
language plpgsql as $$
begin
  perform set_config('response.status', _status, true);
  perform set_config('response.headers', json_build_object('Content-Type', _type)::text, true);
  return _text;
end $$;
comment on function as_json(text, text, text) is 'HTTP POST /as-json';
create function resolved(_n bigint default null) returns bigint language sql as $$ select _n $$;
comment on function resolved(bigint) is 'HTTP GET /resolved
_n = select count(*) from orders';
"""


FILES = {
    "own_transaction.sql": "-- HTTP POST /own-transaction\nbegin;\ninsert into orders (customer) values ('file');\n"
    "commit;\nselect 1;",
    "calls.sql": "-- HTTP POST /calls\ncall commits();\nselect 1;",
    "calls_plainly.sql": "-- HTTP POST /calls-plainly\ncall stays();\nselect 1;",
    "blocks.sql": "-- HTTP POST /blocks\ndo $$ begin insert into orders (customer) values ('block'); end $$;\n"
    "do $$ begin insert into orders (customer) values ('block'); end $$;",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    settings = {
        **file_settings(folder),
        "Batch:Enabled": "true",
        "Batch:MaxRequests": "20",
        "Batch:MaxResponseBytes": "100000",
        "Batch:Timeout": "2 seconds",
        "Batch:RefusedHeaders:0": "X-Client-Dn",
        "Auth:CookieAuth": "true",
        "CacheOptions:Enabled": "true",
        "RateLimiterOptions:Enabled": "true",
        "RateLimiterOptions:Policies:three:Type": "FixedWindow",
        "RateLimiterOptions:Policies:three:Enabled": "true",
        "RateLimiterOptions:Policies:three:PermitLimit": "3",
        "RateLimiterOptions:Policies:three:QueueLimit": "0",
        "RateLimiterOptions:Policies:three:WindowSeconds": "600",
        "Service:RequiresAuthorization": "false",
        "Service:Deadlines:RequestHeaders:0": "Request-Timeout",
        "Webhooks:Secrets:github": "secret",
    }
    database.execute(install_sql())
    return serve(database, SQL, settings, workers=2)


def request(path: str, body: Any = ..., method: str = "POST", **headers: str) -> dict[str, Any]:
    result: dict[str, Any] = {"method": method, "path": path}
    if body is not ...:
        result["body"] = body
    if headers:
        result["headers"] = {name.replace("_", "-"): value for name, value in headers.items()}
    return result


def get(path: str) -> dict[str, Any]:
    return {"method": "GET", "path": path}


def post(service: Service, *requests: dict[str, Any], transaction: bool = True) -> httpx.Response:
    return service.post("/batch" if transaction else "/batch?transaction=false", json=list(requests))


def bodies(response: httpx.Response) -> list[Any]:
    assert response.status_code == 200, response.text
    return [item["body"] for item in response.json()]


def test_later_requests_use_earlier_results(service: Service, database: Database) -> None:
    response = post(
        service,
        request("/orders", {"customer": "ann"}),
        request("/orders/$1.body.id/lines", {"product": "a"}),
        request("/orders/$1.body.id/lines", {"product": "b", "price": 12345678901234567890.5}),
        get("/orders/$2.body.orderId/lines"),
        request(
            "/echo", {"value": {"order": "$1.body", "rows": ["$4.body[1].product", "$4.body.0.id"], "at": "$1.status"}}
        ),
    )
    responses = response.json()
    assert response.status_code == 200, response.text
    assert [item["status"] for item in responses] == [201, 200, 200, 200, 200]
    order = responses[0]["body"]
    assert order["customer"] == "ann"
    assert [line["product"] for line in responses[3]["body"]] == ["a", "b"]
    assert responses[4]["body"] == {
        "order": order,
        "rows": ["b", responses[1]["body"]["id"]],
        "at": 201,
    }
    assert responses[0]["headers"]["content-type"].startswith("application/json")
    assert database.value("select count(*) from order_line where order_id = %s", order["id"]) == 2
    assert '"price":1.50' in response.text
    database.execute("delete from order_line")


@pytest.mark.parametrize(
    ("failing", "status"),
    [
        (request("/orders/999999/lines", {"product": "nowhere"}), 409),
        (request("/orders", {"customer": None}), 400),
        (request("/orders", {"custmer": "x"}), 404),
        (get("/orders/999999"), 404),
        (get("/no-such-path"), 404),
        (request("/for-boss"), 401),
        (get("/hidden"), 404),
        (request("/commits"), 400),
        (request("/own-transaction"), 400),
        (request("/calls"), 400),
        (request("/enter", {"name": "ann"}), 400),
        (request("/pay", {"amount": 1}), 400),
        (request("/hook", {"a": 1}, **{"X_Hub_Signature_256": "sha256=0"}), 400),
        (request("/echo", {"value": "$1.body.nothing"}), 400),
    ],
)
def test_transaction_is_rolled_back_if_one_request_fails(
    service: Service, database: Database, failing: dict[str, Any], status: int
) -> None:
    count = "select count(*) from orders where customer = 'gone'"
    response = post(
        service, request("/orders", {"customer": "gone"}), failing, request("/orders", {"customer": "gone"})
    )
    found = problem(response, status)
    # The deferred key is checked at the end of the transaction, so the error belongs to no single request.
    assert found.get("item") == (None if "999999/lines" in failing["path"] else 2)
    assert database.value(count) == 0
    apart = post(
        service,
        request("/orders", {"customer": "gone"}),
        failing,
        request("/orders", {"customer": "gone"}),
        transaction=False,
    )
    assert [item["status"] for item in apart.json()][::2] == [201, 201]
    assert database.value(count) == 2
    database.execute("delete from orders where customer = 'gone'")


def test_files_of_commands_are_part_of_the_transaction(service: Service, database: Database) -> None:
    count = "select count(*) from orders where customer in ('block', 'stays')"
    before = database.value(count)
    problem(post(service, request("/blocks"), request("/calls-plainly"), get("/no-such-path")), 404)
    assert database.value(count) == before
    assert post(service, request("/blocks"), request("/calls-plainly")).status_code == 200
    assert database.value(count) == before + 3
    database.execute("delete from orders where customer in ('block', 'stays')")


def test_uncommitted_writes_are_visible_only_within_the_batch(service: Service, database: Database) -> None:
    before = service.get("/sees").json()
    received = bodies(
        post(service, request("/orders", {"customer": "x"}), get("/sees"), request("/stays"), get("/sees"))
    )
    assert [received[1], received[3]] == [str(before + 1), str(before + 2)] or [received[1], received[3]] == [
        before + 1,
        before + 2,
    ]


def test_resolved_parameters_on_other_connections_are_refused_in_a_transaction(service: Service) -> None:
    refused = post(service, request("/orders", {"customer": "ann"}), get("/resolved"))
    assert "a connection of its own" in problem(refused, 400)["detail"]
    before = int(service.get("/resolved").text)
    added = post(service, request("/orders", {"customer": "ann"}), get("/resolved"), transaction=False)
    assert bodies(added)[1] == str(before + 1)


def test_a_cache_is_neither_read_nor_filled_in_a_transaction(service: Service) -> None:
    made = bodies(post(service, request("/orders", {"customer": "c"})))[0]["id"]
    assert service.get(f"/orders/{made}/lines").json() == []
    rows = bodies(
        post(service, request(f"/orders/{made}/lines", {"product": f"c{made}"}), get(f"/orders/{made}/lines"))
    )[1]
    assert len(rows) == 1
    assert service.get(f"/orders/{made}/lines").json() == []


def test_settings_of_one_request_do_not_affect_the_next(service: Service) -> None:
    responses = post(
        service, request("/located"), request("/plain"), request("/nothing"), get("$1.headers.location")
    ).json()
    assert [item["status"] for item in responses[:3]] == [201, 200, 204]
    assert responses[0]["headers"]["location"] == "/orders/1/lines"
    assert responses[1]["body"] == "x"
    assert responses[2]["body"] is None
    with service.new_client() as client:
        client.post("/enter", json={"name": "ann"})
        response = client.post("/batch", json=[get("/who"), get("/who-openly"), get("/who")])
        first, openly, last = (item["body"] for item in response.json())
        assert first.endswith("|ann")
        assert last == first
        assert openly in ("true|", "t|")


def test_each_request_is_authorized_separately(service: Service, database: Database) -> None:
    with service.new_client() as client:
        client.post("/enter", json={"name": "boss"})
        assert client.post("/batch", json=[request("/for-boss")]).status_code == 200
        client.post("/enter", json={"name": "ann"})
        assert problem(client.post("/batch", json=[request("/for-boss")]), 403)["item"] == 1


def test_each_request_counts_for_rate_limits(service: Service) -> None:
    response = post(service, *(request("/limited") for _ in range(4)), transaction=False)
    assert [item["status"] for item in response.json()] == [200, 200, 200, 429]
    refused = post(service, request("/limited"))
    assert problem(refused, 429)["item"] == 1


def test_reference_to_a_failed_response_gets_424(service: Service) -> None:
    response = post(
        service, get("/orders/999999"), request("/echo", {"value": "$1.body.id"}), get("/who-openly"), transaction=False
    )
    assert [item["status"] for item in response.json()] == [404, 424, 200]
    assert "the response 1 has no body.id" in response.json()[1]["body"]["detail"]


@pytest.mark.slow
def test_requests_of_a_batch_have_the_client_address_of_a_trusted_proxy(
    own_database: Database, serve_once: Serve
) -> None:
    sql = """create or replace function address(_ip_address text default null) returns text language sql stable as
        'select _ip_address';
        comment on function address(text) is E'HTTP GET /address\\nuser_parameters';"""
    settings = {"Batch:Enabled": "true", "Service:RequiresAuthorization": "false"}
    proxied = {"ForwardedHeaders:Enabled": "true", "ForwardedHeaders:KnownProxies:0": "127.0.0.1"}
    for others, address in ((proxied, "9.9.9.9"), ({}, "127.0.0.1")):
        behind = serve_once(own_database, sql, {**settings, **others})
        for parameters in ({}, {"transaction": "false"}):
            response = behind.post(
                "/batch", json=[get("/address")], params=parameters, headers={"X-Forwarded-For": "9.9.9.9"}
            )
            assert [item["body"] for item in response.json()] == [address]


@pytest.mark.parametrize("transaction", [True, False])
@pytest.mark.parametrize(
    "header", ["X-Tenant", "x-tenant", "X-Client-Dn", "Client-Cert", "X-Real-IP", "X-Original-For"]
)
def test_headers_of_a_gateway_cannot_be_set_for_one_request(service: Service, header: str, transaction: bool) -> None:
    """A gateway sets or removes them in the request, and does not see those in the body."""
    of_gateway = {"X-Tenant": "red"}
    query = {"transaction": str(transaction).lower()}
    plain = service.post("/batch", json=[get("/of-tenant")], headers=of_gateway, params=query)
    assert plain.json()[0]["body"] == "red"
    batch = [{**get("/of-tenant"), "headers": {header: "blue"}}]
    response = service.post("/batch", json=batch, headers=of_gateway, params=query)
    assert problem(response, 400)["detail"] == f"request 1: the header {header} cannot be set for one request"


def test_headers_in_the_batch_cannot_override_cross_site_protection(service: Service) -> None:
    """Browsers send Origin, and over plain HTTP no Fetch Metadata, which a request of the batch could add."""
    body = '[{"method": "POST", "path": "/for-boss", "headers": {"%s": "%s"}}]'
    with service.new_client() as client:
        client.post("/enter", json={"name": "boss"})
        for header, value in (("X-Plain", "1"), ("sec-fetch-site", "same-origin"), ("origin", service.url)):
            for mode in ("true", "false"):
                response = client.post(
                    f"/batch?transaction={mode}",
                    content=(body % (header, value)).encode(),
                    headers={"origin": "http://evil.example"},
                )
                results = response.json()
                status = results[0]["status"] if isinstance(results, list) else response.status_code
                assert status in (400, 403), (header, mode, results)


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("", "not valid JSON"),
        ("{}", "has to be an array"),
        ("[]", "has to be an array"),
        ("[1]", "request 1: it has to be an object"),
        ('[{"path": "/x", "url": 1}]', "unknown member 'url'"),
        ('[{"path": "x"}]', "begins with /"),
        ('[{"path": "/a b"}]', "begins with /"),
        ('[{"method": "TRACE", "path": "/x"}]', "method has to be one of"),
        ('[{"path": "/x", "headers": {"Cookie": "a"}}]', "the header Cookie cannot be set"),
        ('[{"path": "/x", "headers": {"X-Forwarded-For": "a"}}]', "cannot be set"),
        ('[{"path": "/x", "headers": {"Origin": "a"}}]', "the header Origin cannot be set"),
        ('[{"path": "/x", "headers": {"Sec-Fetch-Site": "same-origin"}}]', "the header Sec-Fetch-Site cannot be set"),
        ('[{"path": "/x", "headers": {"X": "a\\r\\nb"}}]', "is no header that can be sent"),
        ('[{"path": "/x", "headers": {"X": 1}}]', "an object of texts"),
        ('[{"path": "/$1.body.id"}]', "request 1: $1 is not the result of an earlier request"),
        ('[{"path": "/x"}, {"path": "/x", "body": {"a": ["$2.body"]}}]', "request 2: $2 is not the result"),
        ("[" + ",".join(['{"path": "/sees"}'] * 21) + "]", "at most 20 are allowed"),
    ],
)
def test_malformed_batches_get_400_with_the_reason(service: Service, body: str, part: str) -> None:
    response = service.post("/batch", content=body, headers={"content-type": "application/json"})
    assert part in problem(response, 400)["detail"]


def test_invalid_query_or_content_type_is_refused(service: Service) -> None:
    assert "transaction=false" in problem(service.post("/batch?parallel=1", json=[get("/sees")]), 400)["detail"]
    assert (
        "content type"
        in problem(service.post("/batch", content="x", headers={"content-type": "text/plain"}), 415)["detail"]
    )
    assert service.get("/batch").status_code == 405
    assert problem(post(service, get("/batch")), 404)["item"] == 1


@pytest.mark.slow
def test_time_and_size_limits_apply_to_the_whole_batch(service: Service, database: Database) -> None:
    count = "select count(*) from orders where customer = 'slow'"
    assert "Batch:Timeout" in problem(post(service, request("/slow", {"seconds": 30})), 504)["detail"]
    assert database.value(count) == 0
    reads = (get("/sees"), request("/slow", {"seconds": 30}), get("/sees"))
    interrupted = problem(post(service, *reads, transaction=False), 504)
    assert "request 2 was interrupted, and those before it keep their effects" in interrupted["detail"]
    assert interrupted["item"] == 2
    for transaction in (True, False):
        response = post(service, *(get("/large?n=60000") for _ in range(2)), transaction=transaction)
        refused = problem(response, 413)
        assert "Batch:MaxResponseBytes" in refused["detail"]
        assert refused["item"] == 2
        assert post(service, get("/large?n=90000"), transaction=transaction).status_code == 200
        assert len(bodies(post(service, get("/many?n=5000"), transaction=transaction))[0]) == 5000


@pytest.mark.parametrize("query", ["", "?transaction=false"])
def test_request_timeout_header_limits_the_whole_batch(service: Service, query: str) -> None:
    short = [request("/slow", {"seconds": 0.3}) for _ in range(5)]
    response = service.post(f"/batch{query}", json=short, headers={"request-timeout": "1"})
    assert "the deadline of the request has passed" in problem(response, 504)["detail"]


@pytest.mark.slow
@pytest.mark.parametrize("transaction", [True, False])
def test_running_query_is_cancelled_at_the_batch_timeout(
    service: Service, database: Database, *, transaction: bool
) -> None:
    running = """select count(*) from pg_stat_activity
        where query ~ 'slow' and state = 'active' and pid <> pg_backend_pid() and datname = current_database()"""
    before = database.value("select count(*) from orders")
    problem(post(service, request("/slow", {"seconds": 30}), transaction=transaction), 504)
    wait_until(lambda: database.value(running) == 0, "the statement has ended", 20)
    assert database.value("select count(*) from orders") == before


@pytest.mark.parametrize("transaction", [True, False])
def test_binary_response_bodies_are_base64_encoded(service: Service, transaction: bool) -> None:
    picture, text = post(service, get("/picture"), get("/sees"), transaction=transaction).json()
    assert (base64.b64decode(picture["body"]), picture["encoding"]) == (b"\xff\x00\xfe", "base64")
    assert "encoding" not in text


def test_a_streamed_response_that_breaks_off_does_not_end_the_batch(own_database: Database, serve_once: Serve) -> None:
    breaks = (
        "create function breaks() returns table (n int, t text) language sql stable as "
        "$$ select 1 / (50000 - g), repeat('x', 100) from generate_series(1, 50000) g $$; "
        "comment on function breaks() is 'HTTP GET /breaks';"
    )
    settings = {
        "Batch:Enabled": "true",
        "Batch:MaxResponseBytes": "100000000",
        "Service:RequiresAuthorization": "false",
    }
    service = serve_once(own_database, breaks, settings)
    broken, unknown = post(service, get("/breaks"), get("/unknown"), transaction=False).json()
    assert (broken["status"], unknown["status"]) == (500, 404)
    assert broken["body"]["detail"] == "the response was cut off"


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize("transaction", [True, False])
@pytest.mark.parametrize(
    ("content_type", "text", "body"),
    [
        ("Text/JSON; charset=utf-8", '{"a":1}', {"a": 1}),
        ("application/problem+json", "[1]\n", [1]),
        ("application/json", '{"a":1}\n{"a":2}\n', None),
        ("application/json", '{"a": ', None),
        ("application/json", r'"\ud800"', None),
        ("application/json", nested(150), json.loads(nested(150))),
        ("application/json", nested(300), None),
        ("application/json", nested(2000), None),
        ("application/jsonl", "[1]\n", None),
        ("application/x-ndjson", "[1]\n[2]\n", None),
    ],
)
def test_json_response_bodies_are_embedded_and_others_are_strings(
    service: Service, transaction: bool, content_type: str, text: str, body: Any
) -> None:
    """body: None: the text."""
    typed = request("/as-json", {"text": text, "type": content_type})
    first, second = bodies(post(service, typed, get("/sees"), transaction=transaction))
    assert (first, second.isdecimal()) == (text if body is None else body, True)


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ('{"a":1e400}', b'{"a":1e400,"item":1}'),
        ('{"id": 12345678901234567890.1, "of": [1.50]}', b'{"id":12345678901234567890.1,"of":[1.50],"item":1}'),
        (' {"a": 1}', b'{"a":1,"item":1}'),
        ('{"a": ', b'{"status":409,"item":1}'),
        ('{"a":1}\n{"a":2}', b'{"status":409,"item":1}'),
        (f'{{"a":{nested(300)}}}', b'{"status":409,"item":1}'),
        ("[1]", b'{"status":409,"item":1}'),
    ],
    ids=["exponent", "digits", "blanks", "invalid", "lines", "levels", "array"],
)
def test_failed_batch_response_includes_members_of_a_json_error_body(
    service: Service, body: str, members: bytes
) -> None:
    response = post(service, request("/as-json", {"text": body, "status": "409"}))
    assert (response.status_code, response.content) == (409, members)


def test_error_mapped_to_a_success_status_still_fails_the_batch(database: Database, serve_once: Serve) -> None:
    sql = """create function tolerated() returns int language sql as 'select 1 / (random() * 0)::int';
    comment on function tolerated() is 'HTTP POST /tolerated'"""
    policy = "ErrorHandlingOptions:ErrorCodePolicies:0:"
    tolerant = {f"{policy}Name": "Default", f"{policy}ErrorCodes:22012:StatusCode": "202", "Batch:Enabled": "true"}
    service = serve_once(database, sql, {"Service:RequiresAuthorization": "false", **tolerant})
    alone, failed = service.post("/tolerated"), post(service, request("/tolerated"))
    assert (alone.status_code, alone.json()["status"]) == (202, 202)
    assert (failed.status_code, failed.json()["status"], failed.json()["item"]) == (409, 409, 1)


def test_dollar_escapes_in_strings_are_not_references(service: Service) -> None:
    found = bodies(post(service, request("/echo", {"value": ["$$1.body", "$1", "costs $1.body", "$"]})))
    assert found == [["$1.body", "$1", "costs $1.body", "$"]]


def test_a_batch_is_off_by_default(database: Database, serve_once: Serve) -> None:
    service = serve_once(database)
    assert service.post("/batch", json=[get("/sees")]).status_code == 404


def test_values_of_references_are_encoded_in_paths(service: Service) -> None:
    first = request("/echo", {"value": {"x": "1/../../x?y=1#z", "away": "https://other.example/"}})
    responses = post(service, first, get("/orders/$1.body.x"), get("$1.body.away"), transaction=False).json()
    assert [item["status"] for item in responses] == [200, 400, 424]
    assert "'1/../../x?y=1#z' is not an integer" in responses[1]["body"]["detail"]
    assert "is no path of this service" in responses[2]["body"]["detail"]


def test_idempotency_keys_apply_to_independent_requests(service: Service, database: Database) -> None:
    one, two = (request("/pay", {"amount": n}, **{"Idempotency_Key": f"key-{n}"}) for n in (1, 2))
    for expected in ([200, 200], [200, 200]):
        found = post(service, one, two, transaction=False).json()
        assert [item["status"] for item in found] == expected
    assert [item["headers"].get("idempotency-replayed") for item in found] == ["true", "true"]
    assert database.value("select count(*) from paid") == 2
    other = request("/pay", {"amount": 3}, **{"Idempotency_Key": "key-1"})
    assert [item["status"] for item in post(service, other, transaction=False).json()] == [422]


def test_idempotency_key_is_refused_for_a_transaction(service: Service) -> None:
    """A key that is ignored would let a client repeat a batch that has taken effect."""
    whole = service.post("/batch", json=[get("/sees")], headers={"idempotency-key": "x"})
    assert "give each request the header Idempotency-Key" in problem(whole, 400)["detail"]
    item = post(service, get("/sees"), request("/pay-or-not", {"amount": 1}, **{"Idempotency_Key": "x"}))
    assert problem(item, 400)["item"] == 2
    assert post(service, request("/pay-or-not", {"amount": 1})).status_code == 200


def test_request_bodies_of_other_content_types_are_sent_unchanged(service: Service) -> None:
    found = bodies(
        post(
            service,
            request("/whole", 'a "text"\n', **{"Content_Type": "text/plain; charset=utf-8"}),
            request("/whole", "$1.body", **{"Content_Type": "text/plain"}),
            request("/whole", {"a": 1}, **{"Content_Type": "text/plain"}),
            request("/whole", "text", **{"Content_Type": "application/problem+json"}),
            request("/whole", '{"a":1}\n{"a":2}\n', **{"Content_Type": "application/x-ndjson"}),
            request("/orders", "customer=ann+lee", **{"Content_Type": "application/x-www-form-urlencoded"}),
        )
    )
    assert found[:5] == ['a "text"\n', 'a "text"\n', '{"a":1}', '"text"', '{"a":1}\n{"a":2}\n']
    assert found[5]["customer"] == "ann lee"


def test_references_with_line_breaks_are_refused_in_headers(service: Service) -> None:
    first = request("/echo", {"value": {"a": "x\r\ny: z", "b": "ok"}})
    refused = request("/headers", **{"X_Value": "$1.body.a"})
    assert "a header cannot have" in problem(post(service, first, refused), 400)["detail"]
    response = post(service, first, request("/headers", **{"X_Value": "$1.body.b"}))
    sent = bodies(response)[1]
    assert sent["X-Value"] == "ok"


def test_references_follow_nested_members_and_indexes(service: Service) -> None:
    value = {"items": [{"id": 7, "a-b": {"c_d": [[1, 2]]}}], "0": "zero"}
    wanted = ["$1.body.items[0].id", "$1.body.items.0.a-b.c_d[0][1]", "$1.body.0", "$1.headers.Content-Type", "$1.body"]
    found = bodies(post(service, request("/echo", {"value": value}), request("/echo", {"value": wanted})))[1]
    assert found == [7, 2, "zero", "application/json", value]
    for missing in ("$1.body.items[1]", "$1.body.items[0].id.x", "$1.body.Items"):
        refused = post(service, request("/echo", {"value": value}), request("/echo", {"value": missing}))
        assert problem(refused, 400)["item"] == 2


@pytest.mark.parametrize("transaction", [True, False])
def test_cookies_are_set_on_the_batch_response_only(service: Service, transaction: bool) -> None:
    """In the body, scripts could read cookies that are `HttpOnly`."""
    response = post(service, request("/decorated/1"), request("/decorated/2"), transaction=transaction)
    cookies = response.headers.get_list("set-cookie")
    assert cookies == ["a=2; HttpOnly", "b=1; Path=/B", "b=2; Path=/b"], "the last of each name and path"
    assert "HttpOnly" not in response.text
    assert response.json()[0]["headers"]["link"] == "</1>; rel=prev, </3>; rel=next"
    referring = post(
        service, request("/decorated/1"), request("/echo", {"value": "$1.headers.set-cookie"}), transaction=transaction
    )
    assert "HttpOnly" not in referring.text
    assert "no headers.set-cookie" in referring.text


def test_a_failed_batch_sets_only_the_cookies_of_the_failed_response(service: Service) -> None:
    response = post(service, request("/decorated/1"), request("/decorated/-1"))
    assert (response.status_code, response.json()["item"]) == (409, 2)
    assert response.headers.get_list("set-cookie") == ["a=-1; HttpOnly", "b=-1; Path=/b"]


def test_sign_in_within_a_batch_sets_the_session_cookie(service: Service) -> None:
    with service.new_client() as client:
        response = client.post("/batch?transaction=false", json=[request("/enter", {"name": "ann"})])
        assert "set-cookie" in response.headers
        assert "set-cookie" not in response.json()[0]["headers"]
        assert client.get("/who").text.endswith("|ann")
