"""A request scope with another query string, for a step that takes its own parameters out of it."""

from __future__ import annotations

from typing import Any


class ChangedQuery:
    """A scope with another query string, and everything else of `scope`."""

    def __init__(self, scope: Any, query_string: str) -> None:
        self._scope = scope
        self.query_string = query_string

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scope, name)


def take_parameter(query_string: str, name: str) -> tuple[str | None, str]:
    """Return the text of a parameter, still encoded, and the query string without it.

    Names are compared as they were sent: one that is percent-encoded is not found. If the parameter is repeated, the
    last one counts. None: it is not there.
    """
    value, rest = None, []
    for part in query_string.split("&"):
        key, _, text = part.partition("=")
        if key == name:
            value = text
        else:
            rest.append(part)
    return value, "&".join(rest)
