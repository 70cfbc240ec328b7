"""https listeners beside http ones, and what a start says when there is no certificate for them."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
comment on function echo(int) is 'HTTP GET /echo';
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Certificate and key for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    files = ["-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return certificate, key


def settings(certificate: Path, key: Path | None = None) -> dict[str, str]:
    prefix = "HttpServer:Certificates:Default:"
    return {prefix + "Path": str(certificate)} | ({prefix + "KeyPath": str(key)} if key else {})


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
    assert f"HttpServer:Certificates:Default: {certificate[0]}" in log


def test_missing_certificate_file_ends_the_start(database: Database, tmp_path: Path) -> None:
    assert "No such file" in start_and_fail(tmp_path, database, settings(tmp_path / "nowhere.pem"))


def test_encrypted_key_ends_the_start_and_its_password_is_not_shown(
    database: Database, tmp_path: Path, encrypted: tuple[Path, Path]
) -> None:
    password = {"HttpServer:Certificates:Default:Password": "geheim"}
    log = start_and_fail(tmp_path, database, {**settings(*encrypted), **password})
    assert "is encrypted" in log
    assert "geheim" not in log
