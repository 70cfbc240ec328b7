"""What a request of PostgREST's interface addresses, and its headers.

Source: PostgREST's documentation, Schemas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.request.media_types import MediaType, parse_accept
from rowcall.core.postgrest.request.preferences import Preferences, parse_preferences
from rowcall.service.database.watchdog import Disconnected
from rowcall.service.postgrest.authentication import Authenticated

READ_METHODS = ("GET", "HEAD")
WRITE_METHODS = ("POST", "PUT", "PATCH", "DELETE")


class Resource(Enum):
    """The kinds of targets below the mount."""

    ROOT = "root"
    RELATION = "relation"
    FUNCTION = "function"


# Looked up once: a member of an `Enum` is found through its metaclass.
ROOT, RELATION, FUNCTION = Resource.ROOT, Resource.RELATION, Resource.FUNCTION


@dataclass(frozen=True, slots=True, eq=False)
class NegotiationHeaders:
    """The headers `Accept` and `Prefer`. Equal headers give the same object, so that keys compare it by identity.

    remembered: whether this is so: long headers give a new object each time, and must not become part of stored keys.
    size: in bytes, about.
    """

    accept: tuple[MediaType, ...]
    preferences: Preferences
    remembered: bool
    size: int


class RequestKind(NamedTuple):
    """What requests with the same method, path and headers have in common: target, schema, preferences, accepted types.

    name: of the relation or function; empty for the root. profile: whether the response has the header
    `Content-Profile` with the schema: if the request names a schema, or several schemas are exposed.
    """

    method: str
    resource: Resource
    name: str
    schema: str
    profile: bool
    negotiation: NegotiationHeaders


class ApiRequest(NamedTuple):
    """What a request says outside its query string and body. The last fields are those of its `RequestKind`.

    disconnected: returns when the client has disconnected. path: percent-encoded, as sent.
    """

    scope: Any
    disconnected: Disconnected
    path: str
    user: Authenticated
    method: str
    resource: Resource
    name: str
    schema: str
    profile: bool
    negotiation: NegotiationHeaders

    @property
    def accept(self) -> tuple[MediaType, ...]:
        return self.negotiation.accept

    @property
    def preferences(self) -> Preferences:
        return self.negotiation.preferences

    @property
    def reads(self) -> bool:
        """Whether the method only reads."""
        return self.method in READ_METHODS

    @property
    def profile_headers(self) -> list[tuple[str, str]]:
        """Return the header `Content-Profile`, which names the schema in a response with a body; empty if it is not
        needed (`RequestKind`)."""
        return [("content-profile", self.schema)] if self.profile else []

    @property
    def query(self) -> str:
        """Return the query string as it was sent."""
        query: str = self.scope.query_string
        return query


_IS_PLAIN = re.compile(r"[A-Za-z0-9/_.~-]*").fullmatch
_UNRESERVED = "/:@!$&'()*+,;=~"


def sent_path(scope: Any) -> str:
    """Return the path percent-encoded, as clients send it. Granian passes it decoded only, so that an encoded slash is
    the same as a slash.
    """
    raw: str | None = getattr(scope, "encoded_path", None) or getattr(scope, "raw_path", None)
    if raw is not None:
        return raw
    path: str = scope.path
    return path if _IS_PLAIN(path) else quote(path, safe=_UNRESERVED)


LONGEST = 512
"""Maximum number of characters of path and headers that are remembered with what they say."""
BYTES_PER_CHARACTER = 150
"""Memory that parsed headers take for each of their characters, at most, as measured with entries of one character."""


def segments_of(path: str, mount: str) -> tuple[str, ...] | None:
    """Return the decoded segments of a raw path below a mount; None if it is not below. The mount itself has none."""
    return _known_segments(path, mount) if len(path) <= LONGEST else _segments(path, mount)


def _segments(path: str, mount: str) -> tuple[str, ...] | None:
    base = mount.rstrip("/")
    if "%" in path:
        segments = tuple(unquote(segment) for segment in path.split("/"))
        of_mount = tuple(base.split("/"))
        below = segments[len(of_mount) :]
        if segments[: len(of_mount)] != of_mount:
            return None
    elif path.startswith(base) and path[len(base) : len(base) + 1] in ("", "/"):
        below = tuple(path[len(base) + 1 :].split("/"))
    else:
        return None
    return () if below == ("",) else below


_known_segments = lru_cache(maxsize=1024)(_segments)


def relation_path(options: PostgRestOptions, name: str) -> str:
    """Return the path of a relation, percent-encoded. name: of the relation."""
    return f"{quote(options.path.rstrip('/'), _UNRESERVED)}/{quote(name, '')}"


def resource_of(segments: tuple[str, ...], options: PostgRestOptions) -> tuple[Resource, str]:
    """Return what a path addresses, and the name of the relation or function. The root is the function of
    `db-root-spec`, if this is configured; otherwise its name is empty.

    Raises `ApiError` (`PGRST125`, `PGRST126`).
    """
    match segments:
        case (name,) if name:
            return RELATION, name
        case ("rpc", name):
            return FUNCTION, name
        case () if options.root_function is not None:
            return FUNCTION, options.root_function.split(".", 1)[-1]
        case () if options.openapi_mode == "disabled":
            raise errors.root_disabled()
        case ():
            return ROOT, ""
    raise errors.invalid_path()


def read_kind(
    options: PostgRestOptions,
    segments: tuple[str, ...],
    method: str,
    profile: str | None,
    accept: tuple[str, ...],
    prefer: tuple[str, ...],
) -> RequestKind:
    """Read path, method and the headers that select schema, preferences and media type.

    segments: of the path below the mount. profile: the header of `profile_header`. accept, prefer: values of all
    `Accept` and `Prefer` headers. Raises `ApiError`: `PGRST125` and `PGRST126` for the path, `PGRST101` and `PGRST117`
    for the method, `PGRST106` for a schema that is not exposed.
    """
    resource, name = resource_of(segments, options)
    if profile is not None and profile not in options.schemas:
        raise errors.invalid_schema(profile, options.schemas)
    _check_method(resource, method)
    schema = profile or options.schemas[0]
    named = profile is not None or len(options.schemas) > 1
    return RequestKind(method, resource, name, schema, named, negotiation_headers(accept, prefer))


def profile_header(method: str) -> str:
    """Return the name of the header that selects the schema."""
    return "content-profile" if method in WRITE_METHODS else "accept-profile"


def negotiation_headers(accept: tuple[str, ...], prefer: tuple[str, ...]) -> NegotiationHeaders:
    """Parse the values of all `Accept` and `Prefer` headers."""
    characters = sum(map(len, (*accept, *prefer)))
    parse = _known_negotiation if characters <= LONGEST else _negotiation
    return parse(accept, prefer, characters)


def _negotiation(accept: tuple[str, ...], prefer: tuple[str, ...], characters: int) -> NegotiationHeaders:
    """Parse the values of all `Accept` and `Prefer` headers. characters: their number."""
    remembered = characters <= LONGEST
    return NegotiationHeaders(
        parse_accept(accept), parse_preferences(prefer), remembered, BYTES_PER_CHARACTER * characters
    )


_known_negotiation = lru_cache(maxsize=512)(_negotiation)


def _check_method(resource: Resource, method: str) -> None:
    """Raise `ApiError` (`PGRST101`, `PGRST117`) for a method that the kind of target does not have."""
    if method in READ_METHODS or method == "OPTIONS":
        return
    if resource is FUNCTION:
        if method != "POST":
            raise errors.rpc_method(method)
    elif resource is ROOT or method not in WRITE_METHODS:
        raise errors.unsupported_method(method)
