"""Calls of functions."""

from __future__ import annotations

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.schema import Schema
from rowcall.service.postgrest.request import ApiRequest
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.work import Work


def plan_call(
    schema: Schema, options: PostgRestOptions, request: ApiRequest, body: bytes, responder: Responder
) -> Work:
    raise errors.root_disabled()
