"""Annotations about uploads: upload, and the settings of its handlers (uploads-3, uploads-6).

A setting applies to all handlers, or to one handler if its key is the prefix: `csv_row_command`. A value may contain
`{placeholders}`; it can be checked here only if it has none.
"""

from __future__ import annotations

from collections.abc import Callable

from rowcall.core.annotations.declaration import Annotation, Apply, Assign, BadValueError, Draft, Line, switch
from rowcall.core.annotations.sentences import reads_as_sentence
from rowcall.core.endpoint.capabilities import Upload
from rowcall.core.uploads.encodings import ENCODINGS, UnknownEncodingError, codec_name
from rowcall.core.uploads.row_errors import MOST_COLLECTED, error_handling
from rowcall.core.uploads.settings import MOST, is_number

HANDLERS = ("large_object", "file_system", "csv", "excel", "jsonl", "s3")
"""Default keys of the handlers."""

_STORES = ("large_object", "file_system", "s3")
"""Handlers that store files."""
_SHEETS = ("csv", "excel", "jsonl")
"""Handlers that read rows from files."""


def _upload(draft: Draft, line: Line) -> None:
    """Accept uploads, with the handlers or the parameter for metadata that the line names. Raises `BadValueError` for
    another form, and if the words behind `for` read as a sentence."""
    words = line.arguments
    if not words:
        draft.change_fields("upload", Upload(), enabled=True)
    elif words[0].lower() == "for" and len(words) > 1:
        if reads_as_sentence(line, words[1:], HANDLERS):
            raise BadValueError("this is taken for prose; expected: upload for <handler>, ...")
        draft.change_fields("upload", Upload(), enabled=True, handlers=words[1:])
    elif len(words) == 3 and [word.lower() for word in words[1:]] == ["as", "metadata"]:
        _metadata(draft, line, words[0])
    else:
        raise BadValueError("expected: upload, upload for <handler>, upload <parameter> as metadata")


def _metadata(draft: Draft, line: Line, word: str) -> None:
    """Accept uploads, and let the parameter that `word` names receive their metadata. If it does not exist, warn;
    uploads are accepted all the same."""
    name = draft.parameter_named(word)
    draft.change_fields("upload", Upload(), enabled=True, metadata=name)
    if name is None:
        draft.warn(line, f"the routine has no parameter {word}, so it does not get the metadata of uploads")


def _any_fault(value: str) -> str | None:
    """Accept any value: return None. A check returns the fault of a value as the end of a sentence, or None for a valid
    value."""
    return None


def _bool_fault(value: str) -> str | None:
    return None if value.lower() in ("true", "false") else "neither true nor false"


def _number_fault(value: str) -> str | None:
    return None if is_number(value) else f"no whole number up to {MOST}"


def _encoding_fault(value: str) -> str | None:
    try:
        codec_name(value)
    except UnknownEncodingError:
        return f"none of {', '.join(ENCODINGS)}"
    return None


def _image_check_fault(value: str) -> str | None:
    valid = any(word in _IMAGES for word in _image_words(value))
    return None if valid else f"neither true nor false nor a list of {', '.join(sorted(_IMAGES))}"


def _error_handling_fault(value: str) -> str | None:
    return None if error_handling(value) else f"none of abort, skip, collect, collect N with N up to {MOST_COLLECTED}"


def _image_words(value: str) -> list[str]:
    """Return the words of a value, in lower case."""
    return value.lower().replace(",", " ").split()


def _report_unknown_images(draft: Draft, word: str, value: str) -> None:
    """Warn of unknown image types. The other types of the value still apply (uploads-12). word: of the setting."""
    unknown = [word for word in _image_words(value) if word not in _IMAGES]
    if unknown and "{" not in value:
        listed = ", ".join(sorted(_IMAGES - {"true", "false"}))
        draft.warn(Line(f"{word} = {value}"), f"{', '.join(unknown)} is none of the image types {listed}")


_IMAGES = frozenset(("true", "false", "jpg", "jpeg", "png", "gif", "bmp", "tif", "tiff", "webp"))

_KINDS: dict[str, Callable[[str], str | None]] = {
    "<true or false>": _bool_fault,
    "<number>": _number_fault,
    "<encoding>": _encoding_fault,
    "<true, false or image types>": _image_check_fault,
    "<abort, skip or collect>": _error_handling_fault,
}


