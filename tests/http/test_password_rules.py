"""Rules for new passwords: lengths, lists of breached passwords, words about their user."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx
import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

PASSWORDS = "Auth:Passwords:"
BREACHED = [f"breached password {number}" for number in range(1000)]
SQL = """
create function enlist(_email text, _password text default null, _again text default null) returns text language sql as
$$ select coalesce(left(_password, 1), 'none') || length(_email) $$;
comment on function enlist(text, text, text) is 'HTTP POST /enlist
allow_anonymous
parameter_hash password
param _again is hash of _password';
create function change_pin(_pin text, _code text) returns text language sql as $$ select length(_pin)::text $$;
comment on function change_pin(text, text) is 'HTTP POST /change-pin
allow_anonymous
parameter_hash _pin
password_rules pin off
param _code is word
password_rules word';
create function enter(_name text, _hash text) returns table (user_id text, user_name text) language sql as
$$ select _name, _name $$;
comment on function enter(text, text) is 'HTTP POST /enter
login
parameter_hash _hash';
"""


def write_hashes(path: Path, passwords: list[str]) -> str:
    hashes = sorted(hashlib.sha1(password.encode()).hexdigest().upper() for password in passwords)
    path.write_bytes("".join(f"{item}:{number + 1}\r\n" for number, item in enumerate(hashes)).encode())
    return str(path)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("lists")
    words = folder / "words.txt"
    words.write_text("Correct Horse Battery\r\ngrünes Fahrrad\r\n", "utf-8")
    settings = {
        "Auth:BearerTokenAuth": "true",
        PASSWORDS + "MinimumLength": "8",
        PASSWORDS + "MaximumLength": "80",
        PASSWORDS + "BreachedFile": write_hashes(folder / "hashes.txt", BREACHED),
        PASSWORDS + "WordsFile": str(words),
        PASSWORDS + "NotContaining:0": "_email",
    }
    return serve(database, SQL, settings, workers=2)


def enlist(service: Service, password: str | None, email: str = "kiri@example.com") -> httpx.Response:
    return service.post("/enlist", json={"email": email, "password": password})


@pytest.mark.parametrize(
    ("password", "reason"),
    [
        ("short", "has fewer than 8 characters"),
        ("", "has fewer than 8 characters"),
        ("äöüßäöü", "has fewer than 8 characters"),
        ("x" * 81, "has more than 80 characters"),
        (BREACHED[0], "is in a list of passwords that others have used: choose another"),
        (BREACHED[999], "is in a list of passwords that others have used: choose another"),
        ("correct horse battery", "is in a list of passwords that others have used: choose another"),
        ("Grünes Fahrrad", "is in a list of passwords that others have used: choose another"),
        ("KIRI@example.com1", "contains the name or address of its user: choose another"),
        ("my name is kiri", "contains the name or address of its user: choose another"),
    ],
)
def test_passwords_that_violate_a_rule_are_refused(service: Service, password: str, reason: str) -> None:
    response = enlist(service, password)
    message = f"the password in 'password' {reason}"
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["detail"] == message
    assert response.json()["errors"] == [{"parameter": "password", "path": "password", "message": message}]
    if len(password) > 10:
        assert password not in response.text
        assert password not in service.log


@pytest.mark.parametrize("password", ["äöüßäöüß", "x" * 80, "breached password 1000", "ki ri ki ri"])
def test_passwords_that_satisfy_the_rules_are_accepted(service: Service, password: str) -> None:
    assert enlist(service, password).status_code == 200


def test_a_password_may_contain_short_words(service: Service) -> None:
    assert enlist(service, "bananaboat 22", "ana").status_code == 200


def test_a_request_without_a_new_password_is_not_checked(service: Service) -> None:
    assert enlist(service, None).text == "none16"


def test_a_comment_exempts_and_adds_parameters(service: Service) -> None:
    assert service.post("/change-pin", json={"pin": "4711", "word": "open sesame"}).text == "64"
    response = service.post("/change-pin", json={"pin": "4711", "word": "sesame"})
    assert response.status_code == 400
    assert [error["parameter"] for error in response.json()["errors"]] == ["word"]


def test_a_login_is_not_checked(service: Service) -> None:
    assert service.post("/enter", json={"name": "kiri", "hash": "short"}).status_code == 200


@pytest.mark.slow
def test_a_changed_list_of_breached_passwords_is_used_without_restart(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    path = tmp_path / "hashes.txt"
    write_hashes(path, BREACHED)
    service = serve_once(own_database, SQL, {"Auth:BearerTokenAuth": "true", PASSWORDS + "BreachedFile": str(path)})
    assert enlist(service, BREACHED[7]).status_code == 400
    write_hashes(path, ["another password"])
    assert enlist(service, BREACHED[7]).status_code == 200, "a list that was shortened kills no worker"
    assert enlist(service, "another password").status_code == 400
    path.write_text("no list at all\n" * 10, "utf-8")
    response = enlist(service, "a long password")
    assert response.status_code == 503
    service.wait_for_log("is not `HASH:COUNT`")


@pytest.mark.parametrize(
    ("key", "content", "reason"),
    [
        ("BreachedFile", None, "No such file or directory; download the SHA-1 list ordered by hash"),
        ("BreachedFile", b"F" * 40 + b":1\n" + b"0" * 40 + b":1\n", "not sorted by hash: the line at byte 43"),
        ("BreachedFile", b"password\n", "the line at byte 0 is not `HASH:COUNT`"),
        ("WordsFile", None, "No such file or directory; name a file with a password in each line"),
        ("WordsFile", b"ab\xff\n", "byte 2 is not UTF-8"),
        ("WordsFile", b"x" * 10_485_761, "has 10485761 bytes, and 10485760 are allowed"),
    ],
)
def test_a_list_that_cannot_be_used_prevents_the_start(
    database: Database, tmp_path: Path, key: str, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "list.txt"
    if content is not None:
        path.write_bytes(content)
    result = rowcall(
        tmp_path, f"--ConnectionStrings:Default={database.conninfo}", f"--{PASSWORDS}{key}={path}", "--validate"
    )
    assert result.returncode != 0
    assert reason in result.stdout + result.stderr
    assert f"{PASSWORDS}{key}: {path}" in result.stdout + result.stderr


def test_a_maximum_that_is_too_low_prevents_the_start(database: Database, tmp_path: Path) -> None:
    result = rowcall(
        tmp_path, f"--ConnectionStrings:Default={database.conninfo}", f"--{PASSWORDS}MaximumLength=20", "--validate"
    )
    assert result.returncode != 0
    assert "MaximumLength: 64 or more" in result.stdout + result.stderr
