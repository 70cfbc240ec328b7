"""`rowcall new`: each template is migrated, passes its own tests, and the accounts work in a browser."""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from rowcall.service.command.starter import TEMPLATES
from tests.docs.pages import application_settings
from tests.harness.authenticator_app import AuthenticatorApp
from tests.harness.browser import TIMEOUT, VIRTUAL_AUTHENTICATOR, browser, needs_browser
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.identity_provider import IdentityProvider
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.external import begin, finish, granted, issuer_settings, session_of, sign_in

ROOT = Path(__file__).parents[2]


def create_application(folder: Path, template: str, database: Database) -> Path:
    """Create an application, and migrate the database. Return its folder."""
    done = rowcall(folder, "new", "shop-of-ana", "--template", template)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    application = folder / "shop-of-ana"
    for command in ("--install", "--migrate"):
        done = rowcall(application, command, f"--ConnectionStrings:Default={database.conninfo}")
        assert done.returncode == 0, done.stdout + done.stderr
    return application


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_passes_its_own_tests(template: str, tmp_path: Path, own_database: Database) -> None:
    application = create_application(tmp_path, template, own_database)
    assert (application / "README.md").read_text(encoding="utf-8").startswith("# shop-of-ana\n")
    connection = f"--ConnectionStrings:Default={own_database.conninfo}"
    done = rowcall(application, "--test", connection)
    assert done.returncode == 0, done.stdout + done.stderr
    # Nothing is wrong with it that the service would report.
    done = rowcall(application, "--validate", "--strict", connection)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_links_to_the_template() -> None:
    assert (ROOT / "examples/accounts").resolve() == ROOT / "service/scaffold/accounts"


