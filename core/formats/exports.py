"""Exports: the rows of a JSON endpoint as CSV, JSON lines or a spreadsheet, if a request asks for them.

A request asks by its header Accept (RFC 9110, 12.5.1) or by the parameter `format`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.result_shape import with_whole_composites
from rowcall.core.formats.table_formats import EXCEL, PARQUET, TableFormats, Workbooks
from rowcall.core.formats.workbook_names import content_disposition
from rowcall.core.sections.declaration import flag, section, text, texts
from rowcall.core.sections.values import or_empty

CSV, JSON_LINES, NDJSON = "text/csv", "application/jsonl", "application/x-ndjson"
FORMATS: Mapping[str, tuple[str, ...]] = {
    "csv": (CSV,),
    "jsonl": (JSON_LINES, NDJSON),
    "excel": (EXCEL,),
    "parquet": (PARQUET,),
}
"""Names of the formats, and their media types."""
_JSON = "application/json"
_TABLES = ("excel", "parquet")
"""Formats that are written by the same renderers as those of `table_format`."""


def _valid_format(text: str) -> str:
    name = text.lower()
    if name not in FORMATS:
        raise ValueError(f"{name!r} is none of {', '.join(FORMATS)}")
    return name


@section("Exports", "Rows of JSON endpoints as CSV, JSON lines, spreadsheets or Parquet, if requests ask for them.")
class ExportOptions(Record):
    """Options of exports. formats: those that are offered. parameter: its name in the query string; empty: none."""

    enabled: bool = flag("Enabled", False, "Offer exports of all endpoints that return a set of rows.")
    formats: tuple[str, ...] = texts(
        "Formats",
        (
            "csv",
            "jsonl",
            "excel",
        ),
        "Formats that are offered: csv, jsonl, excel, parquet. The last needs the extra rowcall[parquet].",
        each=_valid_format,
    )
    parameter: str = text(
        "Parameter",
        "format",
        "Parameter of the query string that names the format, besides the header Accept. Empty: none.",
        empty=True,
        convert=or_empty,
    )

    def formats_of(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Return the formats in which the result of an endpoint can be exported; empty: in none."""
        options, shape = endpoint.options, endpoint.shape
        if shape.path is not ResultPath.ROWS or not shape.is_set or not shape.named or not shape.columns:
            return ()
        if not shape.content_type.startswith(_JSON) or options.content_type is not None:
            return ()
        other = (
            options.raw, options.table_format, options.single, options.void, options.login, options.logout,
            options.upload, options.job, options.download, options.issued_token, options.mail, options.invalidates,
            options.proxy_out, options.events, options.status_column, options.headers_column, options.version_column,
            options.publishing,
        )  # fmt: skip
        if any(other) or endpoint.passes_through:
            return ()
        # Composites in cells have no notation in tables.
        return tuple(name for name in self.formats if name == "jsonl" or not options.nested)

    def media_types(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Return the media types that a request for the result of an endpoint may choose instead of JSON."""
        return tuple(media_type for name in self.formats_of(endpoint) for media_type in FORMATS[name])

    def by_parameter(self, endpoint: Endpoint) -> bool:
        """Return whether requests may choose by the parameter. They may not if it is switched off, or the endpoint has
        a parameter with this name in any case, or a column by which requests may filter (`queryable`)."""
        names = {item.api_name.lower() for item in endpoint.parameters}
        queryable = endpoint.options.queryable
        if queryable is not None and queryable.filter:
            names.update(*(column.names for column in endpoint.shape.columns))
        return bool(self.parameter) and self.parameter.lower() not in names


def with_export_format(endpoint: Endpoint, name: str, media_type: str, *, camel: bool) -> Endpoint:
    """Return a copy of the endpoint whose response is a file in one format, and is not cached.

    name: a key of `FORMATS`. media_type: one of its media types; only that of JSON lines has an effect. camel: keys are
    in camel case.
    """
    options = endpoint.options
    routine = endpoint.routine.name.strip('"')
    headers = tuple(item for item in options.headers if item[0].lower() not in ("content-type", "content-disposition"))
    if name in _TABLES:
        options = replace(options, table_format=name, caching=None, headers=headers)
        return replace(endpoint, options=options, table_shape=with_whole_composites(endpoint.shape, camel))
    file = ("Content-Disposition", content_disposition(f"{routine}.{name}"))
    options = replace(options, caching=None, headers=(*headers, file))
    if name == "jsonl":
        return replace(endpoint, options=replace(options, json_lines=True, content_type=media_type))
    options = replace(
        options, raw=True, csv=True, separator=",", new_line="\r\n", column_names=True,
        content_type="text/csv; charset=utf-8; header=present",
    )  # fmt: skip
    return replace(endpoint, options=options)


def export_format(endpoint: Endpoint) -> str:
    """Return the format in which an endpoint sends its rows, if it is not JSON: the media type for CSV and JSON lines
    (`with_export_format`), otherwise the text of `table_format`, which may contain a placeholder. Empty: the endpoint
    has none of these."""
    options = endpoint.options
    return (options.content_type or "") if options.csv or options.json_lines else options.table_format or ""


def with_exports(endpoint: Endpoint) -> Endpoint:
    """Return a copy of the endpoint whose responses have `Vary: Accept`."""
    return replace(endpoint, options=replace(endpoint.options, headers=(*endpoint.options.headers, ("Vary", "Accept"))))


def export_tables(name: str, formats: TableFormats) -> TableFormats:
    """Return table formats with one format: Parquet, or spreadsheets with the options of `formats`. name: `parquet` or
    `excel`."""
    if name == "parquet":
        return TableFormats(parquet=name)
    look = Workbooks() if formats.excel is None else formats.excel[1]
    return TableFormats(excel=("excel", look))


def preferred_format(accept: str, formats: tuple[str, ...]) -> tuple[str, str] | None:
    """Return name and media type of the format that a client prefers to JSON; None: JSON. accept: the header, may be
    empty. formats: names of those that are offered, the preferred one first.

    Only media types that the header names in full count as formats. If a format and JSON have equal weights, the format
    is preferred only if the header does not name JSON itself, as in `text/csv, */*`.
    """
    weights = dict(_weights(accept))
    # The most specific entry about JSON counts.
    best, best_weight = None, next((weights[name] for name in (_JSON, "application/*", "*/*") if name in weights), 0.0)
    for name in formats:
        for media_type in FORMATS[name]:
            weight = weights.get(media_type, 0.0)
            if weight > best_weight or (weight and weight == best_weight and _JSON not in weights and best is None):
                best, best_weight = (name, media_type), weight
    return best


_PART = re.compile(r"\s*([^;,\s]+/[^;,\s]+)\s*(?:;([^,]*))?")


def _weights(accept: str) -> Iterator[tuple[str, float]]:
    """Yield media type in lower case and weight of each entry of the header Accept. An entry that has no media type is
    skipped; a weight that is missing or malformed is 1."""
    for part in accept.split(","):
        match = _PART.match(part)
        if match is None:
            continue
        quality = re.search(r"\bq\s*=\s*([01](?:\.\d{0,3})?)", match[2] or "")
        yield match[1].lower(), float(quality[1]) if quality else 1.0
