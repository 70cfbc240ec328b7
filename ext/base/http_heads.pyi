from collections.abc import Iterable

def are_sound(headers: list[tuple[str, str]]) -> bool:
    """Whether each of the pairs is a name that is one and a value that does not end its line."""

MAX_FIELDS: int
"""Headers of one response. The HTTP server aborts the process at 24,576."""

def field_problem(
    headers: Iterable[tuple[str, str]], most_fields: int, most_bytes: int, body_length: int = -1
) -> str | None:
    """Return why the headers cannot be part of a response, or None if they can.

    most_fields, most_bytes: limits; a header counts as its characters and four for the rest of its line. body_length:
    bytes of a body that is sent in one piece; -1: no body, or one of unknown length.
    """

def lowered(headers: list[tuple[str, str]], dropped: frozenset[str]) -> list[tuple[str, str]] | None:
    """Pairs with their names in lower case, `content-type` first and once, without those that are named in `dropped`.
    None: a header Connection names others."""

def request_head(
    method: str, target: str, authority: str, headers: list[tuple[str, str]], framing: list[tuple[str, str]]
) -> bytes | None:
    """Request line and headers. authority: the header Host, where `headers` has none. None: a text holds what Latin-1
    has no character for."""

def plain_head(data: bytes) -> tuple[int, list[tuple[str, str]], int, int] | None:
    """Status, headers, length of the body, and where it begins, of an answer over a connection that stays open; None
    for everything that needs a second look."""
