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
from rowcall.core.outbound.address import BadUrlError, read_address
from rowcall.core.outbound.guard import RefusedError
from rowcall.core.outbound.options import ClientOptions
from rowcall.service.log.entry import one_line
from rowcall.service.upstream.client import Client
from rowcall.service.upstream.errors import OutboundError
from rowcall.service.upstream.messages import Headers, OutgoingRequest

WITHIN = 10.0
"""Seconds for one request."""
LARGEST = 1_048_576
"""Bytes of an answer."""
MOST = 64
"""Requests of a worker at the same time. Strangers can cause them, and a provider that is flooded by us blocks us."""

_ALWAYS: Headers = [("Accept", "application/json"), ("User-Agent", "rowcall")]


class TalkError(Exception):
    """A provider cannot be talked to, or says what cannot be taken. The text is for the log and names no secret."""


class RefusedByProviderError(TalkError):
    """It answers, and does not want to: a code or a token that does not hold (RFC 6749, 5.2)."""


class Talker:
    """One for each worker. To be made in the running event loop."""

    def __init__(self, options: ClientOptions) -> None:
        self._client = Client(replace(options, follow=0))
        self._asking = 0

    def close(self) -> None:
        self._client.close()

    async def form(self, url: str, fields: Mapping[str, str], basic: tuple[str, str] | None = None) -> Any:
        """What POST of a form answers, as JSON. basic: client id and secret, where they go into a header.

        Raises:
            TalkError: it does not answer, or not with 2xx and JSON.
        """
        headers = [*_ALWAYS, ("Content-Type", "application/x-www-form-urlencoded")]
        if basic is not None:
            pair = ":".join(quote(part, safe="") for part in basic)
            headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        status, body = await self._ask("POST", url, headers, urlencode(fields).encode())
        content = _json(body)
        if not 200 <= status < 300:
            said = f"{url} answered {status}{_error_in(content)}"
            raise RefusedByProviderError(said) if 400 <= status < 500 else TalkError(said)
        return content

    async def question(self, url: str, token: str | None = None) -> bytes:
        """What GET answers. token: goes along as a bearer token.

        Raises:
            TalkError: it does not answer, or not with 2xx.
        """
        headers = _ALWAYS if token is None else [*_ALWAYS, ("Authorization", f"Bearer {token}")]
        status, body = await self._ask("GET", url, headers, None)
        if not 200 <= status < 300:
            raise TalkError(f"{url} answered {status}")
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
            raise TalkError(f"{url} has not answered within {WITHIN:g} s") from None
        except (OutboundError, RefusedError, BadUrlError) as error:
            raise TalkError(f"{url}: {error}") from None
        finally:
            self._asking -= 1


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _error_in(content: Any) -> str:
    """The word of RFC 6749, 5.2; what stands beside it may hold anything."""
    word = content.get("error") if isinstance(content, dict) else None
    return f": {one_line(word[:100])}" if isinstance(word, str) else ""
