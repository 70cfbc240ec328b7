"""What an OpenID Connect issuer publishes about itself: its addresses and its keys (OpenID Connect Discovery 1.0)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt
import orjson

from rowcall.core.auth.external.identity_token import fault_of
from rowcall.core.auth.external.options import Provider
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.service.auth.external.provider_client import ProviderClient, ProviderError
from rowcall.service.identity.key_set import KeySet
from rowcall.service.log.entry import one_line

FRESH = 3600.0
"""Seconds after which the document is read again."""
BETWEEN_FAILURES = 5.0
"""Seconds for which a document that could not be read is not asked for again."""
KEYS_FRESH, KEYS_LONGEST = 600.0, 86_400.0
BETWEEN_KEYS = 1.0
"""The tokens come from the issuer himself: no stranger can make us ask for keys he has made up."""
CLOCK_SKEW = 120.0


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a provider is asked what. None: it has no such place."""

    authorize: str | None
    token: str
    info: str | None
    logout: str | None
    revoke: str | None
    basic: bool = False
    """The secret goes into a header and not into the form."""
    tells_issuer: bool = False
    """It says with every code who has issued it (RFC 9207)."""
    keys: KeySet | None = None


class Issuers:
    """The addresses of one provider, as configured or as its issuer publishes them."""

    def __init__(self, provider: Provider, talker: ProviderClient) -> None:
        self._provider = provider
        self._talker = talker
        self._known: Addresses | None = None
        self._read_at = float("-inf")
        self._failure: tuple[float, ProviderError] | None = None
        self._reading = asyncio.Lock()
        self._keys: tuple[str, KeySet] | None = None

    async def addresses(self) -> Addresses:
        """Raises `TalkError`: the issuer does not say, and has not said before."""
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
        try:
            self._known = await self._published(issuer)
            self._read_at = time.monotonic()
            self._failure = None
        except ProviderError as error:
            self._failure = time.monotonic(), error

    async def _published(self, issuer: str) -> Addresses:
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        try:
            told = orjson.loads(await self._talker.question(url))
        except orjson.JSONDecodeError:
            told = None
        if not isinstance(told, dict):
            raise ProviderError(f"{url} is no JSON object")
        if told.get("issuer") != issuer:
            # Whoever speaks for another could have codes and tokens sent to himself (RFC 9700, 4.4).
            raise ProviderError(f"{url} is that of another issuer; Issuer has to be written as the document writes it")
        provider = self._provider
        given = {
            "authorization_endpoint": provider.auth_url,
            "token_endpoint": provider.token_url,
            "userinfo_endpoint": provider.info_url,
            "end_session_endpoint": provider.logout_url,
            "revocation_endpoint": provider.revoke_url,
            "jwks_uri": None,
        }
        found = {name: url or _text(told.get(name)) for name, url in given.items()}
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if found[name] is None:
                raise ProviderError(f"{url} names no {name}")
        for name, address in found.items():
            _check(url, name, address)
        methods = told.get("token_endpoint_auth_methods_supported")
        return Addresses(
            authorize=found["authorization_endpoint"],
            token=found["token_endpoint"] or "",
            info=found["userinfo_endpoint"],
            logout=found["end_session_endpoint"],
            revoke=found["revocation_endpoint"],
            basic="client_secret_post" not in (methods if isinstance(methods, list) else ()),
            tells_issuer=told.get("authorization_response_iss_parameter_supported") is True,
            keys=self._key_set(found["jwks_uri"] or ""),
        )

    def _key_set(self, url: str) -> KeySet:
        """The keys stay when the document is read again and names the same address."""
        if self._keys is None or self._keys[0] != url:
            self._keys = url, KeySet(url, KEYS_FRESH, KEYS_LONGEST, self._talker.question, BETWEEN_KEYS)
        return self._keys[1]


def _check(url: str, name: str, address: str | None) -> None:
    """Browsers are sent there by a script of ours: `javascript:` would run in our pages."""
    if address is None:
        return
    try:
        read_address(address)
    except BadUrlError as error:
        raise ProviderError(f"{url}: {name}: {error}") from None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


async def verified(
    provider: Provider, keys: KeySet, token: object, nonce: str | None, access_token: str | None
) -> dict[str, Any]:
    """The claims of an ID token.

    nonce: None where none was sent.

    Raises:
        TalkError: it does not hold.
    """
    if not isinstance(token, str):
        raise ProviderError("there is no ID token in the answer; does Scope hold openid?")

    def fault(claims: Mapping[str, Any], algorithm: str) -> str | None:
        return fault_of(provider, claims, nonce, algorithm, access_token)

    try:
        return await signed_claims(provider, keys, token, ["exp", "iat", "iss", "aud", "sub"], fault)
    except ProviderError as error:
        raise ProviderError(f"the ID token is not taken: {error}") from None


async def signed_claims(
    provider: Provider,
    keys: KeySet,
    token: str,
    required: list[str],
    fault_in: Callable[[Mapping[str, Any], str], str | None] = lambda _claims, _algorithm: None,
) -> dict[str, Any]:
    """The claims of a token that the issuer has signed for this client, and that is not out of date.

    fault_in: what else is wrong with claims, and the algorithm of their signature; None: nothing.

    Raises:
        TalkError: it does not hold.
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
            fault = one_line(str(error)[:200]) or type(error).__name__
            continue
        found = fault_in(claims, algorithms[0])
        if found is None:
            return claims
        fault = found
    raise ProviderError(fault)
