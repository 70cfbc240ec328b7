from collections.abc import Iterable

def are_sound(headers: list[tuple[str, str]]) -> bool:
    """Return whether each name is a token (RFC 9110, 5.6.2) and no value contains CR, LF or NUL."""

MAX_FIELDS: int
"""Maximum number of headers of one response. The HTTP server aborts the process at 24,576."""

def field_problem(
    headers: Iterable[tuple[str, str]], most_fields: int, most_bytes: int, body_length: int = -1
) -> str | None:
    """Return why the headers cannot be part of a response, or None if they can.

    most_fields, most_bytes: limits; a header counts as its characters plus four for the rest of its line. body_length:
    bytes of a body that is sent in one piece; -1: no body, or an unknown length.
    """

def lowercase_headers(headers: list[tuple[str, str]], dropped: frozenset[str]) -> list[tuple[str, str]] | None:
    """Return the pairs with lower-case names: one `content-type` first, without the names in `dropped`.

    If a Connection header has another value than `keep-alive` or `close`, return None.
    """

def request_head(
    method: str, target: str, authority: str, headers: list[tuple[str, str]], framing: list[tuple[str, str]]
) -> bytes | None:
    """Return the request line and the header section as bytes, or None if a text is not ASCII.

    authority: value of the Host header if `headers` has none.
    """

def plain_head(data: bytes) -> tuple[int, list[tuple[str, str]], int, int] | None:
    """Parse the head of a simple response on a persistent connection.

    Returns (status, headers, length of the body, offset of the body), or None for a response that needs the full
    parser.
    """
