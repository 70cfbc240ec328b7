"""Looks, when a worker starts, into every folder that files may have been on their way to when a worker was killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.core.uploads.options import Folder, UploadOptions
from rowcall.service.uploads.folders import remove_leftovers


def tidy(endpoints: Iterable[Endpoint], options: UploadOptions) -> None:
    """In a thread, beside everything else. Folders that requests name are looked at before their first file."""
    folders = frozenset(_folders(endpoints, options))
    if folders:
        asyncio.get_running_loop().run_in_executor(None, _tidy, folders)


def _tidy(folders: Iterable[str]) -> None:
    for folder in folders:
        remove_leftovers(folder)


def _folders(endpoints: Iterable[Endpoint], options: UploadOptions) -> Iterator[str]:
    for endpoint in endpoints:
        upload = endpoint.options.upload
        if upload is None:
            continue
        names = placeholder_names(endpoint.parameters)
        yield from (one.path for one in options.handlers.values() if isinstance(one, Folder))
        for word, text in upload.settings:
            if word in ("path", "file_system_path") and parse_template(text, names).is_fixed:
                yield text
