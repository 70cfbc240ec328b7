"""The key of a published result: a member of it."""

from __future__ import annotations

from rowcall.core.endpoint.endpoint import Endpoint


def key_member(endpoint: Endpoint) -> str | None:
    """Return the name of the member of a result that is the key of its message; None: messages have no key.

    A column may be named as in the database or as in responses. Results that are JSON have the name as it is written.
    """
    publishing = endpoint.options.publishing
    if publishing is None or publishing.key is None:
        return None
    key = publishing.key.casefold()
    for column in endpoint.shape.columns:
        if key in column.names:
            return column.key.decode()
    return publishing.key
