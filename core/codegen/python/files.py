"""The files of a Python client, as texts."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence

from rowcall.core.codegen.calls import call_of
from rowcall.core.codegen.comments import Definitions
from rowcall.core.codegen.names import Names, free
from rowcall.core.codegen.options import PythonOptions
from rowcall.core.codegen.python.functions import Method, method_text
from rowcall.core.codegen.python.models import Models
from rowcall.core.codegen.python.names import snake_case
from rowcall.core.codegen.python.plumbing import HEAD, ONCE, ONCE_IMPORTS, SYNC, asynchronous
from rowcall.core.codegen.selection import Output, TypesOf, client_annotations, header_text, modules, named
from rowcall.core.codegen.sending import is_once
from rowcall.core.codegen.shapes import ShapeReader
from rowcall.core.endpoint.capabilities import ClientCode
from rowcall.core.endpoint.endpoint import Endpoint

_AS_CONFIGURED = ClientCode()
_DOCSTRING = '"""Client of the service, made by rowcall from its endpoints."""'


def python_files(
    endpoints: Iterable[Endpoint], types_of: TypesOf, definitions: Definitions, options: PythonOptions, now: str
) -> Iterator[Output]:
    """Yield the modules of a client, and the marker `py.typed` (PEP 561) in each folder.

    A module whose endpoints are all excluded by annotations has None as text. The annotations `tsclient` and
    `tsclient_module` apply to this client too. types_of: returns the types of an endpoint's database, by oid.
    definitions: of routines, by oid, for docstrings. now: text of the time, which replaces `{0}` in header lines.

    Raises:
        NoPlaceError: there are several files, but the configured path has no `{0}`.
    """
    folders: dict[str, None] = {}
    for name, members in modules(endpoints, options, client_annotations, snake_case):
        path = options.path.replace("{0}", name)
        if not members:
            yield Output(path, None, options.overwrite)
            continue
        text = _module(members, types_of, definitions, options)
        if text is not None:
            header = header_text(options.header, now)
            folders[posixpath.dirname(path)] = None
            yield Output(path, header + text, options.overwrite, len(header))
    yield from (Output(posixpath.join(folder, "py.typed"), "") for folder in folders)


def python_names(endpoints: Iterable[Endpoint], options: PythonOptions) -> Iterator[tuple[Endpoint, str]]:
    """Yield the endpoints that have a method in the client, with the name of the method. Raises `NoPlaceError` if
    there are several files, but the configured path has no `{0}`."""
    for _, members in modules(endpoints, options, client_annotations, snake_case):
        yield from ((endpoint, method) for endpoint, _, method in _named(members, options, _taken()))


def _taken() -> set[str]:
    """Return a new set of the names that methods cannot have."""
    return {"http", "close"}


def _named(
    endpoints: Sequence[Endpoint], options: PythonOptions, taken: set[str]
) -> Iterator[tuple[Endpoint, str, str]]:
    """Yield each endpoint with the name from which the names of its models are derived, and the name of its method.
    taken: names that methods cannot have; those of the methods are added."""
    for endpoint, name in named(endpoints, Names(options, frozenset()), options):
        yield endpoint, name, free(snake_case(name), taken)


def _module(
    endpoints: Sequence[Endpoint], types_of: TypesOf, definitions: Definitions, options: PythonOptions
) -> str | None:
    models = Models()
    taken = _taken()
    methods = []
    # All methods are named before anything else takes a name.
    values = list(_named(endpoints, options, taken))
    for endpoint, name, method in values:
        reader = ShapeReader(types_of(endpoint), options.camel)
        call = call_of(endpoint, name, _AS_CONFIGURED, reader, options)
        methods.append(Method.of(call, method, models, taken))
    if not methods:
        return None
    headers = "".join(f"{name!r}: {value}, " for name, value in options.headers.items() if value)
    imports = "".join(f"{line}\n" for line in options.imports)
    once = any(is_once(item.call.endpoint) for item in methods)
    if once:
        imports = ONCE_IMPORTS + imports
    start_of_class = SYNC.rstrip("\n") + "\n" + ONCE if once else SYNC
    head = HEAD.format(base_url=options.base_url, headers=headers, imports=imports)
    blocks = [head.rstrip("\n"), *models.texts()]
    for wait, start in (("", start_of_class), ("await ", asynchronous(start_of_class))):
        texts = [start.rstrip("\n"), *(method_text(item, models, definitions, options, wait) for item in methods)]
        blocks.append("\n\n".join(texts))
    code = "\n\n\n".join(blocks)
    return f"{_DOCSTRING}\n\n{code}\n"
