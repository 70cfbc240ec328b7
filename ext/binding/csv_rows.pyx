"""Parse the lines of a CSV file into array literals of `text[]`, one piece of the file at a time (uploads-17).

`rowcall.core.uploads.csv_text` is the slow twin of this module and states the rules. Errors are `CsvError` with the
number of the line and the reason. All texts are UTF-8; positions (`at`, `start`, `stop`, `end`) are borrowed pointers
into the text of a line, and the byte at `end` is not read. Everything runs with the GIL. `array_of_texts` combines such
literals into one array literal of texts; `columns` transposes them into one array literal for each column.
"""

import codecs
import re

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcpy

cdef enum:
    # Maximum number of bytes of a line, as UTF-8, that is held until its end arrives.
    LONGEST_LINE = 16777216


class CsvError(ValueError):
    """A line is not valid. line: number of the line, from 1. why: the reason."""

    def __init__(self, line, why):
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why


class EncodingError(CsvError):
    """A byte of the line is not valid in the encoding of the file."""


LINE_END = re.compile(rb"\r\n?|\n")


cdef inline bint is_blank(unsigned char byte) noexcept nogil:
    """Return whether an ASCII character is a blank (`str.isspace`)."""
    return byte == 32 or 9 <= byte <= 13 or 28 <= byte <= 31


cdef int wide_blank(const unsigned char *at, const unsigned char *end) noexcept nogil:
    """Return the length in bytes of the non-ASCII blank (`str.isspace`) that begins at `at`, or 0 if there is none.

    at: position of a byte from 0x80 on, at which a character begins, ahead of `end`.
    """
    if end - at >= 2 and at[0] == 0xc2:
        return 2 if at[1] == 0x85 or at[1] == 0xa0 else 0
    if end - at < 3:
        return 0
    if at[0] == 0xe2 and at[1] == 0x80:
        return 3 if at[2] <= 0x8a or at[2] == 0xa8 or at[2] == 0xa9 or at[2] == 0xaf else 0
    if at[0] == 0xe1:
        return 3 if at[1] == 0x9a and at[2] == 0x80 else 0
    if at[0] == 0xe2:
        return 3 if at[1] == 0x81 and at[2] == 0x9f else 0
    return 3 if at[0] == 0xe3 and at[1] == 0x80 and at[2] == 0x80 else 0


