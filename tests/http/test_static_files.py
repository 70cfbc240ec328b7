"""Files beside the endpoints, as a browser asks for them (static-files-1 to static-files-6, static-files-4)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.raw_http import RawResponse
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function shadowed() returns text language sql stable as $$ select 'routine' $$;
comment on function shadowed() is 'HTTP GET /shadowed.txt';
create function login(_name text, _note text default null)
    returns table (user_id int, user_name text, user_roles text[], depot text, shelf text) language sql stable as
    $$ select 7, _name, array['boss', 'clerk'], _note, 'top' $$;
comment on function login is 'HTTP POST /login
login
allow_anonymous';
"""
LARGE = bytes(range(256)) * 8192
FILES: dict[str, bytes] = {
    "index.html": b"<p>home</p>",
    "page.html": b"<p>page</p>",
    "script.js": b"let a = {b: 1}",
    "data.json": b"{}",
    "odd.unknownending": b"?",
    "noending": b"?",
    "with space ü.txt": b"named",
    "shadowed.txt": b"file",
    "large.bin": LARGE,
    "empty.txt": b"",
    ".hidden": b"secret",
    ".git/config": b"secret",
    "docs/default.html": b"default",
    "docs/index.html": b"not reached",
    "bare/readme.txt": b"no document here",
    "admin/index.html": b"for bosses",
    "admin/deep/page.txt": b"deep",
    "admin/50% ü?.txt": b"named",
    "private.css": b"for bosses",
    "private.css.gz": b"for bosses",
    "private.css.br": b"for bosses",
    "packed.css": b"body { color: red }",
    "packed.css.gz": b"gzip bytes",
    "packed.css.br": b"br bytes",
    "parsed/user.html": b'{user_id} {user_name} {user_roles} {depot} {!depot:"none"} {theme} {!theme:x} {other} '
    b"{!other:y} {MODE} {UNSET} {a: 1} body { color: red }",
    "parsed/user.txt": b"{user_id}",
    "parsed/unlisted.html": b"{shelf} {!shelf} {!shelf:none} {shelf:none} { shelf }",
}
PARSED = "StaticFiles:ParseContentOptions:"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "outside.txt").write_bytes(b"a secret of others")
    root = folder / "www"
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (root / "link.txt").symlink_to(folder / "outside.txt")
    (root / "linked").symlink_to(folder)
    (root / "inner-link.txt").symlink_to(root / "page.html")
    os.mkfifo(root / "pipe.txt")
    return root


def settings(root: Path) -> dict[str, str]:
    return {"StaticFiles:Enabled": "true", "StaticFiles:RootPath": str(root), "Auth:CookieAuth": "true"}


@pytest.fixture(scope="module")
def service(root: Path, database: Database, serve: Serve) -> Service:
    return serve(
        database,
        SQL,
        {
            **settings(root),
            "StaticFiles:AuthorizePaths:0": "/admin/*",
            "StaticFiles:AuthorizePaths:1": "/private.css",
            "StaticFiles:UnauthorizedRedirectPath": "/index.html?next",
            PARSED + "Enabled": "true",
            PARSED + "FilePaths:0": "/parsed/*.html",
            PARSED + "AvailableClaims:theme": "dark",
            PARSED + "AvailableClaims:depot": "",
            PARSED + "AvailableEnvVars:MODE": "plain",
            PARSED + "AvailableEnvVars:UNSET": "",
        },
    )


