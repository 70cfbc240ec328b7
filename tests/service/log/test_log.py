"""The lines people read, and the levels of channels (logging-1 to logging-6, logging-8 to logging-10)."""

from __future__ import annotations

import datetime
import io
import json
import logging
import os
import re
import sys
from pathlib import Path

import pytest

from rowcall.core.config import assemble, load_files
from rowcall.service.log import VERBOSE, Entry, configure_logging, current_log
from rowcall.service.log.options import log_options, names_channel
from rowcall.service.log.sinks import ConsoleSink, SinkThread, say_on_stderr
from tests.harness.waiting import wait_until


def logged(*overrides: tuple[str, str]) -> list[str]:
    """What reaches the console when each channel says something at each level."""
    stream = io.StringIO()
    configure_logging(assemble(load_files([]), overrides, {}).settings, stream)
    for channel in ("rowcall", "rowcall.client", "rowcall.http"):
        for level in (VERBOSE, logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
            logging.getLogger(channel).log(level, "said %s", "it")
    current_log().flush()
    return stream.getvalue().splitlines()


def test_a_line_has_time_level_message_and_channel() -> None:
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\.\d{3} INF\] said it \[rowcall\]", logged()[0])


def test_channels_log_from_information_by_default() -> None:
    assert [line[14:17] for line in logged()] == ["INF", "WRN", "ERR", "FTL"] * 3


def test_the_level_of_one_channel_does_not_affect_others() -> None:
    lines = logged(("Log:MinimalLevels:rowcall", "verbose"), ("Log:MinimalLevels:rowcall.http", "Off"))
    assert [line[14:17] for line in lines if line.endswith("[rowcall]")] == ["VRB", "DBG", "INF", "WRN", "ERR", "FTL"]
    assert [line[14:17] for line in lines if line.endswith("[rowcall.client]")] == ["INF", "WRN", "ERR", "FTL"]
    assert not [line for line in lines if line.endswith("[rowcall.http]")]


def test_channels_are_known_in_any_case_and_by_the_names_of_the_established_system() -> None:
    lines = logged(
        ("Log:MinimalLevels:ROWCALL", "Error"),
        ("log:minimallevels:Rowcall.Http", "Off"),
        ("Log:MinimalLevels:NpgsqlRestClient", "Fatal"),
    )
    assert [(line[14:17], line[19:].split()[-1]) for line in lines] == [
        ("ERR", "[rowcall]"),
        ("FTL", "[rowcall]"),
        ("FTL", "[rowcall.client]"),
    ]


@pytest.mark.parametrize("channel", ["rowcall.test", "NpgsqlRestTest", "my.tests"])
def test_the_test_runner_is_known_by_its_name_in_the_established_system(channel: str) -> None:
    own = () if channel == "rowcall.test" else (("TestRunner:LoggerName", channel),)
    settings = assemble(load_files([]), [*own, ("Log:MinimalLevels:NpgsqlRestTest", "Debug")], {}).settings
    assert log_options(settings).levels[channel] == logging.DEBUG


@pytest.mark.parametrize(
    ("name", "channel", "expected"),
    [
        ("NpgsqlRest", "rowcall", True),
        ("NpgsqlRestTest", "rowcall.test", True),
        ("ROWCALL.TEST", "rowcall.test", True),
        ("NpgsqlRest", "rowcall.test", False),
        ("rowcall", "rowcall.client", False),
    ],
)
def test_an_entry_names_a_channel(name: str, channel: str, expected: bool) -> None:
    settings = assemble(load_files([]), [(f"Log:MinimalLevels:{name}", "Debug")], {}).settings
    assert names_channel(settings, channel) == expected


def test_an_unknown_level_does_not_change_the_channel() -> None:
    assert len(logged(("Log:MinimalLevels:rowcall", "Loud"))) == 12


def test_the_console_has_a_separate_minimum_level() -> None:
    assert {line[14:17] for line in logged(("Log:ConsoleMinimumLevel", "Error"))} == {"ERR", "FTL"}


def test_the_console_can_be_switched_off() -> None:
    assert logged(("Log:ToConsole", "false")) == []


