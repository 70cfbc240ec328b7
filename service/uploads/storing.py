"""The upload handlers of an endpoint, prepared once. For a request, they need only its values and its transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.core.uploads.options import Csv, Excel, Folder, HandlerOptions, JsonLines, LargeObjects, ObjectStore
from rowcall.core.uploads.row_command import row_command
from rowcall.core.uploads.settings import HandlerSettings, SettingTemplates
from rowcall.service.response.headers import argument_text
from rowcall.service.uploads.file_system import FileSystem
from rowcall.service.uploads.handler import Handler, Turn
from rowcall.service.uploads.large_object import LargeObject
from rowcall.service.uploads.object_store.handler import ObjectStorage
from rowcall.service.uploads.row_commands.batching import BatchCallProvider
from rowcall.service.uploads.row_commands.calls import large_object_commands, row_call
from rowcall.service.uploads.row_commands.delimited_rows import DelimitedRows
from rowcall.service.uploads.row_commands.json_lines import JsonLineRows
from rowcall.service.uploads.row_commands.spreadsheet import Spreadsheet
from rowcall.service.uploads.row_commands.text_file import RowCalls

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


HandlerFactory = Callable[[Turn], Handler]
"""Creates a handler for a request. Raises `ClimbingPathError`."""


def handler_factories(endpoint: Endpoint, services: Services) -> Mapping[str, HandlerFactory]:
    """Return the factories of all configured handlers by their keys in the configuration, as an endpoint may name any
    of them as its fallback. endpoint: one that takes uploads."""
    handlers = services.options.uploads.handlers
    return {key: _factory(key, options, endpoint, services) for key, options in handlers.items()}


def _factory(key: str, options: HandlerOptions, endpoint: Endpoint, services: Services) -> HandlerFactory:
    """Return the factory of one handler, whose commands are prepared once. key: of the handler in the configuration."""
    upload = endpoint.options.upload
    assert upload is not None  # noqa: S101 (asked only for endpoints that take files)
    names = placeholder_names(endpoint.parameters)
    path_alias = "file_system_path" if isinstance(options, Folder) else None
    templates = SettingTemplates(upload, endpoint.options.custom, key, names, path_alias)
    common = services.options.uploads.common

    def settings(turn: Turn) -> HandlerSettings:
        return templates.fill(partial(argument_text, turn.context))

    if isinstance(options, Folder):
        return lambda turn: FileSystem(key, options, common, settings(turn), turn)
    if isinstance(options, LargeObjects):
        commands = large_object_commands(endpoint, services)
        return lambda turn: LargeObject(key, options, common, settings(turn), turn, commands)
    if isinstance(options, ObjectStore):
        client = services.client
        assert client is not None  # noqa: S101 (`client_of` makes one for this handler)
        bucket = templates.text_of("bucket")
        named = bucket is None or parse_template(bucket, names).is_fixed

        def object_storage(turn: Turn) -> Handler:
            return ObjectStorage(key, options, common, settings(turn), turn, client, named=named)

        # The object is created between the routine and the end of its transaction.
        return object_storage
    text = templates.text_of("row_command") or options.row_command
    if isinstance(options, Csv | JsonLines):
        as_json = isinstance(options, JsonLines) and templates.text_of("map_columns") is None
        command = row_command(text, names, cells_are_json=as_json)
        running = RowCalls(
            command, row_call(endpoint, services, command), BatchCallProvider(endpoint, services, command)
        )

        def lines(turn: Turn) -> Handler:
            parts = (common, settings(turn), turn, running)
            return (
                DelimitedRows(key, options, *parts) if isinstance(options, Csv) else JsonLineRows(key, options, *parts)
            )

        return lines
    return _spreadsheet(key, options, text, templates, endpoint, services)


def _spreadsheet(
    key: str, options: Excel, text: str, templates: SettingTemplates, endpoint: Endpoint, services: Services
) -> HandlerFactory:
    """Return the factory of `excel`. Rows as arrays and rows as JSON need commands with different types, and a
    placeholder may decide between them. text: its row command. templates: its settings.
    """
    names = placeholder_names(endpoint.parameters)
    common = services.options.uploads.common
    commands = {as_json: row_command(text, names, cells_are_json=as_json) for as_json in (False, True)}
    calls = {as_json: row_call(endpoint, services, command) for as_json, command in commands.items()}
    batchings = {
        as_json: BatchCallProvider(endpoint, services, command, own_about=True) for as_json, command in commands.items()
    }

    def make(turn: Turn) -> Handler:
        settings = templates.fill(partial(argument_text, turn.context))
        return Spreadsheet(key, options, common, settings, turn, commands, calls, batchings)

    return make