@pytest.mark.parametrize(
    ("path", "content_type", "body"),
    [
        ("/", "text/html", b"<p>home</p>"),
        ("/index.html", "text/html", b"<p>home</p>"),
        ("/page.html?x=1", "text/html", b"<p>page</p>"),
        ("/script.js", "text/javascript", b"let a = {b: 1}"),
        ("/data.json", "application/json", b"{}"),
        ("/odd.unknownending", "application/octet-stream", b"?"),
        ("/noending", "application/octet-stream", b"?"),
        ("/with%20space%20%C3%BC.txt", "text/plain", b"named"),
        ("/shadowed.txt", "text/plain", b"file"),
        ("/docs/", "text/html", b"default"),
        ("/large.bin", "application/octet-stream", LARGE),
        ("/empty.txt", "text/plain", b""),
    ],
)
def test_a_file_is_sent_with_its_type(service: Service, path: str, content_type: str, body: bytes) -> None:
    response = service.get(path)
    assert (response.status_code, response.headers["content-type"], response.content) == (200, content_type, body)
    assert response.headers["accept-ranges"] == "bytes"
    assert "cache-control" not in response.headers
    head = service.request("HEAD", path)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(body)), b"")
    assert head.headers["etag"] == response.headers["etag"]


@pytest.mark.parametrize(
    "path",
    [
        "/missing.txt",
        "/.hidden",
        "/.git/config",
        "/link.txt",
        "/linked/outside.txt",
        "/inner-link.txt",
        "/pipe.txt",
        "/bare/",
        "/bare",
        "/page.html/",
        "/docs//index.html",
        "/%5c..%5coutside.txt",
        "/page.html%00.txt",
        "/C:/windows",
    ],
)
def test_paths_outside_of_the_files_are_not_found(service: Service, path: str) -> None:
    assert service.get(path).status_code in (400, 404)


@pytest.mark.parametrize(
    "path", ["/../outside.txt", "/docs/../../outside.txt", "/%2e%2e/outside.txt", "/..%2foutside.txt", "//page.html"]
)
def test_paths_cannot_leave_the_folder(service: Service, path: str) -> None:
    response: RawResponse | None = service.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert response is not None
    assert response.status in (400, 404)
    assert b"a secret of others" not in response.body


def test_a_folder_without_trailing_slash_is_redirected(service: Service) -> None:
    response = service.get("/docs?a=1", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (301, "/docs/?a=1")


def test_other_methods_do_not_serve_files(service: Service) -> None:
    problem(service.post("/page.html"), 404)


def test_a_file_that_has_not_changed_is_not_sent_again(service: Service) -> None:
    first = service.get("/page.html")
    assert first.headers["etag"].strip('"').isalnum()
    for headers in (
        {"If-None-Match": first.headers["etag"]},
        {"If-None-Match": f'"x", W/{first.headers["etag"]}'},
        {"If-None-Match": "*"},
        {"If-Modified-Since": first.headers["last-modified"]},
    ):
        response = service.get("/page.html", headers=headers)
        assert (response.status_code, response.content) == (304, b"")
        assert response.headers["etag"] == first.headers["etag"]
    for headers in (
        {"If-None-Match": '"other"', "If-Modified-Since": first.headers["last-modified"]},
        {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
        {"If-Modified-Since": "yesterday"},
    ):
        assert service.get("/page.html", headers=headers).status_code == 200


def test_a_changed_file_is_sent_with_its_new_content(service: Service, root: Path) -> None:
    path = root / "changing.txt"
    path.write_bytes(b"one")
    first = service.get("/changing.txt")
    path.write_bytes(b"three")
    second = service.get("/changing.txt", headers={"If-None-Match": first.headers["etag"]})
    assert (second.status_code, second.content) == (200, b"three")
    path.unlink()
    assert service.get("/changing.txt").status_code == 404


@pytest.mark.parametrize("path", ["/large.bin", "/script.js"])
@pytest.mark.parametrize(
    ("asked", "first", "end"), [("0-3", 0, 4), ("4-", 4, None), ("-5", -5, None), ("2-99999999", 2, None)]
)
def test_a_range_is_sent_alone(service: Service, path: str, asked: str, first: int, end: int | None) -> None:
    whole = service.get(path).content
    expected = whole[first:end]
    response = service.get(path, headers={"Range": f"bytes={asked}"})
    assert (response.status_code, response.content) == (206, expected)
    begin = whole.index(expected) if path == "/script.js" else first % len(whole)
    assert response.headers["content-range"] == f"bytes {begin}-{begin + len(expected) - 1}/{len(whole)}"


def test_unsatisfiable_and_unknown_ranges(service: Service) -> None:
    response = service.get("/script.js", headers={"Range": "bytes=100-"})
    assert (response.status_code, response.headers["content-range"]) == (416, "bytes */14")
    for requested in ("bytes=0-1,4-5", "lines=1-2", "bytes=5-2", "bytes=-"):
        assert service.get("/script.js", headers={"Range": requested}).status_code == 200
    stale = {"Range": "bytes=0-1", "If-Range": '"other"'}
    assert service.get("/script.js", headers=stale).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "coding", "body"),
    [("br, gzip", "br", b"br bytes"), ("gzip", "gzip", b"gzip bytes"), ("br;q=0, gzip;q=0", None, FILES["packed.css"])],
)
def test_a_compressed_sibling_is_sent_to_clients_that_accept_it(
    service: Service, accepted: str, coding: str | None, body: bytes
) -> None:
    request = service.client.build_request("GET", f"{service.url}/packed.css", headers={"Accept-Encoding": accepted})
    response = service.client.send(request, stream=True)
    assert b"".join(response.iter_raw()) == body
    assert response.headers.get("content-encoding") == coding
    assert response.headers["content-type"] == "text/css"
    assert response.headers["vary"] == "Accept-Encoding"


