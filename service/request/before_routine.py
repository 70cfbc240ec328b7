"""Runs the commands of `Service:BeforeRoutineCommands` in front of each call, in its segment (execution-21)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rowcall.core.auth.commands import number_placeholders
from rowcall.core.endpoint.before_routine import (
    BeforeCommand,
    BeforeValue,
    ValueSource,
    ends_with_transaction,
    for_the_session,
)
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.ext.driver.execution import Statement
from rowcall.service.database.preamble import Command, Preamble
from rowcall.service.database.statements import numbers, statement_for
from rowcall.service.request_context.header_values import read_header_lines
from rowcall.service.request_context.request_context import RequestContext

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


ValueOf = Callable[[RequestContext], bytes | None]


Prepare = Callable[[str, int], Statement]
"""Returns the statement of an SQL text with this number of values."""


def commands_before_routine(endpoint: Endpoint, services: Services) -> Preamble | None:
    """Return the commands as the last part of the preamble, so that they can read its settings; None: there are no
    commands.
    """
    commands = services.options.before
    # Roles share no prepared statement (`service.auth.database_role`).
    prepare = _new_statement if endpoint.options.role_from_claim else statement_for
    return (
        Preamble(commands=tuple(_compile_command(command, services, prepare) for command in commands))
        if commands
        else None
    )


def _new_statement(text: str, values: int) -> Statement:
    return Statement(next(numbers), text.encode(), values)


def _compile_command(command: BeforeCommand, services: Services, prepare: Prepare) -> Command:
    """Return the command with its statement, and the function that reads its values from a request."""
    text, takes = number_placeholders(command.sql, {})
    readers = dict(enumerate((value_of(value, services) for value in command.values), 1))
    sources = [readers.get(number, _null) for number in takes]

    def values(context: RequestContext) -> list[bytes | None]:
        return [source(context) for source in sources]

    lasting = for_the_session(text)
    return Command(
        prepare(text, len(sources)),
        values,
        has_no_session_effects=ends_with_transaction(command.sql),
        lasting=None if lasting is None else prepare(lasting, len(sources)),
    )


def _null(_context: RequestContext) -> None:
    """Return NULL for a parameter number without a value."""


def value_of(value: BeforeValue, services: Services) -> ValueOf:
    """Return the function that reads a value of a command from a request, as text; None is NULL."""
    name = value.name
    if value.source is ValueSource.IP_ADDRESS:
        return lambda context: services.auth.address(context.scope)
    if value.source is ValueSource.CLAIM:
        return lambda context: None if context.user is None else context.user.texts.get(name)
    header = name.lower()
    return lambda context: _header(context, header)


def _header(context: RequestContext, name: str) -> bytes | None:
    """Return the values of a header, several joined by commas; None: the request does not have it. name: in lower
    case.
    """
    headers = read_header_lines(context.scope.headers, name)
    return ",".join(headers).encode() if headers else None
