"""The scripts of the manual's page on passkeys in a real browser, with its virtual authenticator."""

from __future__ import annotations

import re
import shutil
import warnings

import pytest
from playwright.sync_api import sync_playwright

from tests.docs.pages import FOLDER, read_page
from tests.harness.database import Database
from tests.http.conftest import Serve

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-sync"]
SCRIPT = re.compile(r"^```javascript\n(.*?)^```$", re.MULTILINE | re.DOTALL)
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine (Debian: apt install chromium)")


def test_register_and_sign_in_in_chromium(own_database: Database, serve_once: Serve) -> None:
    page = read_page(FOLDER / "passkeys.md")
    own = {key: None for key in page.settings if "RelyingParty" in key}
    service = serve_once(own_database, page.sql, {**page.settings, **own, "Service:RequiresAuthorization": None})
    found = SCRIPT.search((FOLDER / "passkeys.md").read_text(encoding="utf-8"))
    assert found is not None
    script = found[1]
    with warnings.catch_warnings(), sync_playwright() as playwright:
        warnings.simplefilter("ignore", ResourceWarning)
        browser = playwright.chromium.launch(executable_path=BROWSER, args=QUIET)
        tab = browser.new_page()
        tab.goto(f"http://localhost:{service.port}/who")
        session = tab.context.new_cdp_session(tab)
        session.send("WebAuthn.enable")
        authenticator = session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})["authenticatorId"]
        ends = tab.evaluate(f"""async () => {{
            {script}
            const before = (await fetch("/who")).status;
            const made = await register("kiri");
            const taken = await post("/api/passkey/register/options", {{ name: "kiri" }});
            const entered = await login();
            return [before, await made.json(), taken.status, entered.status, await (await fetch("/who")).json()];
        }}""")
        (credential,) = session.send("WebAuthn.getCredentials", {"authenticatorId": authenticator})["credentials"]
        browser.close()
    before, made, taken, entered, who = ends
    assert (before, taken, entered) == (401, 409, 200)
    assert made["success"] is True
    assert who == {"userId": "1", "userName": "kiri"}
    assert credential["rpId"] == "localhost"
    assert own_database.fetch("select sign_count, handle = (select handle from member) from passkey, member") == [
        (credential["signCount"], True)
    ]
