"""Names and literals of Dart (clients-28, clients-29)."""

from __future__ import annotations

import re

from rowcall.core.codegen.names import Names, camel
from rowcall.core.codegen.options import ClientOptions

_RESERVED = """
assert async await break case catch class const continue default do else enum extends false final finally for if in is
new null rethrow return super switch this throw true try var void while with yield
"""
_TYPES = """
BigInt bool Comparable DateTime double Duration dynamic Enum Error Exception Function Future int Iterable List Map Match
Never Null num Object Pattern Record RegExp Runes Set Stream String StringBuffer Symbol Type Uri
ArgumentError FormatException Random StreamSubscription Timer http
"""
_MEMBERS = "toJson fromJson hashCode runtimeType toString noSuchMethod raw"
WORDS = frozenset(_RESERVED.split() + _TYPES.split())
FIELDS = WORDS | frozenset(_MEMBERS.split())
"""Names that fields of a model cannot have."""
_LOCAL = "baseUrl httpClient jsonDecode jsonEncode utf8 request response files uri url"
_FUNCTIONS = WORDS | frozenset(_LOCAL.split())
_SIGNS = str.maketrans({"\\": "\\\\", "'": "\\'", "$": "\\$", "\n": "\\n", "\r": "\\r"})


class DartNames(Names):
    """Assigns unique names within one Dart file. Leading underscores are removed, because they make a name private."""

    def __init__(self, options: ClientOptions) -> None:
        super().__init__(options, _FUNCTIONS)

    def assign(self, name: str) -> str:
        """Assign a name to an object of the file and return it: `name` without leading underscores, or a variant if
        functions cannot have this name or it is assigned. The names of all functions must have been assigned before."""
        shown = name.lstrip("_")
        return super().assign(f"call{shown}" if not shown or shown[0].isdigit() else shown)


def literal(text: str) -> str:
    return f"'{escape_literal(text)}'"


def escape_literal(text: str) -> str:
    """Escape a text for a Dart literal in single quotes."""
    return text.translate(_SIGNS)


def field_name(key: str) -> str:
    """Return the name of the field for a name in requests or responses: `bedId` for `BedId`, `at2` for `at 2`. A name
    in `FIELDS` gets a `_` at its end."""
    if re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]*", key) and not key.startswith("_"):
        name = key[:1].lower() + key[1:]
    else:
        clean = re.sub(r"[^A-Za-z0-9$]+", "_", key).strip("_")
        name = camel(clean if clean[:1].isalpha() else f"field_{clean}")
    return f"{name}_" if name in FIELDS else name


def snake_case(name: str) -> str:
    """Return the text that replaces `{0}` in the path of a file for a schema or module: `yardOps` and `yard-ops` become
    `yard_ops`."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.sub(r"[^A-Za-z0-9]+", "_", name))
    return apart.strip("_").lower()
