"""Keys of watching: changes of files and of the database are applied while the service runs."""

from __future__ import annotations

from rowcall.core.sections.declaration import flag, interval, section


@section("Watch", "Applying changes while serving, for development.")
class WatchOptions:
    enabled = flag("Enabled", False, "Apply changes of files and of the database; the same as the switch `--watch`.")
    polling: float = interval(
        "DatabasePollingInterval",
        "2s",
        "Interval of catalogue polling; 0: never. If the key is missing, four times a second.",
    )
