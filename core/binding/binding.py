"""Bind the values of a request to the arguments of a call (binding-3 to binding-26).

Each endpoint has one `Binder`, which is pure. Its fast counterpart `ext.binding.parameters.FastBinder` returns either
the same result, or none; in the latter case, `Binder` is used. Results are the texts that libpq sends, and None for
NULL.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from rowcall.core.binding.invalid_values import InvalidValue, InvalidValueError, invalid_value
from rowcall.core.binding.json_values import Reader
from rowcall.core.binding.strict_types import StrictTypes
from rowcall.core.binding.written_values import default_text
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import EndpointParameter, QueryNull, ValueKind
from rowcall.core.errors.binding_error import MOST_FAULTS, BindingError, Fault, quote_value, type_word
from rowcall.core.errors.refusals import FIELD, Refusals
from rowcall.core.text import json_text, query_text
from rowcall.core.text.array_literal import Nested

_EMPTY_IS_TEXT = frozenset({ValueKind.TEXT, ValueKind.JSON})
"""Kinds for which an empty text is a value."""
_SHOWN = 60
"""Most characters of a value in a message."""
_REPEAT = "elements of an array are parameters of the same name, one for each"


class _Absent(enum.Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""The parameter is not in the call: PostgreSQL uses the default of the routine."""
_Value: TypeAlias = "str | Literal[_Absent.ABSENT] | None"
_Nothing: Mapping[str, str] = MappingProxyType({})


