"""Declare a section of the configuration: one class whose fields are its keys.

If a field has a type annotation, it is a key and an attribute of the object that `Settings.read` returns. The default
of the attribute is the default of the key. A field without a type annotation is only a key: no object has it.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, dataclass_transform

from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.keys import MOST, JsonValue, Key, KeyType
from rowcall.core.text.interval import parse_interval

T = TypeVar("T")

Convert = Callable[[Any], Any]
"""Turns the value of a key into that of the field. Raises ValueError; the message follows the path of the key."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A key of a section. The path of the key is relative until `section` completes it."""

    key: Key
    reader: str
    """Name of the method of `Settings` that reads the key."""
    convert: Convert | None = None
    each: Convert | None = None
    """Converts each text of a list or map, before `convert`."""
    elements: type[Any] | None = None
    """The section of one element of a list or map."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section within another one. kind: its class."""

    kind: type[Any]


@dataclass(frozen=True, slots=True)
class DeclaredSection:
    """The declaration of a class. path: of the section; empty: the root. keys: its keys, with those of its parts and
    elements, in order."""

    path: str
    keys: tuple[Key, ...]
    fields: Mapping[str, Declaration]
    """Name of a field of the object → its key."""
    parts: Mapping[str, type[Any]]
    """Name of a field of the object → the class of its part."""
    switch: str
    """Name of the key that enables the section."""


_SECTIONS: dict[type[Any], DeclaredSection] = {}


def declared_section(kind: type[Any]) -> DeclaredSection:
    """Return the declaration of a class with the decorator `section`, or that of its nearest base class. Raises
    StopIteration if there is none, which is a programming error."""
    return next(_SECTIONS[base] for base in kind.__mro__ if base in _SECTIONS)


def keys_of(kind: type[Any]) -> tuple[Key, ...]:
    """Return the keys of a section, with those of its parts and elements. kind: class with the decorator `section`."""
    return declared_section(kind).keys


@dataclass_transform(frozen_default=True)
def section(
    path: str, meaning: str = "", *, nullable: bool = False, switch: str = "Enabled"
) -> Callable[[type[T]], type[T]]:
    """Return a decorator that makes a class a section, and a frozen dataclass if it has type annotations.

    path: names separated by colons; `<name>` is a user-defined name, `[]` an array element. meaning: for the manual;
    empty: the section itself is declared elsewhere, because it is an element, or because several classes share it.
    nullable: null is a value. switch: name of the key that enables what the section is about.
    """

    def declare(kind: type[T]) -> type[T]:
        own = {name: value for name, value in vars(kind).items() if isinstance(value, Declaration | Part)}
        declared = {
            name: replace(value, key=replace(value.key, path=f"{path}:{value.key.path}".lstrip(":")))
            if isinstance(value, Declaration)
            else value
            for name, value in own.items()
        }
        keys = [_section_key(path, meaning, nullable)] if meaning else []
        keys += [key for value in declared.values() for key in _keys(value)]
        annotated = vars(kind).get("__annotations__", {})
        for name, value in declared.items():
            if name in annotated:
                setattr(kind, name, _field(value))
            else:
                delattr(kind, name)
        result = dataclass(frozen=True, slots=True)(kind) if annotated else kind
        objects = {name: value for name, value in declared.items() if name in annotated}
        _SECTIONS[result] = DeclaredSection(
            path,
            tuple(keys),
            {name: value for name, value in objects.items() if isinstance(value, Declaration)},
            {name: value.kind for name, value in objects.items() if isinstance(value, Part)},
            switch,
        )
        return result

    return declare


def _section_key(path: str, meaning: str, nullable: bool) -> Key:
    return Key(path, KeyType.SECTION, None if nullable else {}, meaning, nullable=nullable)


def _keys(value: Declaration | Part) -> Iterator[Key]:
    """Yield the keys of a declaration: its own, and those of its elements or of the part."""
    if isinstance(value, Part):
        yield from declared_section(value.kind).keys
        return
    yield value.key
    if value.elements is not None:
        yield from declared_section(value.elements).keys


def _field(value: Declaration | Part) -> Any:
    """Return the dataclass field of a declaration, with the converted default of the key."""
    if isinstance(value, Part):
        return dataclasses.field(default_factory=value.kind)
    default = convert_value(value, value.key.path, _default(value.key, value.reader))
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, repr=not value.key.secret)
    return dataclasses.field(default=default, repr=not value.key.secret)