cdef class CsvRows:
    """Parser of one file: call `feed` for each piece, then `finish`.

    delimiters: ASCII characters, each of which separates cells. quotes: cells may be quoted with `"`. blank_is_null: a
    blank cell is NULL instead of an empty text. encoding: name of a codec; None: UTF-8, with or without a byte order
    mark. lines: number of the lines parsed so far. Raises LookupError for an unknown codec.
    """

    cdef readonly Py_ssize_t lines
    cdef str encoding
    cdef object decoder         # None for UTF-8
    cdef Py_ssize_t decoded     # bytes of the file that have been decoded
    cdef list held              # pieces of an incomplete line, as UTF-8
    cdef Py_ssize_t held_size   # number of bytes in `held`
    cdef bint ends_in_cr        # the last byte of `held` is a CR: an LF may follow
    cdef bint begun             # the start of the file has been read: no byte order mark can follow
    cdef bint quotes
    cdef bint blank_is_null
    cdef bint delimits[256]     # whether a byte separates cells
    cdef unsigned char *out     # buffer for the literal of one line
    cdef Py_ssize_t out_room    # size of `out` in bytes
    cdef unsigned char *cell    # buffer for one quoted cell
    cdef Py_ssize_t cell_room   # size of `cell` in bytes

    def __cinit__(self, bytes delimiters not None, bint quotes, bint blank_is_null, str encoding=None):
        cdef int place
        for place in range(256):
            self.delimits[place] = False
        for byte in delimiters:
            self.delimits[byte] = True
        self.quotes = quotes
        self.blank_is_null = blank_is_null
        self.held = []
        self.encoding = encoding or "utf-8"
        if encoding is not None:
            self.decoder = codecs.getincrementaldecoder(encoding)()

    def __dealloc__(self):
        free(self.out)
        free(self.cell)

    def feed(self, bytes piece not None):
        """Parse the next bytes of the file, which may end anywhere, even within a character.

        Returns an array literal (UTF-8) for each line that is complete now, None for a blank line. Raises `CsvError`
        for an invalid line, after which the parser must not be used.
        """
        return self._rows(piece if self.decoder is None else self._utf8(piece, False), False)

    def finish(self):
        """Parse the rest of the file: the last line if it has no line end, or ends with a CR, behind which an LF could
        have followed. Returns and raises what `feed` does."""
        return self._rows(b"" if self.decoder is None else self._utf8(b"", True), True)

    cdef bytes _utf8(self, bytes piece, bint ended):
        """Return a piece of the file converted to UTF-8, except the bytes of an incomplete last character, which the
        decoder holds. Raises `EncodingError`.

        ended: no piece follows.
        """
        cdef Py_ssize_t before
        cdef bytes text
        state = self.decoder.getstate()
        try:
            try:
                text = self.decoder.decode(piece, ended).encode()
            except UnicodeDecodeError as error:
                # `error.object` begins with bytes that the decoder still held of the pieces before.
                before = len(error.object) - PyBytes_GET_SIZE(piece)
                self.decoder.setstate(state)
                valid = self.decoder.decode(piece[: max(0, error.start - before)]).encode()
                self._refuse(valid, self.decoded - before + error.start, error)
        except UnicodeError:
            # Raised by the codec utf-16. It reports an invalid character ahead of a missing byte order mark.
            raise EncodingError(
                1, "the file does not begin with a byte order mark; the encodings utf-16le and utf-16be need none"
            ) from None
        self.decoded += PyBytes_GET_SIZE(piece)
        return text

    cdef int _refuse(self, bytes valid, Py_ssize_t place, error) except -1:
        """Raise `EncodingError` for an invalid byte, or `CsvError` for an earlier line that is not valid.

        valid: the text ahead of the invalid byte that is not yet in `held`, as UTF-8. place: offset of that byte in the
        file, from 0. error: the UnicodeDecodeError, whose `start` is the byte in its `object`.
        """
        cdef bytes text = self._without_mark(b"".join(self.held) + valid)
        cdef Py_ssize_t whole = 0
        for match in LINE_END.finditer(text):
            whole = match.end()
        if whole:
            self._lines(text[:whole])
        raise EncodingError(
            self.lines + 1,
            f"byte {place + 1} of the file (0x{error.object[error.start]:02x}) is not valid {self.encoding}",
        ) from None

    cdef list _rows(self, bytes piece, bint ended):
        """Return what `feed` returns for the lines that are complete with this piece, and hold the rest of it.

        piece: UTF-8, possibly within a character at its ends, unless it comes from a decoder. ended: no piece follows,
        so that the rest is a line too. Raises `CsvError`.
        """
        cdef bytes text, rest
        cdef list rows = []
        cdef Py_ssize_t size = PyBytes_GET_SIZE(piece)
        cdef Py_ssize_t whole = size if ended else self._complete(<const unsigned char *>PyBytes_AS_STRING(piece), size)
        if size == 0 and not ended:
            # The decoder has held all bytes: an LF may still follow a CR that is held.
            return rows
        if whole == 0 and not ended and not self.ends_in_cr:
            # Only the new piece is searched, so that the cost of a long line does not grow with its square.
            self._hold(piece)
            return rows
        rest = piece[whole:]
        text = b"".join(self.held) + piece[:whole]
        self.held = []
        self.held_size = 0
        self.ends_in_cr = False
        if self.decoder is None:
            # Without a decoder, the bytes of the file are used as they are, and only checked.
            try:
                text.decode()
            except UnicodeDecodeError as error:
                self._refuse(text[: error.start], self.decoded + error.start, error)
            self.decoded += PyBytes_GET_SIZE(text)
        if text:
            rows = self._lines(self._without_mark(text))
        # Behind the lines in front, whose errors come first, and which count.
        if rest:
            self._hold(rest)
        return rows

    cdef bytes _without_mark(self, bytes text):
        """Return the text; without its byte order mark if this is the first call, for the start of the file."""
        if self.begun:
            return text
        self.begun = True
        return text.removeprefix(b"\xef\xbb\xbf")

    cdef int _hold(self, bytes piece) except -1:
        """Keep a piece of an incomplete line. Raises `CsvError` if the line is too long."""
        self.held.append(piece)
        self.held_size += PyBytes_GET_SIZE(piece)
        self.ends_in_cr = piece.endswith(b"\r")
        if self.held_size > LONGEST_LINE:
            raise CsvError(self.lines + 1, f"it is longer than {LONGEST_LINE} bytes")
        return 0

    cdef Py_ssize_t _complete(self, const unsigned char *data, Py_ssize_t size) noexcept:
        """Return the number of the `size` bytes of `data` up to and including the last line end; 0 without one.

        A CR at the very end does not count, because it may be half of a CRLF.
        """
        cdef Py_ssize_t end = size
        while end > 0:
            if data[end - 1] == c"\n" or (data[end - 1] == c"\r" and end < size):
                return end
            end -= 1
        return 0

    cdef list _lines(self, bytes text):
        """Return the array literal of each line of `text`, None for a blank line. The last line need not have a line
        end. Raises `CsvError`."""
        cdef const unsigned char *at = <const unsigned char *>PyBytes_AS_STRING(text)
        cdef const unsigned char *end = at + PyBytes_GET_SIZE(text)
        cdef const unsigned char *stop
        cdef const unsigned char *feed
        cdef const unsigned char *back
        cdef list rows = []
        # Positions of the next LF and CR. Searching again only after passing one of them makes the loop linear.
        feed = back = NULL
        cdef bint no_feed = False
        cdef bint no_back = memchr(at, c"\r", end - at) == NULL
        while at < end:
            if not no_feed and (feed == NULL or feed < at):
                feed = <const unsigned char *>memchr(at, c"\n", end - at)
                no_feed = feed == NULL
            stop = end if feed == NULL else feed
            if not no_back:
                back = <const unsigned char *>memchr(at, c"\r", stop - at)
                if back != NULL:
                    stop = back
            rows.append(self._row(at, stop))
            at = stop + 1
            if stop < end and stop[0] == c"\r" and at < end and at[0] == c"\n":
                at += 1
        return rows

    cdef object _row(self, const unsigned char *at, const unsigned char *end):
        """Return the array literal of the line [at, end), which is without its line end; None for a blank line. Counts
        the line in `lines`. Raises `CsvError`."""
        cdef const unsigned char *start
        cdef const unsigned char *stop
        cdef unsigned char *out
        cdef Py_ssize_t size = end - at
        cdef bint blank = True
        self.lines += 1
        start = at
        while start < end:
            if not is_blank(start[0]):
                blank = False
                break
            start += 1
        if blank or (start[0] >= 0x80 and not self._text(at, size).strip()):
            return None
        if memchr(at, 0, size) != NULL:
            raise CsvError(self.lines, "it holds a NUL character, which PostgreSQL cannot store")
        self._make_room(size)
        out = self.out
        out[0] = c"{"
        out += 1
        while True:
            start = at
            # A quoted cell may have blanks in front of its quote.
            if self.quotes:
                while start < end and is_blank(start[0]) and not self.delimits[start[0]]:
                    start += 1
                if start < end and start[0] >= 0x80:
                    start = self._skip_blanks(start, end)
            if self.quotes and start < end and start[0] == c'"':
                at = self._parse_quoted_cell(start + 1, end, &out)
            else:
                stop = at
                while stop < end and not self.delimits[stop[0]]:
                    stop += 1
                out = self._write(out, at, stop)
                at = stop
            if at >= end:
                break
            at += 1
            out[0] = c","
            out += 1
            if at == end:
                # The line ends with a delimiter: an empty cell follows it.
                out = self._write(out, at, end)
                break
        out[0] = c"}"
        out += 1
        return PyBytes_FromStringAndSize(<char *>self.out, out - self.out)

    cdef str _text(self, const unsigned char *at, Py_ssize_t size):
        """Return the `size` bytes at `at`, which are valid UTF-8, as str."""
        return (<const char *>at)[:size].decode()

    cdef const unsigned char *_skip_blanks(self, const unsigned char *at, const unsigned char *end) noexcept:
        """Return the position of the first character in [at, end) that is no blank, or is a delimiter; `end` without
        one.

        The search stops there, so that the cost of a line does not grow with the square of its length.
        """
        cdef int size
        while at < end:
            if at[0] >= 0x80:
                size = wide_blank(at, end)
            else:
                size = is_blank(at[0]) and not self.delimits[at[0]]
            if size == 0:
                break
            at += size
        return at

    cdef const unsigned char *_parse_quoted_cell(
        self, const unsigned char *at, const unsigned char *end, unsigned char **out
    ) except NULL:
        """Parse a quoted cell and write it as an element to `out[0]`, which is moved behind it.

        at: position behind the opening quote. end: end of the line. `out[0]` points into the buffer `out` of this
        object, in which `_make_room` has made room for the line. Returns the position of the delimiter behind the cell,
        or the end of the line. Raises `CsvError`.
        """
        cdef const unsigned char *quote
        cdef unsigned char *cell = self.cell
        # Two quotes stand for one quote of the cell; any other quote ends it.
        while True:
            quote = <const unsigned char *>memchr(at, c'"', end - at)
            if quote == NULL:
                raise CsvError(self.lines, "a quote is not closed")
            memcpy(cell, at, quote - at)
            cell += quote - at
            at = quote + 1
            if at >= end or at[0] != c'"':
                break
            cell[0] = c'"'
            cell += 1
            at += 1
        while at < end and is_blank(at[0]) and not self.delimits[at[0]]:
            at += 1
        if at < end and at[0] >= 0x80:
            at = self._skip_blanks(at, end)
        if at < end and not self.delimits[at[0]]:
            raise CsvError(self.lines, "text follows a closing quote")
        out[0] = self._write(out[0], self.cell, cell)
        return at

    cdef unsigned char *_write(
        self, unsigned char *out, const unsigned char *at, const unsigned char *end
    ) except NULL:
        """Write the cell [at, end) without leading and trailing blanks, as a quoted element of an array literal, or as
        NULL if it is blank and `blank_is_null` is set.

        out: position in the buffer `out`, in which `_make_room` has made room. Returns the position behind the element.
        """
        cdef unsigned char byte
        while at < end and is_blank(at[0]):
            at += 1
        while at < end and is_blank((end - 1)[0]):
            end -= 1
        if at < end and (at[0] >= 0x80 or (end - 1)[0] >= 0x80):
            # The cell may begin or end with a blank that is not ASCII: `str` knows these.
            text = self._text(at, end - at)
            at += len(text) and len(text.encode()) - len(text.lstrip().encode())
            if at < end:
                end -= len(text.encode()) - len(text.rstrip().encode())
        if at >= end and self.blank_is_null:
            memcpy(out, b"NULL", 4)
            return out + 4
        out[0] = c'"'
        out += 1
        while at < end:
            byte = at[0]
            if byte == c'"' or byte == c"\\":
                out[0] = c"\\"
                out += 1
            out[0] = byte
            out += 1
            at += 1
        out[0] = c'"'
        return out + 1

    cdef int _make_room(self, Py_ssize_t size) except -1:
        """Enlarge `out` and `cell` for a line of `size` bytes, of which each becomes at most five bytes (`NULL,`).
        Raises MemoryError."""
        cdef void *made
        if self.out_room < 6 * size + 16:
            made = realloc(self.out, 6 * size + 16)
            if made == NULL:
                raise MemoryError()
            self.out = <unsigned char *>made
            self.out_room = 6 * size + 16
        if self.cell_room < size + 1:
            made = realloc(self.cell, size + 1)
            if made == NULL:
                raise MemoryError()
            self.cell = <unsigned char *>made
            self.cell_room = size + 1
        return 0


