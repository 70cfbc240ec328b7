"""Resumable uploads (tus 1.0.0) over several requests and workers, with interruptions."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from tusclient.client import TusClient

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SCHEMA = """
create table kept (about text, meta json);
create function up(_about text, _meta json) returns json language sql as
    'insert into kept values (_about, _meta) returning meta';
comment on function up(text, json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
unique_name = false
resumable';
create table line (number int, cells text[]);
create function up_rows(_meta json) returns json language sql as 'select _meta';
comment on function up_rows(json) is 'HTTP POST
upload for large_object, csv
param _meta is upload metadata
row_command = insert into line values ($1, $2)
resumable = true';
create function up_mine(_meta json) returns json language sql as 'select _meta';
comment on function up_mine(json) is 'HTTP POST
authorize
upload for file_system
param _meta is upload metadata
unique_name = false
resumable';
create function up_refused(_meta json) returns json language plpgsql as
    $$ begin raise exception 'not these'; end $$;
comment on function up_refused(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
resumable';
create function up_strict(_about text, _meta json) returns json language sql strict as 'select _meta';
comment on function up_strict(text, json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
query_string_null_handling null_literal
resumable';
create function up_tenant(_meta json) returns json language sql as 'select _meta';
comment on function up_tenant(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
unique_name = false
tenant from header X-Tenant
resumable';
create table gate (open boolean);
insert into gate values (false);
create function up_gated(_meta json) returns json language plpgsql as $$ begin
    if not (select open from gate) then
        perform pg_terminate_backend(pg_backend_pid());
    end if;
    return _meta;
end $$;
comment on function up_gated(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata
unique_name = false
resumable';
create function up_plain(_meta json) returns json language sql as 'select _meta';
comment on function up_plain(json) is 'HTTP POST
upload for file_system
param _meta is upload metadata';
create function sign_in(_who int) returns table (status int, user_id int) language sql as 'select 200, _who';
comment on function sign_in(int) is 'HTTP POST
login
authorize off';
"""

TUS = {"tus-resumable": "1.0.0"}
PIECE = {**TUS, "content-type": "application/offset+octet-stream"}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


NAMED = {"upload-metadata": f"filename {encoded('horn.txt')},filetype {encoded('text/plain')},draft"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("waiting") / "parts"


@pytest.fixture(scope="module")
def settings(folder: Path, waiting: Path) -> dict[str, str]:
    return {
        "Auth:CookieAuth": "true",
        "Service:UploadOptions:Enabled": "true",
        "Service:UploadOptions:UploadHandlers:FileSystemPath": str(folder),
        "Service:UploadOptions:Resumable:Path": str(waiting),
        "Service:UploadOptions:Resumable:MaxSize": "100000000",
        "HttpServer:Limits:MaxRequestBodySize": "1000",
    }


@pytest.fixture(scope="module")
def loaded(database: Database) -> Database:
    database.execute(SCHEMA)
    return database


@pytest.fixture(scope="module")
def service(loaded: Database, serve: Serve, settings: dict[str, str]) -> Service:
    return serve(loaded, "", settings, workers=2)


@pytest.fixture
def clean(folder: Path) -> Iterator[None]:
    yield
    for path in folder.iterdir():
        path.unlink()


def create(service: Service, length: int, path: str = "/api/up?about=x", **others: Any) -> str:
    headers = {**TUS, "upload-length": str(length), **NAMED, **others.pop("headers", {})}
    response = service.post(path, headers=headers, **others)
    assert response.status_code == 201, response.text
    return str(response.request.url.join(response.headers["location"]))


def send(service: Service, url: str, offset: int, data: bytes, **headers: str) -> httpx.Response:
    return service.client.patch(url, content=data, headers={**PIECE, "upload-offset": str(offset), **headers})


def offset_of(service: Service, url: str) -> int:
    response = service.client.head(url, headers=TUS)
    assert response.status_code == 200
    return int(response.headers["upload-offset"])


def test_options_list_the_capabilities(service: Service) -> None:
    response = service.request("OPTIONS", "/api/up")
    assert response.status_code == 204
    assert {name: value for name, value in response.headers.items() if name.startswith("tus-")} == {
        "tus-resumable": "1.0.0",
        "tus-version": "1.0.0",
        "tus-extension": "creation,creation-with-upload,creation-defer-length,expiration,termination,checksum,"
        "concatenation",
        "tus-checksum-algorithm": "sha1,sha256,sha512,md5",
        "tus-max-size": "100000000",
    }
    assert response.headers["allow"] == "OPTIONS, POST"
    assert service.request("OPTIONS", "/api/up/resumable/x").headers["allow"] == "DELETE, HEAD, OPTIONS, PATCH, POST"
    assert "tus-version" not in service.request("OPTIONS", "/api/up-plain").headers


def test_chunks_are_stored_as_a_file_after_the_last_one(
    service: Service, database: Database, folder: Path, clean: None
) -> None:
    url = create(service, 11, "/api/up?about=bells")
    first = send(service, url, 0, b"hello ")
    assert (first.status_code, first.headers["upload-offset"]) == (204, "6")
    assert first.headers["tus-resumable"] == "1.0.0"
    assert first.headers["upload-expires"].endswith(" GMT")
    response = service.client.head(url, headers=TUS)
    assert (response.headers["upload-offset"], response.headers["upload-length"]) == ("6", "11")
    assert response.headers["upload-metadata"] == NAMED["upload-metadata"]
    assert response.headers["cache-control"] == "no-store"
    assert list(folder.iterdir()) == []
    last = send(service, url, 6, b"world")
    assert (last.status_code, last.headers["upload-offset"], last.content) == (204, "11", b"")
    assert (folder / "horn.txt").read_bytes() == b"hello world"
    entry = {"type": "file_system", "fileName": "horn.txt", "contentType": "text/plain", "size": 11}
    entry |= {"filePath": f"{folder}/horn.txt", "success": True, "status": "Ok"}
    assert database.value("select meta from kept where about = 'bells'") == [entry]
    # Each request is answered once, by the protocol alone.
    assert "responded 500" not in service.log
    assert "Incorrect Content-Type" not in service.log
    # A client that has lost the last response asks, and learns that the upload is complete.
    assert offset_of(service, url) == 11
    assert send(service, url, 11, b"").status_code == 204
    assert database.value("select count(*) from kept where about = 'bells'") == 1


def test_the_result_of_the_routine_is_returned_if_preferred(service: Service, clean: None) -> None:
    url = create(service, 2)
    response = send(service, url, 0, b"ab", prefer="return=representation")
    assert response.status_code == 200, response.text
    assert response.headers["preference-applied"] == "return=representation"
    assert response.headers["upload-offset"] == "2"
    assert response.json()[0]["status"] == "Ok"


def test_a_creation_can_contain_the_whole_file(service: Service, folder: Path, clean: None) -> None:
    headers = {**PIECE, "upload-length": "5", "upload-metadata": f"filename {encoded('at once')}"}
    response = service.post("/api/up?about=x", headers=headers, content=b"hello")
    assert (response.status_code, response.headers["upload-offset"]) == (201, "5")
    assert (folder / "at once").read_bytes() == b"hello"
    response = service.post("/api/up?about=x", headers={**headers, "upload-length": "6"}, content=b"hello")
    assert (response.status_code, response.headers["upload-offset"]) == (201, "5")
    url = str(response.request.url.join(response.headers["location"]))
    assert send(service, url, 5, b"!").status_code == 204
    assert (folder / "at once").read_bytes() == b"hello!"
    empty = {**TUS, "upload-length": "0", "upload-metadata": f"filename {encoded('empty')}"}
    assert service.post("/api/up?about=x", headers=empty).status_code == 201
    assert (folder / "empty").read_bytes() == b""


def test_the_length_can_be_deferred(service: Service, folder: Path, clean: None) -> None:
    response = service.post("/api/up?about=x", headers={**TUS, **NAMED, "upload-defer-length": "1"})
    url = str(response.request.url.join(response.headers["location"]))
    assert send(service, url, 0, b"ab").status_code == 204
    assert service.client.head(url, headers=TUS).headers["upload-defer-length"] == "1"
    assert send(service, url, 2, b"c", **{"upload-length": "3"}).status_code == 204
    assert (folder / "horn.txt").read_bytes() == b"abc"


def test_several_handlers_process_a_resumable_upload(service: Service, database: Database) -> None:
    url = create(service, 8, "/api/up-rows")
    assert send(service, url, 0, b"1,2\n").status_code == 204
    assert database.value("select count(*) from line") == 0
    response = send(service, url, 4, b"3,4\n", prefer="return=representation")
    assert [entry["type"] for entry in response.json()] == ["large_object", "csv"]
    assert database.value("select array_agg(cells::text order by number) from line") == ["{1,2}", "{3,4}"]


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha512", "md5"])
def test_a_chunk_with_a_wrong_checksum_is_refused(service: Service, algorithm: str, clean: None) -> None:
    def checksum(data: bytes) -> dict[str, str]:
        return {"upload-checksum": f"{algorithm} {base64.b64encode(hashlib.new(algorithm, data).digest()).decode()}"}

    url = create(service, 9)
    assert send(service, url, 0, b"abc", **checksum(b"abc")).headers["upload-offset"] == "3"
    result = problem(send(service, url, 3, b"xyz", **checksum(b"def")), 460)
    assert result["title"] == "Checksum Mismatch"
    digest = {"content-digest": "sha-256=:AAAA:"}
    problem(send(service, url, 3, b"xyz", **digest), 400)
    assert offset_of(service, url) == 3
    assert send(service, url, 3, b"def", **checksum(b"def")).status_code == 204
    problem(send(service, url, 6, b"x", **{"upload-checksum": "crc32 AAAA"}), 400)
    assert offset_of(service, url) == 6


def test_partial_uploads_are_concatenated(service: Service, folder: Path, waiting: Path, clean: None) -> None:
    urls = [create(service, 3, headers={"upload-concat": "partial"}) for _ in range(2)]
    for url, data in zip(urls, (b"abc", b"def"), strict=True):
        assert send(service, url, 0, data).status_code == 204
    assert list(folder.iterdir()) == []
    assert service.client.head(urls[0], headers=TUS).headers["upload-concat"] == "partial"
    final = {**TUS, **NAMED, "upload-concat": f"final;{urls[0]} {urls[1]}"}
    response = service.post("/api/up?about=x", headers=final)
    assert response.status_code == 201, response.text
    assert (folder / "horn.txt").read_bytes() == b"abcdef"
    header = service.client.head(str(response.request.url.join(response.headers["location"])), headers=TUS)
    assert (header.headers["upload-offset"], header.headers["upload-length"]) == ("6", "6")
    assert header.headers["upload-concat"] == final["upload-concat"]
    problem(service.post("/api/up?about=x", headers=final), 404)
    problem(send(service, str(header.request.url), 6, b""), 403)
    overridden = {**TUS, "x-http-method-override": "DELETE"}
    assert service.client.post(str(header.request.url), headers=overridden).status_code == 204


@pytest.mark.parametrize("path", ["/api/up-strict?about=null", "/api/up-refused"])
def test_a_concatenation_without_a_call_leaves_no_upload(
    service: Service, waiting: Path, clean: None, path: str
) -> None:
    url = create(service, 1, path, headers={"upload-concat": "partial"})
    assert send(service, url, 0, b"a").status_code == 204
    before = files_in(waiting)
    for _ in range(3):
        service.post(path, headers={**TUS, **NAMED, "upload-concat": f"final;{url}"})
    wait_until(lambda: files_in(waiting) == before, "the concatenated uploads are removed")
    assert service.client.delete(url, headers=TUS).status_code == 204


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_a_default_folder_of_another_user_is_not_used(
    loaded: Database, serve_once: Serve, settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    service = serve_once(loaded, "", {**settings, "Service:UploadOptions:Resumable:Path": ""})
    url = create(service, 100)
    (bytes_file,) = tmp_path.glob("rowcall-uploads-*/*.bytes")
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    bytes_file.unlink()
    bytes_file.symlink_to(victim)
    os.chown(bytes_file.parent, 65534, 65534)
    for response in (send(service, url, 0, b"planted"), service.client.delete(url, headers=TUS)):
        problem(response, 500)
    assert service.client.head(url, headers=TUS).status_code == 500
    assert victim.read_bytes() == b""
    assert bytes_file.is_symlink()
    service.wait_for_log("the folder belongs to another user")


def test_an_upload_can_be_terminated(service: Service, waiting: Path) -> None:
    url = create(service, 10)
    send(service, url, 0, b"abc")
    before = len(list(waiting.iterdir()))
    assert service.client.delete(url, headers=TUS).status_code == 204
    assert len(list(waiting.iterdir())) == before - 2
    assert service.client.head(url, headers=TUS).status_code == 404
    url = create(service, 10)
    overridden = {**TUS, "x-http-method-override": "DELETE"}
    assert service.client.post(url, headers=overridden).status_code == 204
    assert service.client.head(url, headers=TUS).status_code == 404


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        ({"tus-resumable": "0.2.2"}, 412, "1.0.0"),
        (TUS, 400, "Upload-Length is missing"),
        ({**TUS, "upload-length": "-1"}, 400, "no whole number"),
        ({**TUS, "upload-length": "1" * 30}, 400, "no whole number"),
        ({**TUS, "upload-length": "100000001"}, 413, "larger than 100000000"),
        ({**TUS, "upload-length": "1", "upload-defer-length": "1"}, 400, "must not be sent with Upload-Length"),
        ({**TUS, "upload-defer-length": "2"}, 400, "must be 1"),
        ({**TUS, "upload-length": "1", "upload-metadata": "filename ???"}, 400, "Base64"),
        ({**TUS, "upload-length": "1", "upload-metadata": "a,a"}, 400, "twice"),
        ({**TUS, "upload-concat": "final;/api/up/resumable/../x"}, 400, "Upload-Concat"),
        ({**TUS, "upload-concat": f"final;{'0' * 32}"}, 404, "no part"),
    ],
)
def test_an_invalid_creation_is_refused(service: Service, headers: dict[str, str], status: int, says: str) -> None:
    response = service.post("/api/up?about=x", headers=headers)
    assert says in problem(response, status)["detail"]
    assert response.headers["tus-resumable"] == "1.0.0"
    if status == 412:
        assert response.headers["tus-version"] == "1.0.0"


def test_an_invalid_chunk_is_refused(service: Service, clean: None) -> None:
    url = create(service, 5)
    assert problem(send(service, url, 1, b"x"), 409)["detail"] == "0 bytes have arrived; Upload-Offset says 1"
    problem(service.client.patch(url, content=b"x", headers={**TUS, "upload-offset": "0"}), 415)
    problem(service.client.patch(url, content=b"x", headers=PIECE), 400)
    problem(service.client.patch(url, content=b"x", headers={"upload-offset": "0"}), 412)
    problem(send(service, url, 0, b"too much"), 413)
    problem(service.client.post(url, headers=TUS), 405)
    for id in ("0" * 32, "..%2F..%2Fetc", "x"):
        problem(service.client.patch(f"/api/up/resumable/{id}?about=x", headers={**PIECE, "upload-offset": "0"}), 404)
    # Parameters are those of the URL, checked with each piece; another endpoint takes no part in it.
    problem(send(service, url.partition("?")[0], 0, b"hello"), 404)
    problem(send(service, url.replace("/up/", "/up-rows/").partition("?")[0], 0, b"hello"), 404)
    assert offset_of(service, url) == 0
    assert send(service, url, 0, b"hello").status_code == 204


def test_only_the_creator_can_continue_an_upload(service: Service, folder: Path, clean: None) -> None:
    refused = service.post("/api/up-mine", headers={**TUS, "upload-length": "3"})
    assert refused.status_code == 401

    def signed_in(who: int) -> httpx.Client:
        client = httpx.Client(base_url=service.url, trust_env=False, timeout=60)
        assert client.post("/api/sign-in", json={"who": who}).status_code == 200
        return client

    with closing(signed_in(1)) as item, closing(signed_in(2)) as other, closing(signed_in(1)) as again:
        created = item.post("/api/up-mine", headers={**TUS, **NAMED, "upload-length": "4"})
        url = str(created.request.url.join(created.headers["location"]))
        piece = {**PIECE, "upload-offset": "0"}
        assert service.client.head(url, headers=TUS).status_code == 401
        assert service.client.patch(url, headers=piece, content=b"ab").status_code == 401
        assert other.head(url, headers=TUS).status_code == 404
        assert other.patch(url, headers=piece, content=b"ab").status_code == 404
        assert other.delete(url, headers=TUS).status_code == 404
        assert item.patch(url, headers=piece, content=b"ab").status_code == 204
        assert again.patch(url, headers={**piece, "upload-offset": "2"}, content=b"cd").status_code == 204
        begun = item.post("/api/up-mine", headers={**TUS, "upload-length": "2", "upload-concat": "partial"})
        part = str(begun.request.url.join(begun.headers["location"]))
        assert item.patch(part, headers=piece, content=b"ef").status_code == 204
        final = {**TUS, **NAMED, "upload-concat": f"final;{part}"}
        assert other.post("/api/up-mine", headers=final).status_code == 404
        assert (folder / "horn.txt").read_bytes() == b"abcd"
        assert item.post("/api/up-mine", headers=final).status_code == 201
    assert (folder / "horn.txt").read_bytes() == b"ef"


def test_an_upload_belongs_to_the_tenant_of_its_creation(service: Service, folder: Path, clean: None) -> None:
    red, blue = {"x-tenant": "red"}, {"x-tenant": "blue"}
    url = create(service, 2, "/api/up-tenant", headers=red)
    assert send(service, url, 0, b"a", **red).status_code == 204
    assert service.client.head(url, headers={**TUS, **blue}).status_code == 404
    problem(send(service, url, 1, b"b", **blue), 404)
    problem(service.client.delete(url, headers={**TUS, **blue}), 404)
    part = create(service, 1, "/api/up-tenant", headers={**red, "upload-concat": "partial"})
    assert send(service, part, 0, b"c", **red).status_code == 204
    final = {**TUS, **NAMED, "upload-concat": f"final;{part}"}
    problem(service.post("/api/up-tenant", headers={**final, **blue}), 404)
    assert service.client.delete(part, headers={**TUS, **red}).status_code == 204
    assert send(service, url, 1, b"b", **red).status_code == 204
    assert (folder / "horn.txt").read_bytes() == b"ab"


def test_an_upload_refused_by_the_routine_is_deleted(service: Service, folder: Path) -> None:
    url = create(service, 3, "/api/up-refused")
    assert problem(send(service, url, 0, b"abc"), 400)["title"] == "not these"
    assert service.client.head(url, headers=TUS).status_code == 404
    assert list(folder.iterdir()) == []


def test_the_last_byte_is_acknowledged_after_the_routine_has_succeeded(
    service: Service, database: Database, folder: Path, clean: None
) -> None:
    url = create(service, 3, "/api/up-gated")
    assert send(service, url, 0, b"abc").status_code == 503
    assert list(folder.iterdir()) == []
    assert offset_of(service, url) == 2
    database.execute("update gate set open = true")
    assert send(service, url, 2, b"c").status_code == 204
    assert (folder / "horn.txt").read_bytes() == b"abc"


def test_an_upload_is_resumed_although_the_old_connection_is_open(
    service: Service, waiting: Path, folder: Path, clean: None
) -> None:
    """The network of the client fails silently: the service still waits for the rest of the chunk."""
    url = create(service, 2_000_000)
    target = url.removeprefix(service.url).encode()
    with service.connect() as lost:
        lost.sendall(
            b"PATCH %b HTTP/1.1\r\nhost: x\r\ntus-resumable: 1.0.0\r\nupload-offset: 0\r\n" % target
            + b"content-type: application/offset+octet-stream\r\ncontent-length: 2000000\r\n\r\n"
            + b"a" * 1_500_000
        )
        wait_until(lambda: offset_of(service, url) > 0, "a part of it has arrived")
        for _ in range(4):  # it may be another worker that is asked
            with httpx.Client(trust_env=False, timeout=60) as client:
                have = int(client.head(url, headers=TUS).headers["upload-offset"])
                response = client.patch(url, headers={**PIECE, "upload-offset": str(have)}, content=b"")
                if response.status_code == 409:  # what the other one had in its hands has been written meanwhile
                    continue
            assert response.status_code == 204
            break
        have = offset_of(service, url)
        assert have == 1_500_000
        assert send(service, url, have, b"b" * 500_000).status_code == 204
        assert lost.recv(100).startswith(b"HTTP/1.1 409")
    assert (folder / "horn.txt").read_bytes() == b"a" * 1_500_000 + b"b" * 500_000


def test_an_upload_continues_after_its_worker_was_killed(
    loaded: Database, serve_once: Serve, settings: dict[str, str], folder: Path, clean: None
) -> None:
    """The official client of tus for Python, with a file whose last third is sent after the accident."""
    service = serve_once(loaded, "", settings, workers=2)
    data = os.urandom(3_000_000)
    metadata = {"filename": "killed.bin", "filetype": "application/octet-stream"}
    uploader = TusClient(f"{service.url}/api/up?about=killed").uploader(
        file_stream=io.BytesIO(data), chunk_size=1_000_000, metadata=metadata, upload_checksum=True
    )
    uploader.upload(stop_at=1_000_000)
    url: str = uploader.url  # type: ignore[assignment]  # tusclient declares it as None only
    cut = b"PATCH %b HTTP/1.1\r\nhost: x\r\ntus-resumable: 1.0.0\r\nupload-offset: 1000000\r\n" % (
        url.removeprefix(service.url).encode()
    )
    with service.connect() as connection:
        connection.sendall(
            cut
            + b"content-type: application/offset+octet-stream\r\ncontent-length: 2000000\r\n\r\n"
            + data[1_000_000:2_600_000]
        )
        wait_until(lambda: offset_of(service, url) > 1_000_000, "a part of it has arrived")
        before = service.pids()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not set(before) & set(service.pids()), "others have taken their place")
    wait_until(lambda: is_served(lambda: offset_of(service, url)), "they answer")
    again = TusClient(f"{service.url}/api/up?about=killed").uploader(
        file_stream=io.BytesIO(data), chunk_size=400_000, url=url, upload_checksum=True
    )
    assert again.offset > 1_000_000
    again.upload()
    assert again.offset == 3_000_000
    assert (folder / "killed.bin").read_bytes() == data
    assert loaded.value("select count(*) from kept where about = 'killed'") == 1


def is_served(ask: Callable[[], Any]) -> bool:
    try:
        ask()
    except httpx.TransportError:
        return False
    return True


@pytest.mark.slow
def test_unfinished_uploads_expire(
    loaded: Database, serve_once: Serve, settings: dict[str, str], waiting: Path, tmp_path: Path
) -> None:
    parts = tmp_path / "parts"
    service = serve_once(
        loaded,
        "",
        {
            **settings,
            "Service:UploadOptions:Resumable:Path": str(parts),
            "Service:UploadOptions:Resumable:ExpiresAfter": "1s",
        },
    )
    url = create(service, 10)
    wait_until(lambda: files_in(parts) == [], "it is removed")
    assert service.client.head(url, headers=TUS).status_code == 404


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def narrow(loaded: Database, serve: Serve, settings: dict[str, str], waiting: Path) -> Service:
    limits = {"Path": f"{waiting.parent}/few", "MaxUnfinished": "4", "MaxUnfinishedPerClient": "3"}
    limits["MaxUnfinishedSize"] = "100000005"
    chosen = {f"Service:UploadOptions:Resumable:{name}": value for name, value in limits.items()}
    return serve(loaded, "", {**settings, **chosen}, workers=2)


def begin(client: httpx.Client, length: int | None = 1, path: str = "/api/up?about=few") -> httpx.Response:
    announced = {"upload-defer-length": "1"} if length is None else {"upload-length": str(length)}
    return client.post(path, headers={**TUS, **announced})


def url_of(begun: httpx.Response) -> str:
    assert begun.status_code == 201, begun.text
    return str(begun.request.url.join(begun.headers["location"]))


def test_the_number_of_unfinished_uploads_is_limited(narrow: Service, folder: Path, waiting: Path, clean: None) -> None:
    others, another = (narrow.new_client() for _ in range(2))
    with others, another:
        for who, client in ((7, others), (8, another)):
            assert client.post("/api/sign-in", json={"who": who}).status_code == 200
        # Many at once, over both workers: as many as may be, and not one more.
        with ThreadPoolExecutor(12) as threads:
            begun = list(threads.map(lambda _: begin(narrow.client), range(12)))
        urls = [url_of(item) for item in begun if item.status_code == 201]
        assert len(urls) == 3
        refused = next(item for item in begun if item.status_code != 201)
        assert "you have 3 unfinished uploads" in problem(refused, 429)["detail"]
        assert "retry-after" in refused.headers
        # One that is finished, and one that is given up, make room; another caller has a limit of its own.
        assert send(narrow, urls.pop(), 0, b"x").status_code == 204
        assert narrow.client.delete(urls.pop(), headers=TUS).status_code == 204
        theirs = [url_of(begin(others, path="/api/up-mine")) for _ in range(3)]
        result = problem(begin(another, path="/api/up-mine"), 507)
        assert (result["title"], "4 uploads are unfinished" in result["detail"]) == ("Insufficient Storage", True)
        # Bytes of all of them: a length that is not said counts as the most it can be, until it is said.
        for url in theirs:
            assert others.delete(url, headers=TUS).status_code == 204
        deferred = url_of(begin(narrow.client, None))
        assert "100000006 bytes" in problem(begin(another, 5, "/api/up-mine"), 507)["detail"]
        assert send(narrow, deferred, 0, b"ab", **{"upload-length": "4"}).status_code == 204
        urls = [deferred, *urls]
        last = url_of(begin(another, 100_000_000, "/api/up-mine"))
        assert "bytes" in problem(begin(another, 1, "/api/up-mine"), 507)["detail"]
        assert another.delete(last, headers=TUS).status_code == 204
    for url in urls:
        assert narrow.client.delete(url, headers=TUS).status_code == 204
    # Nothing is left of them but what is remembered of the one that was finished.
    assert {path.suffix for path in files_in(waiting.parent / "few")} == {".bytes", ".json"}
    assert len(files_in(waiting.parent / "few")) == 2


def test_concatenated_parts_do_not_count_as_unfinished(narrow: Service, folder: Path, clean: None) -> None:
    urls = [create(narrow, 3, headers={"upload-concat": "partial"}) for _ in range(3)]
    for url in urls:
        assert send(narrow, url, 0, b"abc").status_code == 204
    problem(begin(narrow.client), 429)
    final = {**TUS, **NAMED, "upload-concat": f"final;{' '.join(urls)}"}
    assert narrow.post("/api/up?about=x", headers=final).status_code == 201
    assert narrow.client.delete(url_of(begin(narrow.client)), headers=TUS).status_code == 204


def test_cors_permits_resumable_uploads_from_other_origins(
    loaded: Database, serve_once: Serve, settings: dict[str, str], folder: Path, clean: None
) -> None:
    service = serve_once(
        loaded,
        "",
        {
            **settings,
            "Cors:Enabled": "true",
            "Cors:AllowedOrigins:0": "https://shop.example",
            "Cors:AllowedMethods:0": "*",
            "Cors:AllowedHeaders:0": "*",
            "Cors:ExposedHeaders:0": "Location",
            "Cors:ExposedHeaders:1": "Upload-Offset",
        },
    )
    origin = {"origin": "https://shop.example"}
    url = create(service, 3, headers=origin)
    requested = {**origin, "access-control-request-method": "PATCH", "access-control-request-headers": "upload-offset"}
    preflight = service.client.options(url, headers=requested)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-methods"] == "PATCH"
    assert "upload-offset" in preflight.headers["access-control-allow-headers"]
    response = send(service, url, 0, b"abc", **origin)
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == "https://shop.example"
    assert "Upload-Offset" in response.headers["access-control-expose-headers"]
