from rowcall.ext.rendering.body_writer import BodyWriter

def key_prefix(key: bytes, first: bool) -> bytes:
    """Return the key and punctuation in front of a value: `{"key":` or `,"key":`."""

class NamedRows(BodyWriter):
    """Writes the output of `inner` behind a key. If `inner` writes no set, a result without rows is null."""

    def __init__(self, inner: BodyWriter, prefix: bytes) -> None: ...

class AffectedRows(BodyWriter):
    """Writes the number of rows that an INSERT, UPDATE, DELETE or MERGE has changed, or -1 for any other command. Rows
    are dropped."""

    def __init__(self, prefix: bytes) -> None: ...
