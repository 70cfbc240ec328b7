"""Pages with placeholders: claims of the caller, variables of the environment (reference 06, 6)."""

from __future__ import annotations

from rowcall.core.auth.claims import User, grouped
from rowcall.core.http.page_template import PageTemplate, json_text
from rowcall.core.text.globs import matches
from rowcall.service.exchange.protocols import Headers
from rowcall.service.options.capabilities.static_files import PageOptions, StaticFileOptions
from rowcall.service.static.folder import StaticFile


class Pages:
    def __init__(self, options: StaticFileOptions, pages: PageOptions) -> None:
        self._pages = pages
        self._id, self._name, self._roles = options.names
        self._fills: dict[str, bool] = {}
        self._templates: dict[str, tuple[tuple[int, int, int, int], PageTemplate]] = {}
        # What stands there for everybody, from the weakest to the strongest.
        self._defaults: dict[bytes, bytes] = {
            **{name.encode(): json_text(text or "") for name, text in pages.variables.items()},
            **{name.encode(): b"null" if text is None else text.encode() for name, text in pages.claims.items()},
            self._id.encode(): b"null",
            self._name.encode(): b"null",
            self._roles.encode(): b"[]",
        }
        self._real = {name.encode() for name, text in (*pages.variables.items(), *pages.claims.items()) if text}
        self._names = frozenset(self._defaults)

    def fills(self, url: str) -> bool:
        known = self._fills.get(url)
        if known is None:
            if len(self._fills) >= 4096:
                self._fills.clear()
            known = self._fills[url] = any(matches(url, pattern) for pattern in self._pages.patterns)
        return known

    def fill(self, file: StaticFile, user: User | None) -> tuple[Headers, bytes]:
        """Neither tag nor date: the page is another one for everybody who asks."""
        values, real = dict(self._defaults), set(self._real)
        if user is not None:
            for kind, value in grouped(user.claims, self._roles).items():
                name = kind.encode()
                if name in self._names and value is not None:
                    values[name] = json_text(value)
                    real.add(name)
        body = self._template(file).fill(values, real)
        return [("content-type", file.content_type), *self._pages.headers], body

    def _template(self, file: StaticFile) -> PageTemplate:
        known = self._templates.get(file.url)
        if known is not None and known[0] == file.state:
            return known[1]
        template = PageTemplate(_text(file), self._names)
        if self._pages.keep:
            if len(self._templates) >= 256:
                self._templates.clear()
            self._templates[file.url] = (file.state, template)
        return template


def _text(file: StaticFile) -> bytes:
    if file.body is not None:
        return file.body
    with open(file.path, "rb") as content:
        return content.read()
