"""`CommandRetryOptions`, `retry_strategy` (execution-11 to execution-14): what passes by itself is tried again, when it
is safe."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table runs (name text, run int generated always as identity);
create sequence flaky_runs;
create function flaky(_code text, _failures int) returns text language plpgsql as $$
declare run int := nextval('flaky_runs');
begin
  if run <= _failures then raise exception 'run %', run using errcode = _code; end if;
  return 'run ' || run;
end $$;
create function flaky_read(_code text, _failures int) returns text language plpgsql stable as $$
declare run int := nextval('flaky_runs');
begin
  if run <= _failures then raise exception 'run %', run using errcode = _code; end if;
  return 'run ' || run;
end $$;
create function named(_code text, _failures int) returns text language sql as 'select flaky($1, $2)';
create function unknown_name(_code text, _failures int) returns text language sql as 'select flaky($1, $2)';
create function mapped(_code text, _failures int) returns text language sql as 'select flaky($1, $2)';
create function streamed(_failures int) returns setof text language sql
  as $$ select flaky('40001', $1) from generate_series(1, 1) $$;
create procedure proceed(_code text) language plpgsql as $$
begin perform flaky(_code, 3); end $$;
comment on function flaky(text, int) is 'HTTP GET';
comment on function flaky_read(text, int) is 'HTTP';
comment on function named(text, int) is E'HTTP GET\\nretry_strategy Only Twice';
comment on function unknown_name(text, int) is E'HTTP GET\\nretry nothing of the kind';
comment on function mapped(text, int) is E'HTTP GET\\nerror_code_policy conflicts';
comment on function streamed(int) is 'HTTP GET';
comment on procedure proceed(text) is 'HTTP POST';
create procedure proceed_committing(_code text) language plpgsql as $$
begin perform flaky(_code, 3); commit; end $$;
comment on procedure proceed_committing(text) is 'HTTP POST';
create function waiting_for_lock() returns int language plpgsql set lock_timeout = '20ms' as $$
begin perform flaky('40001', 0); lock table runs in access exclusive mode; return 1; end $$;
comment on function waiting_for_lock() is 'HTTP GET';
create function slow() returns text language plpgsql as $$
begin perform flaky('40001', 0); perform pg_sleep(30); return 'never'; end $$;
comment on function slow() is E'HTTP GET\\ntimeout 50ms';
"""

STRATEGIES = "CommandRetryOptions:Strategies:"
SETTINGS = {
    f"{STRATEGIES}default:RetrySequenceSeconds:0": "0",
    f"{STRATEGIES}default:RetrySequenceSeconds:1": "0.01",
    f"{STRATEGIES}default:RetrySequenceSeconds:2": "0.02",
    f"{STRATEGIES}Only Twice:RetrySequenceSeconds:0": "0",
    f"{STRATEGIES}Only Twice:ErrorCodes:0": "SH001",
    "ErrorHandlingOptions:ErrorCodePolicies:0:Name": "Default",
    "ErrorHandlingOptions:ErrorCodePolicies:0:ErrorCodes:P0001:StatusCode": "400",
    "ErrorHandlingOptions:ErrorCodePolicies:1:Name": "conflicts",
    "ErrorHandlingOptions:ErrorCodePolicies:1:ErrorCodes:40001:StatusCode": "409",
}
EXHAUSTED = "Failed to execute command after 4 attempts. See inner exception for details."


