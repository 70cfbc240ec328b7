from rowcall.ext.rendering.codecs import Codecs

def render_value(codecs: Codecs, oid: int, text: bytes | None) -> bytes:
    """Return the JSON of one value as a column of a row; None is SQL NULL."""
