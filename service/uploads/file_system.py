"""The handler `file_system`: files into a folder (uploads-15)."""

from __future__ import annotations

import asyncio
import uuid

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.entries import Entry, file_members, result_members
from rowcall.core.uploads.names import extension, file_name
from rowcall.core.uploads.options import Common, Folder
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.service.uploads.folders import Incomplete, MissingFolderError, ProtectedFolderError
from rowcall.service.uploads.handler import HandlerCommon, Turn, judge, stored_file_checks
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.spool import not_stored, wait_for_thread, write_all


class FileSystem:
    """Stores the files of one request in a folder."""

    def __init__(self, key: str, options: Folder, common: Common, settings: HandlerSettings, turn: Turn) -> None:
        self.key = key
        self.common = HandlerCommon(settings, common)
        self._turn = turn
        self._checks = stored_file_checks(self.common, settings, options, common.image_types)
        self._path = settings.text("path", options.path) or "."
        self._unique = settings.flag("unique_name", options.unique_name)
        self._create = settings.flag("create_path", options.create_path)
        self._name = settings.text_or_none("file") or None
        self._names: dict[int, str] = {}

    async def check(self, file: File) -> tuple[Status, File]:
        return await judge(file, self._checks), file

    async def store(self, file: File) -> list[Entry]:
        """Store the file in the folder, and return its entry. Raises `Problem`: 500 if the folder is missing, 400 if it
        is protected, 507 if the disk is full, 500 for its other errors.
        """
        loop = asyncio.get_running_loop()
        name = self._name_for(file)
        try:
            incomplete = await wait_for_thread(loop.run_in_executor(None, self._begin))
            try:
                await write_all(file, incomplete.target)
                await wait_for_thread(loop.run_in_executor(None, incomplete.place, name))
            except BaseException:
                incomplete.drop()
                raise
        except MissingFolderError as error:
            raise Problem(500, f"the folder {error} for uploaded files does not exist") from None
        except ProtectedFolderError:
            raise Problem(400, "files must not be stored in the folder of this request") from None
        except OSError as error:
            raise not_stored(error, f"the file cannot be stored in {self._path}") from None
        return [self._entry(file, name, Status.OK)]

    def refusal_entries(self, file: File, status: Status) -> list[Entry]:
        return [self._entry(file, self._name_for(file), status)]

    def _begin(self) -> Incomplete:
        return self._turn.folders.begin(self._path, create=self._create)

    def _name_for(self, file: File) -> str:
        """Return the name in the folder: a new unique one with the same extension, if the settings say so, else that of
        the settings or of the client, made safe.
        """
        requested = self._name or file.name
        return f"{uuid.uuid4()}{extension(requested)}" if self._unique else file_name(requested)

    def _entry(self, file: File, name: str, status: Status) -> Entry:
        return {
            **file_members(self.key, file.name, file.content_type, file.size),
            "filePath": f"{self._path.rstrip('/') or ''}/{name}",
            **result_members(status),
        }
