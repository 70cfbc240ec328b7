"""The screenshots of the manual: there is one of each page of the console in both colours, and the manual shows it."""

from __future__ import annotations

import re
import struct
from importlib.resources import files
from pathlib import Path

from ci.take_screenshots import COLOURS, CONSOLE_PAGES

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 100_000
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def test_the_script_visits_every_page_of_the_console() -> None:
    text = (files("rowcall.service.console") / "assets" / "console.js").read_text()
    found = [re.search(rf"^const {name} = {{(.*)}};$", text, re.MULTILINE) for name in ("PAGES", "DETAILS")]
    pages = {re.split(r"[:(]", item)[0].strip() for match in found if match is not None for item in match[1].split(",")}
    assert len(pages) > 10
    assert {place.partition("?")[0] for place in CONSOLE_PAGES.values()} == pages


def test_every_page_has_small_images_in_both_colours() -> None:
    expected = {f"console-{name}-{colours}.png" for name in CONSOLE_PAGES for colours in COLOURS}
    assert {path.name for path in IMAGES.glob("console-*.png")} == expected
    for name in expected:
        content = (IMAGES / name).read_bytes()
        assert content.startswith(SIGNATURE), name
        assert struct.unpack(">II", content[16:24])[0] == 1000, name
        assert len(content) <= MOST_BYTES, name


def test_the_manual_shows_every_image() -> None:
    text = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"images/(console-[\w-]+\.png)", text))
    assert shown == {path.name for path in IMAGES.glob("console-*.png")}
