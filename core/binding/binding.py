"""From a request to the arguments of a call: the rules, one after another (reference 01, 6 and 7).

A `Binder` is made once for each endpoint and is pure. It is the judge: its hot twin
`ext.binding.parameters.FastBinder` gives the same result or none at all, and then this one decides. Values leave as
the texts libpq sends, NULL as None.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from rowcall.core.binding.conversion import NotConvertible
from rowcall.core.binding.json_values import Reader
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import EndpointParameter, QueryNull, ValueKind
from rowcall.core.errors.binding_error import BindingError, shown
from rowcall.core.text import json_text, query_text
from rowcall.core.text.array_literal import Nested

_EMPTY_IS_TEXT = frozenset({ValueKind.TEXT, ValueKind.JSON})
_SHOWN = 60


class _Absent(enum.Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
_Value: TypeAlias = "str | Literal[_Absent.ABSENT] | None"
_Nothing: Mapping[str, str] = MappingProxyType({})


class Binding(NamedTuple):
    """The arguments of one call. Equal to the plain tuple that `ext.binding.parameters.FastBinder` gives."""

    mask: int
    """Bit i is set when parameter i is in the call."""
    values: list[bytes | None]
    """Texts of the parameters in the call, in their order; None is NULL."""
    has_null: bool
    """Some value is NULL: a STRICT routine need not be called."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A parameter with what is known about it beforehand."""

    parameter: EndpointParameter
    reader: Reader
    default: _Value
    """What is bound when the request has nothing usable; `ABSENT`: see `optional`."""
    optional: bool
    """The argument may be left out of the call."""

    @classmethod
    def of(cls, parameter: EndpointParameter, default: _Value, timestamps_utc: bool) -> _Slot:
        if default is ABSENT and parameter.defaulted:
            default = parameter.default
        return cls(
            parameter,
            Reader.of(parameter.api_name, parameter, timestamps_utc),
            default,
            parameter.has_default and parameter.attribute is None,
        )


