"""Cursors: positions in an ordered result, sealed with the key ring, so that they are opaque and cannot be made up.

A cursor belongs to one endpoint and one order. It contains no conditions and gives no rights: every request is
authorized and filtered like the first one.
"""

from __future__ import annotations

import orjson

from rowcall.core.postgrest.request.tree import OrderTerm
from rowcall.core.queryable.language import Language
from rowcall.core.queryable.request import Position, order_text
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector


class Cursors:
    """Makes and opens the cursors of one endpoint."""

    def __init__(self, keys: Keys, language: Language) -> None:
        self._protector = Protector(keys, "cursors")
        self._language = language

    def start(self, order: tuple[OrderTerm, ...]) -> bytes:
        """Return the first part of the content of a cursor, which is the same for all rows in this order; `seal` adds
        the position."""
        return orjson.dumps([self._language.endpoint.name, order_text(order)])[:-1] + b","

    def seal(self, start: bytes, position: bytes) -> str:
        """Return the cursor of a row. start: from `start`. position: JSON array of texts. Raises `NoKeyError`."""
        return self._protector.seal(start + position + b"]")

    def open(self, key: str, cursor: str, order: tuple[OrderTerm, ...]) -> Position:
        """Return the position of a cursor. key: name of its parameter, for messages. Raises `BindingError` (see
        `core.queryable.request.OpenCursor`), and `UnknownKeyError` if the key ring has to be read again first.
        """
        language = self._language
        try:
            endpoint, order_of_cursor, values = orjson.loads(self._protector.open(cursor))
        except UnknownKeyError:
            raise
        except (SealError, ValueError):
            raise language.invalid(key, "it is no cursor of this service; take it from the Link header") from None
        if endpoint != language.endpoint.name:
            raise language.invalid(key, f"its cursor is one of {endpoint}")
        if order_of_cursor != order_text(order):
            raise language.invalid(key, "its cursor is one for another order; begin with the first page")
        return Position(tuple(values))

    def open_after_reading(self, key: str, cursor: str, order: tuple[OrderTerm, ...]) -> Position:
        """Return the position of a cursor as `open` does, after the key ring was read again: a key that is still
        unknown is a `BindingError`."""
        try:
            return self.open(key, cursor, order)
        except UnknownKeyError:
            raise self._language.invalid(key, "its cursor has expired; begin with the first page") from None
