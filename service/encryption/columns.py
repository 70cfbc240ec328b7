"""`decrypt`: decrypt values of columns before they are rendered (protection-10, protection-11).

A value that cannot be decrypted stays as it is, without an error and without effect on its row: it was never encrypted,
or by a service with other keys. Elements of arrays and attributes of composites are decrypted individually.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from rowcall.core.endpoint.capabilities import Encryption
from rowcall.core.endpoint.endpoint import Endpoint, ResultColumn, ResultPath, ResultShape
from rowcall.core.text import array_literal, record_literal
from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.decrypted_rows import DecryptingWriter
from rowcall.service.encryption.binding import MARK, column_binding, open_bound, prefix, single_value_binding
from rowcall.service.log.entry import VERBOSE
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector
from rowcall.service.request_context.request_context import RequestContext, Step

log = logging.getLogger("rowcall")

PURPOSE = "columns"
"""Purpose of values without a binding: any endpoint can decrypt them."""
BOUND_PURPOSE = "bound columns"
"""Purpose of values that are bound to a column or a name (`binding`)."""

_SHORTEST = 60
"""Characters of the shortest sealed text: version, key, nonce and tag, in base64."""
_FIRST = b"A"
"""First character of sealed texts, which results from the version byte."""
_ASK_AGAIN = 1.0
"""Fewest seconds between two requests for a missing key."""

Open = Callable[[str], str]
Opener = Callable[[bytes], bytes]


def with_decrypted_columns(
    writer: BodyWriter | None, endpoint: Endpoint, shape: ResultShape, services: Services
) -> BodyWriter | None:
    """Return a writer that decrypts columns, or `writer` itself (also None) if the comment decrypts none or the service
    has no encryption.
    """
    openers = () if writer is None else _openers(endpoint, shape, services)
    return DecryptingWriter(writer, openers) if writer is not None and any(openers) else writer


def decrypt_cached_value(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that decrypts the result of a run or of the cache, so that the cache stores a single value as the
    database has it (protection-13). None: the comment decrypts none, or the body is not the text of one value, as with
    an array in JSON; then `with_decrypted_columns` decrypts before the result is stored.
    """
    shape = endpoint.shape
    if shape.path is not ResultPath.SCALAR or shape.is_set:
        return None
    oid = shape.columns[0].column.type_oid if shape.columns else endpoint.routine.return_type_oid
    if _is_array(oid, services.codecs) and not endpoint.options.raw:
        return None
    open_value = next(iter(_openers(endpoint, shape, services)), None)
    if open_value is None:
        return None

    def decrypt(context: RequestContext) -> None:
        execution = context.execution
        if execution is not None and execution.body and not execution.is_null:
            execution.body = open_value(execution.body)

    return decrypt


def _openers(endpoint: Endpoint, shape: ResultShape, services: Services) -> tuple[Opener | None, ...]:
    """Return the functions of `_openers_of_columns`; none if the comment decrypts nothing or the service has no
    encryption."""
    encryption = endpoint.options.encryption
    if encryption is None or not services.options.encrypts or not (encryption.all_columns or encryption.columns):
        return ()
    names = None if encryption.all_columns else frozenset(name.casefold() for name in encryption.columns)
    choice = _Choice(encryption, names, DecryptedColumns(services.auth.keys))
    return tuple(_openers_of_columns(endpoint, shape, choice, services.codecs))