def assign_folder(draft: Draft, word: str, value: str) -> None:
    """Apply `path = <folder>`: the folder of uploaded files, not the path of the endpoint (uploads-5)."""
    _assign(_any_fault)(draft, word, value)


def _assign(check: Callable[[str], str | None]) -> Callable[[Draft, str, str], None]:
    """Return a function that applies `word = value` by adding the setting, and raises BadValueError for a wrong value.

    check: returns what is wrong with a value, or None; values with placeholders are not checked.
    """

    def assign(draft: Draft, word: str, value: str) -> None:
        wrong = None if "{" in value else check(value)
        if wrong is not None:
            raise BadValueError(f"'{value}' is {wrong}")
        others = tuple(pair for pair in draft.get("upload", Upload()).settings if pair[0] != word)
        draft.change_fields("upload", Upload(), settings=(*others, (word, value)))
        if check is _image_check_fault:
            _report_unknown_images(draft, word, value)

    return assign


def _setting(name: str, value: str, handlers: tuple[str, ...], meaning: str, *, keyword: bool = False) -> Annotation:
    """Return the annotation for a setting of upload handlers.

    value: kind of the value, as in the syntax. handlers: their names may be prefixes of the word. meaning: its
    description. keyword: the form without `=` is also accepted, because the specification shows it.
    """
    assign = _assign(_KINDS.get(value, _any_fault))

    def apply(draft: Draft, line: Line) -> None:
        assign(draft, line.keyword, line.rest)

    prefixed = (f"{handler}_{name}" for handler in handlers)
    return Annotation(
        name=name,
        aliases=(name, *(word for word in prefixed if word != "file_system_file_system_path")),
        syntax=f"{name} = {value}",
        description=meaning,
        apply=apply if keyword else None,
        assign_word=assign,
        minimum_words=2,
    )


UPLOAD = Annotation(
    name="upload",
    aliases=("upload",),
    syntax="upload [for <handler>, ... | <parameter> as metadata]",
    description="Accepts uploaded files and passes them to handlers: large_object, file_system, csv, excel, jsonl, s3. "
    "A parameter can receive the results as JSON.",
    apply=_upload,
)

_BOOL = "<true or false>"
_NUMBER = "<number>"

