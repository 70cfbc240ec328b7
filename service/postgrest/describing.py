"""Answers without a relation's rows: OPTIONS and the root path."""

from __future__ import annotations

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.schema import Schema
from rowcall.service.postgrest.request import ApiRequest
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.work import Response, Work


def options_response(schema: Schema, request: ApiRequest) -> Response:
    return Response(200, [("Allow", "OPTIONS,GET,HEAD"), ("Access-Control-Allow-Origin", "*")], b"")


def plan_root(schema: Schema, options: PostgRestOptions, request: ApiRequest, responder: Responder) -> Work | Response:
    raise errors.root_disabled()
