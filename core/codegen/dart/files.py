"""The files of a Dart client, as texts (clients-28, clients-29)."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rowcall.core.codegen.calls import call_of
from rowcall.core.codegen.comments import Definitions
from rowcall.core.codegen.dart.functions import DartFunction, function_text, needs_dart_convert, source_text, url_text
from rowcall.core.codegen.dart.helper_code import Needs, helper_code, imports, status_classes
from rowcall.core.codegen.dart.models import Models
from rowcall.core.codegen.dart.names import DartNames, literal, snake_case
from rowcall.core.codegen.options import DartOptions
from rowcall.core.codegen.selection import Output, TypesOf, endpoints_with_names, header_text, modules
from rowcall.core.codegen.selection import client_annotations as typescript_annotations
from rowcall.core.codegen.shapes import ShapeReader
from rowcall.core.endpoint.capabilities import ClientCode
from rowcall.core.endpoint.endpoint import Endpoint

_NO_ANNOTATIONS = ClientCode()


def client_annotations(endpoint: Endpoint) -> ClientCode:
    """Return what the comment of an endpoint sets for Dart clients. If it sets no module for Dart, the module for
    TypeScript applies."""
    requested = endpoint.options.dart_client_code or _NO_ANNOTATIONS
    module = requested.module or typescript_annotations(endpoint).module
    return requested if module == requested.module else replace(requested, module=module)


def dart_files(
    endpoints: Iterable[Endpoint], types_of: TypesOf, definitions: Definitions, options: DartOptions, now: str
) -> Iterator[Output]:
    """Yield the files of a client. A file whose endpoints are all excluded by annotations has None as text.

    types_of: returns the types of an endpoint's database, by oid. definitions: of routines, for comments. now:
    text of the time, which replaces `{0}` in header lines.

    Raises:
        NoPlaceError: `by_schema` is on, but the configured path has no `{0}`.
    """
    for name, members in modules(endpoints, options, client_annotations, snake_case):
        path = options.path.replace("{0}", name)
        if not members:
            yield Output(path, None, options.overwrite)
            continue
        module = _Module(members, types_of, definitions, options)
        if module.functions:
            yield from module.outputs(path, header_text(options.header, now))


def dart_names(endpoints: Iterable[Endpoint], options: DartOptions) -> Iterator[tuple[Endpoint, str]]:
    """Yield the endpoints that have a function in the client, with the name of the function. Raises `NoPlaceError` if
    `by_schema` is on, but the configured path has no `{0}`."""
    for _, members in modules(endpoints, options, client_annotations, snake_case):
        yield from endpoints_with_names(members, DartNames(options), options)


class _Module:
    """One file of functions, and the file of its models."""

    def __init__(
        self, endpoints: Sequence[Endpoint], types_of: TypesOf, definitions: Definitions, options: DartOptions
    ) -> None:
        self._options = options
        self._definitions = definitions
        self._models = Models(options)
        names = DartNames(options)
        self.functions: list[DartFunction] = []
        for endpoint, name in list(endpoints_with_names(endpoints, names, options)):
            reader = ShapeReader(types_of(endpoint), options.camel)
            call = call_of(endpoint, name, client_annotations(endpoint), reader, options)
            self.functions.append(DartFunction.of(call, self._models, names))

    def outputs(self, path: str, header: str) -> Iterator[Output]:
        options, needs = self._options, self._needs()
        models = [*(status_classes(options) if needs.status else ()), *self._models.texts()]
        models_path = f"{path.removesuffix('.dart')}_models.dart"
        separate = options.models_file and bool(models)
        head = "\n".join(self._imports(needs, posixpath.basename(models_path) if separate else None))
        blocks = [head.strip("\n")]
        if not options.base_url_from:
            blocks.append(f"String baseUrl = {literal(options.base_url)};")
        blocks += helper_code(needs, options)
        blocks += (url_text(item, self._models) for item in self.functions if item.call.export_url)
        blocks += (source_text(item, options) for item in self.functions if item.call.events is not None)
        if not separate:
            blocks += models
        blocks += (
            function_text(item, self._models, self._definitions, options)
            for item in self.functions
            if not item.call.url_only
        )
        yield Output(path, f"{header}{_join_blocks(blocks)}", options.overwrite, len(header))
        if separate:
            yield Output(models_path, f"{header}{_join_blocks(models)}", options.overwrite, len(header), path)

    def _imports(self, needs: Needs, models: str | None) -> Iterator[str]:
        options = self._options
        yield from imports(needs)
        yield from options.imports
        if options.base_url_from:
            yield f"import {literal(options.base_url_from)};"
        if models is not None:
            yield f"import {literal(models)};"
            yield ""
            yield f"export {literal(models)};"

    def _needs(self) -> Needs:
        calls = [item.call for item in self.functions]
        sent = [item for item in calls if not item.url_only]
        return Needs(
            query=any(item.placement.query for item in calls),
            segments=any(item.path_values for item in calls),
            requests=any(not item.upload for item in sent),
            uploads=any(item.upload for item in sent),
            status=any(item.has_status for item in sent),
            events=any(item.events is not None for item in sent),
            json=any(needs_dart_convert(item) for item in self.functions),
        )


def _join_blocks(blocks: Iterable[str]) -> str:
    return "\n\n".join(blocks) + "\n"
