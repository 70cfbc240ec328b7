from rowcall.ext.rendering.body_writer import BodyWriter

class HtmlTable(BodyWriter):
    """A table with one header row: `<table><tr><th>…</th></tr><tr><td>…</td></tr></table>`, without line breaks.

    `titles` stand in the header row, UTF-8 and not yet escaped; `header` and `footer` go out as they are.
    """

    def __init__(self, is_set: bool, titles: list[bytes], header: bytes, footer: bytes) -> None: ...

def escape(text: bytes) -> bytes: ...
