"""Keys of batches: several requests in one."""

from rowcall.core.sections.keys import Key, flag, integer, interval, section, text

ROWS: tuple[Key, ...] = (
    section("Batch", "Several requests in one, in one transaction or independent of each other."),
    flag("Batch:Enabled", False, "Accept batches."),
    text("Batch:Path", "/batch", "Path to which batches are posted."),
    integer("Batch:MaxRequests", 50, "Most requests of a batch.", minimum=1),
    integer("Batch:MaxResponseBytes", 10_000_000, "Most bytes of all responses of a batch together.", minimum=1024),
    interval("Batch:Timeout", "30 seconds", "Time limit of a whole batch."),
)
