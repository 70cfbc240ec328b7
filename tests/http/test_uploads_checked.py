"""Uploads are checked against a digest (RFC 9530), and by a command that the operator configures."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SCHEMA = """
create function up(_meta json) returns json language sql as 'select _meta';
comment on function up(json) is 'HTTP POST
upload for large_object
param _meta is upload metadata';
create function up_checked(_meta json) returns json language sql as 'select _meta';
comment on function up_checked(json) is 'HTTP POST
upload for large_object
param _meta is upload metadata
check_command = clean';
create function up_unknown(_meta json) returns json language sql as 'select _meta';
comment on function up_unknown(json) is 'HTTP POST
upload for large_object
param _meta is upload metadata
check_command = rm -rf /';
create function up_missing(_meta json) returns json language sql as 'select _meta';
comment on function up_missing(json) is 'HTTP POST
upload for large_object
param _meta is upload metadata
check_command = missing';
create function up_image(_meta json) returns json language sql as 'select _meta';
comment on function up_image(json) is 'HTTP POST
upload for large_object
param _meta is upload metadata
check_image = true';
create function up_by_default(_meta json) returns json language sql as 'select _meta';
comment on function up_by_default(json) is 'HTTP POST
upload';
"""

CHECKS = "Service:UploadOptions:CheckCommands:"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {
        "Service:UploadOptions:Enabled": "true",
        "Service:UploadOptions:DefaultUploadHandler": "unknown",
        "Service:UploadOptions:UploadHandlers:AllowedImageTypes": "svg",
        CHECKS + "clean": "sh -c '! grep -q virus'",
        CHECKS + "missing": "/nowhere/scanner -",
    }
    return serve(database, SCHEMA, settings)


def send(service: Service, content: bytes, digest: str | None, path: str = "up") -> httpx.Response:
    body = b'--b\r\ncontent-disposition: form-data; name="f"; filename="x"\r\n\r\n' + content + b"\r\n--b--\r\n"
    headers = {"content-type": "multipart/form-data; boundary=b"}
    if digest is not None:
        headers["content-digest"] = digest
        for name in ("sha256", "sha512"):
            value = base64.b64encode(hashlib.new(name, body).digest()).decode()
            headers["content-digest"] = headers["content-digest"].replace(f"<{name}>", value)
    return service.post(f"/api/{path}", content=body, headers=headers)


@pytest.mark.parametrize(
    "digest",
    ["sha-256=:<sha256>:", "sha-512=:<sha512>:, sha-256=:<sha256>:", "md5=:AAAA:", "md5=:AAAA:,sha-256=:<sha256>:"],
)
def test_a_matching_content_digest_is_accepted(service: Service, digest: str) -> None:
    response = send(service, b"some bytes" * 1000, digest)
    assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    "digest", ["sha-256=:AAAA:", "sha-512=:<sha256>:", "sha-256=:<sha256>:, sha-512=:AAAA:", "x", "a=:*:"]
)
def test_a_mismatching_content_digest_is_refused(service: Service, database: Database, digest: str) -> None:
    before = database.value("select count(*) from pg_largeobject_metadata")
    assert "Content-Digest" in problem(send(service, b"some bytes" * 1000, digest), 400)["detail"]
    assert database.value("select count(*) from pg_largeobject_metadata") == before


def test_a_check_command_accepts_or_rejects_files(service: Service) -> None:
    def status(content: bytes) -> Any:
        return send(service, content, None, "up-checked").json()[0]["status"]

    assert status(b"clean " * 100_000) == "Ok"
    assert status(b"clean " * 100_000 + b"virus") == "Rejected"


def test_files_are_refused_if_the_check_command_cannot_run(service: Service) -> None:
    for path in ("up-unknown", "up-missing"):
        assert "cannot be checked" in problem(send(service, b"x", None, path), 500)["detail"]
    service.wait_for_log("rm -rf / is none of Service:UploadOptions:CheckCommands")
    service.wait_for_log("/nowhere/scanner cannot be run")


def test_an_unknown_default_handler_is_logged(service: Service) -> None:
    service.wait_for_log(
        "DefaultUploadHandler: 'unknown' is none of the handlers large_object, file_system, csv, excel"
    )
    response = problem(service.post("/api/up-by-default?meta=1", files={"f": ("x", b"x")}), 500)
    assert "unknown is none of large_object" in response["detail"]


def test_without_a_known_image_type_no_file_passes_the_image_check(service: Service) -> None:
    service.wait_for_log("AllowedImageTypes: svg is none of the image types bmp, gif, jpeg, png, tiff, webp")
    for content in (b"\x89PNG", b"<svg>"):
        assert send(service, content, None, "up-image").json()[0]["status"] == "InvalidImage"
