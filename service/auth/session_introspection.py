"""Let introspected sessions run the configured commands for API keys and session checks.

The commands find the owner of an API key, and whether a session is still valid
(`service.identity.introspected_sessions`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

import psycopg

from rowcall.core.auth.claims import Claim
from rowcall.core.auth.commands import number_placeholders
from rowcall.core.auth.login import Cell, LoginRowError, read_login_row
from rowcall.core.auth.options import LoginOptions
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.commands import Command
from rowcall.service.identity.introspected_sessions import IntrospectedSessions
from rowcall.service.request_context.request_context import RequestContext

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

    from rowcall.service.pipeline.services import Services

SESSIONS_ENDED = "sessions-ended"
"""Topic of the message bus: cached introspection results are no longer valid."""

_ADDRESS = 2
"""Parameter number of the client address in the command for API keys."""

log = logging.getLogger("rowcall")


def connect_sessions(services: Services) -> None:
    """Set the functions by which `IntrospectedSessions` finds keys and checks sessions, if their commands are
    configured. Sessions of another class are left unchanged.

    If an identity provider reports ended sessions (back-channel logout), the message bus is subscribed to, and each
    report drops the cached results of session checks.
    """
    sessions, options = services.auth.sessions, services.options.auth
    if not isinstance(sessions, IntrospectedSessions):
        return
    if options.api_keys is not None:
        find = Command("Auth:ApiKey:Command", options.api_keys.command, services)

        async def look_up(context: RequestContext, digest: str) -> tuple[Claim, ...] | None:
            address = services.auth.address(context.scope)
            rows = await find.run(context, [digest, None if address is None else address.decode()])
            try:
                return _claims(rows[0] if rows else [], options.login)
            except LoginRowError as error:
                log.error("Auth:ApiKey:Command: its row cannot be used: %s", error)
                raise Problem(500, "an API key cannot be looked up; the log of the service says why") from None

        key_sql, key_takes = number_placeholders(options.api_keys.command)

        # For open event streams. On a maintenance connection, because no request is running.
        async def watch_key(digest: str, address: str | None) -> bool:
            by_number = {1: digest, _ADDRESS: address}
            async with services.database.maintenance_connection() as connection:
                cursor = psycopg.AsyncRawCursor(connection)
                await cursor.execute(key_sql.encode(), [by_number.get(number) for number in key_takes])
                cells = _first_row(cursor.pgresult)
            try:
                return _claims(cells, options.login) is not None
            except LoginRowError as error:
                log.error("Auth:ApiKey:Command: its row cannot be used: %s", error)
                return False

        sessions.look_up, sessions.watch_key = look_up, watch_key
        sessions.looks_at = services.auth.address if _ADDRESS in find.takes else None
    if options.session_check is not None:
        ask = Command("Auth:SessionCheckCommand", options.session_check.command, services)

        async def check(context: RequestContext, number: str, owner: str) -> bool:
            rows = await ask.run(context, [number, owner])
            return bool(rows and rows[0] and rows[0][0].text == "t")

        sql, takes = number_placeholders(options.session_check.command)

        async def watch(number: str, owner: str) -> bool:
            by_number = {1: number, 2: owner}
            async with services.database.maintenance_connection() as connection:
                cursor = await psycopg.AsyncRawCursor(connection).execute(
                    sql.encode(), [by_number.get(n) for n in takes]
                )
                row = await cursor.fetchone()
            return row is not None and row[0] is True

        sessions.check, sessions.watch = check, watch
        external = options.external
        if external is not None and any(provider.back_channel for provider in external.providers):
            forget = sessions.forget_checks
            # Also if messages were lost, as one of them may have reported an end.
            services.host.message_bus.subscribe(SESSIONS_ENDED, lambda _message: forget(), forget)


def _claims(cells: Sequence[Cell], options: LoginOptions) -> tuple[Claim, ...] | None:
    """Return the claims of the key's owner, or None if the row names no owner or has another status than 200. Raises
    `LoginRowError` if the row cannot be used.
    """
    if all(cell.text is None for cell in cells):
        return None
    row = read_login_row(cells, options)
    return row.claims if row.status == 200 else None


def _first_row(result: PGresult | None) -> list[Cell]:
    """Return the first row as text, as the server printed it; empty if there is none.

    Callers only need to know whether it names an owner, so arrays are not distinguished.
    """
    if result is None or not result.ntuples:
        return []
    fields = range(result.nfields)
    values = [result.get_value(0, field) for field in fields]
    return [
        Cell(
            (result.fname(field) or b"").decode(),
            result.ftype(field),
            False,
            None if value is None else value.decode(),
            "",
        )
        for field, value in zip(fields, values, strict=True)
    ]
