"""Read the addresses and keys that an OpenID Connect issuer publishes (OpenID Connect Discovery 1.0)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt
import orjson

from rowcall.core.auth.external.options import Provider
from rowcall.core.auth.external.provider_tokens import fault_of
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.service.auth.external.provider_client import ProviderClient, ProviderError
from rowcall.service.identity.key_set import KeySet
from rowcall.service.log.entry import escape_unprintable

FRESH = 3600.0
"""Seconds after which the discovery document is read again."""
BETWEEN_FAILURES = 5.0
"""Seconds after a failure in which the discovery document is not requested again."""
KEYS_FRESH, KEYS_LONGEST = 600.0, 86_400.0
"""Seconds after which keys are read again, and after which old keys are no longer used."""
BETWEEN_KEYS = 1.0
"""Fewest seconds between two requests for keys. It can be short: tokens come from the issuer directly, so a third party
cannot cause requests with invented key ids."""
CLOCK_SKEW = 120.0
"""Seconds by which the clocks of issuer and service may differ."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """The URLs of a provider by purpose; None if it has no such endpoint. keys: to verify its tokens; None without an
    issuer.
    """

    authorize: str | None
    token: str
    info: str | None
    logout: str | None
    revoke: str | None
    basic: bool = False
    """Whether the client secret is sent in a header instead of the form."""
    sends_issuer: bool = False
    """Whether the provider sends its identifier with every code (RFC 9207)."""
    keys: KeySet | None = None


class Issuers:
    """The addresses of one provider, as configured or as its issuer publishes them."""

    def __init__(self, provider: Provider, provider_client: ProviderClient) -> None:
        self._provider = provider
        self._provider_client = provider_client
        self._known: Addresses | None = None
        self._read_at = float("-inf")
        self._failure: tuple[float, ProviderError] | None = None
        self._reading = asyncio.Lock()
        self._keys: tuple[str, KeySet] | None = None

    async def addresses(self) -> Addresses:
        """Return the addresses. If the issuer cannot be reached or its document cannot be used, return those that were
        read before.

        Raises:
            ProviderError: there are none.
            Problem: 503 if too many requests to providers are in progress.
        """
        provider = self._provider
        if provider.issuer is None:
            return Addresses(
                provider.auth_url, provider.token_url or "", provider.info_url, provider.logout_url, provider.revoke_url
            )
        if self._known is not None and time.monotonic() - self._read_at < FRESH:
            return self._known
        async with self._reading:
            if self._known is not None and time.monotonic() - self._read_at < FRESH:
                return self._known
            if self._failure is None or time.monotonic() - self._failure[0] > BETWEEN_FAILURES:
                await self._read(provider.issuer)
            if self._known is None and self._failure is not None:
                raise self._failure[1]
        assert self._known is not None  # noqa: S101
        return self._known

    async def _read(self, issuer: str) -> None:
        """Read the discovery document. If the issuer cannot be reached or the document cannot be used, retain the
        previous addresses and record the error. issuer: its URL. Raises `Problem` 503 if too many requests to providers
        are in progress."""
        try:
            self._known = await self._discover_addresses(issuer)
            self._read_at = time.monotonic()
            self._failure = None
        except ProviderError as error:
            self._failure = time.monotonic(), error

    async def _discover_addresses(self, issuer: str) -> Addresses:
        """Request and check the discovery document, and return the addresses in it; configured ones take precedence.
        issuer: its URL. Raises `ProviderError`, or `Problem` 503 if too many requests to providers are in progress."""
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            document = orjson.loads(await self._provider_client.get(url))
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            raise ProviderError(f"{url} is not a JSON object")
        if document.get("issuer") != issuer:
            # A document for another issuer could direct codes and tokens to an attacker (RFC 9700, 4.4).
            raise ProviderError(f"{url} names another issuer; Issuer must be equal to the one in this document")
        provider = self._provider
        configured = {
            "authorization_endpoint": provider.auth_url,
            "token_endpoint": provider.token_url,
            "userinfo_endpoint": provider.info_url,
            "end_session_endpoint": provider.logout_url,
            "revocation_endpoint": provider.revoke_url,
            "jwks_uri": None,
        }
        urls = {name: url or _text(document.get(name)) for name, url in configured.items()}
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if urls[name] is None:
                raise ProviderError(f"{url} names no {name}")
        for name, address in urls.items():
            _check(url, name, address)
        methods = document.get("token_endpoint_auth_methods_supported")
        return Addresses(
            authorize=urls["authorization_endpoint"],
            token=urls["token_endpoint"] or "",
            info=urls["userinfo_endpoint"],
            logout=urls["end_session_endpoint"],
            revoke=urls["revocation_endpoint"],
            basic="client_secret_post" not in (methods if isinstance(methods, list) else ()),
            sends_issuer=document.get("authorization_response_iss_parameter_supported") is True,
            keys=self._key_set(urls["jwks_uri"] or ""),
        )

    def _key_set(self, url: str) -> KeySet:
        """Return the key set of this URL. Known keys stay if the document is read again and names the same URL."""
        if self._keys is None or self._keys[0] != url:
            self._keys = url, KeySet(url, KEYS_FRESH, KEYS_LONGEST, self._provider_client.get, BETWEEN_KEYS)
        return self._keys[1]


def _check(url: str, name: str, address: str | None) -> None:
    """Raise `ProviderError` for an address that is no http(s) URL; None is allowed. url, name: discovery document and
    member that contain it.

    A script of this service sends browsers to these addresses; `javascript:` would run in its pages.
    """
    if address is None:
        return
    try:
        read_address(address)
    except BadUrlError as error:
        raise ProviderError(f"{url} names an unusable {name}: {error}") from None


def _text(value: object) -> str | None:
    """Return the value if it is a text that is not empty, else None."""
    return value if isinstance(value, str) and value else None


async def verify_id_token(
    provider: Provider, keys: KeySet, token: object, nonce: str | None, access_token: str | None
) -> dict[str, Any]:
    """Verify an ID token and return its claims.

    token: member of the response, of any type. nonce: None if none was sent. access_token: that was issued with the ID
    token; None: there is none.

    Raises:
        ProviderError: the token is missing or not valid.
    """
    if not isinstance(token, str):
        raise ProviderError("the response has no ID token; does Scope contain openid?")

    def fault(claims: Mapping[str, Any], algorithm: str) -> str | None:
        return fault_of(provider, claims, nonce, algorithm, access_token)

    try:
        return await signed_claims(provider, keys, token, ["exp", "iat", "iss", "aud", "sub"], fault)
    except ProviderError as error:
        raise ProviderError(f"the ID token is not accepted: {error}") from None


async def signed_claims(
    provider: Provider,
    keys: KeySet,
    token: str,
    required: list[str],
    fault_in: Callable[[Mapping[str, Any], str], str | None] = lambda _claims, _algorithm: None,
) -> dict[str, Any]:
    """Verify that the issuer has signed a token for this client and that it has not expired; return its claims.

    required: names of claims that it must have. fault_in: returns another fault for the claims and the signature
    algorithm, or None. Raises `ProviderError` if the token is not valid.
    """
    fault = "no key of the issuer verifies it"
    for key, algorithms in await keys.candidates(token):
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=list(algorithms),
                audience=provider.client_id,
                issuer=provider.issuer,
                leeway=CLOCK_SKEW,
                options={"require": required},
            )
        except jwt.InvalidSignatureError:
            continue
        except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
            fault = escape_unprintable(str(error)[:200]) or type(error).__name__
            continue
        claims_fault = fault_in(claims, algorithms[0])
        if claims_fault is None:
            return claims
        fault = claims_fault
    raise ProviderError(fault)
