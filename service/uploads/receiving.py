"""The step that stores the files of a request, runs the routine with their metadata, and makes both permanent or
neither (uploads-7, uploads-11).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

from python_multipart.multipart import parse_options_header

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.resolved_parameters import metadata_parameter
from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.entries import Entry, metadata
from rowcall.core.uploads.options import shares_transaction
from rowcall.core.uploads.settings import ClimbingPathError
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.log import VERBOSE
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.request.body import body_chunks
from rowcall.service.request_context.arguments import set_argument
from rowcall.service.request_context.header_values import read_header
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.uploads.checking import passes
from rowcall.service.uploads.digests import with_digest_check
from rowcall.service.uploads.folders import Folders
from rowcall.service.uploads.handler import FormatError, Handler, Turn
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.multipart import Form
from rowcall.service.uploads.progress import ProgressReporter, progress_of_body, with_progress
from rowcall.service.uploads.row_commands.tolerant import refuse_rows
from rowcall.service.uploads.spool import set_aside, wait_for_thread
from rowcall.service.uploads.storing import HandlerFactory, handler_factories

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

MULTIPART = b"multipart/form-data"
URLENCODED = b"application/x-www-form-urlencoded"


Files = Callable[[], AsyncIterator[File]]
"""Yields the files of a request in their order; each has to be read before the next one."""


class UploadStep:
    """The upload step of one endpoint."""

    def __init__(self, endpoint: Endpoint, call: Call, services: Services) -> None:
        upload = endpoint.options.upload
        assert upload is not None  # noqa: S101 (asked only for endpoints that take files)
        options = services.options.uploads
        self._endpoint = endpoint
        self._call = call
        self._database: Database = services.database
        self._options = options
        self._limit = services.options.http.limits.body_size
        self._time_limit = services.options.http.slow_client
        self._factories = handler_factories(endpoint, services)
        self._by_name = {key.lower(): factory for key, factory in self._factories.items()}
        self._keys = upload.handlers or (options.default_handler,)
        self._metadata = metadata_parameter(endpoint)
        self._in_transaction = services.options.wrap_in_transaction or shares_transaction(endpoint, options)
        self._reports_progress = upload.progress
        self._adds_claims = bool(options.common.claims_key)

    async def receive(self, context: RequestContext, files: Files | None = None) -> None:
        """Store the files, run the routine, and put its result into the request context. Files and effects of the
        routine are permanent then, or, in a dry run, undone. A refused file is no error; its entry has the reason.

        files: if they have arrived already; None: they are read from the form in the request.

        Raises (the files are undone, and so is the routine, except what a procedure without a shared transaction has
        committed; if the connection was lost during the commit, the files stay):
            Problem: the files cannot be read or stored, or the routine fails.
            OSError: the stored files cannot be made permanent.
            ClientDisconnectedError: the client has disconnected.
        """
        loop = asyncio.get_running_loop()
        folders = Folders(self._options.protected)
        cleanup = contextlib.ExitStack()
        transaction = self._database.transaction(self._call, context)
        user = context.user
        claims = user.json if user is not None and self._adds_claims else None
        turn = Turn(context, transaction, folders, claims, cleanup, body_read=files is not None)
        if self._reports_progress and self._call.hear is not None:
            listener = self._call.hear(context)
            has_body = files is None
            turn.progress = (
                progress_of_body(context.scope, listener) if has_body else ProgressReporter(listener, None, None)
            )
        try:
            async with transaction:
                result = metadata(await self._take_files(context, turn, files))
                refuse_rows(turn.row_errors)
                if self._metadata is not None:
                    set_argument(context, self._metadata, result)
                await self._run(context, turn, result)
            if turn.dry_run:
                await _undo(turn)
        except BaseException as error:
            # For cancelled requests too: the files are removed unless their rows may exist.
            await asyncio.shield(_leave(turn) if transaction.in_doubt else _undo(turn))
            if isinstance(error, Problem) and not turn.body_read:
                error.headers = (*(item for item in error.headers if item[0] != "connection"), ("connection", "close"))
            raise
        finally:
            cleanup.close()
        # Also for a request that is cancelled now: it is committed.
        await asyncio.shield(loop.run_in_executor(None, folders.finish))

    async def _run(self, context: RequestContext, turn: Turn, metadata_json: bytes) -> None:
        """Run the routine with the metadata, and make its effects and the files permanent, in one transaction if there
        is one. In a dry run, nothing is made permanent. metadata_json: of all files, for the setting that the options
        name. Raises `Problem`, and `OSError` as `_settle` does."""
        key = self._options.context_key
        if not self._in_transaction and key is None and not turn.dry_run:
            await self._database.run_alone(self._call, context)
            await _settle(turn)
            return
        transaction = turn.transaction
        if key is not None:
            await transaction.set([key.encode(), metadata_json])
        await transaction.call()
        if turn.dry_run:
            return  # without a commit, everything is rolled back
        await _settle(turn)
        await transaction.commit()

    # --- files -------------------------------------------------------------------------------------------------------

    async def _take_files(self, context: RequestContext, turn: Turn, files: Files | None) -> list[Entry]:
        """Pass the files to the handlers, and return the entries of all. Sets `turn.dry_run`."""
        handlers = self._handlers(context, turn)
        turn.dry_run = any(handler.common.dry_run for handler in handlers)
        source = self._files_of_request(context, turn) if files is None else files()
        if len(handlers) == 1:
            return [entry async for file in source for entry in await self._take(handlers[0], file, turn)]
        return await self._take_by_all(handlers, source, turn)

    async def _files_of_request(self, context: RequestContext, turn: Turn) -> AsyncIterator[File]:
        """Yield the files of the form in the request; none for a form that cannot contain files."""
        form = _form(context)
        pieces = self._pieces(context, turn)
        if form is None:
            async for _ in pieces:
                pass
            return
        async for file in form.files(pieces):
            yield file

    async def _pieces(self, context: RequestContext, turn: Turn) -> AsyncIterator[bytes]:
        """Yield the body of the request, verified against its digest, and report progress. Sets `turn.body_read` at its
        end. Raises `Problem` as `body_chunks` and `with_digest_check` do.
        """
        pieces = body_chunks(context.scope, context.protocol, self._limit, self._time_limit)
        pieces = with_digest_check(context.scope, pieces)
        if turn.progress is not None:
            pieces = with_progress(pieces, turn.progress)
        async for piece in pieces:
            yield piece
        turn.body_read = True

    def _handlers(self, context: RequestContext, turn: Turn) -> list[Handler]:
        """Return the handlers for a request, in the order of the comment. Raises `Problem`: 500 for an unknown handler,
        400 if a value of the request would lead out of the folder of uploads.
        """
        missing = next((key for key in self._keys if key not in self._factories), None)
        if missing is not None:
            raise Problem(500, f"the upload handler {missing} is none of {', '.join(self._factories)}")
        handlers = [_new_handler(self._factories[key], turn) for key in self._keys]
        if self._options.log_parameters:
            log.log(VERBOSE, "%s: upload by %s", self._endpoint.name, ", ".join(self._keys))
        return handlers

    async def _take_by_all(self, handlers: Sequence[Handler], files: AsyncIterator[File], turn: Turn) -> list[Entry]:
        """Pass the files to several handlers and return the entries of all. Each handler takes all files before the
        next one does, so the files are spooled.
        """
        stored_files = [turn.cleanup.enter_context(await set_aside(file)) async for file in files]
        entries: list[Entry] = []
        for handler in handlers:
            before = frozenset(turn.stored)
            for stored in stored_files:
                entries += await self._take(handler, stored.file(), turn, before)
        return entries

    async def _take(
        self, handler: Handler, file: File, turn: Turn, before: frozenset[str] = frozenset()
    ) -> list[Entry]:
        """Store a file with a handler, if it passes the check command; if the handler does not take the file, with its
        fallback handler. A file that an earlier handler has stored is ignored, if the handler's settings say so.

        Returns the entries of the file in the result, also if it is refused. before: names of the files that earlier
        handlers have stored.
        """
        if handler.common.stop_after_first_success and file.name.casefold() in before:
            return await self._refuse(handler, file, Status.IGNORED)
        command = handler.common.check_command
        if command is not None:
            stored = turn.cleanup.enter_context(await set_aside(file))
            file = stored.file()
            if not await passes(self._command(command), stored):
                return await self._refuse(handler, file, Status.REJECTED)
        status, file, entries = await self._try(handler, file)
        fallback = self._by_name.get((handler.common.fallback or "").strip().lower())
        if status is not Status.OK and fallback is not None:
            # One level only: the other handler has the same settings, and with them the same fallback.
            handler = _new_handler(fallback, turn)
            status, file, entries = await self._try(handler, file)
        if status is not Status.OK:
            return await self._refuse(handler, file, status)
        turn.stored.add(file.name.casefold())
        if self._options.log_event:
            self._say(logging.INFO, "stored", handler, file, status)
        return entries

    def _command(self, name: str) -> tuple[str, ...]:
        """Return the check command of this name. Raises `Problem` 500 for an unknown name. Only the operator defines
        commands; comments and requests can only name one of them."""
        command = self._options.checks.get(name.strip())
        if command is None:
            log.error("%s: check_command %s is none of Service:UploadOptions:CheckCommands", self._endpoint.name, name)
            raise Problem(500, "uploaded files cannot be checked; the log of the service has the reason")
        return command

    @staticmethod
    async def _try(handler: Handler, file: File) -> tuple[Status, File, list[Entry]]:
        """Check and store a file. Return its status, the file, and its entries in the result. If the handler does not
        take it, there are no entries, and the returned file is unread.
        """
        status, file = await handler.check(file)
        if status is not Status.OK:
            return status, file, []
        try:
            return status, file, await handler.store(file)
        except FormatError as error:
            return Status.INVALID_FORMAT, error.file, []

    async def _refuse(self, handler: Handler, file: File, status: Status) -> list[Entry]:
        """Read a refused file to its end, log a warning, and return its entries. status: the reason."""
        await file.drain()
        self._say(logging.WARNING, "refused", handler, file, status)
        return handler.refusal_entries(file, status)

    def _say(self, level: int, what: str, handler: Handler, file: File, status: Status) -> None:
        """Log what a handler has done with a file. what: `stored` or `refused`."""
        log.log(
            level,
            "%s: %s has %s %s [%s, %d bytes]: %s",
            self._endpoint.name,
            handler.key,
            what,
            escape_unprintable(file.name),
            escape_unprintable(file.content_type),
            file.size,
            status.value,
        )


def _new_handler(factory: HandlerFactory, turn: Turn) -> Handler:
    """Return a handler for a request. Raises `Problem` 400 if a value of the request would lead out of the folder of
    uploads.
    """
    try:
        return factory(turn)
    except ClimbingPathError:
        raise Problem(400, "a value of the request would lead out of the folder for uploaded files") from None


async def _settle(turn: Turn) -> None:
    """Make permanent what handlers have stored outside the database: files, and objects of a store. Raises `OSError`,
    and `Problem` if a store fails.
    """
    await wait_for_thread(asyncio.get_running_loop().run_in_executor(None, turn.folders.settle))
    for item in turn.pending:
        await item.settle()


async def _undo(turn: Turn) -> None:
    """Remove what handlers have stored outside the database: files, and objects of a store."""
    await asyncio.get_running_loop().run_in_executor(None, turn.folders.undo)
    for item in turn.pending:
        await item.undo()


async def _leave(turn: Turn) -> None:
    """Leave and log what handlers have stored outside the database, because the transaction may have taken effect."""
    await asyncio.get_running_loop().run_in_executor(None, turn.folders.leave)
    for item in turn.pending:
        item.leave()


def _form(context: RequestContext) -> Form | None:
    """Return the parser of the form, or None for a form that cannot contain files. Raises `Problem`: 415 for other
    content types, 400 without a boundary.
    """
    content_type = read_header(context.scope.headers, "content-type") or ""
    kind, options = parse_options_header(content_type)
    if kind == URLENCODED:
        return None
    if kind != MULTIPART:
        detail = f"Incorrect Content-Type: {escape_unprintable(content_type[:200])} (files come as multipart/form-data)"
        raise Problem(415, detail, headers=(("connection", "close"),))
    if not options.get(b"boundary"):
        raise Problem(400, "the header Content-Type names no boundary of the form", headers=(("connection", "close"),))
    return Form(options[b"boundary"])
