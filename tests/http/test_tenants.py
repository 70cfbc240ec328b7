"""`tenant` and `timezone_from`: what a request sets for its transaction, and never for another request."""

from __future__ import annotations

import hashlib
import hmac
import random
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema tenant_red; create schema tenant_blue; create schema "tenant_Odd-1";
create table tenant_red.item (id int, owner text default 'red');
create table tenant_blue.item (id int, owner text default 'blue');
create table "tenant_Odd-1".item (id int, owner text default 'odd');
insert into tenant_red.item select n from generate_series(1, 3) n;
insert into tenant_blue.item select n from generate_series(1, 5) n;
insert into "tenant_Odd-1".item values (1);
create table item (id int, owner text default 'public');
insert into item values (1);
create function items() returns table (owner text, n bigint) language plpgsql stable as $$
begin return query select i.owner, count(*) from item i group by 1; end $$;
comment on function items() is 'HTTP GET /items
tenant from header X-Tenant as search_path tenant_{0}, public';
create function add_item(_id int) returns text language plpgsql as $$
declare made text; begin insert into item (id) values (_id) returning owner into made; return made; end $$;
comment on function add_item(int) is 'HTTP POST /items
tenant from header X-Tenant as search_path tenant_{0}, public';
create function add_once(_id int) returns text language plpgsql as $$
declare made text; begin insert into item (id) values (_id) returning owner into made; return made; end $$;
comment on function add_once(int) is 'HTTP POST /add-once
idempotent
tenant from header X-Tenant as search_path tenant_{0}, public';
create function cached_items() returns table (owner text, n bigint) language plpgsql stable as $$
begin return query select i.owner, count(*) from item i where id < 100 group by 1; end $$;
comment on function cached_items() is 'HTTP GET /cached-items
cached
tenant from header X-Tenant as search_path tenant_{0}, public';
create function of_setting() returns text language sql stable as $$ select current_setting('app.tenant', true) $$;
comment on function of_setting() is 'HTTP GET /of-setting
tenant from header X-Tenant as setting app.tenant';
create function of_claim() returns text language sql stable as $$ select current_setting('request.tenant', true) $$;
comment on function of_claim() is 'HTTP GET /of-claim
authorize
tenant from claim org';
create function of_host() returns text language sql stable as $$ select current_setting('request.tenant', true) $$;
comment on function of_host() is 'HTTP GET /of-host
tenant from host *.shop.example';
create table job_run (tenant text);
create function record_tenant() returns void language sql as $$
  insert into job_run values (current_setting('request.tenant', true)) $$;
comment on function record_tenant() is 'HTTP POST /record-tenant
tenant from header X-Tenant
job';
create function record_host() returns void language sql as $$
  insert into job_run values (current_setting('request.tenant', true)) $$;
comment on function record_host() is 'HTTP POST /record-host
tenant from host *.shop.example
job';
create function pay(_amount int) returns text language sql as $$ select current_setting('request.tenant', true) $$;
comment on function pay(int) is 'HTTP POST /pay
tenant from header X-Tenant
idempotent';
create function hook(_event text) returns text language sql as $$ select current_setting('request.tenant', true) $$;
comment on function hook(text) is 'HTTP POST /hook
body_parameter_name _event
tenant from header X-Tenant
verify_webhook github';
create function once_for_each(_n int) returns text language sql as
$$ select pg_sleep(0.3); select current_setting('request.tenant', true) $$;
comment on function once_for_each(int) is 'HTTP POST /once-for-each
tenant from header X-Tenant
job unique';
create function plain_job() returns int language sql as 'select 1';
comment on function plain_job() is 'HTTP POST /plain-job
job';
create function without() returns text language sql stable as $$
  select concat_ws('|', coalesce(current_setting('app.tenant', true), ''), current_setting('search_path'),
    current_setting('TimeZone')) $$;
comment on function without() is 'HTTP GET /without';
create table guarded (id int, tenant text);
insert into guarded values (1, 'red'), (2, 'red'), (3, 'blue');
create function enter(_name text, _org text default null) returns table (status int, user_id text, org text)
language sql as $$ select 200, _name, _org $$;
comment on function enter(text, text) is 'HTTP POST /enter
login';
create function times() returns table (at timestamptz, local timestamp, day text) language sql stable as
$$ select '2026-07-01T22:30:00Z'::timestamptz, '2026-07-01T22:30:00Z'::timestamptz::timestamp,
   to_char('2026-07-01T22:30:00Z'::timestamptz, 'YYYY-MM-DD') $$;
comment on function times() is 'HTTP GET /times
single
cached
timezone_from prefer';
create function times_of_header() returns timestamptz language sql stable as
$$ select '2026-07-01T22:30:00Z'::timestamptz $$;
comment on function times_of_header() is 'HTTP GET /times-of-header
timezone_from header X-Zone';
create function wrong() returns int language sql stable as 'select 1';
comment on function wrong() is 'HTTP GET /wrong
tenant from cookie x
timezone_from nowhere';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {
        "Auth:CookieAuth": "true",
        "CacheOptions:Enabled": "true",
        "Jobs:Enabled": "true",
        "Webhooks:Secrets:github": "secret",
        "Service:RequiresAuthorization": "false",
        "ConnectionSettings:Pool:SharedConnections": "2",
        "ForwardedHeaders:Enabled": "true",
        "Batch:Enabled": "true",
    }
    database.execute(install_sql())
    return serve(database, SQL, settings, workers=2)


