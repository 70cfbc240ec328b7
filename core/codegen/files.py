"""The files of a TypeScript or JavaScript client, as texts (clients-5 to clients-10, clients-26)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from rowcall.core.codegen.client_parameters import takes_effect_once, uses_query, writes_null_as_word
from rowcall.core.codegen.comments import Definitions
from rowcall.core.codegen.functions import ClientFunction, client_function
from rowcall.core.codegen.hooks import hooks_text
from rowcall.core.codegen.names import Names, as_name_part, file_name, string_literal
from rowcall.core.codegen.options import ClientCodeOptions
from rowcall.core.codegen.queries import (
    WHERE,
    filter_functions,
    filter_type,
    has_pages,
    pages_text,
)
from rowcall.core.codegen.selection import (
    Output,
    TypesOf,
    client_annotations,
    endpoints_with_names,
    header_text,
    modules,
)
from rowcall.core.codegen.types import Interfaces
from rowcall.core.codegen.typescript import (
    aliases,
    fetch_once,
    function_text,
    json_as_text,
    null_as_word,
    parse_query,
    source_builder,
    url_builder,
)
from rowcall.core.endpoint.endpoint import Endpoint

_WORD = re.compile(r"[\w$]+")


def client_files(
    endpoints: Iterable[Endpoint],
    types_of: TypesOf,
    definitions: Definitions,
    options: ClientCodeOptions,
    now: str,
) -> Iterator[Output]:
    """Yield the files of a client.

    A file whose endpoints are all excluded by annotations has None as text: an existing file has to be deleted. A file
    whose remaining endpoints are all excluded by the configured lists is not yielded: an existing file stays.

    types_of: returns the types of an endpoint's database, by oid. definitions: of routines, for comments. now:
    text of the time, which replaces `{0}` in header lines.

    Raises:
        NoPlaceError: `by_schema` is on, but the configured path has no `{0}`.
    """
    # Types that are not exported are global, so their names have to be unique in all files (clients-8).
    taken: set[str] | None = set() if options.types and options.type_file and not options.export_types else None
    for name, members in modules(endpoints, options, client_annotations, file_name):
        path = _path(options, name)
        if not members:
            yield Output(path, None, options.overwrite)
            continue
        module = _Module(members, types_of, definitions, options, taken)
        if module.functions:
            yield from module.outputs(path, name, header_text(options.header, now), now)


def client_names(endpoints: Iterable[Endpoint], options: ClientCodeOptions) -> Iterator[tuple[Endpoint, str]]:
    """Yield the endpoints that have a function in the client, with the name of the function. Raises `NoPlaceError` if
    `by_schema` is on, but the configured path has no `{0}`."""
    for _, members in modules(endpoints, options, client_annotations, file_name):
        yield from endpoints_with_names(members, Names(options), options)


def _path(options: ClientCodeOptions, name: str) -> str:
    path = options.path.replace("{0}", name)
    return path if options.types or not path.endswith(".ts") else f"{path[:-3]}.js"


class _Module:
    """One file of functions with its files of types and hooks. taken: names of interfaces that other files use, to
    which those of this file are added; None: names have to be unique in this file only."""

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        types_of: TypesOf,
        definitions: Definitions,
        options: ClientCodeOptions,
        taken: set[str] | None,
    ) -> None:
        self._options = options
        self._definitions = definitions
        self._interfaces = Interfaces(options) if taken is None else Interfaces(options, taken=taken)
        names = Names(options)
        self.functions: list[ClientFunction] = []
        for endpoint, name in endpoints_with_names(endpoints, names, options):
            self.functions.append(client_function(endpoint, name, types_of(endpoint), self._interfaces, options))
        for item in self.functions:
            if item.export_url:
                item.url_name = names.assign(f"{item.name}Url")
            if has_pages(item):
                item.pages_name = names.assign(f"{item.name}Pages")
            if item.events is not None:
                item.source_name = names.assign(f"create{as_name_part(item.name)}EventSource")

        self._where = names.assign(WHERE) if self._interfaces.filter_name else ""
        """Name of the object whose functions write filters; empty: no function takes filters."""

    def outputs(self, path: str, name: str, header: str, now: str) -> Iterator[Output]:
        options = self._options
        separate = options.types and options.type_file
        types_path = path.removesuffix(".ts") + ("Types.ts" if options.export_types else "Types.d.ts")
        interfaces = self._interface_text()
        head = self._head(types_path if separate and options.export_types else None)
        inline = f"\n{interfaces}" if options.types and not separate else ""
        code = "".join(self._code())
        end = "\n" if options.types and not separate else ""
        yield Output(path, header + head + inline + code + end, options.overwrite, len(header))
        if separate:
            # A TypeScript file without an export is not a module.
            empty = "export {};\n" if options.export_types else ""
            yield Output(types_path, header + (interfaces or empty), options.overwrite, len(header), path)
        if options.hooks is not None and options.types:
            yield from self._hooks(path, name, now)

    def _code(self) -> Iterator[str]:
        for item in self.functions:
            if not item.url_only:
                yield function_text(item, self._definitions, self._options)
            if item.pages_name:
                yield pages_text(item, item.pages_name, self._options)

    def _hooks(self, path: str, name: str, now: str) -> Iterator[Output]:
        hooks = self._options.hooks
        eligible = [
            item
            for item in self.functions
            if item.hooked and not (item.upload or item.url_only or item.events is not None)
        ]
        if hooks is None or not eligible:
            return
        target = hooks.path.replace("{0}", name)
        relative = posixpath.relpath(path.removesuffix(".ts"), posixpath.dirname(target) or ".")
        relative = relative if relative.startswith(".") else f"./{relative}"
        own = header_text(hooks.header, now)
        yield Output(target, own + hooks_text(eligible, relative, hooks), hooks.overwrite, len(own), path)

    def _interface_text(self) -> str:
        export = self._options.export_types
        declared = [filter_type(self._interfaces.filter_name, export)] if self._where else []
        declared += (item.text(export) for item in (*self._interfaces.composites, *self._interfaces.models))
        return "".join(f"{text}\n" for text in declared)

    def _head(self, types_path: str | None) -> str:
        """Return the text before the functions: imports, base URL, helpers and URL builders. types_path: path of the
        file from which types are imported; None: no types are imported."""
        options = self._options
        lines: list[str] = []
        if types_path is not None:
            # `noUnusedLocals`: composites are used by other interfaces only.
            used = {word for item in self.functions for word in _WORD.findall(f"{item.request} {item.result}")}
            interfaces = (*self._interfaces.composites, *self._interfaces.models)
            names = [item.name for item in interfaces if item.name in used]
            names += [self._interfaces.filter_name] if self._where else []
            module = posixpath.basename(types_path).removesuffix(".ts")
            if names:
                lines.append(f'import type {{ {", ".join(names)} }} from "./{module}";')
        lines += options.imports
        if options.base_url_from:
            lines.append(f'import {{ baseUrl }} from "{options.base_url_from}";')
        else:
            lines.append(f"const baseUrl = {string_literal(options.base_url)};")
        if any(item.query or uses_query(item.endpoint) for item in self.functions):
            if options.parse_query_from:
                lines.append(f'import {{ parseQuery }} from "{options.parse_query_from}";')
            else:
                lines.append(parse_query(options))
        if any(item.query and writes_null_as_word(item.endpoint) for item in self.functions):
            lines += ["", null_as_word(typed=options.types)]
        if any(item.has_json_query for item in self.functions):
            lines += ["", json_as_text(typed=options.types)]
        if any(takes_effect_once(item.endpoint) and not item.url_only for item in self.functions):
            lines += ["", fetch_once(typed=options.types)]
        if self._where:
            lines += ["", *filter_functions(self._where, self._interfaces.filter_name, options)]
        lines += self._builders()
        if options.types and any(_uses_status(item) for item in self.functions):
            with_result = any(_uses_status(item) and item.result != "void" for item in self.functions)
            lines += ["", *aliases(options, with_result=with_result)]
        return "\n".join(lines) + "\n"

    def _builders(self) -> Iterator[str]:
        after_builder = self._options.export_urls
        if after_builder:
            yield ""
        for item in self.functions:
            if item.export_url:
                if not after_builder:
                    yield ""
                yield url_builder(item, self._options)
                after_builder = True
            if item.events is not None:
                yield source_builder(item, self._options)
                after_builder = False


def _uses_status(function: ClientFunction) -> bool:
    return function.status and not function.url_only and function.result != "Response"
