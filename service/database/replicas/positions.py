"""The WAL position up to which a client has written: in responses to it, and in its next requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import psycopg

from rowcall.core.auth.cookies import cookie_value
from rowcall.core.errors.problems import Problem
from rowcall.core.text.wal_position import parse_position, position_text
from rowcall.service.database.replicas.options import ReplicaOptions
from rowcall.service.database.replicas.primary import Primary
from rowcall.service.request_context.header_values import cookie_header, read_header

PRIMARY = "primary"
"""Sent in place of a position: only the primary may be read."""

Fields = list[tuple[str, str]]


async def current_position(primary: Primary) -> str:
    """Return the text of a position that includes everything committed before this call; `PRIMARY` if it is unknown,
    also if the task is cancelled meanwhile. The cancellation has no effect: what was committed cannot be revoked, so
    the response must not say that the time was over.
    """
    try:
        return position_text(await primary.position())
    except (psycopg.Error, asyncio.CancelledError):
        return PRIMARY


def position_of_request(options: ReplicaOptions, headers: Any) -> int | None:
    """Return the position that a client has sent in header and cookie: the later one; 0 without any; None if the
    primary must be read. headers: of the scope of a request.
    """
    cookie, header = options.cookie, options.header
    try:
        texts = (
            None if header is None else read_header(headers, header),
            None if cookie is None else cookie_value(cookie_header(headers), cookie),
        )
    except Problem:
        return None  # what cannot be read may be a position
    values = [parse_position(text) for text in texts if text]
    # A text that is no position was not sent by this service, or is `primary`.
    return None if None in values else max((item for item in values if item is not None), default=0)


def response_fields(options: ReplicaOptions, text: str, *, secure: bool) -> Fields:
    """Return the response headers that send a position. text: the position, or `PRIMARY`. secure: the client uses
    https, so the cookie is sent over https only.
    """
    fields = [] if options.header is None else [(options.header, text)]
    if options.cookie is not None:
        attributes = f"; max-age={max(1, round(options.lifetime))}; path=/; httponly; samesite=lax"
        fields.append(("set-cookie", f"{options.cookie}={text}{attributes}{'; secure' if secure else ''}"))
    return fields


def position_of_response(options: ReplicaOptions, fields: Sequence[tuple[str, str]]) -> str | None:
    """Return the text that `response_fields` has put into the headers of a response; None without one."""
    for name, value in fields:
        if name == options.header:
            return value
        if name == "set-cookie" and options.cookie is not None and value.startswith(f"{options.cookie}="):
            return value.partition(";")[0].partition("=")[2]
    return None


def with_position(options: ReplicaOptions, headers: Fields, text: str) -> Fields:
    """Return the headers of a request with a position, as a client would send it after a response with
    `response_fields`: in the configured header, or else in the cookie. An earlier position is replaced. text: the
    position, or `PRIMARY`."""
    if options.header is not None:
        return [*((name, value) for name, value in headers if name.lower() != options.header), (options.header, text)]
    cookies = [value for name, value in headers if name.lower() == "cookie"]
    pairs = [pair.strip() for value in cookies for pair in value.split(";")]
    others = [pair for pair in pairs if pair.partition("=")[0].strip() != options.cookie]
    cookie = "; ".join([*others, f"{options.cookie}={text}"])
    return [*((name, value) for name, value in headers if name.lower() != "cookie"), ("cookie", cookie)]
