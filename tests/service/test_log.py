"""The lines people read, and the levels of channels (reference 06, 3)."""

from __future__ import annotations

import io
import logging
import re

from rowcall.core.config import assemble, load_files
from rowcall.service.log import VERBOSE, configure_logging


def logged(*overrides: tuple[str, str]) -> list[str]:
    """What reaches the console when each channel says something at each level."""
    stream = io.StringIO()
    configure_logging(assemble(load_files([]), overrides, {}).settings, stream)
    for channel in ("rowcall", "rowcall.client", "rowcall.http"):
        for level in (VERBOSE, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
            logging.getLogger(channel).log(level, "said %s", "it")
    return stream.getvalue().splitlines()


def test_a_line_has_time_level_message_and_channel() -> None:
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\.\d{3} INF\] said it \[rowcall\]", logged()[0])


def test_channels_begin_at_information() -> None:
    assert [line[14:17] for line in logged()] == ["INF", "WRN", "ERR", "FTL"] * 3


def test_the_level_of_one_channel_leaves_the_others_alone() -> None:
    lines = logged(("Log:MinimalLevels:rowcall", "verbose"), ("Log:MinimalLevels:rowcall.http", "Off"))
    assert [line[14:17] for line in lines if line.endswith("[rowcall]")] == ["VRB", "DBG", "INF", "WRN", "ERR", "FTL"]
    assert [line[14:17] for line in lines if line.endswith("[rowcall.client]")] == ["INF", "WRN", "ERR", "FTL"]
    assert not [line for line in lines if line.endswith("[rowcall.http]")]


def test_an_unknown_level_leaves_the_channel_as_it_is() -> None:
    assert len(logged(("Log:MinimalLevels:rowcall", "Loud"))) == 12


def test_the_console_has_a_floor_of_its_own() -> None:
    assert {line[14:17] for line in logged(("Log:ConsoleMinimumLevel", "Error"))} == {"ERR", "FTL"}


def test_the_console_can_be_switched_off() -> None:
    assert logged(("Log:ToConsole", "false")) == []


def test_an_exception_follows_its_line() -> None:
    stream = io.StringIO()
    log = configure_logging(assemble(load_files([]), [], {}).settings, stream)
    log.error("failed", exc_info=ValueError("why"))
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("failed [rowcall]")
    assert rest[-1] == "ValueError: why"
