"""The public keys of another issuer, fetched from its JWKS address (RFC 7517)."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import jwt

from rowcall.service.identity.signed_tokens import algorithms_for

log = logging.getLogger("rowcall")

FRESH = 600.0
"""Seconds after which the document is fetched again, so that a withdrawn key is forgotten."""
BETWEEN_FETCHES = 10.0
"""Seconds. Tokens with made-up key ids can make us ask the issuer no more often than this."""
FETCH_WITHIN = 5.0
LARGEST = 1_048_576
"""Bytes of a document."""


class KeySet:
    """Keys by id. Only asymmetric ones: a shared secret in a public document would let anybody sign."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._keys: list[tuple[str | None, Any]] = []
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._fetching = asyncio.Lock()

    async def candidates(self, token: str) -> list[tuple[Any, tuple[str, ...]]]:
        """The keys that may have signed a token, with the algorithms each allows."""
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return []
        identity, algorithm = header.get("kid"), header.get("alg")
        if time.monotonic() - self._fetched > FRESH or not self._named(identity):
            await self._fetch()
        found = ((key, algorithms_for(key)) for key in self._named(identity))
        return [(key, (algorithm,)) for key, algorithms in found if algorithm in algorithms]

    def _named(self, identity: object) -> list[Any]:
        return [key for name, key in self._keys if identity is None or name == identity]

    async def _fetch(self) -> None:
        wanted = time.monotonic()
        async with self._fetching:
            if self._tried >= wanted or time.monotonic() - self._tried < BETWEEN_FETCHES:
                return
            self._tried = time.monotonic()
            try:
                self._keys = _read(await _download(self._url))
                self._fetched = time.monotonic()
            except Exception as error:
                log.error("the key set %s cannot be read, the known keys stay: %s", self._url, error)


async def _download(url: str) -> bytes:
    # Loaded here: a service without foreign tokens does without it.
    import httpx

    async with (
        httpx.AsyncClient(timeout=FETCH_WITHIN, follow_redirects=False) as client,
        client.stream("GET", url) as response,
    ):
        response.raise_for_status()
        body = b""
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > LARGEST:
                raise ValueError("it is too large")
        return body


def _read(body: bytes) -> list[tuple[str | None, Any]]:
    keys = jwt.PyJWKSet.from_json(body.decode()).keys
    return [(key.key_id, key.key) for key in keys if algorithms_for(key.key) and key.public_key_use in (None, "sig")]
