"""Errors of PostgREST's interface: code, status and the four members of their body.

Source: PostgREST's documentation, Errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson


class ApiError(Exception):
    """The response to a request is an error.

    status: HTTP status. code: `PGRST…` or an SQLSTATE. details: text, None, or a list of objects (`PGRST201` only).
    headers: sent in addition to those of each error; names become lower case. reason: reason phrase, if it is not the
    standard one; the HTTP servers of this service cannot send it.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Any = None,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
        reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.details = details
        self.hint = hint
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.reason = reason

    def body(self, minimal: bool = False) -> bytes:
        """Return the JSON body, keys in alphabetical order. minimal: only `code` and `message`."""
        if minimal:
            return orjson.dumps({"code": self.code, "message": self.message})
        return orjson.dumps(
            {"code": self.code, "details": self.details, "hint": self.hint, "message": self.message},
        )


def syntax_error(what: str, text: str, place: str, details: str) -> ApiError:
    """Return the error of a parameter that the grammar refuses. what: name of the parameter. place: line and column in
    parentheses. details: what is unexpected and what was expected."""
    return ApiError(400, "PGRST100", f'"failed to parse {what} ({text})" {place}', details)


def rpc_method(method: str) -> ApiError:
    return ApiError(405, "PGRST101", f"Cannot use the {method} method on RPC")


def invalid_body(message: str) -> ApiError:
    return ApiError(400, "PGRST102", message)


def invalid_utf8(rest: bytes) -> ApiError:
    """Return PostgreSQL's error of a text that is not UTF-8. rest: the text from the first invalid byte on."""
    first = rest[0]
    length = 2 if first >> 5 == 0b110 else 3 if first >> 4 == 0b1110 else 4 if first >> 3 == 0b11110 else 1
    shown = " ".join(f"0x{byte:02x}" for byte in rest[:length])
    return ApiError(400, "22021", f'invalid byte sequence for encoding "UTF8": {shown}')


def unsatisfiable_range(details: str) -> ApiError:
    return ApiError(416, "PGRST103", "Requested range not satisfiable", details)


NEGATIVE_LIMIT = "Limit should be greater than or equal to zero."
REVERSED_RANGE = "The lower boundary must be lower than or equal to the upper boundary in the Range header."


def offset_beyond(offset: int, total: int) -> ApiError:
    return unsatisfiable_range(f"An offset of {offset} was requested, but there are only {total} rows.")


def put_filters() -> ApiError:
    return ApiError(405, "PGRST105", "Filters must include all and only primary key columns with 'eq' operators")


def invalid_schema(name: str, exposed: Iterable[str]) -> ApiError:
    hint = f"Only the following schemas are exposed: {', '.join(exposed)}"
    return ApiError(406, "PGRST106", f"Invalid schema: {name}", hint=hint)


def no_media_type(types: Iterable[str]) -> ApiError:
    return ApiError(406, "PGRST107", f"None of these media types are available: {', '.join(types)}")


def not_embedded(name: str) -> ApiError:
    hint = f"Verify that '{name}' is included in the 'select' query parameter."
    return ApiError(400, "PGRST108", f"'{name}' is not an embedded resource in this request", hint=hint)


def target_has_alias(name: str, alias: str) -> ApiError:
    return ApiError(
        400,
        "PGRST108",
        f"'{name}' is not an embedded resource in this request",
        "Target names are not allowed in filters if they have an alias",
        f"Change '{name}' to '{alias}' in filters, orders or limits.",
    )


def invalid_response_headers() -> ApiError:
    message = "response.headers guc must be a JSON array composed of objects with a single key and a string value"
    return ApiError(500, "PGRST111", message)


def invalid_response_status() -> ApiError:
    return ApiError(500, "PGRST112", "response.status guc must be a valid status code")


def put_range() -> ApiError:
    return ApiError(400, "PGRST114", "limit/offset querystring parameters are not allowed for PUT")


def put_mismatch() -> ApiError:
    return ApiError(400, "PGRST115", "Payload values do not match URL in primary key column(s)")


def not_singular(rows: int) -> ApiError:
    message = "Cannot coerce the result to a single JSON object"
    return ApiError(406, "PGRST116", message, f"The result contains {rows} rows")


def unsupported_method(method: str) -> ApiError:
    return ApiError(405, "PGRST117", f"Unsupported HTTP method: {method}")


