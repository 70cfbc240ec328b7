class ColumnForm:
    """How values of a column are checked. kind: a `ValueKind`, neither `other` nor `composite`. limit: `text`: maximum
    number of bytes; `numeric`: maximum number of digits before the point; -1: none. scale: `numeric`: number of digits
    behind the point, to which PostgreSQL rounds."""

    def __init__(self, kind: str, limit: int = -1, scale: int = 0) -> None: ...

def first_keys(body: bytes) -> tuple[str, ...] | None:
    """Return the keys of the first element, without escapes, of a JSON array of objects. None: the text has another
    form, or the keys are repeated, escaped, none, or more than 1600. The rest of the text is not read."""

def array_literals(body: bytes, forms: tuple[ColumnForm | None, ...]) -> list[str | None] | None:
    """Return an array literal of PostgreSQL for each column of a JSON array of objects.

    forms: for each of the `first_keys` in order; None: the column is left out, and its literal is None. None is
    returned if the text is not valid JSON, an object has not these keys in this order, or a value is not certainly
    valid for its column. `tests.ext.twins.json_rows` is the slow twin of both functions.
    """
