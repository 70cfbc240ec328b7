"""Calls from pages of other origins: what a browser is told about them (Fetch standard 3.2, browsers-3 to
browsers-5)."""

from __future__ import annotations

from dataclasses import dataclass

Fields = list[tuple[str, str]]

ANY = "*"


@dataclass(frozen=True, slots=True)
class Cors:
    """One policy for the whole service. None in place of a list: everything is allowed."""

    origins: frozenset[str] | None = frozenset()
    """Serialized, in lower case: `https://shop.example:8443`."""
    methods: tuple[str, ...] | None = None
    headers: tuple[str, ...] | None = None
    exposed: tuple[str, ...] = ()
    credentials: bool = False
    max_age: int = 600
    """Seconds; 0 or less is not told."""

    def actual(self, origin: str | None) -> Fields:
        """Added to an answer that is no preflight. Without `Origin` nobody asked across origins.

        Wherever the answer depends on the origin it says so, to requests without one too: a cache in between must not
        hand the answer for one of them to another.
        """
        fields: Fields = [] if self.origins is None else [("vary", "Origin")]
        if origin is None or not self._allows(origin):
            return fields
        fields += self._origin(origin)
        if self.exposed:
            fields.append(("access-control-expose-headers", ",".join(self.exposed)))
        return fields

    def preflight(self, origin: str, method: str, headers: str | None) -> Fields:
        """The answer's fields; it is 204 in any case, and the browser decides."""
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