def test_an_exception_follows_its_line() -> None:
    stream = io.StringIO()
    log = configure_logging(assemble(load_files([]), [], {}).settings, stream)
    log.error("failed", exc_info=ValueError("why"))
    current_log().flush()
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("failed [rowcall]")
    assert rest[-1] == "ValueError: why"


def test_start_and_configuration_are_shown_under_the_name_of_the_application() -> None:
    lines = logged(("ApplicationName", "shop"), ("Log:MinimalLevels:rowcall.client", "Error"))
    assert [line[14:] for line in lines if line.endswith("[shop]")] == ["ERR] said it [shop]", "FTL] said it [shop]"]


def test_warnings_of_libraries_are_logged_too() -> None:
    stream = io.StringIO()
    configure_logging(assemble(load_files([]), [], {}).settings, stream)
    logging.getLogger("asyncio").warning("slow callback")
    logging.getLogger("asyncio").info("an unwanted message")
    current_log().flush()
    assert [line[14:] for line in stream.getvalue().splitlines()] == ["WRN] slow callback [asyncio]"]


def test_a_level_for_a_prefix_applies_to_the_channels_below() -> None:
    stream = io.StringIO()
    configure_logging(assemble(load_files([]), [("Log:MinimalLevels:other.part", "Error")], {}).settings, stream)
    logging.getLogger("other.part.of.it").warning("too low")
    logging.getLogger("rowcall.database").warning("elsewhere")
    current_log().flush()
    assert [line[14:] for line in stream.getvalue().splitlines()] == ["WRN] elsewhere [rowcall.database]"]


def test_json_lines_contain_the_members_of_a_text_line() -> None:
    stream = io.StringIO()
    log = configure_logging(assemble(load_files([]), [("Log:ConsoleFormat", "json")], {}).settings, stream)
    log.warning("two\nlines", extra={"properties": {"Path": "/ä"}}, exc_info=ValueError("why"))
    current_log().flush()
    [line] = stream.getvalue().splitlines()
    entry = json.loads(line)
    assert datetime.datetime.fromisoformat(entry.pop("time")).tzinfo is not None
    assert entry == {
        "level": "Warning",
        "source": "rowcall",
        "message": "two\nlines",
        "exception": "ValueError: why",
        "Path": "/ä",
    }


def test_a_blocked_sink_delays_neither_the_service_nor_other_sinks(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    overrides = [("Log:ToFile", "true"), ("Log:FilePath", str(tmp_path / "log.txt"))]
    # The stream is closed first, which writes what is left in it.
    with os.fdopen(reading, "rb", buffering=0) as pipe, os.fdopen(writing, "w") as stream:
        log = configure_logging(assemble(load_files([]), overrides, {}).settings, stream)
        for number in range(2000):
            log.info("%d %s", number, "x" * 100)
        file = current_log()
        wait_until(lambda: "] 1999 " in "".join(path.read_text() for path in tmp_path.iterdir()), "the file has it all")
        read = b""
        while b"] 1999 " not in read or not read.endswith(b"\n"):
            read += pipe.read(65536)
        file.flush()
    assert read.count(b"\n") >= 1999


def test_the_sinks_are_reported_at_debug(tmp_path: Path) -> None:
    file = [("Log:ToFile", "true"), ("Log:FilePath", str(tmp_path / "x.txt")), ("Log:FileMinimumLevel", "Error")]
    lines = logged(*file, ("Log:MinimalLevels:rowcall.client", "Debug"))
    assert lines[0][14:] == "DBG] Log sinks: Console from Verbose, File from Error [rowcall.client]"


def test_the_console_sink_survives_closed_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `rowcall 2>&1 | head -1`."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8", closefd=False) as closed:
        monkeypatch.setattr(sys, "stderr", closed)
        thread = SinkThread(ConsoleSink(closed, lambda entry: entry.message), logging.INFO, say_on_stderr)
        for _ in range(2):
            thread.submit([Entry(0, logging.INFO, "rowcall", "said")])
            assert thread.flush()
        thread.close()
        with open(os.devnull, "wb") as null:
            os.dup2(null.fileno(), writing)  # so that what is buffered can be written
    os.close(writing)