def test_a_compressed_sibling_has_its_own_etag(service: Service) -> None:
    headers = {"Accept-Encoding": "gzip"}
    tag = service.request("HEAD", "/packed.css", headers=headers).headers["etag"]
    unchanged = service.get("/packed.css", headers={**headers, "If-None-Match": tag})
    assert (unchanged.status_code, unchanged.headers["etag"]) == (304, tag)
    assert service.get("/packed.css", headers={"Accept-Encoding": "", "If-None-Match": tag}).status_code == 200


@pytest.mark.slow
def test_a_compressed_sibling_is_sent_while_it_exists(service: Service, root: Path) -> None:
    (root / "built.js").write_bytes(b"plain")
    packed = root / "built.js.br"

    def received() -> tuple[bytes, str | None]:
        request = service.client.build_request("GET", f"{service.url}/built.js", headers={"Accept-Encoding": "br"})
        response = service.client.send(request, stream=True)
        return b"".join(response.iter_raw()), response.headers.get("content-encoding")

    assert received() == (b"plain", None)
    packed.write_bytes(b"packed")
    wait_until(lambda: received() == (b"packed", "br"), "a file that was added is noticed")
    packed.unlink()
    assert received() == (b"plain", None)
    packed.symlink_to(root / "packed.css.br")
    assert received() == (b"plain", None)


def test_head_ignores_ranges(service: Service) -> None:
    for requested in ("bytes=0-3", "bytes=999999999-"):
        response = service.request("HEAD", "/large.bin", headers={"Range": requested})
        assert (response.status_code, response.headers["content-length"]) == (200, str(len(LARGE)))


def test_head_of_a_large_file_with_compression_has_the_headers_of_get(
    root: Path, database: Database, serve_once: Serve
) -> None:
    on = {"ResponseCompression:Enabled": "true", "ResponseCompression:IncludeMimeTypes:0": "*/*"}
    service = serve_once(database, "", {**settings(root), **on})
    got, head = (
        service.request(method, "/large.bin", headers={"Accept-Encoding": "gzip"}).headers for method in ("GET", "HEAD")
    )
    assert {**head, "date": ""} == {**got, "date": ""}
    assert (head["content-length"], head["etag"][0]) == (str(len(LARGE)), '"')


