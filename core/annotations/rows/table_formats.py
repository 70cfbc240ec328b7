"""Annotations about results as HTML tables and spreadsheets: table_format, excel_file_name, excel_sheet."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, Apply, Assign, BadValueError, Draft, Line


def _format(draft: Draft, line: Line) -> None:
    if len(line.arguments) != 1:
        raise BadValueError("one format name is expected, or one {parameter}")
    draft.set(table_format=line.arguments[0])


def _rest_of_line(option: str) -> Apply:
    """Return a function that sets an option to everything after the keyword, with blanks and commas. option: field of
    `Options`."""

    def apply(draft: Draft, line: Line) -> None:
        draft.set(**{option: line.rest})

    return apply


def _assign_text(option: str) -> Assign:
    """Return a function that applies `word = text`. For an empty text, it raises `BadValueError`. option: field of
    `Options`."""

    def assign(draft: Draft, value: str) -> None:
        if not value:
            raise BadValueError("a value is missing after the =")
        draft.set(**{option: value})

    return assign


ANNOTATIONS = (
    Annotation(
        name="table_format",
        aliases=("table_format",),
        syntax="table_format = html|excel|{parameter}",
        description="Sends the rows as an HTML table or as a spreadsheet; with a parameter, each request chooses. An "
        "unknown name gives JSON.",
        apply=_format,
        assign=_assign_text("table_format"),
        minimum_words=2,
    ),
    Annotation(
        name="excel_file_name",
        aliases=("excel_file_name",),
        syntax="excel_file_name = <text, with {parameter}s>",
        description="File name of the downloaded spreadsheet; `.xlsx` is added if it is missing.",
        apply=_rest_of_line("excel_file_name"),
        assign=_assign_text("excel_file_name"),
        minimum_words=2,
    ),
    Annotation(
        name="excel_sheet",
        aliases=("excel_sheet",),
        syntax="excel_sheet = <text, with {parameter}s>",
        description="Name of the worksheet.",
        apply=_rest_of_line("excel_sheet"),
        assign=_assign_text("excel_sheet"),
        minimum_words=2,
    ),
)
