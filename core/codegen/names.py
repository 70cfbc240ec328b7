"""Names in generated code (clients-11, clients-12)."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.codegen.options import ClientOptions
from rowcall.core.endpoint.endpoint import Endpoint

_RESERVED = """
arguments await break case catch class const continue debugger default delete do else enum eval export extends
false finally for function if implements import in instanceof interface let new null package private protected public
return static super switch this throw true try typeof undefined var void while with yield
baseUrl parseQuery nullAsWord jsonAsText parseUrl parseRequest ApiError ApiResult request response
console crypto encodeURIComponent fetch fetchOnce setTimeout window
"""
"""Reserved words, and names that the functions of a file use themselves."""
_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_TAKEN = frozenset(_RESERVED.split())
_SEPARATORS = re.compile(r"[_\-/\\]")


class Names:
    """Assigns unique names within one file."""

    def __init__(self, options: ClientOptions, taken: Set[str] = _TAKEN) -> None:
        """Begin a file without assigned names. taken: names that functions cannot have."""
        self._options = options
        self._taken = taken
        self._assigned: set[str] = set()

    def all_of(self, endpoints: Sequence[Endpoint]) -> list[str]:
        """Assign a name to the function of each endpoint, and return the names in the order of the endpoints. No name
        depends on that order."""
        raw = distinct_names(endpoints, self._options)
        # `distinct_names` returns unique names; numbers are needed only if sanitising makes two of them equal.
        result = {
            index: self.assign(camel(raw[index]))
            for index in sorted(range(len(raw)), key=lambda index: (raw[index], *_stable(endpoints[index])))
        }
        return [result[index] for index in range(len(raw))]

    def assign(self, name: str) -> str:
        """Assign a name to a further object of the file and return it: `name`, or a variant if functions cannot have
        this name or it is assigned. The names of all functions must have been assigned before."""
        return free(f"{name}_" if name in self._taken or not name else name, self._assigned)


def free(name: str, taken: set[str]) -> str:
    """Return the name, with the first free number from 1 appended if it is in `taken`, and add the result to
    `taken`."""
    result, number = name, 0
    while result in taken:
        number += 1
        result = f"{name}{number}"
    taken.add(result)
    return result


def raw_name(endpoint: Endpoint, options: ClientOptions) -> str:
    """Return the name before conversion: the path without its prefix, or with `routine_names` the name of the routine.

    With `schema_names`, the schema and `/` come first. A name of less than three characters is replaced by that of the
    routine. Operations on tables and views get their method as suffix.
    """
    routine = endpoint.routine
    raw = routine.name if options.routine_names else _without_prefix(endpoint.path, options.prefix)
    if options.schema_names:
        raw = f"{routine.schema}/{raw}"
    if len(raw) < 3:
        raw = f"{routine.schema}/{routine.name}" if options.schema_names else routine.name
    if routine.kind in (RoutineKind.TABLE, RoutineKind.VIEW):
        raw += f"-{endpoint.method.lower()}"
    return raw


def distinct_names(endpoints: Sequence[Endpoint], options: ClientOptions) -> list[str]:
    """Return a name before conversion (`raw_name`) for each endpoint, in the same order. Names that are equal after
    conversion get suffixes that distinguish their endpoints.

    All endpoints with the same name get the suffix, not only the later ones: an endpoint that is added later can rename
    functions, but never give an existing name to another endpoint.
    """
    raw = [raw_name(item, options) for item in endpoints]
    for distinction in _DISTINCTIONS:
        groups: dict[str, list[int]] = {}
        for index, name in enumerate(raw):
            groups.setdefault(camel(name), []).append(index)
        for members in groups.values():
            parts = [pascal(distinction(endpoints[index], options)) for index in members]
            if len(set(parts)) > 1:
                for index, part in zip(members, parts, strict=True):
                    raw[index] = f"{raw[index]}-{part}"
    return raw


def _stable(endpoint: Endpoint) -> tuple[str, str, str]:
    """Return a sort key that does not depend on the order of discovery."""
    return endpoint.path, endpoint.method, endpoint.routine.identity


def _method(endpoint: Endpoint, options: ClientOptions) -> str:
    return endpoint.method.lower()


def _path(endpoint: Endpoint, options: ClientOptions) -> str:
    return _without_prefix(endpoint.path, options.prefix)


def _routine(endpoint: Endpoint, options: ClientOptions) -> str:
    return f"{endpoint.routine.schema}-{endpoint.routine.name}"


def _parameters(endpoint: Endpoint, options: ClientOptions) -> str:
    """Return the names of the parameters, such as `by-id-and-name` or `without-parameters`, to distinguish
    overloads."""
    names = [item.api_name.strip("_") for item in endpoint.parameters]
    return f"by-{'-and-'.join(names)}" if names else "without-parameters"


def _types(endpoint: Endpoint, options: ClientOptions) -> str:
    return "-".join(item.type_name for item in endpoint.routine.parameters)


_DISTINCTIONS = (_method, _path, _routine, _parameters, _types)
"""Suffixes that are added to equal names, one after the other until the names differ."""


def _without_prefix(path: str, prefix: str) -> str:
    rest = path.removeprefix(prefix) if prefix else path
    return path if prefix and rest and not rest.startswith("/") else rest


def _parts(raw: str) -> list[str]:
    clean = re.sub(r"[^A-Za-z0-9_$\-/\\]", "_", raw)
    if clean and not re.match(r"[A-Za-z_$]", clean):
        clean = f"_{clean[1:]}"
    return [part for part in _SEPARATORS.split(clean) if part]


def camel(raw: str) -> str:
    name = pascal(raw)
    return name[:1].lower() + name[1:]


def pascal(raw: str) -> str:
    name = "".join(part[:1].upper() + part[1:] for part in _parts(raw))
    return f"_{name}" if name[:1].isdigit() else name


def upper_first(name: str) -> str:
    return name[:1].upper() + name[1:]


def as_name_part(name: str) -> str:
    """Return the name of a function as a part of a longer name, without the underscores that keep it apart from
    reserved words: `delete_` → `Delete`."""
    return upper_first(name.strip("_"))


def file_name(schema: str) -> str:
    """Return the text that replaces `{0}` in the path of a file for a schema: the schema's name in camelCase."""
    first, *others = [part for part in _SEPARATORS.split(schema) if part] or [schema]
    return first[:1].lower() + first[1:] + "".join(upper_first(part) for part in others)


def member(name: str) -> str:
    """Return the name of a property in TypeScript, in quotes if it is no identifier."""
    return name if _PLAIN.fullmatch(name) else string_literal(name)


def string_literal(text: str) -> str:
    """Return a text as a literal of TypeScript in double quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def access(name: str) -> str:
    """Return the access to a property, to be written behind an object: `.name` or `["a b"]`."""
    return f".{name}" if _PLAIN.fullmatch(name) else f"[{member(name)}]"
