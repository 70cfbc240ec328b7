"""Keys of watching: restart if files or the database change."""

from rowcall.core.sections.keys import Key, flag, interval, section

ROWS: tuple[Key, ...] = (
    section("Watch", "Applying changes while serving, for development."),
    flag("Watch:Enabled", False, "Apply changes of files and of the database; the same as the switch `--watch`."),
    interval(
        "Watch:DatabasePollingInterval",
        "2s",
        "Interval of catalogue polling; 0: never. If the key is missing, four times a second.",
    ),
)
