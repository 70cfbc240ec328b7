"""Verification of a body against its `Content-Digest` header while it is streamed."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

from rowcall.core.errors.problems import Problem
from rowcall.core.http.digest import announced_digest
from rowcall.service.request_context.header_values import read_header


def with_digest_check(scope: Any, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Return the same chunks. After the last one, raise `Problem` 400 if the body does not have the digest that the
    header `Content-Digest` announces. Without this header, or if it has no known algorithm, nothing is checked.

    Raises `Problem` 400 at once for an invalid header.
    """
    header = read_header(scope.headers, "content-digest")
    if header is None:
        return pieces
    try:
        announced = announced_digest(header)
    except ValueError as error:
        raise Problem(400, f"the header Content-Digest: {error}", headers=(("connection", "close"),)) from None
    return pieces if announced is None else _check_digest(*announced, pieces)


async def _check_digest(name: str, value: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks, then raise `Problem` 400 if their digest is not `value`. name: the algorithm, as `hashlib`
    names it.
    """
    digest = hashlib.new(name)
    async for piece in pieces:
        digest.update(piece)
        yield piece
    if digest.digest() != value:
        raise Problem(400, "the body does not match the digest of the header Content-Digest")
