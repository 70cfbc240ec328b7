"""Checks the SQL commands of the configuration at the start: errors are logged with the configuration key.

The commands are prepared and not run. Otherwise a user who signs in would be the first to meet an error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import psycopg
from psycopg import generators
from psycopg.pq import DiagnosticField, ExecStatus

from rowcall.core.auth.commands import VALID, numbered
from rowcall.core.auth.external.options import UNTYPED
from rowcall.core.auth.passkeys import PasskeyOptions
from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.connector import Connector
from rowcall.service.options.worker import WorkerOptions

log = logging.getLogger("rowcall")

_MISTAKES = ("42", "3F")
"""Classes of errors in the text of a command: syntax errors and unknown names."""
_UNSURE = frozenset({"42725", "42P18"})
"""Errors that depend on the types of values, which are only known when the command runs."""


class ConfiguredCommand(NamedTuple):
    key: str
    sql: str
    types: Mapping[int, str] | None = {}
    """As in `core.auth.commands.numbered`."""


def main_commands(
    settings: Settings, options: WorkerOptions, endpoints: Iterable[Endpoint]
) -> Iterator[ConfiguredCommand]:
    """Yield the commands that run on the main connection."""
    auth = options.auth
    of_keys = {
        "Service:AuthenticationOptions:PasswordVerificationFailedCommand": auth.login.failed_command,
        "Service:AuthenticationOptions:PasswordVerificationSucceededCommand": auth.login.succeeded_command,
        "Auth:ApiKey:Command": None if auth.api_keys is None else auth.api_keys.command,
        "Auth:SessionCheckCommand": None if auth.session_check is None else auth.session_check.command,
    }
    yield from (ConfiguredCommand(key, sql) for key, sql in of_keys.items() if sql)
    basic = {VALID: "boolean"}
    if auth.basic.command:
        yield ConfiguredCommand("Service:AuthenticationOptions:BasicAuth:ChallengeCommand", auth.basic.command, basic)
    for endpoint in endpoints:
        basic_auth = endpoint.options.basic_auth
        if basic_auth is not None and basic_auth.command and endpoint.options.connection is None:
            yield ConfiguredCommand(f"{endpoint.routine.identity}: basic_auth_command", basic_auth.command, basic)
    if auth.external is not None and auth.external.providers:
        yield ConfiguredCommand("Auth:External:LoginCommand", auth.external.command, UNTYPED)
        if any(provider.back_channel for provider in auth.external.providers):
            yield ConfiguredCommand("Auth:External:BackChannelLogoutCommand", auth.external.logout_command)
    if auth.schemes and auth.single_use and (use := settings.text_or_none("Auth:RefreshTokenUseCommand")):
        yield ConfiguredCommand("Auth:RefreshTokenUseCommand", use, None)
    yield from (ConfiguredCommand("Service:BeforeRoutineCommands", before.sql) for before in options.before)


def passkey_commands(options: PasskeyOptions) -> Iterator[ConfiguredCommand]:
    """Yield the commands of the passkey endpoints that exist."""
    paths, commands = options.paths, options.commands
    candidates = (
        ("ChallengeAddExistingUserCommand", commands.challenge_add, paths.add_options),
        ("ChallengeRegistrationCommand", commands.challenge_register, paths.register_options),
        ("ChallengeAuthenticationCommand", commands.challenge_login, paths.login_options),
        ("VerifyChallengeCommand", commands.verify, paths.add or paths.register or paths.login),
        ("AuthenticateDataCommand", commands.credential, paths.login),
        ("CompleteAddExistingUserCommand", commands.complete_add, paths.add),
        ("CompleteRegistrationCommand", commands.complete_register, paths.register),
        ("CompleteAuthenticateCommand", commands.complete_login, paths.login),
    )
    yield from (ConfiguredCommand(f"Auth:PasskeyAuth:{key}", sql, None) for key, sql, path in candidates if path)


async def report_refused(connector: Connector, commands: Sequence[ConfiguredCommand]) -> None:
    """Log the commands that the database refuses. An unavailable database is not reported here."""
    if not commands:
        return
    try:
        async with connector.maintenance_connection() as connection:
            for command in commands:
                if (refusal := await _refusal(connection, command)) is not None:
                    log.warning("%s cannot run: %s", command.key, refusal)
    except psycopg.Error as error:
        log.debug("commands of the configuration cannot be prepared: %s", str(error).strip())


async def _refusal(connection: psycopg.AsyncConnection[tuple[object, ...]], command: ConfiguredCommand) -> str | None:
    text, _ = numbered(command.sql, command.types)
    connection.pgconn.send_prepare(b"", text.encode())
    for result in await connection.wait(generators.execute(connection.pgconn)):
        if result.status == ExecStatus.FATAL_ERROR:
            state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
            if state.startswith(_MISTAKES) and state not in _UNSURE:
                message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b""
                return f"{state}: {message.decode(errors='replace')}"
    return None
