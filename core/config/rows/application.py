"""Keys of the application's name, its addresses, and the loading of configuration."""

from rowcall.core.config.keys import Key, choice, flag, section, text

ROWS: tuple[Key, ...] = (
    text(
        "ApplicationName",
        None,
        "Name of the application: shown by PostgreSQL as application_name and in logs. "
        "null takes the name of the working directory.",
    ),
    text(
        "EnvironmentName", "Production", "Label of the environment, for `{environment}` in messages. Selects no files."
    ),
    text("Urls", "http://localhost:8080", "Addresses to listen on, separated by semicolons. Port 0 picks a free port."),
    text(
        "StartupMessage",
        "Started in {time}, listening on {urls}, version {version}",
        "Logged once the service listens. Knows {time} (since the start of the process), {urls}, {version}, "
        "{environment}, {application}. An empty text logs nothing.",
    ),
    section("Config", "How configuration is loaded and checked."),
    flag(
        "Config:AddEnvironmentVariables",
        False,
        "Take environment variables as keys: `Section__Key` sets `Section:Key`. They win over files and lose to the "
        "command line. Read from files only.",
    ),
    flag(
        "Config:ParseEnvironmentVariables",
        True,
        "Replace `{NAME}`, `{!NAME}` and `{!NAME:fallback}` in values by environment variables. Read from files only.",
    ),
    text(
        "Config:EnvFile",
        None,
        "File of NAME=value lines that fill gaps in the environment, for example `./.env`. null reads none. "
        "Read from files only.",
    ),
    choice(
        "Config:ValidateConfigKeys",
        "Warning Error Ignore",
        "Warning",
        "What an unknown key does: log a warning, stop the start, or nothing.",
    ),
)
