"""`Cache-Control` as comments write it: its directives, and what of them is for everybody (RFC 9111, 5.2.2; RFC 5861).

What an endpoint tells one caller is not for another. Shared caches are told so even where a comment says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

_ALONE = frozenset(
    (
        *("public", "private", "no-cache", "no-store", "must-revalidate", "proxy-revalidate", "no-transform"),
        *("must-understand", "immutable"),
    )
)
_WITH_SECONDS = frozenset(("max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"))
_SHARED = frozenset(("public", "s-maxage", "proxy-revalidate"))
_UNSHARED = frozenset(("private", "no-store"))

PRIVATE = "private, no-cache"
"""Default of responses that are not for everybody: no shared cache stores them, and a browser revalidates them."""
VARY_BY_CREDENTIALS = "Cookie, Authorization"


def directives(text: str) -> Iterator[str]:
    return (part.strip() for part in text.split(",") if part.strip())


def _name(directive: str) -> str:
    return directive.partition("=")[0].strip().lower()


def unknown_directive(text: str) -> str | None:
    """The first that is none."""
    for directive in directives(text):
        name, equals, value = directive.partition("=")
        name, value = name.strip().lower(), value.strip()
        seconds = name in _WITH_SECONDS and value.isascii() and value.isdigit()
        if not seconds and (equals or name not in _ALONE):
            return directive
    return None


def private(text: str) -> str:
    """The same for a browser, and nothing for whoever answers several users."""
    values = [directive for directive in directives(text) if _name(directive) not in _SHARED]
    if all(_name(directive) not in _UNSHARED for directive in values):
        values.insert(0, "private")
    return ", ".join(values)


def is_private(text: str) -> bool:
    names = {_name(directive) for directive in directives(text)}
    return not names & _SHARED and bool(names & _UNSHARED)


def may_store(text: str) -> bool:
    """Whether some cache may store a response with this `Cache-Control`."""
    return all(_name(directive) != "no-store" for directive in directives(text))


def allows_errors(text: str) -> bool:
    """It may stand in an error response: nobody keeps that one for its sake."""
    return any(_name(directive) in ("no-store", "no-cache") for directive in directives(text))
