from rowcall.ext.rendering.body_writer import BodyWriter

ROW_LIMIT: int
"""Maximum number of rows of a worksheet, including the row of titles."""

class SheetRows(BodyWriter):
    """Writes the `<row>` elements of a worksheet; the first one contains the titles.

    titles: UTF-8 and not yet escaped. The styles are indices of the cell formats of the workbook, 0 for none. Raises
    ValueError if there are more rows than a worksheet can hold.
    """

    def __init__(
        self, is_set: bool, titles: list[bytes], title_style: int, date_style: int, number_style: int
    ) -> None: ...

def column_letters(index: int) -> bytes: ...
