class JsonError(ValueError):
    """The text is not the expected JSON; the message says why."""

def members(body: bytes) -> list[tuple[str, bytes]]:
    """Return the members of the one object in `body`: key, and the unparsed value. An empty body is an empty object.

    `core.text.json_text.members` is its slow twin. Raises `JsonError`.
    """

def elements(array: bytes) -> list[bytes]:
    """Return the unparsed items of an array. Raises `JsonError`."""

def unescape(string: bytes) -> bytes:
    """Return the content of a JSON string as UTF-8. Raises `JsonError` if it is no string or contains a NUL."""
