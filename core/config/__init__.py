"""Configuration: each key is declared once in `table`, from which everything else is derived.

`loading` merges sources into `Settings`, `settings` reads typed values, `validation` finds unknown keys, and
`output.manual` writes the reference page. Nothing here reads files or the environment;
`service.command.configuration_files` does.
"""

from rowcall.core.config.loading import LoadedConfiguration, SourceText, assemble, load_files
from rowcall.core.config.settings import Settings
from rowcall.core.config.table import KEYS
from rowcall.core.config.validation import UnknownKey
from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.keys import Key, KeyType

__all__ = [
    "KEYS",
    "ConfigError",
    "Key",
    "KeyType",
    "LoadedConfiguration",
    "Settings",
    "SourceText",
    "UnknownKey",
    "assemble",
    "load_files",
]
