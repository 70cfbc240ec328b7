"""Bodies that are forms, as browsers send them, and bodies that are one value (binding-3, binding-19 to binding-21)."""

from __future__ import annotations

import codecs

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type carton as (width int, unit_code text);
create function book(_room int, _note text default 'none', _tags text[] default null) returns text language sql
  as $$ select format('%L %L %L', _room, _note, _tags) $$;
comment on function book is 'HTTP POST /book';
create function book_literal(_room int, _note text) returns text language sql
  as $$ select format('%L %L', _room, _note) $$;
comment on function book_literal is E'HTTP POST /book-literal\\nquery_string_null_handling null_literal';
create function room(_room int, _note text) returns text language sql as $$ select format('%s %s', _room, _note) $$;
comment on function room is 'HTTP POST /rooms/{room}';
create function pack(_box carton) returns text language sql as $$ select _box::text $$;
comment on function pack is 'HTTP POST /pack';
create function counted(_a int) returns text language sql as $$ select 'one' $$;
comment on function counted(int) is 'HTTP POST /counted';
create function counted(_a int, _b int) returns text language sql as $$ select 'two' $$;
comment on function counted(int, int) is 'HTTP POST /counted';
create function keep(_data bytea) returns text language sql as $$ select encode(_data, 'hex') $$;
comment on function keep is E'HTTP POST /keep\\nbody_parameter_name _data';
create function keep_text(_data text) returns text language sql as $$ select _data $$;
comment on function keep_text is E'HTTP POST /keep-text\\nbody_parameter_name _data';
create function checked(_tags text[]) returns text language sql as $$ select _tags::text $$;
comment on function checked is E'HTTP POST /checked\\nvalidate _tags using required';
"""

ODD = "a&b=c+d %41 'q\" \\ é\r\n\t{}"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


def multipart(*fields: tuple[str, str]) -> dict[str, object]:
    """Without files, httpx would send a urlencoded form."""
    return {"files": [(name, (None, text)) for name, text in fields]}


def urlencoded(*fields: tuple[str, str]) -> dict[str, object]:
    data: dict[str, list[str]] = {}
    for name, text in fields:
        data.setdefault(name, []).append(text)
    return {"data": data}


@pytest.mark.parametrize("form", [urlencoded, multipart])
class TestForms:
    @pytest.mark.parametrize(
        ("fields", "received"),
        [
            ([("room", "12")], "'12' 'none' NULL"),
            ([("room", " 12 "), ("note", "")], "'12' '' NULL"),
            ([("room", ""), ("note", "null")], "NULL 'null' NULL"),
            ([("room", "1"), ("tags", "a,b"), ("tags", "{c}")], "'1' 'none' '{\"a,b\",\"{c}\"}'"),
        ],
    )
    def test_form_fields_follow_the_rules_of_the_query_string(
        self, service: Service, form: object, fields: list[tuple[str, str]], received: str
    ) -> None:
        assert callable(form)
        assert answer(service.post("/book", **form(*fields))) == (200, TEXT, received)

    def test_form_field_preserves_every_character(self, service: Service, form: object) -> None:
        assert callable(form)
        assert service.post("/rooms/7", **form(("note", ODD))).content.decode() == f"7 {ODD}"

    @pytest.mark.parametrize(
        ("fields", "named", "status"),
        [
            ([("note", "x")], "room", 404),
            ([("room", "x")], "room", 400),
            ([("room", "1"), ("room", "2")], "room", 400),
            ([("room", "1"), ("page", "2")], "page", 404),
            ([("room", "1"), ("Note", "2")], "Note", 404),
        ],
    )
    def test_missing_unknown_and_invalid_fields_are_reported(
        self, service: Service, form: object, fields: list[tuple[str, str]], named: str, status: int
    ) -> None:
        assert callable(form)
        assert named in problem(service.post("/book", **form(*fields)), status)["detail"]

    def test_null_handling_applies_to_form_fields(self, service: Service, form: object) -> None:
        assert callable(form)
        assert service.post("/book-literal", **form(("room", "1"), ("note", "NULL"))).text == "'1' NULL"

    def test_form_fields_bind_composites_and_select_overloads(self, service: Service, form: object) -> None:
        assert callable(form)
        assert service.post("/pack", **form(("boxWidth", "4"), ("boxUnitCode", "cm"))).text == "(4,cm)"
        assert service.post("/pack", **form(("box", '{"width":4}'))).text == "(4,)"
        assert service.post("/counted", **form(("a", "1"))).text == "one"
        assert service.post("/counted", **form(("a", "1"), ("b", "2"))).text == "two"

    def test_validation_applies_to_form_fields(self, service: Service, form: object) -> None:
        assert callable(form)
        assert service.post("/checked", **form(("tags", "a"), ("tags", "b"))).text == "{a,b}"


def test_a_file_in_a_form_is_refused(service: Service) -> None:
    response = service.post("/book", files={"room": ("room.txt", b"12")})
    assert "'room' of the form is a file" in problem(response, 400)["detail"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--x\r\n\r\n--x--"),
        ("multipart/form-data; boundary=x", b"room=12"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="room"\r\n\r\n12'),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\n12\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="room"\r\n\r\n\xff\r\n--x--'),
        ("application/x-www-form-urlencoded", b"room=\xff"),
        ("application/x-www-form-urlencoded", b"room=%ff"),
        ("application/x-www-form-urlencoded", b"room=1&note=%00"),
        ("application/x-www-form-urlencoded", b'{"room":12'),
        ("text/plain", b"room=12"),
        ("application/json", b"room=12"),
    ],
)
def test_malformed_form_gets_400(service: Service, kind: str, body: bytes) -> None:
    problem(service.post("/book", content=body, headers={"content-type": kind}), 400)


LATIN = "application/x-www-form-urlencoded; charset=ISO-8859-1"
FIELD = b'--x\r\nContent-Disposition: form-data; name="'
PART = FIELD + b'room"\r\n\r\n1\r\n' + FIELD + b'note"\r\n'
PARTS = "multipart/form-data; boundary=x"


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        (LATIN, b"room=1&note=caf\xe9", 415),
        (LATIN, b"room=1&note=caf%E9", 415),
        (LATIN, b"room=1&note=caf%C3%A9", 415),
        (LATIN, b"room=1&note=caf%20e", "'1' 'caf e' NULL"),
        (LATIN, '{"room":1,"note":"café"}'.encode(), "'1' 'café' NULL"),
        ('application/x-www-form-urlencoded; charset="UTF-8"', b"room=1&note=caf%C3%A9", "'1' 'café' NULL"),
        (PARTS, PART + b"Content-Type: text/plain; charset=iso-8859-1\r\n\r\ncaf\xe9\r\n--x--", 415),
        (PARTS, PART + b"Content-Type: text/plain; charset=iso-8859-1\r\n\r\n%E9\r\n--x--", "'1' '%E9' NULL"),
        (PARTS, PART + b"Content-Type: text/plain;charset=utf-8\r\n\r\ncaf\xc3\xa9\r\n--x--", "'1' 'café' NULL"),
        (PARTS, PART + b"Content-Transfer-Encoding: base64\r\n\r\nY2Fm\r\n--x--", 415),
        (PARTS, PART + b"Content-Transfer-Encoding: 8bit\r\n\r\ncaf\r\n--x--", "'1' 'caf' NULL"),
    ],
)
def test_bytes_that_are_not_utf_8_are_reported(service: Service, kind: str, body: bytes, expected: int | str) -> None:
    response = service.post("/book", content=body, headers={"content-type": kind})
    assert (response.status_code if isinstance(expected, int) else response.text) == expected


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b""),
        ("Multipart/Form-Data; boundary=x", b""),
        ("multipart/form-data; boundary=x", b"--x--\r\n"),
    ],
)
def test_an_empty_form_is_an_empty_object(service: Service, kind: str, body: bytes) -> None:
    response = service.post("/book", content=body, headers={"content-type": kind})
    assert problem(response, 404)["detail"] == "parameter 'room' (integer) is required"


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data"]
)
@pytest.mark.parametrize("start", [b"", b" ", codecs.BOM_UTF8 + b"\r\n"])
@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/book", b'{"room":1}', "'1' 'none' NULL"),
        ("/book", b'{"room":1,"note":"x=y"}', "'1' 'x=y' NULL"),
        ("/book", b'{"room":1,"tags":["a=b&c",null]}', "'1' 'none' '{a=b&c,NULL}'"),
        ("/book", b'{"room":"1","note":"x=\\u00e9"}', "'1' 'x=é' NULL"),
        ("/counted", b'{"a":"1","b":" 2"}', "two"),
        ("/checked", b'{"tags":["a=b"]}', "{a=b}"),
    ],
)
def test_json_body_is_accepted_with_a_form_content_type(
    service: Service, kind: str, start: bytes, path: str, body: bytes, text: str
) -> None:
    assert answer(service.post(path, content=start + body, headers={"content-type": kind})) == (200, TEXT, text)


@pytest.mark.parametrize("body", [b"null", b"12", b"true", b"room", b"room&note"])
def test_body_other_than_form_or_json_object_gets_400(service: Service, body: bytes) -> None:
    problem(service.post("/book", content=body, headers={"content-type": "application/x-www-form-urlencoded"}), 400)


def test_large_form_is_read_completely(service: Service) -> None:
    note = "x" * 500_000
    assert service.post("/rooms/7", **multipart(("note", note))).text == f"7 {note}"


def test_raw_body_for_bytea_is_unchanged(service: Service) -> None:
    body = bytes(range(256)) + b"\\x41"
    assert answer(service.post("/keep", content=body)) == (200, TEXT, body.hex())


@pytest.mark.parametrize("body", [b"\xff", b"a\0b"])
def test_raw_body_with_invalid_text_is_refused_for_text_parameters(service: Service, body: bytes) -> None:
    problem(service.post("/keep-text", content=body), 400)


def test_form_is_passed_as_text_to_a_raw_body_parameter(service: Service) -> None:
    assert service.post("/keep-text", **urlencoded(("a", "1"))).text == "a=1"


def test_urlencoded_form_has_a_separate_size_limit(service: Service) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    note = b"note=" + b"%41" * 699_000
    assert service.post("/rooms/7", content=note, headers=headers).text == "7 " + "A" * 699_000
    for path in ("/rooms/7", "/counted"):
        problem(service.post(path, content=b"note=" + b"%41" * 700_000, headers=headers), 413)
    assert service.post("/rooms/7", json={"note": "x" * 2_100_000}).status_code == 200
