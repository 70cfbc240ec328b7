"""Read `Service:BeforeRoutineCommands`: commands that run before every routine (execution-20)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from rowcall.core.endpoint.before_routine import BeforeCommand, BeforeValue, ValueSource
from rowcall.core.sections.keys import JsonValue

log = logging.getLogger("rowcall.client")

KEY = "Service:BeforeRoutineCommands"
MOST_COMMANDS = 16
"""The number of commands that fit into one segment together with its other statements."""

_SOURCES = {source.value.casefold(): source for source in ValueSource}


class _UnusableError(Exception):
    """A command cannot be used; the message is the reason."""


def parse_before_commands(configured: JsonValue) -> tuple[BeforeCommand, ...]:
    """Return the enabled commands in the configured order, at most `MOST_COMMANDS`. An unusable command is left out
    completely, with a warning.

    configured: value of the key `KEY`; each item is a text of SQL, or has Enabled, Sql and Parameters.
    """
    commands: list[BeforeCommand] = []
    for number, entry in enumerate(_items(configured)):
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
    yield BeforeCommand(sql, tuple(_value(item) for item in _items(values.get("parameters"))))


def _items(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Mapping):
        return tuple(value.values())
    return tuple(value) if isinstance(value, tuple | list) else ()


def _value(entry: Any) -> BeforeValue:
    values = {name.casefold(): value for name, value in entry.items()} if isinstance(entry, Mapping) else {}
    source = _SOURCES.get(str(values.get("source") or "").casefold())
    if source is None:
        raise _UnusableError(f"the Source of a parameter is none of {', '.join(kind.value for kind in ValueSource)}")
    name = str(values.get("name") or "")
    if not name and source is not ValueSource.IP_ADDRESS:
        raise _UnusableError(f"a parameter from a {source.value} needs a Name")
    return BeforeValue(source, name)
