from rowcall.ext.rendering.body_writer import BodyWriter, RowPlan
from rowcall.ext.rendering.rows import Renderer

class TimedPlan(RowPlan):
    """The plan of one result while it is written; `Execution.plan` of an execution whose writer is timed.

    seconds: time spent on writing rows so far.
    """

    @property
    def seconds(self) -> float: ...

class TimedWriter(BodyWriter):
    """Writes the output of `inner` and measures the time."""

    def __init__(self, inner: BodyWriter) -> None: ...

def render_column(renderer: Renderer, pgresult_ptr: int, column: int) -> int:
    """Render one column of a finished result as JSON, without keys; return the number of bytes."""
