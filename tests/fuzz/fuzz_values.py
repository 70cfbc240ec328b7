"""Fuzz the parsing of array, tuple and record text: no crash, and the output is always valid JSON.

python -m tests.fuzz.fuzz_values [seconds]

json columns are fuzzed for crashes only: their text is embedded as the server validated it.
"""

from __future__ import annotations

import json

from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.values import render_value
from tests.fuzz.mutation import main

SEEDS = (
    '(1,"a ""b"" \\\\c",t)',
    '{"(1,\\"t \\"\\"q\\"\\" t\\",t)",NULL,"(,,)"}',
    '(k,"(1,""in """"q"""""",f)","{""(2,\\\\""b,c\\\\"",)""}")',
    "[0:1][-1:0]={{1,NULL},{-1.5e+10,NaN}}",
    "{(1,1),(0,0);(3,3),(2,2)}",
    "(1,,x)",
    '{"2024-01-15 10:30:00",infinity}',
    "{{{}}}",
)
SYNTAX = (*'"\\{}(),; \x01é😀1t', '""', "\\\\", "[0:1]=", "NULL", "x" * 17)
TYPES = range(700_000, 700_008)
JSON_TYPE = 700_008


def make_codecs() -> Codecs:
    codecs = Codecs()
    codecs.define_composite(700_000, [(b"id", 1700), (b"label", 25), (b"ok", 16)])
    codecs.define_array(700_001, 700_000)
    codecs.define_composite(700_002, [(b"code", 25), (b"item", 700_000), (b"items", 700_001)])
    codecs.define_array(700_003, 700_002)
    codecs.define_array(700_004, 1700)
    codecs.define_array(700_005, 603, ";")
    codecs.define_array(700_006, 1114)
    codecs.define_composite(700_007, [(b"self", 700_007), (b"others", 700_001)])
    codecs.define_composite(JSON_TYPE, [(b"doc", 114), (b"docs", 199)])
    return codecs


CODECS = make_codecs()


def no_json(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def check(data: bytes) -> None:
    """The property: every type turns any UTF-8 text into one JSON value."""
    text = data.decode(errors="replace").encode()
    for oid in (*TYPES, 2249, 1700, 16):
        # Numbers stay text: 1e+1010 is JSON, though no double (orjson refuses it).
        json.loads(render_value(CODECS, oid, text), parse_int=str, parse_float=str, parse_constant=no_json)
    render_value(CODECS, JSON_TYPE, text)


if __name__ == "__main__":
    main(check, [text.encode() for text in SEEDS], [text.encode() for text in SYNTAX])
