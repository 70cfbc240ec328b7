from typing import Literal

from rowcall.ext.codecs import Codecs

class Renderer:
    """The body writer of one endpoint statement; Cython code drives it through `rows.pxd`.

    `keys` are the JSON keys of the columns, UTF-8 and not yet escaped; without any the result's column names serve.
    """

    def __init__(
        self, codecs: Codecs, path: Literal["scalar", "rows"], is_set: bool, named: bool, keys: list[bytes]
    ) -> None: ...
    def render_result(self, pgresult_ptr: int) -> bytes: ...

class RowPlan:
    """How the rows of one result description are written; made by the renderer."""
