"""Requests to a provider: forms to its token address, questions about the user. No redirect is followed."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

import orjson

from rowcall.core.errors.problems import unavailable
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.core.outgoing.guard import RefusedError
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.http_client.client import Client
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import Headers, OutgoingRequest
from rowcall.service.log.entry import one_line

WITHIN = 10.0
"""Seconds for one request."""
LARGEST = 1_048_576
"""Bytes of an answer."""
MOST = 64
"""Requests of a worker at the same time. Strangers can cause them, and a provider that is flooded by us blocks us."""

_ALWAYS: Headers = [("Accept", "application/json"), ("User-Agent", "rowcall")]


class ProviderError(Exception):
    """A provider cannot be talked to, or says what cannot be taken. The text is for the log and names no secret."""


class RefusedByProviderError(ProviderError):
    """The code or the token does not hold (RFC 6749, 5.2). What is wrong with the client, or for now, is none of it."""


_NOT_ABOUT_THE_GRANT = frozenset(
    {
        "invalid_client",
        "invalid_request",
        "invalid_scope",
        "server_error",
        "slow_down",
        "temporarily_unavailable",
        "unauthorized_client",
        "unsupported_grant_type",
    }
)
"""Errors that say nothing about a code or a token (RFC 6749, 4.1.2.1 and 5.2; RFC 8628, 3.5)."""


class ProviderClient:
    """One for each worker. To be made in the running event loop."""

    def __init__(self, options: ClientOptions) -> None:
        self._client = Client(replace(options, follow=0))
        self._asking = 0

    def close(self) -> None:
        self._client.close()

    async def form(self, url: str, fields: Mapping[str, str], basic: tuple[str, str] | None = None) -> Any:
        """What POST of a form answers, as JSON. basic: client id and secret, where they go into a header.

        Raises:
            RefusedByProviderError: it does not take the code or the token of the form.
            TalkError: it does not answer, or neither with 2xx nor with that.
        """
        headers = [*_ALWAYS, ("Content-Type", "application/x-www-form-urlencoded")]
        if basic is not None:
            pair = ":".join(quote(part, safe="") for part in basic)
            headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        status, body = await self._ask("POST", url, headers, urlencode(fields).encode())
        content = _json(body)
        word = content.get("error") if isinstance(content, dict) else None
        success = 200 <= status < 300
        if success and not word:
            return content
        said = f"{url} answered {status}{_shown(word)}"
        raise RefusedByProviderError(said) if _is_refusal(status, word) else ProviderError(said)

    async def question(self, url: str, token: str | None = None) -> bytes:
        """What GET answers. token: goes along as a bearer token.

        Raises:
            TalkError: it does not answer, or not with 2xx.
        """
        headers = _ALWAYS if token is None else [*_ALWAYS, ("Authorization", f"Bearer {token}")]
        status, body = await self._ask("GET", url, headers, None)
        if not 200 <= status < 300:
            raise ProviderError(f"{url} answered {status}")
        return body

    async def _ask(self, method: str, url: str, headers: Headers, body: bytes | None) -> tuple[int, bytes]:
        if self._asking >= MOST:
            raise unavailable("too many sign-ins are waiting for their provider")
        self._asking += 1
        try:
            request = OutgoingRequest(method, read_address(url), headers, body)
            async with asyncio.timeout(WITHIN):
                answer = await self._client.send(request, named=True)
                return answer.status, await answer.read(LARGEST)
        except TimeoutError:
            raise ProviderError(f"{url} has not answered within {WITHIN:g} s") from None
        except (OutboundError, RefusedError, BadUrlError) as error:
            raise ProviderError(f"{url}: {error}") from None
        finally:
            self._asking -= 1


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _is_refusal(status: int, word: object) -> bool:
    """Known by its word where there is a standard one: providers send it with 200, 400, 401 or 403. A status alone says
    it where it is that of RFC 6749, 5.2: one who is asked too often (429) may renew a sign-in a moment later."""
    if word == "invalid_grant":
        return status < 500
    about_the_client = isinstance(word, str) and word in _NOT_ABOUT_THE_GRANT
    return (status == 400 or 200 <= status < 300) and not about_the_client


def _shown(word: object) -> str:
    """The word of RFC 6749, 5.2; what stands beside it may hold anything."""
    return f": {one_line(word[:100])}" if isinstance(word, str) else ""
