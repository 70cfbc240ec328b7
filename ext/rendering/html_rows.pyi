from rowcall.ext.rendering.body_writer import BodyWriter

class HtmlTable(BodyWriter):
    """Writes a table with one header row: `<table><tr><th>…</th></tr><tr><td>…</td></tr></table>`, without line breaks.

    titles: the header row, UTF-8 and not yet escaped. header, footer: written unchanged before and after the table.
    """

    def __init__(self, is_set: bool, titles: list[bytes], header: bytes, footer: bytes) -> None: ...

def escape(text: bytes) -> bytes: ...
