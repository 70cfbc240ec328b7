"""Decompression of responses whose text is needed. Bodies that are only passed through stay compressed."""

from __future__ import annotations

import zlib

from rowcall.service.http_client.errors import OutboundError, TooLargeError

MOST_CODINGS = 5
"""Maximum number of content codings of one response. Servers use one, rarely two."""
MOST_MEMBERS = 10_000
"""Maximum number of members of a gzip file: even an empty one takes time."""
_PIECE = 65_536
"""Bytes that are decompressed at once."""


def decoded_body(body: bytes, encoding: str | None, limit: int | None) -> bytes:
    """Return the body without its content codings, decoding the last one first. A body that is empty or becomes empty
    remains so, whatever codings are left. encoding: value of Content-Encoding; None: there is none.

    Raises:
        OutboundError: the body is corrupt, or has an unsupported coding, or too many.
        TooLargeError: it becomes larger than `limit` bytes (None: there is no limit).
    """
    codings = [part.strip().lower() for part in (encoding or "").split(",")]
    if len(codings) > MOST_CODINGS:
        raise OutboundError(f"the response has more than {MOST_CODINGS} content codings")
    while codings and body:
        body = _decode(body, codings.pop(), limit)
    return body


def _decode(body: bytes, coding: str, limit: int | None) -> bytes:
    """Return the body, which is not empty, without one content coding. coding: in lower case. Raises as `decoded_body`
    does.
    """
    try:
        match coding:
            case "identity" | "":
                return body
            case "gzip" | "x-gzip":
                return _inflate(body, 31, limit)
            case "deflate":
                # Some servers omit the zlib frame.
                return _inflate(body, 15 if body[0] & 0x0F == 8 else -15, limit)
            case "br":
                return _decompress_brotli(body, limit)
    except zlib.error as error:
        raise OutboundError(f"the response is not {coding}: {error}") from None
    raise OutboundError(f"the response is encoded as {coding[:40]}, which cannot be read here")


def _inflate(body: bytes, bits: int, limit: int | None) -> bytes:
    """Decompress gzip or deflate. bits: window and format as in `zlib.decompressobj`; 31: gzip. Raises `zlib.error`,
    and as `decoded_body` does.
    """
    pieces: list[bytes] = []
    room = limit
    rest = memoryview(body)
    members = 0
    while rest:
        members += 1
        if members > MOST_MEMBERS:
            raise OutboundError(f"the response consists of more than {MOST_MEMBERS} compressed files")
        machine = zlib.decompressobj(bits)
        while not machine.eof:
            if not rest:
                raise OutboundError("the response ends before it is complete")
            part, rest = rest[:_PIECE], rest[_PIECE:]
            piece = machine.decompress(part) if room is None else machine.decompress(part, room + 1)
            if room is not None:
                room -= len(piece)
                if room < 0:
                    raise TooLargeError(f"the response is larger than {limit} bytes")
            pieces.append(piece)
        # gzip may have several members. Only a part of the body is copied: the rest of it for each one would be a lot.
        rest = memoryview(body)[len(body) - len(rest) - len(machine.unused_data) :] if bits == 31 else rest[:0]
    return b"".join(pieces)


def _decompress_brotli(body: bytes, limit: int | None) -> bytes:
    """Decompress Brotli. Raises as `decoded_body` does."""
    # Imported here, as most services receive no such responses.
    import brotli

    machine = brotli.Decompressor()
    room = {} if limit is None else {"output_buffer_limit": limit + 1}
    try:
        pieces = [machine.process(body, **room)]
        while limit is not None and not machine.can_accept_more_data() and sum(map(len, pieces)) <= limit:
            pieces.append(machine.process(b"", **room))
    except brotli.error as error:
        raise OutboundError(f"the response is not br: {error}") from None
    whole = b"".join(pieces)
    if limit is not None and len(whole) > limit:
        raise TooLargeError(f"the response is larger than {limit} bytes")
    if not machine.is_finished():
        raise OutboundError("the response ends before it is complete")
    return whole
