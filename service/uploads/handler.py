"""The interface of upload handlers, and their data for one request."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, Protocol

from rowcall.core.uploads.checks import Checks, Status, image_types, patterns
from rowcall.core.uploads.entries import Entry, file_members, result_members
from rowcall.core.uploads.options import Common, Folder, LargeObjects, ObjectStore
from rowcall.core.uploads.row_errors import ErrorHandling, error_handling
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.uploads.folders import Folders
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.progress import ProgressReporter


class FormatError(Exception):
    """The file does not have the format of the handler, which was detected while storing it. Nothing of it remains.

    file: the same file, to be read from its beginning.
    """

    def __init__(self, file: File) -> None:
        super().__init__(file.name)
        self.file = file


class PendingWork(Protocol):
    """Work of a handler in another system that is not permanent yet."""

    async def settle(self) -> None:
        """Make the work permanent, after the routine has succeeded. Raises `Problem` if that fails."""

    async def undo(self) -> None:
        """Undo the work after an error, also after one that follows `settle`. Raises nothing."""

    def leave(self) -> None:
        """Log that the work stays although it is not known whether the transaction took effect."""


@dataclass(slots=True)
class Turn:
    """The state of one request that its handlers share: transaction, target folders, claims, and results so far."""

    context: RequestContext
    transaction: Transaction
    folders: Folders
    claims: bytes | None
    """Claims of the caller, as JSON. None: an anonymous caller, or claims are not passed."""
    cleanup: contextlib.ExitStack
    """Closed when the request ends."""
    body_read: bool = False
    """Whether the body of the request was read to its end."""
    dry_run: bool = False
    """Everything is rolled back at the end."""
    pending: list[PendingWork] = field(default_factory=list)
    """Work of handlers in other systems."""
    progress: ProgressReporter | None = None
    """Publishes the progress as events."""
    row_errors: list[dict[str, Any]] = field(default_factory=list)
    """Errors of rows of all files, if they are collected."""
    stored: set[str] = field(default_factory=set)
    """Case-folded names of the files that an earlier handler has stored."""


class Handler(Protocol):
    """A handler of one endpoint, for one request."""

    key: str
    """Name of the handler in the configuration."""
    common: HandlerCommon

    async def check(self, file: File) -> tuple[Status, File]:
        """Check whether the handler takes the file. Returns the status, and the file to be read from its beginning."""

    async def store(self, file: File) -> list[Entry]:
        """Store the whole file, and return its entries. Raises `FormatError`, and `Problem` if the file cannot be
        stored.
        """

    def refusal_entries(self, file: File, status: Status) -> list[Entry]:
        """Return the entries of a file that is not stored. The caller has read the file to its end."""


class HandlerCommon:
    """Settings that all handlers have."""

    def __init__(self, settings: HandlerSettings, common: Common) -> None:
        self.stop_after_first_success = settings.flag("stop_after_first_success", common.stop_after_first_success)
        self.included = patterns(settings.text_or_none("included_mime_types", common.included))
        self.excluded = patterns(settings.text_or_none("excluded_mime_types", common.excluded))
        self.buffer_size = settings.number("buffer_size", common.buffer_size, minimum=1)
        self.text_bytes = settings.number("test_buffer_size", common.text_bytes, minimum=1)
        self.control_bytes = settings.number("non_printable_threshold", common.control_bytes)
        self.fallback = settings.text_or_none("fallback_handler")
        self.on_error = error_handling(settings.text("on_error", "abort")) or ErrorHandling()
        self.dry_run = settings.flag("dry_run", False)
        self.check_command = settings.text_or_none("check_command") or None

    def checks(self, *, text: bool = False, lines: bool = False, images: frozenset[str] | None = None) -> Checks:
        """Return the checks of a file. text: it must be text. lines: it must have line ends. images: accepted kinds;
        None: any file.
        """
        return Checks(self.included, self.excluded, text, lines, self.text_bytes, self.control_bytes, images)


def stored_file_checks(
    common: HandlerCommon, settings: HandlerSettings, options: Folder | LargeObjects | ObjectStore, allowed: str
) -> Checks:
    """Return the checks of handlers that store a file unchanged.

    options: defaults of the settings. allowed: image types, such as `jpg, png`, that are accepted if `check_image` is
    `true` instead of a list of types. A list without a known type accepts no file.
    """
    text = settings.flag("check_text", options.check_text)
    setting = settings.text("check_image", str(options.check_image)).strip().lower()
    if setting == "false" or not setting:
        return common.checks(text=text)
    kinds, _ = image_types(allowed if setting == "true" else setting)
    return common.checks(text=text, images=kinds)


async def judge(file: File, checks: Checks) -> Status:
    """Return `Status.OK` if the checks accept the content type and the beginning of a file, else the reason."""
    return checks.judge(file.content_type, await file.sample(checks.sample))


def plain_refusal(key: str, file: File, status: Status) -> dict[str, object]:
    """Return the entry of a file that is not taken, for handlers without further members. key: of the handler."""
    return {**file_members(key, file.name, file.content_type, file.size), **result_members(status)}
