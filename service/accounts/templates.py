"""Templates of mail: files of a folder."""

from __future__ import annotations

import os

from rowcall.core.accounts.message import MailError, Template, template_of


class Templates:
    """Reads templates of mail from a folder, and reads a file again when it has changed.

    folder: `Mail:Templates`; None: every look-up fails.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._known: dict[str, tuple[tuple[int, ...], Template]] = {}

    def find(self, name: str) -> Template:
        """Return the template with this name. Raises `MailError` if there is none, or if it is invalid, not UTF-8
        or has a NUL, and `OSError` if its file cannot be read."""
        if self._folder is None:
            raise MailError(f"the template {name} cannot be read, because Mail:Templates is not set")
        paths = [os.path.join(self._folder, f"{name}{suffix}") for suffix in (".txt", ".html")]
        times = tuple(_modification_time(path) for path in paths)
        if times == (-1, -1):
            raise MailError(f"there is neither {name}.txt nor {name}.html in {self._folder}")
        known = self._known.get(name)
        if known is None or known[0] != times:
            text, rich = (_read(path) if time >= 0 else None for path, time in zip(paths, times, strict=True))
            known = self._known[name] = (times, template_of(text, rich))
        return known[1]


def _modification_time(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return -1


def _read(path: str) -> str:
    """Return the text of a file. Raises `MailError` if it is not UTF-8 or has a NUL, which no mail can have; and
    `OSError`."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    except UnicodeDecodeError as error:
        raise MailError(f"{path} is not UTF-8 text (byte {error.start + 1})") from None
    if "\0" in text:
        raise MailError(f"{path} has a NUL character")
    return text
