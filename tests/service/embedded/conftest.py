"""The demo as a browser sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files

import pytest
from playwright.sync_api import Page

from rowcall.service.embedded.demo import SETTINGS
from tests.harness.browser import PATIENCE, browser
from tests.harness.database import Database
from tests.http.conftest import Serve, serve_once

__all__ = ["serve_once"]


@pytest.fixture
def demo_page(own_database: Database, serve_once: Serve) -> Iterator[Callable[[str], Page]]:
    """`demo_page(path)`: this page of it."""
    sql = files("rowcall.service.embedded.demo").joinpath("schema.sql").read_text(encoding="utf-8")
    service = serve_once(
        own_database, f"begin; {sql}; commit", {**dict(SETTINGS), "Service:RequiresAuthorization": None}
    )

    with browser() as opened:

        def go_to(path: str) -> Page:
            page = opened.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(service.url + path)
            return page

        yield go_to
