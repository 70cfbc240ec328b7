"""From texts to settings: files in order, then the environment, then the command line; the later source wins.

Reading the files is the business of `service.configuration`; here text goes in and data comes out.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rowcall.core.config import relaxed_json
from rowcall.core.config.errors import ConfigError
from rowcall.core.config.settings import Settings
from rowcall.core.config.table import ALIASES, canonical, knows
from rowcall.core.config.tree import MAX_DEPTH, Child, Origin, Section, merge, merge_all, single
from rowcall.core.config.validation import UnknownKey, unknown_keys

_COMMAND_LINE = Origin("command line")
_ENVIRONMENT = Origin("environment")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A configuration file that was read."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Loaded:
    settings: Settings
    unknown: tuple[UnknownKey, ...]


def load_files(sources: Iterable[SourceText]) -> Section:
    """Merge files in order, later over earlier. Raise ConfigError with file, line and column."""
    return merge_all(_canonical(relaxed_json.parse(source.name, source.text)) for source in sources)


def assemble(files: Section, overrides: Iterable[tuple[str, str]], environment: Mapping[str, str]) -> Loaded:
    """Lay environment keys (if switched on) and command-line `overrides` over `files`.

    `environment` already holds what the `.env` file added. `Config:AddEnvironmentVariables` and
    `Config:ParseEnvironmentVariables` are read from the files only (reference 06, 1.1).
    """
    from_files = Settings(files, environment)
    arguments = _canonical(merge_all(_override(path, text) for path, text in overrides))
    root = files
    if from_files.flag("Config:AddEnvironmentVariables"):
        root = merge(root, environment_keys(environment))
    root = merge(root, arguments)
    variables = {**_random_tokens(), **environment} if from_files.flag("Config:ParseEnvironmentVariables") else {}
    return Loaded(Settings(root, variables), unknown_keys(merge(files, arguments)))


def _override(path: str, text: str) -> Section:
    if path.count(":") > MAX_DEPTH:
        raise ConfigError(f"{_COMMAND_LINE}: {path[:60]}…: nested too deeply")
    return single(path, text, _COMMAND_LINE)


def environment_keys(environment: Mapping[str, str]) -> Section:
    """`A__B__C` as key `A:B:C`. Only variables that name a known key: PATH and HOME are nobody's mistake."""
    root = Section()
    for name, text in sorted(environment.items()):
        path = canonical(name.replace("__", ":"))
        if path.count(":") <= MAX_DEPTH and knows(path):
            root = merge(root, single(path, text, _ENVIRONMENT))
    return root


def _canonical(root: Section) -> Section:
    """Give top-level sections their canonical name; a section given under both names is merged."""
    merged = Section()
    for child in root.children.values():
        name = ALIASES.get(child.name.casefold(), child.name)
        merged = merge(merged, Section({name.casefold(): Child(name, child.node, child.origin)}))
    return merged


def _random_tokens() -> dict[str, str]:
    """`{rnd1}` to `{rnd10}` and `{rndN_1}` to `{rndN_9}`: random letters, fixed for the process (reference 06, 1.2)."""
    tokens = {}
    for length in range(1, 11):
        for suffix in ("", *(f"_{index}" for index in range(1, 10))):
            tokens[f"rnd{length}{suffix}"] = "".join(random.choices(string.ascii_lowercase, k=length))  # noqa: S311
    return tokens
