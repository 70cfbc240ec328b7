"""The choice among functions of one name by the names of arguments.

Source: PostgREST's documentation, Functions as RPC.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.plan import similar
from rowcall.core.postgrest.request.payload import Payload, PayloadKind
from rowcall.core.postgrest.schema import Function, Schema

MOST_COMPARED = 1000
"""Maximum number of functions that are compared for a hint, as each request with an unknown name compares them."""
LEAST_OF_LISTS = 0.33
"""How similar a list of parameters must be to be proposed."""
_JSON_TYPES = ("json", "jsonb")


def choose_function(
    schema: Schema, name: tuple[str, str], arguments: Collection[str], payload: Payload | None
) -> Function:
    """Return the one function that the arguments fit, else the one that takes the whole body (`takes_body`).

    name: schema and name. arguments: their names. payload: of a POST, else None. A raw body has no arguments: functions
    whose parameters all have defaults fit it, but not functions without parameters.

    Raises `ApiError` (`PGRST202`: no function fits; `PGRST203`: several fit).
    """
    overloads = schema.functions.get(name, ())
    keys = frozenset(arguments)
    raw = payload is not None and payload.kind is PayloadKind.RAW
    by_name = [item for item in overloads if (item.arguments or not raw) and _fits(item, keys)]
    if len(by_name) > 1:
        raise errors.ambiguous_function(map(_signature, sorted(by_name, key=_sort_key)))
    if by_name:
        return by_name[0]
    by_body = [] if payload is None else [item for item in overloads if takes_body(item, payload)]
    if len(by_body) > 1:
        raise errors.ambiguous_function(map(_signature, sorted(by_body, key=_sort_key)))
    if by_body:
        return by_body[0]
    raise _no_function(schema, name, overloads, sorted(keys), payload)


def _fits(function: Function, keys: frozenset[str]) -> bool:
    """Return whether a function can be called with arguments of these names: all its parameters have names, each key is
    one of them, and no required parameter is missing."""
    if any(not item.name for item in function.arguments):
        return False
    names = {item.name for item in function.arguments}
    required = {item.name for item in function.arguments if item.required}
    return required <= keys <= names


def takes_body(function: Function, payload: Payload) -> bool:
    """Return whether a function has one parameter, without a name, of a type that takes the whole body."""
    if len(function.arguments) != 1 or function.arguments[0].name:
        return False
    type_name = function.arguments[0].type
    if payload.kind is PayloadKind.RAW:
        return type_name == payload.raw_type
    return payload.kind is PayloadKind.JSON and type_name in _JSON_TYPES


def _sort_key(function: Function) -> tuple[object, ...]:
    """Return the sort key of a function among those of its name: number of parameters, comment (without one first),
    names and types of parameters."""
    described = (function.comment is not None, function.comment or "")
    return len(function.arguments), described, [(item.name, item.type) for item in function.arguments]


def _signature(function: Function) -> str:
    """Return schema, name, and parameters with types, for messages."""
    arguments = ", ".join(f"{item.name} => {item.type}" for item in function.arguments)
    return f"{function.schema}.{function.name}({arguments})"


def _no_function(
    schema: Schema,
    name: tuple[str, str],
    overloads: Sequence[Function],
    arguments: Sequence[str],
    payload: Payload | None,
) -> ApiError:
    """Return the error of a call that no function fits. overloads: the functions of this name. arguments: names,
    sorted."""
    full = ".".join(name)
    listed = ", ".join(arguments)
    if payload is not None and payload.kind is PayloadKind.RAW:
        return _error(
            f"Could not find the function {full} in the schema cache",
            f"Searched for the function {full} with a single unnamed {payload.raw_type} parameter, "
            "but no matches were found in the schema cache.",
            None,
        )
    called = f"{full}({listed})" if arguments else f"{full} without parameters"
    word = "parameter" if len(arguments) == 1 else "parameters"
    searched = f"with {word} {listed}" if arguments else "without parameters"
    is_json = payload is not None and payload.kind is PayloadKind.JSON
    alternative = " or with a single unnamed json/jsonb parameter" if is_json else ""
    return _error(
        f"Could not find the function {called} in the schema cache",
        f"Searched for the function {full} {searched}{alternative}, but no matches were found in the schema cache.",
        _hint(schema, name, overloads, arguments),
    )


def _error(message: str, details: str, hint: str | None) -> ApiError:
    return ApiError(404, "PGRST202", message, details, hint)


def _hint(schema: Schema, name: tuple[str, str], overloads: Sequence[Function], arguments: Sequence[str]) -> str | None:
    """Return a hint with a similar name or a similar list of parameters; None: there is none."""
    if not overloads:
        other = similar(name[1], _names(schema, name[0]))
        return None if other is None else f"Perhaps you meant to call the function {name[0]}.{other}"
    lists = (_list(item.name for item in function.arguments) for function in overloads)
    closest = similar(_list(arguments), lists, LEAST_OF_LISTS)
    return None if closest is None else f"Perhaps you meant to call the function {'.'.join(name)}{closest}"


def _list(names: Iterable[str]) -> str:
    """Return names in alphabetical order in parentheses."""
    return f"({', '.join(sorted(names))})"


def _names(schema: Schema, namespace: str) -> Iterable[str]:
    """Return the names of functions of a schema that are compared for a hint."""
    return islice((function for other, function in schema.functions if other == namespace), MOST_COMPARED)
