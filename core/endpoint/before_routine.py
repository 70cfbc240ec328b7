"""Commands that run (execution-20, execution-21), and the tenant that is set, in the transaction of a routine before
it."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rowcall.core.data.record import Record
from rowcall.core.endpoint.capabilities import Tenant, ValuePlace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowcall.core.text.sql_lexer import Token


class ValueSource(enum.Enum):
    """Where the value for a command comes from."""

    CLAIM = "Claim"
    REQUEST_HEADER = "RequestHeader"
    IP_ADDRESS = "IpAddress"


@dataclass(frozen=True, slots=True)
class BeforeValue(Record):
    """A value for a command. name: type of a claim, or name of a header; empty for an address."""

    source: ValueSource
    name: str = ""


@dataclass(frozen=True, slots=True)
class BeforeCommand(Record):
    """A command. values: those of its parameters `$1`, `$2` and so on."""

    sql: str
    values: tuple[BeforeValue, ...] = ()


def use_claims(commands: Sequence[BeforeCommand]) -> bool:
    """Return whether one of the commands gets a claim of the caller."""
    return any(value.source is ValueSource.CLAIM for command in commands for value in command.values)


_CALL = (
    r"((?:pg_catalog\s*\.\s*)?set_config\s*\(\s*'{name}'\s*,\s*(?:'[^']*'|\$\d+)"
    r"(?:\s*::\s*text)?\s*,\s*)({local})(\s*\))"
)
_FLAGS = re.IGNORECASE | re.ASCII
_TRUE = "true|'t'|'true'"
_LASTING_NAME = r"(?!transaction_(?:isolation|read_only|deferrable)')[^']*"
_LOCAL_CALL = _CALL.format(name="[^']*", local=_TRUE)
_ANY_CALL = _CALL.format(name=_LASTING_NAME, local=f"{_TRUE}|false|'f'|'false'")
_SET_CONFIG = re.compile(rf"\s*select\s+{_LOCAL_CALL}(?:\s*,\s*{_LOCAL_CALL})*\s*;?\s*", _FLAGS)
_SET_ANY_CONFIG = re.compile(rf"\s*select\s+{_ANY_CALL}(?:\s*,\s*{_ANY_CALL})*\s*;?\s*", _FLAGS)
_ONE_CALL = re.compile(_LOCAL_CALL, _FLAGS)
_ENDING = frozenset(
    {"transaction", "constraints", "transaction_isolation", "transaction_read_only", "transaction_deferrable"}
)
"""What SET changes for the current transaction only, whether as LOCAL or as SESSION."""


class _SetCommand(NamedTuple):
    """A SET command. local: its word LOCAL; None without it. lasts: without LOCAL, it lasts as long as the session."""

    local: Token | None
    lasts: bool


def _set_command(sql: str) -> _SetCommand | None:
    """Parse a SET command; None if the text is another command, several ones, or ambiguous."""
    # Imported only for commands, which few services have, because each worker imports this module.
    from rowcall.core.text.sql_lexer import Kind, tokens

    blank = (Kind.SPACE, Kind.LINE_COMMENT, Kind.BLOCK_COMMENT)
    written = [token for token in tokens(sql) if token.kind not in blank]
    while written and written[-1].kind is Kind.SEMICOLON:
        written.pop()
    words = [sql[token.start : token.end].lower() for token in written]
    if len(words) < 3 or words[0] != "set" or any(token.kind is Kind.SEMICOLON for token in written):
        return None

    def names(index: int) -> bool:
        """Whether a keyword is the first part of a setting's name: `set local.x = 1` lasts as long as the session."""
        return "".join(words[index + 1 : index + 2]).startswith(".")

    scoped = words[1] in ("local", "session") and not names(1)
    local = written[1] if scoped and words[1] == "local" else None
    place = 2 if scoped else 1
    name = words[place]
    if written[place].kind is Kind.QUOTED_NAME and not name.startswith("u&"):
        name = name.strip('"')
    elif written[place].kind is not Kind.WORD:
        return None
    return _SetCommand(local, lasts=name not in _ENDING or names(place))


def ends_with_transaction(sql: str) -> bool:
    """Return whether the effect of a command is known to end with the transaction.

    True for `set local …`, and for `select` of one or more calls `set_config(…, true)` whose name is a literal and
    whose value is a literal or a parameter. False for all other commands, whose effects may last longer or are unknown.
    """
    command = _set_command(sql)
    return _SET_CONFIG.fullmatch(sql) is not None if command is None else command.local is not None


def for_the_session(sql: str) -> str | None:
    """Return the command in a form whose effect lasts as long as the session, for a procedure that commits while it
    runs.

    `set …` is returned unchanged, `set local …` as `set session …`, and `select set_config(…)`, if its arguments are
    literals or parameters, with false as the third one. None: the setting exists for a transaction only (`set
    transaction …`), or the command is none of these, so that its effects are unknown.
    """
    command = _set_command(sql)
    if command is not None:
        if not command.lasts:
            return None
        local = command.local
        return sql if local is None else f"{sql[: local.start]}session{sql[local.end :]}"
    return _ONE_CALL.sub(r"\1false\3", sql) if _SET_ANY_CONFIG.fullmatch(sql) else None


_TENANT = re.compile(
    r"from\s+(?:(?P<place>claim|header)\s+(?P<name>\S+)|host(?:\s+(?P<host>(?!as\s)\S+))?)"
    r"(?:\s+as\s+(?:setting\s+(?P<setting>\S+)|search_path(?:\s+(?P<schemas>.+))?"
    r"|connection(?:\s+(?P<connection>\S+))?))?",
    re.IGNORECASE,
)
_TENANT_SETTING = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_SCHEMA = re.compile(r"[A-Za-z_0-9$-]*(?:\{0\}[A-Za-z_0-9$-]*)?")
_CONNECTION = re.compile(r"\sas\s+connection\b", re.IGNORECASE)
_SEARCH_PATH = re.compile(r"\sas\s+search_path\b", re.IGNORECASE)


def tenant_from(text: str) -> Tenant:
    """Return the tenant that a text describes, such as `from claim org_id as search_path tenant_{0}`. Raises
    `ValueError` if it has another form."""
    match = _TENANT.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"'{text}' is none of: from claim <claim>, from header <header>, from host [<pattern>]; then as setting "
            "<name>, as search_path <schema>, ... or as connection <name>"
        )
    place = ValuePlace((match["place"] or "host").lower())
    name = match["name"] or (match["host"] or "*").lower()
    if place is ValuePlace.HOST and name.count("*") != 1:
        raise ValueError(f"'{name}' is no pattern of host names with one *, such as *.example.com")
    if _CONNECTION.search(text):
        connection = match["connection"] or "{0}"
        if connection.count("{0}") != 1:
            raise ValueError(f"'{connection}' is no name of a connection with one {{0}}, such as shop_{{0}}")
        return Tenant(place, name, "", connection=connection)
    if not _SEARCH_PATH.search(text):
        setting = match["setting"] or "request.tenant"
        if not _TENANT_SETTING.fullmatch(setting):
            raise ValueError(f"'{setting}' is no setting with a dot in its name, such as app.tenant")
        return Tenant(place, name, setting)
    schemas = tuple(part.strip() for part in (match["schemas"] or "{0}, public").split(","))
    if not all(part and _SCHEMA.fullmatch(part) for part in schemas) or "{0}" not in schemas[0]:
        raise ValueError("search_path takes names of schemas, of which the first one contains {0}: tenant_{0}, public")
    return Tenant(place, name, "", schemas)
