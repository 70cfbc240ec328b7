"""Addresses of PGresults for `render_result`: of the result of a psycopg cursor, or of one created by hand."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol, cast

import psycopg


class _WithAddress(Protocol):
    pgresult_ptr: int


def address_of(cursor: psycopg.Cursor[Any]) -> int:
    """Valid as long as the cursor has its result. psycopg's C class has the attribute, its typed protocol has not."""
    assert cursor.pgresult is not None
    return cast("_WithAddress", cursor.pgresult).pgresult_ptr


class _Attribute(ctypes.Structure):
    """`PGresAttDesc` of libpq-fe.h."""

    _fields_: ClassVar = [
        ("name", ctypes.c_char_p),
        ("tableid", ctypes.c_uint),
        ("columnid", ctypes.c_int),
        ("format", ctypes.c_int),
        ("typid", ctypes.c_uint),
        ("typlen", ctypes.c_int),
        ("atttypmod", ctypes.c_int),
    ]


def _library() -> ctypes.CDLL:
    """Return the libpq with which psycopg is linked: the extensions read its results."""
    library = ctypes.CDLL(importlib.import_module(f"psycopg_{psycopg.pq.__impl__}.pq").__file__)
    library.PQmakeEmptyPGresult.restype = ctypes.c_void_p
    library.PQmakeEmptyPGresult.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.PQsetResultAttrs.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(_Attribute)]
    library.PQsetvalue.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    library.PQclear.argtypes = [ctypes.c_void_p]
    return library


_LIBRARY = _library()
_TUPLES_OK = 2


@contextmanager
def result_of(columns: Sequence[tuple[bytes, int]], rows: Sequence[Sequence[bytes | None]]) -> Iterator[int]:
    """Provide the address of a PGresult with these columns (name, type) and texts, created without a server."""
    address = _LIBRARY.PQmakeEmptyPGresult(None, _TUPLES_OK)
    attributes = (_Attribute * len(columns))(*[_Attribute(name, 0, 0, 0, oid, -1, -1) for name, oid in columns])
    try:
        assert not columns or _LIBRARY.PQsetResultAttrs(address, len(columns), attributes)
        for row, values in enumerate(rows):
            for column, value in enumerate(values):
                assert _LIBRARY.PQsetvalue(address, row, column, value, -1 if value is None else len(value))
        yield address
    finally:
        _LIBRARY.PQclear(address)
