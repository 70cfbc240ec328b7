class ColumnsChangedError(ValueError):
    """A result has other columns, or more rows, than expected: the schema has changed since its statement was
    described."""

class BodyWriter:
    """The body writer of one endpoint statement; Cython code drives it through `body_writer.pxd`."""

    def expect(self, types: tuple[int, ...], names: tuple[bytes, ...] | None = None, one_row: bool = False) -> None: ...
    def render_result(self, pgresult_ptr: int) -> bytes: ...

class RowPlan:
    """How the rows of one result description are written; created by the writer."""
