"""From a request to the arguments of a call: the rules, one after another (reference 01, 6 and 7).

A `Binder` is made once for each endpoint and is pure. It is the judge: its hot twin `ext.parameters.FastBinder` gives
the same result or none at all, and then this one decides. Values leave as the texts libpq sends, NULL as None.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from rowcall.core import json_text, query_text
from rowcall.core.array_literal import MAX_DIMENSIONS, ArrayShapeError, Nested, literal
from rowcall.core.conversion import MAX_NUMBER_LENGTH, Converter, NotConvertible, converter
from rowcall.core.endpoint import EndpointParameter, QueryNull, Transport, ValueKind

_VERBATIM = frozenset({ValueKind.TEXT, ValueKind.JSON, ValueKind.OTHER})
_NUMBERS = frozenset({ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.FLOAT, ValueKind.NUMERIC})
_EMPTY_IS_TEXT = frozenset({ValueKind.TEXT, ValueKind.JSON})
_BARE_IN_ARRAYS = _NUMBERS | {ValueKind.BOOLEAN, ValueKind.UUID}
_SHOWN = 60


class _Absent(enum.Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
_Value: TypeAlias = "str | Literal[_Absent.ABSENT] | None"
_Nothing: Mapping[str, str] = MappingProxyType({})


class Binding(NamedTuple):
    """The arguments of one call. Equal to the plain tuple that `ext.parameters.FastBinder` gives."""

    mask: int
    """Bit i is set when parameter i is in the call."""
    values: list[bytes | None]
    """Texts of the parameters in the call, in their order; None is NULL."""
    has_null: bool
    """Some value is NULL: a STRICT routine need not be called."""


class BindingError(Exception):
    """The request cannot be bound. `status` follows reference 01, 7.8; `detail` is for the caller."""

    def __init__(self, status: int, detail: str, parameter: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.parameter = parameter
        """API name of the parameter, or the unknown key, where there is one."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A parameter with what is known about it beforehand."""

    parameter: EndpointParameter
    convert: Converter
    delimiter: str
    default: _Value
    """What is bound when the request has nothing usable; `ABSENT`: see `optional`."""
    optional: bool
    """The argument may be left out of the call."""

    @classmethod
    def of(cls, parameter: EndpointParameter, default: _Value, timestamps_utc: bool) -> _Slot:
        element = parameter.type_text.removesuffix("[]")
        if default is ABSENT and parameter.defaulted:
            default = parameter.default
        return cls(
            parameter,
            converter(parameter.kind, element, timestamps_utc=timestamps_utc),
            ";" if element == "box" else ",",
            default,
            parameter.has_default and parameter.attribute is None,
        )


