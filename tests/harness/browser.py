"""A real browser, headless, without a window's hurry: what it waits for may take its time on a busy machine."""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Without these it looks for its maker's hosts at every start.
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
PATIENCE = 60_000.0
"""Milliseconds."""
VIRTUAL_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
"""A phone or computer that has keys for sites, for `WebAuthn.addVirtualAuthenticator` of the browser's protocol."""

needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine (Debian: apt install chromium)")


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with warnings.catch_warnings(), sync_playwright() as playwright:
        warnings.simplefilter("ignore", ResourceWarning)
        opened = playwright.chromium.launch(executable_path=PROGRAM, args=QUIET, timeout=2 * PATIENCE)
        yield opened
        opened.close()
