class CsvError(ValueError):
    line: int
    """Number of the line, from 1."""
    why: str
    """What is wrong with the line."""

class EncodingError(CsvError):
    """A byte of the line is not valid in the encoding of the file."""

class CsvRows:
    """Parser of the lines of one CSV file into array literals of `text[]`. See `csv_rows.pyx`."""

    def __init__(self, delimiters: bytes, quotes: bool, blank_is_null: bool, encoding: str | None = None) -> None: ...
    @property
    def lines(self) -> int: ...
    def feed(self, piece: bytes) -> list[bytes | None]: ...
    def finish(self) -> list[bytes | None]: ...

def array_of_texts(texts: list[bytes | None]) -> bytes: ...
def columns(texts: list[bytes | None], places: tuple[int, ...]) -> list[bytes]: ...
