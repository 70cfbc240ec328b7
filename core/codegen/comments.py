"""The comment above a generated function (reference 07, 14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rowcall.core.catalogue.catalog import Routine, RoutineKind
from rowcall.core.codegen.functions import ClientFunction
from rowcall.core.codegen.options import ClientCodeOptions


@dataclass(frozen=True, slots=True)
class Definition:
    """What PostgreSQL says about a routine. defaults: text of each input parameter's default, None without one."""

    text: str
    defaults: tuple[str | None, ...] = ()


Definitions = Mapping[int, Definition]

_TEXTS = {
    "request": "request parameters",
    "onMessage": "is given each message of the event stream",
    "id": "of the execution; made up when it is missing",
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
    """`/** … */`, ended by a line break. arguments: in order, those without a text are passed over."""
    lines = [*_definition(function.endpoint.routine, definitions, options)]
    if options.comment != "None" and options.comments:
        lines += _remarks(function.endpoint.routine, separated=bool(lines))
    params = [f"@param {_typed(name, function, options)} - {_TEXTS[name]}" for name in arguments if name in _TEXTS]
    if lines:
        lines.append("")
    lines += params
    lines.append(f"@returns {returned if returned.startswith('{') else f'{{{returned}}}'}")
    lines += _see(function.endpoint.routine)
    body = "\n".join(f"* {line}" for line in (one.replace("*/", "*\\/") for one in lines))
    return f"/**\n{body}\n*/\n"


def _typed(name: str, function: ClientFunction, options: ClientCodeOptions) -> str:
    if options.types:
        return name
    if name == "request":
        members = ", ".join(one.declaration for one in function.members)
        return f"{{{{{members}}}}} request"
    kinds = {"onMessage": "(message: string) => void", "id": "string | undefined", "closeAfterMs": "number"}
    kinds |= {"awaitConnectionMs": "number | undefined", "parseUrl": "(url: string) => string"}
    return f"{{{kinds.get(name, '(request: RequestInit) => RequestInit')}}} {name}"


def _definition(routine: Routine, definitions: Definitions, options: ClientCodeOptions) -> Iterator[str]:
    if options.comment == "None":
        return
    known = definitions.get(routine.oid)
    if options.comment == "Full" and known is not None and known.text:
        yield from (line for line in known.text.splitlines() if line.strip())
    elif routine.kind is RoutineKind.FILE:
        yield f"{'-- ' if options.comment == 'Full' else ''}SQL file: {routine.identity}"
    elif routine.source is not None:
        yield routine.identity
    else:
        yield from _head(routine, known.defaults if known is not None else ())
        yield from _returned(routine)


def _head(routine: Routine, defaults: tuple[str | None, ...]) -> Iterator[str]:
    start = f"{routine.kind.value} {routine.schema}.{routine.name}("
    if not routine.parameters:
        yield f"{start})"
        return
    yield start
    last = len(routine.parameters) - 1
    for number, parameter in enumerate(routine.parameters):
        default = defaults[number] if number < len(defaults) else None
        text = f"{parameter.name} {parameter.type_name}".strip() + (f" DEFAULT {default}" if default else "")
        yield f"    {text}{'' if number == last else ','}"
    yield ")"


def _returned(routine: Routine) -> Iterator[str]:
    if routine.kind is RoutineKind.PROCEDURE:
        return
    if routine.columns and not routine.returns_composite and routine.returns_set:
        yield "returns table("
        last = len(routine.columns) - 1
        for number, column in enumerate(routine.columns):
            yield f"    {column.name} {column.type_name}{'' if number == last else ','}"
        yield ")"
    elif routine.returns_set:
        yield f"returns setof {routine.return_type_name}"
    else:
        yield f"returns {'record' if routine.columns else routine.return_type_name}"


def _remarks(routine: Routine, *, separated: bool) -> Iterator[str]:
    if not routine.comment:
        return
    if separated:
        yield ""
    yield "@remarks"
    lines = [line.strip().removeprefix("@") for line in routine.comment.strip().splitlines()]
    if routine.kind is RoutineKind.FILE:
        yield from lines
        return
    quoted = [line.replace("'", "''") for line in lines]
    quoted[0] = f"comment on {routine.kind.value} {routine.schema}.{routine.name} is '{quoted[0]}"
    quoted[-1] += "';"
    yield from quoted


def _see(routine: Routine) -> Iterator[str]:
    if routine.kind is not RoutineKind.FILE:
        yield ""
        yield f"@see {routine.kind.value.upper()} {routine.schema}.{routine.name}"
