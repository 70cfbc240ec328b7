class BodyWriter:
    """The body writer of one endpoint statement; Cython code drives it through `body_writer.pxd`."""

    def render_result(self, pgresult_ptr: int) -> bytes: ...

class RowPlan:
    """How the rows of one result description are written; made by the writer."""
