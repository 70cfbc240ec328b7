"""Options of an endpoint that accepts uploads, under the configuration (uploads-6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.capabilities import Upload
from rowcall.core.endpoint.endpoint import EndpointParameter, Options
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.uploads.row_command import check_numbers


@dataclass(frozen=True, slots=True)
class UploadNames:
    """Names of upload handlers in the configuration. Without handlers, uploads are disabled."""

    handlers: tuple[str, ...] = ()
    default_handler: str = "large_object"
    metadata_parameter: str | None = None
    """Name of the parameter that receives the metadata if the routine has it, in any case."""
    folders: tuple[str, ...] = ()
    """Keys of the handlers that write into folders."""
    in_transaction: bool = False
    """Uploads with every handler share the transaction of their routine."""
    folder_conflict: Callable[[str], str | None] | None = None
    """Function that returns why uploaded files must not be written into a folder, or None. None: folders are not
    checked."""


class UploadEndpoint:
    """`options` and `method` of an endpoint after its uploads have been checked against the configuration.

    refusals: messages because of which the endpoint is left out. diagnostics: other messages.
    """

    def __init__(
        self,
        options: Options,
        method: str,
        parameters: tuple[EndpointParameter, ...],
        known: UploadNames | None,
        used: Mapping[str, str],
        *,
        commits: bool = False,
    ) -> None:
        """Check the options. known: None: names are not checked. used: annotation → its line. commits: the object is a
        file that may commit."""
        self.options = options
        self.method = method
        self.diagnostics: tuple[str, ...] = ()
        self.refusals: tuple[str, ...] = ()
        upload = options.upload
        if upload is None:
            return
        if not upload.enabled:
            self.options = replace(options, upload=None)
            return
        if known is not None and not known.handlers:
            self.options = replace(options, upload=None)
            self.diagnostics = ("uploads are switched off: set Service:UploadOptions:Enabled; `upload` has no effect",)
            return
        self.diagnostics = tuple(_side_effects(options, method, used, upload))
        if known is not None:
            self.refusals = (
                *_unknown_handlers(upload, parameters, known),
                *_unsafe_folders(options, upload, parameters, known),
                *_invalid_commands(options, upload, known),
                *(_committed_handlers(upload, known) if commits else ()),
            )
        self.method = "POST"
        self.options = replace(
            options,
            transport=Transport.QUERY,
            body_parameter=None,
            upload=replace(
                upload if known is None else _with_configured_handlers(upload, parameters, known),
                resumable=upload.resumable and options.proxy is None and options.proxy_out is None,
            ),
        )

    def diagnostics_of(self, identity: str, used: Mapping[str, str]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each message in `diagnostics` and `refusals`, with the line of the annotation
        `upload`. Those of `refusals` report that the endpoint is left out. identity: of the object. used: annotation →
        its line."""
        for message in self.diagnostics:
            yield Diagnostic(identity, used.get("upload"), message)
        for message in self.refusals:
            yield Diagnostic(identity, used.get("upload"), message, left_out=1)


def _unknown_handlers(upload: Upload, parameters: tuple[EndpointParameter, ...], known: UploadNames) -> Iterator[str]:
    """Yield a message that names the handlers which the configuration does not have, and one for each such fallback
    handler. The endpoint is left out, because the default handler would store the files with other checks.

    A fallback handler with placeholders is known only during a request. If it does not exist then, the file is refused.
    """
    keys = {key.lower() for key in known.handlers}
    remedy = f"name one of {', '.join(known.handlers)}; the endpoint is left out"
    unknown = [name for name in upload.handlers if name.lower() not in keys]
    if unknown:
        yield f"there is no upload handler {', '.join(unknown)}: {remedy}"
    names = placeholder_names(parameters)
    for word, name in upload.settings:
        if not word.endswith("fallback_handler") or not parse_template(name, names).is_fixed:
            continue
        if name.strip().lower() not in {*keys, ""}:
            yield f"{word}: there is no upload handler {name}: {remedy}"


def _unsafe_folders(
    options: Options, upload: Upload, parameters: tuple[EndpointParameter, ...], known: UploadNames
) -> Iterator[str]:
    """Yield a message for each folder of the comment into which uploads must not be written (`folder_conflict`). Paths
    with placeholders are checked for each request."""
    keys = {key.lower() for key in known.folders}
    if known.folder_conflict is None or not keys:
        return
    words = {"path", "file_system_path", *(f"{key}_path" for key in keys)}
    names = placeholder_names(parameters)
    for word, text in (*upload.settings, *options.custom):
        if word.lower() not in words or not parse_template(text, names).is_fixed:
            continue
        reason = known.folder_conflict(text or ".")
        if reason is not None:
            yield f"uploaded files must not be written into {text or '.'}: {reason}; the endpoint is left out"


def _invalid_commands(options: Options, upload: Upload, known: UploadNames) -> Iterator[str]:
    """Yield a message for each row command of the comment that `check_numbers` refuses."""
    words = {"row_command", *(f"{key.lower()}_row_command" for key in known.handlers)}
    for word, text in (*upload.settings, *options.custom):
        if word.lower() in words:
            try:
                check_numbers(text)
            except ValueError as error:
                yield f"{word}: {error}; the endpoint is left out"


def _committed_handlers(upload: Upload, known: UploadNames) -> Iterator[str]:
    """Yield a message if the upload shares a transaction with its file, which the file would commit: then an error
    behind that could not undo the upload, and statements behind it would run without the settings of the request.
    """
    handlers = upload.handlers or (known.default_handler,)
    folders = {key.lower() for key in known.folders}
    shared = known.in_transaction or any(name.lower() not in folders for name in handlers)
    if shared or any(word.endswith("dry_run") for word, _ in upload.settings):
        yield "the file may commit, which ends the transaction that its uploads share; the endpoint is left out"


def _with_configured_handlers(upload: Upload, parameters: tuple[EndpointParameter, ...], known: UploadNames) -> Upload:
    """Return the upload with the names of handlers as configured, or the default handler if it names none of these,
    and with the parameter for metadata."""
    by_name = {key.lower(): key for key in known.handlers}
    handlers = tuple(by_name[name.lower()] for name in upload.handlers if name.lower() in by_name)
    metadata = upload.metadata
    if metadata is None and known.metadata_parameter is not None:
        name = known.metadata_parameter.lower()
        names = (
            parameter.db_name
            for parameter in parameters
            if name in (parameter.db_name.lower(), parameter.api_name.lower())
        )
        metadata = next(names, None)
    return replace(upload, handlers=handlers or (known.default_handler,), metadata=metadata)


def _side_effects(options: Options, method: str, used: Mapping[str, str], upload: Upload) -> Iterator[str]:
    """Yield a message for each setting of the endpoint that uploads change (method, parameters in the body), and for
    each setting of `upload` that has no effect with the other options (progress, resumable).

    method: before it becomes POST. used: annotation → its line.
    """
    if method != "POST":
        yield f"uploads require POST, which is the method instead of {method}"
    if ("param_type" in used and options.transport is Transport.BODY) or options.body_parameter is not None:
        yield "the body holds the files; parameters are taken from the query string"
    if upload.progress and (options.events is None or not options.events.publish):
        yield "upload_progress has no effect without sse or sse_publish, which publish it"
    if upload.resumable and (options.proxy is not None or options.proxy_out is not None):
        yield "resumable has no effect for a proxy, which forwards files while they arrive"
