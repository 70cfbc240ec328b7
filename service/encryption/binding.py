"""Binding of encrypted values: to a column of a table, or to a name that comments share (`encrypt _iban as NAME`).

A bound text consists of `B`, ten characters that identify the binding, and the encrypted value, which can only be
decrypted together with these eleven characters. If the origin of a result column is known, only values with its binding
are decrypted, so a text that was copied from another column stays encrypted. Texts that begin with `A` have no binding:
those of parameters of routines and files without a name, and everything that was encrypted before bindings existed.
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
    """Return the first characters of texts with this binding: the mark and 60 bits of a digest of the name, ignoring
    case.
    """
    digest = hashlib.sha256(binding.casefold().encode()).digest()
    return MARK + base64.urlsafe_b64encode(digest)[: SIZE - 1].decode()


def seal_bound(protector: Protector, data: bytes, start: str) -> str:
    """Encrypt `data`, and return the bound text. start: the first characters of the text, from `prefix`. Raises
    `NoKeyError`."""
    return start + protector.seal(data, start.encode())


def open_bound(protector: Protector, text: str) -> bytes:
    """Return the plaintext of a bound text. Raises `SealError`, `UnknownKeyError`."""
    return protector.open(text[SIZE:], text[:SIZE].encode())


def parameter_binding(endpoint: Endpoint, encryption: Encryption, parameter: EndpointParameter) -> str:
    """Return the binding of a parameter: the name in the comment, else the column that a table endpoint writes; empty
    if neither is known."""
    names = dict(encryption.parameter_bindings)
    binding = names.get(parameter.db_name) or names.get("")
    if binding:
        return binding
    source = endpoint.routine.source
    if isinstance(source, TableOperation) and parameter.position < len(source.columns):
        return table_column(source.table, source.columns[parameter.position])
    return ""


def column_binding(encryption: Encryption, column: ResultColumn) -> str:
    """Return the binding of a column: the name in the comment, else the column of origin; empty if neither is known."""
    names = dict(encryption.column_bindings)
    binding = next((names[name] for name in column.names if name in names), "") or names.get("", "")
    return binding or (column.group or column.column).table_column


def single_value_binding(encryption: Encryption) -> str:
    """Return the binding of a result that is one value: the first one in the comment, whatever name it is for; empty if
    the comment has none."""
    return next((binding for _, binding in encryption.column_bindings), "")
