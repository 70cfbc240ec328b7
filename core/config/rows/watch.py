"""Keys of watching: restart if files or the database change."""

from rowcall.core.config.keys import Key, flag, interval, section

ROWS: tuple[Key, ...] = (
    section("Watch", "Serving changes as they are made, for development."),
    flag("Watch:Enabled", False, "Do so; the same as the switch `--watch`."),
    interval(
        "Watch:DatabasePollingInterval",
        "2s",
        "How often the catalogue is looked at; 0 never. Where the key is left out, four times a second.",
    ),
)
