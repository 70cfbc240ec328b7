"""Requests to a provider: forms to its token endpoint, requests for user info. Redirects are not followed."""

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
from rowcall.service.log.entry import escape_unprintable

WITHIN = 10.0
"""Timeout of one request in seconds."""
LARGEST = 1_048_576
"""Most bytes of a response."""
MOST = 64
"""Most simultaneous requests of a worker. Anonymous callers can cause them, and a provider may block a client that
floods it."""

_ALWAYS: Headers = [("Accept", "application/json"), ("User-Agent", "rowcall")]


class ProviderError(Exception):
    """A provider cannot be reached or its response cannot be used. The text is for the log and contains no secret."""


class RefusedByProviderError(ProviderError):
    """The provider refuses the code or the token (RFC 6749, 5.2). It is not raised for other errors of the provider."""


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
    """HTTP client for providers, one for each worker. To be created in the running event loop."""

    def __init__(self, options: ClientOptions) -> None:
        self._client = Client(replace(options, follow=0))
        self._asking = 0

    def close(self) -> None:
        self._client.close()

    async def form(self, url: str, fields: Mapping[str, str], basic: tuple[str, str] | None = None) -> Any:
        """Send a form by POST and return the JSON of the response; None if its body is not JSON. basic: client id and
        secret, if they are sent in a header.

        Raises:
            RefusedByProviderError: the provider does not accept the code or the token of the form.
            ProviderError: there is no response, or one with another error.
            Problem: 503 if `MOST` requests of this worker are in progress.
        """
        headers = [*_ALWAYS, ("Content-Type", "application/x-www-form-urlencoded")]
        if basic is not None:
            pair = ":".join(quote(part, safe="") for part in basic)
            headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
        status, body = await self._ask("POST", url, headers, urlencode(fields).encode())
        content = _json(body)
        error_code = content.get("error") if isinstance(content, dict) else None
        success = 200 <= status < 300
        if success and not error_code:
            return content
        message = f"{url} answered {status}{_format_error_code(error_code)}"
        raise RefusedByProviderError(message) if _is_refusal(status, error_code) else ProviderError(message)

    async def get(self, url: str, token: str | None = None) -> bytes:
        """Return the body of the response to GET. token: sent as a bearer token.

        Raises:
            ProviderError: there is no response, or its status is not 2xx.
            Problem: 503 if `MOST` requests of this worker are in progress.
        """
        headers = _ALWAYS if token is None else [*_ALWAYS, ("Authorization", f"Bearer {token}")]
        status, body = await self._ask("GET", url, headers, None)
        if not 200 <= status < 300:
            raise ProviderError(f"{url} answered {status}")
        return body

    async def _ask(self, method: str, url: str, headers: Headers, body: bytes | None) -> tuple[int, bytes]:
        """Send a request and return status and body.

        Raises:
            ProviderError: the address is refused, there is no complete response within `WITHIN` seconds, or its body
                has more than `LARGEST` bytes.
            Problem: 503 if `MOST` requests of this worker are in progress.
        """
        if self._asking >= MOST:
            raise unavailable("too many sign-ins are waiting for their provider")
        self._asking += 1
        try:
            request = OutgoingRequest(method, read_address(url), headers, body)
            async with asyncio.timeout(WITHIN):
                response = await self._client.send(request, named=True)
                return response.status, await response.read(LARGEST)
        except TimeoutError:
            raise ProviderError(f"{url} has not answered within {WITHIN:g} s") from None
        except (OutboundError, RefusedError, BadUrlError) as error:
            raise ProviderError(f"{url}: {error}") from None
        finally:
            self._asking -= 1


def _json(body: bytes) -> Any:
    """Return the parsed body, or None if it is not JSON."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _is_refusal(status: int, word: object) -> bool:
    """Return whether a response of the token endpoint refuses the code or the token. word: member `error` of the
    response; None: there is none.

    `invalid_grant` is a refusal with any status below 500, since providers send it with 200, 400, 401 or 403. The other
    standard error codes are not. With an unknown error code or none, the statuses 400 (RFC 6749, 5.2) and 2xx are
    refusals; others are not, because a client with too many requests (429) may refresh successfully a moment later.
    """
    if word == "invalid_grant":
        return status < 500
    about_the_client = isinstance(word, str) and word in _NOT_ABOUT_THE_GRANT
    return (status == 400 or 200 <= status < 300) and not about_the_client


def _format_error_code(word: object) -> str:
    """Return `: ` with the error code of RFC 6749, 5.2 for the log, or an empty text if there is none. word: member
    `error` of the response.

    Other members of the response may contain anything and are not logged.
    """
    return f": {escape_unprintable(word[:100])}" if isinstance(word, str) else ""
