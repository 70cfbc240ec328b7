from rowcall.ext.rendering.body_writer import BodyWriter

MARK: bytes
"""The byte in front of each of the five texts behind the rows of a page. JSON never contains this byte.

The texts: `more` if there are rows beyond the page, else empty; number of rows of the page; number of all rows, empty
if they are not counted; position of the first row; position of the last row.
"""

class PageWriter(BodyWriter):
    """Writes at most `limit` rows of `inner`, and behind them the five texts that `MARK` describes.

    counted: the last column is the number of all rows.
    """

    def __init__(self, inner: BodyWriter, limit: int, counted: bool) -> None: ...
