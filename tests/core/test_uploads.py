"""Uploads as plain data: checks by content, names of files, cells of sheets, dates (uploads-1 to uploads-25)."""

from __future__ import annotations

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.http.digest import announced_digest
from rowcall.core.uploads.cell_text import Cell, MomentFormats, cell_text, column_name, format_moment, number_text
from rowcall.core.uploads.checks import Checks, Status, image_type, image_types, matches, patterns
from rowcall.core.uploads.names import LONGEST, extension, file_name
from rowcall.core.uploads.row_command import check_numbers, row_command


@pytest.mark.parametrize(
    ("pattern", "content_type", "fits"),
    [
        ("text/*", "text/csv", True),
        ("TEXT/CSV", "text/csv", True),
        ("text/csv", "text/csv; charset=utf-8", False),
        ("text/???", "text/csv", True),
        ("text/??", "text/csv", False),
        ("*", "", False),
        ("*", "x", True),
        ("a.c/x", "abc/x", False),
    ],
)
def test_patterns_match_media_types(pattern: str, content_type: str, fits: bool) -> None:
    assert matches(pattern, content_type) is fits


def test_lists_of_types_are_split_at_commas_alone() -> None:
    assert patterns(" text/csv , a b,,") == ("text/csv", "a b")


@pytest.mark.parametrize(
    ("checks", "content_type", "beginning", "status"),
    [
        (Checks(), "", b"", Status.OK),
        (Checks(included=("text/*",)), "", b"x", Status.INVALID_MIME_TYPE),
        (Checks(included=("text/*", "a/b")), "a/b", b"x", Status.OK),
        (Checks(included=("text/*",), excluded=("text/csv",)), "text/csv", b"x", Status.INVALID_MIME_TYPE),
        (Checks(text=True), "", b"", Status.EMPTY),
        (Checks(text=True), "", b"a\n\n\n\n\n\n\n", Status.OK),
        (Checks(text=True, lines=True), "", b"a\rb", Status.NO_NEW_LINES),
        (Checks(text=True, text_bytes=2), "", b"ab\0", Status.OK),
        (Checks(text=True, control_bytes=0), "", b"\x01", Status.PROBABLY_BINARY),
        (Checks(images=frozenset({"png"})), "", b"\x89PNG", Status.OK),
        (Checks(images=frozenset()), "", b"\x89PNG", Status.INVALID_IMAGE),
        (Checks(text=True, images=frozenset({"png"})), "", b"\0", Status.PROBABLY_BINARY),
    ],
)
def test_content_checks_run_in_order(checks: Checks, content_type: str, beginning: bytes, status: Status) -> None:
    assert checks.judge(content_type, beginning) is status


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [
        (b"\xff\xd8\xff\xe1", "jpeg"),
        (b"GIF87a", "gif"),
        (b"BM", "bmp"),
        (b"II*\0", "tiff"),
        (b"MM\0*", "tiff"),
        (b"RIFF\1\2\3\4WEBP", "webp"),
        (b"RIFF\1\2\3\4WAVE", None),
        (b"", None),
    ],
)
def test_images_are_recognised_by_their_first_bytes(beginning: bytes, kind: str | None) -> None:
    assert image_type(beginning) == kind


def test_names_of_image_types_are_parsed() -> None:
    assert image_types("jpg, PNG svg") == (frozenset({"jpeg", "png"}), ("svg",))


@given(st.text(max_size=400))
def test_a_file_name_of_a_client_stays_within_its_folder(sent: str) -> None:
    name = file_name(sent)
    assert name not in ("", ".", "..")
    assert not set(name) & set("/\\\0\n")
    assert len(name.encode(errors="surrogatepass")) <= LONGEST
    assert not name.startswith(".rowcall-")


