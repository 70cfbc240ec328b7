"""What the manual promises is what the service does: every page's examples run against a server of their own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from rowcall.core.config.table import KEYS, knows
from rowcall.service.installation.script import install_sql
from tests.docs.pages import FOLDER, Page, RequestContext, Stream, filled, fits, pages
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.service import Service
from tests.harness.sql_files import write_files
from tests.http.conftest import Serve

PAGES = pages()
WITH_EXAMPLES = [page for page in PAGES if page.contexts and page.name != "tutorial.md"]
"""test_tutorial.py runs the tutorial with its files."""

_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SECTIONS = "|".join(sorted({key.path.partition(":")[0] for key in KEYS if ":" in key.path}))
_KEY = re.compile(rf"(?<![\w:])(?:{_SECTIONS}):[\w:]*\w")
_CONSOLE = re.compile(r"^```console\n.*?^```$", re.MULTILINE | re.DOTALL)
"""Output of commands, which may be about keys that do not exist."""


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_behave_as_the_page_states(
    page: Page, own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    # Without its usual switch for tests: a page says itself how it is served.
    write_files(tmp_path, dict(page.files))
    pattern = "Service:SqlFileSource:FilePattern"
    # Files of a page that names no pattern are only shown.
    places = [key for key in (pattern, "StaticFiles:RootPath") if key in page.settings]
    files = {key: f"{tmp_path}/{page.settings[key]}" for key in places}
    if page.installs:
        own_database.execute(install_sql())
    service = serve_once(own_database, page.sql, {"Service:RequiresAuthorization": None, **page.settings, **files})
    known: dict[str, str] = {}
    wrong = [
        f"{page.name}:{context.line}: {difference}"
        for context in page.contexts
        for difference in _wrong(context, service, known)
    ]
    assert not wrong, "\n".join(wrong)


def _wrong(example: RequestContext | Stream, service: Service, known: dict[str, str]) -> Iterator[str]:
    if isinstance(example, Stream):
        yield from _wrong_stream(example, service, known)
        return
    for difference in _differences(example, _send(service.client, example, known), known):
        yield f"{example.method} {example.target}: {difference}"


def _wrong_stream(example: Stream, service: Service, known: dict[str, str]) -> Iterator[str]:
    opening = example.opening
    headers = {name: filled(value, known) for name, value in opening.headers}
    with EventStream(service, opening.target, headers) as stream:
        for sent in example.requests:
            others = {name: filled(value, known) for name, value in sent.headers}
            service.client.request(sent.method, sent.target, headers=others, content=sent.body.encode() or None)
        try:
            stream.wait(lambda: fits(example.promised, stream.body.decode()), "what the page says")
        except AssertionError:
            yield f"GET {opening.target}: got\n{stream.body.decode()}\nand the page says\n{example.promised}"


def _send(client: httpx.Client, context: RequestContext, known: dict[str, str]) -> httpx.Response:
    headers = [(name, filled(value, known)) for name, value in context.headers]
    body = filled(context.body, known)
    if dict(headers).get("content-type", "").startswith("multipart/"):
        # Its lines end in CRLF, which a page does not show.
        body = body.replace("\n", "\r\n")
    content = body.encode() or None
    return client.request(context.method, filled(context.target, known), headers=headers, content=content)


def _differences(context: RequestContext, response: httpx.Response, known: dict[str, str]) -> Iterator[str]:
    if response.status_code != context.status:
        yield f"status {response.status_code}, the page says {context.status}"
    promised = dict.fromkeys(["content-type", *(name for name, _ in context.promised_headers)])
    for name in promised:
        values = [value for key, value in context.promised_headers if key == name]
        got = response.headers.get_list(name)
        if len(got) != len(values) or not all(fits(*pair, known) for pair in zip(values, got, strict=True)):
            yield f"{name} {got}, the page says {values}"
    body = response.content.decode(errors="replace")
    if response.headers.get("content-type", "").startswith(("text/csv", "application/jsonl")):
        body = body.replace("\r\n", "\n").removesuffix("\n")  # a page cannot show the end of a line
    if not fits(context.promised_body, body, known):
        yield f"the body is\n{response.text[:500]}\nand the page says\n{context.promised_body[:500]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_configuration_keys_named_by_a_page_exist(page: Page) -> None:
    named = set(_KEY.findall(_CONSOLE.sub("", (FOLDER / page.name).read_text(encoding="utf-8"))))
    declared = {key.path.casefold() for key in KEYS}
    assert [key for key in sorted(named) if not knows(key) and key.casefold() not in declared] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_link_targets_of_a_page_exist(page: Page) -> None:
    broken = [
        f"{target}#{anchor}" if anchor else target
        for target, anchor in _LINK.findall((FOLDER / page.name).read_text(encoding="utf-8"))
        if not _leads_somewhere((FOLDER / page.name).parent / target, anchor)
    ]
    assert broken == []


def _leads_somewhere(path: Path, anchor: str) -> bool:
    if not path.exists():
        return False
    return not anchor or anchor in {_slug(heading) for heading in _HEADING.findall(path.read_text(encoding="utf-8"))}


def _slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
