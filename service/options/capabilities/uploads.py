"""Read `Service:UploadOptions` (uploads-1, uploads-2), and `Downloads`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rowcall.core.config import Settings
from rowcall.core.downloads.options import DownloadOptions
from rowcall.core.outgoing.aws_signature import Credentials
from rowcall.core.uploads.checks import IMAGE_TYPES, image_types
from rowcall.core.uploads.options import (
    Common,
    Csv,
    Excel,
    Folder,
    HandlerOptions,
    JsonLines,
    LargeObjects,
    ObjectStore,
    Resumable,
    StoreCredentials,
    UploadOptions,
)
from rowcall.core.uploads.protected_folders import ProtectedFolders
from rowcall.service.options.server.protected_folders import protected_folders
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

_P = "Service:UploadOptions:"
_H = _P + "UploadHandlers:"


def upload_options(settings: Settings) -> UploadOptions:
    """Return the options of uploads, without handlers if uploads are disabled.

    Raises `StartupError` for a folder into which uploads must not be written, and for an S3 handler without
    credentials.
    """
    handlers = _handlers(settings) if settings.is_enabled(UploadOptions) else {}
    protected = protected_folders(settings)
    options = settings.read(UploadOptions, common=settings.read(Common), handlers=handlers, protected=protected)
    if handlers and options.default_handler not in handlers:
        log.warning(
            "%sDefaultUploadHandler: '%s' is none of the handlers %s; endpoints that name no handler accept no files",
            _P,
            options.default_handler,
            ", ".join(handlers),
        )
    _, unknown = image_types(options.common.image_types)
    if handlers and unknown:
        log.warning(
            "%sAllowedImageTypes: %s is none of the image types %s",
            *(_H, ", ".join(unknown), ", ".join(sorted(IMAGE_TYPES))),
        )
    if handlers:
        _check_folders(handlers.values(), options.resumable, protected)
    return options


def download_options(settings: Settings, uploads: UploadOptions) -> DownloadOptions:
    """Return the options of downloads. Without `Downloads:Folders`, the folders are those of the upload handlers.

    uploads: options with the handlers and the protected folders. Raises `StartupError` for a folder with files of the
    service itself.
    """
    options = settings.read(DownloadOptions)
    names = options.folders or tuple(
        handler.path for handler in uploads.handlers.values() if isinstance(handler, Folder)
    )
    folders = tuple(os.path.realpath(name) for name in names)
    for name, folder in zip(names, folders, strict=True):
        reason = uploads.protected.conflict(folder)
        if reason is not None:
            raise StartupError(f"Downloads:Folders: files of {name} must not be sent: {reason}")
    return replace(options, folders=folders)


def _check_folders(handlers: Iterable[HandlerOptions], resumable: Resumable, protected: ProtectedFolders) -> None:
    folders = [(f"{_H}FileSystemPath", handler.path) for handler in handlers if isinstance(handler, Folder)]
    if resumable.folder is not None:
        folders.append((f"{_P}Resumable:Path", resumable.folder))
    for key, folder in folders:
        reason = protected.conflict(os.path.realpath(folder))
        if reason is not None:
            raise StartupError(
                f"{key}: uploaded files must not be written into {folder}: {reason}; name another folder"
            )


@dataclass(frozen=True, slots=True)
class FolderCheck:
    """Callable that returns why uploads must not be written into a folder, or None."""

    protected: ProtectedFolders

    def __call__(self, folder: str) -> str | None:
        return self.protected.conflict(os.path.realpath(folder))


def _handlers(settings: Settings) -> dict[str, HandlerOptions]:
    """Return the enabled handlers by name. The handlers for workbooks and JSON lines count only if another one is
    enabled (uploads-1). Raises `StartupError` for an S3 handler without credentials."""
    plain = _enabled_handlers(settings, LargeObjects, Folder, Csv)
    if settings.is_enabled(ObjectStore):
        plain.append(_object_store(settings))
    other = _enabled_handlers(settings, Excel, JsonLines) if plain else []
    return {handler.key: handler for handler in (*plain, *other)}


def _enabled_handlers(settings: Settings, *kinds: type[HandlerOptions]) -> list[HandlerOptions]:
    return [handler for kind in kinds if (handler := settings.read_enabled(kind)) is not None]


def _object_store(settings: Settings) -> ObjectStore:
    """Return the options of the S3 handler. Raises `StartupError` without credentials."""
    store = settings.read(ObjectStore, credentials=_credentials(settings))
    return replace(
        store,
        endpoint=store.endpoint or f"https://s3.{store.region}.amazonaws.com",
        path_style=bool(store.endpoint) if store.path_style is None else store.path_style,
    )


def _credentials(settings: Settings) -> Credentials:
    keys = settings.read(StoreCredentials)
    key_id = keys.key_id or os.environ.get("AWS_ACCESS_KEY_ID")
    secret = keys.secret or os.environ.get("AWS_SECRET_ACCESS_KEY")
    token = keys.token or os.environ.get("AWS_SESSION_TOKEN")
    if not key_id or not secret:
        raise StartupError(
            f"{_H}S3UploadEnabled needs S3AccessKeyId and S3SecretAccessKey beside it, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY in the environment"
        )
    return Credentials(key_id, secret, token or None)