@pytest.mark.parametrize(("name", "ending"), [("a.b.pdf", ".pdf"), (".bashrc", ""), ("a", ""), ("x/y.z/w", "")])
def test_file_extensions_are_extracted(name: str, ending: str) -> None:
    assert extension(name) == ending


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (10, "10"),
        (1.5, "1.5"),
        (-0.1, "-0.1"),
        (1e15, "1E+15"),
        (123456789012345680.0, "1.2345678901234568E+17"),
        (999999999999999.0, "999999999999999"),
        (0.0001, "0.0001"),
        (0.00001, "1E-05"),
        (0.0000012, "1.2E-06"),
        (10**20, "1E+20"),
        (0.0, "0"),
    ],
)
def test_numbers_are_written_in_the_shortest_form(number: float, text: str) -> None:
    assert number_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_survive_a_round_trip(number: float) -> None:
    assert math.isclose(float(number_text(number)), number, rel_tol=0, abs_tol=0)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", None),
        ("a\0b", "ab"),
        (True, "True"),
        (datetime.datetime(2026, 3, 1), "2026-03-01"),
        (datetime.date(2026, 3, 1), "2026-03-01"),
        (datetime.datetime(2026, 3, 1, 7, 5, 9), "2026-03-01 07:05:09"),
        (datetime.time(7, 5), "07:05:00"),
        (datetime.timedelta(hours=7, minutes=5), "07:05:00"),
        (datetime.timedelta(hours=26, minutes=5), "26:05:00"),
        (datetime.timedelta(hours=-1), "-01:00:00"),
    ],
)
def test_cells_are_converted_to_text(value: Cell, text: str | None) -> None:
    assert cell_text(value, MomentFormats()) == text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd HH:mm:ss.fff", "2026-03-01 19:05:09.120"),
        ("d.M.yy h:m:s tt", "1.3.26 7:5:9 PM"),
        ("dddd, d MMMM", "Sunday, 1 March"),
        ("ddd MMM", "Sun Mar"),
        ("yyyy'T'HH \\h s.FFF", "2026T19 h 9.12"),
    ],
)
def test_moments_are_formatted_by_pattern(pattern: str, text: str) -> None:
    assert format_moment(datetime.datetime(2026, 3, 1, 19, 5, 9, 120_000), pattern) == text


@pytest.mark.parametrize(
    ("index", "name"), [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ"), (702, "AAA"), (16383, "XFD")]
)
def test_columns_are_named_by_letters(index: int, name: str) -> None:
    assert column_name(index) == name


@pytest.mark.parametrize(
    ("text", "sql", "picks", "parameters"),
    [
        ("call f($1,$2,$3,$4);", "call f($1,$2,$3,$4)", (0, 1, 2, 3), ()),
        ("select f($4, $1, $1)", "select f($1, $2, $2)", (3, 0), ()),
        ("select '$1', \"$2\", $$ $3 $$ -- $4", "select '$1', \"$2\", $$ $3 $$", (), ()),
        ("select -- $4\n 1; -- $3", "select -- $4\n 1", (), ()),
        ("select f($2, {_a}, {_A}, {other})", "select f($1, $2, $2, {other})", (1, 4), (0,)),
        ("select 'x {_a}'", "select ('x ' || coalesce($1::text, ''))", (4,), (0,)),
        ("select '{1,2}'::int[]", "select '{1,2}'::int[]", (), ()),
    ],
)
def test_placeholders_of_row_commands_are_numbered(
    text: str, sql: str, picks: tuple[int, ...], parameters: tuple[int, ...]
) -> None:
    command = row_command(text, {"_a": 0})
    assert (command.sql, command.picks, command.parameters) == (sql, picks, parameters)


@pytest.mark.parametrize("text", ["select f($5, {_a})", "select $0", "select $12", "select $99999999999999999999"])
def test_unknown_parameter_numbers_in_row_commands_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"a row command has the values \$1 to \$4, not \$\d+"):
        check_numbers(text)


@pytest.mark.parametrize("text", ["select $1, $4", "select '$5', \"$6\", $$ $7 $$, {$5} -- $8", "select 1; -- $9"])
def test_numbers_that_are_not_parameters_are_unchanged(text: str) -> None:
    assert check_numbers(text) == text


def test_content_digest_headers_are_parsed() -> None:
    assert announced_digest("sha-256=:AAAA:, sha-512=:BBBB:") == ("sha512", b"\x04\x10\x41")
    assert announced_digest("md5=:AAAA:") is None
    with pytest.raises(ValueError, match="no digest"):
        announced_digest("sha-256=AAAA")
