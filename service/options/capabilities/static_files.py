"""Read `StaticFiles`: served files, their protection and their placeholders (static-files-1 to static-files-6)."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

from rowcall.core.auth.options import LoginOptions
from rowcall.core.config import Settings
from rowcall.core.operations.static_files import PageOptions, StaticFileOptions
from rowcall.core.text.globs import has_wildcard
from rowcall.service.startup_error import require_folder

log = logging.getLogger("rowcall")

_P = "StaticFiles:"
_PARSE = _P + "ParseContentOptions:"


def static_file_options(settings: Settings) -> StaticFileOptions | None:
    """Return the options, or None if no files are served. Raises StartupError if there is no folder."""
    if not settings.is_enabled(StaticFileOptions):
        return None
    login = settings.read(LoginOptions)
    options = settings.read(
        StaticFileOptions, pages=_pages(settings), names=(login.user_id, login.user_name, login.user_roles)
    )
    root = os.path.realpath(options.root)
    require_folder(f"{_P}RootPath", root)
    for pattern in options.closed:
        if not has_wildcard(pattern) and os.path.isdir(Path(root, pattern.strip("/"))):
            message = "%sAuthorizePaths: %s is a folder, and its files can be read without sign-in: write %s/*"
            log.warning(message, _P, pattern, pattern.rstrip("/"))
    return replace(options, root=root)


def _pages(settings: Settings) -> PageOptions | None:
    options = settings.read_enabled(PageOptions)
    if options is None:
        return None
    for line in options.header_lines:
        if line.count(":") != 1 or not line.partition(":")[0].strip():
            log.warning("%sHeaders: %r is left out; `Name: value` is expected", _PARSE, line)
    environment = {**os.environ, **settings.variables}
    variables = {name: environment.get(name, instead) for name, instead in options.variables.items()}
    return replace(options, variables=variables)