_Plain: TypeAlias = tuple[
    tuple[tuple[str, str, bool, str, bool, bool, "str | None", bool], ...],
    str,
    bool,
    tuple[tuple[Callable[[str], "str | None"], Callable[[bytes], "str | None"]], ...],
    "dict[bytes, dict[bytes, int]] | None",
]


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
        self._groups = _groups(parameters)

    @property
    def plain(self) -> _Plain:
        """This binder as plain data, the arguments of `ext.binding.parameters.FastBinder`."""
        rows = tuple(
            (
                slot.parameter.api_name,
                slot.parameter.kind.value,
                slot.parameter.array,
                slot.parameter.delimiter,
                slot.optional,
                slot.default is not ABSENT or slot.parameter.attribute is not None,
                None if slot.default is ABSENT else slot.default,
                slot.parameter.path,
            )
            for slot in self._slots
        )
        converters = tuple((partial(self._from_text, slot), slot.reader.read) for slot in self._slots)
        places = {slot.parameter.api_name: index for index, slot in enumerate(self._slots)}
        groups = {
            name.encode(): {member.encode(): places[field] for member, field in fields.items()}
            for name, fields in self._groups.items()
        }
        return rows, self._query_null.value, self._timestamps_utc, converters, groups or None

    def bind(self, query: str, body: bytes, path_values: Mapping[str, str] = _Nothing) -> Binding:
        """Binds from where the endpoint's transport says; the other one is not looked at (reference 01, 7.4)."""
        if self._transport is Transport.BODY:
            return self.bind_body(body, path_values)
        return self.bind_query(query, path_values)

    def bind_query(self, query: str, path_values: Mapping[str, str] = _Nothing) -> Binding:
        return self.bind_texts(_query_pairs(query), path_values)

    def bind_texts(self, pairs: Iterable[tuple[str, str]], path_values: Mapping[str, str] = _Nothing) -> Binding:
        """Keys and texts, decoded, wherever they come from."""
        texts: dict[str, list[str]] = {}
        for key, text in pairs:
            texts.setdefault(key, []).append(text)
        members = self._objects_in(texts) if self._groups else {}
        self._refuse_unknown(texts)
        return self._bind(texts, members, path_values, wrong=404)

    def bind_body(self, body: bytes, path_values: Mapping[str, str] = _Nothing) -> Binding:
        try:
            members = dict(json_text.body_members(body))
        except json_text.JsonTextError as error:
            raise BindingError(400, str(error)) from None
        failure = None
        if self._groups:
            members, failure = self._spread(members)
        self._refuse_unknown(members)
        return self._bind({}, members, path_values, wrong=500, failure=failure)

    def _bind(
        self,
        texts: Mapping[str, list[str]],
        members: Mapping[str, bytes],
        path_values: Mapping[str, str],
        *,
        wrong: int,
        failure: BindingError | None = None,
    ) -> Binding:
        """wrong: status for a member that is no value of its type; below 500 a default stands for it. failure: raised
        when nothing worse is found."""
        values: list[_Value] = []
        for slot in self._slots:
            name = slot.parameter.api_name
            outer = path_values.get(name)
            sources = [[outer]] if outer is not None else []
            sources += [texts[name]] if name in texts else []
            value, reason = self._first_usable(slot, sources)
            raw = members.get(name)
            if value is ABSENT and raw is not None:
                try:
                    value = slot.reader.read(raw)
                except NotConvertible as error:
                    reason = reason or str(error)
                    if wrong == 500:
                        # Whatever is missing or unknown (404) is reported before a wrong type (500).
                        failure = failure or BindingError(500, str(error), name)
                        continue
            values.append(self._or_default(slot, reason) if value is ABSENT else value)
        if failure is not None:
            raise failure
        return _binding(values)

    def _spread(self, members: dict[str, bytes]) -> tuple[dict[str, bytes], BindingError | None]:
        """An object under the name of a composite parameter becomes its fields; null leaves all of them NULL."""
        spread = dict(members)
        failure: BindingError | None = None
        for key in members.keys() & self._groups.keys():
            raw = spread.pop(key)
            if raw == b"null":
                continue
            if raw[:1] == b"{":
                self._spread_object(key, raw, spread)
            else:
                failure = BindingError(500, f"parameter '{key}': {shown(raw)} is not an object", key)
        return spread, failure

    def _spread_object(self, key: str, raw: bytes, spread: dict[str, bytes]) -> None:
        fields = self._groups[key]
        for member, value in _members_of(key, raw):
            field = fields.get(member)
            if field is None:
                raise BindingError(404, f"unknown parameter {shown(f'{key}.{member}')}", key)
            if field in spread:
                raise BindingError(400, f"the value of {shown(field)} is there twice", field)
            spread[field] = value

    def _objects_in(self, texts: dict[str, list[str]]) -> dict[str, bytes]:
        """The same for a JSON object in a query string; what is taken leaves `texts`."""
        spread: dict[str, bytes] = {}
        for key in texts.keys() & self._groups.keys():
            raw = "".join(texts[key]).strip().encode()
            if raw[:1] == b"{":
                del texts[key]
                _check_json(key, raw)
                self._spread_object(key, raw, spread)
        twice = spread.keys() & texts.keys()
        if twice:
            raise BindingError(400, f"the value of {shown(min(twice))} is there twice", min(twice))
        return spread

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
        raise BindingError(404, f"{slot.reader.title} is required", slot.parameter.api_name)

    def _from_texts(self, slot: _Slot, texts: list[str]) -> str | None:
        """Query, path and raw body values (reference 01, 7.2 and 7.3)."""
        if not slot.parameter.array:
            return self._from_text(slot, "".join(texts))
        if slot.parameter.kind is ValueKind.COMPOSITE and len(texts) == 1 and texts[0].lstrip()[:1] == "[":
            # No record begins like this, so it is a JSON array of them.
            return slot.reader.read(_json_of(slot, texts[0]))
        elements: list[Nested] = [self._from_text(slot, text) for text in texts]
        return slot.reader.joined(elements)

    def _from_text(self, slot: _Slot, text: str) -> str | None:
        _refuse_unsendable(slot.reader, text)
        if not text and (slot.parameter.kind not in _EMPTY_IS_TEXT or self._query_null is QueryNull.EMPTY_STRING):
            return None
        if self._query_null is QueryNull.NULL_LITERAL and len(text) == 4 and text.lower() == "null":
            return None
        if slot.parameter.kind is ValueKind.COMPOSITE and text.lstrip()[:1] == "{":
            return slot.reader.read_element(_json_of(slot, text))
        return slot.reader.convert_text(text)

    def _refuse_unknown(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key not in self._names:
                raise BindingError(404, f"unknown parameter {shown(key)}{self._suggestion(key)}", key[:100])

    def _suggestion(self, key: str) -> str:
        same = [name for name in sorted(self._names) if name.lower() == key.lower()]
        near = same or difflib.get_close_matches(key[:_SHOWN], sorted(self._names), n=1)
        return f"; did you mean {near[0]!r}?" if near else ""


def _groups(parameters: Sequence[EndpointParameter]) -> Mapping[str, Mapping[str, str]]:
    """Name of a composite parameter → member of an object → the field it gives. A parameter of that name wins."""
    groups: dict[str, dict[str, str]] = {}
    names = {parameter.api_name for parameter in parameters}
    for parameter in parameters:
        if parameter.group is None or parameter.attribute is None or parameter.group in names:
            continue
        members = groups.setdefault(parameter.group, {})
        members.setdefault(parameter.attribute, parameter.api_name)
        members[parameter.member or parameter.attribute] = parameter.api_name
    return groups


def _query_pairs(query: str) -> list[tuple[str, str]]:
    try:
        return query_text.pairs(query)
    except query_text.QueryTextError as error:
        raise BindingError(400, f"parameter {shown(error.key)}: the value {error.reason}", error.key[:100]) from None


def _members_of(key: str, raw: bytes) -> list[tuple[str, bytes]]:
    try:
        return json_text.object_members(raw)
    except json_text.JsonTextError as error:
        raise BindingError(400, f"parameter {shown(key)}: {error}", key) from None


def _check_json(key: str, raw: bytes) -> None:
    try:
        json_text.check(raw)
    except json_text.JsonTextError as error:
        raise BindingError(404, f"parameter {shown(key)}: {error}", key) from None


def _json_of(slot: _Slot, text: str) -> bytes:
    """JSON in a query string, for composites."""
    raw = text.strip().encode()
    try:
        json_text.check(raw)
    except json_text.JsonTextError as error:
        raise NotConvertible(f"{slot.reader.title}: {error}") from None
    return raw


def _refuse_unsendable(reader: Reader, text: str) -> None:
    """Query texts are clean already; those of the path come from elsewhere."""
    if "\0" in text:
        raise BindingError(400, f"{reader.title}: the value holds a NUL character", reader.name)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BindingError(400, f"{reader.title}: the value is not valid UTF-8", reader.name) from None


def _binding(values: list[_Value]) -> Binding:
    mask = sum(1 << index for index, value in enumerate(values) if value is not ABSENT)
    present = [value for value in values if value is not ABSENT]
    return Binding(mask, [None if value is None else value.encode() for value in present], None in present)
