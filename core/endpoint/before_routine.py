"""Commands that run before every routine, in its transaction (reference 01, 13)."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from rowcall.core.data.record import Record


class ValueSource(enum.Enum):
    CLAIM = "Claim"
    REQUEST_HEADER = "RequestHeader"
    IP_ADDRESS = "IpAddress"


@dataclass(frozen=True, slots=True)
class BeforeValue(Record):
    """name: type of a claim, or name of a header; empty for an address."""

    source: ValueSource
    name: str = ""


@dataclass(frozen=True, slots=True)
class BeforeCommand(Record):
    """values: those of `$1`, `$2` and so on."""

    sql: str
    values: tuple[BeforeValue, ...] = ()


_SET_LOCAL = re.compile(r"\s*set\s+local\s[^;]*;?\s*", re.IGNORECASE)
_SET_CONFIG = re.compile(
    r"\s*select\s+(?:pg_catalog\s*\.\s*)?set_config\s*\(\s*'[^']*'\s*,\s*(?:'[^']*'|\$\d+)\s*,\s*(?:true|'t'|'true')\s*\)\s*;?\s*",
    re.IGNORECASE,
)


def ends_with_transaction(sql: str) -> bool:
    """The command is one of the two forms that leave nothing behind: `set local …`, `select set_config(…, true)`."""
    return _SET_LOCAL.fullmatch(sql) is not None or _SET_CONFIG.fullmatch(sql) is not None
