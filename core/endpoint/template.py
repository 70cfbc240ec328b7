"""Annotation values with `{placeholders}`: parsed once, filled for each request (comments-26, comments-27).

`{name}` is replaced by the value of a parameter. Its name is that in the database, that in requests, or that of the
attribute of a composite, in any case. NULL and a missing value give an empty text. `{!name}` is the same;
`{!name:other}` gives the text `other` for NULL and for a missing value. All other braces are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from rowcall.core.data.interning import REMEMBERED, Same
from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import EndpointParameter

_PLACEHOLDER = re.compile(r"\{(?P<mark>!?)(?P<name>[^{}:!]+)(?::(?P<fallback>[^{}]*))?\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")

ValueOf = Callable[[int], str | None]
"""Function from the index of a parameter of the endpoint to its text; None for NULL and for a missing value."""


@dataclass(frozen=True, slots=True)
class Placeholder(Record):
    """A placeholder in a template. fallback: text for NULL and for a missing value."""

    index: int
    """Index in `endpoint.parameters`."""
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class Template(Record):
    """A text with placeholders: fixed texts and placeholders in their order."""

    parts: tuple[str | Placeholder, ...]
    unknown: tuple[str, ...] = ()
    """Names in braces that resemble a parameter name but are not one; they are unchanged."""

    @property
    def is_fixed(self) -> bool:
        return not any(isinstance(part, Placeholder) for part in self.parts)

    def fill(self, value_of: ValueOf, clean: Callable[[str], str] = str) -> str:
        """Return the text for one request. clean: makes a value safe for its place."""
        return "".join(part if isinstance(part, str) else clean(_text(part, value_of)) for part in self.parts)


def parse_template(text: str, names: Mapping[str, int], staying: Container[int] = ()) -> Template:
    """Return the template of a text.

    names: from `placeholder_names`. staying: indexes of parameters whose placeholders are unchanged without a value.
    """
    unknown: list[str] = []
    return Template(tuple(_parts(text, names, staying, unknown)), tuple(unknown))


def virtual_parameters(parameters: tuple[EndpointParameter, ...]) -> frozenset[int]:
    """Return the indexes of the parameters that an SQL file defines by `define_param`, and that its statements do not
    use (sql-files-18).

    If a request has no value for such a parameter, `{name}` is unchanged; `{!name}` is empty, as for other parameters.
    """
    return frozenset(index for index, parameter in enumerate(parameters) if parameter.virtual)


def placeholder_names(parameters: tuple[EndpointParameter, ...]) -> Mapping[str, int]:
    """Return name in lower case → index of its parameter. Names of parameters have precedence over those of
    attributes."""
    return _placeholder_names(Same(parameters))


@lru_cache(maxsize=REMEMBERED)
def _placeholder_names(parameters: Same[tuple[EndpointParameter, ...]]) -> Mapping[str, int]:
    names: dict[str, int] = {}
    numbered = [(index, parameter) for index, parameter in enumerate(parameters.value) if not parameter.of_query]
    for index, parameter in numbered:
        names.setdefault((parameter.field or parameter.db_name).lower(), index)
        names.setdefault(parameter.api_name.lower(), index)
    for index, parameter in numbered:
        if parameter.attribute is not None:
            names.setdefault(parameter.attribute.lower(), index)
    return names


def with_variables(text: str, names: Mapping[str, int], variables: Mapping[str, str | None]) -> str:
    """Return the text with variables of the environment filled in (comments-28). Control characters of their values are
    removed. Other placeholders are unchanged, also those of a parameter that has the name of a variable.

    names: from `placeholder_names`. variables: value by name in lower case; None: no value, so that `{!name:other}` is
    `other`.
    """

    def fill(match: re.Match[str]) -> str:
        name = match["name"].lower()
        if name in names or name not in variables or (match["fallback"] is not None and not match["mark"]):
            return match[0]
        value = variables[name]
        return (match["fallback"] or "") if value is None else _CONTROL.sub("", value)

    return _PLACEHOLDER.sub(fill, text)


def _parts(
    text: str, names: Mapping[str, int], staying: Container[int], unknown: list[str]
) -> Iterator[str | Placeholder]:
    """Yield the parts of a template: fixed texts and placeholders. Adds to `unknown` the names in braces that have the
    form of a parameter name and are that of no parameter."""
    literal = ""
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        index = names.get(match["name"].lower())
        if index is None or (match["fallback"] is not None and not match["mark"]):
            literal += match[0]
            if index is None and _IDENTIFIER.fullmatch(match["name"]):
                unknown.append(match["name"])
            continue
        if literal:
            yield literal
        literal = ""
        yield Placeholder(index, match["fallback"] or (match[0] if index in staying and not match["mark"] else ""))
    if literal or end < len(text):
        yield literal + text[end:]


def _text(placeholder: Placeholder, value_of: ValueOf) -> str:
    """Return the text for a placeholder in one request, before it is made safe."""
    value = value_of(placeholder.index)
    return placeholder.fallback if value is None else value
