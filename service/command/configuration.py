"""`--config` and `--config-schema`: print the effective configuration, or its JSON Schema."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from rowcall.core.config.output.effective import effective
from rowcall.core.config.output.printing import find_entries, format_entries
from rowcall.core.config.output.schema import schema
from rowcall.core.config.output.secret_placeholders import SecretPlaceholders
from rowcall.core.config.sections.application import Loading
from rowcall.core.config.table import is_secret
from rowcall.core.postgrest.configuration.keys import unknown_keys
from rowcall.service.command.about import print_json
from rowcall.service.command.configuration_files import Configuration, equivalent_settings, load, postgrest_texts
from rowcall.service.command.switches import Arguments

_SECRETS = {"ConnectionStrings:Default": "DB_URI", "PostgRest:JwtSecret": "JWT_SECRET"}
"""Keys whose values are not printed, and the variables that hold them instead."""
_RESET = "\x1b[0m"
_CYAN, _YELLOW, _GREEN, _GREY, _DARK_GREEN = "\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[90m", "\x1b[2;32m"
_INVERSE, _NOT_INVERSE = "\x1b[7m", "\x1b[27m"
_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(
    rf"(?P<comment>^\s*//.*$)|(?P<key>{_STRING})(?=:)|(?P<text>{_STRING})|(?P<null>\bnull\b)"
    r"|(?P<value>-?\d[\d.eE+-]*|\btrue\b|\bfalse\b)|(?P<mark>[{}\[\],:])",
    re.MULTILINE,
)
_COLOURS = {
    "comment": _DARK_GREEN,
    "key": _CYAN,
    "text": _YELLOW,
    "value": _GREEN,
    "null": _GREY,
    "mark": _GREY,
}


def show(arguments: Arguments) -> int:
    """Print the configuration. Return 1 if there are unknown keys, which are listed on stderr (command-5); 0 otherwise.

    `Config:ValidateConfigKeys` decides about unknown keys: with Ignore they count as known, with Error they suppress
    the output. Raises ConfigError.
    """
    configuration = load(arguments)
    unknown = configuration.validation_mode != "Ignore" and bool(configuration.unknown)
    if unknown:
        _report_unknown(configuration)
    if not unknown or configuration.validation_mode != "Error":
        _print(configuration, " ".join(arguments.given["--config"]))
    return int(unknown)


def _report_unknown(configuration: Configuration) -> None:
    """Print the unknown keys to stderr."""
    mode = configuration.validation_mode
    count = len(configuration.unknown)
    print(f"Config:ValidateConfigKeys is {mode}: {count} unknown configuration key{'s' * (count > 1)}", file=sys.stderr)
    for key in configuration.unknown:
        print(f"  - {key}", file=sys.stderr)


def _print(configuration: Configuration, word: str) -> None:
    """Print the effective configuration. Secrets are replaced by variables, which stderr lists. word: only the keys
    that `find_entries` finds for it are printed; empty: all are.
    """
    entries = effective(configuration.settings)
    if word:
        entries = find_entries(entries, word)
    if not entries:
        print(f'// No results for "{word}"')
        return
    secrets = SecretPlaceholders()
    text = format_entries(secrets.entries(entries))
    sys.stdout.write(with_colours(text, word.rpartition(":")[2]) if sys.stdout.isatty() else text)
    if secrets.names:
        _report_secrets(configuration, secrets.names)


def _report_secrets(configuration: Configuration, names: Mapping[str, str]) -> None:
    """Print to stderr which environment variables have to hold the secrets. names: the keys by variable."""
    sys.stdout.flush()
    print("Secrets are placeholders. Set these environment variables where the file is used:", file=sys.stderr)
    for name, path in names.items():
        print(f"  - {name} for {path}", file=sys.stderr)
    if not configuration.settings.read(Loading).parse_environment_variables:
        print("Config:ParseEnvironmentVariables has to be true there.", file=sys.stderr)


def show_schema(_arguments: Arguments) -> int:
    print_json(schema())
    return 0


def show_equivalent(arguments: Arguments) -> int:
    """Print the configuration of this service that is equivalent to PostgREST's configuration file, and return the exit
    code. It serves PostgREST's interface in addition to ordinary endpoints. Secrets become placeholders; they and
    unknown keys are reported on stderr.

    Raises ConfigError.
    """
    file = arguments.given["--from-postgrest"][0]
    texts = postgrest_texts(file, os.environ)
    tree: dict[str, Any] = {"Config": {"ParseEnvironmentVariables": "true"}}
    taken: set[str] = set()
    for path, text in equivalent_settings(file, texts):
        variable = _variable(path, taken)
        *sections, name = path.split(":")
        section = tree
        for part in sections:
            section = section.setdefault(part, {})
        section[name] = text if variable is None else f"{{{variable}}}"
        if variable is not None:
            print(f"{path} is a placeholder: set the variable {variable} where the file is used.", file=sys.stderr)
    for key in unknown_keys(texts):
        print(f"PostgREST has no key {key}; it is left out.", file=sys.stderr)
    print_json(tree)
    return 0


def _variable(path: str, taken: set[str]) -> str | None:
    """Return the name of the environment variable that holds the value of a secret key; None for other keys. path: of
    the key. taken: names that are in use; the new name is added to it, with a number if it is in use already.

    Names for settings of the application have a prefix: `app.settings.jwt_secret` must not get the secret of tokens,
    nor `app.settings.home` the home directory.
    """
    if path in _SECRETS or not is_secret(path):
        return _SECRETS.get(path)
    plain = re.sub(r"\W", "_", f"app_settings_{path.rpartition(':')[2]}").upper()
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    taken.add(name)
    return name


def with_colours(text: str, word: str = "") -> str:
    """Return the text with coloured tokens, for a terminal. Occurrences of `word` in tokens are highlighted."""

    def paint(match: re.Match[str]) -> str:
        return f"{_COLOURS[match.lastgroup or 'mark']}{_with_highlight(match[0], word)}{_RESET}"

    return _TOKEN.sub(paint, text)


def _with_highlight(token: str, word: str) -> str:
    """Return a token with highlighted occurrences of `word`, in any case; unchanged if `word` is empty."""
    if not word:
        return token
    return re.sub(re.escape(word), lambda match: f"{_INVERSE}{match[0]}{_NOT_INVERSE}", token, flags=re.IGNORECASE)
