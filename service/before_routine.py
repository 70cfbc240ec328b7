"""Runs the commands of `Service:BeforeRoutineCommands` in front of each call, in its segment (reference 01, 13)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rowcall.core.auth.commands import numbered
from rowcall.core.before_routine import BeforeCommand, BeforeValue, ValueSource, ends_with_transaction
from rowcall.core.config import Settings
from rowcall.core.endpoint import Endpoint
from rowcall.service.database.context import Command, Context
from rowcall.service.database.statements import statement_for
from rowcall.service.exchange import Exchange

if TYPE_CHECKING:
    from rowcall.service.handler import Services

log = logging.getLogger("rowcall.client")

KEY = "Service:BeforeRoutineCommands"
MOST_COMMANDS = 16
"""What one segment can take, with everything else that goes into it."""

_SOURCES = {source.value.casefold(): source for source in ValueSource}

ValueOf = Callable[[Exchange], bytes | None]


class _UnusableError(Exception):
    """Why a command is left out."""


def before_commands(settings: Settings) -> tuple[BeforeCommand, ...]:
    """In their order. One that cannot be used is left out as a whole, and named."""
    commands: list[BeforeCommand] = []
    for number, entry in enumerate(_items(settings.value(KEY))):
        try:
            commands += _command(entry, number)
        except _UnusableError as error:
            log.warning("%s:%d is left out: %s", KEY, number, error)
    if len(commands) > MOST_COMMANDS:
        log.warning("%s: only the first %d commands can be run", KEY, MOST_COMMANDS)
    return tuple(commands[:MOST_COMMANDS])


def _command(entry: Any, number: int) -> Iterator[BeforeCommand]:
    if not isinstance(entry, Mapping):
        if not str(entry or "").strip():
            raise _UnusableError("it is empty")
        yield BeforeCommand(str(entry))
        return
    values = {name.casefold(): value for name, value in entry.items()}
    if str(values.get("enabled") or "").casefold() not in ("true", "yes", "1"):
        log.info("%s:%d is not enabled", KEY, number)
        return
    sql = str(values.get("sql") or "")
    if not sql.strip():
        raise _UnusableError("it has no Sql")
    yield BeforeCommand(sql, tuple(_value(one) for one in _items(values.get("parameters"))))


def _items(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Mapping):
        return tuple(value.values())
    return tuple(value) if isinstance(value, tuple | list) else ()


def _value(entry: Any) -> BeforeValue:
    values = {name.casefold(): value for name, value in entry.items()} if isinstance(entry, Mapping) else {}
    source = _SOURCES.get(str(values.get("source") or "").casefold())
    if source is None:
        raise _UnusableError(f"the Source of a parameter is none of {', '.join(one.value for one in ValueSource)}")
    name = str(values.get("name") or "")
    if not name and source is not ValueSource.IP_ADDRESS:
        raise _UnusableError(f"a parameter from a {source.value} needs a Name")
    return BeforeValue(source, name)


def before_routine(_endpoint: Endpoint, services: Services) -> Context | None:
    """Last in the context: the commands may look at the settings."""
    commands = services.options.before
    return Context(commands=tuple(_compiled(command, services) for command in commands)) if commands else None


def _compiled(command: BeforeCommand, services: Services) -> Command:
    text, takes = numbered(command.sql, {})
    known = dict(enumerate((_source(value, services) for value in command.values), 1))
    sources = [known.get(number, _nothing) for number in takes]

    def values(exchange: Exchange) -> list[bytes | None]:
        return [source(exchange) for source in sources]

    return Command(statement_for(text, len(sources)), values, leaves_nothing=ends_with_transaction(command.sql))


def _nothing(_exchange: Exchange) -> None:
    """For a number without a value."""


def _source(value: BeforeValue, services: Services) -> ValueOf:
    """A value as text; None is NULL."""
    name = value.name
    if value.source is ValueSource.IP_ADDRESS:
        return lambda exchange: services.auth.address(exchange.scope)
    if value.source is ValueSource.CLAIM:
        return lambda exchange: None if exchange.user is None else exchange.user.texts.get(name)
    header = name.lower()
    return lambda exchange: _header(exchange, header)


def _header(exchange: Exchange, name: str) -> bytes | None:
    """Several of one name are joined by commas."""
    found = [value for key, value in exchange.scope.headers.items() if key == name]
    return ",".join(found).encode() if found else None