def test_invalid_arguments_of_new_are_refused(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    too_long = "x" * 300
    for arguments, message in (
        (("new", "there"), "there exists and is left as it is"),
        (("new", "dangling/app"), "dangling exists and is left as it is"),
        (("new", too_long), f"{too_long} cannot be written: File name too long"),
        (("new", "x", "--template", "blog"), "there is no template 'blog': name one of accounts, shop, empty"),
        (("new", "a b"), "'a b' is no name of a folder"),
        (("new", "missing/../..",), "is no name of a folder"),
    ):  # fmt: skip
        done = rowcall(tmp_path, *arguments)
        assert done.returncode == 1
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    assert sorted(item.name for item in tmp_path.iterdir()) == ["dangling", "there"]
    assert rowcall(tmp_path, "--template", "shop").returncode == 2


# --- the accounts in a browser -------------------------------------------------------------------------------------


@pytest.fixture
def accounts(tmp_path: Path, own_database: Database, serve_once: Serve) -> Service:
    application = create_application(tmp_path, "accounts", own_database)
    port = free_port()
    origin = {"Auth:PasskeyAuth:RelyingPartyOrigins:0": f"http://localhost:{port}"}
    settings = {**application_settings(application), **origin, "Auth:SecondFactor:Drift": "10"}
    return serve_once(own_database, "", settings, workers=2, port=port)


@pytest.fixture
def page(accounts: Service) -> Iterator[Page]:
    with browser() as opened:
        tab = opened.new_page()
        tab.set_default_timeout(TIMEOUT)
        session = tab.context.new_cdp_session(tab)
        session.send("WebAuthn.enable")
        session.send("WebAuthn.addVirtualAuthenticator", {"options": VIRTUAL_AUTHENTICATOR})
        tab.goto(f"http://localhost:{accounts.port}/")
        yield tab


def link_of(folder: Path, subject: str, count: int = 1) -> str:
    """Return the fragment of the link in a new mail with this subject."""
    files: list[Path] = wait_until(
        lambda: found if len(found := _mails(folder, subject)) >= count else [], f"{count} mails: {subject}", 30
    )
    body = email.message_from_bytes(files[-1].read_bytes(), policy=email.policy.default).get_body()
    assert body is not None
    match = re.search(r"http://localhost:8080/(#\w+=\w+)", body.get_content())
    assert match is not None
    return match[1]


def _mails(folder: Path, subject: str) -> list[Path]:
    files = [path for path in folder.glob("*.eml") if f"Subject: {subject}" in path.read_text()]
    return sorted(files, key=lambda path: path.stat().st_mtime_ns)


def fill(page: Page, form: str, button: str, **fields: str) -> None:
    for name, value in fields.items():
        page.fill(f"#{form} [name={name}]", value)
    page.click(f"#{form} button:has-text('{button}')")


def expect_message(page: Page, text: str) -> None:
    expect(page.locator("#message")).to_contain_text(text)


@pytest.mark.slow
def test_a_created_application_signs_in_with_a_provider(
    tmp_path: Path, own_database: Database, serve_once: Serve
) -> None:
    provider = IdentityProvider()
    try:
        application = create_application(tmp_path, "accounts", own_database)
        port = free_port()
        settings = application_settings(application) | issuer_settings("Id", provider)
        settings |= {"Auth:External:Enabled": "true", "Auth:External:GitHub:Enabled": "false"}
        service = serve_once(own_database, "", settings, workers=2, port=port)
        provider.client.redirect_uris.add(f"{service.url}/signin-id")
        first = sign_in(service, "/signin-id")
        assert first.status_code == 200, first.text
        me = service.get("/api/me", headers=session_of(first)).json()
        assert (me["email"], me["hasPassword"]) == (provider.user["email"], False)
        assert service.get("/api/me", headers=session_of(sign_in(service, "/signin-id"))).json() == me
        # The address of an account is not enough: another person may have got it at the provider.
        provider.user["sub"] = "another-person"
        assert sign_in(service, "/signin-id").status_code == 401
        # A user who is signed in links the identity.
        session = session_of(first)
        begun = begin(service, "/signin-id", session)
        cookie = f"{begun.cookie}; {session['Cookie']}"
        linked = finish(service, "/signin-id", dict(granted(begun.url)), cookie)
        assert linked.status_code == 200, linked.text
        assert service.get("/api/me", headers=session_of(sign_in(service, "/signin-id"))).json() == me
    finally:
        provider.close()


@needs_browser
@pytest.mark.slow
def test_an_account_is_created_used_and_deleted_in_the_browser(
    accounts: Service, page: Page, tmp_path: Path, own_database: Database
) -> None:
    mail = tmp_path / "shop-of-ana" / "mail"
    signed_in = page.locator("#signed-in")
    violations: list[str] = []
    page.on("console", lambda message: violations.append(message.text) if "Content Security" in message.text else None)

    # Sign up, confirm the address with the link of the mail, and sign in.
    fill(page, "sign-up", "Sign up", email="ana@example.com", name="Ana <b>")
    expect_message(page, "Read your mail")
    fill(page, "sign-in", "Sign in", email="ana@example.com", password="a first password")
    expect_message(page, "E-mail or password is wrong")
    page.goto(page.url.partition("#")[0] + link_of(mail, "Your account"))
    fill(page, "choose-password", "Save", password="a first password")
    expect_message(page, "Your password is saved")
    fill(page, "sign-in", "Sign in", email="ana@example.com", password="another password")
    expect_message(page, "E-mail or password is wrong")
    fill(page, "sign-in", "Sign in", email="ANA@example.com", password="a first password")
    expect(page.locator("#name")).to_have_text("Ana <b>")
    fill(page, "add-note", "Add", text="<i>milk</i>")
    expect(page.locator("#notes li")).to_contain_text("<i>milk</i>")
    expect(page.locator("#sessions li")).to_have_count(1)

    # An authenticator app, and a sign-in with it.
    page.click("#set-up-app")
    expect(page.locator("#qr")).to_be_visible()
    assert page.evaluate("document.getElementById('qr').decode().then(() => true)")
    app = AuthenticatorApp(f"otpauth://totp/x?secret={page.text_content('#secret')}")
    fill(page, "confirm-app", "Confirm", code=app.code())
    expect_message(page, "Keep the recovery codes")
    codes = (page.text_content("#recovery-codes") or "").split()
    assert len(codes) == 10
    page.click("#sign-out")
    fill(page, "sign-in", "Sign in", email="ana@example.com", password="a first password")
    expect_message(page, "Prove your second factor")
    fill(page, "second-factor", "Continue", code="000 000")
    expect_message(page, "The code is not valid")
    fill(page, "second-factor", "Continue", code=app.code())
    expect(signed_in).to_be_visible()

    # A passkey: as second factor, and alone.
    page.click("#add-passkey")
    expect_message(page, "The passkey is stored")
    page.click("#sign-out")
    fill(page, "sign-in", "Sign in", email="ana@example.com", password="a first password")
    page.click("#second-passkey")
    expect(signed_in).to_be_visible()
    page.click("#sign-out")
    page.click("#use-passkey")
    expect(signed_in).to_be_visible()

    # A link instead of the password, with a recovery code; and an administrator sees all accounts.
    own_database.execute("update account set roles = '{admin}'")
    page.click("#sign-out")
    fill(page, "send-link", "Send a link", email="ana@example.com")
    expect_message(page, "a mail is on its way")
    page.goto(page.url.partition("#")[0] + link_of(mail, "Sign in"))
    expect_message(page, "Prove your second factor")
    fill(page, "second-factor", "Continue", code=codes[0])
    expect(page.locator("#accounts li")).to_contain_text("ana@example.com")
    expect(page.locator("#factor-state")).to_contain_text("9 recovery codes")

    # Another browser is signed in; a reset of the password ends both sessions.
    with accounts.new_client() as other:
        fill(page, "remove-app", "Remove", code=codes[1])
        expect_message(page, "The second factor is removed")
        body = {"email": "ana@example.com", "password": "a first password"}
        assert other.post("/api/sign-in", json=body).status_code == 200
        assert len(other.get("/api/sessions").json()) == 2
        page.click("#sign-out")
        fill(page, "forgotten", "Send a mail", email="ana@example.com")
        page.goto(page.url.partition("#")[0] + link_of(mail, "Your password"))
        fill(page, "choose-password", "Save", password="a second password")
        expect_message(page, "Your password is saved")
        assert other.get("/api/me").status_code == 401
        assert other.post("/api/sign-in", json=body).status_code == 401
    fill(page, "sign-in", "Sign in", email="ana@example.com", password="a second password")
    expect(signed_in).to_be_visible()

    # Sign out everywhere, export, and deletion.
    page.click("#end-all")
    expect(page.locator("#signed-out")).to_be_visible()
    fill(page, "sign-in", "Sign in", email="ana@example.com", password="a second password")
    expect(signed_in).to_be_visible()
    with page.expect_download() as download:
        page.click("text=Export my data")
    exported = download.value.path().read_text(encoding="utf-8")
    assert '"email" : "ana@example.com"' in exported
    assert "<i>milk</i>" in exported
    page.on("dialog", lambda dialog: dialog.accept())
    page.click("#delete-account")
    expect(page.locator("#signed-out")).to_be_visible()
    assert own_database.fetch("select (select count(*) from account), (select count(*) from note)") == [(0, 0)]
    assert own_database.value("select count(*) from rowcall.second_factor") == 0
    assert violations == []
