"""Received webhooks: signatures of several senders, their age, and repetitions."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from rowcall.service.installation.script import install_sql
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

KEY = b"0123456789abcdefghijklmn"
STANDARD = "whsec_" + base64.b64encode(KEY).decode()
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"r" * 32)
PUBLIC = "whpk_" + base64.b64encode(PRIVATE.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
PLAIN = "plain-secret"
SQL = """
create table received (what text, payload jsonb);
create table seen (n int);
create function take(_payload jsonb) returns int language plpgsql as $$
begin
  insert into received values (_payload ->> 'type', _payload);
  perform pg_sleep((_payload ->> 'wait')::float);
  if _payload ->> 'type' = 'bad' then raise exception 'it fails' using errcode = 'P0001'; end if;
  return (select count(*) from received where payload ->> 'type' = _payload ->> 'type');
end $$;
comment on function take(jsonb) is 'HTTP POST /standard
body_parameter_name _payload
verify_webhook standard';
create function of_stripe(_payload jsonb) returns int language sql as 'select take(_payload)';
comment on function of_stripe(jsonb) is 'HTTP POST /stripe
body_parameter_name _payload
verify_webhook stripe secret payments within 10 minutes';
create function of_github(_payload text) returns int language sql as
$$ select take(_payload::jsonb) $$;
comment on function of_github(text) is 'HTTP POST /github
body_parameter_name _payload
verify_webhook github secret Plain';
create function of_slack(_payload text) returns int language sql as
$$ select take(jsonb_build_object('type', _payload)) $$;
comment on function of_slack(text) is 'HTTP POST /slack
body_parameter_name _payload
verify_webhook slack secret plain';
create function of_shopify(_payload jsonb) returns int language sql as 'select take(_payload)';
comment on function of_shopify(jsonb) is 'HTTP POST /shopify
body_parameter_name _payload
verify_webhook shopify secret plain';
create procedure committing(_payload jsonb) language plpgsql as
$$ begin insert into received values ('committing', _payload); commit; end $$;
comment on procedure committing(jsonb) is 'HTTP POST /committing
body_parameter_name _payload
verify_webhook standard';
create function guarded(_payload jsonb) returns int language sql as 'select 1';
comment on function guarded(jsonb) is 'HTTP POST /guarded
body_parameter_name _payload
authorize
verify_webhook standard';
create function unknown(_payload jsonb) returns int language sql as 'select 1';
comment on function unknown(jsonb) is 'HTTP POST /unknown
body_parameter_name _payload
verify_webhook standard secret nowhere';
create function no_base64(_payload jsonb) returns int language sql as 'select 1';
comment on function no_base64(jsonb) is 'HTTP POST /no-base64
body_parameter_name _payload
verify_webhook standard secret plain';
create function members(_type text) returns int language sql as 'select 1';
comment on function members(text) is 'HTTP POST /members
verify_webhook standard';
create function as_job(_payload jsonb) returns int language sql as 'select 1';
comment on function as_job(jsonb) is 'HTTP POST /as-job
body_parameter_name _payload
job
verify_webhook standard';
create function by_get() returns int language sql stable as 'select 1';
comment on function by_get() is 'HTTP GET /by-get
verify_webhook standard';
create function typo(_payload jsonb) returns int language sql as 'select 1';
comment on function typo(jsonb) is 'HTTP POST /typo
body_parameter_name _payload
verify_webhook stripes';
"""
SETTINGS = {
    "Webhooks:Secrets:standard": f"{base64.b64encode(b'former secret of it').decode()} {STANDARD} {PUBLIC}",
    "Webhooks:Secrets:payments": "whsec_taken_as_it_is",
    "Webhooks:Secrets:plain": PLAIN,
    "Jobs:Enabled": "true",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    database.execute(install_sql())
    return serve(database, SQL, SETTINGS, workers=2)


def standard(
    body: bytes, number: str, *, at: float | None = None, key: bytes = KEY, prefix: str = "webhook"
) -> dict[str, str]:
    when = str(int(time.time() if at is None else at))
    signed = f"{number}.{when}.".encode() + body
    signature = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    return {f"{prefix}-id": number, f"{prefix}-timestamp": when, f"{prefix}-signature": f"v1,AAAA v1,{signature}"}


def send(service: Service, path: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
    return service.post(path, content=body, headers={"content-type": "application/json", **headers})


def test_the_example_of_the_specification(own_database: Database, serve_once: Serve) -> None:
    """The vector of the specification has a time of 2021, so its age is allowed."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    own_database.execute(install_sql())
    sql = SQL.replace("verify_webhook standard'", "verify_webhook standard within 9999 days'")
    service = serve_once(own_database, sql, {**SETTINGS, "Webhooks:Secrets:standard": secret})
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    response = send(service, "/standard", b'{"test": 2432232314}', headers)
    assert (response.status_code, response.text) == (200, "0")


