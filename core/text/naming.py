"""Forms of the names of database objects in SQL text and HTTP.

Only this module converts a catalogue name into its three forms: quoted for SQL, in the URL, and as a key of requests
and responses. The forms do not depend on the kind of the object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

DEFAULT_PREFIX = "/api"

_PLAIN_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")
_KEBAB = str.maketrans({"_": "-", " ": "-", '"': None})


def quote_identifier(name: str) -> str:
    """Quote a name for SQL text: `a"b` becomes `"a""b"`. Names are put into SQL text only by this function.

    It always quotes, so that safety does not depend on a list of keywords, which differs between server versions.
    """
    return '"' + name.replace('"', '""') + '"'


def quote_qualified(schema: str, name: str) -> str:
    return f"{quote_identifier(schema)}.{quote_identifier(name)}"


def camel_case(name: str) -> str:
    """Return a name in camel case: `_user_id` → `userId`, `URLPath` → `uRLPath` (routing-3). Empty for a name that
    consists of underscores.

    This is for names that never need quotes in SQL; `api_name` is for the others.
    """
    pieces = [piece for piece in name.split("_") if piece]
    if not pieces:
        return ""
    first, *others = pieces
    joined = first[0].lower() + first[1:] + "".join(piece[0].upper() + piece[1:] for piece in others)
    return joined.strip('"')


@lru_cache(maxsize=8192)
def api_name(name: str, camel: bool = True) -> str:
    """Return the key of a parameter or column in requests and responses. name: in the catalogue. camel: in camel case;
    otherwise the name, without double quotes at its ends.

    A name that PostgreSQL has to quote is converted with its quotes, so that only letters behind an underscore change:
    `"MyCol"` becomes `MyCol`, not `myCol` (rendering-23). Names that are quoted only because they are keywords are
    lower case anyway, so no list of keywords is needed.
    """
    if not camel:
        return name.strip('"')
    if _PLAIN_IDENTIFIER.fullmatch(name):
        return camel_case(name)
    pieces = [piece for piece in f'"{name}"'.split("_") if piece]
    return (pieces[0] + "".join(piece[0].upper() + piece[1:] for piece in pieces[1:]))[1:-1].strip('"')


def nested_name(name: str, camel: bool = True) -> str:
    """Return the key of a field inside a composite value. name: of the attribute in the catalogue. camel: as in
    `api_name`.

    Unlike the name of a column, a name in quotes is changed too: `MyCol` becomes `myCol` (rendering-23).
    """
    return camel_case(name) if camel else name.strip('"')


def field_name(first: str, field: str, position: int, camel: bool = True) -> str:
    """Return the key of a field of a composite parameter: `_box_width` → `boxWidth`; `$n` if the key is empty.

    field: name of the parameter, a separator, and name of the field. first: name of the parameter in the catalogue,
    with which `field` begins. If `first` needs no quotes in SQL, the rule for such names applies to all of `field`,
    even if its separator, such as `.`, needs quotes. position: of the parameter, from 1: the `n` of `$n`. camel: as in
    `api_name`.
    """
    converted = camel_case(field) if camel and _PLAIN_IDENTIFIER.fullmatch(first) else api_name(field, camel)
    return converted or f"${position}"


def parameter_name(name: str | None, position: int, camel: bool = True) -> str:
    """Return the key of a parameter as `api_name` does; `$n` if that is empty, as for names that consist of `_`.

    name: None or empty: the parameter has no name. position: of the parameter, from 1: the `n` of `$n`.
    """
    return (api_name(name, camel) if name else "") or f"${position}"


def default_path(schema: str, name: str, prefix: str | None = None, kebab: bool = True) -> str:
    """Return the generated path of an object: `public.list_open_orders` → `/api/list-open-orders` (routing-1).

    prefix: None for the default, an empty text for none. kebab: lower case, with `-` for underscores and blanks; if
    False, these are unchanged, and the path ends with a slash. The schema `public` is not part of the path.
    """
    parts = [DEFAULT_PREFIX if prefix is None else prefix, "" if schema == "public" else schema, name]
    if kebab:
        return _join_paths(part.lower().translate(_KEBAB) for part in parts)
    return _join_paths(part.replace('"', "") for part in parts) + "/"


def path_prefix(prefix: str | None = None, kebab: bool = True) -> str:
    """Return the part that all generated paths begin with, without a slash at its end: `Api_V1/` → `/api-v1`. prefix,
    kebab: as for `default_path`."""
    return default_path("public", "", prefix, kebab).rstrip("/")


def _join_paths(parts: Iterable[str]) -> str:
    stripped = (part.strip("/") for part in parts)
    return "".join(f"/{part}" for part in stripped if part)
