"""Fuzz form bodies: urlencoded and multipart, whole, cut and broken ones give fields or a refusal.

python -m tests.fuzz.fuzz_forms [seconds]
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from rowcall.core.errors.problems import Problem
from rowcall.ext.binding import json_object
from rowcall.service.request.form_fields import take_field
from rowcall.service.request.forms import MOST_FIELDS, form_pairs, members_of
from tests.fuzz.mutation import main

BOUNDARY = "b-1"
PART = b'--b-1\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n'
SEEDS = (
    b"a=1&b=%C3%A4+c&a=",
    b"=&&==&%zz=%&a",
    PART + b"--b-1--\r\n",
    PART * 3 + b"--b-1--",
    b'--b-1\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n\r\n--b-1--\r\n',
    b'{"a":1,"b":[1,{"c":"\\u00e4"}]}',
)
SYNTAX = (
    b"\r\n",
    b"\r",
    b"\n",
    b"--b-1",
    b"--b-1--",
    b"&",
    b"=",
    b"%00",
    b"%c3",
    b": ",
    b'"',
    b"name=",
    b"{",
    b"}",
    b",",
)


class Scope:
    """The part of a request that form parsing needs."""

    def __init__(self, kind: str) -> None:
        self.headers = {"content-type": kind}


FORM, MULTIPART = Scope("application/x-www-form-urlencoded"), Scope(f"multipart/form-data; boundary={BOUNDARY}")
LATIN = Scope("application/x-www-form-urlencoded; charset=latin1")
LONG = b"&long=" + b"%41" * 6000
"""A field that is decoded without the GIL."""


def check(data: bytes) -> None:
    for scope in (FORM, MULTIPART, LATIN):
        take_field(scope, data, "a")
        pairs = fields(scope, data)
        if pairs is None:
            continue
        assert len(pairs) <= MOST_FIELDS
        for key, text in pairs:
            (key + text).encode()
            assert "\0" not in key + text
        if scope is LATIN:
            assert pairs == fields(FORM, data)
        if scope is FORM:
            assert fields(FORM, data + LONG) == [*pairs, ("long", "A" * 6000)]
        if scope is FORM and data.isascii():
            known = parse_qsl(data.decode(), keep_blank_values=True)
            assert [pair for pair in pairs if "" not in pair] == [pair for pair in known if "" not in pair]
    check_members(data)


def fields(scope: Scope, data: bytes) -> list[tuple[str, str]] | None:
    try:
        return form_pairs(scope, data)
    except Problem as problem:
        refused(problem)
        return None


def refused(problem: Problem) -> None:
    assert problem.status in (400, 415)


def check_members(data: bytes) -> None:
    """Check that members cut out of a body are JSON themselves."""
    try:
        members = members_of(data)
    except Problem as problem:
        refused(problem)
        return
    for _, value in members:
        assert json_object.members(b'{"v":' + value + b"}")


if __name__ == "__main__":
    main(check, SEEDS, SYNTAX)
