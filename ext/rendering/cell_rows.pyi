from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.codecs import Codecs

class CellRows(BodyWriter):
    """Writes rows as JSON arrays of cells `[column, type OID, is an array, text or null, JSON as text]`."""

    def __init__(self, codecs: Codecs, is_set: bool) -> None: ...
