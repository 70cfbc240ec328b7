"""Typed reads of the loaded configuration. An invalid value raises ConfigError with its place and the allowed
values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rowcall.core.config.placeholders import MissingVariable, has_placeholder, resolve
from rowcall.core.config.table import is_named_by_user, key_at
from rowcall.core.config.tree import Node, Origin, Scalar, Section, find, place
from rowcall.core.sections.declaration import convert_value, declared_section
from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.keys import JsonValue, Key, KeyType
from rowcall.core.text.interval import parse_interval

T = TypeVar("T")

_DEFAULT = Origin("built-in default")
BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


def whole_number(text: str) -> int | None:
    """Parse a whole number of ASCII digits with an optional sign, which is stricter than `int`; None if invalid."""
    return int(text) if len(text) <= _LONGEST and _WHOLE.fullmatch(text) else None


def bounds_violation(number: int, key: Key) -> str | None:
    """Return the message for a number outside the bounds of the key; None: it is within them."""
    if number < key.minimum:
        return f"{number} is too small; the least allowed is {key.minimum}"
    return f"{number} is too large; the most allowed is {key.maximum}" if number > key.maximum else None


_AMOUNT = re.compile(r"\s*\+?(?:\d{1,15}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?\s*", re.ASCII)
_LONGEST = 40
"""Maximum length of a number in characters; `int` raises ValueError for thousands of digits."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged configuration with the defaults of the table. Every method that reads raises `ConfigError` for an
    invalid value.

    Plain data, so that it can be pickled for the workers.
    """

    root: Section = field(default_factory=Section)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for placeholders; NoSubstitution if `Config:ParseEnvironmentVariables` is off."""

    def read(self, kind: type[T], *names: str, **others: Any) -> T:
        """Return the object of a section, which has a value for each of its fields.

        kind: class with the decorator `section`. names: of the user, for each `<name>` in the path of the section, and
        indexes, for each `[]`. others: values of fields that are not read.
        """
        declared = declared_section(kind)
        values = {
            field: convert_value(declaration, path, getattr(self, declaration.reader)(path))
            for field, declaration in declared.fields.items()
            if field not in others
            for path in [_with_names(declaration.key.path, names)]
        }
        parts = {field: self.read(part, *names) for field, part in declared.parts.items() if field not in others}
        return kind(**values, **parts, **others)

    def read_enabled(self, kind: type[T], *names: str, **others: Any) -> T | None:
        """Return the object of a section, or None if its switch is off; then no other value is read. Parameters are
        those of `read`."""
        return self.read(kind, *names, **others) if self.is_enabled(kind, *names) else None

    def is_enabled(self, kind: type[Any], *names: str) -> bool:
        """Return the switch of a section, which is its key `Enabled` unless it declares another one. names: for
        `<name>` and `[]` in the path of the section."""
        declared = declared_section(kind)
        return self.flag(f"{_with_names(declared.path, names)}:{declared.switch}")

    def contains(self, kind: type[Any], *names: str) -> bool:
        """Return whether the user has written a section. names: for `<name>` and `[]` in its path."""
        return find(self.root, _with_names(declared_section(kind).path, names)) is not None

    def is_set(self, kind: type[Any], field: str, *names: str) -> bool:
        """Return whether the user has written the key of a field, also with null. kind: class of the section. field:
        name of the attribute. names: for `<name>` and `[]` in the path."""
        return find(self.root, _with_names(declared_section(kind).fields[field].key.path, names)) is not None

    def names_of(self, kind: type[Any], *names: str) -> tuple[str, ...]:
        """Return the names that the user has given to sections of this kind, or the indexes of a list.

        names: of the sections above, for each `<name>` and `[]` in the path but the last one.
        """
        above = re.split(r":(?:<|\[\])", _with_names(declared_section(kind).path, names))[0]
        node = find(self.root, above)
        children = node if isinstance(node, Section) else ()
        return tuple(child.name for child in children if is_named_by_user(f"{above}:{child.name}"))

    def value_of(self, path: str) -> Any:
        """Return the value of a key whose path is not known in the code. Its type is that of the key: a boolean, number
        or text, None if there is neither a value nor a default; plain data for other types."""
        match key_at(path).type:
            case KeyType.BOOL:
                return self.flag_or_none(path)
            case KeyType.INT:
                return self.integer_or_none(path)
            case KeyType.CHOICE:
                return self.choice_or_none(path)
            case KeyType.TEXT:
                return self.text_or_none(path)
            case _:
                return self.value(path)

    def text(self, path: str) -> str:
        """Return a text; null and blank text give the default (configuration-10, configuration-11).

        Raises ConfigError if there is no default.
        """
        value = self.text_or_none(path)
        if value and value.strip():
            return value
        default = _key_of_type(path, KeyType.TEXT).default
        if default is None:
            raise self._error(path, "a value is needed")
        return self._resolve_text(path, Scalar(str(default), _DEFAULT)) or ""

    def text_or_none(self, path: str) -> str | None:
        """Return a text: an explicit null is None, an absent key has its default, an empty text stays empty."""
        key = _key_of_type(path, KeyType.TEXT)
        node = find(self.root, path)
        if node is None:
            return None if key.default is None else self._resolve_text(key.path, Scalar(str(key.default), _DEFAULT))
        return self._scalar(path, node)

    def lenient_text(self, path: str) -> str | None:
        """Return the text of a lenient key as it is written, or one of the key's choices in its canonical spelling.

        Null and blank text give the default. None: there is no default.
        """
        key = key_at(path)
        node = find(self.root, path)
        text = (self._resolve_text(path, node) or "").strip() if isinstance(node, Scalar) else ""
        if not text:
            return None if key.default is None else str(key.default)
        return next((choice for choice in key.choices if choice.casefold() == text.casefold()), text)

    def flag(self, path: str) -> bool:
        """Return a boolean (true/yes/1, false/no/0 in any case). Empty text, null or an unset `{NAME}` give the
        default, which is False if the key has none.
        """
        return bool(self.flag_or_none(path))

    def flag_or_none(self, path: str) -> bool | None:
        """Return a boolean, or None if neither a value nor a default is set. Empty text, null and an unset `{NAME}`
        count as no value."""
        key = _key_of_type(path, KeyType.BOOL)
        value = self._text_at(path)
        if value is None:
            return None if key.default is None else bool(key.default)
        if value.casefold() not in BOOLEANS:
            raise self._error(path, f"{value!r} is not a boolean; allowed: {key.allowed}")
        return BOOLEANS[value.casefold()]

    def integer(self, path: str) -> int:
        """Return a whole number. Raises ConfigError for any other text, for a number outside the bounds of the key, and
        if neither a value nor a default is set."""
        value = self.integer_or_none(path)
        if value is None:
            raise self._error(path, "a number is needed")
        return value

    def integer_or_none(self, path: str) -> int | None:
        """Return a whole number. Raises ConfigError for any other text, and for a number outside the bounds of the key.

        An absent key and an unset `{NAME}` give the default. Null and empty text give None if the key is nullable, else
        the default. Without a default, all of these give None.
        """
        key = _key_of_type(path, KeyType.INT)
        value = self._text_at(path)
        if value is None:
            return key.default if isinstance(key.default, int) and not self._is_null(key, path) else None
        number = whole_number(value)
        if number is None:
            raise self._error(path, f"{value!r} is not a whole number")
        if message := bounds_violation(number, key):
            raise self._error(path, message)
        return number

    def text_if_set(self, path: str) -> str | None:
        """Return a text, or None if the user has written none or an empty one."""
        return None if find(self.root, path) is None else self.text_or_none(path) or None

    def integer_if_set(self, path: str) -> int | None:
        """Return a whole number, or None if the user has written none: the key is absent, null, empty or an unset
        `{NAME}`."""
        return self.integer(path) if self._text_at(path) else None

    def flag_if_set(self, path: str) -> bool | None:
        """Return a boolean, or None if the user has not written the key. Null and empty text give the default."""
        return None if find(self.root, path) is None else self.flag(path)

    def seconds(self, path: str) -> float:
        """Return a duration in seconds (comments-29). Raises ConfigError if neither a value nor a default is set."""
        value = self.seconds_or_none(path)
        if value is None:
            raise self._error(path, "a duration is needed")
        return value

    def seconds_or_none(self, path: str) -> float | None:
        """Return a duration in seconds (comments-29).

        An absent key and an unset `{NAME}` give the default. Null and empty text give None if the key is nullable, else
        the default. Without a default, all of these give None.
        """
        key = _key_of_type(path, KeyType.INTERVAL)
        value = self._text_at(path)
        if value is None:
            return None if key.default is None or self._is_null(key, path) else parse_interval(str(key.default))
        seconds = parse_interval(value)
        if seconds is None:
            raise self._error(path, f"{value!r} is not {key.allowed}")
        return seconds

    def choice(self, path: str) -> str:
        """Return one of the key's choices in its canonical spelling. Raises ConfigError for a value that is none of
        them, and if neither a value nor a default is set."""
        value = self.choice_or_none(path)
        if value is None:
            raise self._error(path, f"a value is needed; allowed: {key_at(path).allowed}")
        return value

    def choice_or_none(self, path: str) -> str | None:
        """Return one of the key's choices in its canonical spelling, or None if neither a value nor a default is
        set. Raises ConfigError for a value that is none of them.
        """
        key = _key_of_type(path, KeyType.CHOICE)
        value = self._text_at(path)
        if value is None:
            return None if key.default is None else str(key.default)
        for allowed in key.choices:
            if allowed.casefold() == value.casefold():
                return allowed
        raise self._error(path, f"{value!r} is not allowed; allowed: {key.allowed}")

    def texts(self, path: str) -> tuple[str, ...] | None:
        """Return the non-empty elements of an array, else the default; None if there is no default."""
        key = _key_of_type(path, KeyType.TEXTS)
        elements = self._elements(path)
        if not elements and key.default is None:
            return None
        return tuple(elements or _items(key.default))

    def lines(self, path: str) -> tuple[str, ...]:
        """Return the elements of an array as lines; the default if the array is absent. Empty elements are lines
        too, and an empty array has no lines."""
        key = _key_of_type(path, KeyType.TEXTS)
        node = find(self.root, path)
        if not isinstance(node, Section) or not (node.children or node.is_array):
            return tuple(_items(key.default))
        return tuple(self._scalar(f"{path}:{child.name}", child.node) or "" for child in node)

    def texts_if_set(self, path: str) -> tuple[str, ...] | None:
        """Return the non-empty elements of an array; an empty tuple for an empty array. None: the key is absent or
        null, or all elements are empty."""
        node = find(self.root, path)
        elements = self._elements(path)
        is_empty = isinstance(node, Section) and node.is_array and not node.children
        return tuple(elements) if elements or is_empty else None

    def numbers_if_set(self, path: str) -> tuple[float, ...] | None:
        """Return the elements of an array as numbers; an empty tuple for an empty array. None as for `texts_if_set`."""
        elements = self.texts_if_set(path)
        return None if elements is None else self._as_numbers(path, elements)

    def numbers(self, path: str) -> tuple[float, ...]:
        """Return the elements of an array as numbers; the default if the array is absent or empty."""
        key = _key_of_type(path, KeyType.NUMBERS)
        return self._as_numbers(path, self._elements(path) or _items(key.default))

    def _as_numbers(self, path: str, elements: Sequence[str]) -> tuple[float, ...]:
        if not all(map(is_amount, elements)):
            raise self._error(path, f"{', '.join(map(repr, elements))}: these are not all {key_at(path).allowed}")
        return tuple(map(float, elements))

    def text_map(self, path: str) -> dict[str, str | None]:
        """Return the texts of a map by their names in the user's spelling, sorted; the default if the map is absent or
        empty."""
        return {name: self.map_text(path, name) for name in self.names(path)}

    def names(self, path: str) -> tuple[str, ...]:
        """Return the names in a map, without reading their values; those of the default if the map is absent or
        empty."""
        node = find(self.root, path)
        if isinstance(node, Section) and node.children:
            return tuple(child.name for child in node)
        default = key_at(path).default
        return tuple(default) if isinstance(default, Mapping) else ()

    def map_text(self, path: str, name: str) -> str | None:
        """Return one entry of a text map, or of its default if the map is absent or empty; None: there is no entry,
        or it is null. Placeholders of the other entries are not resolved, so they cannot fail."""
        key = _key_of_type(path, KeyType.TEXT_MAP)
        node = find(self.root, path)
        if isinstance(node, Section) and node.children:
            entry = node.get(name)
            return None if entry is None else self._scalar(f"{path}:{name}", entry)
        defaults = key.default.items() if isinstance(key.default, Mapping) else ()
        text = next((text for default_name, text in defaults if default_name.casefold() == name.casefold()), None)
        return None if text is None else self._resolve_text(f"{path}:{name}", Scalar(str(text), _DEFAULT))

    def name_defaults(self, path: str) -> dict[str, str | None]:
        """Return name → default text for a key that is a map or a list of names; empty if the key is not configured
        (configuration-10, configuration-11).

        A map gives its entries, sorted, without those that are sections. A list gives its elements, in their order,
        with None as text.
        """
        _key_of_type(path, KeyType.NAMES)
        node = find(self.root, path)
        if not isinstance(node, Section):
            return {}
        if node.is_array:
            return dict.fromkeys(self._elements(path))
        texts = ((child.name, child.node) for child in node if isinstance(child.node, Scalar))
        return {name: self._scalar(f"{path}:{name}", scalar) for name, scalar in texts}

    def value(self, path: str) -> JsonValue:
        """Return a section as a dict and a list as a tuple, with all scalars as text or None (null); the default of the
        key if it is not configured or empty."""
        node = find(self.root, path)
        if node is None or (isinstance(node, Section) and not node.children):
            return key_at(path).default
        return self._plain(path, node)

    def _plain(self, path: str, node: Node) -> JsonValue:
        if isinstance(node, Scalar):
            return self._resolve_text(path, node)
        plain = {child.name: self._plain(f"{path}:{child.name}", child.node) for child in node}
        return tuple(plain.values()) if node.is_array else plain

    def _text_at(self, path: str) -> str | None:
        """Return the resolved text at `path`; None if it is absent, null, empty, or still contains a `{NAME}`."""
        node = find(self.root, path)
        text = None if node is None else self._scalar(path, node)
        text = text.strip() if text else None
        return None if not text or has_placeholder(text) else text

    def _is_null(self, key: Key, path: str) -> bool:
        """Return whether the user set null or empty text for a nullable key, which means "none" or "no limit"."""
        node = find(self.root, path) if key.nullable else None
        return isinstance(node, Scalar) and not (node.text or "").strip()

    def _elements(self, path: str) -> list[str]:
        node = find(self.root, path)
        if isinstance(node, Scalar) and node.text:
            raise self._error(path, 'a list is needed, such as ["a", "b"]')
        if not isinstance(node, Section):
            return []
        texts = (self._scalar(f"{path}:{child.name}", child.node) for child in node)
        return [text for text in texts if text]

    def _scalar(self, path: str, node: Node) -> str | None:
        if isinstance(node, Section):
            if not node.children:
                return None
            raise self._error(path, "a single value is needed here, not a section")
        return self._resolve_text(path, node)

    def _resolve_text(self, path: str, scalar: Scalar) -> str | None:
        if scalar.text is None:
            return None
        # Placeholders in built-in defaults (PGHOST and similar) are resolved even if substitution is switched off.
        variables = dict(self.variables) if scalar.origin is _DEFAULT else self.variables
        try:
            return resolve(scalar.text, variables)
        except MissingVariable as error:
            raise self._error(path, str(error)) from None

    def _error(self, path: str, message: str) -> ConfigError:
        origin = place(self.root, path)
        return ConfigError(f"{origin}: {path}: {message}" if origin else f"{path}: {message}")


def _with_names(path: str, names: tuple[str, ...]) -> str:
    """Return the path with the names of the user, in order, instead of `<name>` and `[]`, of which surplus ones
    stay."""
    remaining = iter(names)
    return ":".join(next(remaining, part) if part == "[]" or part.startswith("<") else part for part in path.split(":"))


def is_amount(text: str) -> bool:
    """Return whether `text` is a number of at least 0, which may have a fraction and an exponent."""
    return _AMOUNT.fullmatch(text) is not None


def _items(default: JsonValue) -> list[str]:
    return [str(item) for item in default] if isinstance(default, Sequence) else []


def _key_of_type(path: str, expected: KeyType) -> Key:
    key = key_at(path)
    if key.type is not expected:
        raise TypeError(f"{path} is declared as {key.type}, not as {expected}")
    return key
