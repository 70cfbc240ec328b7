from collections.abc import Sequence
from typing import Literal

from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.codecs import Codecs

class Renderer(BodyWriter):
    """The JSON body of one endpoint statement, or the text of its scalar.

    `keys` are the JSON keys of the columns, UTF-8 and not yet escaped; without any the result's column names serve.
    A tuple among them stands for a composite column that is spread: its fields take its place under these keys. With
    `first_only` only the first column of a row counts. With `blank_is_null` a composite column whose fields are all
    NULL is null, and its fields are told as columns are.
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
    ) -> None: ...
