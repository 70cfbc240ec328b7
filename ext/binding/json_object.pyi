class JsonError(ValueError):
    """The text is not the expected JSON; the message says why."""

def members(body: bytes) -> list[tuple[str, bytes]]:
    """Return the members of the object in `body`, as pairs of the decoded key and the unparsed value.

    An empty body counts as an empty object. Raises `JsonError`, also if a key occurs twice.
    `core.text.json_text.members` is the slow twin of this function.
    """

def elements(array: bytes) -> list[bytes]:
    """Return the unparsed elements of a JSON array, which is the whole text. Raises `JsonError`."""

def unescape(string: bytes) -> bytes:
    """Return the content of a JSON string as UTF-8. Raises `JsonError` for any other text and for a NUL in it."""
