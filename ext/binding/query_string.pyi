class QueryError(ValueError):
    key: str
    """Readable form of the key, with U+FFFD for what is not UTF-8."""
    reason: str

def parse(query: str) -> list[tuple[str, bytes]]:
    """Key and UTF-8 text of each piece, in order, repeated keys kept; `core.text.query_text.pairs` at C speed.

    Raises `QueryError` for a key or text that is not UTF-8 or holds a NUL.
    """