class Binding(NamedTuple):
    """The arguments of one call, equal to the tuple that `ext.binding.parameters.FastBinder` returns."""

    mask: int
    """Bit i is set if parameter i is in the call."""
    values: list[bytes | None]
    """Texts of the parameters in the call, in their order; None is NULL."""
    has_null: bool
    """Whether a value is NULL: a STRICT routine need not be called."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """A parameter with the facts that do not depend on the request."""

    parameter: EndpointParameter
    reader: Reader
    default: _Value
    """Text that is bound if the request has no value; None: NULL; `ABSENT`: none, see `optional`."""
    optional: bool
    """Whether the argument may be omitted in the call."""

    @classmethod
    def of(
        cls, parameter: EndpointParameter, default: _Value, timestamps_utc: bool, strict: StrictTypes | None
    ) -> _Slot:
        """Return the slot of a parameter. default: text with precedence over the default of the comment; `ABSENT`:
        there is none. timestamps_utc, strict: as in `Binder`; values that are ignored may have any JSON type."""
        if parameter.ignored:
            strict = None
        never_null = strict is not None and parameter.constraints.never_null
        if default is ABSENT and parameter.defaulted:
            default = default_text(parameter, timestamps_utc)
        return cls(
            parameter,
            Reader.of(parameter.api_name, parameter, timestamps_utc, strict, never_null),
            default,
            parameter.has_default and parameter.attribute is None,
        )


_Plain: TypeAlias = tuple[
    tuple[tuple[str, str, bool, str, bool, bool, "str | None", bool, "bytes | None", bool, bool, bool], ...],
    str,
    bool,
    tuple[tuple[Callable[[str], "str | None"], Callable[[bytes], "str | None"]], ...],
    "dict[bytes, dict[bytes, int]] | None",
]
"""Arguments of `ext.binding.parameters.FastBinder`: a row for each parameter, texts that mean NULL, timestamps in
UTC, converters of texts and of JSON values for each parameter, and composite parameter → member → index of field."""


@dataclass(slots=True)
class _Values:
    """The values of a request by API name, and the faults found in them.

    path: values with precedence. texts: decoded texts of the query. members: unparsed JSON values of the body, or of
    objects in the query. in_json: the request is a JSON body.
    """

    path: Mapping[str, str]
    texts: Mapping[str, list[str]]
    members: Mapping[str, bytes]
    places: Mapping[str, str]
    """Place of a value, if it differs from its name: `box.width`."""
    faults: list[Fault]
    in_json: bool

    def place(self, name: str) -> str:
        """Return the path of a parameter's value for messages: `box.width` for a member of an object, otherwise the
        name. name: of the parameter in requests."""
        return self.places.get(name, name)

    def note(self, name: str, error: InvalidValueError) -> None:
        """Add the faults of an invalid value. name: of its parameter in requests."""
        self.faults += [spot.fault(name, self.place(name)) for spot in error.spots]


class Binder:
    """Binds requests of one endpoint. Each `bind` method raises one `BindingError` for all faults of a request.

    path_values: texts by API name that have precedence over query and body: the decoded path segments, and the whole
    body of an endpoint with a raw body parameter.
    """

    def __init__(
        self,
        parameters: Sequence[EndpointParameter],
        transport: Transport,
        query_null: QueryNull,
        timestamps_utc: bool = True,
        *,
        refusals: Refusals = FIELD,
        defaults: Mapping[int, str | None] = MappingProxyType({}),
        open_ended: bool = False,
        strict: StrictTypes | None = None,
    ) -> None:
        """Prepare the binding of these parameters.

        timestamps_utc: timestamps without a zone are in UTC. refusals: how invalid requests are refused. defaults:
        texts by index of the parameter for parameters without a value in the request, with precedence over the defaults
        of annotations; None: the service fills the value in later. open_ended: keys that name no parameter are ignored.
        strict: JSON values must have the documented types.
        """
        self._open_ended = open_ended
        self._transport = transport
        self._query_null = query_null
        self._timestamps_utc = timestamps_utc
        self._refusals = refusals
        self._slots = tuple(
            _Slot.of(parameter, defaults.get(index, ABSENT), timestamps_utc, strict)
            for index, parameter in enumerate(parameters)
        )
        self._names = frozenset(parameter.api_name for parameter in parameters)
        self._groups = _groups(parameters)

    @property
    def plain(self) -> _Plain:
        """This binder as the arguments of `ext.binding.parameters.FastBinder`."""
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
                slot.reader.starts,
                slot.reader.strict,
                slot.reader.never_null,
                slot.reader.sized,
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
        """Bind from query or body, as the endpoint requires; the other one is ignored (binding-3). Raises
        `BindingError` for faults of the request, as do the other `bind_…` methods."""
        if self._transport is Transport.BODY:
            return self.bind_body(body, path_values)
        return self.bind_query(query, path_values)

    def bind_query(self, query: str, path_values: Mapping[str, str] = _Nothing) -> Binding:
        """Bind a query string, which is decoded here. Keys that name no parameter are faults, unless `refusals` or
        `open_ended` lets them be ignored."""
        pairs = _query_pairs(query)
        if self._refusals.ignores_unknown_parameters:
            # Only for a query: parameters that are added to links (`utm_source`) occur nowhere else.
            pairs = [pair for pair in pairs if pair[0] in self._names or pair[0] in self._groups]
        return self.bind_texts(pairs, path_values)

    def bind_texts(self, pairs: Iterable[tuple[str, str]], path_values: Mapping[str, str] = _Nothing) -> Binding:
        """Bind decoded keys and texts of any origin. Keys that name no parameter are faults, unless `open_ended` lets
        them be ignored."""
        texts: dict[str, list[str]] = {}
        for key, text in pairs:
            texts.setdefault(key, []).append(text)
        faults: list[Fault] = []
        members, places = self._objects_in(texts, faults) if self._groups else ({}, {})
        self._note_unknown(texts, faults)
        return self._bind(_Values(path_values, texts, members, places, faults, in_json=False))

    def bind_body(
        self, body: bytes, path_values: Mapping[str, str] = _Nothing, cut: Sequence[tuple[str, bytes]] | None = None
    ) -> Binding:
        """Bind a JSON body, which has to be an object; an empty body has no members. cut: the members of the body, if
        they have been parsed already; then `body` is not read."""
        try:
            members = dict(json_text.body_members(body) if cut is None else cut)
        except json_text.JsonTextError as error:
            raise BindingError(400, str(error)) from None
        faults: list[Fault] = []
        places: dict[str, str] = {}
        if self._groups:
            members, places = self._spread(members, faults)
        self._note_unknown(members, faults)
        return self._bind(_Values(path_values, {}, members, places, faults, in_json=True))

    def _bind(self, request: _Values) -> Binding:
        """Return the arguments of a call for the values of a request. Raises `BindingError` if there are faults."""
        find = self._find_leniently if self._refusals.lenient else self._find
        values = [find(slot, request) for slot in self._slots]
        if request.faults:
            raise self._refusals.error(request.faults, in_json=request.in_json)
        return _binding(values)

    def _find(self, slot: _Slot, request: _Values) -> _Value:
        """Return the value of the first source that has one (path, query, body), else the default. For an invalid
        value, add a fault and return None.

        An invalid value is never replaced by that of another source: a filter that cannot be parsed must not widen the
        result.
        """
        name = slot.parameter.api_name
        try:
            if name in request.path:
                return self._from_texts(slot, [request.path[name]])
            if name in request.texts:
                return self._from_texts(slot, request.texts[name])
            if name in request.members:
                return slot.reader.read(request.members[name])
        except InvalidValueError as error:
            request.note(name, error)
            return None
        return self._or_default(slot, request)

    def _or_default(self, slot: _Slot, request: _Values) -> _Value:
        """Return the value of a parameter that was not sent (binding-13, binding-14): its default; else `ABSENT`, so
        that PostgreSQL uses the default of the routine; else None, with a fault if the parameter is required.
        """
        if slot.default is not ABSENT:
            return slot.default
        if slot.optional:
            return ABSENT
        if slot.parameter.attribute is None:
            name = slot.parameter.api_name
            message = f"parameter '{name}' ({type_word(slot.parameter.type_text)}) is required"
            request.faults.append(Fault(name, name, message, invalid_value=False))
        return None

    def _find_leniently(self, slot: _Slot, request: _Values) -> _Value:
        """Return the value by the rules of the established system: an invalid text is replaced by the value of the next
        source, and finally by the default. The default never replaces an invalid text of an `exact` parameter.

        An invalid value is a fault if it is in JSON, or if nothing replaces it.
        """
        name = slot.parameter.api_name
        failed: InvalidValueError | None = None
        for texts in ([request.path[name]] if name in request.path else None, request.texts.get(name)):
            if texts is None:
                continue
            try:
                return self._from_texts(slot, texts)
            except InvalidValueError as error:
                failed = failed or error
        if name in request.members:
            try:
                return slot.reader.read(request.members[name])
            except InvalidValueError as error:
                request.note(name, error)
                return None
        if failed is not None and (slot.parameter.exact or (slot.default is ABSENT and not slot.optional)):
            request.note(name, failed)
            return None
        return self._or_default(slot, request)

    def _spread(self, members: dict[str, bytes], faults: list[Fault]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Replace objects under the names of composite parameters by their fields. For null, all fields are absent; any
        other value is a fault, which is added to `faults`. Raises `BindingError` for invalid JSON.

        Returns the members, and by name the paths of members that come from objects.
        """
        spread = dict(members)
        places: dict[str, str] = {}
        for key in members:
            if key not in self._groups:
                continue
            raw = spread.pop(key)
            if raw == b"null":
                continue
            if raw[:1] == b"{":
                self._spread_object(key, raw, spread, places, faults)
            else:
                faults.append(Fault(key, key, f"parameter '{key}': {quote_value(raw)} is not an object"))
        return spread, places

    def _spread_object(
        self, key: str, raw: bytes, spread: dict[str, bytes], places: dict[str, str], faults: list[Fault]
    ) -> None:
        """Add the members of a JSON object to `spread`, by the names of the fields in requests, and their paths such as
        `box.width` to `places`.

        key: name of the composite parameter. raw: the object. Unknown members, and fields that have a value already,
        are faults. Raises `BindingError` for invalid JSON.
        """
        fields = self._groups[key]
        for member, value in _members_of(key, raw):
            field = fields.get(member)
            if field is None:
                faults.append(InvalidValue(f".{member[:100]}", "is unknown").fault(key, key))
            elif field in spread:
                faults.append(Fault(key, f"{key}.{member}", f"the value of {quote_value(field)} is there twice"))
            else:
                spread[field] = value
                places[field] = f"{key}.{member}"

    def _objects_in(self, texts: dict[str, list[str]], faults: list[Fault]) -> tuple[dict[str, bytes], dict[str, str]]:
        """Replace JSON objects in a query string under the name of a composite parameter by their fields, as
        `_spread` does for a body. Removes these objects from `texts`. Returns members and paths as `_spread` does.
        Raises `BindingError` for invalid JSON."""
        spread: dict[str, bytes] = {}
        places: dict[str, str] = {}
        for key in texts.keys() & self._groups.keys():
            raw = "".join(texts[key]).strip().encode()
            if raw[:1] == b"{":
                del texts[key]
                self._check_json(key, raw)
                self._spread_object(key, raw, spread, places, faults)
        both = sorted(spread.keys() & texts.keys())
        faults += [Fault(name, places[name], f"the value of {quote_value(name)} is there twice") for name in both]
        return spread, places

    def _check_json(self, key: str, raw: bytes) -> None:
        """Raise `BindingError` if the text is not JSON. key: name of the parameter."""
        try:
            json_text.check(raw)
        except json_text.JsonTextError as error:
            status = 404 if self._refusals.lenient else 400
            raise BindingError(status, f"parameter {quote_value(key)}: {error}", key) from None

    def _from_texts(self, slot: _Slot, texts: list[str]) -> str | None:
        """Return the text for PostgreSQL of values of query, path or raw body (binding-15 to binding-18); None: NULL.

        Raises `InvalidValueError`; for a text that PostgreSQL cannot store, `BindingError`.
        """
        if not slot.parameter.array:
            if len(texts) > 1 and not (self._refusals.lenient or slot.parameter.ignored):
                raise invalid_value(f"takes one value, and has {len(texts)}", slot.parameter.type_text)
            return self._from_text(slot, "".join(texts))
        if slot.parameter.kind is ValueKind.COMPOSITE and len(texts) == 1 and texts[0].lstrip()[:1] == "[":
            # No record begins like this, so it is a JSON array of records.
            return slot.reader.read(_json_of(slot, texts[0]))
        elements: list[Nested] = []
        spots: list[InvalidValue] = []
        for index, text in enumerate(texts):
            try:
                elements.append(self._from_text(slot, text))
            except InvalidValueError as error:
                spots += error.with_outer_step(f"[{index}]" if len(texts) > 1 else "")
                if len(spots) >= MOST_FAULTS:
                    break
        if spots:
            whole = len(texts) == 1 and any(sign in texts[0] for sign in "{[,")
            raise InvalidValueError(spot.with_remedy(_REPEAT) if whole else spot for spot in spots)
        return slot.reader.array_literal(elements)

    def _from_text(self, slot: _Slot, text: str) -> str | None:
        """Return the text for PostgreSQL of one value, or of one element of an array; None: NULL. Raises
        `InvalidValueError`; for a text that PostgreSQL cannot store, `BindingError`."""
        _refuse_unsendable(slot, text)
        if not text and (slot.parameter.kind not in _EMPTY_IS_TEXT or self._query_null is QueryNull.EMPTY_STRING):
            return None
        if self._query_null is QueryNull.NULL_LITERAL and len(text) == 4 and text.lower() == "null":
            return None
        if slot.parameter.kind is ValueKind.COMPOSITE and text.lstrip()[:1] == "{":
            return slot.reader.read_element(_json_of(slot, text))
        return slot.reader.convert_text(text)

    def _note_unknown(self, keys: Iterable[str], faults: list[Fault]) -> None:
        """Add a fault for each key that names no parameter, unless unknown keys are ignored."""
        if self._open_ended:
            return
        for key in keys:
            if key in self._names:
                continue
            if len(faults) < MOST_FAULTS:
                message = f"unknown parameter {quote_value(key)}{self._suggestion(key)}"
                faults.append(Fault(key[:100], key[:100], message, invalid_value=False))

    def _suggestion(self, key: str) -> str:
        """Return the end of a message about an unknown key: a parameter with a similar name. Empty if there is none."""
        same = [name for name in sorted(self._names) if name.lower() == key.lower()]
        near = same or difflib.get_close_matches(key[:_SHOWN], sorted(self._names), n=1)
        return f"; did you mean {near[0]!r}?" if near else ""


