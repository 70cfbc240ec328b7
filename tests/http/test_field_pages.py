"""Files, their placeholders and access rules, rule by rule (browsers-6 to browsers-10, static-files-1 to
static-files-6); and the headers of all responses (browsers-1, browsers-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function file_txt() returns text language sql stable as $$ select 'routine' $$;
comment on function file_txt() is E'HTTP GET /file.txt\\nallow_anonymous';
create function post_file() returns text language sql as $$ select 'posted' $$;
comment on function post_file() is E'HTTP POST /deep/a/x.txt\\nallow_anonymous';
create function sign_in() returns table (user_id int, user_name text, user_roles text[], tags text[], note text)
    language sql stable as $$ select 7, 'a "b"', array['one'], array['x', 'y'], null $$;
comment on function sign_in() is E'HTTP POST /sign-in\\nlogin';
create function limited() returns int language sql stable as $$ select 1 $$;
comment on function limited() is E'HTTP GET /limited\\nallow_anonymous\\nrate_limiter once';
"""
PARSED = "StaticFiles:ParseContentOptions:"
FILES = {
    "index.html": "home",
    "file.txt": "file",
    "paper.pdf": "pdf",
    "PAPER2.PDF": "pdf",
    "papers/deep/paper.pdf": "pdf",
    "a1c/x.txt": "x",
    "abbc/x.txt": "x",
    "deep/x.txt": "x",
    "deep/a/x.txt": "x",
    "deep/a/b/x.txt": "x",
    "flat/x.txt": "x",
    "flat/a/x.txt": "x",
    "admin/index.html": "admin",
    "admin/default.htm": "default",
    "filled/claims.txt": "{user_id}|{user_name}|{user_roles}|{tags}|{note}|{!note}|{!note:none}|{tags:none}|"
    "{ user_id }",
    "filled/listed.txt": "{known}|{!known}|{!known:none}|{other}|{!other:none}|{unlisted}|{!unlisted:none}",
    "filled/environment.txt": "{SET}|{!SET:none}|{UNSET}|{!UNSET:none}|{DEFAULTED}|{HOME}",
    "filled/style.txt": "body { color: red } a{b:c} {{user_id}} {}",
}
SETTINGS = {
    "Auth:CookieAuth": "true",
    "SecurityHeaders:Enabled": "true",
    "SecurityHeaders:PermissionsPolicy": "camera=()",
    "SecurityHeaders:CrossOriginOpenerPolicy": "same-origin",
    "SecurityHeaders:CrossOriginEmbedderPolicy": "require-corp",
    "SecurityHeaders:CrossOriginResourcePolicy": "same-site",
    "SecurityHeaders:ReferrerPolicy": "",
    "RateLimiterOptions:Enabled": "true",
    "RateLimiterOptions:Policies:once:Type": "FixedWindow",
    "RateLimiterOptions:Policies:once:Enabled": "true",
    "RateLimiterOptions:Policies:once:PermitLimit": "1",
    "RateLimiterOptions:Policies:once:WindowSeconds": "3600",
    "RateLimiterOptions:Policies:once:QueueLimit": "0",
    "HealthChecks:Enabled": "true",
    "StaticFiles:Enabled": "true",
    "StaticFiles:AuthorizePaths:0": "*.pdf",
    "StaticFiles:AuthorizePaths:1": "/a?c/*",
    "StaticFiles:AuthorizePaths:2": "/deep/**/x.txt",
    "StaticFiles:AuthorizePaths:3": "/Admin/*",
    "StaticFiles:AuthorizePaths:4": "/**/flat/*.txt",
    "StaticFiles:UnauthorizedReturnToQueryParameter": "from",
    PARSED + "Enabled": "true",
    PARSED + "FilePaths:0": "/filled/*",
    PARSED + "AvailableClaims:known": "raw <text>",
    PARSED + "AvailableClaims:note": "",
    PARSED + "AvailableEnvVars:SET": "",
    PARSED + "AvailableEnvVars:UNSET": "",
    PARSED + "AvailableEnvVars:DEFAULTED": "instead",
    PARSED + "Headers:0": "X-One: 1",
    PARSED + "Headers:1": "not a header",
    PARSED + "Headers:2": "X-Time: 10:20",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    root = tmp_path_factory.mktemp("pages")
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return serve(database, SQL, {**SETTINGS, "StaticFiles:RootPath": str(root)})


CLOSED = [
    ("/file.txt", None),
    ("/", None),
    ("/paper.pdf", "%2Fpaper.pdf"),
    ("/PAPER2.PDF", "%2FPAPER2.PDF"),
    ("/papers/deep/paper.pdf?a=b&c=%20d", "%2Fpapers%2Fdeep%2Fpaper.pdf%3Fa%3Db%26c%3D%2520d"),
    ("/a1c/x.txt", "%2Fa1c%2Fx.txt"),
    ("/abbc/x.txt", None),
    ("/deep/x.txt", "%2Fdeep%2Fx.txt"),
    ("/deep/a/b/x.txt", "%2Fdeep%2Fa%2Fb%2Fx.txt"),
    ("/flat/x.txt", "%2Fflat%2Fx.txt"),
    ("/flat/a/x.txt", None),
    ("/admin/", "%2Fadmin%2F"),
    ("/admin/index.html", "%2Fadmin%2F"),
    ("/admin/default.htm?q=1", "%2Fadmin%2F%3Fq%3D1"),
]


@pytest.mark.parametrize(("path", "expected"), CLOSED)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_protected_paths_redirect_anonymous_callers(
    service: Service, method: str, path: str, expected: str | None
) -> None:
    response = service.request(method, path, follow_redirects=False)
    status = (response.status_code, response.headers.get("location"))
    assert status == ((200, None) if expected is None else (302, f"/?from={expected}"))


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("POST", "/deep/a/x.txt", 200, "posted"),
        ("GET", "/deep/missing.pdf", 404, None),
        ("GET", "/file.txt", 200, "file"),
        ("POST", "/file.txt", 405, None),
    ],
)
def test_only_existing_files_are_served(
    service: Service, method: str, path: str, status: int, text: str | None
) -> None:
    response = service.request(method, path)
    assert response.status_code == status
    assert text is None or response.text == text


