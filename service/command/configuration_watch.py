"""Watch configuration files, so that a saved change restarts the service (testing-14).

An invalid configuration is logged, and the service continues with the previous one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from rowcall.core.config import ConfigError
from rowcall.service.file_changes import file_changes

log = logging.getLogger("rowcall.client")

_QUIET = 50
"""Milliseconds without a file event after which a save counts as complete."""
_LONGEST = 1600
"""Milliseconds after which a change is reported even if events continue."""


class ConfigurationWatch:
    """Waits for a valid change of configuration files. The contents are compared, so touching a file has no effect.

    files: all files that may be read, also missing ones. check: raises ConfigError for an invalid configuration.
    """

    def __init__(self, files: Sequence[Path], check: Callable[[], None]) -> None:
        self._files = files
        self._check = check
        self._known = self._contents()

    async def wait_for_change(self) -> None:
        """Return when the contents of the files have changed to a valid configuration. An invalid one is logged as an
        error.
        """
        names = {file.name for file in self._files}
        folders = {str(file.parent) for file in self._files if file.parent.is_dir()} or {str(Path.cwd())}
        changes = file_changes(
            *folders,
            fits=lambda _change, path: Path(path).name in names,
            quiet=_QUIET,
            longest=_LONGEST,
            channel=log.name,
            interval=1000,
            recursive=False,
        )
        async for _ in changes:
            if self._is_new():
                return

    def _is_new(self) -> bool:
        """Return whether the contents have changed to a valid configuration. An invalid one is logged once."""
        contents = self._contents()
        if contents == self._known:
            return False
        self._known = contents
        try:
            self._check()
        except ConfigError as error:
            log.error("the changed configuration cannot be used, the last good one stays: %s", error)
            return False
        return True

    def _contents(self) -> tuple[bytes | None, ...]:
        """Return the content of each file, as `_content` does."""
        return tuple(map(_content, self._files))


def _content(file: Path) -> bytes | None:
    """Return the content of a file; None if it is missing, cannot be read, or is no regular file: a pipe can be read
    only once."""
    try:
        return file.read_bytes() if file.is_file() else None
    except OSError:
        return None
