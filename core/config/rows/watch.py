"""Starting again when files or the database change."""

from rowcall.core.config.keys import Key, flag, interval, pending, section

ROWS: tuple[Key, ...] = pending(
    section("Watch", "Starting again when something changes, for development."),
    flag("Watch:Enabled", False, "Do so; the same as the switch `--watch`."),
    interval("Watch:DatabasePollingInterval", "2s", "How often the catalogue is looked at. 0 never."),
)
