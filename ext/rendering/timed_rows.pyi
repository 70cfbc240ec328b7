from rowcall.ext.rendering.body_writer import BodyWriter, RowPlan
from rowcall.ext.rendering.rows import Renderer

class TimedPlan(RowPlan):
    """One result while it is written; `Request.plan` of a request whose writer is timed."""

    @property
    def seconds(self) -> float: ...

class TimedWriter(BodyWriter):
    """Writes what `inner` writes and takes the time."""

    def __init__(self, inner: BodyWriter) -> None: ...

def render_column(renderer: Renderer, pgresult_ptr: int, column: int) -> int:
    """Renders one column of a finished result as JSON, without keys; gives the bytes of it."""
