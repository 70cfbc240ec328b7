"""Decompression of responses whose text is needed. Bodies that are only passed through stay compressed."""

from __future__ import annotations

import zlib

from rowcall.service.http_client.errors import OutboundError, TooLargeError


def decoded_body(body: bytes, encoding: str | None, limit: int | None) -> bytes:
    """Return the body without its content codings, decoding the last one first. A body that is empty or becomes empty
    remains so, whatever codings are left. encoding: value of Content-Encoding; None: there is none.

    Raises:
        OutboundError: the body is corrupt, or has an unsupported coding.
        TooLargeError: it becomes larger than `limit` bytes (None: there is no limit).
    """
    codings = [part.strip().lower() for part in (encoding or "").split(",")]
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
    while body:
        machine = zlib.decompressobj(bits)
        piece = machine.decompress(body) if room is None else machine.decompress(body, room + 1)
        if room is not None:
            room -= len(piece)
            if room < 0:
                raise TooLargeError(f"the response is larger than {limit} bytes")
        if not machine.eof:
            raise OutboundError("the response ends before it is complete")
        pieces.append(piece)
        # gzip may have several members.
        body = machine.unused_data if bits == 31 else b""
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
