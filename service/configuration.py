"""Reads what `core.config` needs: configuration files, the `.env` file and the environment."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rowcall.core.config import ConfigError, Settings, SourceText, UnknownKey, assemble, load_files
from rowcall.core.config.env_file import parse_env_file
from rowcall.core.config.tree import Scalar, find
from rowcall.service.command.switches import Arguments
from rowcall.service.command.switches import File as ConfigFile

DEFAULT_FILES = ("rowcall.json", "rowcall.local.json")
_MODE = "Config:ValidateConfigKeys"
_DEMO_FOLDER = ".demo"
_DEFAULT_ENV_FILE = "./.env"


@dataclass(frozen=True, slots=True)
class Note:
    """Something to log as soon as there is a logger."""

    level: int
    message: str


@dataclass(frozen=True, slots=True)
class Configuration:
    settings: Settings
    unknown: tuple[UnknownKey, ...]
    notes: tuple[Note, ...]

    @property
    def validation_mode(self) -> str:
        """`Warning`, `Error` or `Ignore`; any other word is given as it is and works like Warning (reference 06,
        1.5).
        """
        try:
            return self.settings.choice(_MODE)
        except ConfigError:
            given = find(self.settings.root, _MODE)
            return given.text or "Warning" if isinstance(given, Scalar) else "Warning"


def load(arguments: Arguments) -> Configuration:
    """What the command line, this process's environment and the files in the working directory make together."""
    overrides = arguments.overrides
    if arguments.has("--demo"):
        from rowcall.service.demo import SETTINGS

        overrides = (("ConnectionStrings:Default", f"embedded:{_DEMO_FOLDER}"), *SETTINGS, *overrides)
    if arguments.has("--watch"):
        overrides = (*overrides, ("Watch:Enabled", "true"))
    return load_configuration(arguments.files, overrides, os.environ, Path.cwd())


def load_configuration(
    files: Sequence[ConfigFile],
    overrides: Iterable[tuple[str, str]],
    environment: Mapping[str, str],
    directory: Path,
) -> Configuration:
    """Load `files` in order, or the default files when there are none, then environment and `overrides`.

    Raises ConfigError for a missing file and for whatever `core.config` finds wrong.
    """
    chosen = files or [ConfigFile(name, optional=True) for name in DEFAULT_FILES]
    sources, notes = [], []
    for file in chosen:
        source = _read(file, directory)
        sources += [source] if source else []
        notes.append(Note(logging.DEBUG, f"Configuration file {file.path}: {'read' if source else 'not found'}"))
    merged = load_files(sources)
    variables, env_notes = _with_env_file(Settings(merged, environment), environment, directory)
    loaded = assemble(merged, overrides, variables)
    return Configuration(loaded.settings, loaded.unknown, (*notes, *env_notes))


def _read(file: ConfigFile, directory: Path) -> SourceText | None:
    path = directory / file.path
    try:
        return SourceText(file.path, path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if file.optional:
            return None
        raise ConfigError(f"the configuration file {file.path} does not exist (looked for {path.absolute()})") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration file {file.path} can't be read: {error}") from None


def _with_env_file(
    settings: Settings, environment: Mapping[str, str], directory: Path
) -> tuple[Mapping[str, str], list[Note]]:
    """Fill gaps of `environment` from `Config:EnvFile`; variables that exist are kept (reference 06, 1.3)."""
    name = settings.text_or_none("Config:EnvFile")
    used = settings.flag("Config:AddEnvironmentVariables") or settings.flag("Config:ParseEnvironmentVariables")
    if not name or not used:
        return environment, []
    try:
        found = parse_env_file((directory / name).read_text(encoding="utf-8"))
    except OSError:
        return environment, [_missing_env_file(name)]
    kept = len(found.keys() & environment.keys())
    remark = f", {kept} kept from the environment" if kept else ""
    note = Note(logging.INFO, f"Loaded {len(found) - kept} environment variables from {name}{remark}")
    return {**found, **environment}, [note]


def _missing_env_file(name: str) -> Note:
    if name == _DEFAULT_ENV_FILE:
        return Note(logging.INFO, f"No environment file {name}; set Config:EnvFile to null to stop looking for it")
    return Note(logging.WARNING, f"The environment file {name} can't be read")
