"""What happens in the transaction of a routine before it: commands (execution-20, execution-21), and its tenant."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from rowcall.core.data.record import Record
from rowcall.core.endpoint.capabilities import Tenant, ValuePlace


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

    That is so for `set local …`, and for `select` of one or more calls `set_config(…, true)` whose name is a literal
    and whose value is a literal or a parameter; with another expression, the effects are unknown.
    """
    return _SET_LOCAL.fullmatch(sql) is not None or _SET_CONFIG.fullmatch(sql) is not None


def for_the_session(sql: str) -> str | None:
    """Return the command in a form whose effect lasts as long as the session, for a procedure that commits while it
    runs.

    `set …` is returned unchanged, `set local …` as `set session …`, and `select set_config(…)`, if its arguments are
    literals or parameters, with false as the third one. None: the command has another form, so that its effects are
    unknown.
    """
    if _SET.fullmatch(sql):
        return sql
    if _SET_LOCAL.fullmatch(sql):
        return _SET_LOCAL.sub(r"\1session\2", sql)
    if _SET_ANY_CONFIG.fullmatch(sql):
        return _ONE_CALL.sub(r"\1false\3", sql)
    return None


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
