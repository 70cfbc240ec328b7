from rowcall.ext.rendering.codecs import Codecs

def render_value(codecs: Codecs, oid: int, text: bytes | None) -> bytes:
    """The JSON of one value as a column of a row; None is SQL NULL."""
