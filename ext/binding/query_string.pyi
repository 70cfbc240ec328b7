class QueryError(ValueError):
    key: str
    """The key as readable text, with U+FFFD in place of bytes that are not UTF-8."""
    reason: str

def parse(query: str) -> list[tuple[str, bytes]]:
    """Return key and UTF-8 text of each piece in order, repeated keys included.

    `core.text.query_text.pairs` is its slow twin. Raises `QueryError` for a key or text that is not UTF-8 or contains a
    NUL.
    """

def parse_form(body: bytes) -> list[tuple[str, str]]:
    """Return key and text of each piece of a urlencoded form in order, like `core.text.query_text.pairs`.

    Releases the GIL while long keys and texts are decoded, and after many short ones. Raises `QueryError`, and
    `UnicodeDecodeError` if the body itself is not UTF-8.
    """

def has_non_ascii(body: bytes) -> bool:
    """Return whether a urlencoded form contains non-ASCII characters, escaped or not. Releases the GIL."""

def unescape(text: bytes) -> bytes:
    """Decode a urlencoded key or value to its bytes. Releases the GIL for long ones."""
