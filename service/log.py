"""Logging: channels with levels of their own, and the line that people read.

Channels are Python loggers: `rowcall` (the service), `rowcall.client` (start and configuration), `rowcall.http`
(requests).
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

from rowcall.core.config import Settings

VERBOSE = 5
OFF = logging.CRITICAL + 10

_LEVELS = {
    "verbose": VERBOSE,
    "debug": logging.DEBUG,
    "information": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
    "off": OFF,
    "none": OFF,
    "silent": OFF,
}
_CHANNELS = {"rowcall": logging.INFO, "rowcall.client": logging.INFO, "rowcall.http": logging.INFO}
_CODES = {
    VERBOSE: "VRB",
    logging.DEBUG: "DBG",
    logging.INFO: "INF",
    logging.WARNING: "WRN",
    logging.ERROR: "ERR",
    logging.CRITICAL: "FTL",
}
_COLOURS = {"VRB": "90", "DBG": "90", "INF": "32", "WRN": "33", "ERR": "31", "FTL": "1;31"}


class LineFormatter(logging.Formatter):
    """`[10:15:02.120 INF] Created endpoint GET /api/orders [rowcall]`, and an exception on the lines below."""

    default_time_format = "%H:%M:%S"
    default_msec_format = "%s.%03d"

    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        code = _CODES.get(record.levelno, record.levelname[:3].upper())
        shown = f"\x1b[{_COLOURS.get(code, '0')}m{code}\x1b[0m" if self._colour else code
        line = f"[{self.formatTime(record)} {shown}] {record.getMessage()} [{record.name}]"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def configure_logging(settings: Settings, stream: TextIO | None = None) -> logging.Logger:
    """Set up the channels of this process and return the channel `rowcall`. To be called in every worker."""
    root = logging.getLogger("rowcall")
    root.propagate = False
    root.handlers.clear()
    if not settings.flag("Log:ToConsole"):
        root.addHandler(logging.NullHandler())
        root.setLevel(OFF)
        return root
    out = stream or sys.stdout
    handler = logging.StreamHandler(out)
    handler.setFormatter(LineFormatter(colour=out.isatty()))
    handler.setLevel(_LEVELS[settings.choice("Log:ConsoleMinimumLevel").casefold()])
    root.addHandler(handler)
    _set_levels(settings)
    return root


def _set_levels(settings: Settings) -> None:
    for channel, level in _CHANNELS.items():
        logging.getLogger(channel).setLevel(level)
    for channel, word in settings.text_map("Log:MinimalLevels").items():
        chosen = _LEVELS.get((word or "").casefold(), _CHANNELS.get(channel))
        if chosen is not None:
            logging.getLogger(channel).setLevel(chosen)
