"""The demo in a real browser, signed in by another provider: there and back, in a popup, and where it must not lead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.harness.browser import needs_browser
from tests.harness.identity_provider import ALMA, IdentityProvider
from tests.harness.service import Service
from tests.http.external import issuer_settings

DAGNY = {**ALMA, "name": "Dagny", "email": "dagny@couriers.example"}

pytestmark = [needs_browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    provider = IdentityProvider()
    provider.user = DAGNY
    yield provider
    provider.close()


@pytest.fixture(scope="module")
def demo_settings(provider: IdentityProvider) -> Mapping[str, str]:
    return {"Auth:External:Enabled": "true", **issuer_settings("Town", provider, KeepTokens="true")}


@pytest.fixture(scope="module")
def service(demo: Service, provider: IdentityProvider) -> Service:
    provider.client.redirect_uris.add(f"{demo.url}/signin-town")
    return demo


def result(page: Page) -> tuple[object, object]:
    return (
        page.evaluate("sessionStorage.getItem('__external_status')"),
        page.evaluate("sessionStorage.getItem('__external_message')"),
    )


def test_sign_in_at_a_provider_returns_to_the_page(page: Page, service: Service, provider: IdentityProvider) -> None:
    with provider.bent(asks=True):
        page.goto(f"{service.url}/signin-town?return_to=/login%23pay")
        page.click("text=Sign in")
        page.wait_for_url(f"{service.url}/login#pay")
    assert result(page) == ("200", "")
    # Nothing of the sign-in is left where a page could read it.
    assert page.evaluate("Object.keys(sessionStorage).sort()") == ["__external_message", "__external_status"]
    assert page.evaluate("document.cookie") == ""
    assert not [cookie for cookie in page.context.cookies() if cookie.get("name", "").startswith("rowcall.signin.")]
    page.click("#pay")
    expect(page.locator("#message")).to_have_text("12 couriers are paid.")


def test_sign_in_at_a_provider_in_a_popup(page: Page, service: Service, provider: IdentityProvider) -> None:
    page.goto(f"{service.url}/login")
    with provider.bent(asks=True):
        with page.expect_popup() as popup:
            page.evaluate("""() => {
                window.message = new Promise(done => addEventListener("message", done, { once: true }))
                    .then(event => ({ origin: event.origin, ...event.data }));
                window.open("/signin-town?display=popup", "sign-in", "popup");
            }""")
        with popup.value.expect_event("close"):
            popup.value.click("text=Sign in")
    assert page.evaluate("message") == {
        "origin": service.url,
        "type": "external-sign-in",
        "provider": "Town",
        "status": 200,
        "message": "",
    }
    page.click("#pay")
    expect(page.locator("#message")).to_have_text("12 couriers are paid.")


def test_the_reason_is_shown_to_an_unknown_user(page: Page, service: Service, provider: IdentityProvider) -> None:
    with provider.bent(user=ALMA):
        page.goto(f"{service.url}/signin-town?return_to=/login")
        page.wait_for_url(f"{service.url}/login")
    status, message = result(page)
    assert status == "401"
    assert '"title":"Unauthorized"' in str(message)


@pytest.mark.parametrize(
    "to",
    [
        "https://elsewhere.example/",
        "//elsewhere.example",
        "/\\elsewhere.example",
        "javascript:alert(1)",
        "http:x",
        "//HOST//elsewhere.example/",
        "//HOST//HOST//elsewhere.example/",
        "/.//HOST//elsewhere.example/",
        "blob:http://HOST//elsewhere.example/",
    ],
)
def test_return_to_cannot_lead_to_another_origin(page: Page, service: Service, to: str) -> None:
    page.goto(f"{service.url}/login")
    to = to.replace("HOST", service.url.removeprefix("http://"))
    hosts: set[str | None] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).hostname))
    page.evaluate("to => { location.href = '/signin-town?return_to=' + encodeURIComponent(to) }", to)
    page.wait_for_function(
        "sessionStorage.getItem('__external_status') === '200' && !location.pathname.startsWith('/sign')"
    )
    assert page.evaluate("location.origin") == service.url
    assert hosts == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("code=stolen&state=forged", "Invalid state"),
        ("error=access_denied&state=forged", "access_denied"),
        ("error=access_denied", "access_denied"),
    ],
)
def test_a_callback_without_a_login_state_is_refused(page: Page, service: Service, query: str, message: str) -> None:
    """Login CSRF by a link: the script does not even send the code."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    page.goto(f"{service.url}/signin-town?{query}")
    page.wait_for_function("sessionStorage.getItem('__external_status') !== null")
    assert result(page) == ("503", message)
    assert sent == []


def test_signing_out_ends_the_sessions_here_and_at_the_provider(
    page: Page, service: Service, provider: IdentityProvider
) -> None:
    page.goto(f"{service.url}/signin-town?return_to=/login")
    page.wait_for_url(f"{service.url}/login")
    page.evaluate("""() => {
        const form = document.createElement("form");
        form.method = "post";
        form.action = "/signin-town/logout";
        document.body.append(form);
        form.submit();
    }""")
    page.wait_for_url(f"{service.url}/")
    assert any(path == "/logout" for _, path, _ in provider.seen)
    assert page.context.cookies() == []