def of(service: Service, path: str, tenant: str) -> httpx.Response:
    return service.get(path, headers={"x-tenant": tenant})


def test_the_schema_of_the_tenant_precedes_the_search_path(service: Service) -> None:
    assert of(service, "/items", "red").json() == [{"owner": "red", "n": 3}]
    assert of(service, "/items", "blue").json() == [{"owner": "blue", "n": 5}]
    assert of(service, "/items", "Odd-1").json() == [{"owner": "odd", "n": 1}]


def test_jobs_run_for_the_tenant_of_their_request(service: Service, database: Database) -> None:
    for tenant in ("red", "blue"):
        assert service.post("/record-tenant", headers={"x-tenant": tenant}).status_code == 202
    assert service.post("/record-host", headers={"host": "green.shop.example"}).status_code == 202
    tenants = "select tenant from job_run order by tenant"
    wait_until(lambda: len(database.fetch(tenants)) == 3, "the jobs have ended")
    assert database.fetch(tenants) == [("blue",), ("green",), ("red",)]


def test_keys_of_requests_webhooks_and_jobs_are_those_of_a_tenant(service: Service) -> None:
    delivery = str(uuid.uuid4())
    signature = hmac.new(b"secret", b"{}", hashlib.sha256).hexdigest()
    signed = {"X-GitHub-Delivery": delivery, "X-Hub-Signature-256": f"sha256={signature}"}
    jobs = set()
    for tenant in ("red", "blue"):
        header = {"x-tenant": tenant}
        for _ in range(2):
            paid = service.post("/pay", json={"amount": 1}, headers={**header, "Idempotency-Key": delivery})
            assert paid.text == tenant
            assert service.post("/hook", content=b"{}", headers={**header, **signed}).text == tenant
        jobs.add(service.post("/once-for-each", json={"n": 1}, headers=header).json()["id"])
    assert len(jobs) == 2


def test_users_see_only_their_jobs_of_the_tenant_of_their_request(service: Service) -> None:
    """Another user may have the same id in another tenant."""
    with service.new_client() as client:
        client.post("/enter", json={"name": "41"})
        red = {"x-tenant": "red"}
        location = client.post("/once-for-each", json={"n": 2}, headers=red).headers["location"]

        def lists(headers: dict[str, str]) -> bool:
            jobs = client.get("/jobs", headers=headers).json()
            return location.rpartition("/")[2] in [job["id"] for job in jobs]

        for headers in ({"x-tenant": "blue"}, {}, {"host": "red.shop.example"}):
            problem(client.get(location, headers=headers), 404)
            problem(client.delete(location, headers=headers), 404)
            assert not lists(headers)
        assert client.get(location, headers=red).status_code == 200
        assert lists(red)
        problem(client.get("/jobs", headers={b"x-tenant": b"\xff"}), 400)
        plain = client.post("/plain-job").headers["location"]
        assert client.get(plain, headers=red).status_code == client.get(plain).status_code == 200


@pytest.mark.parametrize("path", ["/items", "/cached-items"])
def test_a_tenant_that_does_not_exist_sees_nothing(service: Service, path: str) -> None:
    for _ in range(3):
        assert problem(of(service, path, "green"), 404)["detail"] == "there is no such tenant"
    assert "X-Tenant has to name the tenant" in problem(service.get(path), 400)["detail"]
    for name in ('red"', "red,public", "a b", "x" * 60, "$user", "Ä"):
        response = service.get(path, headers={b"x-tenant": name.encode()})
        problem(response, 400)
    assert "the database has changed" not in service.log
    assert of(service, path, "red").status_code == 200


def test_an_idempotency_key_belongs_to_one_tenant(service: Service) -> None:
    for tenant, replayed in (("red", False), ("blue", False), ("red", True), ("blue", True)):
        headers = {"x-tenant": tenant, "idempotency-key": "first"}
        response = service.post("/add-once", json={"id": 2000}, headers=headers)
        assert (response.text, "idempotency-replayed" in response.headers) == (tenant, replayed)


def test_the_host_of_a_trusted_proxy_names_the_tenant(service: Service, database: Database) -> None:
    forwarded = {"host": "blue.shop.example", "x-forwarded-host": "red.shop.example"}
    assert service.get("/of-host", headers=forwarded).text == "red"
    problem(service.get("/of-host", headers={"host": "red.shop.example", "x-forwarded-host": "other.example"}), 404)
    (in_batch,) = service.post("/batch", json=[{"method": "GET", "path": "/of-host"}], headers=forwarded).json()
    assert in_batch["body"] == "red"
    forwarded["x-forwarded-host"] = "lime.shop.example"
    assert service.post("/record-host", headers=forwarded).status_code == 202
    count = "select count(*) from job_run where tenant = 'lime'"
    wait_until(lambda: database.value(count) == 1, "the job has run for the tenant")


