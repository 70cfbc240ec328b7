class QueryError(ValueError):
    key: str
    """Readable form of the key, with U+FFFD for what is not UTF-8."""
    reason: str

def parse(query: str) -> list[tuple[str, bytes]]:
    """Key and UTF-8 text of each piece, in order, repeated keys kept; `core.text.query_text.pairs` at C speed.

    Raises `QueryError` for a key or text that is not UTF-8 or holds a NUL.
    """

def parse_form(body: bytes) -> list[tuple[str, str]]:
    """Key and text of each piece of a urlencoded form, in order; as `core.text.query_text.pairs` of its text.

    Releases the GIL while long keys and texts are decoded, and after many short ones. Raises `QueryError`, and
    `UnicodeDecodeError` if the body itself is not UTF-8.
    """

def holds_beyond_ascii(body: bytes) -> bool:
    """Whether a urlencoded form holds anything but ASCII, escaped or not. Releases the GIL."""

def unescape(text: bytes) -> bytes:
    """The bytes that a urlencoded key or value stands for; releases the GIL for long ones."""
