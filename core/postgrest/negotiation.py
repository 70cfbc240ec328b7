"""`Accept` and the media handlers of the schema → the media type of the response and its output.

Source: PostgREST's documentation, Media Type Handlers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.request.media_types import (
    ANY,
    ARRAY,
    CSV,
    GEO_JSON,
    JSON,
    OBJECT,
    PLAN,
    MediaType,
)
from rowcall.core.postgrest.schema import Schema
from rowcall.core.postgrest.sql.output import Output

OCTET_STREAM = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties of a result that decide how it can be rendered.

    identifier: qualified name of the relation, or of the rows of a function. scalar: rows are values without a column
    name. single: at most one row, by its declaration. media_type: of a function that returns a domain which is named
    after a media type. binary: this domain is over bytea.
    """

    identifier: tuple[str, str]
    scalar: bool = False
    single: bool = False
    media_type: str | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Negotiated:
    """A media type of the response, and how it is produced.

    singular: exactly one row is required. plan: the response is the execution plan of the statement; None: it is not.
    """

    output: Output
    content_type: str
    singular: bool = False
    plan: MediaType | None = None


def negotiate(
    accepted: Sequence[MediaType], schema: Schema, shape: Shape, *, plans: bool, plain_select: bool
) -> Negotiated:
    """Return the first accepted media type that can be produced.

    plans: execution plans are allowed. plain_select: all columns are selected and nothing is embedded, which handlers
    of a relation require. Raises `ApiError` (`PGRST107`) if none can be produced.
    """
    for media in accepted:
        negotiated = _negotiated_output(media, schema, shape, plans, plain_select)
        if negotiated is not None:
            return negotiated
    raise errors.no_media_type(media.shown for media in accepted)


def _negotiated_output(media: MediaType, schema: Schema, shape: Shape, plans: bool, plain: bool) -> Negotiated | None:
    """Return how a media type is produced; None: it cannot be. plans, plain: as `plans` and `plain_select` of
    `negotiate`."""
    if media.name == PLAN:
        return _plan(media, schema, shape, plain) if plans else None
    if media.name == OBJECT:
        return Negotiated(Output("object", shape.scalar, media.stripped), media.content_type, singular=True)
    if media.name == ARRAY:
        return Negotiated(_json(shape, media.stripped), media.content_type)
    return _handler(media.name, schema, shape, plain) or _built_in(media.name, shape)


def _plan(media: MediaType, schema: Schema, shape: Shape, plain: bool) -> Negotiated | None:
    """Return how an execution plan is produced: that of the statement for the wrapped media type (`plan_for`); None:
    that media type cannot be produced."""
    wrapped_name, _, parameters = media.plan_for.partition(";")
    base = wrapped_name.partition("+")[0] if wrapped_name.startswith("application/vnd.pgrst.") else wrapped_name
    stripped = "nulls=stripped" in parameters.replace(" ", "")
    inner = _negotiated_output(MediaType(base.strip(), media.plan_for, stripped), schema, shape, False, plain)
    return None if inner is None else replace(inner, content_type=media.content_type, singular=False, plan=media)


def _handler(name: str, schema: Schema, shape: Shape, plain: bool) -> Negotiated | None:
    """Return how a function or handler of the schema produces a media type; None: none does. The first of these counts:

    1. the called function, if it returns one value of a domain named after this type or `*/*`;
    2. the handler of the relation for any type, then the one for this type;
    3. the handler of every relation for this type.

    name: of the media type, in lower case; domains may have capitals. plain: as `plain_select` of `negotiate`; False:
    handlers of the relation (2) are not used.
    """
    if shape.media_type is not None and shape.media_type.lower() in (name, ANY) and shape.scalar and shape.single:
        return Negotiated(Output("value", scalar=True, binary=shape.binary), _content_type(shape.media_type))
    handlers = schema.handlers
    own = [item for item in handlers if item.relation == shape.identifier] if plain else []
    handler = next((item for item in own if item.media_type == ANY), None)
    handler = handler or next((item for item in own if item.media_type.lower() == name), None)
    every = (item for item in handlers if item.relation is None and item.media_type.lower() == name)
    handler = handler or next(every, None)
    if handler is None:
        return None
    output = Output("handler", shape.scalar, handler=handler, binary=handler.binary)
    return Negotiated(output, _content_type(handler.media_type))


def _content_type(name: str) -> str:
    """Return the value of `Content-Type` for the media type of a handler: `application/octet-stream` for `*/*`; for a
    type that PostgREST knows, its usual value with the character set; otherwise the name as it is spelled, with
    capitals. name: of the media type, as the domain is called."""
    known = MediaType(name.lower(), name).content_type
    return OCTET_STREAM if name == ANY else name if known == name.lower() else known


def _built_in(name: str, shape: Shape) -> Negotiated | None:
    """Return how a media type is produced without a handler; None: it cannot be."""
    if name in (JSON, ANY):
        return Negotiated(_json(shape), MediaType(JSON, JSON).content_type)
    if name == CSV:
        return Negotiated(Output("csv", shape.scalar), MediaType(CSV, CSV).content_type)
    if name == GEO_JSON:
        return Negotiated(Output("geojson", shape.scalar), MediaType(GEO_JSON, GEO_JSON).content_type)
    return None


def _json(shape: Shape, stripped: bool = False) -> Output:
    """Return the output as JSON: an object if the result is at most one row, else an array. stripped: without null
    members."""
    return Output("object" if shape.single else "json", shape.scalar, stripped)
