"""Read `Auth:Passwords`: rules for new passwords. Lists that cannot be used prevent the start."""

from __future__ import annotations

import os
from pathlib import Path

from rowcall.core.accounts.breached_list import file_fault
from rowcall.core.accounts.password_rules import PasswordRules
from rowcall.core.config import Settings
from rowcall.service.startup_error import StartupError

_P = "Auth:Passwords:"
MOST_WORDS = 10_485_760
"""Most bytes of a file of words: each worker has it in memory."""
SORTED = (
    "download the SHA-1 list ordered by hash in one file (dotnet tool haveibeenpwned-downloader, without -n), or sort "
    "yours with `LC_ALL=C sort`"
)


def password_rules(settings: Settings) -> PasswordRules:
    """Return the rules for new passwords. Raises `StartupError` for a list that cannot be used."""
    rules = settings.read(PasswordRules)
    if rules.breached_file is not None:
        _check_hashes(Path(rules.breached_file))
    if rules.words_file is not None:
        _check_words(Path(rules.words_file))
    return rules


def _check_hashes(path: Path) -> None:
    key = _P + "BreachedFile"
    try:
        with path.open("rb") as file:
            number = file.fileno()
            wrong = file_fault(lambda offset, count: os.pread(number, count, offset), os.fstat(number).st_size)
    except OSError as error:
        raise StartupError(f"{key}: {path}: {error.strerror}; {SORTED}") from None
    if wrong is not None:
        raise StartupError(f"{key}: {path}: {wrong}; {SORTED}")


def _check_words(path: Path) -> None:
    key = _P + "WordsFile"
    try:
        size = path.stat().st_size
        if size > MOST_WORDS:
            raise StartupError(
                f"{key}: {path} has {size} bytes, and {MOST_WORDS} are allowed; use BreachedFile for more"
            )
        path.read_text("utf-8-sig")
    except OSError as error:
        raise StartupError(f"{key}: {path}: {error.strerror}; name a file with a password in each line") from None
    except UnicodeDecodeError as error:
        raise StartupError(f"{key}: {path}: byte {error.start} is not UTF-8; convert the file") from None
