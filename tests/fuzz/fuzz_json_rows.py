"""Fuzz the reading of JSON rows into array literals: no crash, and columns of texts like those of the slow twin.

python -m tests.fuzz.fuzz_json_rows [seconds]
"""

from __future__ import annotations

from itertools import cycle, islice

from rowcall.ext.binding.json_rows import ColumnForm, array_literals, first_keys
from tests.ext.twins.arrays import parse_array
from tests.ext.twins.json_rows import columns_of
from tests.fuzz.mutation import main

SEEDS = (
    b'[{"a":1,"b":"x y","c":null},{"a":-20,"b":"","c":true}]',
    b' [{ "a" : 1.50e+7 , "\xc3\xa9" : "\\u00e9\\ud83d\\ude00\\n\\"\\\\" } ,\n{ "a" : 0 , "\xc3\xa9" : "\xc3\xa9" } ] ',
    b'[{"a":{"b":[1,{"c":"}]"}]},"b":[]},{"a":"2026-03-01T10:00:00.5+02:00","b":1e400}]',
    b'[{"a":"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11","b":false,"c":99.995},{"a":null,"b":"TRUE","c":"1"}]',
    b'[{"a":1,"a":2}]',
)  # fmt: skip
SYNTAX = (
    *(bytes([byte]) for byte in b'"\\{}[]:,-+.0159eEtfn \n\x00\x1f\x7f\x80\xc3\xa9\xed\xf4\xff'),
    b'"a":', b"\\u", b"\\ud8", b"null", b"},{", b'"x"', b"2026-03-01",
)  # fmt: skip
TEXT = ColumnForm("text")
FORMS = (
    *map(ColumnForm, ("smallint", "bigint", "float", "numeric", "boolean", "uuid", "timestamptz", "date", "json")),
    ColumnForm("numeric", 3, 2), ColumnForm("text", 2), None,
)  # fmt: skip


def check(data: bytes) -> None:
    """The properties: texts are those of the twin, and a value of any form is an element of a literal of PostgreSQL."""
    keys = first_keys(data)
    if keys is None:
        return
    columns = columns_of(data)
    literals = array_literals(data, (TEXT,) * len(keys))
    if literals is None:
        if columns is not None and b"\\" not in data:
            raise AssertionError(f"refused: {data!r}")
        return
    if columns != {key: parse_array(literal or "") for key, literal in zip(keys, literals, strict=True)}:
        raise AssertionError(f"{literals} is not {columns}")
    for turn in range(len(FORMS)):
        forms = tuple(islice(cycle(FORMS), turn, turn + len(keys)))
        for literal, column in zip(array_literals(data, forms) or (), columns.values(), strict=False):
            if literal is not None and len(parse_array(literal)) != len(column):
                raise AssertionError(f"{literal} has another number of elements than {column}")


if __name__ == "__main__":
    main(check, SEEDS, SYNTAX)
