"""A real headless browser, with long timeouts for busy machines."""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Without these options, the browser contacts hosts of its vendor at every start.
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
TIMEOUT = 60_000.0
"""Timeout in milliseconds."""
VIRTUAL_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
"""A phone or computer that stores passkeys, for `WebAuthn.addVirtualAuthenticator` of the browser's protocol."""

needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine (Debian: apt install chromium)")


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=TIMEOUT)
    with warnings.catch_warnings(), sync_playwright() as playwright:
        warnings.simplefilter("ignore", ResourceWarning)
        opened = playwright.chromium.launch(executable_path=PROGRAM, args=QUIET, timeout=2 * TIMEOUT)
        yield opened
        opened.close()