SETTINGS = (
    _setting("check_format", _BOOL, _SHEETS, "Uploads: check that a file has the format of the handler.", keyword=True),
    _setting(
        "fallback_handler",
        "<handler>",
        HANDLERS,
        "Uploads: handles the files that failed the check of the first handler.",
        keyword=True,
    ),
    _setting(
        "row_command",
        "<SQL>",
        _SHEETS,
        "Uploads: runs for each row: $1 its number, $2 its cells, $3 the result for the previous row, $4 the file.",
        keyword=True,
    ),
    _setting(
        "file_system_path",
        "<folder>",
        (),
        "Uploads: the folder of the file_system handler.",
        keyword=True,
    ),
    _setting(
        "stop_after_first_success",
        _BOOL,
        HANDLERS,
        "Uploads: a file that one handler has stored is not passed to further handlers.",
    ),
    _setting(
        "included_mime_types",
        "<pattern>, ...",
        HANDLERS,
        "Uploads: accept only content types that match; * matches any text and ? any character.",
    ),
    _setting("excluded_mime_types", "<pattern>, ...", HANDLERS, "Uploads: refuse content types that match."),
    _setting("buffer_size", _NUMBER, HANDLERS, "Uploads: number of bytes that are read and written at once."),
    _setting("test_buffer_size", _NUMBER, HANDLERS, "Uploads: number of bytes that the check for text reads."),
    _setting("non_printable_threshold", _NUMBER, HANDLERS, "Uploads: how many control characters a text may have."),
    _setting("check_text", _BOOL, _STORES, "Uploads: refuse files that are not text."),
    _setting(
        "check_image",
        "<true, false or image types>",
        _STORES,
        "Uploads: refuse files that are not images of these types.",
    ),
    _setting(
        "check_command",
        "<name>",
        HANDLERS,
        "Uploads: refuse files that this command of `Service:UploadOptions:CheckCommands` rejects.",
    ),
    _setting("oid", _NUMBER, ("large_object",), "Uploads: oid of the new large object."),
    _setting("unique_name", _BOOL, ("file_system", "s3"), "Uploads: store under a generated name."),
    _setting("create_path", _BOOL, ("file_system",), "Uploads: create the folder if it is missing."),
    _setting("file", "<name>", ("file_system", "s3"), "Uploads: store under this name."),
    _setting("bucket", "<name>", ("s3",), "Uploads: the bucket of the s3 handler."),
    _setting("s3_path", "<path>", (), "Uploads: prefix of the names of objects, followed by a /."),
    _setting("delimiters", "<characters>", ("csv",), "Uploads: each of these characters separates cells."),
    _setting("has_fields_enclosed_in_quotes", _BOOL, ("csv",), "Uploads: cells may be enclosed in quotes."),
    _setting("set_white_space_to_null", _BOOL, ("csv",), "Uploads: cells that contain only blanks are NULL."),
    _setting(
        "encoding",
        "<encoding>",
        ("csv",),
        "Uploads: encoding of the file, such as latin-1, windows-1252 or utf-16; utf-8 without this line.",
    ),
    _setting(
        "on_error",
        "<abort, skip or collect>",
        _SHEETS,
        "Uploads: rows that the database refuses end the request (abort, the default), are left out (skip), or are all "
        "listed in one error (collect, or collect and a number).",
    ),
    _setting(
        "map_columns",
        "<names>",
        _SHEETS,
        "Uploads: the first row has the names of the columns, and the cells come in the order of these names. JSON "
        "lines: the cells are the values of these members.",
    ),
    _setting("dry_run", _BOOL, _SHEETS, "Uploads: run everything, and roll it back at the end."),
    _setting("sheet_name", "<name>", ("excel",), "Uploads: the sheet that is read."),
    _setting("all_sheets", _BOOL, ("excel",), "Uploads: read every sheet."),
    _setting("time_format", "<format>", ("excel",), "Uploads: format of times, such as HH:mm:ss."),
    _setting("date_format", "<format>", ("excel",), "Uploads: format of dates, such as yyyy-MM-dd."),
    _setting("datetime_format", "<format>", ("excel",), "Uploads: format of dates with a time."),
    _setting("row_is_json", _BOOL, ("excel",), "Uploads: pass a row as a JSON object of its cells."),
)


def _turn_on(option: str) -> Apply:
    """Return a function that applies an annotation without arguments: it turns on a field of `Upload`, which implies
    `upload`. For a line with arguments, it raises `BadValueError`. option: the field."""

    def apply(draft: Draft, line: Line) -> None:
        if line.arguments:
            raise BadValueError("no argument is expected")
        draft.change_fields("upload", Upload(), enabled=True, **{option: True})

    return apply


def _assign_switch(option: str) -> Assign:
    """Return a function that applies `word = true|false`, in the words of `switch`, to a field of `Upload`. If it is
    on, this implies `upload`. For another word, it raises `BadValueError`. option: the field."""

    def assign(draft: Draft, value: str) -> None:
        on = switch(value)
        draft.change_fields("upload", Upload(), enabled=on or draft.get("upload", Upload()).enabled, **{option: on})

    return assign


RESUMABLE = Annotation(
    name="resumable",
    aliases=("resumable", "resumable_upload"),
    syntax="resumable",
    description="Uploads: a file may also be uploaded in chunks, over several requests, by the protocol tus 1.0: "
    "bytes that arrived before a connection broke need not be sent again. Implies `upload`.",
    apply=_turn_on("resumable"),
    assign=_assign_switch("resumable"),
)


PROGRESS = Annotation(
    name="upload_progress",
    aliases=("upload_progress",),
    syntax="upload_progress",
    description="Uploads: reports to subscribers of the endpoint's events how many bytes have arrived, as JSON: "
    '`{"received":65536,"of":1048576}`. Needs `sse`, and implies `upload`.',
    apply=_turn_on("progress"),
    assign=_assign_switch("progress"),
)

ANNOTATIONS = (UPLOAD, RESUMABLE, PROGRESS, *SETTINGS)
