"""Read the sources of the configuration: files, the `.env` file and the environment."""

from __future__ import annotations

import codecs
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rowcall.core.config import ConfigError, Settings, SourceText, UnknownKey, assemble, load_files
from rowcall.core.config.env_file import parse_env_file
from rowcall.core.config.loading import former_keys
from rowcall.core.config.placeholders import escape_placeholders
from rowcall.core.config.sections.application import Loading
from rowcall.core.config.table import ALIASES
from rowcall.core.config.tree import Section
from rowcall.service.command.switches import Arguments
from rowcall.service.command.switches import File as ConfigFile

DEFAULT_FILES = ("rowcall.json", "rowcall.local.json")
_SECOND_NAME = re.compile(r'"(NpgsqlRest|Kestrel)"\s*:\s*\{', re.IGNORECASE)
_DEFAULT = tuple(ConfigFile(name, optional=True) for name in DEFAULT_FILES)
_DEMO_FOLDER = ".demo"
_SOCKETS = ("server-unix-socket", "admin-server-unix-socket")
"""Keys of PostgREST whose values are paths of sockets."""
_DEFAULT_ENV_FILE = "./.env"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks. UTF-32 precedes UTF-16, whose little-endian mark is a prefix of that of UTF-32."""


@dataclass(frozen=True, slots=True)
class Note:
    """A message to log when the logger is configured. level: of `logging`."""

    level: int
    message: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """The loaded configuration, with unknown keys and with messages to log."""

    settings: Settings
    unknown: tuple[UnknownKey, ...]
    notes: tuple[Note, ...]

    @property
    def validation_mode(self) -> str:
        """`Warning`, `Error` or `Ignore`; another word is returned unchanged and works like Warning
        (configuration-14).
        """
        return self.settings.read(Loading).validate_config_keys


def load(arguments: Arguments) -> Configuration:
    """Load the configuration from the command line, the environment and the files in the working directory.

    Raises ConfigError.
    """
    overrides = arguments.overrides
    if arguments.has("--demo"):
        from rowcall.service.embedded.demo import SETTINGS

        overrides = (("ConnectionStrings:Default", f"embedded:{_DEMO_FOLDER}"), *SETTINGS, *overrides)
    if arguments.has("--console"):
        overrides = (*overrides, ("Console:Enabled", "true"))
    if arguments.has("--watch"):
        overrides = (*overrides, ("Watch:Enabled", "true"))
    if arguments.has("--postgrest"):
        return _load_postgrest(_postgrest_file(arguments), overrides, _readable(os.environ))
    return load_configuration(arguments.files, overrides, _readable(os.environ), Path.cwd())


def _postgrest_file(arguments: Arguments) -> str:
    """Return the path of PostgREST's configuration file; empty if there is none."""
    return next(iter(arguments.given["--postgrest"]), "")


def _load_postgrest(name: str, overrides: Iterable[tuple[str, str]], environment: Mapping[str, str]) -> Configuration:
    """Load PostgREST's own configuration. name: path of its file; empty: there is none. overrides: keys and values that
    replace those of file and environment. Raises ConfigError.
    """
    from rowcall.core.postgrest.configuration.keys import ineffective_keys, unknown_keys

    texts = postgrest_texts(name, environment)
    messages = [f"PostgREST has no key {key}; it is ignored" for key in unknown_keys(texts)]
    messages += [f"{key} = {texts[key]} has no effect: {why}" for key, why in ineffective_keys(texts)]
    notes = tuple(Note(logging.WARNING, f"{name or 'environment'}: {message}") for message in messages)
    if texts.get("db-uri", "").startswith("@"):
        content = _read(ConfigFile(texts["db-uri"][1:]), Path.cwd())
        texts["db-uri"] = "" if content is None else content.text.strip()
    loaded = assemble(Section(), (*equivalent_settings(name, texts), *overrides), environment)
    return Configuration(loaded.settings, loaded.unknown, notes)


