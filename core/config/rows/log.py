"""What is logged, from which level on, and where to."""

from rowcall.core.config.keys import Key, choice, flag, section, text_map

LEVELS = "Verbose Debug Information Warning Error Fatal"

ROWS: tuple[Key, ...] = (
    section("Log", "Logging."),
    text_map(
        "Log:MinimalLevels",
        {"rowcall": "Information", "rowcall.client": "Information", "rowcall.http": "Information"},
        "Lowest level of a channel. `rowcall` is the service itself (endpoints, notices, commands, errors), "
        "`rowcall.client` start and configuration, `rowcall.http` one line for each request, `rowcall.database` "
        "connections and what the database reports; other names are prefixes of logger names. null or an unknown word "
        "leaves the channel as it is.",
        choices=f"{LEVELS} Off None Silent",
    ),
    flag("Log:ToConsole", True, "Log to standard output."),
    choice("Log:ConsoleMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the console."),
)
