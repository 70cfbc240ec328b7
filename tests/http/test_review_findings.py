"""Small findings of a security review: each was a way around a check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, member_sql, with_cookie

pytestmark = pytest.mark.attack

FORGED = "[00:00:00.000 INF] all is well"

SQL = """
create function raising(_text text) returns text language plpgsql as $$begin raise exception '%', _text; end$$;
comment on function raising(text) is 'HTTP POST';
create function noticing(_text text) returns text language plpgsql
as $$begin raise notice '%', _text; return 'x'; end$$;
comment on function noticing(text) is 'HTTP POST';
create function secretly_noticing(_text text) returns text language plpgsql
as $$begin raise notice 'reversed %', reverse(_text); return 'x'; end$$;
comment on function secretly_noticing(text) is E'HTTP POST\\nsensitive';
create function secretly_raising(_text text, _list text[] default null, _data json default null) returns text
language plpgsql as $$begin raise exception 'given % and % and %', _text, _list[1], _data->>'pin'; end$$;
comment on function secretly_raising(text, text[], json) is E'HTTP POST\\nsensitive';
create function reporting(_text text) returns text language plpgsql
as $$begin raise notice 'reported %', _text; return _text; end$$;
create function resolving(_text text, _number int default null) returns text language sql as $$select 'x'$$;
comment on function resolving(text, int) is E'HTTP POST\\nsensitive\n_number = select reporting({_text})::int';
create function challenged() returns text language sql as $$select 'x'$$;
comment on function challenged() is E'HTTP POST\\nchallenge_command = select reporting($2)::int';
create function loading(_meta json default null) returns text language sql as $$select 'x'$$;
comment on function loading(json) is E'HTTP POST\\nsensitive\nupload for csv\nparam _meta is upload metadata
row_command = select load($2)';
create function load(_cells text[]) returns int language sql as 'select reporting(_cells[1])::int';
create function baking(_text text) returns text language sql as $$select 'x'$$;
comment on function baking(text) is E'HTTP GET\\nSet-Cookie: theme={_text}; HttpOnly';
create function mailing(_address text) returns text language sql stable as $$select 'sent'$$;
comment on function mailing(text) is E'HTTP GET\\nvalidate _address using email';
create function folding() returns text language sql stable as $$select 'in'$$;
comment on function folding() is 'HTTP GET /kin/Straße';
create function exported() returns table (n int, v text) language sql stable
as $$values (-1, '=cmd()'), (2, '+1'), (3, '-1'), (4, '@x'), (5, E'\\tx'), (6, 'plain'), (7, ''), (8, 'a=b')$$;
comment on function exported() is E'HTTP GET\\nraw\\nseparator ,\\nnew_line \\\\n';
create extension citext; create domain cell as citext; create type mark as enum ('=x', 'y');
create function exported_types() returns table ("=n" int, "@v" citext, w citext[], c cell, m mark, i interval)
language sql stable
as $$values (-1, '=cmd(1,2)'::citext, array['=a']::citext[], '+"1'::cell, '=x'::mark, '-1 day'::interval)$$;
comment on function exported_types() is E'HTTP GET\\nraw\\nseparator ,\\nnew_line \\\\n\\ncolumns';
create function exported_rows() returns table (v text) language sql stable as $$values ('=x')$$;
comment on function exported_rows() is E'HTTP GET\\nqueryable';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {
        "Service:NeutralizeFormulas": "true",
        "Exports:Enabled": "true",
        "Service:UploadOptions:Enabled": "true",
        "Service:AuthenticationOptions:BasicAuth:SslRequirement": "Ignore",
    }
    return serve(database, SQL, settings)


# --- the log -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["raising", "noticing"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\x85"])
def test_a_routine_cannot_forge_a_line_of_the_log(service: Service, path: str, end: str) -> None:
    mark = f"{path}-{end.encode().hex()}"
    service.post(f"/api/{path}", json={"text": f"{mark}{end}{FORGED}\x1b[2J"})
    service.wait_for_log(mark)
    assert not any(line.startswith("[00:00:00.000") for line in service.log.splitlines())
    assert "\x1b[2J" not in service.log


def test_notices_of_sensitive_endpoints_are_not_logged(service: Service) -> None:
    service.post("/api/secretly-noticing", json={"text": "drowssap"})
    line = service.wait_for_log("secretly_noticing")
    assert "***" in line
    assert "password" not in service.log


@pytest.mark.parametrize("text", ["a", "12", "!", "abc", "a much longer one", "x.y*(z)"])
def test_values_of_any_length_are_hidden(service: Service, text: str) -> None:
    body = {"text": text, "list": ["ab", "c"], "data": {"pin": "7", "more": ["q"]}}
    response = service.post("/api/secretly-raising", json=body)
    assert response.json()["title"] == "given *** and *** and ***"


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("resolving", {"json": {"text": "hunter2"}}),
        ("challenged", {"auth": ("mate", "hunter2")}),
        ("loading", {"files": {"f": ("a.csv", b"hunter2,other\n")}}),
    ],
)
def test_other_commands_of_a_request_reveal_no_value_either(service: Service, path: str, sent: dict[str, Any]) -> None:
    """Neither in a notice nor in the error that follows."""
    response = service.post(f"/api/{path}", **sent)
    assert response.status_code >= 400
    assert "***" in response.text
    service.wait_for_log(f"/api/{path} responded")
    assert "hunter2" not in service.log + response.text


