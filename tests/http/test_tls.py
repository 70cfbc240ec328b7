"""https listeners beside http ones, and what a start says when there is no certificate for them."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from rowcall.service.sockets.certificates import CertificateFiles, load_certificate
from tests.harness.database import Database
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
comment on function echo(int) is 'HTTP GET /echo';
"""


def settings(certificate: Path, key: Path | None = None) -> dict[str, str]:
    prefix = "HttpServer:Certificates:Default:"
    return {prefix + "Path": str(certificate)} | ({prefix + "KeyPath": str(key)} if key else {})


@pytest.mark.slow
def test_certificate_serves_only_the_https_listener(
    database: Database, serve: Serve, certificate: tuple[Path, Path]
) -> None:
    port, secure = free_port(), free_port()
    urls = {"Urls": f"http://127.0.0.1:{port};https://127.0.0.1:{secure}"}
    service = serve(database, SQL, {**urls, **settings(*certificate)}, 1, port)
    assert service.get("/echo?id=1").text == "1"
    context = ssl.create_default_context(cafile=str(certificate[0]))
    with httpx.Client(verify=context, trust_env=False, timeout=30) as client:
        assert client.get(f"https://127.0.0.1:{secure}/echo?id=2").text == "2"
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{secure}/echo?id=3", trust_env=False, timeout=30)


@pytest.mark.slow
@pytest.mark.parametrize("compressed", [False, True])
def test_responses_over_https_are_compressed_only_if_configured(
    own_database: Database, serve_once: Serve, certificate: tuple[Path, Path], compressed: bool
) -> None:
    port, secure = free_port(), free_port()
    urls = {"Urls": f"http://127.0.0.1:{port};https://127.0.0.1:{secure}"}
    requested = {"ResponseCompression:Enabled": "true", "ResponseCompression:EnableForHttps": str(compressed)}
    service = serve_once(own_database, SQL, {**urls, **settings(*certificate), **requested}, 1, port)
    accepted = {"Accept-Encoding": "gzip"}
    assert service.get("/echo?id=1", headers=accepted).headers["content-encoding"] == "gzip"
    context = ssl.create_default_context(cafile=str(certificate[0]))
    with httpx.Client(verify=context, trust_env=False, timeout=30) as client:
        response = client.get(f"https://127.0.0.1:{secure}/echo?id=2", headers=accepted)
    assert (response.text, response.headers.get("content-encoding")) == ("2", "gzip" if compressed else None)


