"""The scripts of the manual's page on passkeys in a real browser, with its virtual authenticator."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import FOLDER, read_page
from tests.harness.browser import TIMEOUT, VIRTUAL_AUTHENTICATOR, browser, needs_browser
from tests.harness.database import Database
from tests.http.conftest import Serve

SCRIPT = re.compile(r"^```javascript\n(.*?)^```$", re.MULTILINE | re.DOTALL)
pytestmark = [needs_browser, pytest.mark.slow]


def test_register_and_sign_in_in_chromium(own_database: Database, serve_once: Serve) -> None:
    page = read_page(FOLDER / "passkeys.md")
    own = {key: None for key in page.settings if "RelyingParty" in key}
    service = serve_once(own_database, page.sql, {**page.settings, **own, "Service:RequiresAuthorization": None})
    match = SCRIPT.search((FOLDER / "passkeys.md").read_text(encoding="utf-8"))
    assert match is not None
    script = match[1]
    with browser() as opened:
        tab = opened.new_page()
        tab.set_default_timeout(TIMEOUT)
        tab.goto(f"http://localhost:{service.port}/who")
        session = tab.context.new_cdp_session(tab)
        session.send("WebAuthn.enable")
        added = session.send("WebAuthn.addVirtualAuthenticator", {"options": VIRTUAL_AUTHENTICATOR})
        authenticator = added["authenticatorId"]
        ends = tab.evaluate(f"""async () => {{
            {script}
            const before = (await fetch("/who")).status;
            const made = await register("kiri");
            const taken = await post("/api/passkey/register/options", {{ name: "kiri" }});
            const entered = await login();
            return [before, await made.json(), taken.status, entered.status, await (await fetch("/who")).json()];
        }}""")
        (credential,) = session.send("WebAuthn.getCredentials", {"authenticatorId": authenticator})["credentials"]
    before, made, taken, entered, who = ends
    assert (before, taken, entered) == (401, 409, 200)
    assert made["success"] is True
    assert who == {"userId": "1", "userName": "kiri"}
    assert credential["rpId"] == "localhost"
    assert own_database.fetch("select sign_count, handle = (select handle from member) from passkey, member") == [
        (credential["signCount"], True)
    ]
