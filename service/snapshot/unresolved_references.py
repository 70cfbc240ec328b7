"""What endpoints ask for in vain: a proxy without a host, and a path of this service at which no endpoint is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.http.router import MalformedPathError, Router, decode_path
from rowcall.core.http.routing import build_router

_HOST = "Service:ProxyOptions:Host"


class UnresolvedReferences:
    def __init__(self, settings: Settings) -> None:
        self._proxies = settings.flag("Service:ProxyOptions:Enabled")
        self._calls = settings.flag("Service:HttpClientOptions:Enabled")
        self._host = settings.text_or_none(_HOST) or None

    def found(self, endpoints: Sequence[Endpoint]) -> Iterator[Diagnostic]:
        """endpoints: all of them, internal ones too."""
        if not (self._proxies or self._calls):
            return
        router: Router | None = None
        for endpoint in endpoints:
            for what, method, url in self._targets(endpoint):
                message = None
                if url is None:
                    message = f"{what} has no host, so every request is answered with 500: name one, or set {_HOST}"
                elif url.startswith("/") and "{" not in url:
                    router = router or build_router(endpoints, internal=True)[0]
                    if not _answers(router, method, url.partition("#")[0].partition("?")[0]):
                        message = f"{what} asks for {method} {url}, and this service has no such endpoint"
                if message is not None:
                    yield Diagnostic(endpoint.routine.identity, None, f"{endpoint.name}: {message}")

    def _targets(self, endpoint: Endpoint) -> Iterator[tuple[str, str, str | None]]:
        """What asks, by which method, for what."""
        options = endpoint.options
        for word, wish in (("proxy", options.proxy), ("proxy_out", options.proxy_out)) if self._proxies else ():
            if wish is not None:
                yield word, wish.method or endpoint.method, wish.url or self._host
        for call in endpoint.outgoing.calls if self._calls else ():
            yield f"the type {call.name}", call.definition.method, call.definition.url


def _answers(router: Router, method: str, path: str) -> bool:
    if len(path) > 1 and path.endswith("/"):
        return False
    try:
        return router.find(method, decode_path(path)) is not None
    except MalformedPathError:
        return False