def postgrest_texts(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of PostgREST's configuration file and of its environment by key, such as `db-uri`; the
    environment replaces texts of the file. Paths of sockets are absolute. name: path of the file; empty: there is none.
    Raises ConfigError.
    """
    from rowcall.core.postgrest.configuration.file import ConfigurationFileError, parse_configuration_file
    from rowcall.core.postgrest.configuration.keys import from_environment, present_names

    source = _read(ConfigFile(name), Path.cwd()) if name else None
    try:
        texts = {} if source is None else parse_configuration_file(name, source.text, environment)
    except ConfigurationFileError as error:
        raise ConfigError(str(error)) from None
    result = present_names(texts) | from_environment(environment)
    return result | {key: str(Path(result[key]).absolute()) for key in _SOCKETS if result.get(key)}


def equivalent_settings(name: str, texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the keys and values of this service that are equivalent to `postgrest_texts`. Braces in values of
    PostgREST are no placeholders, so they are escaped. name: path of the file; empty: there is none. Raises
    ConfigError.
    """
    from rowcall.core.postgrest.configuration.equivalent import equivalent
    from rowcall.core.postgrest.options import InvalidOptionError

    try:
        return [(path, escape_placeholders(text)) for path, text in equivalent(texts)]
    except InvalidOptionError as error:
        raise ConfigError(f"{name or 'environment'}: {error}") from None


def configuration_files(arguments: Arguments) -> tuple[Path, ...]:
    """Return the paths of the configuration files that `load` tries to read; the files may be missing. With
    `--postgrest`, this is only PostgREST's configuration file, without the files that it names (`@…`)."""
    if arguments.has("--postgrest"):
        name = _postgrest_file(arguments)
        return (Path(name).absolute(),) if name else ()
    return tuple(Path(file.path).absolute() for file in arguments.files or _DEFAULT)


def _readable(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Replace bytes that are not UTF-8 by �: Python represents them as surrogates, which cannot be encoded again."""
    return {name: os.fsencode(text).decode(errors="replace") for name, text in environment.items()}


def load_configuration(
    files: Sequence[ConfigFile],
    overrides: Iterable[tuple[str, str]],
    environment: Mapping[str, str],
    directory: Path,
) -> Configuration:
    """Load `files` in order (without any, the default files), then the environment, then `overrides`; a later value
    replaces an earlier one.

    overrides: keys and values of the command line. directory: base of relative paths. Raises ConfigError for a missing
    file and for invalid content.
    """
    chosen = files or _DEFAULT
    sources, notes = [], []
    for file in chosen:
        source = _read(file, directory)
        sources += [source] if source else []
        notes.append(Note(logging.DEBUG, f"Configuration file {file.path}: {'read' if source else 'not found'}"))
    notes += _second_names(sources)
    merged = load_files(sources)
    variables, env_notes = _with_env_file(Settings(merged, environment), environment, directory)
    override_pairs = tuple(overrides)
    loaded = assemble(merged, override_pairs, variables)
    notes += [Note(logging.WARNING, message) for message in former_keys(loaded.settings.root)]
    return Configuration(loaded.settings, loaded.unknown, (*notes, *env_notes, *_ineffective_overrides(override_pairs)))


_BEFORE_THE_COMMAND_LINE = ("Config:AddEnvironmentVariables", "Config:ParseEnvironmentVariables", "Config:EnvFile")


def _ineffective_overrides(overrides: Iterable[tuple[str, str]]) -> Iterator[Note]:
    """Yield warnings for overrides of keys that are read from files only, before the command line applies
    (configuration-2). overrides: keys and values.
    """
    for path, _ in overrides:
        for key in _BEFORE_THE_COMMAND_LINE:
            if path.casefold() == key.casefold():
                yield Note(
                    logging.WARNING,
                    f"{key} has no effect on the command line: it is read from configuration files only",
                )


def _second_names(sources: Sequence[SourceText]) -> list[Note]:
    """Return a note for each of the section names NpgsqlRest and Kestrel that the sources use instead of Service and
    HttpServer. Both names are valid.
    """
    names_in_use = {match.casefold() for source in sources for match in _SECOND_NAME.findall(source.text)}
    return [
        Note(logging.INFO, f"The section {spelling} is read as {ALIASES[name]}")
        for name, spelling in (("npgsqlrest", "NpgsqlRest"), ("kestrel", "Kestrel"))
        if name in names_in_use
    ]


def _read(file: ConfigFile, directory: Path) -> SourceText | None:
    """Return the text of a configuration file; None: it is optional and missing. directory: base of a relative path.
    Raises ConfigError.
    """
    if not file.path.strip():
        raise ConfigError("the name of a configuration file is empty")
    path = directory / file.path
    try:
        return SourceText(file.path, _decode_text(path.read_bytes()))
    except FileNotFoundError:
        if file.optional:
            return None
        raise ConfigError(f"the configuration file {file.path} does not exist (looked for {path.absolute()})") from None
    except OSError as error:
        raise ConfigError(f"the configuration file {file.path} can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"the configuration file {file.path} is not UTF-8 text (byte {error.start + 1})") from None


def _decode_text(data: bytes) -> str:
    """Decode UTF-8, or the encoding of a byte order mark, since Windows editors write UTF-16. Raises
    UnicodeDecodeError."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding)
    return data.decode()


def _with_env_file(
    settings: Settings, environment: Mapping[str, str], directory: Path
) -> tuple[Mapping[str, str], list[Note]]:
    """Return `environment` with the variables of `Config:EnvFile` that it lacks (configuration-9), and messages to log.

    settings: those of the configuration files. directory: base of a relative path. Raises ConfigError for a file that
    is not UTF-8.
    """
    options = settings.read(Loading)
    name = options.env_file
    if not name or not (options.add_environment_variables or options.parse_environment_variables):
        return environment, []
    try:
        file_variables = parse_env_file(_decode_text((directory / name).read_bytes()))
    except FileNotFoundError:
        return environment, [_missing_env_file(name)]
    except OSError as error:
        return environment, [Note(logging.WARNING, f"The environment file {name} can't be read: {error.strerror}")]
    except UnicodeDecodeError:
        raise ConfigError(f"Config:EnvFile: the environment file {name} is not UTF-8 text") from None
    overridden = len(file_variables.keys() & environment.keys())
    remark = f", {overridden} already set in the environment" if overridden else ""
    note = Note(logging.INFO, f"Loaded {len(file_variables) - overridden} environment variables from {name}{remark}")
    return {**file_variables, **environment}, [note]


def _missing_env_file(name: str) -> Note:
    """Return the message that the environment file does not exist: a warning, unless it is the default one."""
    if name == _DEFAULT_ENV_FILE:
        return Note(logging.INFO, f"No environment file {name}; set Config:EnvFile to null to stop looking for it")
    return Note(logging.WARNING, f"The environment file {name} does not exist")
