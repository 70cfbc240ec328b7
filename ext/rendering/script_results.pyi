from rowcall.ext.rendering.body_writer import BodyWriter

def key_prefix(key: bytes, first: bool) -> bytes:
    """What stands in front of a value: `{"key":` or `,"key":`."""

class NamedRows(BodyWriter):
    """What `inner` writes, behind a key. One that writes no set gives null where there is no row."""

    def __init__(self, inner: BodyWriter, prefix: bytes) -> None: ...

class AffectedRows(BodyWriter):
    """The number of rows that a command has changed; -1 for one that changes none by its nature. Rows are dropped."""

    def __init__(self, prefix: bytes) -> None: ...
