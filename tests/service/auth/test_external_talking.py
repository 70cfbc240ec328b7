"""What a provider answers that cannot be taken: documents of issuers, tokens, redirects (external-sign-in-1 to
external-sign-in-11)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import jwt
import pytest

from rowcall.core.auth.external.options import Provider
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.auth.external.issuers import Addresses, Issuers
from rowcall.service.auth.external.profiles import Profile, Profiles
from rowcall.service.auth.external.provider_client import ProviderClient, ProviderError, RefusedByProviderError
from tests.harness.upstream import Seen, Upstream, answer

DOCUMENT = "/.well-known/openid-configuration"


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Upstream]:
    server = Upstream()
    server.on("*", answer({"access_token": "from elsewhere", "email": "a@x"}))
    yield server
    server.close()


def document(server: Upstream, **changes: object) -> dict[str, object]:
    names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    result = {"issuer": server.url, **{name: f"{server.url}/{name}" for name in names}, **changes}
    return {name: value for name, value in result.items() if value is not None}


def with_talker(work: Callable[[ProviderClient], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        talker = ProviderClient(ClientOptions())
        try:
            return await work(talker)
        finally:
            talker.close()

    return asyncio.run(run())


def addresses(issuer: str, **given: Any) -> Addresses:
    provider = Provider("Id", "/signin-id", "me", issuer=issuer, **given)
    result: Addresses = with_talker(lambda talker: Issuers(provider, talker).addresses())
    return result


def profile(server: Upstream) -> Profile:
    provider = Provider("P", "/signin-p", "me", "secret", "http://a", f"{server.url}/token", f"{server.url}/info")
    work = lambda talker: Profiles(provider, talker).by_code("code", "http://me", None, None, None)  # noqa: E731
    result: Profile = with_talker(work)
    return result


def test_discovery_documents_of_issuers_are_read(server: Upstream) -> None:
    server.on(DOCUMENT, answer(document(server, userinfo_endpoint=f"{server.url}/info", more=[1])))
    result = addresses(server.url)
    assert (result.token, result.info) == (f"{server.url}/token_endpoint", f"{server.url}/info")
    assert (result.logout, result.revoke, result.basic, result.sends_issuer) == (None, None, True, False)
    assert addresses(server.url, info_url="https://own.example/info").info == "https://own.example/info"


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"issuer": "https://elsewhere.example"}, "names another issuer"),
        ({"issuer": None}, "names another issuer"),
        ({"token_endpoint": None}, "names no token_endpoint"),
        ({"jwks_uri": None}, "names no jwks_uri"),
        ({"authorization_endpoint": ["https://x"]}, "names no authorization_endpoint"),
        ({"authorization_endpoint": "javascript:alert(1)//"}, "authorization_endpoint"),
        ({"end_session_endpoint": "data:text/html,x"}, "end_session_endpoint"),
        ({"token_endpoint": "file:///etc/passwd"}, "token_endpoint"),
    ],
)
def test_an_invalid_discovery_document_is_refused(server: Upstream, changes: dict[str, object], reported: str) -> None:
    server.on(DOCUMENT, answer(document(server, **changes)))
    with pytest.raises(ProviderError, match=reported):
        addresses(server.url)


@pytest.mark.parametrize(
    ("response", "reported"),
    [
        (answer("<html>"), "is not a JSON object"),
        (answer([1]), "is not a JSON object"),
        (answer({}, 503), "answered 503"),
        (answer(b" " * 1_100_000), "larger than"),
        (answer(b"", 302, [("Location", "http://127.0.0.1:9/")]), "answered 302"),
        (b"nonsense\r\n\r\n", "http"),
    ],
)
def test_a_missing_discovery_document_is_an_error(server: Upstream, response: bytes, reported: str) -> None:
    server.on(DOCUMENT, response)
    with pytest.raises(ProviderError, match=reported):
        addresses(server.url)


def test_a_failing_discovery_document_is_not_requested_by_each_caller(server: Upstream) -> None:
    """The next one who comes within seconds is reported the same."""
    server.on(DOCUMENT, answer({}, 500))
    before = len(server.to(DOCUMENT))

    async def twice(talker: ProviderClient) -> None:
        issuers = Issuers(Provider("Id", "/signin-id", "me", issuer=server.url), talker)
        for result in await asyncio.gather(*(issuers.addresses() for _ in range(5)), return_exceptions=True):
            assert isinstance(result, ProviderError)

    with_talker(twice)
    assert len(server.to(DOCUMENT)) == before + 1


def test_a_profile_is_read(server: Upstream) -> None:
    server.on("/token", answer({"access_token": "abc", "refresh_token": "r"}))
    server.on("/info", answer('{"email": "a@x", "name": "A",  "id": 7}'))
    result = profile(server)
    assert result == Profile("a@x", "A", '{"email": "a@x", "name": "A",  "id": 7}', "r", None, None)
    assert server.to("/info")[-1].header("authorization") == "Bearer abc"
    assert server.to("/token")[-1].header("accept") == "application/json"


async def refreshed(provider: Provider, identity: str, talker: ProviderClient) -> Profile:
    return await Profiles(provider, talker).by_refresh_token("r", identity, None)


def test_an_id_token_of_a_provider_without_issuer_is_not_read(server: Upstream) -> None:
    """It is not verified, so it may be of any kind."""
    server.on("/token", answer({"access_token": "abc"}))
    server.on("/info", answer('{"email": "a@x"}'))
    provider = Provider("P", "/signin-p", "me", "secret", "http://a", f"{server.url}/token", f"{server.url}/info")
    unsigned = jwt.encode({"sid": "of another session"}, "", "none")
    for identity in ("opaque", unsigned):
        result: Profile = with_talker(partial(refreshed, provider, identity))
        assert result == Profile("a@x", None, '{"email": "a@x"}', "r", identity, None)


@pytest.mark.parametrize(
    ("response", "reported"),
    [
        (answer({"error": "bad_verification_code", "error_description": "<b>"}), "answered 200: bad_verification_code"),
        (answer({"access_token": 7}), "returned no access_token"),
        (answer(["access_token"]), "returned no access_token"),
        (answer("access_token=abc"), "returned no access_token"),
        (answer({"error": "invalid_grant\r\nforged"}, 400), "answered 400: invalid_grant"),
        (answer({"error": {"of": "another kind"}}, 400), "answered 400$"),
        (answer({"access_token": "abc"}, 500), "answered 500"),
    ],
)
def test_a_response_without_token_is_an_error(server: Upstream, response: bytes, reported: str) -> None:
    server.on("/token", response)
    with pytest.raises(ProviderError, match=reported) as raised:
        profile(server)
    assert "\n" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("status", "error", "over"),
    [
        (400, "invalid_grant", True),
        (401, "invalid_grant", True),
        (403, "invalid_grant", True),
        (400, {"message": "in words of its own"}, True),
        (200, "bad_refresh_token", True),
        (400, "invalid_client", False),
        (401, "invalid_client", False),
        (200, "temporarily_unavailable", False),
        (404, None, False),
        (429, None, False),
        (503, "invalid_grant", False),
    ],
)
def test_a_refresh_token_is_discarded_only_if_the_provider_refuses_it(
    server: Upstream, status: int, error: object, over: bool
) -> None:
    """After other errors (too many requests, unknown client) the refresh token may still be valid."""
    server.on("/token", answer({} if error is None else {"error": error}, status))
    with pytest.raises(ProviderError) as raised:
        profile(server)
    assert isinstance(raised.value, RefusedByProviderError) == over


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_with_secrets_are_not_followed(server: Upstream, elsewhere: Upstream, status: int) -> None:
    """Neither with that of the client, nor with the token of a user."""
    away = answer(b"", status, [("Location", f"{elsewhere.url}/")])
    server.on("/token", away)
    with pytest.raises(ProviderError, match=f"answered {status}"):
        profile(server)
    server.on("/token", answer({"access_token": "abc"}))
    server.on("/info", away)
    with pytest.raises(ProviderError, match=f"answered {status}"):
        profile(server)
    assert elsewhere.seen == []


@pytest.mark.parametrize(
    "info", ["[]", "null", "{", '{"name":"without an address"}', '{"email":"a@x","email_verified":false}']
)
def test_a_response_without_profile_is_an_error(server: Upstream, info: str) -> None:
    server.on("/token", answer({"access_token": "abc"}))
    server.on("/info", answer(info))
    with pytest.raises(ProviderError):
        profile(server)


def test_requests_beyond_the_limit_do_not_reach_the_provider(server: Upstream) -> None:
    """So many at one time and no more: 503 for the others, at once."""
    from rowcall.core.errors.problems import Problem

    def hold(_seen: Seen, _connection: object) -> bytes:
        server.released.wait(60)
        return answer({"access_token": "abc"})

    server.on("/slow", hold)

    async def flood(talker: ProviderClient) -> list[BaseException | None]:
        values = [asyncio.create_task(talker.form(f"{server.url}/slow", {})) for _ in range(70)]
        done, waiting = await asyncio.wait(values, timeout=30.0, return_when=asyncio.FIRST_EXCEPTION)
        refused = [task.exception() for task in done]
        server.released.set()
        await asyncio.gather(*waiting, return_exceptions=True)
        return refused

    refused = with_talker(flood)
    assert refused
    assert all(isinstance(error, Problem) and error.status == 503 for error in refused)
