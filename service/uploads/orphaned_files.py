"""Removal of orphaned files at the start of a worker, in all folders where a killed worker may have left some."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.core.uploads.options import Folder, UploadOptions
from rowcall.service.uploads.folders import remove_orphaned_files

LOOKS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds before a locked folder is checked again. It belongs to a running request, or to a killed process that has not
ended yet: the next service may start sooner than the system has cleaned up after the one before.
"""


async def tidy(endpoints: Iterable[Endpoint], options: UploadOptions) -> None:
    """Remove orphaned files in the folders of these endpoints; folders that other processes lock are checked again for
    about a minute. Folders that requests name are checked before their first file.
    """
    loop = asyncio.get_running_loop()
    folders = frozenset(_folders(endpoints, options))
    for seconds in (*LOOKS, 0.0):
        results = [await loop.run_in_executor(None, remove_orphaned_files, folder) for folder in folders]
        if all(results):
            return
        await asyncio.sleep(seconds)


def _folders(endpoints: Iterable[Endpoint], options: UploadOptions) -> Iterator[str]:
    """Yield the folders that do not depend on a request: those of the configuration and of the comments. A folder may
    occur several times.
    """
    for endpoint in endpoints:
        upload = endpoint.options.upload
        if upload is None:
            continue
        names = placeholder_names(endpoint.parameters)
        yield from (item.path for item in options.handlers.values() if isinstance(item, Folder))
        for word, text in upload.settings:
            if word in ("path", "file_system_path") and parse_template(text, names).is_fixed:
                yield text