def array_of_texts(list texts not None):
    """Return an array literal whose elements are these texts (UTF-8), which are escaped here; None becomes NULL."""
    cdef Py_ssize_t room = 2
    cdef const unsigned char *at
    cdef const unsigned char *end
    cdef unsigned char *memory
    cdef unsigned char *out
    # Worst case: a comma, and two quotes and an escape before each byte.
    for text in texts:
        room += 5 if text is None else 2 * PyBytes_GET_SIZE(<bytes?>text) + 3
    memory = <unsigned char *>malloc(room)
    if memory == NULL:
        raise MemoryError()
    out = memory
    out[0] = c"{"
    out += 1
    try:
        for place, text in enumerate(texts):
            if place:
                out[0] = c","
                out += 1
            if text is None:
                memcpy(out, b"NULL", 4)
                out += 4
                continue
            at = <const unsigned char *>PyBytes_AS_STRING(<bytes>text)
            end = at + PyBytes_GET_SIZE(<bytes>text)
            out[0] = c'"'
            out += 1
            while at < end:
                if at[0] == c'"' or at[0] == c"\\":
                    out[0] = c"\\"
                    out += 1
                out[0] = at[0]
                out += 1
                at += 1
            out[0] = c'"'
            out += 1
        out[0] = c"}"
        out += 1
        return PyBytes_FromStringAndSize(<char *>memory, out - memory)
    finally:
        free(memory)


