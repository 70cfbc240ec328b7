"""Keys of the application's name, its addresses, and the loading of configuration."""

from __future__ import annotations

from rowcall.core.sections.declaration import choice, flag, lenient, part, section, text
from rowcall.core.sections.values import or_empty


@section("")
class ApplicationNames:
    """Names of the application and its environment."""

    application: str | None = text(
        "ApplicationName",
        None,
        "Name of the application: shown by PostgreSQL as application_name and in logs. null: the name of the "
        "working directory.",
    )
    environment: str = text(
        "EnvironmentName",
        "Production",
        "Label of the environment, for `{environment}` in messages. Selects no files.",
        empty=True,
        convert=or_empty,
    )


@section("")
class Application:
    names = part(ApplicationNames)
    urls: str = text(
        "Urls", "http://localhost:8080", "Addresses to listen on, separated by semicolons. Port 0 picks a free port."
    )
    startup_message: str | None = text(
        "StartupMessage",
        "Started in {time}, listening on {urls}, version {version}",
        "Message logged when the service listens. Placeholders: {time} (since the start of the process), {urls}, "
        "{version}, {environment}, {application}. An empty text logs nothing.",
        empty=True,
    )


@section("Config", "How configuration is loaded and checked.")
class Loading:
    """How the configuration is loaded."""

    add_environment_variables: bool = flag(
        "AddEnvironmentVariables",
        False,
        "Read configuration keys from environment variables: `Section__Key` sets `Section:Key`. They override "
        "files and are overridden by the command line. Read from files only.",
    )
    parse_environment_variables: bool = flag(
        "ParseEnvironmentVariables",
        True,
        "Replace `{NAME}`, `{!NAME}` and `{!NAME:fallback}` in values by environment variables. Read from files only.",
    )
    env_file: str | None = text(
        "EnvFile",
        None,
        "File of NAME=value lines for variables that the environment does not set, such as `./.env`. null: none. "
        "Read from files only.",
    )
    validate_config_keys: str = lenient(
        choice(
            "ValidateConfigKeys",
            "Warning Error Ignore",
            "Warning",
            "Consequence of an unknown key: a warning, no start, or nothing.",
        )
    )
