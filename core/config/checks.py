"""Check a whole configuration before values are read: values of the wrong type, and keys without effect.

Values are read when they are needed, so a mistake in a disabled capability has no consequences (configuration-12).
Therefore each mistake records whether its section is in use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rowcall.core.auth.schemes import BearerScheme, CookieScheme, JwtScheme
from rowcall.core.config.placeholders import has_placeholder, resolve_what_is_set
from rowcall.core.config.settings import BOOLEANS, Settings, bounds_violation, is_amount, whole_number
from rowcall.core.config.table import KEY_TREE, KeyNode
from rowcall.core.config.tree import Node, Origin, Scalar, Section
from rowcall.core.config.validation import RENAMED
from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.keys import Key, KeyType
from rowcall.core.text.interval import parse_interval


@dataclass(frozen=True, slots=True)
class InvalidSetting:
    """A value or key of the user's configuration that is not valid. path: in the user's spelling. origin: its place;
    None: unknown. message: what is wrong with it."""

    path: str
    origin: Origin | None
    message: str
    in_use: bool
    """False: the value is in a section whose `Enabled` is off."""

    def __str__(self) -> str:
        return f"{self.origin}: {self.path}: {self.message}" if self.origin else f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class DeclaredSetting:
    """A node of the user's configuration that the table declares.

    path: in the user's spelling. node_of_key: the key tree node that declares it. in_use: False: the `Enabled` of a
    section that contains it is off.
    """

    path: str
    node: Node
    origin: Origin
    node_of_key: KeyNode
    in_use: bool


def invalid_settings(settings: Settings) -> tuple[InvalidSetting, ...]:
    """Return the invalid values of the configuration, in sorted order, and then its former keys of session lifetimes,
    which are no longer accepted."""
    mistakes = [mistake for setting in walk(settings) for mistake in _mistakes_of(setting, settings.variables)]
    return (*mistakes, *_former_session_keys(settings))


def _mistakes_of(setting: DeclaredSetting, variables: Mapping[str, str]) -> Iterator[InvalidSetting]:
    key = setting.node_of_key.key
    if not (key is not None and key.lenient) and (message := _wrong(setting.node, key, variables)):
        yield InvalidSetting(setting.path, setting.origin, message, setting.in_use)
    elif key is not None and isinstance(setting.node, Section):
        for element in setting.node:
            if message := _wrong_element(element.node, key.type, variables):
                origin = element.node.origin if isinstance(element.node, Scalar) else element.origin
                yield InvalidSetting(f"{setting.path}:{element.name}", origin, message, setting.in_use)


_MERGED = {"ConnectionStrings", "Log:MinimalLevels"}
"""Maps that drop no default entries: they are merged with their defaults, or the default is only a starting point."""


def configuration_warnings(settings: Settings) -> tuple[str, ...]:
    """Return warnings about values in use that are valid but probably mistakes:

    - a word that is none of the choices of a lenient key, which then has its default, or of a map, where it has no
      effect;
    - a section as the default of a name, where one text is needed;
    - a map that replaces a default map and lacks some of its entries.
    """
    return tuple(
        message for setting in walk(settings) if setting.in_use for message in _warnings(setting, settings.variables)
    )


def _warnings(setting: DeclaredSetting, variables: Mapping[str, str]) -> Iterator[str]:
    key = setting.node_of_key.key
    if key is None:
        return
    place = f"{setting.path} at {setting.origin}"
    # Readers report unknown words of keys without a default, and leave out the section.
    if key.lenient and key.default is not None and (message := _wrong(setting.node, key, variables)):
        yield f"{place}: {message}; the default {key.default} is used"
    if key.type is KeyType.NAMES and isinstance(setting.node, Section) and not setting.node.is_array:
        for child in setting.node:
            if isinstance(child.node, Section) and child.node.children:
                yield f"{setting.path}:{child.name} at {child.origin}: a default is one text; the name is skipped"
    if key.type is not KeyType.TEXT_MAP or not isinstance(setting.node, Section) or not setting.node.children:
        return
    if key.choices:
        yield from _unknown_words(setting.node, key, setting.path, variables)
    dropped = [name for name in _default_names(key) if name.casefold() not in setting.node.children]
    if dropped and key.path not in _MERGED:
        yield f"{place} replaces the default map and drops {', '.join(dropped)}: give them here too, or null"


def _unknown_words(node: Section, key: Key, path: str, variables: Mapping[str, str]) -> Iterator[str]:
    words = {word.casefold() for word in key.choices}
    for child in node:
        text = _text(child.node, variables) if isinstance(child.node, Scalar) else None
        if text and not has_placeholder(text) and text.casefold() not in words:
            place = f"{path}:{child.name} at {child.origin}"
            yield f"{place}: {text!r} is none of {', '.join(key.choices)} and has no effect"


def _default_names(key: Key) -> Sequence[str]:
    return tuple(key.default) if isinstance(key.default, Mapping) else ()


def walk(settings: Settings) -> Iterator[DeclaredSetting]:
    """Yield the declared nodes of the user's configuration, each section before its content."""
    yield from _walk(settings.root, KEY_TREE, "", in_use=True, variables=settings.variables)


