"""Commands that run before every routine, in its transaction (execution-20, execution-21)."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from rowcall.core.data.record import Record


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


_SET_LOCAL = re.compile(r"(\s*set\s+)local(\s[^;]*;?\s*)", re.IGNORECASE)
_SET = re.compile(r"\s*set\s+(?!local\s|transaction\s|constraints\s)[^;]*;?\s*", re.IGNORECASE)
_CALL = (
    r"((?:pg_catalog\s*\.\s*)?set_config\s*\(\s*'[^']*'\s*,\s*(?:'[^']*'|\$\d+)"
    r"(?:\s*::\s*text)?\s*,\s*)({local})(\s*\))"
)
_LOCAL_CALL = _CALL.format(local="true|'t'|'true'")
_ANY_CALL = _CALL.format(local="true|'t'|'true'|false|'f'|'false'")
_SET_CONFIG = re.compile(rf"\s*select\s+{_LOCAL_CALL}(?:\s*,\s*{_LOCAL_CALL})*\s*;?\s*", re.IGNORECASE)
_SET_ANY_CONFIG = re.compile(rf"\s*select\s+{_ANY_CALL}(?:\s*,\s*{_ANY_CALL})*\s*;?\s*", re.IGNORECASE)
_ONE_CALL = re.compile(_LOCAL_CALL, re.IGNORECASE)


def ends_with_transaction(sql: str) -> bool:
    """Return whether the effect of a command is known to end with the transaction.

    That is so for `set local …` and `select set_config(…, true)`.
    """
    return _SET_LOCAL.fullmatch(sql) is not None or _SET_CONFIG.fullmatch(sql) is not None


def for_the_session(sql: str) -> str | None:
    """Return the command with an effect that lasts as long as the session, for a procedure that commits while it runs.

    None: the command has another form, so that its effects are unknown.
    """
    if _SET.fullmatch(sql):
        return sql
    if _SET_LOCAL.fullmatch(sql):
        return _SET_LOCAL.sub(r"\1session\2", sql)
    if _SET_ANY_CONFIG.fullmatch(sql):
        return _ONE_CALL.sub(r"\1false\3", sql)
    return None
