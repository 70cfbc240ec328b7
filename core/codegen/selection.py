"""Assigns endpoints to the files of a client, sorts them and names their functions (clients-5 to clients-8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rowcall.core.catalogue.catalog import RoutineKind, TypeInfo
from rowcall.core.codegen.names import Names
from rowcall.core.codegen.options import ClientOptions
from rowcall.core.endpoint.capabilities import ClientCode
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.sqlfile.source import FileSource
from rowcall.core.text.naming import camel_case

TypesOf = Callable[[Endpoint], Mapping[int, TypeInfo]]
"""Function that returns the types of an endpoint's database, by oid."""
AnnotationsOf = Callable[[Endpoint], ClientCode]
"""Function that returns what the comment of an endpoint sets for clients of one language."""

_RELATIONS = (RoutineKind.TABLE, RoutineKind.VIEW)
_NO_ANNOTATIONS = ClientCode()
_BRACES = re.compile(r"\{\{|\}\}|\{0\}")


class NoPlaceError(ValueError):
    """Each schema should have a file of its own (`by_schema`), but the configured path has no `{0}`."""


@dataclass(frozen=True, slots=True)
class Output:
    """One file to write. If `text` is None, an existing file has to be deleted. overwrite: an existing file may be
    replaced."""

    path: str
    text: str | None
    overwrite: bool = True
    header: int = 0
    """Length of the header in characters. It contains the time and is ignored when contents are compared."""
    beside: str | None = None
    """Path of the client file to which it belongs: if that file is not overwritten, this one is not written either."""


def client_annotations(endpoint: Endpoint) -> ClientCode:
    """Return what the comment of an endpoint sets for TypeScript and JavaScript clients."""
    return endpoint.options.client_code or _NO_ANNOTATIONS


def modules(
    endpoints: Iterable[Endpoint],
    options: ClientOptions,
    annotations_of: AnnotationsOf,
    schema_file: Callable[[str], str],
) -> Iterator[tuple[str, list[Endpoint]]]:
    """Group endpoints by the client file to which they belong. Endpoints that invalidate cached responses are left out.

    Yields for each file the text that replaces `{0}` in its configured path, and its endpoints, without internal ones
    and those that annotations exclude. If none remains, the list is empty. Without `by_schema`, all endpoints belong to
    one file, and `{0}` is replaced by nothing. schema_file: returns the text for a schema. Raises `NoPlaceError` if
    `by_schema` is on, but the configured path has no `{0}`.
    """
    groups: dict[str, list[Endpoint]] = {}
    for endpoint in endpoints:
        if not endpoint.options.invalidates:
            name = (
                (module_of(endpoint, annotations_of) or schema_file(endpoint.routine.schema))
                if options.by_schema
                else ""
            )
            groups.setdefault(name, []).append(endpoint)
    if groups and options.by_schema and "{0}" not in options.path:
        raise NoPlaceError(options.path)
    for name, members in groups.items():
        yield name, sorted((item for item in members if _is_included(item, annotations_of)), key=_order)


def module_of(endpoint: Endpoint, annotations_of: AnnotationsOf) -> str | None:
    """Return the module that an annotation or the folder of an SQL file sets; None: neither sets one."""
    module = annotations_of(endpoint).module
    if module:
        return module
    folder = _folder(endpoint)
    return None if folder is None else camel_case(folder.replace("-", "_").replace(" ", "_"))


def folder_of(endpoint: Endpoint) -> str | None:
    """Return the name by which the files of an endpoint are grouped: the module that an annotation for TypeScript
    clients sets, else the folder of its SQL file as it is written (`module_of` converts it to camelCase). None: neither
    exists."""
    return client_annotations(endpoint).module or _folder(endpoint)


def _folder(endpoint: Endpoint) -> str | None:
    source = endpoint.routine.source
    return source.module if isinstance(source, FileSource) else None


def _is_included(endpoint: Endpoint, annotations_of: AnnotationsOf) -> bool:
    return not endpoint.options.internal and annotations_of(endpoint).enabled is not False


def _order(endpoint: Endpoint) -> tuple[object, ...]:
    routine = endpoint.routine
    if routine.kind in _RELATIONS:
        return 0, routine.schema, _RELATIONS.index(routine.kind), routine.name, ""
    return 1, routine.schema, 0, routine.name, routine.identity


def endpoints_with_names(
    endpoints: Sequence[Endpoint], names: Names, options: ClientOptions
) -> Iterator[tuple[Endpoint, str]]:
    """Yield the endpoints that no configured list excludes, with the names of their functions, which `names`
    assigns."""
    selected = [
        item
        for item in endpoints
        if item.routine.name not in options.skip_routines
        and item.routine.schema not in options.skip_schemas
        and item.path not in options.skip_paths
    ]
    # Names are assigned before `skip_functions` applies, so that excluding a function renames no other.
    for endpoint, name in zip(selected, names.all_of(selected), strict=True):
        if name not in options.skip_functions:
            yield endpoint, name


def header_text(lines: Sequence[str], now: str) -> str:
    """Return the header of a file with a newline; empty without lines. now: text of the time, which replaces `{0}`.
    Doubled braces stand for single ones."""
    if not lines:
        return ""
    meanings = {"{0}": now, "{{": "{", "}}": "}"}
    filled = (_BRACES.sub(lambda match: meanings[match[0]], line).strip() for line in lines)
    return "\n".join(filled) + "\n"
