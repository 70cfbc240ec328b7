"""Passwords hashed by Argon2id (RFC 9106), and hashes by PBKDF2 that are replaced at the sign-in."""

from __future__ import annotations

import pytest
from argon2 import PasswordHasher

from rowcall.core.auth import argon2_hash, password_hash
from rowcall.core.auth.argon2_hash import Argon2
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

AUTHENTICATION = "Service:AuthenticationOptions:"
SQL = """
create table member (name text primary key, secret text);
create function enlist(_name text, _password text) returns text language sql as
$$ insert into member values (_name, _password) returning secret $$;
comment on function enlist(text, text) is 'HTTP POST /enlist
allow_anonymous
parameter_hash password';
create function enter(_name text, _password text) returns table (user_id text, user_name text, hash text)
language sql as
$$ select name, name, secret from member where name = _name $$;
comment on function enter(text, text) is 'HTTP POST /enter
login';
create procedure renew(_name text, _hash text) language sql
as $$ update member set secret = _hash where name = _name and _hash is not null $$;
"""
SETTINGS = {
    "Auth:BearerTokenAuth": "true",
    AUTHENTICATION + "PasswordHashAlgorithm": "Argon2id",
    AUTHENTICATION + "Argon2Memory": "20000",
    AUTHENTICATION + "Argon2Iterations": "2",
    AUTHENTICATION + "PasswordVerificationSucceededCommand": "call renew($2, $4)",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


def status(service: Service, name: str, password: str) -> int:
    return service.post("/enter", json={"name": name, "password": password}).status_code


@pytest.mark.slow
def test_new_passwords_are_hashed_by_argon2id_and_verified_at_sign_in(service: Service) -> None:
    stored = service.post("/enlist", json={"name": "ana", "password": "correct horse"}).text
    assert stored.startswith("$argon2id$v=19$m=20000,t=2,p=1$")
    assert PasswordHasher().verify(stored, "correct horse")
    assert status(service, "ana", "correct horse") == 200
    assert status(service, "ana", "wrong horse") == 401
    assert status(service, "ana", "") == 401
    assert status(service, "unknown", "correct horse") == 401


@pytest.mark.slow
def test_pbkdf2_hashes_are_verified_and_replaced_by_argon2id(service: Service, database: Database) -> None:
    old = password_hash.hash_password("old horse")
    database.execute(f"insert into member values ('ben', '{old}')")
    assert status(service, "ben", "wrong") == 401
    assert database.value("select secret from member where name = 'ben'") == old
    assert status(service, "ben", "old horse") == 200
    assert database.value("select secret from member where name = 'ben'").startswith("$argon2id$v=19$m=20000,t=2")
    assert status(service, "ben", "old horse") == 200
    for name, other in (("cy", Argon2(19_456, 1)), ("eve", Argon2(20_000, 2, threads=4))):
        stored = argon2_hash.hash_password("weak horse", other)
        database.execute(f"insert into member values ('{name}', '{stored}')")
        assert status(service, name, "weak horse") == 200
        assert "m=20000,t=2,p=1$" in database.value(f"select secret from member where name = '{name}'")


@pytest.mark.parametrize(
    "stored",
    [
        "$argon2id$v=19$m=99999999,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
        "$argon2id$v=19$m=20000,t=999,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
        "$argon2i$v=19$m=20000,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
        "$argon2id$v=19$m=4,t=2,p=1$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
        "$argon2id$v=19$m=२००००,t=२,p=१$c2FsdHNhbHRzYWx0$aGFzaGhhc2hoYXNoaGFzaGhhc2g",
        "$argon2id$",
        "correct horse",
    ],
)
def test_malformed_hashes_are_rejected(stored: str) -> None:
    assert argon2_hash.work_of(stored) is None
    assert argon2_hash.verify_password("correct horse", stored) is False


def test_decoy_hash_has_the_same_work_factors() -> None:
    work = Argon2(20_000, 2, threads=2)
    assert argon2_hash.work_of(argon2_hash.decoy(work)) == work
    assert argon2_hash.verify_password("x", argon2_hash.decoy(work)) is False


@pytest.mark.slow
def test_argon2_hashes_are_verified_if_pbkdf2_is_configured(own_database: Database, serve_once: Serve) -> None:
    plain = {key: value for key, value in SETTINGS.items() if "Argon2" not in value and "Argon2" not in key}
    service = serve_once(own_database, SQL, plain)
    stored = argon2_hash.hash_password("good horse", Argon2(20_000, 2))
    own_database.execute(f"insert into member values ('dora', '{stored}')")
    assert status(service, "dora", "bad horse") == 401
    assert status(service, "dora", "good horse") == 200
    assert password_hash.iterations_of(own_database.value("select secret from member where name = 'dora'")) is not None


@pytest.mark.slow
def test_too_small_argon2_memory_is_a_configuration_error(own_database: Database, tmp_path: object) -> None:
    key = AUTHENTICATION + "Argon2Memory"
    settings = (f"--{AUTHENTICATION}PasswordHashAlgorithm=Argon2id", f"--{key}=1000")
    done = rowcall(tmp_path, "--validate", *settings, f"--ConnectionStrings:Default={own_database.conninfo}")  # type: ignore[arg-type]
    assert done.returncode == 1
    assert key in done.stderr + done.stdout