@pytest.fixture
def encrypted(certificate: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    key = tmp_path / "encrypted.pem"
    command = ["openssl", "pkcs8", "-topk8", "-in", str(certificate[1]), "-out", str(key), "-passout", "pass:geheim"]
    subprocess.run(command, check=True, capture_output=True)
    return certificate[0], key


def start_and_fail(folder: Path, database: Database, more: dict[str, str]) -> str:
    """The log of a start that ends with exit code 1."""
    urls = {"Urls": f"https://127.0.0.1:{free_port()}", "ConnectionStrings:Default": database.conninfo}
    service = Service(folder, {**urls, **more})
    try:
        assert service.process.wait(30) == 1
        return service.log
    finally:
        service.stop()


def test_https_without_a_certificate_ends_the_start(database: Database, tmp_path: Path) -> None:
    assert "needs a certificate" in start_and_fail(tmp_path, database, {})


def test_certificate_without_its_key_ends_the_start(
    database: Database, tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    log = start_and_fail(tmp_path, database, settings(certificate[0]))
    assert f"HttpServer:Certificates:Default:Path: {certificate[0]}" in log


def test_missing_certificate_file_ends_the_start(database: Database, tmp_path: Path) -> None:
    assert "No such file" in start_and_fail(tmp_path, database, settings(tmp_path / "nowhere.pem"))


def get(service: Service, certificate: Path, number: int) -> str:
    context = ssl.create_default_context(cafile=str(certificate))
    with httpx.Client(verify=context, trust_env=False, timeout=30) as client:
        return client.get(f"https://127.0.0.1:{service.https}/echo?id={number}").text


def secure(serve: Serve, database: Database, more: dict[str, str], workers: int = 1) -> Service:
    """A service with one plain and one https address; the latter is `https`."""
    port, https = free_port(), free_port()
    service = serve(
        database, SQL, {"Urls": f"http://127.0.0.1:{port};https://127.0.0.1:{https}", **more}, workers, port
    )
    service.https = https
    return service


@pytest.mark.slow
def test_encrypted_key_is_opened_with_its_password_for_every_worker(
    own_database: Database, serve_once: Serve, encrypted: tuple[Path, Path]
) -> None:
    password = {"HttpServer:Certificates:Default:Password": "geheim"}
    service = secure(serve_once, own_database, {**settings(*encrypted), **password}, workers=2)
    assert [get(service, encrypted[0], number) for number in range(8)] == [str(number) for number in range(8)]
    workers = service.pids()
    os.kill(workers[0], signal.SIGKILL)
    wait_until(lambda: len(service.pids()) == 2 and workers[0] not in service.pids(), "the worker is replaced", 20)
    assert [get(service, encrypted[0], number) for number in range(8)] == [str(number) for number in range(8)]
    assert "geheim" not in service.log


@pytest.mark.parametrize("form", ["PEM", "DER"])
@pytest.mark.parametrize("password", [None, "of another environment"])
def test_an_unencrypted_key_needs_no_password_and_may_have_one(
    tmp_path: Path, certificate: tuple[Path, Path], form: str, password: str | None
) -> None:
    key = tmp_path / f"key.{form}"
    command = ["openssl", "pkey", "-in", str(certificate[1]), "-outform", form, "-out", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    files = CertificateFiles("Https", str(certificate[0]), str(key), password)
    assert load_certificate(files) == load_certificate(replace(files, key_path=str(certificate[1]), password=None))


@pytest.mark.parametrize("given", [{}, {"HttpServer:Certificates:Default:Password": "falsch"}])
def test_encrypted_key_without_its_password_ends_the_start(
    database: Database, tmp_path: Path, encrypted: tuple[Path, Path], given: dict[str, str]
) -> None:
    log = start_and_fail(tmp_path, database, {**settings(*encrypted), **given})
    assert "HttpServer:Certificates:Default:Password" in log
    assert f"the private key in {encrypted[1]}" in log
    assert "falsch" not in log


@pytest.mark.parametrize("password", ["geheim", ""])
def test_pfx_file_serves_https(
    own_database: Database, serve_once: Serve, certificate: tuple[Path, Path], tmp_path: Path, password: str
) -> None:
    pfx = tmp_path / "both.pfx"
    command = ["openssl", "pkcs12", "-export", "-in", str(certificate[0]), "-inkey", str(certificate[1])]
    subprocess.run([*command, "-out", str(pfx), "-passout", f"pass:{password}"], check=True, capture_output=True)
    more = {"HttpServer:Certificates:Default:Path": str(pfx), "HttpServer:Certificates:Default:Password": password}
    assert get(secure(serve_once, own_database, more), certificate[0], 5) == "5"


def test_key_of_another_certificate_ends_the_start(
    database: Database, tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "genrsa", "-out", str(other), "2048"], check=True, capture_output=True)
    assert "is not the one of the certificate" in start_and_fail(tmp_path, database, settings(certificate[0], other))


def test_configured_endpoints_replace_urls_and_have_their_own_certificates(
    own_database: Database, serve_once: Serve, certificate: tuple[Path, Path]
) -> None:
    plain, https = free_port(), free_port()
    endpoint = "HttpServer:Endpoints:Secure:"
    service = serve_once(
        own_database,
        SQL,
        {
            "HttpServer:Endpoints:Plain:Url": f"http://127.0.0.1:{plain}",
            endpoint + "Url": f"https://127.0.0.1:{https}",
            endpoint + "Certificate:Path": str(certificate[0]),
            endpoint + "Certificate:KeyPath": str(certificate[1]),
            endpoint + "SslProtocols:0": "Tls13",
            "Urls": f"http://127.0.0.1:{free_port()}",
        },
        1,
        plain,
    )
    assert service.get("/echo?id=1").text == "1"
    context = ssl.create_default_context(cafile=str(certificate[0]))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with httpx.Client(verify=context, trust_env=False, timeout=60) as client, pytest.raises(httpx.ConnectError):
        client.get(f"https://127.0.0.1:{https}/echo?id=2")
    service.https = https
    assert get(service, certificate[0], 3) == "3"
    service.wait_for_log(f"listening on http://127.0.0.1:{plain};https://127.0.0.1:{https}")


def test_certificate_of_a_store_ends_the_start(database: Database, tmp_path: Path) -> None:
    more = {"HttpServer:Certificates:Default:Subject": "example.test"}
    assert "there is no store of certificates" in start_and_fail(tmp_path, database, more)


def test_clients_are_redirected_to_https(
    own_database: Database, serve_once: Serve, certificate: tuple[Path, Path]
) -> None:
    proxied = {"Ssl:Enabled": "true", "ForwardedHeaders:Enabled": "true"}
    service = secure(serve_once, own_database, {**settings(*certificate), **proxied})
    there = service.get("/echo?id=2", headers={"X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.test:443"})
    assert (there.text, there.headers["strict-transport-security"]) == ("2", "max-age=2592000")
    sent = service.get("/echo?id=2", headers={"X-Forwarded-Host": "shop.test:80"})
    assert (sent.status_code, sent.headers["location"]) == (307, f"https://shop.test:{service.https}/echo?id=2")
    response = service.get("/a%20b/c?x=%20y", headers={"Host": f"shop.test:{service.port}"})
    assert response.status_code == 307
    assert response.headers["location"] == f"https://shop.test:{service.https}/a%20b/c?x=%20y"
    context = ssl.create_default_context(cafile=str(certificate[0]))
    with httpx.Client(verify=context, trust_env=False, timeout=30) as client:
        url = f"https://127.0.0.1:{service.https}/echo?id=2"
        assert "strict-transport-security" not in client.get(url).headers
        named = client.get(url, headers={"Host": "shop.test"})
    assert (named.text, named.headers["strict-transport-security"]) == ("2", "max-age=2592000")
