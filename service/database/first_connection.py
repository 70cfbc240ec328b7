"""Opening databases at the start, with retries as configured in `ConnectionSettings:RetryOptions`."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg

from rowcall.core.config import Settings
from rowcall.core.config.sections.connections import RetryOptions
from rowcall.service.database.connector import Connector
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

Result = TypeVar("Result")

_NO_PATTERN = ("2201B", "22025")
_PATTERNS = " (in a key of Service or Service:CrudSource whose name ends with SimilarTo)"
"""The catalogue queries contain no other patterns of the user."""
_OPTIONS = "ConnectionSettings:RetryOptions"


class OpeningRetries:
    """Repeats work on databases at the start, after the configured delays."""

    def __init__(self, settings: Settings, *, patient: bool = True) -> None:
        """patient: False: there is only one attempt."""
        options = settings.read(RetryOptions)
        self._delays = options.delays if patient and options.enabled else ()
        self._codes = frozenset(options.codes)

    async def attempt(self, what: str, work: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of `work`, from the first attempt that succeeds. what: the work for messages, such as "read
        the database".

        Raises: StartupError: `work` raised a `psycopg.Error` that is permanent, or one after the last delay. Other
        exceptions of `work` are raised at once.
        """
        for attempt, delay in enumerate((*self._delays, None), 1):
            try:
                return await work()
            except psycopg.Error as error:
                message = " ".join(str(error).split())
                if delay is None or not self._is_transient(error):
                    after = f" after {attempt} attempts" if attempt > 1 else ""
                    place = _PATTERNS if error.sqlstate in _NO_PATTERN else ""
                    raise StartupError(f"cannot {what}{after}: {message}{place}") from None
                log.warning("attempt %d: cannot %s, again in %g s: %s", attempt, what, delay, message)
                await asyncio.sleep(delay)
        raise AssertionError("the last attempt either succeeds or raises")

    async def test(self, name: str, connector: Connector) -> None:
        """Open a connection with the retries and close it. name: for messages. Raises `StartupError`."""

        async def open_and_close() -> None:
            async with await connector.open_plain():
                log.debug("connection %s can be opened", name)

        await self.attempt(f"open the connection {name}", open_and_close)

    def _is_transient(self, error: psycopg.Error) -> bool:
        """Return whether the error may be transient. Errors of the network are; errors of the server are judged by
        their SQLSTATE (configuration-22), or by their message if the server refused the connection, because then there
        is no SQLSTATE."""
        if error.sqlstate is None:
            message = str(error)
            is_refused = "FATAL:" in message or "no password supplied" in message
            return not is_refused or _PASSING.search(message) is not None
        return error.sqlstate in self._codes


_PASSING = re.compile(
    "starting up|shutting down|recovery|not yet accepting|too many|connection slots|no more connections|terminating|"
    "cannot connect|login has been failing|timeout",
    re.IGNORECASE,
)
"""Messages of a server or a pooler about a temporary refusal; libpq has no SQLSTATE for a failed connection attempt.
Other fatal errors (a wrong password, a missing database, no entry in pg_hba.conf) are permanent.
"""
