"""What an encrypted value is bound to: a column of a table, or a name that comments share (`encrypt _iban as NAME`).

A bound text is `B`, ten characters that identify the binding, and a sealed text with these characters as authenticated
context. Where a result column's origin is known, only values bound to it are decrypted, so a text that was copied from
another column stays as it is. Texts that begin with `A` are bound to nothing: those of parameters of routines and files
without a name, and everything that was sealed before bindings existed.
"""

from __future__ import annotations

import base64
import hashlib

from rowcall.core.endpoint.capabilities import Encryption
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultColumn
from rowcall.core.tables.routines import TableOperation, table_column
from rowcall.service.protection.protector import Protector

MARK = "B"
SIZE = 1 + 10
"""Characters in front of the sealed text: the mark and the identifier."""


def prefix(binding: str) -> str:
    """What texts with this binding begin with: the mark and 60 bits of a digest of the name, in any case."""
    digest = hashlib.sha256(binding.casefold().encode()).digest()
    return MARK + base64.urlsafe_b64encode(digest)[: SIZE - 1].decode()


def seal_bound(protector: Protector, data: bytes, start: str) -> str:
    """start: as `prefix` returns it. Raises `NoKeyError`."""
    return start + protector.seal(data, start.encode())


def open_bound(protector: Protector, text: str) -> bytes:
    """Raises `SealError`, `UnknownKeyError`."""
    return protector.open(text[SIZE:], text[:SIZE].encode())


def parameter_binding(endpoint: Endpoint, wanted: Encryption, parameter: EndpointParameter) -> str:
    """The name that the comment gives, else the column that a table endpoint writes; empty if neither is known."""
    names = dict(wanted.parameter_bindings)
    shared = names.get(parameter.db_name) or names.get("")
    if shared:
        return shared
    source = endpoint.routine.source
    if isinstance(source, TableOperation) and parameter.position < len(source.columns):
        return table_column(source.table, source.columns[parameter.position])
    return ""


def column_binding(wanted: Encryption, column: ResultColumn) -> str:
    """The name that the comment gives, else the column that the values come from; empty if neither is known."""
    names = dict(wanted.column_bindings)
    shared = next((names[name] for name in column.names if name in names), "") or names.get("", "")
    return shared or (column.group or column.column).table_column


def single_value_binding(wanted: Encryption) -> str:
    """Of a result that is one value, whose name in the comment does not matter."""
    return next((binding for _, binding in wanted.column_bindings), "")
