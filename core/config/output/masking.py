"""Mask secrets for output: a password becomes asterisks; a placeholder that stands for it stays readable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from secrets import token_hex

from rowcall.core.config.placeholders import resolve_what_is_set, sole_placeholder

MASK = "******"

SECRET_WORDS = ("password", "passphrase", "passwd", "passwort", "pwd", "psw", "key", "cert", "secret")
"""Words in the keywords of connection strings whose values are secret."""
_MISSPELT = r"p[ _]*a[ _]*s(?![ _s]*f)|p[ _]*w"
"""Misspelled password keywords (`Pasword`, `Pass`, `pw`): they have no effect, but `--config` would show their values.
`Passfile` is excluded, since it names a file."""
_SENSITIVE_NAME = rf"[\w ]*(?:{'|'.join('[ _]*'.join(word) for word in SECRET_WORDS)}|{_MISSPELT})[\w ]*?"
"""Names of secret values; spaces and underscores within a keyword are ignored, as the parser ignores them."""
_START = rf"(?P<name>{_SENSITIVE_NAME})(?P<equals>\s*=\s*)"
_DOUBLED = r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'"
_ESCAPED = r"'(?:[^'\\]|\\.)*'\S*"
_PAIR = re.compile(rf"{_START}(?P<value>(?:{_DOUBLED})?[^;]*)", re.IGNORECASE)
"""Pair of a keyword string, `Password=…;`; a quote within quotes is doubled."""
_LIST_PAIR = re.compile(rf"{_START}(?P<value>[^,]*)", re.IGNORECASE)
"""Pair of a Redis configuration, `host:port,password=…,`."""
_WORD_PAIR = re.compile(rf"{_START}(?P<value>{_ESCAPED}|.*?(?=&|\s+[a-z_]+\s*=|$))", re.IGNORECASE | re.DOTALL)
"""Pair of a libpq string, `password=… dbname=…`, where a backslash escapes a quote within quotes; also the query of a
URI."""
_IN_URI = re.compile(r"(?P<name>://[^:/?#@]*)(?P<equals>:)(?P<value>.*)(?=@)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{!?[^\s{}:!]+(?::[^}]*)?\}")

_SECRET_NAME = re.compile(
    r"password|passwort|passphrase|passwd|pwd|secret|token|api[-_ ]?key|authorization|cookie|credential", re.IGNORECASE
)


def names_a_secret(name: str) -> bool:
    """Return whether a user-defined name, such as that of a header, contains a word of secrets in any case, such as
    `token`."""
    return _SECRET_NAME.search(name) is not None


def mask_whole(text: str) -> str:
    """Return `MASK` for a text that is secret as a whole; an empty text stays empty.

    A text that is only one placeholder stays, as it shows only the source of the value: `{NAME}` as it is,
    `{!NAME:fallback}` with a masked fallback.
    """
    if not text:
        return text
    placeholder = sole_placeholder(text.strip())
    if placeholder is None:
        return MASK
    name, fallback = placeholder
    return text.strip() if fallback is None else f"{{!{name}:{fallback and MASK}}}"


_WORD = r"(?:\"[^\"]*\"|'[^']*'|[^\s;&|\"']+)"
_ASSIGNED = re.compile(
    rf"(?P<name>[\w-]*(?:{_SECRET_NAME.pattern})[\w-]*)(?P<equals>\s*[=:]\s*|\s+)(?P<value>(?:(?:bearer|basic)\s+)?{_WORD})",
    re.IGNORECASE,
)
_SWITCHES = re.compile(
    rf"(?P<name>(?:^|\s)(?:-u|--user)\s+[^\s:'\"]+|\s-p|\bredis-cli\b[^;|&\n]*?\s-a\s+)(?P<equals>:|)(?P<value>(?<=:){_WORD}|"
    rf"(?<=\s-p)(?=\D)(?=\S){_WORD}|(?<=\s-a\s){_WORD})"
)
"""Passwords in command-line switches: `curl -u name:password`, `mysql -ppassword`, `redis-cli -a password`. Digits
after `-p` are a port."""
_IN_ADDRESS = re.compile(r"(?P<name>://[^:/?#@\s'\"]*)(?P<equals>:)(?P<value>[^@\s'\"]*)(?=@)")


class _Marks:
    """Marks in a text, for parts of it that are put aside while the rest is changed. They are random, so that neither
    the text nor a variable contains one by itself."""

    def __init__(self) -> None:
        self._parts: dict[str, str] = {}

    def __contains__(self, text: str) -> bool:
        """Return whether the text is a mark."""
        return text in self._parts

    def mark_part(self, part: str) -> str:
        """Return a new mark for a part."""
        mark = f"\x00{token_hex(16)}\x00"
        self._parts[mark] = part
        return mark

    def restore_parts(self, text: str) -> str:
        """Return the text with the parts in place of their marks."""
        return _MARK.sub(lambda match: self._parts.get(match[0], match[0]), text)


_MARK = re.compile("\x00[0-9a-f]{32}\x00")


def mask_in_text(text: str, variables: Mapping[str, str]) -> str:
    """Return a shell command or SQL text with resolved placeholders and masked secrets. variables: for placeholders.

    Masked are the word after each word that names a secret (`PGPASSWORD=…`, `--token …`, `password '…'`), and passwords
    in addresses. In doubt, a word is masked.
    """
    marks = _Marks()

    def mask_value(match: re.Match[str]) -> str:
        if match["value"] in marks:
            return match[0]
        return f"{match['name']}{match['equals']}{marks.mark_part(mask_whole(match['value']))}"

    def mask_values(text: str) -> str:
        return _SWITCHES.sub(mask_value, _IN_ADDRESS.sub(mask_value, _ASSIGNED.sub(mask_value, text)))

    # Before resolution, so that placeholders of secrets stay; and after it, for secrets within other variables.
    return marks.restore_parts(mask_values(resolve_what_is_set(mask_values(text), variables)))


def mask_in_addresses(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with resolved placeholders. If it contains an address (`://`) before or after their resolution, its
    secret parts are masked as by `mask_in_parts`. variables: for placeholders."""
    resolved = resolve_what_is_set(text, variables)
    return mask_in_parts(text, variables) if "://" in text or "://" in resolved else resolved


