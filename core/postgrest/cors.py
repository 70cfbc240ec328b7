"""Cross-origin requests.

Source: PostgREST's documentation, CORS.
"""

from __future__ import annotations

from collections.abc import Sequence

Headers = list[tuple[str, str]]
ANY_ORIGIN = ("access-control-allow-origin", "*")
_METHODS = "GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD"
_ALWAYS_ALLOWED = ("Accept", "Accept-Language", "Content-Language")
_EXPOSED = (
    "Content-Encoding, Content-Location, Content-Range, Content-Type, Date, Location, Server, Transfer-Encoding, "
    "Range-Unit"
)


def origin_headers(origin: str | None, allowed: Sequence[str] | None) -> Headers | None:
    """Return the headers that let a page of an origin read the response; None: there is no origin, or it is not
    allowed.

    allowed: origins of the configuration; None: all.
    """
    if origin is None:
        return None
    if allowed is None:
        return [ANY_ORIGIN]
    if origin not in allowed:
        return None
    return [("access-control-allow-origin", origin), ("access-control-allow-credentials", "true")]


def preflight_headers(
    method: str,
    origin: str | None,
    requested_method: str | None,
    requested_headers: str | None,
    allowed: Sequence[str] | None,
) -> Headers | None:
    """Return the headers of the response to a preflight; None: the request is no preflight, or its origin or requested
    method is not allowed.

    requested_method, requested_headers: values of the headers `Access-Control-Request-…`. allowed: as in
    `origin_headers`.
    """
    shared = origin_headers(origin, allowed)
    if method != "OPTIONS" or shared is None or requested_method not in _METHODS.split(", "):
        return None
    requested = [name.strip() for name in (requested_headers or "").split(",") if name.strip()]
    others = {name.lower() for name in requested}
    always = [name for name in _ALWAYS_ALLOWED if name.lower() not in others]
    return [
        *shared,
        ("access-control-allow-methods", _METHODS),
        ("access-control-allow-headers", ", ".join(("Authorization", *requested, *always))),
        ("access-control-max-age", "86400"),
    ]


def exposing_headers(origin: str | None, allowed: Sequence[str] | None) -> Headers:
    """Return the headers with which the response to a request other than a preflight is readable for a page of an
    origin; empty if there is no origin, or it is not allowed. allowed: as in `origin_headers`."""
    shared = origin_headers(origin, allowed)
    return [] if shared is None else [*shared, ("access-control-expose-headers", _EXPOSED)]
