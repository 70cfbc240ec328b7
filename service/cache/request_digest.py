"""What of a request belongs to the key of an answer that another service gives, besides the routine's parameters."""

from __future__ import annotations

import hashlib

from rowcall.service.exchange.exchange import Exchange

CREDENTIALS = ("authorization", "cookie")


def request_digest(exchange: Exchange, *, whole: bool) -> bytes:
    """Credentials always: the other service sees them, and what it tells one caller is not for all of them. whole:
    method, path, query and body too, for a routine whose parameters say nothing about the request."""
    scope = exchange.scope
    digest = hashlib.sha256()
    for name in CREDENTIALS:
        for value in scope.headers.get_all(name):
            digest.update(b"%d:%b" % (len(value), value.encode(errors="replace")))
        digest.update(b";")
    if whole:
        # HEAD asks for the head of what GET gives; an endpoint that forgets has the path of what it forgets and more.
        digest.update(f"{scope.query_string}\n".encode(errors="replace"))
        digest.update(repr(sorted(exchange.values.items())).encode(errors="replace"))
        digest.update(hashlib.sha256(exchange.body or b"").digest())
    return digest.digest()
