"""Checks the configuration against the databases at the start: otherwise the first user of a capability would meet the
error.

SQL commands of the configuration are prepared and not run; errors are logged with the configuration key.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import psycopg
from psycopg import generators
from psycopg.pq import DiagnosticField, ExecStatus

from rowcall.core.auth.commands import VALID, number_placeholders
from rowcall.core.auth.external.options import UNTYPED
from rowcall.core.auth.passkeys import PasskeyOptions
from rowcall.core.building.service import ServiceOptions
from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.connector import Connector
from rowcall.service.discovery.installation import read_installation
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.reading.places import MAIN, Places
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_SCHEMAS = "Service:IncludeSchemas"

_MISTAKES = ("42", "3F")
"""Classes of errors in the text of a command: syntax errors and unknown names."""
_UNSURE = frozenset({"42725", "42P18"})
"""Errors that depend on the types of values, which are only known when the command runs."""


class _Command(NamedTuple):
    """A command of the configuration. key: its configuration key, or the annotation that contains it."""

    key: str
    sql: str
    types: Mapping[int, str] | None = {}
    """As in `core.auth.commands.number_placeholders`."""


async def check_statistics_pattern(options: WorkerOptions) -> None:
    """Check `Stats:SchemaSimilarTo` in PostgreSQL: with an invalid pattern, each report would fail with 500.

    Raises `StartupError` for an invalid pattern. If the connection cannot be opened, logs a warning.
    """
    statistics = options.statistics
    if statistics is None or statistics.schemas is None:
        return
    try:
        async with await Connector(statistics.target).open_plain() as connection:
            await connection.execute("select '' similar to %s::text", (statistics.schemas,))
    except psycopg.errors.DataError as error:
        message = f"Stats:SchemaSimilarTo {statistics.schemas!r} is not a pattern: {error.diag.message_primary}"
        raise StartupError(message) from None
    except (psycopg.Error, OSError) as error:
        log.warning("Stats:SchemaSimilarTo cannot be checked: %s", " ".join(str(error).split()))


def report_empty_schemas(settings: Settings, endpoints: Sequence[Endpoint]) -> None:
    """Warn of configured schemas without an endpoint, because a misspelt name has no other symptom."""
    served = {endpoint.routine.schema for endpoint in endpoints}
    for schema in settings.read(ServiceOptions).include_schemas or ():
        if schema not in served:
            log.warning(
                "%s names %s, where no endpoint is found: is the schema spelled so? Case counts", _SCHEMAS, schema
            )


def stored_features(options: WorkerOptions) -> Iterator[str]:
    """Yield the configuration keys (`Jobs:Enabled`) of enabled capabilities that use restricted functions of the schema
    `rowcall`."""
    enabled = {
        "Jobs:Enabled": options.jobs is not None,
        "Webhooks:Enabled": options.deliveries is not None,
        "Mail:Enabled": options.mail.enabled,
        "Auth:SecondFactor:Enabled": options.auth.second_factor is not None,
    }
    return (key for key, is_enabled in enabled.items() if is_enabled)


async def report_missing_rights(options: WorkerOptions, connector: Connector) -> None:
    """Warn of enabled capabilities whose functions in the schema `rowcall` the role of the service may not execute.
    connector: of the main database. If it cannot be read, nothing is reported.
    """
    features = [*stored_features(options)]
    if not features:
        return
    try:
        async with await connector.open_plain() as connection:
            installation = await read_installation(connection)
    except psycopg.Error as error:
        log.debug("the schema rowcall cannot be read: %s", str(error).strip())
        return
    for key, right in installation.missing_rights(features):
        log.warning("%s needs a right: %s", key, right)


async def report_refused_commands(
    settings: Settings, options: WorkerOptions, places: Places, endpoints: Iterable[Endpoint]
) -> None:
    """Log the SQL commands of the configuration, and of annotations of the endpoints, that their databases refuse for
    an error in the text, an unknown name or a missing right. If a database cannot be reached, nothing is reported for
    it."""
    commands = [*_main_commands(settings, options, endpoints)]
    passkeys = options.passkeys
    others = [] if passkeys is None else [*_passkey_commands(passkeys)]
    if passkeys is not None and passkeys.connection is not None:
        await _report_refused(places.connector(passkeys.connection.casefold()), others)
        others = []
    await _report_refused(places.connector(MAIN), [*commands, *others])


def _main_commands(settings: Settings, options: WorkerOptions, endpoints: Iterable[Endpoint]) -> Iterator[_Command]:
    """Yield the commands that run on the main connection, except those of passkeys."""
    auth = options.auth
    of_keys = {
        "Service:AuthenticationOptions:PasswordVerificationFailedCommand": auth.login.failed_command,
        "Service:AuthenticationOptions:PasswordVerificationSucceededCommand": auth.login.succeeded_command,
        "Auth:ApiKey:Command": None if auth.api_keys is None else auth.api_keys.command,
        "Auth:SessionCheckCommand": None if auth.session_check is None else auth.session_check.command,
    }
    yield from (_Command(key, sql) for key, sql in of_keys.items() if sql)
    basic = {VALID: "boolean"}
    if auth.basic.command:
        yield _Command("Service:AuthenticationOptions:BasicAuth:ChallengeCommand", auth.basic.command, basic)
    for endpoint in endpoints:
        basic_auth = endpoint.options.basic_auth
        if basic_auth is not None and basic_auth.command and endpoint.options.connection is None:
            yield _Command(f"{endpoint.routine.identity}: basic_auth_command", basic_auth.command, basic)
    if auth.external is not None and auth.external.providers:
        yield _Command("Auth:External:LoginCommand", auth.external.command, UNTYPED)
        if any(provider.back_channel for provider in auth.external.providers):
            yield _Command("Auth:External:BackChannelLogoutCommand", auth.external.logout_command)
    if auth.schemes and auth.refresh_tokens.single_use and auth.refresh_tokens.use_command:
        yield _Command("Auth:RefreshTokenUseCommand", auth.refresh_tokens.use_command, None)
    yield from (_Command("Service:BeforeRoutineCommands", before.sql) for before in options.before)


def _passkey_commands(options: PasskeyOptions) -> Iterator[_Command]:
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
    yield from (_Command(f"Auth:PasskeyAuth:{key}", sql, None) for key, sql, path in candidates if path)


async def _report_refused(connector: Connector, commands: Sequence[_Command]) -> None:
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


async def _refusal(connection: psycopg.AsyncConnection[tuple[object, ...]], command: _Command) -> str | None:
    """Prepare a command, and return the SQLSTATE and message of PostgreSQL if its text has an error; otherwise None."""
    text, _ = number_placeholders(command.sql, command.types)
    connection.pgconn.send_prepare(b"", text.encode())
    for result in await connection.wait(generators.execute(connection.pgconn)):
        if result.status == ExecStatus.FATAL_ERROR:
            state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
            if state.startswith(_MISTAKES) and state not in _UNSURE:
                message = result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b""
                return f"{state}: {message.decode(errors='replace')}"
    return None
