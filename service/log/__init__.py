"""Logging: channels with levels of their own, and the sinks that their entries reach.

Channels are Python loggers: `rowcall` (the service), `rowcall.client` (start and configuration), `rowcall.http`
(requests), `rowcall.database`, `rowcall.notices`. Whoever has something to say uses `logging.getLogger`.

Workers write nothing themselves. They send entries to the supervisor, whose threads write them: one file that all
workers share needs no locks, and a full disk or a slow console never holds up a request.
"""

from rowcall.service.log.assembly import Log, configure_logging, configure_worker_logging, current_log, is_watched
from rowcall.service.log.entry import OFF, VERBOSE, Entry
from rowcall.service.log.handlers import Forwarder

__all__ = [
    "OFF",
    "VERBOSE",
    "Entry",
    "Forwarder",
    "Log",
    "configure_logging",
    "configure_worker_logging",
    "current_log",
    "is_watched",
]
