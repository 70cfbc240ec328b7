"""`download`: files out of rows, folders, large objects and object stores."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.object_store import KEY_ID, SECRET, ObjectStore
from tests.harness.service import Service
from tests.harness.upstream import Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

LARGE = bytes(range(256)) * 6_000
"""More than five reads of a large object."""
SQL = """
create table stored_file (id int primary key, owner text, name text, kind text, bytes bytea, at timestamptz, tag text);
insert into stored_file values
  (1, '41', 'Übung.txt', 'text/plain; charset=utf-8', convert_to('0123456789', 'UTF8'), '2026-01-02 03:04:05+00', null),
  (2, '42', 'page.html', null, convert_to('<script>', 'UTF8'), null, null),
  (3, '41', 'dot.png', null, '\\x89504e47', null, 'v7'),
  (4, '41', null, null, '\\x00ff', null, null),
  (5, '41', 'empty', null, '', null, null),
  (6, '41', 'nothing', null, null, null, null),
  (7, '41', 'wrong', 'no type', '\\x00', null, null),
  (8, '41', 'evil"
name', null, '\\x00', null, null),
  (9, '41', 'lines', E'text/plain;\\n charset=utf-8', '\\x00', null, null);
create function content(_id int) returns table (content bytea, name text, type text, modified timestamptz, etag text)
language sql stable as 'select bytes, name, kind, at, tag from stored_file where id = _id';
comment on function content(int) is 'HTTP GET /content/{_id}
download
X-Frame-Options: DENY';
create function shown(_id int) returns table (content bytea, name text, type text)
language sql stable as 'select bytes, name, kind from stored_file where id = _id';
comment on function shown(int) is 'HTTP GET /shown/{_id}
download inline';
create function bare(_id int) returns bytea language sql stable as 'select bytes from stored_file where id = _id';
comment on function bare(int) is 'HTTP GET /bare/{_id}
download';
create function texts() returns table (content text, name text) language sql stable as $$ select '\\x41', 'a.txt' $$;
comment on function texts() is 'HTTP GET /text
download';
create function own(_id int) returns table (content bytea, name text) language sql stable as
$$ select bytes, name from stored_file where id = _id and owner = current_setting('request.user_id') $$;
comment on function own(int) is 'HTTP GET /own/{_id}
authorize
user_context
download';
create function linked(_id int, _note text default '') returns table (content bytea, name text)
language sql stable as
$$ select bytes || convert_to(_note, 'UTF8'), name from stored_file
   where id = _id and owner = current_setting('request.user_id') $$;
comment on function linked(int, text) is 'HTTP GET /linked/{_id}
authorize
user_context
download inline link 10 minutes';
create function of_tenant() returns bytea language sql stable as
$$ select convert_to(current_setting('request.tenant'), 'UTF8') $$;
comment on function of_tenant() is 'HTTP GET /of-tenant
tenant from header X-Tenant
download link 10 minutes';
create function of_claim() returns bytea language sql stable as
$$ select convert_to(current_setting('request.tenant'), 'UTF8') $$;
comment on function of_claim() is 'HTTP GET /of-claim
tenant from claim user_id
download link 10 minutes';
create function short_link(_id int) returns bytea language sql stable as 'select bytes from stored_file where id = _id';
comment on function short_link(int) is 'HTTP GET /short-link/{_id}
download link 1ms';
create function sized(_id int) returns bytea language sql stable as 'select bytes from stored_file where id = _id';
comment on function sized(int) is 'HTTP GET /sized
download link 10 minutes';
create function sized(_id int, _size int) returns bytea language sql stable as
$$ select substr(bytes, 1, _size) from stored_file where id = _id $$;
comment on function sized(int, int) is 'HTTP GET /sized
download link 10 minutes';
create function enter(_id text) returns table (user_id text) language sql as 'select _id';
comment on function enter(text) is 'HTTP POST /enter
login';
create function stored(_file text) returns table (file text, name text)
language sql stable as 'select _file, null::text';
comment on function stored(text) is 'HTTP GET /file
download';
create function large(_oid oid, _type text default null) returns table (oid oid, name text, type text, etag text)
language sql stable as $$ select _oid, 'large.bin', _type, 'large-' || _oid $$;
comment on function large(oid, text) is 'HTTP GET /large/{_oid}
download inline';
create function object(_key text) returns table (object text) language sql stable as 'select _key';
comment on function object(text) is 'HTTP GET /object
download';
create function tagged_object(_key text) returns table (object text, etag text) language sql stable as
$$ select _key, 'v7' $$;
comment on function tagged_object(text) is 'HTTP GET /tagged-object
download';
create function posted() returns table (content text) language sql volatile as $$ select 'made' $$;
comment on function posted() is 'HTTP POST /posted
download';
create function nothing() returns table (name text) language sql stable as $$ select 'x' $$;
comment on function nothing() is 'HTTP GET /nothing
download';
create function twice() returns table (content bytea, oid oid) language sql stable as $$ select null::bytea, 1::oid $$;
comment on function twice() is 'HTTP GET /twice
download';
create function cached() returns bytea language sql stable as $$ select '\\x00'::bytea $$;
comment on function cached() is 'HTTP GET /cached
download
cached';
create function often() returns bytea language sql stable as $$ select '\\x00'::bytea $$;
comment on function often() is 'HTTP GET /often
download often';
"""
UPLOADS = "Service:UploadOptions:"
HANDLERS = UPLOADS + "UploadHandlers:"


def settings(folder: Path, **others: str) -> dict[str, str]:
    return {
        "Auth:BearerTokenAuth": "true",
        "Service:RequiresAuthorization": "false",
        "Downloads:Folders:0": str(folder / "first"),
        "Downloads:Folders:1": str(folder / "second"),
        "ConnectionSettings:Pool:SlowClientTimeout": "2s",
        **others,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("downloads")
    (base / "first" / "in").mkdir(parents=True)
    (base / "second").mkdir()
    (base / "first" / "in" / "a b.txt").write_text("0123456789")
    (base / "second" / "large.bin").write_bytes(LARGE)
    (base / "second" / ".rowcall-1").mkdir()
    (base / "second" / ".rowcall-1" / "1").write_text("unfinished")
    (base / "secret.txt").write_text("secret")
    (base / "firstly").mkdir()
    (base / "firstly" / "x").write_text("secret")
    (base / "first" / "out").symlink_to(base / "secret.txt")
    (base / "first" / "inside").symlink_to(base / "first" / "in" / "a b.txt")
    return base


@pytest.fixture(scope="module", params=["Granian", "Loop"])
def service(request: pytest.FixtureRequest, database: Database, serve: Serve, folder: Path) -> Service:
    return serve(database, "", {**settings(folder), "HttpServer:Engine": request.param}, workers=2)


@pytest.fixture(scope="module", autouse=True)
def schema(database: Database) -> None:
    database.execute(SQL)


def test_bytea_value_is_sent_as_a_file(service: Service) -> None:
    response = service.get("/content/1")
    headers = response.headers
    assert (response.status_code, response.content) == (200, b"0123456789")
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["content-disposition"] == "attachment; filename=\"Ubung.txt\"; filename*=UTF-8''%C3%9Cbung.txt"
    assert headers["last-modified"] == "Fri, 02 Jan 2026 03:04:05 GMT"
    assert headers["accept-ranges"] == "bytes"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["content-length"] == "10"
    digest = hashlib.blake2b(b"0123456789", digest_size=16).hexdigest()
    assert headers["etag"] == f'"{digest}"'


@pytest.mark.parametrize(
    ("sent", "status", "body", "content_range"),
    [
        ({"range": "bytes=2-4"}, 206, b"234", "bytes 2-4/10"),
        ({"range": "bytes=-3"}, 206, b"789", "bytes 7-9/10"),
        ({"range": "bytes=8-"}, 206, b"89", "bytes 8-9/10"),
        ({"range": "bytes=0-99"}, 206, b"0123456789", "bytes 0-9/10"),
        ({"range": "bytes=0-1,4-5"}, 200, b"0123456789", None),
        ({"range": "lines=1-2"}, 200, b"0123456789", None),
        ({"range": "bytes=2-4", "if-range": '"other"'}, 200, b"0123456789", None),
        ({"range": "bytes=2-4", "if-range": "Fri, 02 Jan 2026 03:04:05 GMT"}, 206, b"234", "bytes 2-4/10"),
        ({"if-modified-since": "Fri, 02 Jan 2026 03:04:05 GMT"}, 304, b"", None),
        ({"if-modified-since": "Fri, 02 Jan 2025 03:04:05 GMT"}, 200, b"0123456789", None),
        ({"if-none-match": '"other"'}, 200, b"0123456789", None),
        ({"if-none-match": "*"}, 304, b"", None),
    ],
)
def test_range_and_conditional_requests_are_supported(
    service: Service, sent: dict[str, str], status: int, body: bytes, content_range: str | None
) -> None:
    response = service.get("/content/1", headers=sent)
    assert (response.status_code, response.content) == (status, body)
    assert response.headers.get("content-range") == content_range


@pytest.mark.parametrize("engine", ["Granian", "Loop"])
def test_file_range_is_not_compressed_and_is_audited(
    database: Database, serve_once: Serve, folder: Path, engine: str
) -> None:
    database.execute("""create table if not exists call (entry jsonb);
        truncate call;
        create or replace procedure audit_trail(_calls json) language sql
        begin atomic insert into call select c::jsonb from json_array_elements(_calls) c; end""")
    on = {"ResponseCompression:Enabled": "true", "Service:AuditTrail:Enabled": "true"}
    quick = {"Service:AuditTrail:Interval": "100 milliseconds", "HttpServer:Engine": engine}
    service = serve_once(database, "", {**settings(folder), **on, **quick})
    response = service.get("/file?file=large.bin", headers={"range": "bytes=2-5", "accept-encoding": "gzip"})
    assert (response.status_code, response.content) == (206, LARGE[2:6])
    assert "content-encoding" not in response.headers
    statuses = "select entry ->> 'status' from call where entry ->> 'endpoint' = 'GET /file'"
    wait_until(lambda: database.fetch(statuses) == [("206",)], "the call is recorded")


@pytest.mark.slow
def test_head_of_a_file_with_compression_has_the_headers_of_get(
    database: Database, serve_once: Serve, folder: Path
) -> None:
    text = database.value("select lo_from_bytea(0, convert_to(repeat('text', 9), 'UTF8'))")
    on = {"ResponseCompression:Enabled": "true", "ResponseCompression:IncludeMimeTypes:0": "*/*"}
    service = serve_once(database, "", settings(folder, **on))
    for path in ("/file?file=large.bin", f"/large/{text}?type=text/plain"):
        got, head = (
            service.request(method, path, headers={"accept-encoding": "gzip"}).headers for method in ("GET", "HEAD")
        )
        assert "content-encoding" not in head
        for name in ("content-length", "etag", "vary"):
            assert head.get(name) == got.get(name), (path, name)
    proxied = serve_once(database, "", settings(folder, **on, **{"Downloads:SendFile": "X-Accel-Redirect"}))
    response = proxied.get("/file?file=large.bin", headers={"accept-encoding": "gzip"})
    assert "x-accel-redirect" in response.headers
    assert "content-encoding" not in response.headers
    assert response.headers["etag"].startswith('"')


def test_range_beyond_the_end_gets_416(service: Service) -> None:
    response = service.get("/content/1", headers={"range": "bytes=10-"})
    assert "10 bytes" in problem(response, 416)["detail"]
    assert response.headers["content-range"] == "bytes */10"


def test_etag_of_a_response_is_accepted_as_a_validator(service: Service) -> None:
    for path in ("/content/1", "/content/3", "/file?file=in/a%20b.txt"):
        tag = service.get(path).headers["etag"]
        assert service.get(path, headers={"if-none-match": f'"x", W/{tag}'}).status_code == 304
        assert service.get(path, headers={"if-range": tag, "range": "bytes=1-1"}).status_code == 206
    assert service.get("/content/3").headers["etag"] == '"v7"'


@pytest.mark.parametrize("path", ["/content/1", "/content/5", "/file?file=large.bin", "/file?file=in/a%20b.txt"])
def test_head_has_the_headers_of_get(service: Service, path: str) -> None:
    head, get = service.request("HEAD", path), service.get(path)
    assert head.content == b""
    without = {"date", "connection"}
    assert {k: v for k, v in head.headers.items() if k not in without} == {
        k: v for k, v in get.headers.items() if k not in without
    }
    assert int(head.headers["content-length"]) == len(get.content)


@pytest.mark.parametrize("path", ["/content/99", "/content/6", "/bare/99", "/file", "/large/999999"])
def test_missing_file_gets_404(service: Service, path: str) -> None:
    detail = problem(service.get(path), 404)["detail"]
    assert "there is no such file" in detail or path == "/file"


def test_invalid_column_values_are_reported_only_in_the_log(service: Service) -> None:
    response = problem(service.get("/content/7"), 500)
    assert "no type" not in str(response)
    service.wait_for_log("GET /content/{_id}: the file cannot be sent: type 'no type' is no media type")
    problem(service.get("/content/9"), 500)
    service.wait_for_log(r"the file cannot be sent: type 'text/plain;\n charset=utf-8' is no media type")


def test_file_names_cannot_inject_headers(service: Service) -> None:
    header = service.get("/content/8").headers["content-disposition"]
    assert header == "attachment; filename=\"evil_name\"; filename*=UTF-8''evil%22name"


def test_inline_disposition_is_limited_to_safe_types(service: Service) -> None:
    assert service.get("/shown/3").headers["content-disposition"] == 'inline; filename="dot.png"'
    assert service.get("/shown/3").headers["content-type"] == "image/png"
    assert service.get("/shown/2").headers["content-disposition"] == 'attachment; filename="page.html"'
    assert service.get("/shown/2").headers["content-type"] == "text/html"
    assert service.get("/large/0?type=image/svg%2bxml").status_code == 404


def test_results_without_name_or_type_use_defaults(service: Service) -> None:
    response = service.get("/bare/4")
    assert (response.content, response.headers["content-type"]) == (b"\x00\xff", "application/octet-stream")
    assert response.headers["content-disposition"] == "attachment"
    assert service.get("/text").content == b"\\x41"
    response = service.post("/posted", headers={"range": "bytes=1-1", "if-none-match": "*"})
    assert (response.status_code, response.content) == (200, b"made")


def test_access_rule_of_the_endpoint_applies(service: Service) -> None:
    problem(service.get("/own/1"), 401)
    token = service.post("/enter", json={"id": "41"}).json()["accessToken"]
    headers = {"Authorization": f"Bearer {token}"}
    response = service.get("/own/1", headers=headers)
    assert (response.status_code, response.headers["cache-control"]) == (200, "private, no-cache")
    problem(service.get("/own/2", headers=headers), 404)


def test_a_link_gives_one_file_to_any_client(service: Service) -> None:
    token = service.post("/enter", json={"id": "41"}).json()["accessToken"]
    headers = {"Authorization": f"Bearer {token}"}
    problem(service.get("/linked/1?link"), 401)
    response = service.get("/linked/1?link&note=%C3%BC", headers=headers)
    assert response.headers["cache-control"] == "no-store"
    link = response.json()["url"]
    assert link.startswith("/linked/1?note=%C3%BC&link=")
    assert response.json()["expires"].endswith("Z")
    with service.new_client() as anonymous:
        assert anonymous.get(link).text == "0123456789ü"
        assert anonymous.get(link, headers={"range": "bytes=1-2"}).content == b"12"
        for other in (
            link.replace("/linked/1", "/linked/3"), link.replace("%C3%BC", "x"), link + "x", link + "&note=y",
            link.replace("/linked/1", "/short-link/1"), "/linked/1?link=x",
        ):  # fmt: skip
            assert problem(anonymous.get(other), 403)["detail"] == "the link is not valid, or has expired"
        assert anonymous.get("/linked/1").status_code == 401
    assert service.get("/linked/1?link=", headers=headers).json()["url"].startswith("/linked/1?link=")


@pytest.mark.parametrize(("query", "content"), [("id=1", "0123456789"), ("id=1&size=3", "012")])
def test_a_link_does_not_select_an_overload(service: Service, query: str, content: str) -> None:
    assert service.get(service.get(f"/sized?{query}&link").json()["url"]).text == content


def test_download_link_may_have_long_values(service: Service) -> None:
    token = service.post("/enter", json={"id": "41"}).json()["accessToken"]
    note = "x" * 8_000
    response = service.get(f"/linked/1?link&note={note}", headers={"Authorization": f"Bearer {token}"})
    with service.new_client() as anonymous:
        assert anonymous.get(response.json()["url"]).text == f"0123456789{note}"


def test_download_link_is_valid_for_one_tenant(service: Service) -> None:
    link = service.get("/of-tenant?link", headers={"X-Tenant": "red"}).json()["url"]
    assert service.get(link, headers={"X-Tenant": "red"}).text == "red"
    for headers in ({"X-Tenant": "blue"}, {}):
        assert problem(service.get(link, headers=headers), 403)["detail"] == "the link is not valid, or has expired"


def test_download_link_uses_the_tenant_claim_of_its_creator(service: Service) -> None:
    token = service.post("/enter", json={"id": "41"}).json()["accessToken"]
    link = service.get("/of-claim?link", headers={"authorization": f"Bearer {token}"}).json()["url"]
    assert service.get(link).text == "41"


def test_expired_download_link_is_refused(service: Service) -> None:
    link = service.get("/short-link/1?link").json()["url"]
    wait_until(lambda: service.get(link).status_code == 403, "it has expired")
    assert service.get("/short-link/1").status_code == 200


# --- folders ---------------------------------------------------------------------------------------------------------


def test_files_of_configured_folders_are_sent(service: Service, folder: Path) -> None:
    response = service.get("/file", params={"file": "in/a b.txt"})
    assert (response.content, response.headers["content-type"]) == (b"0123456789", "text/plain")
    assert response.headers["content-disposition"] == 'attachment; filename="a b.txt"'
    assert "last-modified" in response.headers
    for value in (str(folder / "second" / "large.bin"), "large.bin"):
        assert service.get("/file", params={"file": value}).content == LARGE
    part = service.get("/file", params={"file": "large.bin"}, headers={"range": "bytes=300000-300009"})
    assert (part.status_code, part.content) == (206, LARGE[300000:300010])
    assert part.headers["content-range"] == f"bytes 300000-300009/{len(LARGE)}"
    assert service.get("/file", params={"file": "inside"}).content == b"0123456789"


@pytest.mark.parametrize(
    "value",
    [
        "../secret.txt", "in/../../secret.txt", "/etc/passwd", "out", "in", "", ".", "missing", "../firstly/x",
        ".rowcall-1/1", "in/a b.txt/", "%2e%2e/secret.txt", "..\\secret.txt",
    ],
)  # fmt: skip
def test_files_outside_of_configured_folders_get_404(service: Service, folder: Path, value: str) -> None:
    problem(service.get("/file", params={"file": value}), 404)
    problem(service.get("/file", params={"file": str(folder / value)}), 404)


@pytest.mark.slow
def test_proxy_can_send_files_by_header(database: Database, serve_once: Serve, folder: Path) -> None:
    nginx = serve_once(database, "", settings(folder, **{"Downloads:SendFile": "X-Accel-Redirect"}))
    response = nginx.get("/file", params={"file": "in/a b.txt"})
    assert (response.content, response.headers["x-accel-redirect"]) == (b"", "/files/in/a%20b.txt")
    assert response.headers["content-disposition"] == 'attachment; filename="a b.txt"'
    assert nginx.get("/file?file=large.bin").headers["x-accel-redirect"] == "/files-2/large.bin"
    assert nginx.get("/content/1").content == b"0123456789"
    apache = serve_once(database, "", settings(folder, **{"Downloads:SendFile": "X-Sendfile"}))
    path = folder / "first" / "in" / "a b.txt"
    assert apache.get("/file", params={"file": "in/a b.txt"}).headers["x-sendfile"] == str(path.resolve())


# --- large objects ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large(database: Database, schema: None) -> Iterator[int]:
    oid = database.value("select lo_from_bytea(0, %s)", LARGE)
    yield oid
    database.execute(f"select lo_unlink({oid})")


def test_large_objects_are_sent_with_ranges(service: Service, large: int) -> None:
    response = service.get(f"/large/{large}")
    assert response.content == LARGE
    assert response.headers["content-length"] == str(len(LARGE))
    assert response.headers["etag"] == f'"large-{large}"'
    part = service.get(f"/large/{large}", headers={"range": "bytes=262143-262146"})
    assert (part.status_code, part.content) == (206, LARGE[262143:262147])
    assert service.request("HEAD", f"/large/{large}").headers["content-length"] == str(len(LARGE))
    problem(service.get(f"/large/{large}", headers={"range": f"bytes={len(LARGE)}-"}), 416)
    assert service.get(f"/large/{large}", headers={"if-none-match": f'"large-{large}"'}).status_code == 304


@pytest.mark.slow
def test_client_disconnect_releases_the_database_connection(database: Database, service: Service, large: int) -> None:
    with httpx.Client(base_url=service.url) as client:
        for _ in range(30):
            with client.stream("GET", f"/large/{large}") as response:
                next(response.iter_raw(1000))
    assert service.get(f"/large/{large}").content == LARGE


@pytest.mark.slow
def test_large_object_is_streamed_in_bounded_memory(database: Database, service: Service) -> None:
    """64 MB. Clients that read slowly make the service read slowly."""
    database.execute(
        "do $$ declare o oid := lo_create(4242); chunk bytea := decode(repeat('ab', 1048576), 'hex'); begin "
        "for i in 0..63 loop perform lo_put(o, i::bigint * 1048576, chunk); end loop; end $$"
    )
    try:
        service.get("/large/4242", headers={"range": "bytes=0-1000000"})
        before = resident_memory(service)
        with service.new_client() as client, client.stream("GET", "/large/4242") as response:
            size = 0
            most = before
            for piece in response.iter_raw(1_048_576):
                size += len(piece)
                # Not more often: it takes time, and a client that stops reading for two seconds is disconnected.
                most = max(most, resident_memory(service))
        assert size == 64 * 1_048_576
        assert most - before < 24_000_000
    finally:
        database.execute("select lo_unlink(4242)")


def resident_memory(service: Service) -> int:
    """Return the memory of all workers in bytes."""
    return sum(psutil.Process(pid).memory_info().rss for pid in service.pids())


# --- object stores ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    folder = tmp_path_factory.mktemp("store")
    store = ObjectStore(folder, "main")
    (folder / "main" / "in").mkdir()
    (folder / "main" / "in" / "ä b.txt").write_text("0123456789")
    (folder / "main" / "large.bin").write_bytes(LARGE)
    (folder / "main" / "empty").write_bytes(b"")
    try:
        yield store
    finally:
        store.kill()


def store_settings(store: ObjectStore) -> dict[str, str]:
    return {
        UPLOADS + "Enabled": "true",
        HANDLERS + "S3UploadEnabled": "true",
        HANDLERS + "S3Endpoint": store.url,
        HANDLERS + "S3Bucket": "main",
        HANDLERS + "S3AccessKeyId": KEY_ID,
        HANDLERS + "S3SecretAccessKey": SECRET,
    }


def test_objects_of_an_s3_store_are_sent(
    database: Database, serve_once: Serve, folder: Path, store: ObjectStore
) -> None:
    service = serve_once(database, "", settings(folder, **store_settings(store)))
    response = service.get("/object", params={"key": "in/ä b.txt"})
    assert response.content == b"0123456789"
    assert "filename*=UTF-8''%C3%A4%20b.txt" in response.headers["content-disposition"]
    tag = response.headers["etag"]
    assert service.get("/object", params={"key": "in/ä b.txt"}, headers={"if-none-match": tag}).status_code == 304
    assert service.get("/object?key=large.bin").content == LARGE
    part = service.get("/object?key=large.bin", headers={"range": "bytes=1000-1004"})
    assert (part.status_code, part.content) == (206, LARGE[1000:1005])
    assert service.get("/object?key=empty").content == b""
    assert service.request("HEAD", "/object?key=large.bin").headers["content-length"] == str(len(LARGE))
    problem(service.get("/object?key=missing"), 404)
    tagged = service.get("/tagged-object?key=large.bin")
    assert (tagged.status_code, tagged.headers["etag"], tagged.content) == (200, '"v7"', LARGE)
    part = service.get("/tagged-object?key=large.bin", headers={"range": "bytes=1000-1004", "if-range": '"v7"'})
    assert (part.status_code, part.content) == (206, LARGE[1000:1005])
    assert service.get("/tagged-object?key=large.bin", headers={"if-none-match": '"v7"'}).status_code == 304


def test_s3_stores_that_ignore_ranges_or_stall_are_supported(
    database: Database, serve_once: Serve, folder: Path, store: ObjectStore
) -> None:
    upstream = Upstream()
    sent = answer(b"0123456789", headers=[("ETag", '"1"')])
    upstream.on(
        "/main/whole", lambda request, _: sent[: sent.index(b"\r\n\r\n") + 4] if request.method == "HEAD" else sent
    )
    other = sent.replace(b" 200 ", b" 206 ").replace(b"\r\nETag", b"\r\nContent-Range: bytes 0-9/10\r\nETag")
    upstream.on(
        "/main/other", lambda request, _: sent[: sent.index(b"\r\n\r\n") + 4] if request.method == "HEAD" else other
    )
    upstream.on("/main/unknown", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    upstream.on("/main/stalls", lambda request, _: sent[: sent.index(b"\r\n\r\n") + 4 + 5 * (request.method == "GET")])
    of_upstream = {
        **store_settings(store),
        HANDLERS + "S3Endpoint": upstream.url,
        HANDLERS + "S3Timeout": "1s",
    }
    service = serve_once(database, "", settings(folder, **of_upstream))
    assert service.get("/object?key=whole").content == b"0123456789"
    assert service.get("/tagged-object?key=whole").headers["etag"] == '"v7"'
    assert {request.header("if-match") for request in upstream.to("/main/whole") if request.method == "GET"} == {'"1"'}
    begin = service.get("/object?key=whole", headers={"range": "bytes=0-2"})
    assert (begin.status_code, begin.content) == (206, b"012")
    for key in ("whole", "other"):
        problem(service.get(f"/object?key={key}", headers={"range": "bytes=2-4"}), 502)
    problem(service.get("/object?key=unknown"), 502)
    with pytest.raises(httpx.RemoteProtocolError):
        service.get("/object?key=stalls")
    service.wait_for_log("the object main/stalls is cut off: 0 no data within 1 s")
    upstream.close()


def test_object_links_redirect_to_the_s3_store(
    database: Database, serve_once: Serve, folder: Path, store: ObjectStore
) -> None:
    service = serve_once(
        database, "", settings(folder, **store_settings(store), **{"Downloads:ObjectLinks": "5 minutes"})
    )
    response = service.get("/object", params={"key": "in/ä b.txt"})
    assert (response.status_code, response.headers["cache-control"]) == (302, "no-store")
    location = response.headers["location"]
    assert location.startswith(f"{store.url}/main/in/%C3%A4%20b.txt?")
    assert "X-Amz-Expires=300" in location
    assert httpx.get(location).content == b"0123456789"
    assert httpx.get(location.replace("X-Amz-Expires=300", "X-Amz-Expires=301")).status_code == 403
    head = service.request("HEAD", "/object", params={"key": "in/ä b.txt"})
    assert (head.status_code, head.headers["content-length"]) == (200, "10")
    assert service.request("HEAD", "/object?key=missing").status_code == 404


@pytest.mark.slow
def test_unreachable_s3_store_gets_502(database: Database, serve_once: Serve, folder: Path, store: ObjectStore) -> None:
    away: dict[str, Any] = {**store_settings(store), HANDLERS + "S3Endpoint": "http://127.0.0.1:9"}
    service = serve_once(database, "", settings(folder, **away))
    problem(service.get("/object?key=x"), 502)
    without = serve_once(database, "", settings(folder))
    problem(without.get("/object?key=x"), 500)
    without.wait_for_log("there is no object store")


# --- at the start ----------------------------------------------------------------------------------------------------


def test_unusable_download_annotations_are_logged(service: Service) -> None:
    needed = "download needs exactly one of the columns content, file, oid and object in the result"
    assert f"GET /nothing: {needed}; the endpoint is left out" in service.log
    assert f"GET /twice: {needed}; the endpoint is left out" in service.log
    assert "GET /cached: download cannot be combined with cached; the endpoint is left out" in service.log
    assert "'often' is none of: attachment, inline, inline link 10 minutes" in service.log
    for path in ("/nothing", "/twice", "/cached"):
        problem(service.get(path), 404)


def test_large_values_are_refused(database: Database, serve_once: Serve, folder: Path) -> None:
    service = serve_once(database, "", settings(folder, **{"Downloads:LargestContent": "9"}))
    problem(service.get("/content/1"), 500)
    service.wait_for_log("its content has 10 bytes, more than Downloads:LargestContent (9)")


def test_folders_that_contain_service_files_stop_the_start(database: Database, tmp_path: Path) -> None:
    done = rowcall(
        tmp_path, "--validate", "--Downloads:Folders:0=/", f"--ConnectionStrings:Default={database.conninfo}"
    )
    assert done.returncode == 1
    assert "Downloads:Folders: files of / must not be sent: it contains" in done.stderr + done.stdout
