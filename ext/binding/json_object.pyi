class JsonError(ValueError):
    """The text is not what it should be; the message says why."""

def members(body: bytes) -> list[tuple[str, bytes]]:
    """Members of the one object in `body`: key, and the value as it is written. An empty body is an empty object.

    `core.text.json_text.members` at C speed. Raises `JsonError`.
    """

def elements(array: bytes) -> list[bytes]:
    """Items of an array, as they are written. Raises `JsonError`."""

def unescape(string: bytes) -> bytes:
    """Content of a string as UTF-8. Raises `JsonError` when it is no string or holds a NUL."""
