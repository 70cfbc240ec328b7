from rowcall.ext.rendering.body_writer import BodyWriter

ROW_LIMIT: int
"""Rows of a worksheet, the one with the titles included."""

class SheetRows(BodyWriter):
    """The `<row>` elements of a worksheet, the first one with the titles.

    `titles` are UTF-8 and not yet escaped; the styles are indices of the workbook's cell formats, 0 for none.
    More rows than a worksheet holds are a ValueError.
    """

    def __init__(
        self, is_set: bool, titles: list[bytes], title_style: int, date_style: int, number_style: int
    ) -> None: ...

def column_letters(index: int) -> bytes: ...
