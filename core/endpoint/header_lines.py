"""Response header lines of a comment, made safe to send for any values of placeholders.

A value from a request never ends a header line or starts another: control characters are dropped, and the value is cut
where it would make the header section too large for clients. Header lines are ASCII: other characters are
percent-encoded; a file name of `Content-Disposition` has the extended notation (RFC 6266, RFC 8187).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from rowcall.core.data.record import Record
from rowcall.core.endpoint.capabilities import ValuePlace
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.template import Template, ValueOf, parse_template, placeholder_names, virtual_parameters
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.text.cache_control import PRIVATE, VARY_BY_CREDENTIALS, is_private, may_store, private

MAX_VALUE = 1000
"""Bytes of one value as sent. Proxies often accept at most 4,096 for all headers together."""

_DISPOSITION = "content-disposition"
_COOKIE = "set-cookie"
_CACHE_CONTROL = "cache-control"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_DELIMITERS = re.compile(r'["\\;]')
_FILE_NAME = re.compile(r'filename\s*=\s*(?:"(?P<quoted>[^"]*)"|(?P<bare>[^;]*))', re.IGNORECASE)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_ATTRIBUTE_CHARACTERS = "!#$&+-.^_`|~"


@dataclass(frozen=True, slots=True)
class HeaderSection:
    """Response headers of one request: the header lines of the comment with their placeholders replaced."""

    content_type: str | None
    """None: the default of the result."""
    fields: tuple[tuple[str, str], ...]
    """Names in lower case; repeated names give repeated header lines (comments-21)."""


@dataclass(frozen=True, slots=True)
class HeaderLines(Record):
    """The header lines of a comment, as templates. content_type: None: the default of the result. lines: names in lower
    case, and values."""

    content_type: Template | None
    lines: tuple[tuple[str, Template], ...]

    @property
    def is_fixed(self) -> bool:
        """Whether the lines are the same for every request."""
        templates = (self.content_type, *(template for _, template in self.lines))
        return all(template is None or template.is_fixed for template in templates)

    def fill(self, value_of: ValueOf) -> HeaderSection:
        """Return the header lines of one request."""
        content_type = None
        if self.content_type is not None:
            content_type = _percent_encode(self.content_type.fill(value_of, _clean)) or None
        return HeaderSection(content_type, self.fields(value_of))

    def fields(self, value_of: ValueOf) -> tuple[tuple[str, str], ...]:
        """Return all header lines except the content type. Error responses have these too."""
        return tuple((name, _field_value(name, template, value_of)) for name, template in self.lines)


def header_lines(endpoint: Endpoint) -> HeaderLines:
    """Return the header lines of an endpoint's comment."""
    names, staying = placeholder_names(endpoint.parameters), virtual_parameters(endpoint.parameters)
    options = endpoint.options
    return HeaderLines(
        None if options.content_type is None else parse_template(options.content_type, names, staying),
        tuple((name.lower(), parse_template(value, names, staying)) for name, value in response_header_lines(endpoint)),
    )


