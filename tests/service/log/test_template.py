"""`Log:OutputTemplate` (logging-2 to logging-5)."""

from __future__ import annotations

import logging
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.service.log.entry import VERBOSE, Entry, escape_unprintable
from rowcall.service.log.template import Template

NOON = time.mktime((2025, 3, 9, 12, 4, 5, 0, 0, -1)) + 0.0678

ENTRY = Entry(NOON, logging.WARNING, "rowcall", "said it", None, {"Path": "/x", "Status": 200})


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{Message}", "said it\n"),
        ("{Message:lj}{NewLine}", "said it\n"),
        ("{Level}|{Level:u3}|{Level:w3}|{Level:t3}|{Level:u4}|{Level:u1}", "Warning|WRN|wrn|Wrn|WARN|W\n"),
        ("[{Level,-9}] [{Level,9}]", "[Warning  ] [  Warning]\n"),
        ("{SourceContext}", "rowcall\n"),
        ("{Path} {Status} {Nothing}.", "/x 200 .\n"),
        ("{Properties}", '{"Path":"/x","Status":200}\n'),
        ("{{Message}} {Message", "{Message} {Message\n"),
        ("{Timestamp:yyyy-MM-dd HH:mm:ss.fff}", "2025-03-09 12:04:05.067\n"),
        ("{Timestamp:d.M.yy h:mm tt}", "9.3.25 12:04 PM\n"),
        ("{Timestamp:HH'h'mm 100% f}", "12h04 100% 0\n"),
        ("{Exception}", "\n"),
    ],
)
def test_a_template_is_filled(template: str, expected: str) -> None:
    assert Template(template)(ENTRY) == expected


def test_the_time_zone_is_that_of_the_host() -> None:
    shown = Template("{Timestamp:zzz}")(ENTRY).strip()
    assert shown.replace(":", "") == time.strftime("%z", time.localtime(NOON))


def test_an_exception_ends_with_a_line_break() -> None:
    assert Template("{Message}{NewLine}{Exception}")(ENTRY._replace(exception="a\nb")) == "said it\na\nb\n"


def test_only_the_level_is_coloured() -> None:
    assert Template("{Level:u3} {Message}", colour=True)(ENTRY) == "\x1b[33mWRN\x1b[0m said it\n"


@pytest.mark.slow
@given(st.text(), st.sampled_from([VERBOSE, logging.INFO, logging.CRITICAL, 7, 999]))
def test_any_template_gives_lines(template: str, level: int) -> None:
    assert Template(template)(ENTRY._replace(level=level)).endswith("\n")


@given(st.text())
def test_text_of_a_client_stays_on_one_line(text: str) -> None:
    assert escape_unprintable(text).isprintable()
    assert len((escape_unprintable(text) + "x").splitlines()) == 1
