"""`Service:DefaultHttpMethod` and `Service:DefaultRequestParamType`, for comments that do not set these themselves."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function get_plain(_a int) returns int language sql stable as 'select _a';
create function with_path(_a int) returns int language sql stable as 'select _a';
create function own_method(_a int) returns int language sql as 'select _a';
create function own_transport(_a int) returns int language sql stable as 'select _a';
comment on function get_plain(int) is 'HTTP';
comment on function with_path(int) is 'HTTP /with-path';
comment on function own_method(int) is 'HTTP GET';
comment on function own_transport(int) is E'HTTP\\nparam_type body_json';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"Service:DefaultHttpMethod": "put", "Service:DefaultRequestParamType": "QueryString"})


@pytest.mark.parametrize("path", ["/api/get-plain", "/with-path"])
def test_default_method_and_transport_apply_without_annotations(service: Service, path: str) -> None:
    assert service.request("PUT", f"{path}?a=1").text == "1"
    problem(service.get(f"{path}?a=1"), 405)


def test_annotated_method_uses_its_own_transport(service: Service) -> None:
    assert service.get("/api/own-method?a=1").text == "1"


def test_annotated_transport_takes_precedence(service: Service) -> None:
    assert service.request("PUT", "/api/own-transport", json={"a": 1}).text == "1"


def test_json_body_can_be_the_default_transport(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {"Service:DefaultRequestParamType": "BodyJson"})
    assert service.request("GET", "/api/get-plain", json={"a": 1}).text == "1"
    assert service.get("/api/own-method?a=1").text == "1"