FILLED = {
    "claims": (
        "null|null|[]|{tags}|||none|{tags:none}|{ user_id }",
        '"7"|"a \\"b\\""|["one"]|["x","y"]|||none|{tags:none}|{ user_id }',
    ),
    "listed": ("raw <text>|raw <text>|raw <text>|{other}|{!other:none}|{unlisted}|{!unlisted:none}",) * 2,
    "environment": ('""|none|""|none|"instead"|{HOME}',) * 2,
    "style": ("body { color: red } a{b:c} {null} {}", 'body { color: red } a{b:c} {"7"} {}'),
}


@pytest.mark.parametrize("name", FILLED)
def test_placeholders_in_files_are_filled_for_the_caller(service: Service, name: str) -> None:
    anonymous, signed_in = FILLED[name]
    with service.new_client() as client:
        first = client.get(f"/filled/{name}.txt")
        client.post("/sign-in")
        second = client.get(f"/filled/{name}.txt", headers={"If-None-Match": "*"})
    assert (first.text, second.text, second.status_code) == (anonymous, signed_in, 200)
    for response in (first, second):
        assert response.headers["x-one"] == "1"
        assert not {"x-time", "etag", "last-modified"} & set(response.headers)
        assert response.headers["content-length"] == str(len(response.content))


def test_invalid_headers_are_logged(service: Service) -> None:
    for line in ("not a header", "X-Time: 10:20"):
        assert "WRN" in service.wait_for_log(line)


EVERYWHERE = ["/file.txt", "/paper.pdf", "/filled/style.txt", "/limited", "/limited", "/nowhere", "/health", "/admin"]


@pytest.mark.parametrize("path", EVERYWHERE)
def test_every_response_has_security_headers(service: Service, path: str) -> None:
    headers = service.get(path).headers
    result = {
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "permissions-policy": "camera=()",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-embedder-policy": "require-corp",
        "cross-origin-resource-policy": "same-site",
    }
    assert {name: headers.get_list(name) for name in result} == {name: [value] for name, value in result.items()}
    assert "referrer-policy" not in headers
    assert "content-security-policy" not in headers


def test_rate_limit_response_has_security_headers(service: Service) -> None:
    response = [service.get("/limited") for _ in range(2)][-1]
    assert (response.status_code, response.headers["x-content-type-options"]) == (429, "nosniff")


@pytest.mark.parametrize(
    ("parameter", "redirect", "location"),
    [
        ("", "/sign-in.html", "/sign-in.html"),
        ("to", "/sign-in.html?a=1", "/sign-in.html?a=1&to=%2Fpaper.pdf"),
        ("to", "https://id.example/", "https://id.example/?to=%2Fpaper.pdf"),
    ],
)
def test_unauthorized_redirect_location_is_configurable(
    own_database: Database, serve_once: Serve, tmp_path: Path, parameter: str, redirect: str, location: str
) -> None:
    (tmp_path / "paper.pdf").write_text("pdf")
    settings = {
        "StaticFiles:Enabled": "true",
        "StaticFiles:RootPath": str(tmp_path),
        "StaticFiles:AuthorizePaths:0": "*.pdf",
        "StaticFiles:UnauthorizedRedirectPath": redirect,
        "StaticFiles:UnauthorizedReturnToQueryParameter": parameter,
    }
    service = serve_once(own_database, "", {**settings, "Auth:CookieAuth": "true"})
    response = service.get("/paper.pdf", follow_redirects=False)
    assert (response.status_code, response.headers["location"], response.content) == (302, location, b"")