def related_order(origin: str, target: str) -> ApiError:
    return ApiError(
        400,
        "PGRST118",
        f"A related order on '{target}' is not possible",
        f"'{origin}' and '{target}' do not form a many-to-one or one-to-one relationship",
    )


def invalid_preferences(tokens: Iterable[str]) -> ApiError:
    message = "Invalid preferences given with handling=strict"
    return ApiError(400, "PGRST122", message, f"Invalid preferences: {', '.join(tokens)}")


def aggregates_disabled() -> ApiError:
    return ApiError(400, "PGRST123", "Use of aggregate functions is not allowed")


def too_many_affected(rows: int) -> ApiError:
    message = "Query result exceeds max-affected preference constraint"
    return ApiError(400, "PGRST124", message, f"The query affects {rows} rows")


def invalid_path() -> ApiError:
    return ApiError(404, "PGRST125", "Invalid path specified in request URL")


def root_disabled() -> ApiError:
    return ApiError(404, "PGRST126", "Root endpoint metadata is disabled")


def not_implemented(details: str) -> ApiError:
    return ApiError(400, "PGRST127", "Feature not implemented", details)


def max_affected_single() -> ApiError:
    message = "Function must return SETOF or TABLE when max-affected preference is used with handling=strict"
    return ApiError(400, "PGRST128", message)


def no_relationship(
    origin: str, target: str, schema: str, hint: str | None, proposal: tuple[str, str] | None
) -> ApiError:
    """Return the error of a target that no relationship fits. schema: of both relations. hint: that of the request, or
    None. proposal: a name, and the name that it should replace; None: there is none."""
    using = f" using the hint '{hint}'" if hint is not None else ""
    return ApiError(
        400,
        "PGRST200",
        f"Could not find a relationship between '{origin}' and '{target}' in the schema cache",
        f"Searched for a foreign key relationship between '{origin}' and '{target}'{using} in the schema '{schema}', "
        "but no matches were found.",
        None if proposal is None else f"Perhaps you meant '{proposal[0]}' instead of '{proposal[1]}'.",
    )


def ambiguous_relationship(
    origin: str, target: str, candidates: Sequence[Mapping[str, str]], names: Iterable[str]
) -> ApiError:
    """Return the error of a target that several relationships fit.

    candidates: the objects of `details`. names: `target!hint` for each candidate.
    """
    choice = ", ".join(f"'{name}'" for name in names)
    return ApiError(
        300,
        "PGRST201",
        f"Could not embed because more than one relationship was found for '{origin}' and '{target}'",
        [dict(candidate) for candidate in candidates],
        f"Try changing '{target}' to one of the following: {choice}. "
        "Find the desired relationship in the 'details' key.",
    )


def ambiguous_function(signatures: Iterable[str]) -> ApiError:
    return ApiError(
        300,
        "PGRST203",
        f"Could not choose the best candidate function between: {', '.join(signatures)}",
        hint="Try renaming the parameters or the function itself in the database so function overloading can be "
        "resolved",
    )


def no_column(column: str, table: str) -> ApiError:
    return ApiError(400, "PGRST204", f"Could not find the '{column}' column of '{table}' in the schema cache")


def no_table(schema: str, table: str, similar: str | None) -> ApiError:
    """Return the error of an unknown relation. similar: name of another relation of the schema; None: there is none."""
    hint = f"Perhaps you meant the table '{schema}.{similar}'" if similar is not None else None
    return ApiError(404, "PGRST205", f"Could not find the table '{schema}.{table}' in the schema cache", hint=hint)


def no_jwt_secret() -> ApiError:
    return ApiError(500, "PGRST300", "Server lacks JWT secret")


def _invalid_token(code: str, message: str, details: str | None) -> ApiError:
    challenge = f'Bearer error="invalid_token", error_description="{message}"'
    return ApiError(401, code, message, details, headers={"www-authenticate": challenge})


def undecodable_token(message: str, details: str | None = None) -> ApiError:
    return _invalid_token("PGRST301", message, details)


def anonymous_disabled() -> ApiError:
    return ApiError(401, "PGRST302", "Anonymous access is disabled", headers={"www-authenticate": "Bearer"})


def invalid_claims(message: str) -> ApiError:
    return _invalid_token("PGRST303", message, None)
