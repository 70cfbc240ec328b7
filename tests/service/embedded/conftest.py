"""The demo as a browser sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files

import pytest
from playwright.sync_api import Browser, Page

from rowcall.service.embedded.demo import SETTINGS
from tests.harness.browser import TIMEOUT, browser
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve, serve

__all__ = ["serve"]


@pytest.fixture(scope="module")
def demo_settings() -> Mapping[str, str]:
    """What a module adds to those of the demo."""
    return {}


@pytest.fixture(scope="module")
def demo(database: Database, serve: Serve, demo_settings: Mapping[str, str]) -> Service:
    """One for the tests of a module: they do not count on what others leave alone."""
    sql = files("rowcall.service.embedded.demo").joinpath("schema.sql").read_text(encoding="utf-8")
    settings = {**dict(SETTINGS), "Service:RequiresAuthorization": None, **demo_settings}
    return serve(database, f"begin; {sql}; commit", settings, workers=2)


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def page(opened: Browser) -> Iterator[Page]:
    """With cookies and a storage of its own."""
    context = opened.new_context()
    context.set_default_timeout(TIMEOUT)
    yield context.new_page()
    context.close()


@pytest.fixture
def demo_page(page: Page, demo: Service) -> Callable[[str], Page]:
    """`demo_page(path)`: this page of the demo."""

    def go_to(path: str) -> Page:
        page.goto(demo.url + path)
        return page

    return go_to