def test_the_tenant_is_read_from_the_configured_source(service: Service) -> None:
    assert of(service, "/of-setting", "red; drop").text == "red; drop"
    assert service.get("/of-host", headers={"host": "Red.shop.example:8080"}).text == "red"
    problem(service.get("/of-host", headers={"host": "other.example"}), 404)
    problem(service.get("/of-host", headers={"host": ".shop.example"}), 404)
    problem(service.get("/of-claim"), 401)
    with service.new_client() as client:
        client.post("/enter", json={"name": "ann", "org": "red"})
        assert client.get("/of-claim").text == "red"
        client.post("/enter", json={"name": "ben"})
        assert "tenant in the claim org" in problem(client.get("/of-claim"), 403)["detail"]


@pytest.mark.slow
def test_interleaved_requests_of_two_tenants_and_without_tenant_are_isolated(service: Service) -> None:
    """No request sees what another one has set, on pipelined and dedicated connections, cached or not."""
    expected = {"red": 3, "blue": 5, "Odd-1": 1}
    plain = service.get("/without").text

    def work(seed: int) -> int:
        chance = random.Random(seed)
        with service.new_client() as client:
            for _ in range(400):
                tenant = chance.choice(list(expected))
                headers = {"x-tenant": tenant}
                match chance.randrange(5):
                    case 0:
                        assert client.get("/without").text == plain
                    case 1:
                        assert client.get("/of-setting", headers=headers).text == tenant
                    case 2:
                        path = "/cached-items" if chance.random() < 0.5 else "/items"
                        assert client.get(path, headers=headers).json()[0]["owner"] == {"Odd-1": "odd"}.get(
                            tenant, tenant
                        )
                    case 3:
                        made = client.post("/items", json={"id": 1000 + seed}, headers=headers)
                        assert made.text == {"Odd-1": "odd"}.get(tenant, tenant)
                    case 4:
                        zone = chance.choice(["Europe/Berlin", "Asia/Tokyo", None])
                        prefer = {} if zone is None else {"prefer": f"timezone={zone}"}
                        day = "2026-07-01" if zone is None else "2026-07-02"
                        assert client.get("/times", headers=prefer).json()["day"] == day
        return 400

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(work, range(16))) == 6400


def test_responses_of_a_tenant_are_private(service: Service) -> None:
    assert "private" in of(service, "/items", "red").headers["cache-control"]


def test_time_zones_are_applied_as_preferred(service: Service) -> None:
    plain = service.get("/times")
    assert plain.json() == {"at": "2026-07-01T22:30:00+00:00", "local": "2026-07-01T22:30:00", "day": "2026-07-01"}
    assert "preference-applied" not in plain.headers
    berlin = service.get("/times", headers={"prefer": 'return=minimal, timezone="Europe/Berlin"'})
    assert berlin.json() == {"at": "2026-07-02T00:30:00+02:00", "local": "2026-07-02T00:30:00", "day": "2026-07-02"}
    assert berlin.headers["preference-applied"] == "timezone=Europe/Berlin"
    assert "Prefer" in berlin.headers["vary"]
    assert (
        service.get("/times", headers={"prefer": "timezone=Asia/Kolkata"}).json()["at"] == "2026-07-02T04:00:00+05:30"
    )
    assert service.get("/times").json() == plain.json()
    assert (
        "there is no time zone 'Mars/Base'"
        in problem(service.get("/times", headers={"prefer": "timezone=Mars/Base"}), 400)["detail"]
    )
    assert service.get("/times-of-header", headers={"x-zone": "America/New_York"}).text == "2026-07-01 18:30:00-04"
    assert service.get("/without", headers={"prefer": "timezone=Europe/Berlin"}).text == service.get("/without").text


def test_tenant_settings_apply_to_all_endpoints(database: Database, serve_once: Serve) -> None:
    sql = """
    create function anything() returns text language sql stable as $$ select current_setting('app.org', true) $$;
    comment on function anything() is 'HTTP GET /anything';
    create function shared() returns text language sql stable as $$ select current_setting('app.org', true) $$;
    comment on function shared() is 'HTTP GET /shared
    tenant off';
    """
    service = serve_once(database, sql, {"Service:Tenant": "from header X-Org as setting app.org"})
    assert service.get("/anything", headers={"x-org": "7"}).text == "7"
    problem(service.get("/anything"), 400)
    assert service.get("/shared").status_code == 200


def test_mistakes_are_named(service: Service, database: Database, tmp_path: object) -> None:
    assert "'from cookie x' is none of: from claim <claim>" in service.log
    assert "'nowhere' is none of: prefer, claim <claim>, header <header>" in service.log
    result = rowcall(
        tmp_path,  # type: ignore[arg-type]
        f"--ConnectionStrings:Default={database.conninfo}",
        "--Service:Tenant=from cookie x",
        "--validate",
    )
    assert result.returncode != 0
    assert "Service:Tenant: 'from cookie x' is none of" in result.stdout + result.stderr