# An array literal that is being written. size: bytes written; room: bytes allocated.
cdef struct Column:
    char *memory
    Py_ssize_t size
    Py_ssize_t room


cdef int add(Column *column, const char *data, Py_ssize_t size) except -1:
    """Append `size` bytes of `data`, enlarging the memory if necessary. Raises MemoryError."""
    cdef void *made
    if column.room - column.size < size:
        made = realloc(column.memory, 2 * (column.size + size) + 64)
        if made == NULL:
            raise MemoryError()
        column.memory = <char *>made
        column.room = 2 * (column.size + size) + 64
    memcpy(column.memory + column.size, data, size)
    column.size += size
    return 0


cdef const char *cell_end(const char *at, const char *end) noexcept nogil:
    """Return the position of the comma behind the cell of an array literal that begins at `at`; `end` for the last one.

    end: position of the closing brace of the literal.
    """
    if at < end and at[0] == c'"':
        at += 1
        while at < end and at[0] != c'"':
            at += 2 if at[0] == c"\\" else 1
        return at + 1 if at < end else end
    while at < end and at[0] != c",":
        at += 1
    return at


def columns(list texts not None, tuple places not None):
    """Transpose rows: return, for each place, one array literal of the cells that all rows have at this place.

    texts: for each row an array literal of one dimension without blanks; None: all cells are NULL. places: numbers of
    cells, from 1, ascending. A cell that a row does not have is NULL. Raises ValueError for other places.
    """
    cdef Py_ssize_t count = len(places)
    cdef Py_ssize_t index, place, expected
    cdef const char *at
    cdef const char *end
    cdef const char *stop
    cdef Column *made
    cdef bytes text
    if list(places) != sorted(set(places)) or (places and places[0] < 1):
        raise ValueError(f"{places} are no places of cells")
    made = <Column *>calloc(max(count, 1), sizeof(Column))
    if made == NULL:
        raise MemoryError()
    try:
        for each in texts:
            index = 0
            if each is not None:
                text = <bytes?>each
                at = PyBytes_AS_STRING(text) + 1
                end = PyBytes_AS_STRING(text) + PyBytes_GET_SIZE(text) - 1
                place = 1
                while index < count and at < end:
                    stop = cell_end(at, end)
                    expected = places[index]
                    # Both count upwards, so each row is read once.
                    if place == expected:
                        add(&made[index], b",", 1)
                        add(&made[index], at, stop - at)
                        index += 1
                    place += 1
                    at = stop + 1
            while index < count:
                add(&made[index], b",NULL", 5)
                index += 1
        for index in range(count):
            add(&made[index], b"}" if texts else b",}", 1 if texts else 2)
            # The comma in front of the first cell becomes the opening brace.
            made[index].memory[0] = c"{"
        return [PyBytes_FromStringAndSize(made[index].memory, made[index].size) for index in range(count)]
    finally:
        for index in range(count):
            free(made[index].memory)
        free(made)
