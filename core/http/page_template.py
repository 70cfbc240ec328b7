"""Insert values into pages while they are served: `{user_name}`, `{!depot}`, `{!theme:"light"}` (static-files-5 and 6).

Only known names are replaced, so that the braces of scripts and styles are preserved. A value is inserted as JSON text,
for scripts and for attributes with single quotes: `<`, `>`, `&` and `'` are escaped in it, because a value such as
`</script>` would end the script.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

_TOKEN = re.compile(rb"\{(!?)([^{}:\s]+)(?::([^{}]*))?\}")
_DANGEROUS = {
    b"<": b"\\u003c",
    b">": b"\\u003e",
    b"&": b"\\u0026",
    b"'": b"\\u0027",
    b"\xe2\x80\xa8": b"\\u2028",
    b"\xe2\x80\xa9": b"\\u2029",
}
_PATTERN = re.compile(b"|".join(_DANGEROUS))


def json_text(value: object) -> bytes:
    """Return a value as JSON text for a script or for an attribute with single quotes. Raises TypeError for a value
    that orjson cannot write."""
    return _PATTERN.sub(lambda match: _DANGEROUS[match[0]], orjson.dumps(value))


class PageTemplate:
    """A page that is split at its placeholders once, and filled for each request. text: the page as it is stored."""

    def __init__(self, text: bytes) -> None:
        self._pieces: list[tuple[bytes, bytes, bytes | None, bytes]] = []
        """Text, name of the placeholder behind it, its default, and the placeholder as it is written."""
        end = 0
        for match in _TOKEN.finditer(text):
            strict, name, instead = match.groups()
            if instead is not None and not strict:
                continue
            self._pieces.append((text[end : match.start()], name, instead, match[0]))
            end = match.end()
        self._rest = text[end:]

    def fill(self, values: Mapping[bytes, bytes], not_empty: frozenset[bytes] | set[bytes]) -> bytes:
        """Return the page with values in place of its placeholders.

        values: JSON by name; other placeholders are unchanged. not_empty: names whose values are not empty; for other
        names, the default of the placeholder is inserted, if it has one.
        """
        parts: list[bytes] = []
        for text, name, instead, spelled in self._pieces:
            value = values.get(name, spelled)
            parts += (
                text,
                instead if instead is not None and value is not spelled and name not in not_empty else value,
            )
        return b"".join((*parts, self._rest))
