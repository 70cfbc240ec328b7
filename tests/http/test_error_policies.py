"""`error_code_policy`, `ErrorHandlingOptions` (errors-6 to errors-13): responses to SQLSTATEs by policy."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function by_default(_code text) returns text language plpgsql stable
  as $$ begin raise exception 'said so' using errcode = _code; end $$;
create function by_shop(_code text) returns text language plpgsql stable
  as $$ begin raise exception 'said so' using errcode = _code; end $$;
create function by_assignment(_code text) returns text language plpgsql stable
  as $$ begin raise exception 'said so' using errcode = _code; end $$;
create function by_unknown(_code text) returns text language plpgsql stable
  as $$ begin raise exception 'said so' using errcode = _code; end $$;
create function cancelled_in_shop() returns text language plpgsql
  as $$ begin perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(30); return 'never'; end $$;
create function slow_in_shop() returns text language plpgsql
  as $$ begin perform pg_sleep(30); return 'never'; end $$;
comment on function by_default(text) is 'HTTP';
comment on function by_shop(text) is E'HTTP\\nerror_code_policy shop errors';
comment on function by_assignment(text) is E'HTTP\\n@error_code = shop errors';
comment on function by_unknown(text) is E'HTTP\\nerror_code_policy Shop Errors';
comment on function cancelled_in_shop() is E'HTTP GET\\nerror_code_policy shop errors';
comment on function slow_in_shop() is E'HTTP GET\\nerror_code_policy shop errors\\ntimeout 100ms';
"""

POLICIES = "ErrorHandlingOptions:ErrorCodePolicies:"
SETTINGS = {
    "CommandRetryOptions:Enabled": "false",
    f"{POLICIES}0:Name": "Default",
    f"{POLICIES}0:ErrorCodes:P0001:StatusCode": "400",
    f"{POLICIES}1:Name": "shop errors",
    f"{POLICIES}1:ErrorCodes:23505:StatusCode": "409",
    f"{POLICIES}1:ErrorCodes:23505:Title": "Already there",
    f"{POLICIES}1:ErrorCodes:23505:Details": "one of each",
    f"{POLICIES}1:ErrorCodes:23505:Type": "https://shop.example/conflict",
    f"{POLICIES}1:ErrorCodes:sh001:StatusCode": "422",
    f"{POLICIES}1:ErrorCodes:57014:StatusCode": "408",
    f"{POLICIES}1:ErrorCodes:57014:Title": "Stopped",
    f"{POLICIES}1:ErrorCodes:22012:Title": "has no status and is skipped",
    f"{POLICIES}2:Name": "empty",
    f"{POLICIES}3:ErrorCodes:P0001:StatusCode": "418",
    "ErrorHandlingOptions:TimeoutErrorMapping:StatusCode": "503",
    "ErrorHandlingOptions:TimeoutErrorMapping:Title": "Too slow",
    "ErrorHandlingOptions:TimeoutErrorMapping:Details": "try a smaller one",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


def test_a_mapping_sets_every_member(service: Service) -> None:
    response = service.get("/api/by-shop?code=23505")
    assert (response.status_code, response.json()) == (
        409,
        {"type": "https://shop.example/conflict", "title": "Already there", "status": 409, "detail": "one of each"},
    )


@pytest.mark.parametrize("path", ["by-shop", "by-assignment"])
def test_unset_members_of_a_mapping_come_from_the_error(service: Service, path: str) -> None:
    response = service.get(f"/api/{path}?code=SH001")
    assert (response.status_code, response.json()["title"], response.json()["detail"]) == (422, "said so", "SH001")


def test_a_named_policy_inherits_nothing(service: Service) -> None:
    members = problem(service.get("/api/by-shop?code=P0001"), 500)
    assert members["title"] == "P0001: said so"


def test_a_code_without_a_status_is_not_mapped(service: Service) -> None:
    assert problem(service.get("/api/by-shop?code=22012"), 500)["title"] == "22012: said so"


def test_a_configured_default_replaces_the_built_in_one(service: Service) -> None:
    assert problem(service.get("/api/by-default?code=P0001"), 400)["title"] == "said so"
    assert problem(service.get("/api/by-default?code=42501"), 500)["title"] == "42501: said so"


def test_unknown_policy_maps_nothing_and_is_logged_once(service: Service) -> None:
    assert problem(service.get("/api/by-unknown?code=P0001"), 500)["title"] == "P0001: said so"
    warnings = [line for line in service.log.splitlines() if "'Shop Errors' is none of Default, shop errors" in line]
    assert len(warnings) == 1
    assert "by_unknown(text)" in warnings[0]


def test_unusable_policies_are_logged(service: Service) -> None:
    service.wait_for_log("ErrorCodePolicies:2 is skipped")
    service.wait_for_log("ErrorCodePolicies:3 is skipped: it has not a Name")


def test_external_cancel_and_statement_timeout_are_mapped_separately(service: Service) -> None:
    assert service.get("/api/cancelled-in-shop").json()["title"] == "Stopped"
    members = problem(service.get("/api/slow-in-shop"), 503)
    assert (members["title"], members["detail"]) == ("Too slow", "try a smaller one")


BUILT_IN = """
create function failing(_code text) returns text language plpgsql stable
  as $$ begin raise exception 'said so' using errcode = _code; end $$;
comment on function failing(text) is 'HTTP';
create function cancelled() returns text language plpgsql
  as $$ begin perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(30); return 'never'; end $$;
comment on function cancelled() is 'HTTP GET';
"""


@pytest.fixture(scope="module")
def built_in(database: Database, serve: Serve) -> Service:
    return serve(database, BUILT_IN, {"CommandRetryOptions:Enabled": "false"})


@pytest.mark.parametrize(
    ("code", "status", "title"),
    [
        ("P0001", 400, "said so"),
        ("P0004", 400, "said so"),
        ("42501", 403, "Insufficient Privilege"),
        ("57014", 504, "Cancelled"),
        ("P0002", 500, "P0002: said so"),
        ("23505", 409, "said so"),
        ("23503", 409, "said so"),
        ("23502", 400, "said so"),
        ("22012", 500, "22012: said so"),
        ("40001", 500, "40001: said so"),
        ("28000", 500, "28000: said so"),
        ("AB123", 500, "AB123: said so"),
    ],
)
def test_built_in_policy_maps_sqlstates(built_in: Service, code: str, status: int, title: str) -> None:
    members = problem(built_in.get(f"/api/failing?code={code}"), status)
    assert (members["title"], members["detail"]) == (title, code)


def test_external_cancel_gets_504(built_in: Service) -> None:
    assert problem(built_in.get("/api/cancelled"), 504)["title"] == "Cancelled"


def test_unknown_default_policy_logs_a_warning(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, BUILT_IN, {"ErrorHandlingOptions:DefaultErrorCodePolicy": "default"})
    service.wait_for_log("'default', which is none of the policies Default")
    assert problem(service.get("/api/failing?code=P0001"), 500)["title"] == "P0001: said so"
