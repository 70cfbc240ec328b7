"""Log the notices of routines, i.e. messages of RAISE below an error (logging-9)."""

from __future__ import annotations

import enum
import logging

from rowcall.core.text.lines import lines_of
from rowcall.service.log import VERBOSE
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.request_context.redaction import HIDDEN, RedactedLabel
from rowcall.service.request_context.trace import request_properties

log = logging.getLogger("rowcall.notices")

_LEVELS = {"WARNING": logging.WARNING, "NOTICE": logging.INFO, "INFO": logging.INFO}
"""Log levels by severity of a notice; those of others are VERBOSE."""
_BY_THE_DRIVER = "25P01"
"""Warning about a setting outside a transaction block, which the driver's own statements cause."""


class NoticeMode(enum.Enum):
    """The part of a notice's context that is logged with its text."""

    MESSAGE_ONLY = "MessageOnly"
    FIRST_STACK_FRAME = "FirstStackFrameAndMessage"
    FULL_STACK = "FullStackAndMessage"


class NoticeLog:
    """Callable that logs the notices of PostgreSQL, to be passed to `Database.set_notice_handler`. mode: how much of
    the context is logged."""

    def __init__(self, mode: NoticeMode) -> None:
        self._mode = mode

    def __call__(
        self, label: str | None, severity: str, sqlstate: str, message: str, context: str | None, owner: object = None
    ) -> None:
        """Log a notice, without its text if the endpoint is redacted (`RedactedLabel`). Notices that statements of the
        driver cause are left out.

        label: of the running call; None for an idle connection. context: call stack in the server, the outermost frame
        last; None or empty: there is none. owner: request context or protocol of the call; None for an idle connection.
        """
        level = _LEVELS.get(severity, VERBOSE)
        if sqlstate == _BY_THE_DRIVER or not log.isEnabledFor(level):
            return
        if isinstance(label, RedactedLabel):
            # The text may contain values of the request in any form.
            message, context = HIDDEN, None
        properties = {} if label is None else request_properties(getattr(owner, "protocol", owner))
        text = self._text(message, context)
        log.log(level, "%s: %s: %s", label or "idle connection", severity, text, extra={"properties": properties})

    def _text(self, message: str, context: str | None) -> str:
        """Return what is logged of a notice, by the mode. context: as for `__call__`."""
        if self._mode is NoticeMode.MESSAGE_ONLY or not context:
            return escape_unprintable(message)
        frames = context if self._mode is NoticeMode.FULL_STACK else lines_of(context)[-1]
        return f"{frames}:\n{escape_unprintable(message)}"
