"""The RSGI application of one worker: route, run the handler, and the one place where errors become responses."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from rowcall.core.binding import BindingError
from rowcall.core.catalog import TypeInfo, TypeKind
from rowcall.core.naming import api_name
from rowcall.core.problems import CONTENT_TYPE, Problem
from rowcall.core.routing import MalformedPathError, Router, build_router
from rowcall.ext.codecs import Codecs
from rowcall.service.database.database import Database
from rowcall.service.edition import Edition, WorkerOptions
from rowcall.service.exchange import Exchange
from rowcall.service.handler import Services, Step, run_steps
from rowcall.service.overloads import compile_route

log = logging.getLogger("rowcall")
notices = logging.getLogger("rowcall.notices")

_NOTICE_LEVELS = {"WARNING": logging.WARNING, "NOTICE": logging.INFO, "INFO": logging.INFO, "LOG": logging.INFO}


class Table:
    """Everything that is swapped when the schema changes: routes and their handlers."""

    def __init__(self, edition: Edition, services: Services) -> None:
        self.edition = edition
        self.router, _ = build_router(edition.endpoints)
        self.steps: dict[int, tuple[Step, ...]] = {
            id(route): compile_route(route, services) for route in self.router.routes
        }


class Application:
    """`await application.start()`, then `prepare` and `swap` editions; granian calls `__rsgi__`."""

    def __init__(self, options: WorkerOptions) -> None:
        """To be made in the running event loop."""
        self._options = options
        self._database = Database(options.target, options.database, options.policy)
        self._table = _empty_table()
        self._prepared: Table | None = None
        self.running = 0

    @property
    def on_stale(self) -> Callable[[], None] | None:
        return self._database.on_stale

    @on_stale.setter
    def on_stale(self, callback: Callable[[], None] | None) -> None:
        self._database.on_stale = callback

    async def start(self) -> None:
        if self._options.log_notices:
            self._database.set_notice_handler(_log_notice)
        await self._database.start()

    def prepare(self, edition: Edition) -> None:
        """Builds the table of an edition beside the one in use."""
        codecs = codecs_for(edition.types, self._options)
        self._prepared = Table(edition, Services(self._options, self._database, codecs))

    def swap(self, number: int) -> None:
        """Serves the prepared edition from the next request on; those under way end with the old one."""
        if self._prepared is not None and self._prepared.edition.number == number:
            self._table = self._prepared
            self._prepared = None
            self._database.forget_names()
            # What has just been built lives as long as the edition: the collector need not look at it again.
            gc.collect()
            gc.freeze()

    async def close(self) -> None:
        await self._database.close()

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """granian's hook; everything has been started by then."""

    def __rsgi_del__(self, loop: asyncio.AbstractEventLoop) -> None:
        """granian's hook; the worker closes in its own order."""

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        self.running += 1
        try:
            table = self._table
            match = table.router.find(scope.method, scope.path)
            if match is None:
                await self._unmatched(table.router, scope, protocol)
            else:
                exchange = Exchange(scope, protocol, match)
                # `run_steps`, without the price of one more coroutine.
                for step in table.steps[id(match.route)]:
                    waiting = step(exchange)
                    if waiting is not None:
                        await waiting
                    if exchange.answered:
                        return
        except Problem as problem:
            self._respond(protocol, scope, problem)
        except BindingError as error:
            self._respond(protocol, scope, Problem(error.status, error.detail))
        except MalformedPathError as error:
            self._respond(protocol, scope, Problem(400, str(error)))
        except Exception:
            log.exception("%s %s failed", scope.method, scope.path)
            self._respond(protocol, scope, Problem(500, "an unexpected error; the log of the service has it"))
        finally:
            self.running -= 1

    async def _unmatched(self, router: Router, scope: Any, protocol: Any) -> None:
        """HEAD and OPTIONS of what exists, 405 for other methods, 404 for what does not exist."""
        path = scope.path
        if "\0" in path or "\ufffd" in path:
            raise Problem(400, "the path is not valid UTF-8 text")
        allowed = allowed_methods(router, path)
        if not allowed:
            raise Problem(404, f"there is no endpoint at {path[:200]}")
        if scope.method == "OPTIONS":
            protocol.response_empty(204, [("allow", ", ".join(allowed))])
            return
        match = router.find("GET", path) if scope.method == "HEAD" else None
        if match is None:
            raise Problem(405, f"{path[:200]} answers {', '.join(allowed)}", headers=(("allow", ", ".join(allowed)),))
        await run_steps(self._table.steps[id(match.route)], Exchange(scope, HeadProtocol(protocol), match))

    def _respond(self, protocol: Any, scope: Any, problem: Problem) -> None:
        headers = [("content-type", CONTENT_TYPE), *problem.headers]
        body = orjson.dumps(problem.members(with_type=self._options.problem_types))
        if problem.status in (204, 205, 304):
            protocol.response_empty(problem.status, list(problem.headers))
        elif scope.method == "HEAD":
            protocol.response_empty(problem.status, [*headers, ("content-length", str(len(body)))])
        else:
            protocol.response_bytes(problem.status, headers, body)


class HeadProtocol:
    """Answers HEAD with the header section that GET would have, and no body (RFC 9110 section 9.3.2)."""

    def __init__(self, protocol: Any) -> None:
        self._protocol = protocol
        self.client_disconnect = protocol.client_disconnect

    def response_empty(self, status: int, headers: list[tuple[str, str]]) -> None:
        self._protocol.response_empty(status, headers)

    def response_bytes(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self._protocol.response_empty(status, [*headers, ("content-length", str(len(body)))])

    def response_file(self, status: int, headers: list[tuple[str, str]], file: str) -> None:
        self._protocol.response_empty(status, headers)


def allowed_methods(router: Router, path: str) -> tuple[str, ...]:
    """For `Allow`: what is routed, HEAD wherever GET is, and OPTIONS."""
    methods = set(router.allowed(path))
    if not methods:
        return ()
    if "GET" in methods:
        methods.add("HEAD")
    return tuple(sorted({*methods, "OPTIONS"}))


def codecs_for(types: Mapping[int, TypeInfo], options: WorkerOptions) -> Codecs:
    """The rendering of every type of the catalogue that PostgreSQL does not bring along itself."""
    codecs = Codecs(options.resolve_nested)
    for info in types.values():
        if info.kind is TypeKind.COMPOSITE:
            codecs.define_composite(
                info.oid,
                [
                    (api_name(attribute.name, options.camel_case).encode(), attribute.type_oid)
                    for attribute in info.attributes
                ],
            )
        elif info.oid < FIRST_USER_OID:
            continue
        elif info.kind is TypeKind.ARRAY:
            codecs.define_array(info.oid, info.element, types[info.element].delimiter if info.element in types else ",")
        elif info.kind is TypeKind.DOMAIN:
            codecs.define_domain(info.oid, info.base)
    return codecs


FIRST_USER_OID = 16384


def _empty_table() -> Table:
    table = Table.__new__(Table)
    table.edition = Edition(0, (), {})
    table.router = Router()
    table.steps = {}
    return table


def _log_notice(label: str | None, severity: str, sqlstate: str, message: str) -> None:
    if sqlstate == "25P01":
        return  # provoked by the driver's own settings
    level = _NOTICE_LEVELS.get(severity, logging.DEBUG)
    if notices.isEnabledFor(level):
        notices.log(level, "%s: %s: %s", label or "idle connection", severity, message)