def _walk(
    section: Section, node_of_key: KeyNode, path: str, *, in_use: bool, variables: Mapping[str, str]
) -> Iterator[DeclaredSetting]:
    in_use = in_use and _is_enabled(section, node_of_key, variables)
    for child in section:
        known_node = node_of_key.child(child.name)
        if known_node is None:
            continue
        child_path = f"{path}:{child.name}" if path else child.name
        origin = child.node.origin if isinstance(child.node, Scalar) else child.origin
        yield DeclaredSetting(child_path, child.node, origin, known_node, in_use)
        if isinstance(child.node, Section):
            yield from _walk(child.node, known_node, child_path, in_use=in_use, variables=variables)


def _is_enabled(section: Section, node_of_key: KeyNode, variables: Mapping[str, str]) -> bool:
    switch = node_of_key.key_nodes.get("enabled")
    if switch is None or switch.key is None or switch.key.type is not KeyType.BOOL:
        return True
    node = section.get("Enabled")
    if node is not None and _wrong(node, switch.key, variables):
        return True  # so that the invalid value is reported as in use
    text = _text(node, variables) if isinstance(node, Scalar) else None
    return BOOLEANS.get((text or "").casefold(), bool(switch.key.default))


def _text(node: Scalar, variables: Mapping[str, str]) -> str | None:
    return None if node.text is None else resolve_what_is_set(node.text, variables).strip()


def _wrong(node: Node, key: Key | None, variables: Mapping[str, str]) -> str | None:
    if key is None or key.type is KeyType.ANY:
        return None
    if isinstance(node, Section):
        return _wrong_section(node, key)
    text = _text(node, variables)
    if not text or has_placeholder(text):
        return None
    return _wrong_text(text, key)


_MAPS = {KeyType.SECTION, KeyType.TEXT_MAP, KeyType.OBJECT_MAP}
_LISTS = {KeyType.TEXTS, KeyType.NUMBERS, KeyType.OBJECTS, KeyType.STEPS}
_SINGLE = {KeyType.TEXT, KeyType.BOOL, KeyType.INT, KeyType.CHOICE, KeyType.INTERVAL}


_NO_VALUE = "a single value is needed here, not a section"
_NO_NAMES = "names with their values in { } are needed here, not a list"
_NO_SECTION = "a section is needed here, not a single value"


def _wrong_section(node: Section, key: Key) -> str | None:
    if not node.children:
        return None
    if key.type in _SINGLE:
        return _NO_VALUE
    if key.type in _MAPS and node.is_array:
        return _NO_NAMES
    if key.type in _LISTS and not node.is_array:
        return "a list in [ ] is needed here, not a section"
    return None


_OF_SECTIONS = {KeyType.OBJECTS, KeyType.OBJECT_MAP}
_OF_TEXTS = {KeyType.TEXTS, KeyType.NUMBERS, KeyType.TEXT_MAP}


def _wrong_element(node: Node, kind: KeyType, variables: Mapping[str, str]) -> str | None:
    """Return what is wrong with an element of a list or map, or None. Null and empty text are never wrong. kind: type
    of the list or map. variables: for placeholders."""
    if isinstance(node, Scalar):
        text = _text(node, variables)
        if kind is KeyType.NUMBERS and text and not has_placeholder(text) and not is_amount(text):
            return f"{text!r} is not a number of at least 0"
        return _NO_SECTION if kind in _OF_SECTIONS and text else None
    if not node.children:
        return None
    if kind in _OF_TEXTS or (kind is KeyType.STEPS and node.is_array):
        return _NO_VALUE
    return _NO_NAMES if kind in _OF_SECTIONS and node.is_array else None


def _wrong_text(text: str, key: Key) -> str | None:
    match key.type:
        case KeyType.BOOL if text.casefold() not in BOOLEANS:
            return f"{text!r} is not a boolean; allowed: {key.allowed}"
        case KeyType.INT:
            return _wrong_number(text, key)
        case KeyType.INTERVAL if parse_interval(text) is None:
            return f"{text!r} is not {key.allowed}"
        case KeyType.CHOICE if text.casefold() not in {choice.casefold() for choice in key.choices}:
            return f"{text!r} is not allowed; allowed: {key.allowed}"
        case kind if kind in _LISTS:
            return 'a list is needed, such as ["a", "b"]'
        case KeyType.NAMES:
            return 'a list of names is needed, such as ["a", "b"], or names with their default texts in { }'
        case kind if kind in _MAPS:
            return _NO_SECTION
        case _:
            return None


def _wrong_number(text: str, key: Key) -> str | None:
    number = whole_number(text)
    if number is None:
        return f"{text!r} is not a whole number"
    return bounds_violation(number, key)


def _former_session_keys(settings: Settings) -> Iterator[InvalidSetting]:
    """Yield former keys of session lifetimes. They are errors if a scheme is enabled.

    If such a key were ignored, sessions would have another lifetime than intended.
    """
    section = settings.root.get("Auth")
    if not isinstance(section, Section):
        return
    try:
        on = any(settings.is_enabled(scheme) for scheme in (CookieScheme, BearerScheme, JwtScheme))
    except ConfigError:
        return
    for child in section:
        new, example = RENAMED.get(f"auth:{child.name}".casefold(), ("", ""))
        if new:
            message = f'the key is called {new} now and takes a duration, for example "{example}"'
            yield InvalidSetting(f"Auth:{child.name}", child.origin, message, on)
