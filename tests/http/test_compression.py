"""Compressed responses: whole ones, streamed ones, and those that stay uncompressed (rendering-41, rendering-42,
server-11)."""

from __future__ import annotations

import gzip
import zlib

import brotli
import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function words(_n int default 50) returns table (n int, word text) language sql stable as $$
    select i, 'word ' || i from generate_series(1, _n) i $$;
comment on function words is 'HTTP GET';
create function page() returns text language sql stable as $$ select repeat('<p>', 100) $$;
comment on function page is 'HTTP GET
Content-Type: text/html; charset=utf-8';
create function bytes() returns text language sql stable as $$ select repeat('x', 100) $$;
comment on function bytes is 'HTTP GET
Content-Type: application/octet-stream';
create function ready() returns text language sql stable as $$ select 'as it is' $$;
comment on function ready is 'HTTP GET
Content-Encoding: identity';
create function tagged() returns text language sql stable as $$ select 'one' $$;
comment on function tagged is 'HTTP GET
ETag: "1"';
create function nothing() returns void language sql as '';
comment on function nothing is 'HTTP GET';
create function failing() returns int language sql stable as 'select 1 / 0';
comment on function failing is 'HTTP GET';
create function half(_n int) returns table (n int) language sql stable as $$
    select 1 / (_n - i) from generate_series(1, _n) i $$;
comment on function half is 'HTTP GET';
"""
ON = {"ResponseCompression:Enabled": "true"}
DECODED = {"br": brotli.decompress, "gzip": gzip.decompress, None: bytes}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, ON)


def fetch(service: Service, path: str, accepted: str | None, method: str = "GET") -> tuple[dict[str, str], bytes]:
    """Return headers and the raw body."""
    headers = {} if accepted is None else {"Accept-Encoding": accepted}
    request = service.client.build_request(method, f"{service.url}{path}", headers=headers)
    if accepted is None:
        del request.headers["accept-encoding"]
    response = service.client.send(request, stream=True)
    body = b"".join(response.iter_raw())
    return dict(response.headers), body


@pytest.mark.parametrize(("accepted", "coding"), [("br, gzip", "br"), ("gzip", "gzip"), ("deflate", None)])
@pytest.mark.parametrize("path", ["/api/words", "/api/words?n=200000", "/api/page"])
def test_decompressed_body_is_unchanged(service: Service, path: str, accepted: str, coding: str | None) -> None:
    _, plain = fetch(service, path, None)
    headers, body = fetch(service, path, accepted)
    assert headers.get("content-encoding") == coding
    assert headers["vary"] == "Accept-Encoding"
    assert DECODED[coding](body) == plain
    assert len(body) < len(plain) or coding is None


def test_request_without_accept_encoding_gets_an_uncompressed_response(service: Service) -> None:
    headers, _ = fetch(service, "/api/words", None)
    assert not {"vary", "content-encoding"} & headers.keys()


@pytest.mark.parametrize("path", ["/api/bytes", "/api/ready", "/api/nothing"])
def test_other_types_and_encoded_bodies_are_not_compressed(service: Service, path: str) -> None:
    headers, body = fetch(service, path, "br, gzip")
    assert headers.get("content-encoding") in (None, "identity")
    assert "vary" not in headers
    assert body in (b"x" * 100, b"as it is", b"")


@pytest.mark.parametrize(("accepted", "tag"), [("gzip", 'W/"1"'), ("deflate", '"1"'), (None, '"1"')])
def test_compressed_response_has_a_weak_etag(service: Service, accepted: str | None, tag: str) -> None:
    assert fetch(service, "/api/tagged", accepted)[0]["etag"] == tag


def test_problem_response_is_not_compressed(service: Service) -> None:
    headers, body = fetch(service, "/api/failing", "gzip")
    assert headers["content-type"] == "application/problem+json"
    assert "content-encoding" not in headers
    assert b'"status":500' in body
    problem(service.get("/api/failing"), 500)


def test_head_response_has_compression_headers_of_get(service: Service) -> None:
    headers, body = fetch(service, "/api/words", "gzip", "HEAD")
    assert (headers["content-encoding"], headers["vary"], body) == ("gzip", "Accept-Encoding", b"")
    assert "content-length" not in headers


def test_error_during_streaming_truncates_the_compressed_body(service: Service) -> None:
    request = service.client.build_request(
        "GET", f"{service.url}/api/half?n=300000", headers={"Accept-Encoding": "gzip"}
    )
    response = service.client.send(request, stream=True)
    received = bytearray()

    def receive() -> None:
        for piece in response.iter_raw():
            received.extend(piece)

    with pytest.raises(httpx.HTTPError):
        receive()
    reader = zlib.decompressobj(16 + zlib.MAX_WBITS)
    assert reader.decompress(bytes(received)).startswith(b'[{"n":0}')
    assert not reader.eof


@pytest.mark.parametrize(
    ("settings", "coding"),
    [
        ({"ResponseCompression:UseBrotli": "false"}, "gzip"),
        ({"ResponseCompression:UseGzipFallback": "false", "ResponseCompression:CompressionLevel": "Fastest"}, "br"),
        ({"ResponseCompression:UseBrotli": "false", "ResponseCompression:UseGzipFallback": "false"}, None),
        ({"ResponseCompression:ExcludeMimeTypes:0": "application/json"}, None),
        ({"ResponseCompression:IncludeMimeTypes:0": "text/*"}, None),
        ({"ResponseCompression:CompressionLevel": "SmallestSize"}, "br"),
    ],
)
def test_configuration_selects_the_coding(
    database: Database, serve_once: Serve, settings: dict[str, str], coding: str | None
) -> None:
    service = serve_once(database, "", ON | settings)
    headers, body = fetch(service, "/api/words", "br, gzip")
    assert headers.get("content-encoding") == coding
    assert DECODED[coding](body).startswith(b'[{"n":1,')
