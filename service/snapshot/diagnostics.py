"""Diagnostics of endpoints that are built but cannot do what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rowcall.core.auth.options import BasicOptions
from rowcall.core.auth.password_hash import iterations_of
from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.http.router import MalformedPathError, Router, decode_path
from rowcall.core.http.routing import build_router
from rowcall.core.outgoing.options import ProxyOptions, TypeOptions
from rowcall.service.options.auth import is_secure

_HOST = "Service:ProxyOptions:Host"


_BASIC = "Service:AuthenticationOptions:BasicAuth:"


class UnresolvedReferences:
    """Finds proxies without a host, and requests to this service without a matching endpoint."""

    def __init__(self, settings: Settings) -> None:
        proxy = settings.read_enabled(ProxyOptions)
        self._proxies = proxy is not None
        self._calls = settings.is_enabled(TypeOptions)
        self._host = None if proxy is None else proxy.host

    def diagnostics(self, endpoints: Sequence[Endpoint]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each proxy without a URL if the configuration names no host either, and for each proxy
        and HTTP type whose URL is a path at which this service has no endpoint with the method of the request. Paths
        with placeholders are not checked, nor are proxies or HTTP types that the configuration disables. endpoints:
        all, including internal ones."""
        if not (self._proxies or self._calls):
            return
        router: Router | None = None
        for endpoint in endpoints:
            for origin, method, url in self._targets(endpoint):
                message = None
                if url is None:
                    message = f"{origin} has no host, so every request is answered with 500: name one, or set {_HOST}"
                elif url.startswith("/") and "{" not in url:
                    router = router or build_router(endpoints, internal=True)[0]
                    if not _has_route(router, method, url.partition("#")[0].partition("?")[0]):
                        message = f"{origin} requests {method} {url}, but this service has no such endpoint"
                if message is not None:
                    yield Diagnostic(endpoint.routine.identity, None, f"{endpoint.name}: {message}")

    def _targets(self, endpoint: Endpoint) -> Iterator[tuple[str, str, str | None]]:
        """Yield for each request that the endpoint sends: a word for its source in messages, such as `proxy`, its
        method and its URL (None: there is no host).
        """
        options = endpoint.options
        for word, forwarding in (("proxy", options.proxy), ("proxy_out", options.proxy_out)) if self._proxies else ():
            if forwarding is not None:
                yield word, forwarding.method or endpoint.method, forwarding.url or self._host
        for call in endpoint.outgoing.calls if self._calls else ():
            yield f"the type {call.name}", call.definition.method, call.definition.url


def _has_route(router: Router, method: str, path: str) -> bool:
    """Return whether a request is routed to an endpoint. path: raw, without query string; one that is malformed, or
    that ends with a slash and is not `/`, has no route."""
    if len(path) > 1 and path.endswith("/"):
        return False
    try:
        return router.find(method, decode_path(path)) is not None
    except MalformedPathError:
        return False


class BasicUsers:
    """Finds endpoints with HTTP Basic that can admit no caller at all, or not all of the users in their annotation."""

    def __init__(self, settings: Settings) -> None:
        basic = settings.read(BasicOptions)
        self._hashed = basic.hashed
        # A proxy in front may speak https.
        plain = not settings.is_enabled(Forwarding) and not is_secure(settings)
        self._refused = plain and basic.tls == "Required"

    def unusable(self, endpoints: Iterable[Endpoint]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each endpoint with HTTP Basic that admits no caller because this service does not
        listen on https. If passwords are stored as hashes, also yield one for each user in the annotation of an
        endpoint whose stored value is no hash."""
        for endpoint in endpoints:
            basic_auth = endpoint.options.basic_auth
            if basic_auth is None or not basic_auth.enabled or endpoint.options.invalidates:
                continue
            identity = endpoint.routine.identity
            if self._refused:
                message = (
                    f"{endpoint.name} requires HTTP Basic, which is accepted over https only, and this service does "
                    f"not listen on it, so no caller is admitted; {_BASIC}SslRequirement=Warning or Ignore accepts "
                    "it over http"
                )
                yield Diagnostic(identity, None, message)
            for name, stored in basic_auth.users if self._hashed else ():
                if iterations_of(stored) is None:
                    message = (
                        f"{endpoint.name}: the value of basic_auth for {name} is not a hash of `rowcall --hash`, so "
                        f"no password matches; {_BASIC}UseDefaultPasswordHasher=false accepts plain passwords"
                    )
                    yield Diagnostic(identity, None, message)
