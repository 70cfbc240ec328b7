"""Fuzz the binding of requests: no crash, no read out of bounds, and the same result as that of the slow twin.

python -m tests.fuzz.fuzz_request [seconds]

Reads out of bounds are detected if the extensions are built with ASAN=1 and Python runs with PYTHONMALLOC=malloc.
"""

from __future__ import annotations

from typing import Any

from rowcall.core.binding.binding import Binder
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import EndpointParameter, QueryNull, ValueKind
from rowcall.core.errors.binding_error import BindingError
from rowcall.core.text import json_text, query_text
from rowcall.ext.binding.json_object import JsonError, elements, members, unescape
from rowcall.ext.binding.parameters import FastBinder
from rowcall.ext.binding.query_string import QueryError, parse
from tests.fuzz.mutation import main

SEEDS = (
    b"a=1&b=x%20y+z&c=2026-03-01T10:00:00%2B02:00&flag&=&d=%ff%00%zz%",
    b'{"a":-1.50e+7,"b":"x\\u00e9\\ud83d\\ude00\\n","c":[1,{"k":[null,true]},"\xc3\xa9"],"d":{"a":{}}}',
    b'{"a":12345678901234567890,"b":false,"c":"2026-03-01 10:00:00.123456Z","d":[["1"],["2"]]}',
    b'["a",1e400,null,{"x":"]}"}]',
    b'"\\"\\\\\\/\\b\\u0000"',
    b"a=a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11&b=10:00:00.5&c=true&d=null",
    b'{"a":"a0eebc999c0b4ef8bb6d6bb9bd380a11","b":"10:00:00+02","c":"TRUE","d":""}',
)
SYNTAX = (
    *(bytes([byte]) for byte in b'"\\{}[]:,&=%+-.0159eEtfn \n\x00\x1f\x7f\x80\xc3\xa9\xed\xf4\xff'),
    b'"a":',
    b"\\u",
    b"\\ud8",
)
NAMES = "abcd"


def _binders() -> list[tuple[Binder, FastBinder]]:
    """Every kind occurs with every name and each handling of NULL."""
    kinds = [(kind, array) for kind in ValueKind for array in (False, True)]
    made = []
    for turn in range(0, len(kinds), 2):
        parameters = [
            EndpointParameter(
                f"_{name}", name, *kinds[(turn + number * 3) % len(kinds)], "text", number % 2 == 0, number
            )
            for number, name in enumerate(NAMES)
        ]
        slow = Binder(parameters, Transport.QUERY, list(QueryNull)[turn // 2 % 3])
        made.append((slow, FastBinder(*slow.plain)))
    return made


BINDERS = _binders()


def outcome(function: Any, argument: object) -> Any:
    try:
        return function(argument)
    except (QueryError, query_text.QueryTextError, JsonError, json_text.JsonTextError, BindingError):
        return None


def agree(slow: Any, fast: Any, message: object) -> None:
    if slow != fast:
        raise AssertionError(f"{message}: {slow!r} is not {fast!r}")


def check(data: bytes) -> None:
    query = data.decode("latin-1")
    pairs = outcome(query_text.pairs, query)
    agree(pairs and [(key, text.encode()) for key, text in pairs], outcome(parse, query), "pairs")
    result = outcome(members, data)
    agree(outcome(json_text.members, data), result, "members")
    outcome(elements, data)
    outcome(unescape, data)
    for _, raw in result or ():
        if raw[:1] == b"[":
            agree(json_text.elements(raw), elements(raw), "elements")
    for slow, fast in BINDERS:
        for method, argument in (("bind_query", query), ("bind_body", data)):
            bound = getattr(fast, method)(argument)
            if bound is not None:
                agree(outcome(getattr(slow, method), argument), bound, method)


if __name__ == "__main__":
    main(check, SEEDS, SYNTAX)