def mask_in_parts(text: str, variables: Mapping[str, str]) -> str:
    """Return a connection string of any form with resolved placeholders and masked secret parts. variables: for
    placeholders.

    Before resolution, placeholders of secret parts are replaced by marks, so that their values cannot reach the result.
    """
    marks = _Marks()

    def mask_value(match: re.Match[str]) -> str:
        if not _PLACEHOLDER.fullmatch(match["value"].strip()):
            return match[0]
        return f"{match['name']}{match['equals']}{marks.mark_part(mask_whole(match['value']))}"

    def hide(match: re.Match[str]) -> str:
        value = match["value"] if match["value"].strip() in marks or not match["value"] else MASK
        return f"{match['name']}{match['equals']}{value}"

    # The form is detected after resolution, since the whole string may come from one variable.
    resolved = resolve_what_is_set(_PAIR_OF_PLACEHOLDER.sub(mask_value, text), variables)
    masked = _IN_URI.sub(hide, _pairs(resolved).sub(hide, resolved))
    return marks.restore_parts(masked)


_PAIR_OF_PLACEHOLDER = re.compile(
    rf"(?P<name>{_SENSITIVE_NAME})(?P<equals>\s*=\s*)(?P<value>{_PLACEHOLDER.pattern})(?=\s|[;,&]|$)", re.IGNORECASE
)


def _pairs(text: str) -> re.Pattern[str]:
    """Return the pattern of pairs of a secret name and its value, for the form of the connection string, which decides
    where a value ends."""
    unquoted = re.sub(r"'(?:[^'\\]|\\.)*'", "", text)
    if re.match(r"\s*(?:postgres(?:ql)?://|[a-z_]+\s*=[^;]*$)", unquoted):
        return _WORD_PAIR
    return _PAIR if "=" in re.split("[;,]", text, maxsplit=1)[0] else _LIST_PAIR


def passwords_of(text: str) -> Iterator[str]:
    """Yield the values in a resolved connection string or address that `mask_in_parts` masks."""
    for match in (*_pairs(text).finditer(text), *_IN_URI.finditer(text)):
        yield match["value"].strip().strip("\"'")
