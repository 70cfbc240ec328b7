"""Merge configuration sources into settings: files in order, then the environment, then the command line.

The later source wins. This module does not read files; `service.command.configuration_files` does.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from rowcall.core.config import relaxed_json
from rowcall.core.config.placeholders import NoSubstitution
from rowcall.core.config.sections.application import Loading
from rowcall.core.config.settings import Settings
from rowcall.core.config.table import ALIASES, FORMER_KEYS, KEY_TREE, SECOND_NAMES, KeyNode, canonical, knows
from rowcall.core.config.tree import MAX_DEPTH, Child, Origin, Section, find, is_index, merge, merge_all, single
from rowcall.core.config.validation import UnknownKey, unknown_keys
from rowcall.core.sections.errors import ConfigError
from rowcall.core.sections.keys import KeyType

_COMMAND_LINE = Origin("command line")
_ENVIRONMENT = Origin("environment")


@dataclass(frozen=True, slots=True)
class SourceText:
    """Name and content of a configuration file."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class LoadedConfiguration:
    """The merged configuration, and the keys that the table does not contain."""

    settings: Settings
    unknown: tuple[UnknownKey, ...]


def load_files(sources: Iterable[SourceText]) -> Section:
    """Return the merged keys of files; later files override earlier ones. Sections and keys have their present names.
    Raises ConfigError with file, line and column for an invalid file."""
    return merge_all(_canonical(relaxed_json.parse(source.name, source.text)) for source in sources)


def assemble(
    files: Section, overrides: Iterable[tuple[str, str]], environment: Mapping[str, str]
) -> LoadedConfiguration:
    """Merge keys of the environment (if enabled) and the command-line `overrides` over `files`.

    files: as `load_files` returns them. overrides: pairs (path of a key, text of its value), the last one of a path
    counts. `environment` includes the variables of the `.env` file. `Config:AddEnvironmentVariables` and
    `Config:ParseEnvironmentVariables` are read from the files only (configuration-2). Raises ConfigError for a path in
    `overrides` that is too deep, or an invalid value in the section `Config` of the files.
    """
    from_files = Settings(files, environment).read(Loading)
    arguments = _canonical(merge_all(_override(path, text) for path, text in overrides))
    root = files
    if from_files.add_environment_variables:
        root = merge(root, environment_keys(environment))
    root = with_lists(merge(root, arguments), KEY_TREE)
    is_parsed = from_files.parse_environment_variables
    variables = {**_random_tokens(), **environment} if is_parsed else NoSubstitution(environment)
    return LoadedConfiguration(Settings(root, variables), unknown_keys(merge(files, arguments)))


_LISTS = {KeyType.TEXTS, KeyType.NUMBERS, KeyType.OBJECTS, KeyType.STEPS, KeyType.NAMES, KeyType.ANY}


def with_lists(section: Section, node_of_key: KeyNode) -> Section:
    """Return `section` with its lists marked as arrays, also if their elements were set singly (`Section:Key:0=…`).
    node_of_key: the key tree node that declares the section."""
    children = {
        name: replace(child, node=with_lists(child.node, below)) if isinstance(child.node, Section) and below else child
        for name, child in section.children.items()
        for below in [node_of_key.child(child.name)]
    }
    is_list = node_of_key.key is not None and node_of_key.key.type in _LISTS and all(map(is_index, children))
    return Section(children, is_array=section.is_array or (is_list and bool(children)))


def _override(path: str, text: str) -> Section:
    if path.count(":") > MAX_DEPTH:
        raise ConfigError(f"{_COMMAND_LINE}: {path[:60]}…: nested too deeply")
    return single(path, text, _COMMAND_LINE)


def environment_keys(environment: Mapping[str, str]) -> Section:
    """Return the tree of variables `A__B__C`, which set the key `A:B:C`.

    Variables that name no known key, such as PATH, are ignored without a warning.
    """
    root = Section()
    for name, text in sorted(environment.items()):
        path = canonical(name.replace("__", ":"))
        if path.count(":") <= MAX_DEPTH and (knows(path) or path.casefold() in _FORMER):
            root = merge(root, _with_present_names(single(path, text, _ENVIRONMENT)))
    return root


def _canonical(root: Section) -> Section:
    """Return the tree of one source with present names: top-level sections have their canonical names, and a section
    that is present under both names is merged; former names of keys are replaced."""
    merged = Section()
    for child in root.children.values():
        name = ALIASES.get(child.name.casefold(), child.name)
        merged = merge(merged, Section({name.casefold(): Child(name, child.node, child.origin)}))
    return _with_present_names(merged)


_FORMER = {former.casefold(): present for former, present in {**FORMER_KEYS, **SECOND_NAMES}.items()}


def _with_present_names(root: Section) -> Section:
    """Return the tree of one source with former names of keys replaced by the present ones. If it contains both names
    of a key, the value under the present name is used."""
    for former, present in _FORMER.items():
        root = _with_key_renamed(root, former.split(":"), present.rpartition(":")[2])
    return root


def _with_key_renamed(section: Section, former: Sequence[str], present: str) -> Section:
    first, *rest = former
    child = section.children.get(first)
    if child is None:
        return section
    children = dict(section.children)
    if not rest:
        del children[first]
        children.setdefault(present.casefold(), Child(present, child.node, child.origin, child.name))
    elif isinstance(child.node, Section):
        children[first] = replace(child, node=_with_key_renamed(child.node, rest, present))
    return Section(children, is_array=section.is_array)


def former_keys(root: Section) -> Iterator[str]:
    """Yield a warning for each setting in the merged tree `root` that was written with a former name of its key."""
    for former, present in FORMER_KEYS.items():
        section = find(root, present.rpartition(":")[0])
        child = section.children.get(present.rpartition(":")[2].casefold()) if isinstance(section, Section) else None
        if child is not None and child.former:
            yield f"{former} at {child.origin} is accepted, but is called {present} now; rename it"


@cache
def _random_tokens() -> Mapping[str, str]:
    """Return the values of `{rnd1}` to `{rnd10}` and `{rndN_1}` to `{rndN_9}`: N random letters, fixed for the process
    (configuration-8).
    """
    tokens = {}
    for length in range(1, 11):
        for suffix in ("", *(f"_{index}" for index in range(1, 10))):
            tokens[f"rnd{length}{suffix}"] = "".join(random.choices(string.ascii_lowercase, k=length))  # noqa: S311
    return tokens
