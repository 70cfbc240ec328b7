"""What is said about the server's addresses when they do not do what is configured (browsers-12, server-1 to
server-5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.core.config import assemble, load_files
from rowcall.core.sections.errors import ConfigError
from rowcall.service.options.server.http import configuration_warnings, http_options, listener_plans
from rowcall.service.startup_error import StartupError
from tests.harness.command import rowcall

ENDPOINT = ("HttpServer:Endpoints:A:Url", "http://127.0.0.1:0")


def warnings_of(*overrides: tuple[str, str], https_port: int | None = None) -> list[str]:
    return list(configuration_warnings(assemble(load_files([]), overrides, {}).settings, https_port))


def test_addresses_that_endpoints_replace_are_reported() -> None:
    assert warnings_of(ENDPOINT, ("Urls", "http://127.0.0.1:1")) == [
        "Urls is not used: HttpServer:Endpoints says where to listen"
    ]
    assert warnings_of(ENDPOINT) == []
    assert warnings_of(("Urls", "http://127.0.0.1:1")) == []


def test_a_redirection_without_https_address_is_reported() -> None:
    [result] = warnings_of(("Ssl:Enabled", "true"))
    assert result.startswith("Ssl:UseHttpsRedirection does nothing: no address is https")
    assert warnings_of(("Ssl:Enabled", "true"), https_port=443) == []
    assert warnings_of(("Ssl:Enabled", "true"), ("Ssl:UseHttpsRedirection", "false")) == []


def test_an_endpoint_that_is_not_a_section_ends_the_start() -> None:
    with pytest.raises((ConfigError, StartupError), match="HttpServer:Endpoints:A: Url is missing"):
        listener_plans(assemble(load_files([]), [("HttpServer:Endpoints:A", "http://127.0.0.1:0")], {}).settings)


@pytest.mark.parametrize(
    ("protocols", "only_tls13"), [("Tls13", True), ("Tls12, Tls13", False), ("Tls12", False), ("", False)]
)
def test_tls_versions_may_be_a_text(protocols: str, only_tls13: bool) -> None:
    (plan,) = listener_plans(
        assemble(load_files([]), [ENDPOINT, ("HttpServer:Endpoints:A:SslProtocols", protocols)], {}).settings
    )
    assert plan.only_tls13 is only_tls13
    assert warnings_of(ENDPOINT, ("HttpServer:Endpoints:A:SslProtocols", "Tls11"))[0].endswith("is ignored")


@pytest.mark.parametrize(
    "key",
    [
        "HttpServer:Endpoints:A:ClientCertificateMode",
        "Kestrel:Endpoints:A:clientCertificateMode",
        "HttpServer:Endpoints:A:Sni:*:ClientCertificateMode",
        "HttpServer:EndpointDefaults:ClientCertificateMode",
    ],
)
def test_listeners_that_request_client_certificates_end_the_start(key: str) -> None:
    """They are requested by none, so clients without one would be admitted."""
    settings = [ENDPOINT, (key, "NoCertificate")]
    assert len(listener_plans(assemble(load_files([]), settings, {}).settings)) == 1
    for mode in ("RequireCertificate", "AllowCertificate", "DelayCertificate", "2"):
        with pytest.raises(StartupError, match="this server requests no certificates of clients"):
            listener_plans(assemble(load_files([]), [*settings, (key, mode)], {}).settings)


@pytest.mark.parametrize(
    ("urls", "endpoint", "message"),
    [
        ("https://127.0.0.1:1", "http://127.0.0.1:0", "this service does not listen on https"),
        ("http://127.0.0.1:1", "https://127.0.0.1:0", "an https URL needs a certificate"),
    ],
)
def test_basic_authentication_needs_an_https_endpoint(tmp_path: Path, urls: str, endpoint: str, message: str) -> None:
    """HTTP Basic is refused without TLS; where it is not, the certificate that is missing ends the start."""
    done = rowcall(
        tmp_path,
        "--Service:AuthenticationOptions:BasicAuth:Enabled=true",
        "--ConnectionStrings:Default=postgresql:///nowhere",
        f"--Urls={urls}",
        f"--HttpServer:Endpoints:A:Url={endpoint}",
    )
    assert (done.returncode, message in done.stderr) == (1, True)


UPLOADS = ("Service:UploadOptions:Enabled", "true")
BUFFER = "HttpServer:Limits:MaxRequestBufferSize"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], 0),
        ([UPLOADS], 262_144),
        ([UPLOADS, (BUFFER, "65536")], 65_536),
        ([(BUFFER, "65536")], 65_536),
        ([(BUFFER, "9000000000")], 1_048_576),
    ],
)
def test_large_bodies_are_read_in_large_pieces(overrides: list[tuple[str, str]], expected: int) -> None:
    options = http_options(assemble(load_files([]), overrides, {}).settings)
    assert (options.read_at_once, options.head_limit) == (expected, 40_960)
