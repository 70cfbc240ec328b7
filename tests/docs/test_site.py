"""The site of the manual: it builds without a warning, needs no other host, and its search finds
the right page; `rowcall --docs` serves it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from ci.build_site import pack
from rowcall.service import cli
from rowcall.service.manual import archive as manual_archive
from tests.docs.pages import FOLDER, PATHS
from tests.harness import node

ROOT = FOLDER.parent
REPOSITORY = "https://example.org/rowcall"
RIGHT_PAGE = {
    "cache stampede": "caching.html",
    "connection pool": "performance.html",
    "backpressure": "performance.html",
    "circuit breaker": "calling-out.html",
    "graceful shutdown": "operations.html",
    "zero-downtime restart": "operations.html",
    "rate limiting": "limits.html",
    "row level security": "sessions.html",
    "OpenAPI": "openapi.html",
    "JWT": "users-and-claims.html",
    "OAuth 2": "signing-in-with-others.html",
    "OIDC": "signing-in-with-others.html",
    "SSO": "signing-in-with-others.html",
    "webhooks": "how-to/webhooks.html",
    "pagination": "how-to/paging.html",
}
"""What people search for, and the page that has to come first."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual") / "site"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROWCALL_REPOSITORY", REPOSITORY)
        done = subprocess.run(
            [sys.executable, str(ROOT / "ci" / "build_site.py"), str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a few files like those of the site, which takes seconds to build."""
    folder = tmp_path_factory.mktemp("few")
    files = {
        "index.html": "<title>Few</title><script>a()</script><script src='assets/javascripts/bundle.1.js'></script>",
        "404.html": "<title>Not found</title>",
        "caching.html": "<title>Caching</title>",
        "assets/javascripts/bundle.1.js": "a = () => 1",
        "assets/javascripts/bundle.1.js.map": "{}",
        "search/search_index.json": '{"docs": []}',
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    path = tmp_path_factory.mktemp("packed") / "site.zip"
    pack(folder, path)
    return path


class _Loaded(HTMLParser):
    """Collects the addresses that a browser loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "audio", "video", "embed"):
            self.addresses.append(named.get("src") or "")
        if tag == "link" and named.get("rel") not in ("canonical", "next", "prev"):
            self.addresses.append(named.get("href") or "")


@pytest.mark.slow
def test_site_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    loaded = set()
    for page in pages:
        parser = _Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        loaded |= {address for address in parser.addresses if re.match(r"(?:\w+:)?//", address)}
    assert loaded == set()
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not re.search(r"url\(\s*[\"']?(?:https?:)?//|@import", styles)


@pytest.mark.slow
def test_pages_have_search_dark_mode_copy_buttons_edit_links_and_version(site: Path) -> None:
    page = (site / "caching.html").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert f"rowcall {version[1]}" in page
    assert 'data-md-component="search"' in page
    assert 'data-md-color-scheme="slate"' in page
    assert "content.code.copy" in page
    assert f'href="{REPOSITORY}/edit/main/docs/caching.md"' in page


@pytest.mark.slow
def test_links_to_files_outside_of_the_manual_lead_to_the_repository(site: Path) -> None:
    page = (site / "production.html").read_text(encoding="utf-8")
    assert f'href="{REPOSITORY}/blob/main/examples/deployment/README.md"' in page


@pytest.mark.slow
def test_names_of_files_are_titles_of_code_blocks(site: Path) -> None:
    assert '<span class="filename">shop.json</span>' in (site / "running.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_search_lists_the_expected_page_first(site: Path) -> None:
    found = json.loads(node.run(FOLDER.parent / "tests" / "docs" / "search.mjs", str(site), *RIGHT_PAGE))
    wrong = {term: found[term] for term, page in RIGHT_PAGE.items() if found[term][:1] != [page]}
    assert wrong == {}


@pytest.mark.parametrize("page", PATHS, ids=lambda path: path.name)
def test_a_page_begins_with_what_its_reader_learns(page: Path) -> None:
    _, first, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert re.match(r"After reading this page, you can ", first), first


def _command(archive: Path, *arguments: str) -> list[str]:
    """`rowcall --docs` with an archive at another place than beside its module."""
    program = (
        "import sys, pathlib; from rowcall.service.manual import archive; "
        "archive.ARCHIVE = pathlib.Path(sys.argv.pop(1)); "
        "from rowcall.service.cli import main; sys.exit(main())"
    )
    return [sys.executable, "-W", "error", "-c", program, str(archive), "--docs", *arguments]


@pytest.fixture(scope="module")
def served(archive: Path) -> Iterator[httpx.Client]:
    process = subprocess.Popen(_command(archive, "0"), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    announced = re.fullmatch(
        r"The manual is served at (http://127\.0\.0\.1:\d+/); Ctrl\+C ends it\.\n", process.stdout.readline()
    )
    assert announced is not None
    with httpx.Client(base_url=announced[1], trust_env=False) as client:
        yield client
    process.terminate()
    process.stdout.close()
    process.wait(10)


def test_the_site_is_served_with_a_restrictive_content_security_policy(served: httpx.Client) -> None:
    response = served.get("/")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "<title>" in response.text
    policy = response.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert response.headers["x-content-type-options"] == "nosniff"


def test_scripts_and_the_search_index_are_served(served: httpx.Client) -> None:
    (script,) = re.findall(r"""src=["'](assets/javascripts/bundle[^"']+)""", served.get("/index.html").text)
    assert served.get(script).headers["content-type"] in (
        "text/javascript; charset=utf-8",
        "application/javascript; charset=utf-8",
    )
    assert "docs" in served.get("/search/search_index.json").json()
    assert served.head("/caching.html").headers["content-length"] == str(len(served.get("/caching.html").content))


@pytest.mark.parametrize("path", ["/nothing.html", "/../pyproject.toml", "/%2e%2e/pyproject.toml", "//etc/passwd"])
def test_other_paths_are_404(served: httpx.Client, path: str) -> None:
    response = served.get(path)
    assert response.status_code == 404
    assert response.headers["content-type"] == "text/html; charset=utf-8"


def test_a_malformed_target_is_404(served: httpx.Client) -> None:
    assert served.get("/", extensions={"target": b"http://[/"}).status_code == 404


def test_an_installation_without_the_manual_explains_how_to_build_it(tmp_path: Path) -> None:
    done = subprocess.run(_command(tmp_path / "site.zip"), capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert "`make site`" in done.stderr
    assert "`make dist`" in done.stderr


@pytest.mark.parametrize("address", ["localhost:x", "70000", "[::1]x", "1:2:3", "[::1]80", "[::1", "9" * 5000])
def test_an_invalid_address_is_refused(
    archive: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str
) -> None:
    monkeypatch.setattr(manual_archive, "ARCHIVE", archive)
    assert cli.main(["--docs", address]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"'{address}' is not a port" in printed.err


def test_an_address_in_use_is_reported(archive: Path, served: httpx.Client) -> None:
    port = served.base_url.port
    done = subprocess.run(_command(archive, str(port)), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1, port {port}" in done.stderr


def test_wheels_contain_the_archive() -> None:
    """The lists that setuptools reads name it; ci/package.sh looks into the wheel."""
    assert "*.zip" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    assert '"manual/site.zip"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_archive_has_the_pages_and_the_search_index_of_the_site(site: Path, tmp_path: Path) -> None:
    pack(site, tmp_path / "site.zip")
    with ZipFile(tmp_path / "site.zip") as packed:
        assert {"index.html", "404.html", "search/search_index.json"} <= set(packed.namelist())
        assert not [name for name in packed.namelist() if name.endswith(".map")]


@pytest.mark.slow
def test_the_built_site_is_served(site: Path, tmp_path: Path) -> None:
    pack(site, tmp_path / "site.zip")
    files = manual_archive.Site(tmp_path / "site.zip")
    page = files.file("/")
    assert page is not None
    (script,) = re.findall(rb'src="(assets/javascripts/bundle[^"]+)"', page.body)
    assert files.file(f"/{script.decode()}") is not None
    assert "unsafe-inline" not in page.policy.partition("script-src")[2].partition(";")[0]


def test_source_maps_are_not_packed(archive: Path) -> None:
    with ZipFile(archive) as packed:
        assert "assets/javascripts/bundle.1.js" in packed.namelist()
        assert not [name for name in packed.namelist() if name.endswith(".map")]
