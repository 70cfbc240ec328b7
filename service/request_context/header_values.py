"""Values of request headers that decide what is executed or who is authorized.

A header whose value is not ASCII is contained in the headers without a value: granian passes on no such value, and the
HTTP/1.1 server of the event loop does the same, except by `decoded_all`. Such a header must not be mistaken for an
absent one, because a write would go to the default schema, or run without its condition. Readers of this module refuse
it. An `Authorization` that is not ASCII is a malformed token, as other texts are. Headers with less effect, such as
`User-Agent`, are read by `headers.get`, and then count as absent.
"""

from __future__ import annotations

from typing import Any

from rowcall.core.errors.problems import Problem


def read_header(headers: Any, name: str) -> str | None:
    """Return the value of a header, or None without it. Raises `Problem` 400 if the value is not ASCII. name: in lower
    case.
    """
    value: str | None = headers.get(name)
    return value if value is not None or name not in headers else read_header_lines(headers, name)[0]


def read_header_lines(headers: Any, name: str) -> list[str]:
    """Return the values of all lines of a header. Raises `Problem` 400 if it is there, and no value is ASCII. name: in
    lower case.
    """
    lines: list[str] = headers.get_all(name)
    if not lines and name in headers:
        raise _unreadable_problem(name)
    return lines


def decode_header(headers: Any, name: str) -> str | None:
    """Return the value of a header, read as UTF-8 with U+FFFD for other bytes; None without it. Raises `Problem` 400
    for a value that is not ASCII and has passed through granian. name: in lower case.
    """
    value: str | None = headers.get(name)
    return value if value is not None or name not in headers else decode_header_lines(headers, name)[0]


def decode_header_lines(headers: Any, name: str) -> list[str]:
    """Return the values of all lines of a header, decoded as by `decode_header`. Raises `Problem` 400 if they have
    passed through granian, and none is ASCII. name: in lower case.
    """
    decoded = getattr(headers, "decoded_all", None)
    lines: list[str] = read_header_lines(headers, name) if decoded is None else decoded(name)
    return lines


def read_validator(headers: Any, name: str) -> str | None:
    """Return the value of a header that is compared with the tag or date of a file, or None without it. A value that is
    not ASCII becomes U+FFFD, which is equal to none of them. name: in lower case.
    """
    value: str | None = headers.get(name)
    return "\ufffd" if value is None and name in headers else value


def cookie_header(headers: Any) -> str:
    """Return all cookies of a request; empty without any. HTTP/2 may send each cookie in its own header line.

    Raises `Problem` 400 if all lines have passed through granian and are not ASCII. Otherwise a cookie of another
    application that is not ASCII does not hide the other cookies.
    """
    lines = decode_header_lines(headers, "cookie")
    return lines[0] if len(lines) == 1 else "; ".join(lines)


def _unreadable_problem(name: str) -> Problem:
    """Return the problem of a header whose value cannot be read (400). name: in lower case."""
    shown = "-".join(part.capitalize() for part in name.split("-"))
    return Problem(400, f"the value of the header {shown} is not ASCII: send it in ASCII or omit the header")
