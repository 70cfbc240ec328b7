"""How long a routine may run: `timeout`, `Service:CommandTimeout`, in all forms of an interval (comments-29,
execution-22)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

FORMS = {
    "0.05": "timeout 0.05",
    "50ms": "timeout 50ms",
    "50msec": "command_timeout 50msec",
    "50000us": "TIMEOUT 50000us",
    ".05s": "@timeout .05s",
    "0.0005m": "timeout 0.0005m",
    "0.00001h": "timeout 0.00001hours",
    "clock": "timeout 00:00:00.05",
    "words": "timeout = 50 milliseconds",
    "two words": "timeout 50 milliseconds",
    "assigned": "command_timeout = 0.05 seconds",
    "week": "timeout 0.0000001w",
    "less than PostgreSQL can express": "timeout 100us",
}
NONE = {
    "off": "timeout 0",
    "two words, longer": "timeout 5 seconds",
    "bad": "timeout soon",
    "negative": "timeout -5ms",
    "more than PostgreSQL can express": "timeout 30days",
}
"""Read as no limit, as five seconds, not at all, and as 24 days."""


def _function(number: int, kind: str, line: str) -> str:
    name = f"{kind}_{number}"
    return (
        f"create function {name}(_seconds float8) returns text language plpgsql as"
        " $$ begin perform pg_sleep(_seconds); return 'slept'; end $$;"
        f"comment on function {name}(float8) is E'HTTP GET\\n{line}';"
    )


SQL = "".join(
    _function(number, kind, line)
    for kind, forms in (("short", FORMS), ("long", NONE))
    for number, line in enumerate(forms.values())
)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"Service:CommandTimeout": "00:00:20"})


@pytest.mark.parametrize("number", range(len(FORMS)), ids=list(FORMS))
def test_a_routine_over_its_timeout_is_cancelled(service: Service, number: int) -> None:
    members = problem(service.get(f"/api/short-{number}?seconds=30"), 504)
    assert (members["title"], members.get("detail")) == ("Command execution timed out", None)


@pytest.mark.parametrize("number", range(len(NONE)), ids=list(NONE))
def test_a_routine_within_its_timeout_is_not_cancelled(service: Service, number: int) -> None:
    assert service.get(f"/api/long-{number}?seconds=0.1").text == "slept"


@pytest.mark.parametrize("value", ["soon", "-5ms"])
def test_an_invalid_timeout_is_reported(service: Service, value: str) -> None:
    assert service.log.count(f"'{value}' is not an interval; the global timeout applies") == 1


@pytest.mark.slow
def test_the_command_timeout_of_the_connection_string_applies_by_default(
    own_database: Database, serve_once: Serve
) -> None:
    server = own_database.server
    text = f"Host=127.0.0.1;Port={server.port};Database={own_database.name};Username=postgres;Command Timeout=1"
    service = serve_once(own_database, _function(0, "short", ""), {"ConnectionStrings:Default": text})
    problem(service.get("/api/short-0?seconds=30"), 504)