class DecryptedColumns:
    """Decrypts single texts with the keys of the service."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._protector = Protector(keys, PURPOSE)
        self._bound_protector = Protector(keys, BOUND_PURPOSE)
        self._requested_at = 0.0

    def decrypter_for(self, binding: str) -> Open:
        """Return a function that decrypts texts with this binding or without any; if the binding is empty, all
        texts."""
        return partial(self.decrypt, start=prefix(binding) if binding else MARK)

    def decrypt(self, sealed: str, start: str = MARK) -> str:
        """Return the decrypted text, or `sealed` itself if it cannot be decrypted. If its key is unknown, also request
        another reading of the key ring (`_ask_for_keys`).

        start: how bound texts have to begin; those with another binding are not decrypted. Texts without a binding
        always are.
        """
        if len(sealed) < _SHORTEST or not sealed.startswith(("A", start)):
            return sealed
        try:
            if sealed.startswith("A"):
                return self._protector.open(sealed).decode()
            return open_bound(self._bound_protector, sealed).decode()
        except UnknownKeyError:
            self._ask_for_keys()
        except (SealError, UnicodeDecodeError) as error:
            log.log(VERBOSE, "a value is not decrypted: %s", error)
        return sealed

    def _ask_for_keys(self) -> None:
        """Request another reading of the key ring, at most once in `_ASK_AGAIN` seconds, because another host may have
        created the key a moment ago. Does not wait for it: later requests use the new keys."""
        now = time.monotonic()
        if self._keys.on_unknown is not None and now - self._requested_at >= _ASK_AGAIN:
            self._requested_at = now
            self._keys.on_unknown()


@dataclass(frozen=True, slots=True)
class _Choice:
    """The columns to decrypt, and the function for the texts of each."""

    encryption: Encryption
    names: frozenset[str] | None
    """None: all columns."""
    opened: DecryptedColumns

    def includes(self, column: ResultColumn) -> bool:
        return self.names is None or not column.names.isdisjoint(self.names)

    def of(self, column: ResultColumn) -> Open:
        return self.opened.decrypter_for(column_binding(self.encryption, column))


def _openers_of_columns(
    endpoint: Endpoint, shape: ResultShape, choice: _Choice, codecs: Codecs
) -> Iterator[Opener | None]:
    """Yield the function that decrypts the values of a column, for each column of the result, in order; None if it is
    not decrypted.
    """
    if not shape.columns:
        # A single value is decrypted, whatever names the comment has.
        open_text = choice.opened.decrypter_for(single_value_binding(choice.encryption))
        opener = _of_type(endpoint.routine.return_type_oid, codecs, open_text)
        yield None if opener is None else _in_bytes(opener)
        return
    single_column = shape.path is ResultPath.SCALAR
    for position, group in groupby(shape.columns, key=lambda column: column.position):
        columns = tuple(group)
        if position is None:
            for column in columns:
                included = single_column or choice.includes(column)
                opener = _of_type(column.column.type_oid, codecs, choice.of(column)) if included else None
                yield None if opener is None else _in_bytes(opener)
        else:
            yield _spread(columns, choice, codecs)


def _spread(columns: tuple[ResultColumn, ...], choice: _Choice, codecs: Codecs) -> Opener | None:
    """Return the function for a composite column whose attributes are rendered as columns; None: none of them is
    decrypted.
    """
    parts = [
        _of_type(column.column.type_oid, codecs, choice.of(column)) if choice.includes(column) else None
        for column in columns
    ]
    return _in_bytes(_composite(parts)) if any(parts) else None


def _of_type(oid: int, codecs: Codecs, open_text: Open) -> Open | None:
    """Return the function for values of this type, or None if they cannot contain a sealed text. open_text: decrypts
    one text.
    """
    kind, *about = codecs.definition(oid)
    match kind:
        case "domain":
            return _of_type(about[0], codecs, open_text)
        case "array":
            element = _of_type(about[0], codecs, open_text)
            return None if element is None else _array(element, chr(about[1]))
        case "composite":
            parts = [_of_type(attribute, codecs, open_text) for _, attribute in about[0]]
            return _composite(parts) if any(parts) else None
        case _:
            return open_text if about[0] else None


def _is_array(oid: int, codecs: Codecs) -> bool:
    """Return whether the type is an array, or a domain over one."""
    kind, *about = codecs.definition(oid)
    return _is_array(about[0], codecs) if kind == "domain" else kind == "array"


def _array(element: Open, delimiter: str) -> Open:
    """Return a function that decrypts the elements of an array, at every depth: from the text of an array to the text
    with decrypted elements. A text that is no array is returned unchanged. element: decrypts the text of one element.
    delimiter: between elements."""

    def decrypt_items(items: list[array_literal.Nested]) -> list[array_literal.Nested]:
        return [
            decrypt_items(item) if isinstance(item, list) else None if item is None else element(item) for item in items
        ]

    def open_elements(text: str) -> str:
        try:
            items = array_literal.parse(text, delimiter)
        except ValueError:
            return text
        opened = decrypt_items(items)
        return text if opened == items else array_literal.literal(opened, quoted=True, delimiter=delimiter)

    return open_elements


def _composite(parts: list[Open | None]) -> Open:
    """Return a function that decrypts the attributes of a composite: from the text of a composite to the text with
    decrypted attributes. A text that is no composite with this number of attributes is returned unchanged.

    parts: for each attribute, the function that decrypts its text; None: it stays unchanged.
    """

    def open_attributes(text: str) -> str:
        try:
            values = record_literal.attributes(text)
        except ValueError:
            return text
        if len(values) != len(parts):
            return text
        opened = [
            value if value is None or part is None else part(value) for value, part in zip(values, parts, strict=True)
        ]
        return text if opened == values else record_literal.literal(opened)

    return open_attributes


def _in_bytes(opener: Open) -> Opener:
    """Return a function that decrypts values as UTF-8 bytes with `opener`, which decrypts texts."""

    def open_value(value: bytes) -> bytes:
        text = value.decode()
        opened = opener(text)
        return value if opened is text or opened == text else opened.encode()

    return open_value
