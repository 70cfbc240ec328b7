"""Annotations about how a request is read: request_param_type, body_parameter_name, query_string_null_handling."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, choose
from rowcall.core.endpoint import QueryNull, Transport

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


def _param_type(draft: Draft, line: Line) -> None:
    draft.set(transport=choose(line.arguments[0], _TRANSPORTS))


def _query_null(draft: Draft, line: Line) -> None:
    if not line.arguments:
        raise BadValueError(f"a value is missing: one of {', '.join(_NULLS)}")
    draft.set(query_null=choose(line.arguments[0], _NULLS))


def _body_parameter(draft: Draft, line: Line) -> None:
    if len(line.arguments) == 1:
        draft.set(body_parameter=line.arguments[0])


ANNOTATIONS = (
    Annotation(
        name="param_type",
        aliases=("request_param_type", "param_type"),
        syntax="request_param_type query_string|query|body_json|body",
        description="Where parameters travel: in the query string or in a JSON body.",
        apply=_param_type,
        minimum_words=2,
    ),
    Annotation(
        name="query_string_null_handling",
        aliases=("query_string_null_handling", "query_null_handling", "query_string_null", "query_null"),
        syntax="query_string_null_handling empty_string|null_literal|ignore",
        description="Which query and path texts mean NULL: an empty one, the word null, or none.",
        apply=_query_null,
    ),
    Annotation(
        name="body_parameter_name",
        aliases=("body_parameter_name", "body_param_name"),
        syntax="body_parameter_name <parameter>",
        description="This parameter receives the whole body as text; the others travel in the query string.",
        apply=_body_parameter,
        minimum_words=2,
    ),
)
