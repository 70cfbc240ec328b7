"""Folders into which uploads must not be written, from the settings and from this process
(`core.uploads.protected`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rowcall.core.config import Settings
from rowcall.core.config.sections.application import Loading
from rowcall.core.config.sections.data_protection import DataProtection
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.config.tree import Scalar, Section
from rowcall.core.text.globs import base_folder, has_wildcard, is_recursive
from rowcall.core.uploads.protected_folders import ProtectedFolder, ProtectedFolders

_FILES = "Service:SqlFileSource:FilePattern"
_PACKAGE = Path(__file__).resolve().parent.parent.parent


def protected_folders(settings: Settings) -> ProtectedFolders:
    """Return the folders into which uploads must not be written, each with the reason."""
    entries = (
        ProtectedFolder(os.path.realpath(entry.path), entry.content, entry.tree)
        for entry in (*_of_process(), *_of_settings(settings))
    )
    return ProtectedFolders(tuple(dict.fromkeys(entries)))


def _of_process() -> Iterator[ProtectedFolder]:
    """Yield the working directory of this process, and the folders from which it runs code."""
    yield ProtectedFolder(os.curdir, "the working directory of the service")
    yield ProtectedFolder(str(_PACKAGE), "the code of the service", tree=True)
    for entry in sys.path:
        if os.path.isabs(entry) and os.path.exists(entry):
            yield ProtectedFolder(entry, "a folder with Python code of the service")


def _of_settings(settings: Settings) -> Iterator[ProtectedFolder]:
    """Yield the folders with configuration, keys and SQL files."""
    for name in sorted(_origins(settings.root)):
        if os.path.isfile(name):
            yield ProtectedFolder(os.path.dirname(name) or os.curdir, "a folder with configuration of the service")
    environment_file = settings.read(Loading).env_file
    if environment_file:
        folder = os.path.dirname(environment_file) or os.curdir
        yield ProtectedFolder(folder, "a folder with configuration of the service")
    keys = settings.read(DataProtection).folder
    if keys:
        yield ProtectedFolder(keys, "the folder with the keys of the service", tree=True)
    pattern = settings.read(SqlFileOptions).pattern
    if pattern:
        tree = is_recursive(pattern) or has_wildcard(os.path.dirname(pattern))
        yield ProtectedFolder(base_folder(pattern), "the folder with SQL files of the service", tree=tree)


def _origins(section: Section) -> set[str]:
    """Return the sources of the values below `section`: names of files, and of other sources."""
    sources: set[str] = set()
    for child in section.children.values():
        if isinstance(child.node, Section):
            sources |= _origins(child.node)
        elif isinstance(child.node, Scalar):
            sources.add(child.node.origin.source)
    return sources