def test_standard_webhooks_signatures_are_verified(service: Service, database: Database) -> None:
    body = '{"type": "opened",  "text": "\u00e9"}'.encode()
    assert send(service, "/standard", body, standard(body, "msg_1")).text == "1"
    assert database.value("select payload ->> 'text' from received where what = 'opened'") == "\u00e9"
    assert send(service, "/standard", body, standard(body, "msg_2", prefix="svix")).text == "2"
    detail = problem(send(service, "/standard", body + b" ", standard(body, "msg_3")), 403)["detail"]
    assert "does not match its body" in detail
    problem(send(service, "/standard", body, standard(body, "msg_3", key=b"x" * 24)), 403)
    problem(send(service, "/standard", body, {**standard(body, "msg_3"), "webhook-id": "msg_4"}), 403)
    for age in (301, -360):  # the service may take seconds to see it
        old = standard(body, "msg_3", at=time.time() - age)
        assert "300 s are allowed" in problem(send(service, "/standard", body, old), 403)["detail"]
    for missing in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        rest = {name: value for name, value in standard(body, "msg_3").items() if name != missing}
        assert missing in problem(send(service, "/standard", body, rest), 400)["detail"]
    problem(send(service, "/standard", body, {**standard(body, "msg_3"), "webhook-timestamp": "now"}), 400)
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        twice = [*standard(body, "msg_3").items(), (name, "another")]
        assert name in problem(service.client.post("/standard", content=body, headers=twice), 400)["detail"]
    assert database.value("select count(*) from received where what = 'opened'") == 2


def test_asymmetric_signatures_are_verified(service: Service) -> None:
    body = b'{"type": "asymmetric"}'
    when = str(int(time.time()))
    signature = base64.b64encode(PRIVATE.sign(f"msg_a.{when}.".encode() + body)).decode()
    headers = {"webhook-id": "msg_a", "webhook-timestamp": when, "webhook-signature": f"v1a,{signature}"}
    assert send(service, "/standard", body, headers).text == "1"
    problem(send(service, "/standard", body.upper(), headers), 403)
    problem(send(service, "/standard", body, {**headers, "webhook-signature": f"v1,{signature}"}), 403)


def test_a_repeated_webhook_takes_effect_once(service: Service, database: Database) -> None:
    body = b'{"type": "repeated", "wait": 0.2}'

    def again(n: int) -> httpx.Response:
        return send(service, "/standard", body, standard(body, "msg_r", at=time.time() - n))

    with ThreadPoolExecutor(8) as pool:
        responses = list(pool.map(again, range(8)))
    assert {response.status_code for response in responses} <= {200, 409}
    changed = b'{"type": "repeated", "attempt": 2}'
    replayed = send(service, "/standard", changed, standard(changed, "msg_r"))
    assert (replayed.status_code, replayed.text, replayed.headers["idempotency-replayed"]) == (200, "1", "true")
    assert database.value("select count(*) from received where what = 'repeated'") == 1
    # The same id at another endpoint is another webhook.
    assert send(service, "/committing", body, standard(body, "msg_r")).status_code == 204
    again_committing = send(service, "/committing", body, standard(body, "msg_r"))
    assert (again_committing.status_code, again_committing.headers["idempotency-replayed"]) == (204, "true")
    assert database.value("select count(*) from received where what = 'committing'") == 1


