"""The public keys of another issuer, fetched from its JWKS URL (RFC 7517)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import jwt
import orjson

from rowcall.core.outgoing.address import read_address
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.background import Background
from rowcall.service.http_client.client import Client
from rowcall.service.http_client.messages import Headers, OutgoingRequest
from rowcall.service.identity.signed_tokens import algorithms_for

log = logging.getLogger("rowcall")

BETWEEN_FETCHES = 10.0
"""Fewest seconds between two fetches. Tokens with invented key ids cannot cause more requests to the issuer."""
FETCH_WITHIN = 5.0
"""Timeout of a fetch in seconds."""
LARGEST = 1_048_576
"""Most bytes of a document."""
_HEADERS: Headers = [("Accept", "application/json"), ("User-Agent", "rowcall")]


class KeySet:
    """Public keys by id. Symmetric keys are ignored: with a shared secret in a public document, any reader could sign
    tokens.

    fresh: seconds after which the document is fetched again, so that withdrawn keys are dropped. longest: seconds for
    which the keys stay valid if the document cannot be fetched.
    """

    def __init__(
        self,
        url: str,
        fresh: float,
        longest: float,
        download: Callable[[str], Awaitable[bytes]],
        between: float = BETWEEN_FETCHES,
    ) -> None:
        """download: returns the document at a URL. between: fewest seconds between two fetches."""
        self._download = download
        self._url = url
        self._fresh = fresh
        self._longest = max(fresh, longest)
        self._between = min(between, fresh)
        self._keys: list[tuple[str | None, Any]] = []
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._fetching = asyncio.Lock()
        self._failing = False
        """The latest fetch has failed."""
        self._background = Background()

    async def candidates(self, token: str) -> list[tuple[Any, tuple[str, ...]]]:
        """Return the keys that may have signed a token, each with the one algorithm that the token names: the keys
        with its key id that allow the algorithm. The signature is not verified. The document is fetched first if it
        is older than `fresh` or no key fits the id; if the latest fetch has failed, and a key that is still valid
        fits, it is fetched meanwhile, as an issuer that does not respond would delay each request. Empty if no key
        fits, the token is malformed, or the keys are too old and cannot be fetched."""
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return []
        identity, algorithm = header.get("kid"), header.get("alg")
        fits = bool(self._keys_by_id(identity))
        if time.monotonic() - self._fetched > self._fresh or not fits:
            if fits and self._failing and time.monotonic() - self._fetched <= self._longest:
                self._fetch_meanwhile()
            else:
                await self._fetch()
        if time.monotonic() - self._fetched > self._longest:
            return []
        keys = ((key, algorithms_for(key)) for key in self._keys_by_id(identity))
        return [(key, (algorithm,)) for key, algorithms in keys if algorithm in algorithms]

    @property
    def valid_for(self) -> float:
        """Seconds for which a token that was just verified need not be verified again, so that a withdrawn key
        invalidates its tokens."""
        next_fetch = max(self._fetched + self._fresh, self._tried + self._between)
        return max(0.0, min(next_fetch, self._fetched + self._longest) - time.monotonic())

    def _keys_by_id(self, identity: object) -> list[Any]:
        """Return the keys with this id; all keys if it is None."""
        return [key for name, key in self._keys if identity is None or name == identity]

    def _fetch_meanwhile(self) -> None:
        """Begin to fetch the document, unless a fetch is in progress or was tried too recently."""
        if not self._fetching.locked() and time.monotonic() - self._tried >= self._between:
            self._background.start(self._fetch())

    async def _fetch(self) -> None:
        """Fetch the document, unless another call has done so meanwhile or too recently. Errors are logged."""
        requested_at = time.monotonic()
        async with self._fetching:
            if self._tried >= requested_at or time.monotonic() - self._tried < self._between:
                return
            self._tried = time.monotonic()
            try:
                self._keys = _read(await self._download(self._url))
                self._fetched = time.monotonic()
                self._failing = False
            except Exception as error:
                self._failing = True
                log.error(
                    "the key set %s cannot be read, the known keys stay valid for %g s at most: %s",
                    *(self._url, self._longest, str(error) or type(error).__name__),
                )


async def download(options: ClientOptions, url: str) -> bytes:
    """Return the document at a URL, by the HTTP client of outgoing requests. Redirects are not followed.

    Raises various errors if there is no document, or one larger than `LARGEST`.
    """
    client = Client(replace(options, follow=0))
    try:
        async with asyncio.timeout(FETCH_WITHIN):
            response = await client.send(OutgoingRequest("GET", read_address(url), _HEADERS, None), named=True)
            if not 200 <= response.status < 300:
                raise ValueError(f"the response has status {response.status}")
            return await response.read(LARGEST)
    finally:
        client.close()


def _read(body: bytes) -> list[tuple[str | None, Any]]:
    """Return id (None: it has none) and key of each usable key. Empty if the list `keys` has none, which withdraws all
    keys. Raises various errors for an invalid document, such as one without that list."""
    members = orjson.loads(body)["keys"]
    if not isinstance(members, list):
        raise TypeError("its keys are no list")
    keys: list[tuple[str | None, Any]] = []
    for member in members:
        # An unusable key says nothing about the others (RFC 7517, section 5).
        with contextlib.suppress(jwt.PyJWTError, ValueError, TypeError, AttributeError):
            key = jwt.PyJWK(member)
            if algorithms_for(key.key) and key.public_key_use in (None, "sig"):
                keys.append((key.key_id, key.key))
    return keys
