"""Pages with placeholders: claims of the user, variables of the environment (static-files-5, static-files-6)."""

from __future__ import annotations

from typing import Any

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.auth.claims import User, group_claims
from rowcall.core.http.page_template import PageTemplate, json_text
from rowcall.core.operations.static_files import PageOptions, StaticFileOptions
from rowcall.core.text.globs import matches
from rowcall.service.identity.antiforgery import Antiforgery
from rowcall.service.request_context.protocols import Headers
from rowcall.service.static.folder import State, StaticFile

_FORMS_IN = (".html", ".htm")
"""Suffixes of pages that get antiforgery tokens."""


class Pages:
    """Fills the placeholders of pages."""

    def __init__(self, options: StaticFileOptions, pages: PageOptions, guard: Antiforgery | None) -> None:
        """guard: issues the antiforgery tokens of pages; None: they get none."""
        self._pages = pages
        self._guard = guard
        self._id, self._name, self._roles = options.names
        self._fills: dict[str, bool] = {}
        self._templates: dict[str, tuple[State, PageTemplate]] = {}
        # Values for anonymous callers, in ascending precedence.
        self._defaults: dict[bytes, bytes] = {
            **{name.encode(): json_text(text or "") for name, text in pages.variables.items()},
            **{name.encode(): b"null" if text is None else text.encode() for name, text in pages.claims.items()},
            self._id.encode(): b"null",
            self._name.encode(): b"null",
            self._roles.encode(): b"[]",
        }
        self._not_empty = {name.encode() for name, text in (*pages.variables.items(), *pages.claims.items()) if text}

    def fills(self, url: str) -> bool:
        """Return whether placeholders are replaced in the file at this path: it matches a configured pattern."""
        cached = self._fills.get(url)
        if cached is None:
            if len(self._fills) >= 4096:
                self._fills.clear()
            cached = self._fills[url] = any(matches(url, pattern) for pattern in self._pages.patterns)
        return cached

    def fill(self, scope: Any, file: StaticFile, user: User | None) -> tuple[Headers, bytes]:
        """Return headers and body of a page whose placeholders are replaced by claims of the user and variables of the
        environment. The headers contain neither ETag nor Last-Modified, because the page differs between callers. A
        page of HTML gets a new antiforgery token, if these are enabled. user: None: an anonymous caller, for whom the
        configured values are used. Raises `OSError` if a page that is not cached cannot be read."""
        values, not_empty = dict(self._defaults), set(self._not_empty)
        headers = self._pages.headers
        guard = self._guard if file.url.lower().endswith(_FORMS_IN) else None
        if guard is not None:
            issued = guard.issue(scope, user)
            tags = _tags(guard.options, issued.token)
            values.update(tags)
            not_empty.update(tags)
            replaced = {name for name, _ in issued.headers}
            headers = (*(field for field in headers if field[0] not in replaced), *issued.headers)
        if user is not None:
            for kind, value in group_claims(user.claims, self._roles).items():
                # Claims that AvailableClaims does not list are filled too, because the author of the page uses them.
                if value is not None:
                    values[kind.encode()] = json_text(value)
                    not_empty.add(kind.encode())
        body = self._template(file).fill(values, not_empty)
        return [("content-type", file.content_type), *headers], body

    def _template(self, file: StaticFile) -> PageTemplate:
        cached = self._templates.get(file.url)
        if cached is not None and cached[0] == file.state:
            return cached[1]
        template = PageTemplate(_text(file))
        if self._pages.keep:
            if len(self._templates) >= 256:
                self._templates.clear()
            self._templates[file.url] = (file.state, template)
        return template


def _tags(options: AntiforgeryOptions, token: str) -> dict[bytes, bytes]:
    """Return the placeholders of antiforgery with their values."""
    both = ((options.field_tag, options.field), (options.token_tag, token))
    return {tag.encode(): text.encode() for tag, text in both if tag}


def _text(file: StaticFile) -> bytes:
    if file.body is not None:
        return file.body
    with open(file.path, "rb") as content:
        return content.read()