def test_protected_paths_redirect_to_the_sign_in_page(service: Service) -> None:
    service.client.cookies.clear()
    for path, expected in (
        ("/admin/", "%2Fadmin%2F"),
        ("/admin/index.html", "%2Fadmin%2F"),
        ("/private.css", "%2Fprivate.css"),
        ("/private.css.gz", "%2Fprivate.css.gz"),
        ("/private.css.br", "%2Fprivate.css.br"),
        ("/Admin/../admin/deep/page.txt?a=b", "%2Fadmin%2Fdeep%2Fpage.txt%3Fa%3Db"),
        # What comes back is an address again.
        ("/admin/50%25%20%C3%BC%3F.txt?a", "%2Fadmin%2F50%2525%2520%25C3%25BC%253F.txt%3Fa"),
    ):
        response = service.get(path, follow_redirects=False)
        assert (response.status_code, response.headers["location"]) == (302, f"/index.html?next&return_to={expected}")
    problem(service.get("/admin/missing.txt"), 404)
    service.post("/login", json={"name": "kiri"})
    response = service.get("/admin/")
    assert (response.content, response.headers["cache-control"]) == (b"for bosses", "private, no-cache")
    service.client.cookies.clear()


def test_protected_paths_are_401_without_a_sign_in_page(root: Path, database: Database, serve_once: Serve) -> None:
    closed = {**settings(root), "StaticFiles:AuthorizePaths:0": "*.txt", "StaticFiles:UnauthorizedRedirectPath": ""}
    service = serve_once(database, "", closed)
    assert list(problem(service.get("/empty.txt"), 401)) == ["type", "title", "status"]
    assert service.get("/page.html").status_code == 200


def test_a_page_contains_values_of_its_caller(service: Service) -> None:
    service.client.cookies.clear()
    response = service.get("/parsed/user.html")
    assert response.text == (
        'null null []   "none" dark dark {other} {!other:y} "plain" "" {a: 1} body { color: red }'
    ).replace("  ", " ", 1)
    assert "etag" not in response.headers
    assert response.headers["cache-control"] == "no-store, no-cache, must-revalidate"
    assert service.get("/parsed/unlisted.html").content == FILES["parsed/unlisted.html"]
    service.post("/login", json={"name": "</script>kiri & o'hara", "note": "north"})
    filled = service.get("/parsed/user.html", headers={"If-Modified-Since": "Thu, 01 Jan 2099 00:00:00 GMT"})
    assert filled.text.startswith(
        '"7" "\\u003c/script\\u003ekiri \\u0026 o\\u0027hara" ["boss","clerk"] "north" "north" dark'
    )
    assert service.get("/parsed/user.txt").text == "{user_id}"
    assert service.get("/parsed/unlisted.html").text == '"top" "top" "top" {shelf:none} { shelf }'
    got, head = (service.request(method, "/parsed/user.html") for method in ("GET", "HEAD"))
    assert {**head.headers, "date": ""} == {**got.headers, "date": ""}
    unchanged = service.request("HEAD", "/parsed/user.html", headers={"If-None-Match": "*"})
    assert unchanged.status_code == 200
    service.client.cookies.clear()


def test_caching_is_as_configured(root: Path, own_database: Database, serve_once: Serve) -> None:
    cached = {"StaticFiles:CacheControl": "public, max-age=60", "StaticFiles:AuthorizePaths:0": "/admin/*"}
    service = serve_once(own_database, SQL, {**settings(root), **cached})
    assert service.get("/page.html").headers["cache-control"] == "public, max-age=60"
    # What is for who is signed in, a proxy must not hand to others.
    service.post("/login", json={"name": "kiri"})
    assert service.get("/admin/").headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"StaticFiles:Enabled": "true"}, "StaticFiles:RootPath: there is no folder"),
        (
            {"StaticFiles:Enabled": "true", "StaticFiles:RootPath": "x" * 300},
            "xxx cannot be reached: File name too long",
        ),
        (
            {"Watch:Enabled": "true", "Service:SqlFileSource:FilePattern": f"{'x' * 300}/*.sql"},
            f"Watch:Enabled: the folder {'x' * 300} cannot be reached",
        ),
    ],
)
def test_an_unreadable_folder_ends_the_start(
    own_database: Database, tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    """Tests may run as root, for whom no folder is forbidden; a name that is too long is the same kind of error."""
    values = {"ConnectionStrings:Default": own_database.conninfo, **settings}
    done = rowcall(tmp_path, *(f"--{key}={value}" for key, value in values.items()))
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
