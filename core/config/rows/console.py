"""Keys of the console on the admin listener (issue 38)."""

from rowcall.core.config.keys import Key, flag, interval, section, text, texts

ROWS: tuple[Key, ...] = (
    section("Console", "A page for operators that shows what the service does, on the admin listener."),
    flag(
        "Console:Enabled", False, "Serve the console; `rowcall --console` does the same. The start logs a link to it."
    ),
    text(
        "Console:Url",
        "http://127.0.0.1:9465",
        "Address of the admin listener if `Admin:Url` is not set; only this machine may reach it.",
    ),
    flag(
        "Console:AllowActions",
        False,
        "Operators may invalidate cached responses, run jobs, schedules and deliveries again, and end sessions. "
        "Without it, the console is read-only.",
    ),
    texts(
        "Console:Roles",
        None,
        "Users of the service with one of these roles may sign in too, by their session, token or API key.",
    ),
    interval("Console:LinkExpires", "15 minutes", "Time for which the sign-in link in the log is valid, for one use."),
    interval("Console:SessionExpires", "8 hours", "Time after which an operator has to sign in again."),
)
