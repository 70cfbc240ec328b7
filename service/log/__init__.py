"""Logging: channels with their own levels, and the sinks that entries reach.

Channels are Python loggers: `rowcall` (the service), `rowcall.client` (start and configuration), `rowcall.http`
(requests), `rowcall.database`, `rowcall.notices`. Code logs with `logging.getLogger`.

Workers do not write. They send entries to the supervisor, whose threads write them. So one file for all workers needs
no locks, and a full disk or a slow console never delays a request.
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