@pytest.mark.slow
def test_webhooks_are_in_the_audit_trail(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    own_database.execute(
        "create table call (entry jsonb); create procedure audit_trail(_calls json) language sql "
        "begin atomic insert into call select c::jsonb from json_array_elements(_calls) c; end"
    )
    more = {"Service:AuditTrail:Enabled": "true", "Service:AuditTrail:Interval": "100 milliseconds"}
    service = serve_once(own_database, SQL, SETTINGS | more, workers=2)
    body = b'{"type": "audited"}'
    assert send(service, "/standard", body, standard(body, "msg_1")).status_code == 200
    assert "idempotency-replayed" in send(service, "/standard", body, standard(body, "msg_1")).headers
    problem(send(service, "/standard", body, standard(body, "msg_2", key=b"x" * 24)), 403)
    calls = "select entry ->> 'endpoint', (entry ->> 'status')::int, entry ->> 'userId' from call order by 2"
    expected = [("POST /standard", status, None) for status in (200, 200, 403)]
    wait_until(lambda: own_database.fetch(calls) == expected, "the calls are recorded", 20)


def test_a_failed_webhook_can_be_repeated(service: Service, database: Database) -> None:
    body, better = b'{"type": "bad"}', b'{"type": "good"}'
    assert send(service, "/standard", body, standard(body, "msg_b")).status_code == 400
    assert send(service, "/standard", better, standard(better, "msg_b")).text == "1"


def test_stripe_signatures_are_verified(service: Service) -> None:
    body = b'{"id": "evt_1", "type": "paid"}'

    def headers(body: bytes, at: float) -> dict[str, str]:
        signed = f"{int(at)}.".encode() + body
        signature = hmac.new(b"whsec_taken_as_it_is", signed, hashlib.sha256).hexdigest()
        return {"stripe-signature": f"t={int(at)},v1={'0' * 64},v1={signature},v0=x"}

    assert send(service, "/stripe", body, headers(body, time.time() - 400)).text == "1"
    again = b'{"id": "evt_1", "type": "paid", "pending_webhooks": 1}'
    assert send(service, "/stripe", again, headers(again, time.time())).headers["idempotency-replayed"] == "true"
    problem(send(service, "/stripe", body, headers(body, time.time() - 700)), 403)
    problem(send(service, "/stripe", body, headers(again, time.time())), 403)
    problem(send(service, "/stripe", body, {"stripe-signature": "v1=00"}), 400)
    problem(send(service, "/stripe", body, {}), 400)


def test_github_signatures_are_verified(service: Service) -> None:
    body = b'{"type": "push"}'
    signature = "sha256=" + hmac.new(PLAIN.encode(), body, hashlib.sha256).hexdigest()
    assert send(service, "/github", body, {"x-hub-signature-256": signature, "x-github-delivery": "1"}).text == "1"
    again = send(service, "/github", body, {"x-hub-signature-256": signature, "x-github-delivery": "2"})
    assert again.headers["idempotency-replayed"] == "true"
    problem(send(service, "/github", body, {"x-hub-signature-256": signature[:-1] + "g"}), 403)
    problem(send(service, "/github", body, {"x-hub-signature-256": signature.replace("256", "1")}), 400)
    problem(send(service, "/github", body, {"x-hub-signature": "sha1=00"}), 400)


def test_slack_signatures_of_forms_are_verified(service: Service) -> None:
    body, when = b"token=x&command=%2Fweather", str(int(time.time()))
    signed = f"v0:{when}:".encode() + body
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": when,
        "x-slack-signature": "v0=" + hmac.new(PLAIN.encode(), signed, hashlib.sha256).hexdigest(),
    }
    assert send(service, "/slack", body, headers).text == "1"
    assert send(service, "/slack", body, headers).headers["idempotency-replayed"] == "true"
    problem(send(service, "/slack", body + b"&x=1", headers), 403)


def test_shopify_signatures_are_verified(service: Service) -> None:
    body = b'{"type": "sold"}'
    signature = base64.b64encode(hmac.digest(PLAIN.encode(), body, "sha256")).decode()
    assert send(service, "/shopify", body, {"x-shopify-hmac-sha256": signature}).text == "1"
    problem(send(service, "/shopify", body, {"x-shopify-hmac-sha256": signature.lower()}), 403)


def test_a_signature_replaces_authentication_unless_the_comment_requires_both(service: Service) -> None:
    body = b"{}"
    problem(send(service, "/guarded", body, standard(body, "msg_g")), 401)


def test_the_start_warning_about_sign_in_ignores_endpoints_of_webhooks(service: Service) -> None:
    """Only /guarded asks for a user besides the signature."""
    assert "1 endpoint is for signed-in callers, and no way to sign in is on" in service.log
    assert "POST /guarded answers 401 to all callers" in service.log


def test_endpoints_whose_webhooks_cannot_be_verified_are_left_out(service: Service) -> None:
    log = service.log
    for path, reason in (
        ("unknown", "the secret Webhooks:Secrets:nowhere is empty"),
        ("no-base64", "the secret Webhooks:Secrets:plain is not base64 behind whsec_, whpk_ or whsk_"),
        ("members", "it needs a parameter for the whole body (body_parameter_name)"),
        ("as-job", "its calls are jobs"),
    ):
        assert f"POST /{path}: verify_webhook is not possible: {reason}" in log
        assert send(service, f"/{path}", b"{}", standard(b"{}", "msg_x")).status_code == 404
    assert "GET /by-get: verify_webhook is not possible: a GET only reads" in log
    assert send(service, "/typo", b"{}", standard(b"{}", "msg_x")).status_code == 404
    assert PLAIN not in log
    assert "'stripes' is none of: standard|stripe|github|slack|shopify" in log


def test_without_the_schema_rowcall(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, SETTINGS)
    assert "POST /standard: verify_webhook needs the schema rowcall, which is not in the database" in service.log
    assert service.post("/standard").status_code == 404


def test_the_audit_does_not_count_verified_webhooks_as_open(
    service: Service, database: Database, tmp_path: Path
) -> None:
    settings = [f"--{key}={value}" for key, value in SETTINGS.items()]
    done = rowcall(tmp_path, "--audit", f"--ConnectionStrings:Default={database.conninfo}", *settings)
    assert "0 of " in done.stdout.splitlines()[0]
    line = next(line for line in done.stdout.splitlines() if " /stripe " in line)
    assert "a webhook with a valid signature (stripe)" in line