class Binder:
    """Binds requests of one endpoint. Every `bind` method raises `BindingError`.

    `path_values` holds texts that win over query and body, by API name: the decoded path segments, and the whole body
    of an endpoint with a raw body parameter.
    """

    def __init__(
        self,
        parameters: Sequence[EndpointParameter],
        transport: Transport,
        query_null: QueryNull,
        timestamps_utc: bool = True,
        *,
        defaults: Mapping[int, str | None] = MappingProxyType({}),
    ) -> None:
        """`defaults`: texts bound explicitly for parameters (by index) that the request has nothing usable for; they
        win over the defaults of annotations. None for values that the service fills in afterwards."""
        self._transport = transport
        self._query_null = query_null
        self._timestamps_utc = timestamps_utc
        self._slots = tuple(
            _Slot.of(parameter, defaults.get(index, ABSENT), timestamps_utc)
            for index, parameter in enumerate(parameters)
        )
        self._names = frozenset(parameter.api_name for parameter in parameters)

    @property
    def plain(self) -> tuple[tuple[tuple[str, str, bool, str, bool, bool, str | None, bool], ...], str, bool]:
        """This binder as plain data, the arguments of `ext.parameters.FastBinder`."""
        rows = tuple(
            (
                slot.parameter.api_name,
                slot.parameter.kind.value,
                slot.parameter.array,
                slot.parameter.type_text,
                slot.optional,
                slot.default is not ABSENT or slot.parameter.attribute is not None,
                None if slot.default is ABSENT else slot.default,
                slot.parameter.path,
            )
            for slot in self._slots
        )
        return rows, self._query_null.value, self._timestamps_utc

    def bind(self, query: str, body: bytes, path_values: Mapping[str, str] = _Nothing) -> Binding:
        """Binds from where the endpoint's transport says; the other one is not looked at (reference 01, 7.4)."""
        if self._transport is Transport.BODY:
            return self.bind_body(body, path_values)
        return self.bind_query(query, path_values)

    def bind_query(self, query: str, path_values: Mapping[str, str] = _Nothing) -> Binding:
        texts: dict[str, list[str]] = {}
        for key, text in _query_pairs(query):
            texts.setdefault(key, []).append(text)
        self._refuse_unknown(texts)
        values: list[_Value] = []
        for slot in self._slots:
            outer = path_values.get(slot.parameter.api_name)
            sources = [[outer]] if outer is not None else []
            sources += [texts[slot.parameter.api_name]] if slot.parameter.api_name in texts else []
            value, reason = self._first_usable(slot, sources)
            values.append(self._or_default(slot, reason) if value is ABSENT else value)
        return _binding(values)

    def bind_body(self, body: bytes, path_values: Mapping[str, str] = _Nothing) -> Binding:
        try:
            members = dict(json_text.members(body))
        except json_text.JsonTextError as error:
            raise BindingError(400, str(error)) from None
        self._refuse_unknown(members)
        values: list[_Value] = []
        wrong: BindingError | None = None
        for slot in self._slots:
            outer = path_values.get(slot.parameter.api_name)
            value, reason = self._first_usable(slot, [] if outer is None else [[outer]])
            raw = members.get(slot.parameter.api_name)
            if value is ABSENT and raw is not None:
                try:
                    value = _from_json(slot, raw)
                except NotConvertible as error:
                    # Whatever is missing or unknown (404) is reported before a wrong type (500).
                    wrong = wrong or BindingError(500, str(error), slot.parameter.api_name)
                    continue
            values.append(self._or_default(slot, reason) if value is ABSENT else value)
        if wrong is not None:
            raise wrong
        return _binding(values)

    def _first_usable(self, slot: _Slot, sources: Iterable[list[str]]) -> tuple[_Value, str | None]:
        """The value of the first source that converts, and why an earlier one did not."""
        reason = None
        for texts in sources:
            try:
                return self._from_texts(slot, texts), reason
            except NotConvertible as error:
                reason = reason or str(error)
        return ABSENT, reason

    def _or_default(self, slot: _Slot, reason: str | None) -> _Value:
        """What stands for a value that was not sent, or that was not usable for `reason` (reference 01, 7.1)."""
        refused = reason is not None and slot.parameter.exact
        if slot.default is not ABSENT and not refused:
            return slot.default
        if slot.optional and not refused:
            return ABSENT
        if reason is not None:
            raise BindingError(404, reason, slot.parameter.api_name)
        if slot.parameter.attribute is not None:
            return None
        raise BindingError(404, f"{_title(slot.parameter)} is required", slot.parameter.api_name)

    def _from_texts(self, slot: _Slot, texts: list[str]) -> str | None:
        """Query, path and raw body values (reference 01, 7.2 and 7.3)."""
        if not slot.parameter.array:
            return self._from_text(slot, "".join(texts))
        elements: list[Nested] = [self._from_text(slot, text) for text in texts]
        return _array(slot, elements)

    def _from_text(self, slot: _Slot, text: str) -> str | None:
        _refuse_unsendable(slot.parameter, text)
        if not text and (slot.parameter.kind not in _EMPTY_IS_TEXT or self._query_null is QueryNull.EMPTY_STRING):
            return None
        if self._query_null is QueryNull.NULL_LITERAL and len(text) == 4 and text.lower() == "null":
            return None
        return _convert(slot, text)

    def _refuse_unknown(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key not in self._names:
                raise BindingError(404, f"unknown parameter {_shown(key)}{self._suggestion(key)}", key[:100])

    def _suggestion(self, key: str) -> str:
        same = [name for name in sorted(self._names) if name.lower() == key.lower()]
        near = same or difflib.get_close_matches(key[:_SHOWN], sorted(self._names), n=1)
        return f"; did you mean {near[0]!r}?" if near else ""


def _query_pairs(query: str) -> list[tuple[str, str]]:
    try:
        return query_text.pairs(query)
    except query_text.QueryTextError as error:
        raise BindingError(400, f"parameter {_shown(error.key)}: the value {error.reason}", error.key[:100]) from None


def _from_json(slot: _Slot, raw: bytes) -> str | None:
    """The value of a JSON member (reference 01, 6, JSON specifics)."""
    if not slot.parameter.array:
        return _from_json_scalar(slot, raw)
    if raw == b"null":
        return None
    if raw[:1] != b"[":
        raise NotConvertible(f"{_title(slot.parameter)}: {_shown(raw)} is not an array")
    return _array(slot, _json_items(slot, raw, 1))


def _json_items(slot: _Slot, raw: bytes, depth: int) -> list[Nested]:
    return [_json_item(slot, element, depth) for element in json_text.elements(raw)]


def _json_item(slot: _Slot, raw: bytes, depth: int) -> Nested:
    # An element of json[] that is an array is a JSON value; of every other type, one more dimension.
    if raw[:1] != b"[" or slot.parameter.kind is ValueKind.JSON:
        return _from_json_scalar(slot, raw)
    if depth == MAX_DIMENSIONS:
        raise NotConvertible(f"{_title(slot.parameter)}: arrays have at most {MAX_DIMENSIONS} dimensions")
    return _json_items(slot, raw, depth + 1)


def _from_json_scalar(slot: _Slot, raw: bytes) -> str | None:
    kind = slot.parameter.kind
    if raw == b"null":
        return None
    if raw[:1] == b'"':
        return _convert(slot, _json_string(slot.parameter, raw))
    if kind in _VERBATIM or (kind is ValueKind.BOOLEAN and raw in {b"true", b"false"}):
        return raw.decode()
    if kind is ValueKind.NUMERIC and raw[:1] in b"-0123456789" and len(raw) <= MAX_NUMBER_LENGTH:
        return raw.decode()
    if kind in _NUMBERS and raw[:1] in b"-0123456789":
        return _convert(slot, raw.decode())
    raise NotConvertible(f"{_title(slot.parameter)}: {_shown(raw)} is not a value of this type")


def _json_string(parameter: EndpointParameter, raw: bytes) -> str:
    try:
        return json_text.unescape(raw)
    except json_text.JsonTextError as error:
        raise BindingError(400, f"{_title(parameter)}: the value {error}", parameter.api_name) from None


def _convert(slot: _Slot, text: str) -> str:
    try:
        return slot.convert(text)
    except NotConvertible as error:
        raise NotConvertible(f"{_title(slot.parameter)}: {_shown(text)} {error}") from None


def _array(slot: _Slot, elements: list[Nested]) -> str:
    try:
        return literal(elements, quoted=slot.parameter.kind not in _BARE_IN_ARRAYS, delimiter=slot.delimiter)
    except ArrayShapeError as error:
        raise NotConvertible(f"{_title(slot.parameter)}: {error}") from None


def _refuse_unsendable(parameter: EndpointParameter, text: str) -> None:
    """Query texts are clean already; those of the path come from elsewhere."""
    if "\0" in text:
        raise BindingError(400, f"{_title(parameter)}: the value holds a NUL character", parameter.api_name)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BindingError(400, f"{_title(parameter)}: the value is not valid UTF-8", parameter.api_name) from None


def _binding(values: list[_Value]) -> Binding:
    mask = sum(1 << index for index, value in enumerate(values) if value is not ABSENT)
    present = [value for value in values if value is not ABSENT]
    return Binding(mask, [None if value is None else value.encode() for value in present], None in present)


def _title(parameter: EndpointParameter) -> str:
    return f"parameter '{parameter.api_name}' ({parameter.type_text})"


def _shown(value: str | bytes) -> str:
    """A value for a message: quoted, cut, and fit to be printed."""
    text = value[: 4 * _SHOWN].decode(errors="replace") if isinstance(value, bytes) else value
    cut = text[:_SHOWN] + "…" if len(text) > _SHOWN else text
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cut)
    return f"'{printable}'"
