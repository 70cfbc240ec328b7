"""Header lines of a comment, the values of the request in their placeholders (comments-21 to comments-28,
rendering-40)."""

from __future__ import annotations

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = r"""
create type crate as (width int, "Label" text);

create function fixed() returns int language sql stable as 'select 1';
comment on function fixed() is E'HTTP\nX-One: a\nx-two: b, c\nX-One: d\n@X-Three: größe \\n\nContent-Length: 7';

create function report(_file_name text default 'server', _kind text default null, _on boolean default null)
  returns text language sql stable as $$select 'x'$$;
comment on function report(text, text, boolean) is
  E'HTTP\nX-File: {_file_name}|{fileName}|{FILENAME}\nX-File: second {_kind}\n'
  'X-Kind: {!_kind:none}; {!kind}\nX-On: {_on}\nX-Unknown: {_fle_name} {1a} {} {a b} {_kind:x}\n'
  'Content-Type: text/{_kind}';

create function download(_file text) returns bytea language sql stable as $$select '\x41'::bytea$$;
comment on function download(text) is
  E'HTTP\nContent-Type: application/pdf\nContent-Disposition: attachment; filename={_file}\nX-File: {_file}';

create function boxed(_box crate, _ids int[] default '{}') returns int language sql stable as 'select 1';
comment on function boxed(crate, int[]) is
  E'HTTP\nX-Width: {width}\nX-Label: {LABEL}\nX-Box: {_box_width}\nX-Ids: {ids}';

create function of_path(id int) returns int language sql stable as 'select 1';
comment on function of_path(int) is E'HTTP GET /of-path/{id}\nX-Id: {id}';

create function posted(_note text, _n numeric) returns void language sql as 'select null';
comment on function posted(text, numeric) is E'HTTP POST\nX-Note: {_note}\nX-N: {_n}';

create function failing(_file text) returns int language plpgsql as $$begin raise exception 'no'; end$$;
comment on function failing(text) is
  E'HTTP GET\nContent-Type: text/csv\nContent-Disposition: attachment; filename={_file}';

create function fixed_failing() returns int language plpgsql as $$begin raise exception 'no'; end$$;
comment on function fixed_failing() is E'HTTP GET\nX-Fixed: a\nX-Fixed: b';

create function strictly(_n int) returns int language sql strict stable as 'select 1';
comment on function strictly(int) is E'HTTP\nquery_null null\nX-N: [{_n}]';

create function closed(_n int) returns int language sql stable as 'select 1';
comment on function closed(int) is E'HTTP\nauthorize\nX-N: {_n}';

create function streamed(_n int) returns setof text language sql stable as
  $$select repeat('x', 100) from generate_series(1, _n)$$;
comment on function streamed(int) is E'HTTP\nX-N: {_n}';

create function typed(_type text default null) returns text language sql stable as $$select 'x'$$;
comment on function typed(text) is E'HTTP\nContent-Type: {_type}';

create function chosen(_a int) returns int language plpgsql as $$begin raise exception 'no'; end$$;
comment on function chosen(int) is E'HTTP GET\nX-Chosen: by a {_a}';
create function chosen(_b text) returns int language plpgsql as $$begin raise exception 'no'; end$$;
comment on function chosen(text) is E'HTTP GET\nX-Chosen: by b {_b}';

create function nothing(_word text) returns text language sql stable as 'select null::text';
comment on function nothing(text) is E'HTTP\nresponse_null 204\nX-Word: {_word}';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


def fields(response: httpx.Response, name: str) -> list[str]:
    return response.headers.get_list(name)


def test_repeated_names_are_repeated_fields(service: Service) -> None:
    response = service.get("/api/fixed")
    assert fields(response, "x-one") == ["a", "d"]
    assert fields(response, "x-two") == ["b, c"]


def test_characters_beyond_ascii_are_percent_encoded(service: Service) -> None:
    assert fields(service.get("/api/fixed"), "x-three") == [r"gr%C3%B6%C3%9Fe \n"]


def test_content_length_cannot_be_set_by_a_comment(service: Service) -> None:
    assert service.get("/api/fixed").headers["content-length"] == "1"
    service.wait_for_log("the header Content-Length is set by the service itself")


def test_placeholders_take_database_and_api_names_in_any_case(service: Service) -> None:
    response = service.get("/api/report", params={"fileName": "a b.txt", "kind": "plain"})
    assert fields(response, "x-file") == ["a b.txt|a b.txt|a b.txt", "second plain"]
    assert response.headers["content-type"] == "text/plain"


def test_missing_and_null_values_are_empty_or_the_fallback(service: Service) -> None:
    response = service.get("/api/report")
    assert fields(response, "x-file") == ["||", "second"]
    assert fields(response, "x-kind") == ["none;"]
    assert fields(service.get("/api/report?kind=html"), "x-kind") == ["html; html"]


def test_boolean_is_the_text_of_the_request(service: Service) -> None:
    assert fields(service.get("/api/report?on=true"), "x-on") == ["true"]


def test_unknown_placeholders_stay_and_are_reported(service: Service) -> None:
    response = service.get("/api/report?kind=a")
    assert fields(response, "x-unknown") == ["{_fle_name} {1a} {} {a b} {_kind:x}"]
    service.wait_for_log("{_fle_name} names no parameter")
    assert "{1a} names no parameter" not in service.log


def test_attributes_of_composites_are_placeholders(service: Service) -> None:
    response = service.get("/api/boxed?boxWidth=7&boxLabel=x&ids=1&ids=2")
    headers = [response.headers[name] for name in ("x-width", "x-label", "x-box", "x-ids")]
    assert headers == ["7", "x", "7", "{1,2}"]


def test_values_of_the_path_and_of_a_body_are_placeholders(service: Service) -> None:
    assert service.get("/of-path/12").headers["x-id"] == "12"
    response = service.post("/api/posted", json={"note": "hi", "n": 1.50})
    assert (response.status_code, response.headers["x-note"], response.headers["x-n"]) == (204, "hi", "1.5")


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("a\r\nSet-Cookie: evil=1", "aSet-Cookie: evil=1"),
        ("a\nb\rc\x01\x7f\td", "abcd"),
        ("\u0085\u2028x", "x"),
        ("grüße €", "gr%C3%BC%C3%9Fe %E2%82%AC"),
        ("  \r\n ", ""),
        ("x" * 5000, "x" * 1000),
        ("😀" * 500, "%F0%9F%98%80" * 83),
    ],
)
def test_no_value_of_a_request_breaks_out_of_its_field(service: Service, value: str, sent: str) -> None:
    response = service.get("/api/download", params={"file": value})
    assert response.status_code == 200
    assert response.headers["x-file"] == sent
    assert "set-cookie" not in response.headers
    assert response.content == b"A"


@pytest.mark.parametrize(
    ("name", "disposition"),
    [
        ("report.pdf", "attachment; filename=report.pdf"),
        ("grüße.pdf", "attachment; filename=\"gr_e.pdf\"; filename*=UTF-8''gr%C3%BC%C3%9Fe.pdf"),
        ('a"; filename="b.exe', "attachment; filename=a__ filename=_b.exe"),
        ("", "attachment; filename="),
    ],
)
def test_file_name_of_a_download(service: Service, name: str, disposition: str) -> None:
    assert service.get("/api/download", params={"file": name}).headers["content-disposition"] == disposition


def test_error_after_authorization_has_the_headers_but_its_own_content_type(service: Service) -> None:
    failed = service.get("/api/failing?file=a.csv")
    problem(failed, 400)
    assert failed.headers["content-disposition"] == "attachment; filename=a.csv"
    fixed = service.get("/api/fixed-failing")
    problem(fixed, 400)
    assert fields(fixed, "x-fixed") == ["a", "b"]


def test_response_to_an_unbindable_request_has_no_comment_headers(service: Service) -> None:
    response = service.get("/api/failing?unknown=1")
    problem(response, 404)
    assert "content-disposition" not in response.headers


def test_response_to_an_unauthorized_request_has_no_comment_headers(service: Service) -> None:
    response = service.get("/api/closed?n=1")
    problem(response, 401)
    assert "x-n" not in response.headers


def test_empty_responses_have_the_headers_of_the_comment(service: Service) -> None:
    skipped = service.get("/api/strictly?n=null")
    assert (skipped.status_code, skipped.headers["x-n"]) == (204, "[]")
    empty = service.get("/api/nothing?word=a")
    assert (empty.status_code, empty.headers["x-word"]) == (204, "a")


def test_streamed_responses_have_the_headers(service: Service) -> None:
    response = service.get("/api/streamed?n=5000")
    assert (response.headers["x-n"], len(response.json())) == ("5000", 5000)


def test_head_has_the_headers_of_get(service: Service) -> None:
    response = service.request("HEAD", "/api/of-path-not-here")
    assert response.status_code == 404
    assert service.request("HEAD", "/of-path/3").headers["x-id"] == "3"


def test_an_empty_content_type_leaves_the_default(service: Service) -> None:
    assert answer(service.get("/api/typed?type=text/html")) == (200, "text/html", "x")
    assert answer(service.get("/api/typed")) == (200, TEXT, "x")


@pytest.mark.parametrize(("query", "value"), [("a=1", "by a 1"), ("b=x", "by b x")])
def test_an_overload_has_its_own_headers(service: Service, query: str, value: str) -> None:
    response = service.get(f"/api/chosen?{query}")
    problem(response, 400)
    assert fields(response, "x-chosen") == [value]
