"""Parse the relaxed JSON of configuration files: comments, trailing commas and a byte order mark (configuration-3).

A key may be a path such as `"Service:UrlPathPrefix"`, as on the command line.

The `json` module cannot be used: each value needs its line and column for later messages, and keys that differ only in
case are an error. The parser reads files of a few kilobytes, once, at the start.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable

from rowcall.core.config.table import is_secret
from rowcall.core.config.tree import MAX_DEPTH, Child, Node, Origin, Scalar, Section
from rowcall.core.sections.errors import ConfigError

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD = re.compile(r"[^\s,:\[\]{}\"/]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x1f]")


def parse(source: str, text: str) -> Section:
    """Parse the `text` of a file, whose root must be an object. source: name of the file. Raises ConfigError with the
    name, line and column."""
    parser = _Parser(source, text.removeprefix("\ufeff"))
    return parser.document()


def _repeated_key_error(path: str, origin: Origin, earlier: Child) -> ConfigError:
    return ConfigError(f"{origin}: {path}: the key is given twice, first at {earlier.origin}")


def _merge_children(earlier: Child, later: Child, path: str) -> Child:
    """Merge two parts of a section. path: of the section, for messages. Raises ConfigError for a value that both parts
    contain."""
    before, after = earlier.node, later.node
    if not isinstance(before, Section) or not isinstance(after, Section) or before.is_array or after.is_array:
        raise _repeated_key_error(path, later.origin, earlier)
    children = dict(before.children)
    for name, child in after.children.items():
        existing = children.get(name)
        children[name] = child if existing is None else _merge_children(existing, child, path)
    return Child(earlier.name, Section(children), earlier.origin)


class _Parser:
    """A parser of one file. Methods read at the current position and move it behind what they have read."""

    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self._text = text
        self._at = 0
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        """Offset of the first character of each line."""

    def document(self) -> Section:
        self._skip()
        if self._peek() != "{":
            raise self._error("a configuration file is one JSON object: expected '{'")
        root = self._object("", 0)
        self._skip()
        if self._at < len(self._text):
            raise self._error("nothing may follow the closing '}'")
        return root

    def _value(self, path: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._error("nested too deeply", path)
        start = self._peek()
        if start == "{":
            return self._object(path, depth)
        if start == "[":
            return self._array(path, depth)
        origin = self._origin()
        if start == '"':
            return Scalar(self._string(path), origin)
        return Scalar(self._literal(path), origin)

    def _object(self, path: str, depth: int) -> Section:
        children: dict[str, Child] = {}
        opened: set[str] = set()
        """Sections that a path such as `"Service:UrlPathPrefix"` has opened; further keys may add to them."""

        def member() -> None:
            if self._peek() != '"':
                raise self._error("expected a key in double quotes or '}'", path)
            origin, key_text = self._origin(), self._string(path)
            key_path = f"{path}:{key_text}" if path else key_text
            name, *below = key_text.split(":")
            earlier = children.get(name.casefold())
            if earlier is not None and not (below or name.casefold() in opened):
                raise _repeated_key_error(key_path, origin, earlier)
            self._skip()
            self._expect(":", key_path)
            self._skip()
            node = self._value(key_path, depth + 1 + len(below))
            for step in reversed(below):
                node = Section({step.casefold(): Child(step, node, origin)})
            child = Child(name, node, origin)
            children[name.casefold()] = child if earlier is None else _merge_children(earlier, child, key_path)
            if below:
                opened.add(name.casefold())

        self._items("}", member, path)
        return Section(children)

    def _array(self, path: str, depth: int) -> Section:
        children: dict[str, Child] = {}

        def element() -> None:
            index, origin = str(len(children)), self._origin()
            children[index] = Child(index, self._value(f"{path}:{index}", depth + 1), origin)

        self._items("]", element, path)
        return Section(children, is_array=True)

    def _items(self, closing: str, read: Callable[[], None], path: str) -> None:
        """Read from the opening bracket to `closing`, which is `}` or `]`; a comma before it is allowed. read: reads
        one item. path: of the object or array, for messages. Raises ConfigError for invalid syntax."""
        self._at += 1
        self._skip()
        while self._peek() != closing:
            read()
            self._skip()
            if self._peek() != closing:
                self._expect(",", path, f"expected ',' or '{closing}'")
                self._skip()
        self._at += 1

    def _string(self, path: str) -> str:
        match = _STRING.match(self._text, self._at)
        if match is None:
            raise self._error(self._why_no_text(), path)
        try:
            value = str(json.loads(match[0]))
        except ValueError:
            raise self._error("the text holds an unknown escape sequence", path) from None
        if _HALF_CHARACTER.search(value):
            raise self._error("the text holds half of a surrogate pair", path)
        self._at = match.end()
        return value

    def _why_no_text(self) -> str:
        stop = _CONTROL.search(self._text, self._at)
        if stop is None or stop[0] in "\r\n":
            return "the text has no closing quote on its line"
        return f"the text holds a control character, which is written \\u{ord(stop[0]):04x}"

    def _literal(self, path: str) -> str | None:
        match = _WORD.match(self._text, self._at)
        word = match[0] if match else self._peek()
        if word not in ("true", "false", "null") and not _NUMBER.fullmatch(word):
            shown = "the text here" if is_secret(path) else repr(word)
            what = f"{shown} is no JSON value; a text needs double quotes" if word else "a value is missing"
            raise self._error(what, path)
        self._at += len(word)
        return None if word == "null" else word

    def _skip(self) -> None:
        if match := _SPACE.match(self._text, self._at):
            self._at = match.end()
        if self._text.startswith("/*", self._at):
            raise self._error("the comment has no closing */")

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _expect(self, character: str, path: str, message: str | None = None) -> None:
        if self._peek() != character:
            raise self._error(message or f"expected '{character}'", path)
        self._at += 1

    def _origin(self) -> Origin:
        line = bisect.bisect_right(self._lines, self._at)
        return Origin(self._source, line, self._at - self._lines[line - 1] + 1)

    def _error(self, message: str, path: str = "") -> ConfigError:
        where = f"{self._origin()}: {path}" if path else str(self._origin())
        return ConfigError(f"{where}: {message}")
