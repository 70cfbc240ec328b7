"""The handler `s3` against a server that checks signatures."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.object_store import KEY_ID, SECRET, ObjectStore
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SCHEMA = """
create function up(_about text, _meta json) returns json language sql as 'select _meta';
comment on function up(text, json) is 'HTTP POST
upload for s3
param _meta is upload metadata
s3_path = in/{_about}
unique_name = false';
create function up_unique(_meta json) returns json language sql as 'select _meta';
comment on function up_unique(json) is 'HTTP POST
upload for s3, large_object
param _meta is upload metadata
s3_bucket = other
file_system_path = /srv/elsewhere
s3_check_text = true
s3_included_mime_types = text/*';
create function up_refused(_meta json) returns json language plpgsql as
    $$ begin raise exception 'not these'; end $$;
comment on function up_refused(json) is 'HTTP POST
upload for s3
param _meta is upload metadata
unique_name = false';
create table late (id int primary key, other int references late deferrable initially deferred);
create function up_late(_meta json) returns void language sql as 'insert into late values (1, 2)';
comment on function up_late(json) is 'HTTP POST
upload for s3
param _meta is upload metadata
unique_name = false';
create function up_anywhere(_bucket text, _meta json) returns json language sql as 'select _meta';
comment on function up_anywhere(text, json) is 'HTTP POST
upload for s3
param _meta is upload metadata
bucket = {_bucket}
unique_name = false';
"""

HANDLERS = "Service:UploadOptions:UploadHandlers:"
PART = 5_242_880


def settings(url: str, **others: str) -> dict[str, str]:
    return {
        "Service:UploadOptions:Enabled": "true",
        HANDLERS + "S3UploadEnabled": "true",
        HANDLERS + "S3Endpoint": url,
        HANDLERS + "S3Bucket": "main",
        HANDLERS + "S3AccessKeyId": KEY_ID,
        HANDLERS + "S3SecretAccessKey": SECRET,
        HANDLERS + "S3PartSize": str(PART),
        **{HANDLERS + name: value for name, value in others.items()},
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    server = ObjectStore(tmp_path_factory.mktemp("objects"), "main", "other")
    yield server
    server.kill()


@pytest.fixture(scope="module")
def loaded(database: Database) -> Database:
    database.execute(SCHEMA)
    return database


@pytest.fixture(scope="module")
def service(loaded: Database, serve: Serve, store: ObjectStore) -> Service:
    return serve(loaded, "", settings(store.url))


def send(service: Service, path: str, *files: tuple[str, bytes, str]) -> httpx.Response:
    return service.post(path, files=[("f", file) for file in files])


def test_a_file_is_stored_as_a_multipart_object(service: Service, store: ObjectStore) -> None:
    data = os.urandom(2 * PART + 12_345)
    response = send(service, "/api/up?about=horns", ("löud horn.bin", data, "application/x-horn"))
    assert response.json() == [
        {
            "type": "s3",
            "fileName": "löud horn.bin",
            "contentType": "application/x-horn",
            "size": len(data),
            "bucket": "main",
            "key": "in/horns/löud horn.bin",
            "success": True,
            "status": "Ok",
        }
    ]
    assert store.object("main", "in/horns/löud horn.bin") == data
    assert store.unfinished() == []


def test_small_and_empty_files_are_stored_and_path_traversal_is_refused(service: Service, store: ObjectStore) -> None:
    files = [("a.txt", b"a", "text/plain"), ("empty.txt", b"", "text/plain"), ("../../b.txt", b"b", "text/plain")]
    entries = send(service, "/api/up?about=small", *files).json()
    assert [entry["key"] for entry in entries] == ["in/small/a.txt", "in/small/empty.txt", "in/small/b.txt"]
    assert [store.object("main", entry["key"]) for entry in entries] == [b"a", b"", b"b"]
    problem(send(service, "/api/up?about=../x", files[0]), 400)


def test_content_checks_and_following_handlers_apply_to_objects(service: Service, store: ObjectStore) -> None:
    files = [("a.txt", b"a\n", "text/plain"), ("b.txt", b"\0", "text/plain"), ("c.bin", b"c", "image/png")]
    entries = send(service, "/api/up-unique", *files).json()
    values = [(entry["type"], entry["status"]) for entry in entries]
    assert values == [("s3", "Ok"), ("s3", "ProbablyBinary"), ("s3", "InvalidMimeType"), *[("large_object", "Ok")] * 3]
    (key,) = store.objects("other")
    assert entries[0]["key"] == key
    assert key.endswith(".txt")
    assert "/" not in key
    assert [entry["bucket"] for entry in entries[:3]] == ["other"] * 3


def test_failed_uploads_leave_no_objects(service: Service, store: ObjectStore, database: Database) -> None:
    before = store.objects("main")
    data = os.urandom(PART + 5)
    assert problem(send(service, "/api/up-refused", ("refused.bin", data, "")), 400)["title"] == "not these"
    # The object is there by then, and is taken back.
    problem(send(service, "/api/up-late", ("late.bin", data, "")), 409)
    with service.connect() as connection:
        body = b'--b\r\ncontent-disposition: form-data; name="f"; filename="cut"\r\n\r\n' + data
        connection.sendall(
            b"POST /api/up?about=x HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\n"
            b"content-length: 9000000\r\n\r\n" + body
        )
        wait_until(lambda: store.unfinished() != [], "parts are there")
    wait_until(lambda: store.unfinished() == [], "no parts are left")
    assert store.objects("main") == before
    assert SECRET not in service.log


def test_missing_and_invalid_buckets_are_errors(service: Service) -> None:
    result = problem(send(service, "/api/up-anywhere?bucket=nowhere", ("a", b"a", "")), 502)
    assert "NoSuchBucket" in result["detail"]
    for name in ("x", "..", "A_B", "a/b", "a@b.example"):
        problem(send(service, f"/api/up-anywhere?bucket={name}", ("a", b"a", "")), 400)


@pytest.mark.slow
def test_a_wrong_secret_is_502_and_an_unavailable_store_is_504(
    loaded: Database, serve_once: Serve, store: ObjectStore
) -> None:
    service = serve_once(loaded, "", settings(store.url, S3SecretAccessKey="wrong"))
    assert "SignatureDoesNotMatch" in problem(send(service, "/api/up?about=x", ("a", b"a", "")), 502)["detail"]
    away = serve_once(loaded, "", settings(f"http://127.0.0.1:{free_port()}"))
    assert "does not answer: no connection" in problem(send(away, "/api/up?about=x", ("a", b"a", "")), 504)["detail"]


def test_transient_errors_of_the_store_are_retried(loaded: Database, serve_once: Serve, upstream: Upstream) -> None:
    """One response is SlowDown, one response to the completion is lost, and one error has status 200."""
    began = answer("<X><UploadId>u1</UploadId></X>", content_type="application/xml")
    tag = answer("", headers=[("ETag", '"t1"')])
    requested: list[str] = []

    def behave(request: Seen, _connection: socket.socket) -> bytes | None:
        what = f"{request.method} {request.target.partition('?')[2]}"
        requested.append(what)
        if what == "POST uploads=":
            return began
        if what.startswith("PUT "):
            slow = answer("<Error><Code>SlowDown</Code></Error>", 503, content_type="application/xml")
            return slow if requested.count(what) == 1 else tag
        if request.method == "POST":
            if "/lost" in request.path:
                gone = answer("<Error><Code>NoSuchUpload</Code></Error>", 404, content_type="application/xml")
                return None if requested.count(what) == 1 else gone
            return answer("<Error><Code>InternalError</Code></Error>", content_type="application/xml")
        return answer("")

    upstream.on("*", behave)
    service = serve_once(loaded, "", settings(upstream.url))
    assert send(service, "/api/up?about=x", ("lost", b"a", "")).status_code == 200
    part = "PUT partNumber=1&uploadId=u1"
    assert requested == ["POST uploads=", part, part, "POST uploadId=u1", "POST uploadId=u1", "HEAD "]
    requested.clear()
    result = problem(send(service, "/api/up?about=x", ("failing", b"a", "")), 502)
    assert "InternalError" in result["detail"]
    assert requested[-1] == "DELETE uploadId=u1"


@pytest.mark.slow
def test_objects_of_failed_uploads_are_deleted_although_completion_was_unconfirmed(
    loaded: Database, serve_once: Serve, upstream: Upstream
) -> None:
    """The responses to the completion are lost. An earlier object with the same key must not be deleted."""
    part = hashlib.md5(b"a", usedforsecurity=False)
    whole = hashlib.md5(part.digest(), usedforsecurity=False).hexdigest() + "-1"
    began = answer("<X><UploadId>u1</UploadId></X>", content_type="application/xml")
    gone = answer("<Error><Code>NoSuchUpload</Code></Error>", 404, content_type="application/xml")
    down = answer("<Error><Code>InternalError</Code></Error>", 500, content_type="application/xml")
    requested: list[str] = []

    def behave(request: Seen, _connection: socket.socket) -> bytes | None:
        what = f"{request.method} {request.target.partition('?')[2]}"
        requested.append(what)
        if request.method == "POST":
            return began if what == "POST uploads=" else down
        if what == "DELETE uploadId=u1":
            return gone
        tag = whole if request.method == "HEAD" and "/there" in request.path else part.hexdigest()
        return answer("", headers=[("ETag", f'"{tag}"')])

    upstream.on("*", behave)
    service = serve_once(loaded, "", settings(upstream.url))
    end = ["DELETE uploadId=u1", "HEAD "]
    for name, last in (("there", [*end, "DELETE "]), ("another", end)):
        requested.clear()
        assert "InternalError" in problem(send(service, "/api/up?about=x", (name, b"a", "")), 502)["detail"]
        assert requested[2:] == ["POST uploadId=u1"] * 4 + last


@pytest.mark.slow
@pytest.mark.parametrize("before", [None, b"", b"text"])
def test_an_empty_file_whose_response_is_lost_is_deleted(
    loaded: Database, serve_once: Serve, upstream: Upstream, before: bytes | None
) -> None:
    """Unless an equal object may have been there before."""
    content = before

    def behave(request: Seen, _connection: socket.socket) -> bytes | None:
        nonlocal content
        match request.method:
            case "PUT":
                content = b""
                return answer("<Error><Code>InternalError</Code></Error>", 500, content_type="application/xml")
            case "DELETE":
                content = None
        if content is None:
            return answer("", 404 if request.method == "HEAD" else 204)
        return answer("", headers=[("ETag", f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"')])

    upstream.on("*", behave)
    service = serve_once(loaded, "", settings(upstream.url))
    assert "InternalError" in problem(send(service, "/api/up?about=x", ("empty", b"", "")), 502)["detail"]
    assert content == (b"" if before == b"" else None)


@pytest.mark.slow
@pytest.mark.parametrize(("described", "created"), [(503, 500), (404, 403)], ids=["not described", "refused"])
def test_an_empty_file_that_another_request_may_have_stored_is_not_deleted(
    loaded: Database, serve_once: Serve, upstream: Upstream, described: int, created: int
) -> None:
    """The key has an empty object already, or gets that of another request while this one is refused."""
    statuses = {"HEAD": described}
    requested = set()

    def behave(request: Seen, _connection: socket.socket) -> bytes | None:
        requested.add(request.method)
        if request.method == "PUT":
            statuses["HEAD"] = 200
            return answer("<Error><Code>Failure</Code></Error>", created, content_type="application/xml")
        tag = hashlib.md5(b"", usedforsecurity=False).hexdigest()
        return answer("", statuses.get(request.method, 204), headers=[("ETag", f'"{tag}"')])

    upstream.on("*", behave)
    service = serve_once(loaded, "", settings(upstream.url))
    assert "Failure" in problem(send(service, "/api/up?about=x", ("empty", b"", "")), 502)["detail"]
    assert requested == {"HEAD", "PUT"}


def test_a_bucket_named_by_a_request_must_be_an_allowed_host(loaded: Database, serve_once: Serve) -> None:
    """Where the bucket is part of the host, a request could choose whom the service talks to."""
    allowed = {"Service:HttpClientOptions:AllowedHosts:0": "public.store.example"}
    chosen = settings("http://store.example", S3ForcePathStyle="false")
    service = serve_once(loaded, "", {**chosen, **allowed})
    result = problem(send(service, "/api/up-anywhere?bucket=intern", ("a", b"a", "")), 400)
    assert "intern.store.example is not among the allowed hosts" in result["detail"]


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ({"S3SecretAccessKey": ""}, "S3AccessKeyId and S3SecretAccessKey"),
        ({"S3Endpoint": "store"}, "S3Endpoint: the URL is not absolute"),
        ({"S3Endpoint": "http://store/path"}, "S3Endpoint: only a scheme, a host and a port"),
        ({"S3PartSize": "1000"}, "S3PartSize"),
    ],
)
def test_mistakes_are_logged_at_the_start(
    database: Database, others: dict[str, Any], says: str, tmp_path: Path
) -> None:
    chosen = {"ConnectionStrings:Default": database.conninfo, **settings("http://127.0.0.1:1", **others)}
    done = rowcall(tmp_path, *(f"--{key}={value}" for key, value in chosen.items()), "--validate")
    assert done.returncode != 0
    assert says in done.stdout + done.stderr
