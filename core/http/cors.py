"""Headers of cross-origin resource sharing (Fetch standard 3.2, browsers-3 to browsers-5)."""

from __future__ import annotations

from dataclasses import field

from rowcall.core.http.origins import serialized_origin
from rowcall.core.sections.declaration import flag, integer, section, texts
from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.values import HEADER_NAME

Fields = list[tuple[str, str]]

ANY = "*"


def _words(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts without blanks around them, and without empty ones."""
    return tuple(text.strip() for text in texts if text.strip())


def _tokens(texts: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the HTTP tokens in a list of the configuration; None: the list contains `*`, so any token is allowed.
    Raises ValueError for a text that is no token."""
    words = _words(texts)
    for word in words:
        if not HEADER_NAME.fullmatch(word):
            raise ValueError(f"{word!r} is not a valid HTTP token")
    return None if ANY in words else words


def _exposed_headers(texts: tuple[str, ...]) -> tuple[str, ...]:
    return _tokens(texts) or ()


@section("Cors", "Calls from pages of other origins.")
class Cors:
    """The policy of the service for pages of other origins. If a list is None, all values are allowed. Construction
    raises ConfigError for an invalid origin and, if the policy is enabled, for credentials with all origins."""

    enabled: bool = flag("Enabled", False, "Allow calls from other origins, and answer their preflights.")
    allowed: tuple[str, ...] = texts("AllowedOrigins", (), "Origins that may call; `*` is any.", convert=_words)
    methods: tuple[str, ...] | None = texts(
        "AllowedMethods", ("*",), "Methods that pages may use; `*` is any.", convert=_tokens
    )
    headers: tuple[str, ...] | None = texts(
        "AllowedHeaders", ("*",), "Request headers that pages may send; `*` is any.", convert=_tokens
    )
    exposed: tuple[str, ...] = texts(
        "ExposedHeaders",
        (),
        "Response headers that pages may read in addition to the safelisted ones.",
        convert=_exposed_headers,
    )
    credentials: bool = flag("AllowCredentials", False, "Let pages send credentials such as cookies.")
    max_age: int = integer(
        "PreflightMaxAgeSeconds", 600, "Seconds for which a browser may cache a preflight. 0 or less: not sent."
    )

    origins: frozenset[str] | None = field(init=False, default=None)
    """The allowed origins as browsers write them; None: all."""

    def __post_init__(self) -> None:
        try:
            origins = None if ANY in self.allowed else frozenset(map(serialized_origin, self.allowed))
        except ValueError as error:
            raise ConfigError(f"Cors:AllowedOrigins: {error}") from None
        object.__setattr__(self, "origins", origins)
        if self.enabled and self.origins is None and self.credentials:
            raise ConfigError(
                "Cors:AllowCredentials: with `*` in Cors:AllowedOrigins any page could send requests as a signed-in "
                "user; name the origins, or leave credentials out"
            )

    def actual(self, origin: str | None) -> Fields:
        """Return the headers for a response that is not a preflight. origin: the header `Origin`; None: the request has
        none.

        If the response depends on the origin, `Vary` names it also for requests without `Origin`: a cache must not
        return the response for one origin to another.
        """
        fields: Fields = [] if self.origins is None else [("vary", "Origin")]
        if origin is None or not self._allows(origin):
            return fields
        fields += self._origin(origin)
        if self.exposed:
            fields.append(("access-control-expose-headers", ",".join(self.exposed)))
        return fields

    def preflight(self, origin: str, method: str, headers: str | None) -> Fields:
        """Return the headers of the response to a preflight, whose status is always 204. For an origin that is not
        allowed, this is `Vary` only.

        For an allowed origin, the configured methods and headers are listed, also if the requested ones are not among
        them: the browser compares. If all methods, or all headers, are allowed, those of the request are returned.
        origin: the header `Origin`. method, headers: those of `Access-Control-Request-*`, as sent; headers None: the
        request has none.
        """
        fields: Fields = [("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")]
        if not self._allows(origin):
            return fields
        fields += self._origin(origin)
        fields.append(("access-control-allow-methods", method if self.methods is None else ",".join(self.methods)))
        allowed = headers if self.headers is None else ",".join(self.headers)
        if allowed:
            fields.append(("access-control-allow-headers", allowed))
        if self.max_age > 0:
            fields.append(("access-control-max-age", str(self.max_age)))
        return fields

    def _allows(self, origin: str) -> bool:
        return self.origins is None or origin in self.origins

    def _origin(self, origin: str) -> Fields:
        """Return the headers that allow pages of an origin to read a response. origin: an allowed one, as sent."""
        fields = [("access-control-allow-origin", ANY if self.origins is None else origin)]
        if self.credentials:
            fields.append(("access-control-allow-credentials", "true"))
        return fields