def _groups(parameters: Sequence[EndpointParameter]) -> Mapping[str, Mapping[str, str]]:
    """Return name of a composite parameter → member of an object → its field. A parameter with the same name has
    precedence."""
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
    """Return the decoded keys and values of a query string. Raises `BindingError`."""
    try:
        return query_text.pairs(query)
    except query_text.QueryTextError as error:
        raise BindingError(
            400, f"parameter {quote_value(error.key)}: the value {error.reason}", error.key[:100]
        ) from None


def _members_of(key: str, raw: bytes) -> list[tuple[str, bytes]]:
    """Return the members of a JSON object, unparsed. key: name of the parameter. Raises `BindingError`."""
    try:
        return json_text.object_members(raw)
    except json_text.JsonTextError as error:
        raise BindingError(400, f"parameter {quote_value(key)}: {error}", key) from None


def _json_of(slot: _Slot, text: str) -> bytes:
    """Return the JSON text of a composite in a query string. Raises `InvalidValueError` for a text that is no JSON."""
    raw = text.strip().encode()
    try:
        json_text.check(raw)
    except json_text.JsonTextError as error:
        raise invalid_value(str(error), slot.parameter.type_text) from None
    return raw


def _refuse_unsendable(slot: _Slot, text: str) -> None:
    """Raise `BindingError` for a text that PostgreSQL cannot store. Texts of the query are checked already, those of
    the path are not. No default replaces such a value."""
    reason = "holds a NUL character" if "\0" in text else None
    try:
        text.encode()
    except UnicodeEncodeError:
        reason = "is not valid UTF-8"
    if reason is not None:
        name = slot.parameter.api_name
        raise BindingError(400, f"parameter '{name}' ({type_word(slot.parameter.type_text)}): the value {reason}", name)


def _binding(values: list[_Value]) -> Binding:
    """Return the arguments for the values of all parameters, in their order. Absent ones are left out."""
    mask = sum(1 << index for index, value in enumerate(values) if value is not ABSENT)
    present = [value for value in values if value is not ABSENT]
    return Binding(mask, [None if value is None else value.encode() for value in present], None in present)
