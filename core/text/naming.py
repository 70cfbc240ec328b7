"""Names on their way between PostgreSQL, SQL text and HTTP.

Three renderings of one catalogue name stand here and nowhere else: quoted for SQL, in the URL, and as a key of requests
and responses. Nothing here knows what the name belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

DEFAULT_PREFIX = "/api"

_PLAIN_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")
_KEBAB = str.maketrans({"_": "-", " ": "-", '"': None})


def quote_identifier(name: str) -> str:
    """The one function that puts a name into SQL text: `a"b` becomes `"a""b"`.

    It always quotes, so no list of keywords (which differs between server versions) decides what is safe.
    """
    return '"' + name.replace('"', '""') + '"'


def quote_qualified(schema: str, name: str) -> str:
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


def camel_case(name: str) -> str:
    """Join the pieces between underscores: `_user_id` → `userId`, `URLPath` → `uRLPath` (routing-3).

    For names that never pass through identifier quoting; see `api_name` for the others.
    """
    pieces = [piece for piece in name.split("_") if piece]
    if not pieces:
        return ""
    first, *others = pieces
    joined = first[0].lower() + first[1:] + "".join(piece[0].upper() + piece[1:] for piece in others)
    return joined.strip('"')


@lru_cache(maxsize=8192)
def api_name(name: str, camel: bool = True) -> str:
    """The key of a parameter or column in requests and responses.

    Clients know a name that PostgreSQL has to quote by its own spelling: `"MyCol"` stays `MyCol`, because the first
    character of its quoted form is the quote (rendering-23). Names quoted only for being keywords are lower case
    anyway, so both ways lead to the same text and no keyword list is needed.
    """
    if not camel:
        return name.strip('"')
    if _PLAIN_IDENTIFIER.fullmatch(name):
        return camel_case(name)
    pieces = [piece for piece in f'"{name}"'.split("_") if piece]
    return (pieces[0] + "".join(piece[0].upper() + piece[1:] for piece in pieces[1:]))[1:-1].strip('"')


def nested_name(name: str, camel: bool = True) -> str:
    """Key of a field inside a composite value: `MyCol`, kept where it names a column, is `myCol` (rendering-23)."""
    return camel_case(name) if camel else name.strip('"')


def field_name(first: str, field: str, position: int, camel: bool = True) -> str:
    """Key of a composite's field, `_box_width` → `boxWidth`; `first` is the catalogue name that the field begins with.

    That name alone decides whether the whole counts as quoted: a separator such as `.` does not make it so.
    """
    converted = camel_case(field) if camel and _PLAIN_IDENTIFIER.fullmatch(first) else api_name(field, camel)
    return converted or f"${position}"


def parameter_name(name: str | None, position: int, camel: bool = True) -> str:
    """`api_name`, or `$n` (1-based) where that leaves nothing: unnamed parameters and names of only `_`."""
    return (api_name(name, camel) if name else "") or f"${position}"


def default_path(schema: str, name: str, prefix: str | None = None, kebab: bool = True) -> str:
    """Generated path of an object: `public.list_open_orders` → `/api/list-open-orders` (routing-1).

    `prefix`: None is the default one, an empty text none. Without `kebab` case and underscores survive, and a trailing
    slash stands at the end.
    """
    parts = [DEFAULT_PREFIX if prefix is None else prefix, "" if schema == "public" else schema, name]
    if kebab:
        return _joined(part.lower().translate(_KEBAB) for part in parts)
    return _joined(part.replace('"', "") for part in parts) + "/"


def _joined(parts: Iterable[str]) -> str:
    stripped = (part.strip("/") for part in parts)
    return "".join(f"/{part}" for part in stripped if part)
