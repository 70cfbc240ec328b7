"""Credentials that callers send to this service, and that a service behind a proxy must not get."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.data.record import Record

Headers = list[tuple[str, str]]

_PREFIXES = ("rowcall.", "__Host-rowcall.", "__Secure-rowcall.")
"""Name prefixes of the cookies that sign-in with external providers uses."""


@dataclass(frozen=True, slots=True)
class OwnCredentials(Record):
    """Names of the credentials for this service.

    headers: names in lower case, such as that of API keys. schemes: of the header Authorization, in lower case.
    cookies: names; a session may be spread over `NAME`, `NAMEC1`, `NAMEC2` …
    """

    headers: frozenset[str] = frozenset()
    schemes: frozenset[str] = frozenset()
    cookies: tuple[str, ...] = ()

    def remove_from(self, headers: Headers) -> Headers:
        """Return the headers in their order without these credentials and without the cookies of sign-in with external
        providers (`rowcall.…`). Other cookies and other schemes of Authorization stay; a header Cookie without other
        cookies is left out."""
        other_headers: Headers = []
        for pair in headers:
            name = pair[0].lower()
            if name in self.headers or (name == "authorization" and self._is_own_scheme(pair[1])):
                continue
            if name == "cookie":
                cookies = self._without_own_cookies(pair[1])
                if cookies:
                    other_headers.append((pair[0], cookies))
            else:
                other_headers.append(pair)
        return other_headers

    def _is_own_scheme(self, value: str) -> bool:
        words = value.split(None, 1)
        return bool(words) and words[0].lower() in self.schemes

    def _without_own_cookies(self, value: str) -> str:
        pairs = [part.strip() for part in value.split(";")]
        return "; ".join(pair for pair in pairs if pair and not self._is_own_cookie(pair.partition("=")[0].strip()))

    def _is_own_cookie(self, name: str) -> bool:
        if name.startswith(_PREFIXES):
            return True
        return any(
            name == own or (name.startswith(f"{own}C") and name[len(own) + 1 :].isdigit()) for own in self.cookies
        )