@pytest.fixture(scope="module")
def running(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


@pytest.fixture
def service(running: Service, database: Database) -> Service:
    database.execute("alter sequence flaky_runs restart")
    return running


def _runs(database: Database) -> int:
    return int(database.value("select last_value from flaky_runs"))


@pytest.mark.parametrize("path", ["flaky", "flaky-read"])
@pytest.mark.parametrize("code", ["40001", "40P01", "53300", "55P03"])
def test_a_transient_error_is_retried_and_not_returned(service: Service, path: str, code: str) -> None:
    response = service.get(f"/api/{path}?code={code}&failures=3")
    assert answer(response) == (200, TEXT, "run 4")


def test_a_read_on_a_pipelined_connection_is_retried(service: Service, database: Database) -> None:
    for _ in range(40):
        assert service.get("/api/flaky-read?code=40001&failures=0").status_code == 200
    database.execute("alter sequence flaky_runs restart")
    assert answer(service.get("/api/flaky-read?code=40001&failures=3")) == (200, TEXT, "run 4")


def test_after_the_last_retry_the_error_is_returned(service: Service, database: Database) -> None:
    members = problem(service.get("/api/flaky?code=40001&failures=9"), 500)
    assert (members["title"], members["detail"]) == ("Internal Server Error", EXHAUSTED)
    assert _runs(database) == 4
    service.wait_for_log("attempt 3 failed (40001), the next one follows in 0.02 s")


@pytest.mark.parametrize("code", ["P0002", "23505", "42501"])
def test_a_permanent_error_is_not_retried(service: Service, database: Database, code: str) -> None:
    assert problem(service.get(f"/api/flaky?code={code}&failures=1"), 500)["title"] == f"{code}: run 1"
    assert _runs(database) == 1


def test_another_error_after_a_retry_is_returned_unchanged(service: Service, database: Database) -> None:
    database.execute(
        "create or replace function waiting_for_lock() returns int language plpgsql as $$"
        " begin perform flaky('40001', 1); raise exception 'enough'; end $$"
    )
    assert problem(service.get("/api/waiting-for-lock"), 400)["title"] == "enough"
    assert _runs(database) == 2


def test_a_retry_strategy_has_its_own_codes_and_delays(service: Service, database: Database) -> None:
    assert answer(service.get("/api/named?code=SH001&failures=1")) == (200, TEXT, "run 2")
    database.execute("alter sequence flaky_runs restart")
    members = problem(service.get("/api/named?code=SH001&failures=2"), 500)
    assert members["detail"] == "Failed to execute command after 2 attempts. See inner exception for details."
    database.execute("alter sequence flaky_runs restart")
    assert problem(service.get("/api/named?code=40001&failures=1"), 500)["title"] == "40001: run 1"


def test_an_unknown_strategy_is_reported_and_replaced_by_the_default(service: Service) -> None:
    assert answer(service.get("/api/unknown-name?code=40001&failures=1")) == (200, TEXT, "run 2")
    warning = "retry_strategy 'nothing of the kind' is none of Only Twice, default; the default strategy holds"
    assert service.log.count(warning) == 1


def test_a_mapped_code_is_not_retried(service: Service, database: Database) -> None:
    assert service.get("/api/mapped?code=40001&failures=1").status_code == 409
    assert _runs(database) == 1


def test_a_set_is_retried_before_it_is_sent(service: Service) -> None:
    assert service.get("/api/streamed?failures=2").json() == ["run 3"]


def test_a_procedure_that_may_commit_is_never_retried(service: Service, database: Database) -> None:
    """It may have done so on its way (driver-12)."""
    assert problem(service.post("/api/proceed-committing", json={"code": "40001"}), 500)["title"] == "40001: run 1"
    assert _runs(database) == 1


def test_a_procedure_that_cannot_commit_is_retried_as_functions_are(service: Service, database: Database) -> None:
    assert service.post("/api/proceed", json={"code": "40001"}).status_code == 204
    assert _runs(database) == 4


def test_a_timeout_is_not_retried(service: Service, database: Database) -> None:
    problem(service.get("/api/slow"), 504)
    assert _runs(database) == 1


def test_retries_can_be_turned_off(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, SETTINGS | {"CommandRetryOptions:Enabled": "false"})
    assert problem(service.get("/api/flaky?code=40001&failures=1"), 500)["title"] == "40001: run 1"
    # What has not even begun is still repeated: no client caused that error and none may see it.
    own_database.terminate("application_name <> 'psql'")
    assert answer(service.get("/api/flaky?code=40001&failures=0")) == (200, TEXT, "run 2")


def test_an_unknown_default_strategy_retries_nothing(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, SETTINGS | {"CommandRetryOptions:DefaultStrategy": "none such"})
    service.wait_for_log("'none such', which is none of the strategies default, Only Twice")
    assert problem(service.get("/api/flaky?code=40001&failures=1"), 500)["title"] == "40001: run 1"


SKEW = """
create table doctors (name text);
create function leave_shift(_name text) returns bigint language plpgsql as $$
declare there bigint := (select count(*) from doctors);
begin
  perform pg_advisory_lock_shared(7);
  insert into doctors values (_name);
  return there;
end $$;
comment on function leave_shift(text) is 'HTTP POST';
"""


def test_a_serialization_conflict_is_retried_and_sees_the_committed_rows(
    own_database: Database, serve_once: Serve
) -> None:
    """Both count the same rows and both add one: PostgreSQL lets one of them pass, and the other runs again."""
    serializable = f"{own_database.conninfo}?options=-c%20default_transaction_isolation%3Dserializable"
    service = serve_once(own_database, SKEW, {"ConnectionStrings:Default": serializable})
    with ThreadPoolExecutor() as clients:
        with own_database.locked(7):
            both = [clients.submit(service.post, "/api/leave-shift", json={"name": name}) for name in ("a", "b")]
            wait_until(lambda: len(own_database.waiting()) == 2, "both have counted")
        assert sorted(answer(item.result()) for item in both) == [(200, TEXT, "0"), (200, TEXT, "1")]
    service.wait_for_log("attempt 1 failed (40001)")


def test_a_client_that_disconnects_ends_the_retries(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {f"{STRATEGIES}default:RetrySequenceSeconds:0": "600"})
    with service.connect() as connection:
        connection.sendall(b"GET /api/flaky?code=40001&failures=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        service.wait_for_log("the next one follows in 600 s")
    # Else the service could not stop before its time.
    service.stop()
    assert "are cut off" not in service.log