def _default(key: Key, reader: str) -> Any:
    """Return the default of a key as the method `reader` of `Settings` returns it."""
    if reader.endswith("_if_set"):
        return None
    if reader == "lenient_text":
        return None if key.default is None else str(key.default)
    # The ignored types are those of other kinds of keys.
    match key.type:
        case KeyType.INTERVAL:
            return None if key.default is None else parse_interval(str(key.default))
        case KeyType.TEXTS | KeyType.STEPS | KeyType.OBJECTS:
            return None if key.default is None else tuple(key.default)  # type: ignore[arg-type]
        case KeyType.NUMBERS:
            return tuple(map(float, key.default))  # type: ignore[arg-type]
        case KeyType.TEXT_MAP:
            return dict(key.default)  # type: ignore[arg-type]
        case KeyType.NAMES:
            return {}
        case KeyType.BOOL if reader == "flag":
            return bool(key.default)
        case _:
            return key.default


def convert_value(declaration: Declaration, path: str, value: Any) -> Any:
    """Convert the value of a key to the value of its field. path: of the key with user-defined names, for messages.
    Raises `ConfigError` if the value is not valid."""
    if declaration.each is not None:
        value = _each_converted(declaration.each, path, value)
    return value if declaration.convert is None else _convert(declaration.convert, path, value)


def _each_converted(convert: Convert, path: str, value: Any) -> Any:
    """Return a map or a tuple with converted texts; an empty tuple for None. path: of the key, for messages. Raises
    `ConfigError` as `_convert` does."""
    if isinstance(value, Mapping):
        return {name: _convert(convert, f"{path}:{name}", text) for name, text in value.items()}
    return tuple(_convert(convert, path, text) for text in value or ())


def _convert(convert: Convert, path: str, value: Any) -> Any:
    """Return the converted value. path: of the key, for the message. Raises `ConfigError` for a ValueError."""
    try:
        return convert(value)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def subsection(name: str, meaning: str, *, nullable: bool = False) -> Any:
    """Declare the key of a section below the class's section, without its inner keys: these are declared in this class
    (`Name:Key`) or in a part. nullable: null is a value."""
    return Declaration(_section_key(name, meaning, nullable), "value")


def part(kind: type[Any]) -> Any:
    """Declare the keys of another section as a part of this class. A field with a type annotation has the object of
    that section. kind: its class, with the decorator `section` and the full path of the section."""
    return Part(kind)


def only_for(types: str, declaration: Any) -> Any:
    """Restrict a key to some values of its sibling key `Type`. types: values separated by spaces."""
    return replace(declaration, key=replace(declaration.key, only_for=tuple(types.split())))


def lenient(declaration: Any, convert: Convert | None = None) -> Any:
    """Accept any text for a key. The field has the text, or one of the choices in its canonical spelling; the reader of
    the object decides what an unknown word means. Null and a blank text give the default of the key, or None without
    one.

    convert: replaces the conversion of the declaration; None: the text is not converted, also not to a member of an
    enum.
    """
    return replace(declaration, key=replace(declaration.key, lenient=True), reader="lenient_text", convert=convert)


def if_set(declaration: Any) -> Any:
    """Make the field None unless the user has set the key, because its default depends on other keys.

    declaration: the key, with the default for the manual: a text, an integer or a flag that has a default and is not
    nullable, or a list of texts or numbers.
    """
    return replace(declaration, reader=f"{declaration.reader}_if_set")


def text(
    name: str,
    default: str | None,
    meaning: str,
    *,
    nullable: bool = False,
    secret: bool = False,
    empty: bool = False,
    convert: Convert | None = None,
) -> Any:
    """Declare a text. If it is nullable or has no default, null and an empty text give None; otherwise they give the
    default. With `empty`, an empty text stays a text, and null gives None. secret: output and logs do not show it."""
    nullable = nullable or default is None
    key = Key(name, KeyType.TEXT, default, meaning, nullable=nullable, secret=secret)
    if nullable and not empty:
        convert = _or_none if convert is None else _empty_as_none(convert)
    return Declaration(key, "text_or_none" if nullable or empty else "text", convert)


def _or_none(value: str | None) -> str | None:
    return value or None


def _empty_as_none(convert: Convert) -> Convert:
    return lambda value: convert(value or None)


def flag(name: str, default: bool | None, meaning: str, *, convert: Convert | None = None) -> Any:
    """Declare a boolean. Without a default, null gives None."""
    key = Key(name, KeyType.BOOL, default, meaning, nullable=default is None)
    return Declaration(key, "flag_or_none" if default is None else "flag", convert)


def integer(
    name: str,
    default: int | None,
    meaning: str,
    *,
    nullable: bool = False,
    minimum: int = 0,
    maximum: int = MOST,
    convert: Convert | None = None,
) -> Any:
    """Declare a whole number from `minimum` to `maximum`. If it is nullable or has no default, null gives None. The
    bounds are those of the key, before `convert`."""
    nullable = nullable or default is None
    key = Key(name, KeyType.INT, default, meaning, nullable=nullable, minimum=minimum, maximum=maximum)
    return Declaration(key, "integer_or_none" if nullable else "integer", convert)


