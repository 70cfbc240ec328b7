"""While watching, a saved configuration file starts the service again with what it says (testing-14).

What cannot be used is told in the log, and the service goes on with what it has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from rowcall.core.config import ConfigError

log = logging.getLogger("rowcall.client")

_QUIET = 50
"""Milliseconds without an event after which a save is complete."""


class ConfigurationWatch:
    """files: those that were read, and those that were looked for. check: raises ConfigError for what cannot be used.

    What is compared is what the files hold: touching one changes nothing.
    """

    def __init__(self, files: Sequence[Path], check: Callable[[], None]) -> None:
        self._files = files
        self._check = check
        self._known = self._contents()

    async def changed(self) -> None:
        """Comes back when the files say something else that can be used."""
        # Loads what only watching needs.
        from watchfiles import awatch

        names = {file.name for file in self._files}
        async for _ in awatch(
            *{file.parent for file in self._files if file.parent.is_dir()} or {Path.cwd()},
            watch_filter=lambda _change, path: Path(path).name in names,
            step=_QUIET,
            recursive=False,
            yield_on_timeout=True,
            rust_timeout=1000,
        ):
            if self._is_new():
                return

    def _is_new(self) -> bool:
        seen = self._contents()
        if seen == self._known:
            return False
        self._known = seen
        try:
            self._check()
        except ConfigError as error:
            log.error("the changed configuration cannot be used, the last good one stays: %s", error)
            return False
        return True

    def _contents(self) -> tuple[bytes | None, ...]:
        return tuple(map(_content, self._files))


def _content(file: Path) -> bytes | None:
    """None for what is not there, and for a pipe, which can be read but once."""
    try:
        return file.read_bytes() if file.is_file() else None
    except OSError:
        return None
