from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.codecs import Codecs

class RawRenderer(BodyWriter):
    """Writes values as the server prints them, `separator` between columns, `new_line` between rows. NULL is nothing;
    in a quoted column it is two quotes, unless `csv` is set.

    separator: None for none; then nothing is quoted. header: the first row has the names of the columns.
    escapes_formulas: quoted texts that a spreadsheet would take for formulas get an apostrophe in front. quotes: False
    if no value can contain the separator; then nothing is quoted, unless `csv` is set. csv: as in RFC 4180, everything
    but numbers, booleans and NULL is quoted, and each row ends with `new_line`.
    """

    def __init__(
        self,
        codecs: Codecs,
        is_set: bool,
        separator: bytes | None = None,
        new_line: bytes = b"",
        header: bool = False,
        escapes_formulas: bool = False,
        quotes: bool = True,
        csv: bool = False,
    ) -> None: ...

class BytesRenderer(BodyWriter):
    """Writes the bytes of a single bytea column, row after row; NULL contributes nothing."""

    def __init__(self, is_set: bool) -> None: ...
