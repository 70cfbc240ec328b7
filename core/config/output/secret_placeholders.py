"""Replace masked secrets by named placeholders, so that the printed configuration can be used as a file.

The entries are masked before, so that this module neither decides what is secret nor sees a secret value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rowcall.core.config.output.effective import Entry
from rowcall.core.config.output.masking import MASK
from rowcall.core.sections.keys import JsonValue

_FALLBACK = re.compile(r"\{!([^\s{}:!]+):" + re.escape(MASK) + r"\}")
"""A placeholder with a masked fallback; since the fallback is not shown, the variable becomes required."""
_PART = re.compile(r"(?:(?P<word>[\w ]*?\w)\s*=\s*|://[^:/?#@]*:)" + re.escape(MASK))
_OTHERS = re.compile(r"[^A-Z0-9]+")


@dataclass(slots=True)
class SecretPlaceholders:
    """Replaces masks in entries, and collects the names of the needed environment variables."""

    names: dict[str, str] = field(default_factory=dict)
    """Name of the environment variable that replaces a secret → path of its key."""

    def entries(self, entries: Iterable[Entry], path: str = "") -> tuple[Entry, ...]:
        """Return the entries with placeholders instead of masks. path: of the section that contains them."""
        return tuple(self._entry(entry, f"{path}:{entry.name}" if path else entry.name) for entry in entries)

    def _entry(self, entry: Entry, path: str) -> Entry:
        if entry.entries is not None:
            return replace(entry, entries=self.entries(entry.entries, path))
        return replace(entry, value=self._value(entry.value, path))

    def _value(self, value: JsonValue, path: str) -> JsonValue:
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, Mapping):
            return {name: self._value(inner, f"{path}:{name}") for name, inner in value.items()}
        if isinstance(value, Sequence):
            return tuple(self._value(inner, f"{path}:{index}") for index, inner in enumerate(value))
        return value

    def _text(self, text: str, path: str) -> str:
        if MASK not in text:
            return text
        if text == MASK:
            return self._add_placeholder(path, path)
        text = _FALLBACK.sub(lambda match: f"{{!{match[1]}}}", text)
        return _PART.sub(lambda match: self._part(match, path), text)

    def _part(self, match: re.Match[str], path: str) -> str:
        shown = match[0].removesuffix(MASK)
        return shown + self._add_placeholder(f"{path}:{match['word'] or 'Password'}", path)

    def _add_placeholder(self, words: str, path: str) -> str:
        """Return a new placeholder for a secret (`Auth:JwtSecret` → `{!AUTH__JWTSECRET}`), and add its variable to
        `names`. If `names` has the variable already, a number is appended (`AUTH__JWTSECRET_2`).

        words: parts of the name of the variable, separated by colons. path: of the key with the secret, which becomes
        the value in `names`.
        """
        plain = "__".join(_OTHERS.sub("_", word.upper()).strip("_") for word in words.split(":"))
        name, number = plain, 1
        while name in self.names:
            number += 1
            name = f"{plain}_{number}"
        self.names[name] = path
        return f"{{!{name}}}"