# --- headers -------------------------------------------------------------------------------------------------------


def test_a_request_value_cannot_add_attributes_to_a_cookie(service: Service) -> None:
    response = service.get("/api/baking", params={"text": "dark; Domain=example.com; Max-Age=0"})
    assert response.headers["set-cookie"] == "theme=dark%3B Domain=example.com%3B Max-Age=0; HttpOnly"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"", 400),
        (b"Host: a\r\nHost: b\r\n", 400),
        (b"Host: a\r\nHost: a\r\n", 400),
        (b"Host: a\r\n", 200),
    ],
)
def test_a_request_with_several_hosts_is_refused(service: Service, head: bytes, status: int) -> None:
    response = service.raw(b"GET /api/mailing?address=a@b.c HTTP/1.1\r\n" + head + b"Connection: close\r\n\r\n")
    assert response is not None
    assert response.status == status


def test_hosts_that_are_not_allowed_are_refused(own_database: Database, serve_once: Serve) -> None:
    allowed = {"HttpServer:AllowedHosts:0": "127.0.0.1", "HttpServer:AllowedHosts:1": "*.shop.example"}
    service = serve_once(own_database, SQL, allowed)
    for host, status in (("127.0.0.1:99", 200), ("a.shop.example", 200), ("shop.example", 400), ("evil.example", 400)):
        assert service.get("/api/exported", headers={"Host": host}).status_code == status, host


# --- paths and values ----------------------------------------------------------------------------------------------


def test_paths_fold_ascii_letters_only(service: Service) -> None:
    """The Kelvin sign is a small k by the rules of Unicode, and the long s is an s."""
    assert service.get("/KIN/straße").text == "in"
    for path in ("/\u212ain/straße", "/kin/\u017ftraße", "/kin/strasse", "/kin/STRASSE"):
        problem(service.get(path), 404)


@pytest.mark.parametrize("address", ["a@b.c", "a.b+c@d.e.f", "ü@ö.ä"])
def test_valid_mail_addresses_are_accepted(service: Service, address: str) -> None:
    assert service.get("/api/mailing", params={"address": address}).text == "sent"


@pytest.mark.parametrize(
    "address",
    ["a@b.c\n", "\na@b.c", "a@b", "a@b.", "@b.c", "a@@b.c", "a b@c.d", "a@b.c@", "x" * 5000, "a@" + "." * 5000 + "@"],
)
def test_invalid_mail_addresses_are_refused(service: Service, address: str) -> None:
    problem(service.get("/api/mailing", params={"address": address}), 400)


def test_exported_texts_are_not_formulas(service: Service) -> None:
    lines = service.get("/api/exported").text.split("\n")
    assert lines == [
        '''-1,"'=cmd()"''', '''2,"'+1"''', '''3,"'-1"''', '''4,"'@x"''', '''5,"'\tx"''', '6,"plain"', '7,""', '8,"a=b"'
    ]  # fmt: skip


def test_exported_texts_of_created_types_and_column_names_are_not_formulas(service: Service) -> None:
    assert service.get("/api/exported-types").text.split("\n") == [
        """"'=n","'@v","w","c","m","i\"""",
        """-1,"'=cmd(1,2)","{=a}","'+""1","'=x",-1 days""",
    ]


def test_column_names_given_by_a_client_are_not_formulas(service: Service) -> None:
    response = service.get('/api/exported-rows?select="=cmd()":v', headers={"accept": "text/csv"})
    assert response.text.splitlines() == ['"\'=cmd()"', '"\'=x"']


# --- keys ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_key_file_that_other_users_can_write_is_not_trusted(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """A process with a key of its own can issue sessions."""
    folder = tmp_path / "keys"
    stored = {
        "ApplicationName": "x",
        "DataProtection:Storage": "FileSystem",
        "DataProtection:FileSystemPath": str(folder),
    }
    service = serve_once(own_database, member_sql(), {**EVERY_SCHEME, **stored})
    (key,) = folder.glob("key-*.json")
    assert folder.stat().st_mode & 0o777 == 0o700
    cookie = with_cookie(service)
    again = serve_once(own_database, settings={**EVERY_SCHEME, **stored})
    assert again.get("/api/closed", headers=cookie).text == "in"
    key.chmod(0o666)
    folder.chmod(0o777)
    distrustful = serve_once(own_database, settings={**EVERY_SCHEME, **stored})
    problem(distrustful.get("/api/closed", headers=cookie), 401)
    assert key.name in distrustful.wait_for_log("is left out")
    distrustful.wait_for_log("can be written by others")