def interval(
    name: str, default: str | None, meaning: str, *, nullable: bool = False, convert: Convert | None = None
) -> Any:
    """Declare a duration; the field has seconds. If it is nullable or has no default, null gives None."""
    nullable = nullable or default is None
    key = Key(name, KeyType.INTERVAL, default, meaning, nullable=nullable)
    return Declaration(key, "seconds_or_none" if nullable else "seconds", convert)


def choice(
    name: str, choices: str | type[enum.Enum], default: str | None, meaning: str, *, convert: Convert | None = None
) -> Any:
    """Declare one of several words. choices: the words, separated by spaces, or an enum, whose values they are; then
    the field has a member. Without a default, null gives None. convert: gets the word, also for an enum, instead of the
    conversion to a member."""
    words = choices.split() if isinstance(choices, str) else [member.value for member in choices]
    key = Key(name, KeyType.CHOICE, default, meaning, nullable=default is None, choices=tuple(words))
    if convert is None and not isinstance(choices, str):
        convert = _member(choices)
    return Declaration(key, "choice_or_none" if default is None else "choice", convert)


def _member(kind: type[enum.Enum]) -> Convert:
    return lambda word: None if word is None else kind(word)


def texts(
    name: str,
    default: Sequence[str] | None,
    meaning: str,
    *,
    each: Convert | None = None,
    convert: Convert | None = None,
) -> Any:
    """Declare a list of texts; the field has a tuple. Empty texts are dropped; if none is left, it is the default, or
    None without a default. each: converts each text, and makes None an empty tuple."""
    key = Key(name, KeyType.TEXTS, default, meaning, nullable=default is None)
    return Declaration(key, "texts", convert, each)


def lines(name: str, default: Sequence[str], meaning: str) -> Any:
    """Declare a list of texts in which empty texts count too; the field has a tuple. The default applies if the key is
    absent; an empty list gives an empty tuple."""
    return Declaration(Key(name, KeyType.TEXTS, default, meaning), "lines")


def numbers(name: str, default: Sequence[float], meaning: str) -> Any:
    """Declare a list of numbers of at least 0; the field is a tuple of floats."""
    return Declaration(Key(name, KeyType.NUMBERS, default, meaning), "numbers")


def text_map(
    name: str,
    default: Mapping[str, str],
    meaning: str,
    *,
    choices: str = "",
    secret: bool = False,
    each: Convert | None = None,
    convert: Convert | None = None,
) -> Any:
    """Declare a map of texts; the field has a dict, whose values may be None. choices: the values that have an effect,
    separated by spaces, for the manual; empty: any. secret: output and logs do not show the values. each: converts each
    value, None too."""
    key = Key(name, KeyType.TEXT_MAP, default, meaning, choices=tuple(choices.split()), secret=secret, open=True)
    return Declaration(key, "text_map", convert, each)


def names(name: str, meaning: str) -> Any:
    """Declare a list of names, or a map of names to default texts. The field has a dict by name, whose values are None
    for names without a default text."""
    return Declaration(Key(name, KeyType.NAMES, (), meaning), "name_defaults")


def texts_or_sections(
    name: str, meaning: str, *, elements: type[Any] | None = None, convert: Convert | None = None
) -> Any:
    """Declare a list of texts and sections. Before `convert`, sections are dicts, whose scalars are texts or None
    (null). elements: the class that declares the keys of the sections; None: they are not declared."""
    return Declaration(Key(name, KeyType.STEPS, (), meaning), "value", convert, elements=elements)


def objects(
    name: str,
    default: Sequence[Mapping[str, JsonValue]] | None,
    meaning: str,
    *,
    elements: type[Any] | None = None,
    convert: Convert | None = None,
) -> Any:
    """Declare a list of sections. Before `convert`, these are dicts, whose scalars are texts or None (null). elements:
    the class that declares their keys; None: they are not declared."""
    key = Key(name, KeyType.OBJECTS, default, meaning, nullable=default is None)
    return Declaration(key, "value", convert, elements=elements)


def object_map(
    name: str,
    default: Mapping[str, JsonValue] | None,
    meaning: str,
    *,
    open: bool = False,
    secret: bool = False,
    elements: type[Any] | None = None,
    convert: Convert | None = None,
) -> Any:
    """Declare a map of sections. Before `convert`, it is a dict of dicts, whose scalars are texts or None (null). open:
    keys below are not checked. secret: output and logs mask each value in the map whose name is that of a secret, such
    as `Password`. elements: the class that declares the keys of the sections; None: they are not declared."""
    key = Key(name, KeyType.OBJECT_MAP, default, meaning, nullable=default is None, open=open, secret=secret)
    return Declaration(key, "value", convert, elements=elements)


def any_value(name: str, meaning: str) -> Any:
    """Declare a value of any type."""
    return Declaration(Key(name, KeyType.ANY, None, meaning, nullable=True), "value")
