"""Lines of CSV as texts of arrays: the fast parser compared with its slow twin, in pieces of any size."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.text.array_literal import elements, literal
from rowcall.core.uploads import csv_text
from rowcall.core.uploads.csv_text import CsvFormat
from rowcall.ext.binding.csv_rows import CsvError, CsvRows, array_of_texts, columns

LINES = st.text(alphabet='ab", ;\t\\é\u0085\u00a0\u2003\u2028\u3000\ufeff\r\n\0{}', max_size=60)


def read(reader: CsvRows | csv_text.CsvRows, pieces: list[bytes]) -> list[bytes | None] | str:
    """Return the rows, or the error message."""
    rows: list[bytes | None] = []
    try:
        for piece in pieces:
            rows += reader.feed(piece)
        rows += reader.finish()
    except (CsvError, csv_text.MalformedLineError) as error:
        return str(error)
    return rows


@given(
    st.one_of(LINES.map(str.encode), st.binary(max_size=40)),
    st.lists(st.integers(0, 60), max_size=4),
    st.sampled_from([",", ",;", "\t", " ", ";,\t", "\t "]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, "utf-16", "windows-1252", "cp932", "gb18030"]),
)
def test_the_parser_reads_the_same_rows_as_its_twin(
    data: bytes, cuts: list[int], delimiters: str, quotes: bool, null: bool, encoding: str | None
) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    fast = read(CsvRows(delimiters.encode(), quotes, null, encoding), pieces)
    assert fast == read(csv_text.CsvRows(CsvFormat(delimiters, quotes, null, encoding)), pieces)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"a,b\nc,d\n", [b'{"a","b"}', b'{"c","d"}']),
        (b"a\r\n\r\nb", [b'{"a"}', None, b'{"b"}']),
        (b"a\rb\r", [b'{"a"}', b'{"b"}']),
        (b'"a ""q"", b", c\n', [b'{"a \\"q\\", b","c"}']),
        (b"a,\n,\n", [b'{"a",NULL}', b"{NULL,NULL}"]),
        (b"\xef\xbb\xbfa\n", [b'{"a"}']),
        (b'a"b\n', [b'{"a\\"b"}']),
        (b"", []),
    ],
)
def test_csv_lines_are_converted_to_array_literals(text: bytes, rows: list[bytes | None]) -> None:
    assert read(CsvRows(b",", True, True), [text]) == rows


@given(
    st.text(alphabet='a",;\u00e9\u20ac\u6f22\U0001f600\r\n', max_size=30),
    st.lists(st.integers(0, 120), max_size=4),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16le", "utf-16be", "gb18030"]),
)
def test_characters_may_be_split_anywhere(text: str, cuts: list[int], encoding: str) -> None:
    data = text.encode(encoding)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    name = None if encoding.startswith("utf-8") else encoding
    assert read(CsvRows(b",", True, True, name), pieces) == read(CsvRows(b",", True, True), [text.encode()])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16le", "utf-32", "utf-32be"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_line_end_of_two_characters_may_be_split_anywhere(encoding: str, size: int) -> None:
    data = "a\r\n\r\nb\rc".encode(encoding)
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    fast, slow = CsvRows(b",", True, True, encoding), csv_text.CsvRows(CsvFormat(encoding=encoding))
    assert read(fast, pieces) == read(slow, pieces) == [b'{"a"}', None, b'{"b"}', b'{"c"}']
    assert fast.lines == slow.lines == 4


@pytest.mark.parametrize(("before", "error"), [(b"a\n", "line 2: it is longer than"), (b'"\n', "line 1: a quote")])
def test_an_overlong_line_is_reported_after_the_preceding_lines(before: bytes, error: str) -> None:
    data = before + b"x" * (csv_text.LONGEST_LINE + 1)
    for reader in (CsvRows(b",", True, True), csv_text.CsvRows(CsvFormat())):
        assert str(read(reader, [data])).startswith(error)


@pytest.mark.parametrize(
    ("data", "encoding", "error"),
    [
        (b"a\nb,\xe9\nc\n", None, "line 2: byte 5 of the file (0xe9) is not valid utf-8"),
        (b"\xef\xbb\xbfa\r\n\r\n\xe9\n", None, "line 3: byte 9 of the file (0xe9) is not valid utf-8"),
        (b"a\r\xe9", None, "line 2: byte 3 of the file (0xe9) is not valid utf-8"),
        (b"a\n\xe2\x82", None, "line 2: byte 3 of the file (0xe2) is not valid utf-8"),
        (b'"a\n\xe9\n', None, "line 1: a quote is not closed"),
        (b'"\xe9\n', None, "line 1: byte 2 of the file (0xe9) is not valid utf-8"),
        (b"a\r\n\x81\n", "windows-1252", "line 2: byte 4 of the file (0x81) is not valid windows-1252"),
        ("a\n".encode("utf-16le") + b"\x00\xd8b\x00", "utf-16le", "line 2: byte 5 of the file (0x00) is not valid utf"),
        ("a\n".encode("utf-16") + b"b", "utf-16", "line 2: byte 7 of the file (0x62) is not valid utf-16"),
        ("a\n".encode("utf-16le"), "utf-16", "line 1: the file does not begin with a byte order mark"),
        (b"\0\0\0\0\0\xd8\0\0", "utf-16", "line 1: the file does not begin with a byte order mark"),
        (b"a\n\x81\xff", "cp932", "line 2: byte 3 of the file (0x81) is not valid cp932"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_an_invalid_byte_is_reported(data: bytes, encoding: str | None, error: str, size: int) -> None:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert str(read(CsvRows(b",", True, True, encoding), pieces)).startswith(error)
    assert str(read(csv_text.CsvRows(CsvFormat(encoding=encoding)), pieces)).startswith(error)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('\u00a0\t"x"\n', '{NULL,"x"}'),
        ('"a"\u00a0\tb\n', '{"a","b"}'),
        ('\u3000\u00a0 "a" \u2028\t\u2003"b"\n', '{"a","b"}'),
    ],
)
def test_non_ascii_blanks_end_at_a_blank_delimiter(text: str, row: str) -> None:
    assert read(CsvRows(b"\t", True, True), [text.encode()]) == [row.encode()]


def test_every_blank_may_precede_a_quote() -> None:
    """The twin defines the blanks: those of Python."""
    for number in [*range(1, 0xD800), *range(0xE000, 0x11000)]:
        blank = chr(number)
        if (blank.isspace() and blank not in "\r\n") or number in {0x84, 0xA1, 0x1681, 0x200B, 0x205E, 0x3001}:
            data = f'{blank}"a";"b"{blank}\n'.encode()
            expected = read(csv_text.CsvRows(CsvFormat(";")), [data])
            assert read(CsvRows(b";", True, True), [data]) == expected, hex(number)


@pytest.mark.slow
def test_a_long_line_of_non_ascii_letters_is_read_once() -> None:
    """Each cell once read the rest of its line, which took far too long for a line of this length."""
    count = 1_000_000
    assert read(CsvRows(b",", True, True), ["é,".encode() * count]) == [b"{" + '"é",'.encode() * count + b"NULL}"]


def test_a_long_file_with_cr_line_ends_is_searched_once() -> None:
    """Each line once searched all following text for a line feed."""
    count = 400_000
    assert read(CsvRows(b",", True, True), [b"abcdefgh\r" * count]) == [b'{"abcdefgh"}'] * count


@pytest.mark.parametrize(
    ("text", "why"), [(b'"a', "line 1: a quote is not closed"), (b'a\n"b"c\n', "line 2: text foll")]
)
def test_unbalanced_quotes_are_reported_with_their_line(text: bytes, why: str) -> None:
    assert str(read(CsvRows(b",", True, True), [text])).startswith(why)


@given(st.lists(st.one_of(st.none(), st.text(alphabet='ab"\\{},é ', max_size=8)), max_size=5))
def test_texts_in_an_array_survive_a_round_trip(texts: list[str | None]) -> None:
    whole = array_of_texts([None if text is None else text.encode() for text in texts])
    assert elements(whole.decode()) == texts


CELLS = st.lists(st.one_of(st.none(), st.text(alphabet='ab"\\{},é ', max_size=8)), max_size=5)


@given(st.lists(st.one_of(st.none(), CELLS), max_size=5), st.sets(st.integers(1, 7), max_size=4).map(sorted).map(tuple))
def test_csv_cells_are_converted_to_column_arrays(rows: list[list[str | None] | None], places: tuple[int, ...]) -> None:
    made = columns([None if row is None else literal([*row], quoted=True).encode() for row in rows], places)
    expected = [[None if row is None or len(row) < place else row[place - 1] for row in rows] for place in places]
    assert [elements(column.decode()) for column in made] == expected


@pytest.mark.parametrize("places", [(0,), (2, 1), (1, 1)])
def test_unordered_column_numbers_are_refused(places: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="no places"):
        columns([], places)
