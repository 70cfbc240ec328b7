"""Annotations about generated clients: tsclient_… and dartclient_…, all in the form `key = value` (clients-4).

`tsclient_export_url` and `tsclient_url_only`, which the specification shows without `=`, may also stand alone.
"""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import Annotation, Apply, Assign, BadValueError, Draft, Line, switch
from rowcall.core.endpoint.capabilities import ClientCode

_SWITCHES = (
    ("", "enabled", "false leaves the endpoint out of generated {client} code."),
    ("_events", "events", "false calls the endpoint without an event source in {client} code."),
    ("_parse_url", "parse_url", "Whether the {client} function takes a `parseUrl` argument."),
    ("_parse_request", "parse_request", "Whether the {client} function takes a `parseRequest` argument."),
    ("_status_code", "status_code", "Whether the {client} function returns the status with the response."),
    ("_export_url", "export_url", "Whether {client} code exports the URL of the endpoint."),
    ("_url_only", "url_only", "Generate only the URL and the type of the request in {client} code."),
    ("_hooks", "hooks", "false leaves the endpoint out of the {client} hooks."),
)
_LEADS_AWAY = re.compile(r"^/|\\|(^|/)\.\.(/|$)")
_ALONE = ("tsclient_export_url", "tsclient_url_only")


def _assign(option: str, field: str) -> Assign:
    """Return a function that applies `word = true|false`, in the words of `switch`, and raises `BadValueError` for
    another one. option: field of `Options`. field: of `ClientCode`."""

    def assign(draft: Draft, value: str) -> None:
        draft.change_fields(option, ClientCode(), **{field: switch(value)})

    return assign


def _apply(assign: Assign) -> Apply:
    """Return a function that applies `tsclient_url_only` or `tsclient_url_only false`. assign: applies the text behind
    the word."""

    def apply(draft: Draft, line: Line) -> None:
        assign(draft, line.rest or "true")

    return apply


def _assign_module(option: str) -> Assign:
    """Return a function that applies `tsclient_module = name`. It raises `BadValueError` if the name is empty or leads
    out of the folder of the generated files. option: field of `Options`."""

    def assign(draft: Draft, value: str) -> None:
        if not value:
            raise BadValueError("a module name is missing")
        if _LEADS_AWAY.search(value):
            raise BadValueError(f"{value!r} leads out of the folder of the generated files; a name is expected")
        draft.change_fields(option, ClientCode(), module=value)

    return assign


def _switch(prefix: str, client: str, option: str, suffix: str, field: str, meaning: str) -> Annotation:
    """Return the annotation for a field of `ClientCode`. prefix, suffix: of its name. client: language, for the
    description. option: field of `Options`."""
    name = prefix + suffix
    assign = _assign(option, field)
    return Annotation(
        name=name,
        aliases=(name,),
        syntax=f"{name} = true|false",
        description=meaning.format(client=client),
        apply=_apply(assign) if name in _ALONE else None,
        assign=assign,
    )


def _module(prefix: str, client: str, option: str) -> Annotation:
    """Return the annotation for the file of generated code. Arguments as in `_switch`."""
    return Annotation(
        name=f"{prefix}_module",
        aliases=(f"{prefix}_module",),
        syntax=f"{prefix}_module = <name>",
        description=f"File of the generated {client} code for this endpoint, across schemas.",
        assign=_assign_module(option),
    )


ANNOTATIONS = (
    *(_switch("tsclient", "TypeScript", "client_code", *row) for row in _SWITCHES),
    _module("tsclient", "TypeScript", "client_code"),
    *(_switch("dartclient", "Dart", "dart_client_code", *row) for row in _SWITCHES if row[1] != "hooks"),
    _module("dartclient", "Dart", "dart_client_code"),
)
