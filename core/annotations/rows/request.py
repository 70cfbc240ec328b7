"""Annotations about reading requests: transport of values, body, headers, and texts that mean NULL."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, choose
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import HeadersMode, QueryNull
from rowcall.core.errors.refusals import ABSENT_STATUSES

_TRANSPORTS = {
    "query_string": Transport.QUERY,
    "query": Transport.QUERY,
    "body_json": Transport.BODY,
    "body": Transport.BODY,
}

_NULLS = {
    "empty_string": QueryNull.EMPTY_STRING,
    "empty": QueryNull.EMPTY_STRING,
    "null_literal": QueryNull.NULL_LITERAL,
    "null": QueryNull.NULL_LITERAL,
    "ignore": QueryNull.IGNORE,
}

_UNKNOWN_PARAMETERS = {"ignore": True, "refuse": False}

_HEADERS = {
    "ignore": HeadersMode.IGNORE,
    "context": HeadersMode.CONTEXT,
    "parameter": HeadersMode.PARAMETER,
}


def _param_type(draft: Draft, line: Line) -> None:
    draft.set(transport=choose(line.arguments[0], _TRANSPORTS))


def _query_null(draft: Draft, line: Line) -> None:
    if not line.arguments:
        raise BadValueError(f"a value is missing: one of {', '.join(_NULLS)}")
    draft.set(query_null=choose(line.arguments[0], _NULLS))


def _body_parameter(draft: Draft, line: Line) -> None:
    """Set the parameter that receives the body. A line with further words has no effect."""
    if len(line.arguments) == 1:
        draft.set(body_parameter=line.arguments[0])


def _headers_mode(draft: Draft, line: Line) -> None:
    if not line.arguments:
        raise BadValueError(f"a value is missing: one of {', '.join(_HEADERS)}")
    draft.set(request_headers=choose(line.arguments[0], _HEADERS))


def _headers_parameter(draft: Draft, line: Line) -> None:
    """Set the name, converted to lower case, of the parameter that receives the request headers. A line with further
    words has no effect."""
    if len(line.arguments) == 1:
        draft.set(headers_parameter=line.arguments[0].lower())


def _absent_status(draft: Draft, line: Line) -> None:
    word = line.arguments[0]
    if word not in map(str, ABSENT_STATUSES):
        raise BadValueError(f"'{word}' is none of {', '.join(map(str, ABSENT_STATUSES))}")
    draft.set(absent_status=int(word))


def _ignore_unknown_parameters(draft: Draft, line: Line) -> None:
    draft.set(ignores_unknown_parameters=choose(line.arguments[0], _UNKNOWN_PARAMETERS))


ANNOTATIONS = (
    Annotation(
        name="param_type",
        aliases=("request_param_type", "param_type"),
        syntax="request_param_type query_string|query|body_json|body",
        description="Where the values of parameters are: in the query string or in a JSON body.",
        apply=_param_type,
        minimum_words=2,
    ),
    Annotation(
        name="query_string_null_handling",
        aliases=("query_string_null_handling", "query_null_handling", "query_string_null", "query_null"),
        syntax="query_string_null_handling empty_string|null_literal|ignore",
        description="Texts in query and path that mean NULL: an empty text, the word null, or none.",
        apply=_query_null,
    ),
    Annotation(
        name="parameter_mismatch_status",
        aliases=("parameter_mismatch_status",),
        syntax="parameter_mismatch_status 404|400|422",
        description="Status if a required parameter is missing or a name is unknown, instead of that of "
        "`Service:ParameterMismatchStatusCode`.",
        apply=_absent_status,
        minimum_words=2,
    ),
    Annotation(
        name="unknown_query_parameters",
        aliases=("unknown_query_parameters",),
        syntax="unknown_query_parameters refuse|ignore",
        description="Whether names in the query that are not parameters are refused or ignored (`utm_source`), "
        "instead of the default in `Service:UnknownQueryParameters`.",
        apply=_ignore_unknown_parameters,
        minimum_words=2,
    ),
    Annotation(
        name="body_parameter_name",
        aliases=("body_parameter_name", "body_param_name"),
        syntax="body_parameter_name <parameter>",
        description="This parameter receives the whole body as text; the others are in the query string.",
        apply=_body_parameter,
        minimum_words=2,
    ),
    Annotation(
        name="request_headers_mode",
        aliases=("request_headers_mode", "request_headers"),
        syntax="request_headers_mode ignore|context|parameter",
        description="How the routine receives the request's headers, a JSON object: not at all, from the setting that "
        "Service:RequestHeadersContextKey names, or in a parameter with a default.",
        apply=_headers_mode,
    ),
    Annotation(
        name="request_headers_parameter_name",
        aliases=("request_headers_parameter_name", "request_headers_param_name", "request-headers-param-name"),
        syntax="request_headers_parameter_name <parameter>",
        description="The parameter, which must have a default, that receives the request's headers in the mode "
        "parameter.",
        apply=_headers_parameter,
        minimum_words=2,
    ),
)
