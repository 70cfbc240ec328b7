"""Looks, when a worker starts, into every folder that files may have been on their way to when a worker was killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.core.uploads.options import Folder, UploadOptions
from rowcall.service.uploads.folders import remove_orphaned_files

LOOKS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds before another look at what somebody holds: a request, or a process that was killed and is not gone yet, as
the next service may start sooner than the system has cleared away the one before."""


async def tidy(endpoints: Iterable[Endpoint], options: UploadOptions) -> None:
    """Beside everything else. Folders that requests name are looked at before their first file."""
    loop = asyncio.get_running_loop()
    folders = frozenset(_folders(endpoints, options))
    for seconds in (*LOOKS, 0.0):
        values = [await loop.run_in_executor(None, remove_orphaned_files, folder) for folder in folders]
        if all(values):
            return
        await asyncio.sleep(seconds)


def _folders(endpoints: Iterable[Endpoint], options: UploadOptions) -> Iterator[str]:
    for endpoint in endpoints:
        upload = endpoint.options.upload
        if upload is None:
            continue
        names = placeholder_names(endpoint.parameters)
        yield from (item.path for item in options.handlers.values() if isinstance(item, Folder))
        for word, text in upload.settings:
            if word in ("path", "file_system_path") and parse_template(text, names).is_fixed:
                yield text
