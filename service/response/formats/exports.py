"""The step that continues with the steps of another format, if a request asks for one (`core.formats.exports`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import unquote_plus

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.formats.exports import FORMATS, ExportOptions, export_tables, preferred_format, with_export_format
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.changed_query import ChangedQuery, take_parameter
from rowcall.service.request_context.request_context import RequestContext, Step

_JSON = "json"
"""Value of the parameter for the usual response of the endpoint."""
Compile = Callable[[Endpoint, Services], tuple[Step, ...]]


class Exports:
    """The export formats of one endpoint, from which requests choose by parameter or `Accept`. compile_export: compiles
    the steps behind the choice, for the endpoint in one format.
    """

    def __init__(self, endpoint: Endpoint, services: Services, options: ExportOptions, compile_export: Compile) -> None:
        self._endpoint = endpoint
        self._services = services
        self._formats = options.formats_of(endpoint)
        self._parameter = f"{options.parameter}=" if options.by_parameter(endpoint) else ""
        self._compile = compile_export
        self._steps: dict[str, tuple[Step, ...]] = {}

    def choose(self, context: RequestContext) -> None:
        """If the request asks for an export format, continue with its steps; the parameter takes precedence over
        `Accept`, and is removed from the query string of `context.scope`. Raises `Problem` 400 for an unknown format in
        the parameter."""
        scope = context.scope
        if self._parameter and self._parameter in scope.query_string:
            name = self._by_parameter(context)
            if name is not None:
                if name != _JSON:
                    context.follow(self._steps_of(name, FORMATS[name][0]))
                return
        accept = scope.headers.get("accept")
        if accept is None or accept == "*/*":
            return
        requested = preferred_format(accept, self._formats)
        if requested is not None:
            context.follow(self._steps_of(*requested))

    def _by_parameter(self, context: RequestContext) -> str | None:
        """Take the parameter out of the query string, and return the format that it names: a key of `FORMATS`, or
        `json`. None: there is no parameter. Raises `Problem` 400 for an unknown format.
        """
        text, rest = take_parameter(context.scope.query_string, self._parameter[:-1])
        if text is None:
            return None
        value = unquote_plus(text).lower()
        names = (*self._formats, _JSON)
        if value not in names:
            raise Problem(400, f"{self._parameter[:-1]} {value[:40]!r} is none of {', '.join(names)}")
        context.scope = ChangedQuery(context.scope, rest)
        return value

    def _steps_of(self, name: str, media_type: str) -> tuple[Step, ...]:
        """Return the steps that respond in a format, compiled at the first use of each media type.

        name: key of `FORMATS`. media_type: one of those of the format, the `Content-Type` of the responses.
        """
        steps = self._steps.get(media_type)
        if steps is None:
            services = self._services
            camel = services.options.camel_case
            exported = with_export_format(self._endpoint, name, media_type, camel=camel)
            if name in ("excel", "parquet"):
                options = replace(services.options, tables=export_tables(name, services.options.tables))
                services = replace(services, options=options)
            steps = self._compile(exported, services)
            self._steps[media_type] = steps
        return steps
