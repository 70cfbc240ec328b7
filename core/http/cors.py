"""Headers of cross-origin resource sharing (Fetch standard 3.2, browsers-3 to browsers-5)."""

from __future__ import annotations

from dataclasses import dataclass

Fields = list[tuple[str, str]]

ANY = "*"


@dataclass(frozen=True, slots=True)
class Cors:
    """The policy of the service. If a list is None, all values are allowed."""

    origins: frozenset[str] | None = frozenset()
    """Serialized origins in lower case: `https://shop.example:8443`."""
    methods: tuple[str, ...] | None = None
    headers: tuple[str, ...] | None = None
    exposed: tuple[str, ...] = ()
    credentials: bool = False
    max_age: int = 600
    """Lifetime of a preflight result in seconds. If it is 0 or less, no header is sent."""

    def actual(self, origin: str | None) -> Fields:
        """Return the headers for a response that is not a preflight. origin: the header `Origin`, or None.

        If the response depends on the origin, `Vary` says so also for requests without `Origin`: a cache must not
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
        """Return the headers of the response to a preflight. Its status is always 204; the browser decides."""
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
        fields = [("access-control-allow-origin", ANY if self.origins is None else origin)]
        if self.credentials:
            fields.append(("access-control-allow-credentials", "true"))
        return fields
