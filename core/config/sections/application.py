"""Keys of the application's name, its addresses, and the loading of configuration."""

from __future__ import annotations

from rowcall.core.sections.declaration import choice, flag, section, text


@section("")
class Application:
    """Name and addresses of the application."""

    application_name = text(
        "ApplicationName",
        None,
        "Name of the application: shown by PostgreSQL as application_name and in logs. null: the name of the "
        "working directory.",
    )
    environment_name = text(
        "EnvironmentName", "Production", "Label of the environment, for `{environment}` in messages. Selects no files."
    )
    urls = text(
        "Urls", "http://localhost:8080", "Addresses to listen on, separated by semicolons. Port 0 picks a free port."
    )
    startup_message = text(
        "StartupMessage",
        "Started in {time}, listening on {urls}, version {version}",
        "Message logged when the service listens. Placeholders: {time} (since the start of the process), {urls}, "
        "{version}, {environment}, {application}. An empty text logs nothing.",
    )


@section("Config", "How configuration is loaded and checked.")
class Loading:
    """How the configuration is loaded."""

    add_environment_variables = flag(
        "AddEnvironmentVariables",
        False,
        "Read configuration keys from environment variables: `Section__Key` sets `Section:Key`. They override "
        "files and are overridden by the command line. Read from files only.",
    )
    parse_environment_variables = flag(
        "ParseEnvironmentVariables",
        True,
        "Replace `{NAME}`, `{!NAME}` and `{!NAME:fallback}` in values by environment variables. Read from files only.",
    )
    env_file = text(
        "EnvFile",
        None,
        "File of NAME=value lines for variables that the environment does not set, such as `./.env`. null: none. "
        "Read from files only.",
    )
    validate_config_keys = choice(
        "ValidateConfigKeys",
        "Warning Error Ignore",
        "Warning",
        "Consequence of an unknown key: a warning, no start, or nothing.",
    )
