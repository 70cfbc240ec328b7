from collections.abc import Sequence
from typing import Literal

from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.codecs import Codecs

class Renderer(BodyWriter):
    """Writes the JSON body of one endpoint statement, or the text of its scalar.

    path: "scalar" for a result of one value without keys. is_set: with "rows", the body is an array of all rows instead
    of the first row. named: a row is an object instead of the value of its only column. keys: JSON keys of the columns,
    UTF-8 and not yet escaped; if empty, the column names of the result. A tuple of keys belongs to a composite column
    that is spread: the fields of the composite become members of the row under these keys. first_only: only the first
    column of a row is written. blank_is_null: a composite column whose fields are all NULL is null, and the fields of
    any other composite column are rendered like columns. hidden: number of last columns that are not written. lines:
    each row is a line (JSON lines) instead of an element of an array.
    """

    def __init__(
        self,
        codecs: Codecs,
        path: Literal["scalar", "rows"],
        is_set: bool,
        named: bool,
        keys: Sequence[bytes | tuple[bytes, ...]],
        blank_is_null: bool = False,
        first_only: bool = False,
        hidden: int = 0,
        lines: bool = False,
    ) -> None: ...
