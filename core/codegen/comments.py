"""The comment above a generated function (clients-24)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rowcall.core.catalogue.catalog import Routine, RoutineKind
from rowcall.core.codegen.functions import ClientFunction
from rowcall.core.codegen.options import ClientCodeOptions
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.tables.routines import TableOperation


@dataclass(frozen=True, slots=True)
class Definition:
    """Definition of a routine. text: its source; empty: it was not read. defaults: SQL expression of the default of
    each input parameter; None: the parameter has no default."""

    text: str
    defaults: tuple[str | None, ...] = ()


Definitions = Mapping[tuple[str | None, int], Definition]
"""Connection on which a routine was found (`Endpoint.catalogue_connection`) and its oid there → its definition."""

_TEXTS = {
    "request": "request parameters",
    "onMessage": "is called with each message of the event stream",
    "id": "of the execution; generated if it is missing",
    "closeAfterMs": "milliseconds after which the event stream is closed",
    "awaitConnectionMs": "milliseconds to wait for the event stream before the request is sent",
    "parseUrl": "may change the URL",
    "parseRequest": "may change the request",
}


def comment(
    function: ClientFunction,
    arguments: Iterable[str],
    returned: str,
    definitions: Definitions,
    options: ClientCodeOptions,
) -> str:
    """Return the comment `/** … */` above a function, with a newline.

    arguments: names in order; names without an entry in `_TEXTS` are skipped. returned: type of the result in
    TypeScript. definitions: of routines; they need not have the function's routine.
    """
    lines = [*definition_lines(function.endpoint, definitions, options.comment)]
    if options.comment != "None" and options.comments:
        lines += _remarks(function.endpoint, separated=bool(lines))
    params = [f"@param {_with_type(name, function, options)} - {_TEXTS[name]}" for name in arguments if name in _TEXTS]
    if lines:
        lines.append("")
    lines += params
    lines.append(f"@returns {returned if returned.startswith('{') else f'{{{returned}}}'}")
    lines += _see(function.endpoint.routine)
    body = "\n".join(f"* {line}" for line in (item.replace("*/", "*\\/") for item in lines))
    return f"/**\n{body}\n*/\n"


def without_line_breaks(text: str) -> str:
    """Return a text without line breaks, for a comment that ends with its line. Names can contain line breaks."""
    return " ".join(text.splitlines())


def _with_type(name: str, function: ClientFunction, options: ClientCodeOptions) -> str:
    if options.types:
        return name
    if name == "request":
        members = ", ".join(item.brief for item in function.members)
        return f"{{{{{members}}}}} request"
    kinds = {"onMessage": "(message: string) => void", "id": "string | undefined", "closeAfterMs": "number"}
    kinds |= {"awaitConnectionMs": "number | undefined", "parseUrl": "(url: string) => string"}
    return f"{{{kinds.get(name, '(request: RequestInit) => RequestInit')}}} {name}"


def definition_lines(endpoint: Endpoint, definitions: Definitions, form: str) -> Iterator[str]:
    """Yield the lines that describe the endpoint's routine.

    form: `None` yields nothing; `Simple` the signature, the path of the SQL file, or for an operation on a table the
    head of its statement; `Full` the source without empty lines, or as `Simple` if `definitions` has no source of the
    routine, with `-- ` in front of the path of a file.
    """
    if form == "None":
        return
    routine = endpoint.routine
    known = definitions.get((endpoint.catalogue_connection, routine.oid))
    if form == "Full" and known is not None and known.text:
        yield from (line for line in known.text.splitlines() if line.strip())
    elif routine.kind is RoutineKind.FILE:
        yield f"{'-- ' if form == 'Full' else ''}SQL file: {routine.identity}"
    elif isinstance(routine.source, TableOperation):
        yield routine.source.operation.head(f"{routine.schema}.{routine.name}")
    else:
        yield from _head(routine, known.defaults if known is not None else ())
        yield from _returns_lines(endpoint)


def _head(routine: Routine, defaults: tuple[str | None, ...]) -> Iterator[str]:
    start = f"{routine.kind.value} {routine.schema}.{routine.name}("
    if not routine.parameters:
        yield f"{start})"
        return
    yield start
    last = len(routine.parameters) - 1
    for number, parameter in enumerate(routine.parameters):
        default = defaults[number] if number < len(defaults) else None
        text = f"{parameter.name or f'${number + 1}'} {parameter.type_name}" + (
            f" DEFAULT {default}" if default else ""
        )
        yield f"    {text}{'' if number == last else ','}"
    yield ")"


def _returns_lines(endpoint: Endpoint) -> Iterator[str]:
    """Yield the lines of the `returns` clause, none for a procedure. An expanded composite column is shown as its
    fields, each with the column's name."""
    routine = endpoint.routine
    if routine.kind is RoutineKind.PROCEDURE:
        return
    if routine.columns and not routine.returns_composite and routine.returns_set:
        yield "returns table("
        shown = endpoint.shape.columns
        for item in shown:
            yield f"    {(item.group or item.column).name} {item.column.type_name}{'' if item is shown[-1] else ','}"
        yield ")"
    elif routine.returns_set:
        yield f"returns setof {routine.return_type_name}"
    else:
        yield f"returns {'record' if routine.columns else routine.return_type_name}"


def _remarks(endpoint: Endpoint, *, separated: bool) -> Iterator[str]:
    """Yield `@remarks` and the prose of the routine's comment; nothing if it has no prose. Annotations are left out, as
    they may contain passwords, addresses and SQL. separated: an empty line comes first."""
    if not endpoint.prose:
        return
    if separated:
        yield ""
    yield "@remarks"
    yield from endpoint.prose


def _see(routine: Routine) -> Iterator[str]:
    if routine.kind is not RoutineKind.FILE:
        yield ""
        yield f"@see {routine.kind.value.upper()} {routine.schema}.{routine.name}"
