from rowcall.ext.rendering.body_writer import BodyWriter

MARK: bytes
"""Separates the rows from what follows them: `more` or nothing, number of rows, number of all rows if it is counted,
position of the first row, and of the last. JSON never contains it."""

class PageWriter(BodyWriter):
    """Writes at most `limit` rows of `inner`, and behind them what `MARK` separates.

    counted: the last column is the number of all rows.
    """

    def __init__(self, inner: BodyWriter, limit: int, counted: bool) -> None: ...
