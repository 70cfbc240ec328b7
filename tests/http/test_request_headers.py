"""The headers of a request, in a parameter or in a setting of the routine's transaction (binding-22 to binding-24)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function in_setting() returns json language sql stable
  as $$ select coalesce(nullif(current_setting('request.headers', true), '')::json, '"none"') $$;
comment on function in_setting() is E'HTTP GET /in-setting\\nrequest_headers_mode context';

create function volatile_setting() returns json language sql
  as $$ select current_setting('request.headers', true)::json $$;
comment on function volatile_setting() is E'HTTP POST /in-setting\\nrequest_headers context';

create function without_setting() returns json language sql stable
  as $$ select coalesce(nullif(current_setting('request.headers', true), '')::json, '"none"') $$;
comment on function without_setting() is 'HTTP GET /without-setting';

create function rows_with_setting(_n int) returns table (agent text) language sql stable
  as $$ select current_setting('request.headers', true)::json ->> 'User-Agent' from generate_series(1, _n) $$;
comment on function rows_with_setting(int) is E'HTTP GET /rows-with-setting\\nrequest_headers_mode context';

create table seen (by text);
create procedure note_twice() language plpgsql as $$
begin
  insert into seen values (current_setting('request.headers')::json ->> 'User-Agent');
  commit;
  insert into seen values (current_setting('request.headers')::json ->> 'User-Agent');
end $$;
comment on procedure note_twice() is E'HTTP POST /note-twice\\nrequest_headers_mode context';

create function in_named(_first int default 1, _all json default null, _last text default 'z') returns json
  language sql stable as $$ select json_build_array(_first, _all, _last) $$;
comment on function in_named(int, json, text) is E'HTTP GET /in-named\\nrequest_headers_parameter_name _ALL';

create function ignoring(_headers json default '"default"') returns json language sql stable as 'select _headers';
comment on function ignoring(json) is E'HTTP GET /ignoring\\nrequest_headers_mode ignore';

create function required(_headers json) returns json language sql stable as 'select _headers';
comment on function required(json) is 'HTTP GET /required';

create function wrong_mode(_headers json default null) returns json language sql stable as 'select _headers';
comment on function wrong_mode(json) is E'HTTP GET /wrong-mode\\nrequest_headers_mode somehow';
"""

AGENT = {"user-agent": "\"quoted\" 'x'; \\ $1 {y} %s"}
SEEN_AGENT = AGENT["user-agent"]


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    added = {
        "Service:CustomRequestHeaders:X-Site": "north",
        "Service:CustomRequestHeaders:X-Secret": "",
        "Service:InstanceIdRequestHeaderName": "X-Instance",
    }
    return serve(database, SQL, added, workers=2)


def headers_at(service: Service, path: str, **options: Any) -> Any:
    response = service.get(path, **options)
    assert response.status_code == 200, response.text
    return response.json()


def test_context_mode_sets_the_headers_for_the_call(service: Service) -> None:
    received = headers_at(service, "/in-setting", headers={**AGENT, "x-list": "a"})
    assert received["User-Agent"] == SEEN_AGENT
    assert received["X-List"] == "a"
    usual = {"DNT": "1", "TE": "trailers", "traceparent": "00-1", "Content-MD5": "x"}
    sent = headers_at(service, "/in-setting", headers={**usual, "Tracestate": "a=1", "X-API-Key": "k"})
    assert usual.items() <= sent.items()
    assert (sent["tracestate"], sent["X-Api-Key"]) == ("a=1", "k")
    assert received["Host"] == f"127.0.0.1:{service.port}"


def test_context_mode_works_for_routines_that_write(service: Service) -> None:
    assert service.post("/in-setting", headers=AGENT).json()["User-Agent"] == SEEN_AGENT


def test_context_mode_works_for_rows(service: Service) -> None:
    assert service.get("/rows-with-setting?n=3", headers=AGENT).json() == [{"agent": SEEN_AGENT}] * 3


def test_context_mode_works_for_a_procedure_that_commits(service: Service, database: Database) -> None:
    assert service.post("/note-twice", headers=AGENT).status_code == 204
    assert database.fetch("select by from seen") == [(SEEN_AGENT,)] * 2


@pytest.mark.slow
def test_every_request_sees_its_own_headers_and_others_see_none(service: Service) -> None:
    def ask(client_number: int) -> list[object]:
        responses = []
        with service.new_client() as client:
            for number in range(30):
                mine = client.get("/in-setting", headers={"x-number": f"{client_number} {number}"}).json()
                responses += [mine.get("X-Number"), client.get("/without-setting").json()]
        return responses

    with ThreadPoolExecutor(8) as threads:
        answered = list(threads.map(ask, range(8)))
    assert answered == [[received for n in range(30) for received in (f"{client} {n}", "none")] for client in range(8)]


def test_parameter_mode_fills_the_parameter_that_is_named(service: Service) -> None:
    first, headers, last = headers_at(service, "/in-named?first=7", headers=AGENT)
    assert (first, headers["User-Agent"], last) == (7, SEEN_AGENT, "z")


def test_a_request_value_cannot_replace_the_header_parameter(service: Service) -> None:
    """A client cannot set the parameter in which a routine gets the headers."""
    first, headers, last = headers_at(service, '/in-named?all={"mine":1}', headers=AGENT)
    assert (first, headers["User-Agent"], last) == (1, SEEN_AGENT, "z")
    assert "mine" not in headers


def test_request_values_can_replace_the_header_parameter_if_configured(
    own_database: Database, serve_once: Serve
) -> None:
    service = serve_once(own_database, SQL, {"Service:RequestHeadersFromClient": "true"})
    assert headers_at(service, '/in-named?all={"mine":1}') == [1, {"mine": 1}, "z"]
    assert "WRN" in service.wait_for_log("Service:RequestHeadersFromClient")


def test_ignore_mode_leaves_the_parameter_unset(service: Service) -> None:
    assert headers_at(service, "/ignoring") == "default"


def test_a_parameter_without_default_is_not_filled(service: Service) -> None:
    assert "headers" in problem(service.get("/required"), 404)["detail"]


def test_an_unknown_mode_is_reported_and_changes_nothing(service: Service) -> None:
    assert "User-Agent" in headers_at(service, "/wrong-mode")
    service.wait_for_log("'somehow' is none of ignore, context, parameter")


def test_a_header_that_is_not_ascii_is_left_out(service: Service) -> None:
    """The HTTP server passes on no such value."""
    response = service.raw(b"GET /in-setting HTTP/1.1\r\nHost: x\r\nX-Odd: a\xffb\r\nConnection: close\r\n\r\n")
    assert response
    assert (response.status, json.loads(response.body)["Host"]) == (200, "x")
    assert "X-Odd" not in json.loads(response.body)


def test_configured_headers_are_added_and_override_those_of_the_client(service: Service) -> None:
    received = headers_at(service, "/in-setting", headers={"x-site": "forged", "X-Secret": "forged"})
    assert (received["X-Site"], received["X-Secret"]) == ("north", "")


def test_the_instance_id_is_equal_in_all_workers(service: Service) -> None:
    ids = set()
    for _ in range(20):
        with service.new_client() as client:
            ids.add(client.get("/in-setting", headers={"x-instance": "forged"}).json()["X-Instance"])
    [instance] = ids
    assert len(instance) == 32


def test_a_setting_without_a_dot_is_refused_at_start(own_database: Database, serve_once: Serve) -> None:
    with pytest.raises(AssertionError, match="RequestHeadersContextKey: a name with a dot is needed"):
        serve_once(own_database, "", {"Service:RequestHeadersContextKey": "headers"})
