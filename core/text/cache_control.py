"""The directives of `Cache-Control` in comments, and those for shared caches (RFC 9111, 5.2.2; RFC 5861).

A response to one caller must not reach another one. Shared caches must not store it, even if the comment allows it.
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
"""Default of responses to a single caller: no shared cache stores them, and a browser revalidates them."""
VARY_BY_CREDENTIALS = "Cookie, Authorization"


def directives(text: str) -> Iterator[str]:
    return (part.strip() for part in text.split(",") if part.strip())


def _name(directive: str) -> str:
    return directive.partition("=")[0].strip().lower()


def unknown_directive(text: str) -> str | None:
    """Return the first directive, as written, that does not exist, lacks its seconds, or has a value that it does not
    take; None: all are valid. text: directives separated by commas, as in the other functions here."""
    for directive in directives(text):
        name, equals, value = directive.partition("=")
        name, value = name.strip().lower(), value.strip()
        seconds = name in _WITH_SECONDS and value.isascii() and value.isdigit()
        if not seconds and (equals or name not in _ALONE):
            return directive
    return None


def private(text: str) -> str:
    """Return the directives without those for shared caches, and with `private`, unless `private` or `no-store` is
    among them already."""
    values = [directive for directive in directives(text) if _name(directive) not in _SHARED]
    if all(_name(directive) not in _UNSHARED for directive in values):
        values.insert(0, "private")
    return ", ".join(values)


def is_private(text: str) -> bool:
    """Return whether the directives exclude shared caches: they have `private` or `no-store`, and none for shared
    caches."""
    names = {_name(directive) for directive in directives(text)}
    return not names & _SHARED and bool(names & _UNSHARED)


def may_store(text: str) -> bool:
    """Return whether a cache may store a response with this `Cache-Control`."""
    return all(_name(directive) != "no-store" for directive in directives(text))


def allows_errors(text: str) -> bool:
    """Return whether error responses may have this `Cache-Control`: it has `no-store` or `no-cache`, so that no cache
    repeats an error without revalidation."""
    return any(_name(directive) in ("no-store", "no-cache") for directive in directives(text))
