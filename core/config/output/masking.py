"""Secrets as they may be shown: a password becomes stars, a placeholder that stands for it stays readable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rowcall.core.config.placeholders import resolve_what_is_set, sole_placeholder

MASK = "******"

_SECRET_WORDS = ("password", "passphrase", "passwd", "passwort", "pwd", "psw", "key", "cert", "secret")
_MISSPELT = r"p[ _]*a[ _]*s(?![ _s]*f)|p[ _]*w"
"""`Pasword`, `Pass`, `pw`: nothing is opened with them, but `--config` shows them. Passfile names a file."""
_SENSITIVE_NAME = rf"[\w ]*(?:{'|'.join('[ _]*'.join(word) for word in _SECRET_WORDS)}|{_MISSPELT})[\w ]*?"
"""Spaces and underscores within a keyword do not matter to who reads the string."""
_START = rf"(?P<name>{_SENSITIVE_NAME})(?P<equals>\s*=\s*)"
_DOUBLED = r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'"
_ESCAPED = r"'(?:[^'\\]|\\.)*'\S*"
_PAIR = re.compile(rf"{_START}(?P<value>(?:{_DOUBLED})?[^;]*)", re.IGNORECASE)
"""`Password=…;`: a quote in quotes is doubled."""
_LIST_PAIR = re.compile(rf"{_START}(?P<value>[^,]*)", re.IGNORECASE)
"""`host:port,password=…,`, as Redis is named."""
_WORD_PAIR = re.compile(rf"{_START}(?P<value>{_ESCAPED}|.*?(?=&|\s+[a-z_]+\s*=|$))", re.IGNORECASE | re.DOTALL)
"""`password=… dbname=…` of libpq, where a quote in quotes has a backslash, and the query of a URI."""
_IN_URI = re.compile(r"(?P<name>://[^:/?#@]*)(?P<equals>:)(?P<value>.*)(?=@)", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{!?[^\s{}:!]+(?::[^}]*)?\}")


_SECRET_NAME = re.compile(
    r"password|passwort|passphrase|passwd|pwd|secret|token|api[-_ ]?key|authorization|cookie|credential", re.IGNORECASE
)


def names_a_secret(name: str) -> bool:
    """True for a name of the user's own, such as that of a header, behind which a secret is to be expected."""
    return _SECRET_NAME.search(name) is not None


def masked_whole(text: str) -> str:
    """A text that is secret as a whole. `{NAME}` and `{!NAME:fallback}` show where it comes from, not what it is."""
    if not text:
        return text
    found = sole_placeholder(text.strip())
    if found is None:
        return MASK
    name, fallback = found
    return text.strip() if fallback is None else f"{{!{name}:{fallback and MASK}}}"


_WORD = r"(?:\"[^\"]*\"|'[^']*'|[^\s;&|\"']+)"
_SAID = re.compile(
    rf"(?P<name>[\w-]*(?:{_SECRET_NAME.pattern})[\w-]*)(?P<equals>\s*[=:]\s*|\s+)(?P<value>(?:(?:bearer|basic)\s+)?{_WORD})",
    re.IGNORECASE,
)
_SWITCHES = re.compile(
    rf"(?P<name>(?:^|\s)(?:-u|--user)\s+[^\s:'\"]+|\s-p|\bredis-cli\b[^;|&\n]*?\s-a\s+)(?P<equals>:|)(?P<value>(?<=:){_WORD}|"
    rf"(?<=\s-p)(?=\D)(?=\S){_WORD}|(?<=\s-a\s){_WORD})"
)
"""`curl -u name:password`, `mysql -ppassword`, `redis-cli -a password`; digits behind `-p` are a port."""
_IN_ADDRESS = re.compile(r"(?P<name>://[^:/?#@\s'\"]*)(?P<equals>:)(?P<value>[^@\s'\"]*)(?=@)")


def masked_in_text(text: str, variables: Mapping[str, str]) -> str:
    """A command for the shell or SQL, resolved: without the word behind each that names a secret (`PGPASSWORD=…`,
    `--token …`, `password '…'`), and without passwords of addresses. Rather too much is hidden than too little.
    """
    kept: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        kept.append(masked_whole(match["value"]))
        return f"{match['name']}{match['equals']}\x00{len(kept) - 1}\x00"

    resolved = resolve_what_is_set(
        _SWITCHES.sub(put_aside, _IN_ADDRESS.sub(put_aside, _SAID.sub(put_aside, text))), variables
    )
    return re.sub("\x00(\\d+)\x00", lambda match: kept[int(match[1])], resolved)


def masked_in_parts(text: str, variables: Mapping[str, str]) -> str:
    """A connection string in any of its forms, resolved, without what is secret in it.

    Placeholders of secret parts are put aside first, so that what they resolve to never comes near the result.
    """
    kept: list[str] = []

    def put_aside(match: re.Match[str]) -> str:
        if not _PLACEHOLDER.fullmatch(match["value"].strip()):
            return match[0]
        kept.append(masked_whole(match["value"]))
        return f"{match['name']}{match['equals']}\x00{len(kept) - 1}\x00"

    def hide(match: re.Match[str]) -> str:
        value = match["value"] if "\x00" in match["value"] or not match["value"] else MASK
        return f"{match['name']}{match['equals']}{value}"

    # Its form shows only now: the whole string may come from one variable.
    resolved = resolve_what_is_set(_PAIR_OF_PLACEHOLDER.sub(put_aside, text), variables)
    shown = _IN_URI.sub(hide, _pairs(resolved).sub(hide, resolved))
    return re.sub("\x00(\\d+)\x00", lambda match: kept[int(match[1])], shown)


_PAIR_OF_PLACEHOLDER = re.compile(
    rf"(?P<name>{_SENSITIVE_NAME})(?P<equals>\s*=\s*)(?P<value>{_PLACEHOLDER.pattern})(?=\s|[;,&]|$)", re.IGNORECASE
)


def _pairs(text: str) -> re.Pattern[str]:
    """How far a value reaches depends on the form that the string is written in."""
    unquoted = re.sub(r"'(?:[^'\\]|\\.)*'", "", text)
    if re.match(r"\s*(?:postgres(?:ql)?://|[a-z_]+\s*=[^;]*$)", unquoted):
        return _WORD_PAIR
    return _PAIR if "=" in re.split("[;,]", text, maxsplit=1)[0] else _LIST_PAIR


def passwords_of(text: str) -> Iterator[str]:
    """Values of a resolved connection string or address that `masked_in_parts` hides."""
    for match in (*_pairs(text).finditer(text), *_IN_URI.finditer(text)):
        yield match["value"].strip().strip("\"'")