def response_header_lines(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """Return the header lines of the comment, and the caching headers that a personal response gets in addition.

    A personal response (see `is_personal`) is never left to the heuristics of a shared cache (RFC 9111, 4.2.2). A
    `Cache-Control` line that would let shared caches store it is changed to a private one; without such a line it gets
    `PRIVATE`. If a browser may store the response, `Vary` names the credentials.
    """
    headers = endpoint.options.headers
    if not is_personal(endpoint):
        return headers
    lines = tuple((name, private(value) if name.lower() == _CACHE_CONTROL else value) for name, value in headers)
    return lines + private_headers(endpoint)


def private_headers(endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    """Return the caching headers that a personal endpoint gets besides those of its comment: `Cache-Control` unless the
    comment sets it, and `Vary` for the credentials if a browser may store the response. Empty for other endpoints."""
    if not is_personal(endpoint):
        return ()
    stated = [value for name, value in endpoint.options.headers if name.lower() == _CACHE_CONTROL]
    default = () if stated else ((_CACHE_CONTROL, PRIVATE),)
    vary = (("vary", VARY_BY_CREDENTIALS),) if all(may_store(value) for value in stated) else ()
    return default + vary


def is_personal(endpoint: Endpoint) -> bool:
    """Return whether the response depends on the caller or is restricted to some callers."""
    options = endpoint.options
    zone = options.time_zone
    claims = options.user_parameters or options.user_context or options.role_from_claim or options.claims_in_commands
    claims = claims or (zone is not None and zone.place is ValuePlace.CLAIM)
    return claims or options.login or options.tenant is not None or not endpoint.access.anonymous


def shared_personal_answers(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Warn of a `Cache-Control` that would let shared caches send a personal response to other callers.

    The service sends a private one instead.
    """
    if not is_personal(endpoint):
        return
    remedy = "" if endpoint.access.basic is not None else ", or admit all callers with allow_anonymous"
    for name, value in endpoint.options.headers:
        if name.lower() == _CACHE_CONTROL and not is_private(value):
            message = (
                f"{endpoint.name} is personal, so its responses are sent with `{private(value)}` instead of "
                f"`{value}`; write private, or no-store{remedy}"
            )
            yield Diagnostic(endpoint.routine.identity, f"{name}: {value}", message)


def unknown_placeholders(endpoint: Endpoint) -> Iterator[Diagnostic]:
    """Report `{name}` placeholders without a parameter of that name, in headers, settings and cache tags."""
    options = endpoint.options
    tags = () if options.caching is None else options.caching.tags
    if not (options.headers or options.content_type or options.custom or options.upload or tags):
        return
    names = placeholder_names(endpoint.parameters)
    content_type = () if options.content_type is None else (("Content-Type", options.content_type),)
    lines = [(f"{name}: {value}", value) for name, value in (*options.headers, *content_type)]
    settings = () if options.upload is None else options.upload.settings
    lines += [(f"{name} = {value}", value) for name, value in (*options.custom, *settings)]
    lines += [(f"cache_tags {tag}", tag) for tag in tags]
    for line, value in lines:
        for unknown in parse_template(value, names).unknown:
            message = f"{{{unknown}}} names no parameter and is left unchanged"
            yield Diagnostic(endpoint.routine.identity, line, message)


def no_value(_index: int) -> None:
    """Return None, as `ValueOf` of lines without placeholders."""
    return


def _field_value(name: str, template: Template, value_of: ValueOf) -> str:
    """Return the value of a header line for one request. name: of the header in lower case."""
    if name == _COOKIE:
        # A semicolon would begin an attribute such as Domain or Path, and could cut off Secure.
        return _percent_encode(template.fill(value_of, lambda value: _clean(value).replace(";", "%3B")))
    if name != _DISPOSITION:
        return _percent_encode(template.fill(value_of, _clean))
    text = template.fill(value_of, _clean_parameter)
    return _percent_encode(_FILE_NAME.sub(_file_name, text))


def _clean(value: str) -> str:
    """Return a value of a request without control characters, cut to `MAX_VALUE` bytes."""
    return _truncate_value(_CONTROL.sub("", value[: 2 * MAX_VALUE]))


def _truncate_value(value: str) -> str:
    """Return the value, cut to `MAX_VALUE` bytes as sent: each byte beyond ASCII takes three."""
    rest = MAX_VALUE
    if value.isascii():
        return value[:rest]
    for position, character in enumerate(value):
        rest -= 1 if character.isascii() else 3 * len(character.encode())
        if rest < 0:
            return value[:position]
    return value


def _clean_parameter(value: str) -> str:
    """Return a value of a request cleaned as by `_clean`, and with `_` in place of delimiters, which could begin
    another parameter behind `filename=…`."""
    return _DELIMITERS.sub("_", _clean(value))


def _file_name(match: re.Match[str]) -> str:
    """Return the parameter `filename`; with characters beyond ASCII, also `filename*` (RFC 6266)."""
    name = match["bare"].strip() if match["quoted"] is None else match["quoted"]
    if name.isascii():
        return match[0]
    plain = _BEYOND_ASCII.sub("_", name)
    return f"filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe=_ATTRIBUTE_CHARACTERS)}"


def _percent_encode(text: str) -> str:
    """Return a text with characters beyond ASCII percent-encoded, and without blanks around it."""
    return _BEYOND_ASCII.sub(lambda match: quote(match[0], safe=""), text).strip()
